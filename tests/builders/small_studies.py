"""Studies of one or two plants whose stage LPs can be solved by hand."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cobre.case.model import (
    Block,
    Bus,
    Case,
    DeficitSegment,
    Hydro,
    ProductionModel,
    Stage,
    Thermal,
    TrainingOptions,
    UnitGroup,
)
from cobre.case.model.horizon import chain_graph
from cobre.case.model.uniform import constant_production, scenarios, stage_data
from cobre.lp import StageTemplate, StateLayout, build_templates
from cobre.lp.highs import HighsModel
from cobre.stochastic import build_opening_tree

HOURS = 1.0 / 0.0036
"""Hours in which 1 m3/s carries 1 hm3, so that flows and volumes have equal numbers."""

DEFICIT = 1000.0


def plant(number: int = 0, **changes: Any) -> Hydro:
    values = {
        "id": number,
        "name": f"plant {number}",
        "downstream_id": None,
        "unit_groups": (UnitGroup(0, "units", 0),),
        "initial_storage_hm3": 0.0,
    }
    return Hydro(**(values | changes))


def planes(*rows: Sequence[float]) -> ProductionModel:
    return ProductionModel("fpha", 1.0, np.array(rows))


def small_study(
    *,
    hours: Sequence[Sequence[float]] = ((HOURS,),),
    mode: str = "parallel",
    buses: int = 1,
    hydros: Sequence[Hydro] = (),
    thermals: Sequence[Thermal] = (),
    load: float | Sequence[Any] = 0.0,
    inflow: float | Sequence[Any] = 0.0,
    data: Sequence[dict[str, Any]] | dict[str, Any] | None = None,
    method: str = "none",
    iterations: int = 20,
    scenario: dict[str, Any] | None = None,
    **parts: Any,
) -> Case:
    """A study without noise; ``hours`` by stage and block, ``data`` for all stages or by stage.

    Turbines take 100 m3/s at 1 MW per m3/s, reservoirs hold 1000 hm3 and deficit costs 1000 $/MWh unless
    something else is said.
    """
    count, start = len(hours), datetime.date(2024, 1, 1)
    groups = sum(len(hydro.unit_groups) for hydro in hydros)
    defaults = {
        "storage_max_hm3": 1000.0,
        "turbined_max_m3s": 100.0,
        "generation_max_mw": 100.0,
        "group_turbined_max_m3s": 100.0,
        "group_generation_max_mw": 100.0,
        "thermal_max_mw": 100.0,
    }
    by_stage = [data or {}] * count if data is None or isinstance(data, dict) else data
    sizes = {
        "hydros": len(hydros),
        "groups": groups,
        "thermals": len(thermals),
        "buses": buses,
        "lines": len(parts.get("lines", ())),
        "ncs": len(parts.get("non_controllables", ())),
        "pumps": len(parts.get("pumping_stations", ())),
        "contracts": len(parts.get("contracts", ())),
    }
    parts.setdefault("production", constant_production(count, [1.0] * len(hydros)))
    parts.setdefault("evaporation", ((None,) * len(hydros),) * count)
    parts.setdefault("generic", ((),) * count)
    inflows = np.broadcast_to(np.asarray(inflow, float), (count, len(hydros))).copy()
    loads = np.broadcast_to(np.asarray(load, float), (count, buses)).copy()
    shares = np.zeros((count, sizes["ncs"]))
    without_stats = {"ncs_mean": shares, "ncs_std": shares, "ncs_has_stats": np.zeros(sizes["ncs"], bool)}
    return Case(
        path=Path("small"),
        training=TrainingOptions(42, 1, iterations, method, None),  # type: ignore[arg-type]
        stages=tuple(
            Stage(
                id=t,
                start_date=start + datetime.timedelta(days=30 * t),
                end_date=start + datetime.timedelta(days=30 * (t + 1)),
                season_id=None,
                blocks=tuple(Block(k, f"b{k}", length) for k, length in enumerate(blocks)),
                num_openings=1,
                discount_factor=1.0,
                block_mode=mode,  # type: ignore[arg-type]
            )
            for t, blocks in enumerate(hours)
        ),
        graph=chain_graph(count),
        buses=tuple(Bus(b, f"bus {b}", (DeficitSegment(None, DEFICIT),)) for b in range(buses)),
        lines=parts.pop("lines", ()),
        thermals=tuple(thermals),
        hydros=tuple(hydros),
        stage_data=tuple(
            stage_data(len(blocks), **sizes, **(defaults | values))
            for blocks, values in zip(hours, by_stage, strict=True)
        ),
        scenarios=scenarios(
            inflow_mean_m3s=inflows,
            inflow_std_m3s=np.zeros_like(inflows),
            load_mean_mw=loads,
            load_std_mw=np.zeros_like(loads),
            **(without_stats | (scenario or {})),
        ),
        **parts,
    )


def template_of(case: Case, stage: int = 0) -> StageTemplate:
    return build_templates(case, build_opening_tree(case))[stage]


def solve(
    case: Case, stage: int = 0, state: Sequence[float] | None = None, opening: int = 0
) -> tuple[float, dict[str, float]]:
    """Solve one stage without cuts: its cost ($) and the value of every column."""
    template = template_of(case, stage)
    incoming = StateLayout(case).initial if state is None else np.array(state, float)
    with HighsModel(template) as model:
        rhs = template.rhs(opening, incoming)
        model.set_row_bounds(0, rhs, rhs)
        assert model.solve() == "optimal"
        values = model.column_values(template.num_cols, template.num_rows)
        cost = model.objective() * template.cost_scale
    return cost, dict(zip(template.col_names, values.tolist(), strict=True))
