"""What ``Case.stochastic`` tells: generated moments against theory, tables, provenance."""

from dataclasses import replace

import numpy as np
import pytest
from builders.scenario_studies import make_case, make_stage
from builders.uncertain_cases import estimated_documents, synthetic_documents

import cobre.case
from cobre.case.format import layout
from cobre.stochastic.report.document import stochastic_report
from cobre.stochastic.report.tables import coefficients_table, statistics_table

YEARS = 5000
TOLERANCE = 4.0 / np.sqrt(YEARS)
"""Four standard errors of a correlation, or of a mean over the standard deviation."""


@pytest.fixture(scope="module")
def estimated():
    return cobre.case.build(estimated_documents()).stochastic()


@pytest.fixture(scope="module")
def given():
    documents = synthetic_documents(hydros=4, order=2, correlation=0.5, stages=24, openings=50)
    return cobre.case.build(documents).stochastic()


def test_estimated_models_generate_what_was_observed():
    """With a long history the selected model leaves nothing out, and the sample repeats the history."""
    report = cobre.case.build(estimated_documents(years=400)).stochastic()
    quality = report.quality
    sample = quality.generated
    assert (sample.kind, sample.size) == ("season cycle", YEARS)
    assert sample.season_id.tolist() == list(range(12))
    assert quality.has_observations
    assert (quality.count == 400).all()
    scale = quality.observed_std_m3s
    # Months of a year move together, so the mean of a year's month is off by more than its own error.
    assert (np.abs(sample.mean_m3s - quality.observed_mean_m3s) < 1.5 * TOLERANCE * scale).all()
    deviation = quality.deviations()
    assert np.abs(deviation["std"]).max() < 0.06
    assert np.abs(deviation["lag1"]).max() < 0.06
    assert deviation["spatial"].max() < 0.1


def test_observed_moments_are_those_of_the_history(estimated):
    history = estimated.case.scenarios.inflow_history
    values = history.value_m3s.reshape(3, 60, 12)
    quality = estimated.quality
    np.testing.assert_allclose(quality.observed_mean_m3s, values.mean(axis=1).T, rtol=1e-12)
    np.testing.assert_allclose(quality.observed_std_m3s, values.std(axis=1).T, rtol=1e-12)
    for month in range(12):
        expected = np.corrcoef(values[:, :, month])
        np.testing.assert_allclose(quality.observed_spatial[month], expected, atol=1e-12)
    june, may = values[1, :, 5] - values[1, :, 5].mean(), values[1, :, 4] - values[1, :, 4].mean()
    lag1 = (june * may).mean() / (values[1, :, 5].std() * values[1, :, 4].std())
    assert quality.observed_lag1[5, 1] == pytest.approx(lag1, rel=1e-12)


def test_given_models_have_the_moments_that_their_coefficients_imply(given):
    """PAR(2) with the same coefficients in a season every year: stationary moments in closed form."""
    quality, standard = given.quality, given.standard
    sample = quality.generated
    assert sample.kind == "season cycle"
    assert not quality.has_observations
    stages = sample.stage
    np.testing.assert_array_equal(quality.stated_mean_m3s, standard.mean[stages])
    scale = standard.std[stages]
    assert (np.abs(sample.mean_m3s - standard.mean[stages]) < 1.5 * TOLERANCE * scale).all()
    lag1, std = stationary_lag1(standard.phi[stages], given.inflow.sigma_m3s[stages] / scale)
    np.testing.assert_allclose(sample.std_m3s, std * scale, rtol=TOLERANCE)
    np.testing.assert_allclose(sample.lag1, lag1, atol=TOLERANCE)


def stationary_lag1(phi, ratio):
    """Lag-1 correlation and deviation of a periodic model by (season, hydro), by running its covariance."""
    seasons, hydros, lags = phi.shape
    lag1, std = np.zeros((seasons, hydros)), np.zeros((seasons, hydros))
    for hydro in range(hydros):
        covariance = np.eye(lags + 1)
        for step in range(40 * seasons):
            season = step % seasons
            move = np.zeros((lags + 1, lags + 1))
            move[0, :lags] = phi[season, hydro]
            move[1:, :-1] = np.eye(lags)
            covariance = move @ covariance @ move.T
            covariance[0, 0] += ratio[season, hydro] ** 2
            std[season, hydro] = np.sqrt(covariance[0, 0])
            lag1[season, hydro] = covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1])
    return lag1, std


def test_noise_of_the_sample_is_correlated_as_stated():
    documents = synthetic_documents(hydros=4, correlation=0.8, stages=12)
    report = cobre.case.build(documents).stochastic()
    (group,) = report.correlation.profiles[report.correlation.of_stage[0]]
    sample = report.quality.generated
    for month in range(12):
        np.testing.assert_allclose(sample.spatial[month], group.matrix, atol=TOLERANCE)
    np.testing.assert_allclose(sample.lag1, 0.0, atol=TOLERANCE)


def test_a_short_study_is_run_from_its_start():
    """Three months of PAR(1): the mean decays from what was observed, the deviation grows."""
    report = cobre.case.build(synthetic_documents(hydros=2, order=1, stages=3)).stochastic()
    sample, model, standard = report.quality.generated, report.inflow, report.standard
    assert sample.kind == "study"
    assert sample.stage.tolist() == [0, 1, 2]
    mean, variance = model.lags.initial[:, 0], np.zeros(2)
    for stage in range(3):
        psi = model.psi[stage, :, 0]
        mean = model.base_m3s[stage] + psi * mean
        lag1 = np.sqrt(variance) * psi
        variance = psi**2 * variance + model.sigma_m3s[stage] ** 2
        std = np.sqrt(variance)
        assert (np.abs(sample.mean_m3s[stage] - mean) < TOLERANCE * std).all()
        np.testing.assert_allclose(sample.std_m3s[stage], std, rtol=TOLERANCE)
        if stage:
            np.testing.assert_allclose(sample.lag1[stage], lag1 / std, atol=TOLERANCE)
    assert np.isnan(sample.lag1[0]).all()
    assert (sample.std_m3s[0] < standard.std[0]).all()


def test_weeks_of_one_month_share_their_noise():
    stages = [make_stage(t, 3, season_id=0 if t < 2 else 1, month=1 if t < 2 else 2) for t in range(3)]
    report = stochastic_report(make_case(stages, hydro_ids=(4, 2)))
    lag1 = report.quality.generated.lag1
    np.testing.assert_allclose(lag1[1], 1.0, rtol=1e-12)
    assert (np.abs(lag1[2]) < TOLERANCE).all()


def test_the_sample_does_not_depend_on_the_seed_of_the_study(estimated):
    case = estimated.case
    other = replace(case, training=replace(case.training, tree_seed=99)).stochastic()
    assert not np.array_equal(other.tree.noise, estimated.tree.noise)
    assert other.quality.generated.mean_m3s.tobytes() == estimated.quality.generated.mean_m3s.tobytes()


def test_seasons_that_no_stage_has_come_from_the_history():
    report = cobre.case.build(estimated_documents(stages=5)).stochastic()
    sample = report.quality.generated
    assert sample.kind == "season cycle"
    assert sample.stage.tolist() == [0, 1, 2, 3, 4] + [-1] * 7
    np.testing.assert_allclose(
        report.quality.stated_mean_m3s[7], report.quality.observed_mean_m3s[7], rtol=1e-12
    )
    quality = report.tables["quality"].to_pylist()
    assert [row["stage_id"] for row in quality[:12]] == [0, 1, 2, 3, 4] + [None] * 7


def test_annual_component_keeps_years_together():
    """Slow inflows: the annual component carries what lags alone forget."""
    phi = (0.55, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.35)
    report = cobre.case.build(estimated_documents(years=80, phi=phi, annual=True)).stochastic()
    annual = report.tables["annual"].to_pylist()
    assert annual
    assert {row["hydro_id"] for row in annual} == {0, 1, 2}
    deviation = report.quality.deviations()
    assert np.nanmax(np.abs(deviation["lag1"])) < 0.15
    assert np.nanmax(np.abs(deviation["std"])) < 0.2


def test_tables_and_arrays_agree(estimated):
    tables = estimated.tables
    assert set(tables) == {
        *("inflow_model", "orders", "coefficients", "annual", "fit", "reductions"),
        *("quality", "spatial_correlation", "openings", "opening_tree"),
    }
    fit = estimated.inflow.fit
    assert len(tables["fit"]) == 36
    for row in tables["coefficients"].to_pylist():
        assert fit.coefficients[row["season_id"], row["hydro_id"], row["lag"] - 1] == row["coefficient"]
    assert len(tables["coefficients"]) == int((fit.coefficients != 0.0).sum())
    orders = np.array(tables["orders"]["order"]).reshape(3, 12).T
    np.testing.assert_array_equal(orders, estimated.orders)
    noise = np.array(tables["openings"]["value"]).reshape(12, 5, 3)
    for stage in range(12):
        np.testing.assert_array_equal(noise[stage], estimated.openings(stage))
    assert [row["openings"] for row in tables["opening_tree"].to_pylist()] == [5] * 12
    assert len(tables["spatial_correlation"]) == 12 * 3


def test_reductions_tell_the_contributions():
    """Orders are lowered where a contribution is negative; what it was is kept."""
    lowered = []
    for seed in range(8):
        documents = estimated_documents(years=25, phi=(0.6, -0.3), seed=seed)
        lowered += cobre.case.build(documents).stochastic().tables["reductions"].to_pylist()
    negative = [row for row in lowered if row["reason"] == "negative_contribution"]
    assert negative
    for row in negative:
        assert len(row["contributions"]) == row["original_order"] > row["reduced_order"]
        assert min(row["contributions"]) < 0.0


def test_provenance(estimated, given):
    origin = estimated.provenance
    assert (origin.estimation_path, origin.seasonal_stats_source) == ("full_estimation", "history")
    assert (origin.ar_coefficients_source, origin.correlation_source) == ("history", "history")
    assert (origin.opening_tree_source, origin.ar_method, origin.ar_max_order) == ("generated", "pacf", 3)
    origin = given.provenance
    assert (origin.estimation_path, origin.seasonal_stats_source) == ("user_provided_no_history", "file")
    assert (origin.ar_coefficients_source, origin.correlation_source) == ("file", "file")
    assert origin.ar_method is None


def test_texts(estimated):
    assert repr(estimated) == (
        f"StochasticReport({estimated.case.path.name!r}: full_estimation, 12 stages, 3 hydros, "
        f"largest order {estimated.orders.max()}, 60 openings)"
    )
    text = str(estimated)
    for part in ("full_estimation", "estimated from history", "seed 1", "openings a node: 5", "orders"):
        assert part in text
    assert "observed and generated" in repr(estimated.quality)


def test_a_case_without_hydros_or_noise():
    documents = synthetic_documents(hydros=1)
    case = cobre.case.build(documents)
    nothing = replace(case.scenarios, inflow_std_m3s=np.zeros_like(case.scenarios.inflow_std_m3s))
    report = stochastic_report(replace(case, scenarios=nothing))
    assert (report.quality.generated.std_m3s == 0.0).all()
    assert np.isnan(report.quality.deviations()["std"]).all()
    stages = [make_stage(t, 2) for t in range(3)]
    empty = stochastic_report(make_case(stages, hydro_ids=()))
    assert len(empty.tables["quality"]) == 0
    assert empty.as_dict()["hydros"] == []


def test_history_knows_the_lags_of_a_given_model():
    """Three months from January on: what December was like comes from the history, not from January."""
    documents = estimated_documents(stages=3)
    report = cobre.case.build(documents).stochastic()
    documents[layout.INFLOW_STATS] = statistics_table(report)
    documents[layout.INFLOW_AR] = coefficients_table(report)
    again = cobre.case.build(documents).stochastic()
    assert again.inflow.path == "user_provided_all"
    assert not again.inflow.notes
    np.testing.assert_allclose(again.inflow.psi, report.inflow.psi, rtol=1e-12)
    np.testing.assert_allclose(again.inflow.base_m3s, report.inflow.base_m3s, rtol=1e-12)
