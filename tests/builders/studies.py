"""Studies of any size put together from the model's dataclasses, without files."""

from __future__ import annotations

import datetime
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from cobre.case.model import (
    Block,
    Bus,
    Case,
    DeficitSegment,
    Hydro,
    InflowHistory,
    Line,
    PolicyGraph,
    PolicyNode,
    Stage,
    Thermal,
    TrainingOptions,
    Transition,
    UnitGroup,
)
from cobre.case.model.horizon import chain_graph
from cobre.case.model.uniform import constant_production, scenarios, stage_data

PENALTIES = {
    "spillage": 0.01,
    "storage_violation_below": 1.0e4,
    "turbined_violation_below": 1.0e3,
    "outflow_violation_below": 1.0e3,
    "outflow_violation_above": 1.0e3,
    "generation_violation_below": 1.0e3,
    "inflow_nonnegativity": 1.0e3,
}


def cascade_study(
    *,
    hydros: int = 4,
    thermals: int = 4,
    buses: int = 2,
    stages: int = 4,
    blocks: int = 2,
    openings: int = 3,
    passes: int = 4,
    iterations: int = 5,
    noise: float = 0.4,
    seed: int = 0,
) -> Case:
    """Cascades of three plants, a ring of buses, thermals with equal costs (so that LPs are degenerate)."""
    random = np.random.default_rng(seed)
    start = datetime.date(2024, 1, 1)
    month = datetime.timedelta(days=30)
    inflow = np.tile(random.uniform(20.0, 60.0, hydros), (stages, 1))
    load = np.full((stages, buses), (30.0 * hydros + 12.0 * thermals) / buses)
    return Case(
        path=Path(tempfile.gettempdir()) / "cascade-study",  # where LPs that fail are written
        training=TrainingOptions(
            tree_seed=42,
            forward_passes=passes,
            iteration_limit=iterations,
            inflow_method="truncation_with_penalty",
            cost_scale_factor=None,
        ),
        stages=tuple(
            Stage(
                id=t,
                start_date=start + t * month,
                end_date=start + (t + 1) * month,
                season_id=None,
                blocks=tuple(Block(k, f"block {k}", 720.0 / blocks) for k in range(blocks)),
                num_openings=openings,
                discount_factor=0.99,
            )
            for t in range(stages)
        ),
        graph=chain_graph(stages),
        buses=tuple(
            Bus(b, f"bus {b}", (DeficitSegment(50.0, 500.0), DeficitSegment(None, 3000.0)))
            for b in range(buses)
        ),
        lines=tuple(Line(b, f"line {b}", b, (b + 1) % buses) for b in range(buses) if buses > 1),
        thermals=tuple(Thermal(i, f"thermal {i}", i % buses) for i in range(thermals)),
        hydros=tuple(_plant(h, hydros, buses) for h in range(hydros)),
        stage_data=(
            stage_data(
                blocks,
                hydros=hydros,
                thermals=thermals,
                lines=buses if buses > 1 else 0,
                buses=buses,
                thermal_max_mw=30.0,
                thermal_cost=[10.0 * (1 + i // 3) for i in range(thermals)],
                storage_min_hm3=10.0,
                storage_max_hm3=400.0,
                outflow_min_m3s=5.0,
                turbined_max_m3s=80.0,
                generation_max_mw=60.0,
                group_turbined_max_m3s=80.0,
                group_generation_max_mw=60.0,
                line_direct_mw=60.0,
                line_reverse_mw=60.0,
                exchange_cost=0.05,
                excess_cost=0.01,
                load_factor=np.linspace(1.1, 0.9, blocks)[None, :],
                penalties=PENALTIES,
            ),
        )
        * stages,
        production=constant_production(stages, [0.8] * hydros),
        scenarios=scenarios(
            inflow_mean_m3s=inflow,
            inflow_std_m3s=noise * inflow,
            load_mean_mw=load,
            load_std_mw=np.zeros_like(load),
        ),
        evaporation=((None,) * hydros,) * stages,
        generic=((),) * stages,
    )


def _plant(position: int, hydros: int, buses: int) -> Hydro:
    has_downstream = (position + 1) % 3 != 0 and position + 1 < hydros
    return Hydro(
        id=position,
        name=f"plant {position}",
        downstream_id=position + 1 if has_downstream else None,
        unit_groups=(UnitGroup(0, "units", position % buses),),
        initial_storage_hm3=200.0,
    )


def with_training(case: Case, **changes: Any) -> Case:
    """Return the case with other training options."""
    return replace(case, training=replace(case.training, **changes))


def dry_study() -> Case:
    """One reservoir that a negative inflow of the second stage cannot be taken from: infeasible there."""
    case = cascade_study(hydros=1, thermals=1, buses=1, stages=2, blocks=1, openings=1, passes=1, noise=0.0)
    inflow = case.scenarios.inflow_mean_m3s.copy()
    inflow[1, 0] = -500.0
    changed = replace(case, scenarios=replace(case.scenarios, inflow_mean_m3s=inflow))
    return with_training(changed, inflow_method="none")


def dry_and_wet(stages: int = 3, persistence: float = 0.75) -> Case:
    """A Markov chain: after the first stage each stage is dry or wet, and likely to stay so."""
    case = cascade_study(
        hydros=2, thermals=2, buses=1, stages=stages, blocks=1, openings=2, passes=3, iterations=40
    )
    nodes = [PolicyNode(0, 0)]
    nodes += [PolicyNode(10 * stage + kind, stage, kind) for stage in range(1, stages) for kind in (0, 1)]
    edges = [Transition(0, 1, 0.5), Transition(0, 2, 0.5)]
    for stage in range(1, stages - 1):
        for kind in (0, 1):
            source = 2 * stage - 1 + kind
            for other in (0, 1):
                target = 2 * stage + 1 + other
                probability = persistence if other == kind else 1.0 - persistence
                edges.append(Transition(source, target, probability))
    mean = case.scenarios.inflow_mean_m3s
    library = tuple(np.array([0.4 * mean[t], 1.5 * mean[t]]) for t in range(stages))
    scenarios = replace(case.scenarios, external_inflow_m3s=library)
    return replace(case, graph=PolicyGraph(tuple(nodes), tuple(edges)), scenarios=scenarios)


def persistent(
    method: str, noise: float, phi: tuple[float, ...] = (0.7, -0.2), cuts: str = "tangent", **options: int
) -> Case:
    """Two plants whose inflows depend on those of the last two stages."""
    case = cascade_study(
        hydros=2, thermals=2, buses=1, blocks=1, noise=noise, **({"stages": 4, "openings": 3} | options)
    )
    shape = case.scenarios.inflow_mean_m3s.shape
    start = np.datetime64(case.stages[0].start_date)
    window = np.timedelta64(datetime.timedelta(days=30))
    before = np.tile([start - 2 * window, start - window], 2)
    observed = InflowHistory(
        np.array([0, 0, 1, 1]), before, before + window, np.array([15.0, 25.0, 30.0, 10.0])
    )
    scenarios = replace(
        case.scenarios,
        load_mean_mw=1.6 * case.scenarios.load_mean_mw,
        ar_coefficients=np.broadcast_to(np.array(phi), (*shape, len(phi))).copy(),
        recent_observations=observed,
    )
    return with_training(replace(case, scenarios=scenarios), inflow_method=method, truncation_cuts=cuts)
