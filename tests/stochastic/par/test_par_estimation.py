"""Models estimated from history: against plain Python, and against parameters that made the history."""

import datetime
from dataclasses import replace

import numpy as np
import pytest
from builders.scenario_studies import (
    MONTHS,
    MONTHS_AND_QUARTERS,
    month_stages,
    month_start,
    past_months,
    seasonal_case,
    stage_between,
)
from oracle.yule_walker import Oracle, stationary_shares

from cobre.case.model import AnnualComponent, Case, EstimationOptions, InflowHistory
from cobre.case.model.horizon import chain_graph
from cobre.errors import ValidationError
from cobre.stochastic.par import estimated_correlation, inflow_model
from cobre.stochastic.par.moments import CONSTANT, SATURATED
from cobre.stochastic.par.yule_walker import solve_small


def as_history(
    values: np.ndarray, year: int, first: int = 1, drop: frozenset[int] = frozenset()
) -> InflowHistory:
    """Return monthly values by (hydro, month) as a history from month ``first``, without ``drop``."""
    months = [n for n in range(values.shape[1]) if n not in drop]
    start = np.array([month_start(year, first + n) for n in months], "datetime64[D]")
    end = np.array([month_start(year, first + n + 1) for n in months], "datetime64[D]")
    hydros = len(values)
    return InflowHistory(
        np.repeat(np.arange(hydros), len(months)),
        np.tile(start, hydros),
        np.tile(end, hydros),
        np.ascontiguousarray(values[:, months]).ravel(),
    )


def simulate(
    hydros: int, years: int, seed: int, phi: tuple[float, ...] = (0.6,), mix: float = 0.0
) -> np.ndarray:
    """Return monthly inflows of standardised models with the same coefficients in all months."""
    rng = np.random.default_rng(seed)
    length = 12 * years + 60
    noise = rng.normal(size=(hydros, length))
    noise = np.sqrt(1 - mix**2) * noise + mix * rng.normal(size=(1, length))
    series = np.zeros((hydros, length))
    for month in range(len(phi), length):
        for lag, value in enumerate(phi, start=1):
            series[:, month] += value * series[:, month - lag]
        series[:, month] += noise[:, month]
    series = series[:, 60:]
    at = np.arange(series.shape[1]) % 12
    return 100.0 + 5.0 * at + (4.0 + at) * series


def history_case(history: InflowHistory, hydros: int = 1, **options: object) -> Case:
    recent = past_months([[100.0 + n for n in range(13)]] * hydros)
    case = seasonal_case(
        month_stages(12),
        hydro_ids=range(hydros),
        mean=0.0,
        std=0.0,
        history=history,
        recent=recent,
        has_stats=False,
    )
    return replace(case, estimation=EstimationOptions(**options))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("first", "drop"), [(1, frozenset()), (8, frozenset()), (3, frozenset({40, 41, 100}))]
)
def test_equals_the_plain_implementation(first: int, drop: frozenset[int]) -> None:
    """Also for histories that start in August, or lack some months: pairs are aligned by date."""
    reduced = 0
    for seed in range(6):
        values = simulate(1, 35, seed, phi=(0.5, 0.0, 0.25))
        series = {
            ((1980 * 12 + first - 1 + n) // 12, (first - 1 + n) % 12): float(value)
            for n, value in enumerate(values[0])
            if n not in drop
        }
        oracle = Oracle(series)
        model = inflow_model(history_case(as_history(values, 1980, first, drop)))
        fit = model.fit
        assert fit is not None
        assert fit.season_ids.tolist() == list(range(12))
        expected = oracle.fit(6)
        assert fit.order[:, 0].tolist() == [len(expected[m]) for m in range(12)]
        for month in range(12):
            order = len(expected[month])
            np.testing.assert_allclose(fit.coefficients[month, 0, :order], expected[month], rtol=1e-9)
            assert (fit.coefficients[month, 0, order:] == 0.0).all()
            assert fit.residual_ratio[month, 0] == pytest.approx(
                oracle.ratio(month, expected[month]), rel=1e-9
            )
            assert fit.mean_m3s[month, 0] == pytest.approx(oracle.mean[month], rel=1e-13)
            assert fit.std_m3s[month, 0] == pytest.approx(oracle.std[month], rel=1e-12)
            assert fit.lag1_autocorrelation[month, 0] == pytest.approx(oracle.rho(month, 1), rel=1e-9)
            assert fit.count[month, 0] == len(oracle.values[month])
        reduced += len(fit.reductions)
        for item in fit.reductions:
            assert item.to_order < item.from_order
        noise = np.array(list(oracle.std.values())) * stationary_shares(expected)
        np.testing.assert_allclose(model.sigma_m3s[:, 0], noise, rtol=1e-9)
    assert reduced > 0


def test_a_season_keeps_its_order_while_those_before_it_are_lowered() -> None:
    # With a ceiling below the order found at once, October's model would have order 1.
    fit = inflow_model(history_case(as_history(simulate(1, 35, 63, phi=(0.5, 0.0, 0.25)), 1980))).fit
    assert fit is not None
    assert fit.order[:, 0].tolist() == [1, 1, 1, 1, 3, 3, 1, 1, 1, 4, 1, 1]


def test_index_alignment_would_be_wrong() -> None:
    """A history from August: January goes with the December right before it."""
    values = simulate(1, 3000, 3, phi=(0.7,))
    fit = inflow_model(history_case(as_history(values, 1, 8))).fit
    assert fit is not None
    np.testing.assert_allclose(fit.lag1_autocorrelation[:, 0], 0.7, atol=0.04)


def test_long_histories_give_the_parameters_back() -> None:
    values = simulate(2, 4000, 11, phi=(0.5, 0.3))
    model = inflow_model(history_case(as_history(values, 1), 2))
    fit = model.fit
    assert fit is not None
    np.testing.assert_allclose(fit.coefficients[:, :, 0], 0.5, atol=0.06)
    np.testing.assert_allclose(fit.coefficients[:, :, 1], 0.3, atol=0.06)
    # corr(1) = 0.5 / 0.7; r^2 = 1 - 0.5 rho_1 - 0.3 rho_2.
    one = 0.5 / 0.7
    two = 0.5 * one + 0.3
    np.testing.assert_allclose(fit.residual_ratio, np.sqrt(1 - 0.5 * one - 0.3 * two), atol=0.02)
    assert model.path == "full_estimation"


def test_annual_component_explains_what_lags_do_not() -> None:
    """z = 0.3 z_1 + 0.5 A + noise in standardised units of a stationary series: recovered within 5 %."""
    rng = np.random.default_rng(5)
    length = 12 * 5000
    series = np.zeros(length + 24)
    noise = rng.normal(size=length + 24)
    for month in range(12, length + 24):
        year = series[month - 12 : month].mean()
        series[month] = 0.3 * series[month - 1] + 0.5 * year + noise[month]
    values = 100.0 + 10.0 * series[np.newaxis, 24:]
    model = inflow_model(history_case(as_history(values, 1), order_selection="pacf_annual"))
    fit = model.fit
    assert fit is not None
    direct = fit.annual_coefficient[:, 0] * fit.std_m3s[:, 0] / fit.annual_std_m3s[:, 0]
    assert np.mean(fit.coefficients[:, 0, 0]) == pytest.approx(0.3, abs=0.015)
    assert np.mean(direct) == pytest.approx(0.5, abs=0.025)
    np.testing.assert_allclose(fit.residual_ratio[:, 0] * fit.std_m3s[:, 0], 10.0, rtol=0.03)
    assert len(model.lags.names) == 12
    assert (fit.order >= 1).all()


def test_a_season_without_lags_keeps_its_annual_component() -> None:
    """Each value depends on the year before but not on the month: order 0, yet the noise is smaller."""
    rng = np.random.default_rng(2)
    years = 400
    level = np.repeat(rng.normal(size=years + 1), 12)[: 12 * years]
    alternating = np.where(np.arange(12 * years) % 2, 1.0, -1.0) * rng.normal(size=12 * years)
    values = 100.0 + 10.0 * (level + 0.3 * alternating)[np.newaxis]
    case = history_case(
        as_history(values, 1000), order_selection="pacf_annual", max_coefficient_magnitude=1e-6
    )
    fit = inflow_model(case).fit
    assert fit is not None
    assert (fit.order == 0).all()
    assert {item.reason for item in fit.reductions} == {"magnitude"}
    assert (fit.annual_coefficient > 0.1).any()
    with_year = fit.annual_coefficient != 0.0
    np.testing.assert_allclose(
        fit.residual_ratio[with_year], np.sqrt(1.0 - fit.annual_coefficient[with_year] ** 2), rtol=1e-12
    )
    assert not fit.white_noise[with_year].any()


def test_constant_and_saturated_series() -> None:
    rng = np.random.default_rng(0)
    values = np.tile(rng.normal(100.0, 10.0, size=(1, 12 * 40)), (4, 1))
    month = np.arange(values.shape[1]) % 12
    values[0, month == 2] = 7.25
    often = np.flatnonzero(month == 3)
    values[1, often[:30]] = 50.2
    values[2, month == 4] = np.where(rng.random(40) < 0.7, -3.0, 20.0)
    fit = inflow_model(history_case(as_history(values, 1980), 4)).fit
    assert fit is not None
    assert (fit.mean_m3s[2, 0], fit.std_m3s[2, 0], fit.classes[2, 0]) == (7.25, 0.0, CONSTANT)
    assert (fit.mean_m3s[3, 1], fit.std_m3s[3, 1], fit.classes[3, 1]) == (50.0, 0.0, SATURATED)
    # Mostly negative values are left as they are.
    assert fit.classes[4, 2] == 0
    assert fit.std_m3s[4, 2] > 0.0
    assert (fit.order[fit.std_m3s == 0.0] == 0).all()


def test_given_statistics_with_estimated_coefficients() -> None:
    values = simulate(1, 60, 4)
    full = history_case(as_history(values, 1950))
    case = replace(
        full,
        scenarios=replace(
            full.scenarios,
            has_inflow_stats=True,
            inflow_mean_m3s=np.full((12, 1), 77.0),
            inflow_std_m3s=np.full((12, 1), 5.0),
        ),
    )
    model, plain = inflow_model(case), inflow_model(full)
    assert model.path == "partial_estimation"
    assert model.fit is not None
    assert plain.fit is not None
    assert (model.fit.coefficients == plain.fit.coefficients).all()
    # All deviations are 5, so the standardised coefficients are those in original units.
    assert model.psi[3, 0, 0] == pytest.approx(model.fit.coefficients[3, 0, 0], rel=1e-15)
    share = plain.sigma_m3s / plain.std_m3s
    np.testing.assert_allclose(model.sigma_m3s, 5.0 * share, rtol=1e-14)
    assert (model.mean_m3s == 77.0).all()


def test_every_season_decides_the_share_of_the_noise_of_a_short_study() -> None:
    case = history_case(as_history(simulate(1, 40, 9, phi=(0.5, 0.0, 0.25)), 1980))
    quarter = replace(
        case,
        stages=case.stages[:3],
        graph=chain_graph(3),
        scenarios=replace(case.scenarios, inflow_mean_m3s=np.zeros((3, 1)), inflow_std_m3s=np.zeros((3, 1))),
    )
    np.testing.assert_allclose(inflow_model(quarter).sigma_m3s, inflow_model(case).sigma_m3s[:3], rtol=1e-12)


def test_coefficients_that_no_stationary_series_has() -> None:
    """Short histories give such models: the share of the noise is the sample's, and a note names the plant.

    The same coefficients given by files have the same share where the history is there, else none.
    """
    for seed in range(20):
        values = simulate(1, 4, seed, phi=(0.5, 0.0, 0.25))
        case = history_case(as_history(values, 1980), order_selection="pacf_annual")
        model = inflow_model(case)
        if any(note.context["field"] == "residual_ratio" for note in model.notes):
            break
    (note,) = (item for item in model.notes if item.context["field"] == "residual_ratio")
    assert "hydro 0 (H0)" in note.message
    fit = model.fit
    assert fit is not None
    np.testing.assert_array_equal(model.sigma_m3s, fit.std_m3s * fit.residual_ratio)
    given = replace(
        case.scenarios,
        has_inflow_stats=True,
        inflow_mean_m3s=fit.mean_m3s,
        inflow_std_m3s=fit.std_m3s,
        ar_coefficients=fit.coefficients,
        annual=AnnualComponent(
            fit.annual_coefficient,
            fit.annual_mean_m3s,
            np.where(fit.annual_std_m3s > 0.0, fit.annual_std_m3s, 1.0),
        ),
    )
    again = inflow_model(replace(case, scenarios=given))
    assert again.path == "user_provided_all"
    np.testing.assert_allclose(again.sigma_m3s, model.sigma_m3s, rtol=1e-13)
    with pytest.raises(ValidationError, match="hydro 0"):
        inflow_model(replace(case, scenarios=replace(given, inflow_history=None)))


def test_given_coefficients_with_statistics_of_the_history() -> None:
    values = simulate(1, 60, 4)
    full = history_case(as_history(values, 1950))
    phi = np.full((12, 1, 1), 0.4)
    model = inflow_model(replace(full, scenarios=replace(full.scenarios, ar_coefficients=phi)))
    assert model.path == "user_ar_history_stats"
    assert model.fit is not None
    std = model.fit.std_m3s[:, 0]
    np.testing.assert_allclose(model.psi[:, 0, 0], 0.4 * std / np.roll(std, 1), rtol=1e-14)
    np.testing.assert_allclose(model.sigma_m3s[:, 0], std * np.sqrt(1 - 0.16), rtol=1e-14)


def test_order_of_plants_changes_no_bit() -> None:
    values = simulate(5, 40, 8, phi=(0.4, 0.2), mix=0.5)
    order = [3, 0, 4, 1, 2]
    one = inflow_model(history_case(as_history(values, 1970), 5))
    two = inflow_model(history_case(as_history(values[order], 1970), 5))
    assert one.fit is not None
    assert two.fit is not None
    for name in ("mean_m3s", "std_m3s", "coefficients", "residual_ratio", "order"):
        assert (getattr(one.fit, name)[:, order] == getattr(two.fit, name)).all(), name
    assert (one.base_m3s[:, order] == two.base_m3s).all()


def test_correlation_of_residuals() -> None:
    """Noise with a common part of weight 0.8 is correlated by 0.64, whatever the autoregression."""
    values = simulate(3, 2000, 21, phi=(0.6,), mix=0.8)
    found = estimated_correlation(history_case(as_history(values, 1), 3))
    assert found is not None
    assert sorted(found.profiles) == ["default", *(f"season_{n:02d}" for n in range(12))]
    matrix = np.array(found.profiles["default"].correlation_groups[0].matrix)
    np.testing.assert_allclose(matrix[~np.eye(3, dtype=bool)], 0.64, atol=0.02)
    assert (np.diagonal(matrix) == 1.0).all()
    assert [item.id for item in found.profiles["default"].correlation_groups[0].entities] == [0, 1, 2]
    assert [(item.stage_id, item.profile_name) for item in found.schedule or ()][:2] == [
        (0, "season_00"),
        (1, "season_01"),
    ]
    short = estimated_correlation(history_case(as_history(values[:, : 12 * 20], 1), 3))
    assert short is not None
    assert sorted(short.profiles) == ["default"]
    assert estimated_correlation(seasonal_case(month_stages(2))) is None


def test_pearson_over_common_dates() -> None:
    """One plant starts 60 years later; pairs are those of dates that both have."""
    values = simulate(2, 130, 5, phi=(0.3,), mix=0.7)
    whole = as_history(values, 1800)
    keep = (whole.hydro == 0) | (whole.start >= np.datetime64("1860-01-01"))
    cut = InflowHistory(whole.hydro[keep], whole.start[keep], whole.end[keep], whole.value_m3s[keep])
    found = estimated_correlation(history_case(cut, 2))
    late = estimated_correlation(history_case(as_history(values[:, 720:], 1860), 2))
    assert found is not None
    assert late is not None
    one = found.profiles["default"].correlation_groups[0].matrix[0][1]
    other = late.profiles["default"].correlation_groups[0].matrix[0][1]
    assert one == pytest.approx(other, abs=0.03)


def test_quarters_are_estimated_from_months() -> None:
    values = simulate(1, 80, 9)
    stages = [
        *month_stages(3),
        stage_between(3, datetime.date(2024, 4, 1), datetime.date(2024, 7, 1), 13),
        stage_between(4, datetime.date(2024, 7, 1), datetime.date(2024, 10, 1), 14),
    ]
    case = seasonal_case(
        stages,
        seasons=MONTHS_AND_QUARTERS,
        mean=0.0,
        std=0.0,
        history=as_history(values, 1944),
        has_stats=False,
    )
    model = inflow_model(case)
    assert model.fit is not None
    assert sorted(model.fit.season_ids.tolist()) == list(range(16))
    second = model.fit.season_ids.tolist().index(13)
    years = np.arange(1944, 2024)
    days = np.array(
        [[(month_start(y, m + 1) - month_start(y, m)).days for m in (4, 5, 6)] for y in years.tolist()]
    )
    quarter = (values[0].reshape(80, 12)[:, 3:6] * days).sum(axis=1) / days.sum(axis=1)
    assert model.fit.mean_m3s[second, 0] == pytest.approx(quarter.mean(), rel=1e-12)
    assert model.fit.std_m3s[second, 0] == pytest.approx(quarter.std(), rel=1e-12)


def test_seasons_without_observations() -> None:
    values = simulate(1, 30, 1)
    drop = frozenset(n for n in range(values.shape[1]) if n % 12 == 6)
    with pytest.raises(ValidationError, match="no observation in season 6"):
        inflow_model(history_case(as_history(values, 1990, drop=drop)))
    assert MONTHS.seasons[6].label == "M7"


def test_small_systems() -> None:
    rng = np.random.default_rng(1)
    matrix, right = rng.normal(size=(50, 4, 4)), rng.normal(size=(50, 4))
    solution, regular = solve_small(matrix, right)
    assert regular.all()
    np.testing.assert_allclose(solution, np.linalg.solve(matrix, right[:, :, np.newaxis])[:, :, 0], rtol=1e-8)
    matrix[7, 2] = matrix[7, 1]
    solution, regular = solve_small(matrix, right)
    assert np.flatnonzero(~regular).tolist() == [7]
    assert (solution[7] == 0.0).all()
