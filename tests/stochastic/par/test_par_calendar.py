"""Lags on the calendar: weeks in months, quarters after months, custom seasons, overlaps and gaps."""

import datetime

import numpy as np
from builders.scenario_studies import (
    MONTHS,
    MONTHS_AND_QUARTERS,
    WEEKS,
    constant_phi,
    day,
    memories,
    month_stages,
    month_start,
    past_months,
    pre_study,
    seasonal_case,
    stage_between,
    week_stages,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from cobre.case.model import Season, SeasonMap
from cobre.case.periods import study_calendar
from cobre.stochastic.par import inflow_model


def test_weeks_gather_into_months() -> None:
    """The week of 30 March has two days in March and five in April."""
    stages = week_stages(11, "2024-03-02")
    recent = [(0, "2024-02-01", "2024-03-01", 50.0), (0, "2024-03-01", "2024-03-02", 62.0)]
    case = seasonal_case(stages, phi=constant_phi(11, 0.5), recent=recent)
    model = inflow_model(case)
    assert model.lags.names == ("lag 1", "month so far")
    inflow = np.arange(1.0, 12.0)[:, np.newaxis]
    found = memories(model, inflow)
    assert [item["lag 1"][0] for item in found[:5]] == [50.0] * 5
    assert found[0]["month so far"][0] == 62.0 / 31
    # 1 March is observed, then four weeks, then the two days of the fifth.
    march = (62.0 + 7 * (1 + 2 + 3 + 4) + 2 * 5) / 31
    np.testing.assert_allclose([item["lag 1"][0] for item in found[5:9]], march, rtol=1e-14)
    # Five days of the fifth week, weeks six to eight, and four days of the ninth.
    april = (5 * 5 + 7 * (6 + 7 + 8) + 4 * 9) / 30
    np.testing.assert_allclose([item["lag 1"][0] for item in found[9:11]], april, rtol=1e-14)
    # May is not read any more within the study, so nothing of it is kept.
    assert model.lags.needed.all()


def test_weeks_without_observations_of_the_running_month() -> None:
    stages = week_stages(6, "2024-04-06")
    case = seasonal_case(stages, phi=constant_phi(6, 0.5), recent=[(0, "2024-03-01", "2024-04-01", 40.0)])
    model = inflow_model(case)
    inflow = np.arange(1.0, 7.0)[:, np.newaxis]
    found = memories(model, inflow)
    # Five days of April are not known; the mean is that of the others. The fourth week has four of them.
    april = (7 * (1 + 2 + 3) + 4 * 4) / 25
    np.testing.assert_allclose([item["lag 1"][0] for item in found], [40.0] * 4 + [april] * 3, rtol=1e-14)


def test_weeks_of_a_month_have_the_same_share_of_noise() -> None:
    """Months, not weeks, build up correlation: the shares are those of monthly stages."""
    weeks = week_stages(13, "2024-01-01")
    recent = past_months([[50.0, 45.0]])
    weekly = inflow_model(seasonal_case(weeks, phi=constant_phi(13, 0.5, 0.3), recent=recent))
    monthly = inflow_model(seasonal_case(month_stages(3), phi=constant_phi(3, 0.5, 0.3), recent=recent))
    month = [stage.start_date.month - 1 for stage in weeks]
    np.testing.assert_allclose(weekly.sigma_m3s[:, 0], monthly.sigma_m3s[month, 0], rtol=1e-14)


def test_quarters_after_months() -> None:
    months = month_stages(3)
    quarters = [
        stage_between(3, day("2024-04-01"), day("2024-07-01"), 13),
        stage_between(4, day("2024-07-01"), day("2024-10-01"), 14),
    ]
    recent = past_months([[30.0, 20.0, 10.0]])
    case = seasonal_case(
        [*months, *quarters],
        seasons=MONTHS_AND_QUARTERS,
        phi=constant_phi(5, 0.4, 0.2),
        recent=recent,
    )
    model = inflow_model(case)
    assert model.lags.names == (
        "lag 1 (month)",
        "lag 2 (month)",
        "lag 1 (quarter)",
        "lag 2 (quarter)",
        "quarter so far",
    )
    found = memories(model, np.array([[1.0], [2.0], [3.0], [4.0], [5.0]]))
    first = (31 * 1.0 + 29 * 2.0 + 31 * 3.0) / 91
    fourth = (31 * 30.0 + 30 * 20.0 + 31 * 10.0) / 92
    assert found[3]["lag 1 (quarter)"][0] == np.float64(first)
    assert abs(found[3]["lag 2 (quarter)"][0] - fourth) < 1e-12
    assert found[4]["lag 1 (quarter)"][0] == 4.0
    assert found[4]["lag 2 (quarter)"][0] == np.float64(first)
    # Months read months, quarters read quarters.
    assert (model.psi[:3, 0, 2:] == 0.0).all()
    assert (model.psi[3:, 0, :2] == 0.0).all()
    # With means of 100 and deviations of 10 everywhere, those of the quarters before are the same.
    np.testing.assert_allclose(model.psi[3, 0, 2:4], [0.4, 0.2], rtol=1e-13)


def test_months_after_a_quarter() -> None:
    """All months of a quarter had its inflow; a quarter that ends in two months is made of three."""
    months = [
        stage_between(1 + n, month_start(2024, 4 + n), month_start(2024, 5 + n), 3 + n) for n in range(4)
    ]
    stages = [
        stage_between(0, day("2024-01-01"), day("2024-04-01"), 12),
        *months,
        stage_between(5, day("2024-08-01"), day("2024-10-01"), 14),
        stage_between(6, day("2024-10-01"), day("2025-01-01"), 15),
    ]
    recent = [(0, "2022-01-01", "2024-01-01", 9.0)]
    case = seasonal_case(stages, seasons=MONTHS_AND_QUARTERS, phi=constant_phi(7, 0.4, 0.2), recent=recent)
    found = memories(inflow_model(case), np.arange(1.0, 8.0)[:, np.newaxis])
    assert [found[1][f"lag {n} (month)"][0] for n in (1, 2)] == [1.0, 1.0]
    assert [found[3][f"lag {n} (month)"][0] for n in (1, 2)] == [3.0, 2.0]
    assert found[1]["lag 1 (quarter)"][0] == 1.0
    second = (30 * 2.0 + 31 * 3.0 + 30 * 4.0) / 91
    third = (31 * 5.0 + 61 * 6.0) / 92
    np.testing.assert_allclose(found[5]["lag 1 (quarter)"][0], second, rtol=1e-14)
    np.testing.assert_allclose(
        [found[6][f"lag {n} (quarter)"][0] for n in (1, 2)], [third, second], rtol=1e-14
    )


def test_weekly_cycle_counts_weeks_from_the_first_stage() -> None:
    start = day("2024-01-06")
    stages = [
        stage_between(
            n, start + datetime.timedelta(days=7 * n), start + datetime.timedelta(days=7 * n + 7), n
        )
        for n in range(4)
    ]
    recent = [(0, "2023-12-30", "2024-01-06", 11.0), (0, "2023-12-23", "2023-12-30", 12.0)]
    model = inflow_model(seasonal_case(stages, seasons=WEEKS, phi=constant_phi(4, 0.4, 0.3), recent=recent))
    assert model.lags.names == ("lag 1", "lag 2")
    found = memories(model, np.array([[1.0], [2.0], [3.0], [4.0]]))
    assert [item["lag 1"][0] for item in found[1:]] == [1.0, 2.0, 3.0, 4.0]
    assert [item["lag 2"][0] for item in found[2:]] == [1.0, 2.0, 3.0]


def test_custom_seasons_shift() -> None:
    """Two halves of the year, the second from October to March."""
    halves = SeasonMap("custom", (Season(0, "wet", 10, 1, 3, 31), Season(1, "dry", 4, 1, 9, 30)))
    stages = [
        stage_between(0, day("2024-04-01"), day("2024-10-01"), 1),
        stage_between(1, day("2024-10-01"), day("2025-04-01"), 0),
        stage_between(2, day("2025-04-01"), day("2025-10-01"), 1),
    ]
    recent = [(0, "2023-10-01", "2024-04-01", 70.0)]
    model = inflow_model(
        seasonal_case(
            stages, seasons=halves, std=[[10.0], [20.0], [10.0]], phi=constant_phi(3, 0.5), recent=recent
        )
    )
    assert model.psi[:, 0, 0].tolist() == [0.25, 1.0, 0.25]
    found = memories(model, np.array([[1.0], [2.0], [3.0]]))
    assert [item["lag 1"][0] for item in found] == [70.0, 1.0, 2.0, 3.0]


def test_a_late_week_counts_for_the_month_it_declares() -> None:
    """The last week lies in May but counts for April; then comes all of May."""
    weeks = week_stages(5, "2026-04-04", season=3)
    stages = [*weeks, stage_between(5, day("2026-05-01"), day("2026-06-01"), 4)]
    recent = [(0, "2026-03-01", "2026-04-04", 50.0)]
    model = inflow_model(seasonal_case(stages, phi=constant_phi(6, 0.5), recent=recent))
    inflow = np.array([[45.0], [55.0], [60.0], [50.0], [65.0], [70.0]])
    found = memories(model, inflow)
    april = (3 * 50 + 7 * (45 + 55 + 60) + 6 * 50) / 30
    np.testing.assert_allclose([item["lag 1"][0] for item in found[:5]], 50.0)
    np.testing.assert_allclose(found[5]["lag 1"][0], april, rtol=1e-14)


def test_pre_study_stages_do_not_move_the_end_of_a_month() -> None:
    stages = week_stages(9, "2024-04-01")
    recent = past_months([[9.0]], first=4)
    plain = inflow_model(seasonal_case(stages, phi=constant_phi(9, 0.5), recent=recent))
    before = pre_study([("2024-02-01", "2024-03-01", 1), ("2024-03-01", "2024-04-01", 2)], [1, 2], [3, 10])
    more = inflow_model(seasonal_case(stages, phi=constant_phi(9, 0.5), recent=recent, before=before))
    assert (plain.lags.carry == more.lags.carry).all()
    assert (plain.lags.gain == more.lags.gain).all()


@given(
    lengths=st.lists(st.integers(1, 45), min_size=2, max_size=30),
    offset=st.integers(0, 400),
    seed=st.integers(0, 99),
    seasons=st.sampled_from([MONTHS, MONTHS_AND_QUARTERS]),
)
@settings(max_examples=60, deadline=None)
def test_means_of_complete_periods(lengths: list[int], offset: int, seed: int, seasons: SeasonMap) -> None:
    """Stages of any length: weights of a period add up to 1, and its mean is that of its days."""
    start = day("2023-01-01") + datetime.timedelta(days=offset)
    stages, at = [], start
    for number, length in enumerate(lengths):
        end = at + datetime.timedelta(days=length)
        stages.append(stage_between(number, at, end, at.month - 1))
        at = end
    day_before = str(start - datetime.timedelta(days=1))
    recent = [(0, "2020-01-01", day_before, 5.0), (0, day_before, str(start), 8.0)]
    case = seasonal_case(stages, seasons=seasons, phi=constant_phi(len(stages), 0.3, 0.2), recent=recent)
    model = inflow_model(case)
    inflow = np.random.default_rng(seed).normal(size=(len(stages), 1))
    daily = {start - datetime.timedelta(days=1): 8.0}
    for stage, value in zip(stages, inflow[:, 0].tolist(), strict=True):
        for count in range((stage.end_date - stage.start_date).days):
            daily[stage.start_date + datetime.timedelta(days=count)] = value
    timeline = study_calendar(seasons, stages).timelines[0]
    totals = timeline.days.sum(axis=0)
    lag_1 = next((name for name in model.lags.names if name.startswith("lag 1")), None)
    if lag_1 is None or not model.lags.needed[0, model.lags.names.index(lag_1)]:
        return
    found = memories(model, inflow)
    read = [stage for stage in range(len(stages)) if model.psi[stage, 0].any()]
    for stage in read:
        period = timeline.lagged(stage, 1)[0]
        days = [period.start + datetime.timedelta(days=n) for n in range(period.days)]
        expected = float(np.mean([daily.get(item, 5.0) for item in days]))
        assert abs(found[stage][lag_1][0] - expected) < 1e-10
    assert (totals <= [period.days for period in timeline.periods]).all()
