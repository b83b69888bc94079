"""Small studies put together from the model's dataclasses: only what the opening tree looks at matters."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from cobre.case.model import (
    Block,
    Bus,
    Case,
    DeficitSegment,
    Hydro,
    InflowMethod,
    Stage,
    TrainingOptions,
)
from cobre.case.model.horizon import chain_graph
from cobre.case.model.uniform import constant_production, scenarios, stage_data


def make_hydro(id: int) -> Hydro:
    return Hydro(id=id, name=f"hydro {id}", downstream_id=None, unit_groups=(), initial_storage_hm3=50.0)


def make_bus(id: int) -> Bus:
    return Bus(id=id, name=f"bus {id}", deficit_segments=(DeficitSegment(None, 1000.0),))


def make_stage(
    id: int, num_openings: int, season_id: int | None = None, year: int = 2024, month: int = 1
) -> Stage:
    start = datetime.date(year, month, 1)
    return Stage(
        id=id,
        start_date=start,
        end_date=start + datetime.timedelta(days=28),
        season_id=season_id,
        blocks=(Block(0, "all", 672.0),),
        num_openings=num_openings,
        discount_factor=1.0,
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
) -> Case:
    """Build a study; statistics broadcast to (stage, entity)."""

    def table(value: object, width: int) -> np.ndarray:
        return np.array(np.broadcast_to(np.asarray(value, dtype=np.float64), (len(stages), width)))

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
        buses=tuple(make_bus(id) for id in bus_ids),
        lines=(),
        thermals=(),
        graph=chain_graph(len(stages)),
        hydros=tuple(make_hydro(id) for id in hydro_ids),
        stage_data=(stage_data(1, hydros=len(hydro_ids), groups=0, buses=len(bus_ids)),) * len(stages),
        production=constant_production(len(stages), [1.0] * len(hydro_ids)),
        scenarios=scenarios(
            inflow_mean_m3s=table(inflow_mean, len(hydro_ids)),
            inflow_std_m3s=table(inflow_std, len(hydro_ids)),
            load_mean_mw=table(load_mean, len(bus_ids)),
            load_std_mw=table(load_std, len(bus_ids)),
        ),
        evaporation=((None,) * len(hydro_ids),) * len(stages),
        generic=((),) * len(stages),
    )
