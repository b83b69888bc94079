"""Studies with inflow models, put together from the model's dataclasses."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cobre.case.model import (
    AnnualComponent,
    Block,
    Case,
    Hydro,
    InflowHistory,
    PreStudyStats,
    Season,
    SeasonMap,
    Stage,
    TrainingOptions,
)
from cobre.case.model.horizon import chain_graph
from cobre.case.model.uniform import constant_production, scenarios, stage_data
from cobre.stochastic.par import InflowModel

Window = tuple[int, str, str, float]
"""Position of a hydro, first day, first day after, mean inflow."""

MONTHS = SeasonMap("monthly", tuple(Season(n, f"M{n + 1}", n + 1) for n in range(12)))
WEEKS = SeasonMap("weekly", tuple(Season(n, f"W{n + 1}", 1) for n in range(52)))
LAST_DAY = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
MONTHS_AND_QUARTERS = SeasonMap(
    "custom",
    (
        *(Season(n, f"M{n + 1}", n + 1, 1, n + 1, LAST_DAY[n]) for n in range(12)),
        *(Season(12 + q, f"Q{q + 1}", 3 * q + 1, 1, 3 * q + 3, LAST_DAY[3 * q + 2]) for q in range(4)),
    ),
)


def day(text: str) -> datetime.date:
    return datetime.date.fromisoformat(text)


def month_start(year: int, number: int) -> datetime.date:
    """Return the first day of the month ``number`` after December of the year before; it may run over."""
    return datetime.date(year + (number - 1) // 12, (number - 1) % 12 + 1, 1)


def make_stage(id: int, start: datetime.date, end: datetime.date, season: int | None) -> Stage:
    hours = 24.0 * (end - start).days
    return Stage(
        id=id,
        start_date=start,
        end_date=end,
        season_id=season,
        blocks=(Block(0, "all", hours),),
        num_openings=1,
        discount_factor=1.0,
    )


def month_stages(count: int, year: int = 2024, first: int = 1) -> list[Stage]:
    return [
        make_stage(n, month_start(year, first + n), month_start(year, first + n + 1), (first + n - 1) % 12)
        for n in range(count)
    ]


def week_stages(count: int, start: str, season: int | None = None) -> list[Stage]:
    """Return weeks from ``start``; each has the month of its first day as season unless given."""
    stages = []
    for n in range(count):
        begin = day(start) + datetime.timedelta(days=7 * n)
        month = begin.month - 1 if season is None else season
        stages.append(make_stage(n, begin, begin + datetime.timedelta(days=7), month))
    return stages


def windows(rows: Sequence[Window]) -> InflowHistory | None:
    if not rows:
        return None
    rows = sorted(rows, key=lambda row: (row[0], row[1]))
    return InflowHistory(
        np.array([row[0] for row in rows], np.int64),
        np.array([row[1] for row in rows], "datetime64[D]"),
        np.array([row[2] for row in rows], "datetime64[D]"),
        np.array([row[3] for row in rows], np.float64),
    )


def past_months(values: Sequence[Sequence[float]], year: int = 2024, first: int = 1) -> list[Window]:
    """Return windows of the months before the study, the latest first, for each hydro."""
    return [
        (hydro, str(month_start(year, first - n)), str(month_start(year, first - n + 1)), value)
        for hydro, series in enumerate(values)
        for n, value in enumerate(series, start=1)
    ]


def pre_study(
    stages: Sequence[tuple[str, str, int]], mean: Sequence[float], std: Sequence[float], hydros: int = 1
) -> PreStudyStats:
    count = len(stages)
    return PreStudyStats(
        np.arange(-count, 0, dtype=np.int64),
        np.array([stage[0] for stage in stages], "datetime64[D]"),
        np.array([stage[1] for stage in stages], "datetime64[D]"),
        np.array([stage[2] for stage in stages], np.int64),
        np.repeat(np.array(mean, np.float64)[:, np.newaxis], hydros, axis=1),
        np.repeat(np.array(std, np.float64)[:, np.newaxis], hydros, axis=1),
        np.ones((count, hydros), np.bool_),
    )


def make_case(
    stages: Sequence[Stage],
    *,
    seasons: SeasonMap | None = MONTHS,
    hydro_ids: Sequence[int] = (0,),
    mean: object = 100.0,
    std: object = 10.0,
    phi: NDArray[np.float64] | None = None,
    annual: AnnualComponent | None = None,
    recent: Sequence[Window] = (),
    history: InflowHistory | None = None,
    before: PreStudyStats | None = None,
    has_stats: bool = True,
) -> Case:
    shape = (len(stages), len(hydro_ids))

    def table(value: object) -> NDArray[np.float64]:
        return np.array(np.broadcast_to(np.asarray(value, np.float64), shape))

    none = np.zeros((len(stages), 0))
    plain = scenarios(
        inflow_mean_m3s=table(mean), inflow_std_m3s=table(std), load_mean_mw=none, load_std_mw=none
    )
    return Case(
        path=Path("small"),
        training=TrainingOptions(42, 1, 1, "penalty", None),
        stages=tuple(stages),
        buses=(),
        lines=(),
        thermals=(),
        graph=chain_graph(len(stages)),
        hydros=tuple(
            Hydro(id=id, name=f"H{id}", downstream_id=None, unit_groups=(), initial_storage_hm3=0.0)
            for id in hydro_ids
        ),
        stage_data=(stage_data(1, hydros=len(hydro_ids), groups=0, buses=0),) * len(stages),
        production=constant_production(len(stages), [1.0] * len(hydro_ids)),
        scenarios=replace(
            plain,
            has_inflow_stats=has_stats,
            ar_coefficients=phi,
            annual=annual,
            inflow_history=history,
            recent_observations=windows(recent),
            pre_study=before,
        ),
        evaporation=((None,) * len(hydro_ids),) * len(stages),
        generic=((),) * len(stages),
        seasons=seasons,
    )


def constant_phi(stages: int, *coefficients: float, hydros: int = 1) -> NDArray[np.float64]:
    return np.tile(np.array(coefficients, np.float64), (stages, hydros, 1))


def memories(model: InflowModel, inflow: NDArray[np.float64]) -> list[dict[str, NDArray[np.float64]]]:
    """Return what plants remember before each stage and at the end, by the names of components."""
    memory = model.lags.initial.copy()
    found = []
    for stage in range(len(inflow) + 1):
        found.append(dict(zip(model.lags.names, memory.T.copy(), strict=True)))
        if stage < len(inflow):
            memory = memory @ model.lags.carry[stage].T + np.outer(inflow[stage], model.lags.gain[stage])
    return found
