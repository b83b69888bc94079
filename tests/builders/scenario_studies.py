"""Studies put together from the model's dataclasses of which uncertainty alone matters."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cobre.case.model import (
    AnnualComponent,
    Block,
    Bus,
    Case,
    DeficitSegment,
    Hydro,
    InflowHistory,
    InflowMethod,
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


def stage_between(
    id: int, start: datetime.date, end: datetime.date, season: int | None, num_openings: int = 1
) -> Stage:
    return Stage(
        id=id,
        start_date=start,
        end_date=end,
        season_id=season,
        blocks=(Block(0, "all", 24.0 * (end - start).days),),
        num_openings=num_openings,
        discount_factor=1.0,
    )


def make_stage(
    id: int, num_openings: int, season_id: int | None = None, year: int = 2024, month: int = 1
) -> Stage:
    """Return a stage of 28 days from the first of a month."""
    start = datetime.date(year, month, 1)
    return stage_between(id, start, start + datetime.timedelta(days=28), season_id, num_openings)


def month_stages(count: int, year: int = 2024, first: int = 1) -> list[Stage]:
    return [
        stage_between(n, month_start(year, first + n), month_start(year, first + n + 1), (first + n - 1) % 12)
        for n in range(count)
    ]


def week_stages(count: int, start: str, season: int | None = None) -> list[Stage]:
    """Return weeks from ``start``; each has the month of its first day as season unless given."""
    stages = []
    for n in range(count):
        begin = day(start) + datetime.timedelta(days=7 * n)
        month = begin.month - 1 if season is None else season
        stages.append(stage_between(n, begin, begin + datetime.timedelta(days=7), month))
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
    hydro_ids: Sequence[int] = (0,),
    bus_ids: Sequence[int] = (0,),
    inflow_mean: object = 100.0,
    inflow_std: object = 10.0,
    load_mean: object = 50.0,
    load_std: object = 0.0,
    inflow_method: InflowMethod = "penalty",
    tree_seed: int = 42,
    seasons: SeasonMap | None = None,
    phi: NDArray[np.float64] | None = None,
    annual: AnnualComponent | None = None,
    recent: Sequence[Window] = (),
    history: InflowHistory | None = None,
    before: PreStudyStats | None = None,
    has_stats: bool = True,
) -> Case:
    """Return a study; statistics broadcast to (stage, entity)."""

    def table(value: object, width: int) -> NDArray[np.float64]:
        return np.array(np.broadcast_to(np.asarray(value, np.float64), (len(stages), width)))

    plain = scenarios(
        inflow_mean_m3s=table(inflow_mean, len(hydro_ids)),
        inflow_std_m3s=table(inflow_std, len(hydro_ids)),
        load_mean_mw=table(load_mean, len(bus_ids)),
        load_std_mw=table(load_std, len(bus_ids)),
    )
    return Case(
        path=Path("small"),
        training=TrainingOptions(
            tree_seed=tree_seed,
            forward_passes=1,
            iteration_limit=1,
            inflow_method=inflow_method,
            cost_scale_factor=None,
        ),
        stages=tuple(stages),
        buses=tuple(Bus(id, f"bus {id}", (DeficitSegment(None, 1000.0),)) for id in bus_ids),
        lines=(),
        thermals=(),
        graph=chain_graph(len(stages)),
        hydros=tuple(
            Hydro(id=id, name=f"H{id}", downstream_id=None, unit_groups=(), initial_storage_hm3=0.0)
            for id in hydro_ids
        ),
        stage_data=(stage_data(1, hydros=len(hydro_ids), groups=0, buses=len(bus_ids)),) * len(stages),
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


def seasonal_case(
    stages: Sequence[Stage],
    *,
    seasons: SeasonMap | None = MONTHS,
    mean: object = 100.0,
    std: object = 10.0,
    **more: Any,
) -> Case:
    """Return a study of inflows with seasons and without load."""
    return make_case(stages, bus_ids=(), seasons=seasons, inflow_mean=mean, inflow_std=std, **more)


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
