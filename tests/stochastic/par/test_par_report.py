"""Fit quality on calendars other than one month a stage."""

import datetime

import numpy as np
from builders.scenario_studies import (
    MONTHS_AND_QUARTERS,
    month_stages,
    past_months,
    seasonal_case,
    stage_between,
)
from test_par_estimation import as_history, simulate

from cobre.case.model import Season, SeasonMap
from cobre.stochastic.report.document import stochastic_report

HISTORY = as_history(simulate(2, 60, 1, mix=0.5), 1964)
RECENT = past_months([[100.0 + n for n in range(13)]] * 2)


def largest(values: np.ndarray) -> float:
    return float(np.nanmax(np.abs(values)))


def test_months_and_quarters_are_compared_each_at_its_own_length() -> None:
    stages = [
        *month_stages(3),
        stage_between(3, datetime.date(2024, 4, 1), datetime.date(2024, 7, 1), 13),
        stage_between(4, datetime.date(2024, 7, 1), datetime.date(2024, 10, 1), 14),
    ]
    case = seasonal_case(
        stages,
        hydro_ids=range(2),
        mean=0.0,
        std=0.0,
        history=HISTORY,
        recent=RECENT,
        has_stats=False,
        seasons=MONTHS_AND_QUARTERS,
    )
    quality = stochastic_report(case).quality
    sample = quality.generated
    assert sample.kind == "season cycle"
    assert sample.season_id.tolist() == [*range(12), 13, 14, 15, 12]
    assert sample.stage.tolist() == [0, 1, 2, *[-1] * 9, 3, 4, -1, -1]
    deviation = quality.deviations()
    assert largest(deviation["mean"]) < 0.02
    assert largest(deviation["std"]) < 0.06
    assert largest(deviation["lag1"]) < 0.06
    # A quarter varies less than its months do.
    assert (quality.observed_std_m3s[12] < quality.observed_std_m3s[3:6].max(axis=0)).all()


def test_weeks_in_monthly_seasons_have_the_model_of_a_month() -> None:
    first = datetime.date(2024, 1, 6)
    starts = [first + datetime.timedelta(days=7 * week) for week in range(8)]
    stages = [
        stage_between(number, start, start + datetime.timedelta(days=7), start.month - 1)
        for number, start in enumerate(starts)
    ]
    case = seasonal_case(
        stages, hydro_ids=range(2), mean=0.0, std=0.0, history=HISTORY, recent=RECENT, has_stats=False
    )
    quality = stochastic_report(case).quality
    assert quality.generated.season_id.tolist() == list(range(12))
    assert quality.generated.stage.tolist() == [3, 7, *[-1] * 10]
    assert largest(quality.deviations()["lag1"]) < 0.06


def test_a_year_of_weeks() -> None:
    weeks = SeasonMap("weekly", tuple(Season(week, f"week {week}", 1) for week in range(52)))
    first = datetime.date(2024, 1, 1)
    starts = [first + datetime.timedelta(days=7 * week) for week in range(104)]
    stages = [
        stage_between(number, start, start + datetime.timedelta(days=7), min(start.isocalendar()[1] - 1, 51))
        for number, start in enumerate(starts)
    ]
    case = seasonal_case(stages, hydro_ids=(3,), mean=50.0, std=5.0, seasons=weeks)
    quality = stochastic_report(case).quality
    assert quality.generated.season_id.tolist() == list(range(52))
    assert largest(quality.generated.lag1) < 4.0 / np.sqrt(5000)
    assert largest(quality.deviations()["std"]) < 4.0 / np.sqrt(2 * 5000)
