"""Given coefficients: original units, residual shares and memories, checked by hand."""

import numpy as np
import pytest
from builders.scenario_studies import (
    constant_phi,
    memories,
    month_stages,
    past_months,
    pre_study,
    seasonal_case,
    windows,
)
from oracle.yule_walker import stationary_shares

from cobre.case.model import AnnualComponent
from cobre.errors import ValidationError
from cobre.stochastic.par import inflow_model


def test_white_noise_is_untouched() -> None:
    case = seasonal_case(month_stages(3), mean=[[10.0], [20.0], [30.1]], std=[[1.0], [2.0], [0.3]])
    model = inflow_model(case)
    assert model.path == "user_stats_white_noise"
    assert model.psi.shape == (3, 1, 0)
    assert model.lags.names == ()
    assert (model.base_m3s == case.scenarios.inflow_mean_m3s).all()
    assert (model.sigma_m3s == case.scenarios.inflow_std_m3s).all()


def test_first_order_in_original_units() -> None:
    """psi = 0.5 * 10 / 4 before the study, then 0.5 * 20 / 10 and 0.5 * 8 / 20."""
    before = pre_study([("2023-12-01", "2024-01-01", 11)], [50.0], [4.0])
    case = seasonal_case(
        month_stages(3),
        mean=[[100.0], [200.0], [80.0]],
        std=[[10.0], [20.0], [8.0]],
        phi=constant_phi(3, 0.5),
        recent=past_months([[60.0]]),
        before=before,
    )
    model = inflow_model(case)
    assert model.psi[:, 0, 0].tolist() == [1.25, 1.0, 0.2]
    assert model.base_m3s[:, 0].tolist() == [100 - 1.25 * 50, 200 - 1.0 * 100, 80 - 0.2 * 200]
    np.testing.assert_allclose(model.sigma_m3s[:, 0], np.sqrt(0.75) * np.array([10, 20, 8]), rtol=1e-15)
    assert model.lags.names == ("lag 1",)
    assert model.lags.initial.tolist() == [[60.0]]
    assert model.order.tolist() == [[1], [1], [1]]
    found = memories(model, np.array([[7.0], [8.0], [9.0]]))
    assert [float(item["lag 1"][0]) for item in found] == [60.0, 7.0, 8.0, 9.0]


def test_residual_shares_of_second_order() -> None:
    """Lags before the study are uncorrelated: 0.8124, 0.7141, 0.6819 for phi = (0.5, 0.3)."""
    recent = past_months([[50.0, 45.0]])
    model = inflow_model(
        seasonal_case(month_stages(3), std=1.0, phi=constant_phi(3, 0.5, 0.3), recent=recent)
    )
    np.testing.assert_allclose(model.sigma_m3s[:, 0], [0.8124, 0.7141, 0.6819], atol=5e-5)
    # The first two by hand: rho = phi, then corr(z_0, z_-1) = 0.5.
    assert model.sigma_m3s[0, 0] == pytest.approx(np.sqrt(1 - 0.25 - 0.09), rel=1e-15)
    assert model.sigma_m3s[1, 0] == pytest.approx(np.sqrt(1 - 0.25 - 0.09 - 2 * 0.15 * 0.5), rel=1e-15)


def test_a_lag_takes_the_statistics_of_its_own_season() -> None:
    """December before the study is that of the last stage, though only twelve of thirteen are distinct."""
    mean = np.arange(100.0, 113.0)[:, np.newaxis]
    std = np.arange(10.0, 23.0)[:, np.newaxis]
    phi = constant_phi(13, 0.5)
    model = inflow_model(
        seasonal_case(month_stages(13), mean=mean, std=std, phi=phi, recent=past_months([[1.0]]))
    )
    assert model.psi[0, 0, 0] == 0.5 * 10.0 / 21.0
    # A study of three months: December has no statistics; January is nearer than March.
    short = inflow_model(
        seasonal_case(month_stages(3), mean=mean[:3], std=std[:3], phi=phi[:3], recent=past_months([[1.0]]))
    )
    assert short.psi[:, 0, 0].tolist() == [0.5, 0.5 * 11.0 / 10.0, 0.5 * 12.0 / 11.0]
    assert short.base_m3s[0, 0] == 50.0
    assert "without statistics" in short.notes[0].message
    assert model.notes == ()
    # Of two Januaries the nearer one counts.
    mean[12], std[12] = 300.0, 30.0
    two = inflow_model(
        seasonal_case(
            month_stages(14),
            mean=[*mean, [1.0]],
            std=[*std, [5.0]],
            phi=constant_phi(14, 0.5),
            recent=past_months([[1.0]]),
        )
    )
    assert two.psi[13, 0, 0] == 0.5 * 5.0 / 30.0


def test_only_lags_that_are_read_are_carried() -> None:
    phi = np.zeros((4, 3, 3))
    phi[2, 0, 1] = 0.4  # Hydro 0 reads lag 2 at stage 2: the inflow of stage 0.
    phi[3, 1, 0] = 0.4  # Hydro 1 reads lag 1 at stage 3: the inflow of stage 2.
    case = seasonal_case(month_stages(4), hydro_ids=(0, 1, 2), phi=phi)
    model = inflow_model(case)
    assert model.lags.names == ("lag 1", "lag 2")
    assert model.lags.needed.tolist() == [[True, True], [True, False], [False, False]]
    assert (model.lags.initial == 0.0).all()
    none = inflow_model(seasonal_case(month_stages(2), phi=np.zeros((2, 1, 4))))
    assert none.lags.names == ()
    assert none.path == "user_provided_no_history"


def test_missing_observations_name_plant_lag_and_window() -> None:
    case = seasonal_case(
        month_stages(2),
        hydro_ids=(3, 8),
        phi=constant_phi(2, 0.3, 0.2, hydros=2),
        std=[[1.0, 1.0]] * 2,
        recent=[*past_months([[1.0, 2.0], [3.0]])],
        before=pre_study(
            [("2023-11-01", "2023-12-01", 10), ("2023-12-01", "2024-01-01", 11)], [1, 1], [1, 1], 2
        ),
    )
    with pytest.raises(ValidationError) as caught:
        inflow_model(case)
    (problem,) = caught.value.problems
    assert problem.kind == "BusinessRuleViolation"
    assert problem.context["rule"] == "5a.30"
    for part in ("hydro 8", "lag 2", "2023-11-01 to 2023-12-01", "0 of its 30 days"):
        assert part in problem.message


def test_recent_observations_come_before_history() -> None:
    history = windows([(0, "2023-12-01", "2024-01-01", 10.0)])
    case = seasonal_case(
        month_stages(12),
        phi=constant_phi(12, 0.5),
        recent=[(0, "2023-12-22", "2024-01-01", 41.0)],
        history=history,
    )
    model = inflow_model(case)
    assert model.path == "user_provided_all"
    assert model.lags.initial[0, 0] == (21 * 10.0 + 10 * 41.0) / 31


def test_annual_component_spreads_over_twelve_lags() -> None:
    """psi_l = phi_l s_t / s_{t-l} + phi_A s_t / (12 s_A)."""
    stages = 14
    shape = (stages, 1)
    annual = AnnualComponent(np.full(shape, 0.3), np.full(shape, 90.0), np.full(shape, 15.0))
    std = np.linspace(8.0, 21.0, stages)[:, np.newaxis]
    mean = np.linspace(80.0, 120.0, stages)[:, np.newaxis]
    values = [list(np.arange(12.0) + 90.0)]
    case = seasonal_case(
        month_stages(stages),
        mean=mean,
        std=std,
        phi=constant_phi(stages, 0.4),
        annual=annual,
        recent=past_months(values),
    )
    model = inflow_model(case)
    assert len(model.lags.names) == 12
    share = 0.3 * std[13, 0] / (12 * 15.0)
    assert model.psi[13, 0, 0] == pytest.approx(0.4 * std[13, 0] / std[12, 0] + share, rel=1e-14)
    np.testing.assert_allclose(model.psi[13, 0, 1:], share, rtol=1e-14)
    rest = sum(float(model.psi[13, 0, n - 1]) * mean[13 - n, 0] for n in range(1, 13))
    assert model.base_m3s[13, 0] == pytest.approx(mean[13, 0] - rest, rel=1e-13)
    assert model.lags.initial[0].tolist() == values[0]
    # The share of the noise leaves the variance that is stated, year after year.
    year = {m: [0.3 * std[(m - n) % 12, 0] / (12 * 15.0) for n in range(1, 13)] for m in range(12)}
    shares = stationary_shares({m: [0.4 + first, *rest] for m, (first, *rest) in year.items()})
    np.testing.assert_allclose(model.sigma_m3s[:, 0], std[:, 0] * [*shares, *shares[:2]], rtol=1e-11)


def test_annual_component_alone() -> None:
    shape = (12, 1)
    annual = AnnualComponent(np.full(shape, 0.24), np.full(shape, 90.0), np.full(shape, 2.0))
    case = seasonal_case(month_stages(12), std=6.0, annual=annual, recent=past_months([[100.0] * 12]))
    model = inflow_model(case)
    np.testing.assert_allclose(model.psi, 0.24 * 6 / 24, rtol=1e-15)
    assert model.order.max() == 0


def test_without_a_season_map_lags_simply_shift() -> None:
    case = seasonal_case(
        month_stages(3),
        seasons=None,
        phi=constant_phi(3, 0.5, 0.25),
        recent=[(0, "2023-12-01", "2024-01-01", 9.0), (0, "2023-10-31", "2023-12-01", 5.0)],
    )
    model = inflow_model(case)
    found = memories(model, np.array([[1.0], [2.0], [3.0]]))
    assert [item["lag 1"][0] for item in found[1:]] == [1.0, 2.0, 3.0]
    assert found[2]["lag 2"][0] == 1.0
