"""What makes the water of a plant worth what it is.

The value at the end of a stage is minus the slope of the highest cut at the state that the stage leaves; the
value at its beginning is the dual of the stage's water balance, with the limits of the stage between them.
The state is put together from the simulated tables; where a part of it is in none of them, and cuts depend
on it, the cuts are not ranked.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from cobre.case.model import Case
from cobre.errors import CobreError
from cobre.mcp.explaining.tables import Row, require_rows, rows_of
from cobre.policy import Policy
from cobre.results.reading import Simulation

_LIMITS: Final = {
    1: "storage at (or below) its minimum",
    2: "storage at its maximum",
    3: "storage cannot change",
}
_STATES: Final = {
    0: "out of service, or filling for the first time",
    1: "without capacity",
    3: "turbined flow or generation at its largest",
}
_SLACKS: Final = {
    "turbined_slack_m3s": "turbined flow below its minimum",
    "outflow_slack_below_m3s": "outflow below its minimum",
    "outflow_slack_above_m3s": "outflow above its maximum",
    "generation_slack_mw": "generation below its minimum",
    "storage_violation_below_hm3": "storage below its minimum",
    "filling_target_violation_hm3": "storage below the target of its first filling",
    "inflow_nonnegativity_slack_m3s": "water added where inflow is negative",
}
_TINY: Final = 1e-7
_SAME_VALUE: Final = 1e-4
_SAME: Final = 1e-6
"""Relative difference up to which two future costs are the same, and a cut is as high as the highest."""


def explain(
    simulation: Simulation,
    policy: Policy,
    case: Case | None,
    *,
    hydro: str | int,
    scenario: int,
    stage: int,
    shown: int,
) -> dict[str, Any]:
    """Return what is known about a water value, see :class:`cobre.mcp.tools.explain.WaterExplanation`.

    Parameters
    ----------
    case
        The study, if it is known: which plants release the water that is under way.
    """
    context: dict[str, Any] = {"scenario": scenario, "stage": stage}
    own = simulation["hydros"].to_arrow(entity=hydro, **context).to_pylist()
    rows = sorted(require_rows(own, f"hydro {hydro!r}", context), key=lambda row: int(row["block_id"]))
    first, last = rows[0], rows[-1]
    plant, node = int(first["hydro_id"]), _node(policy, first)
    state, missing = _state(simulation, policy, case, scenario, stage)
    cuts = policy.cuts[node]
    components = {part.key: place for place, part in enumerate(policy.components)}
    own_place = components.get(("storage", plant, 0))
    needed = sorted(place for place in missing if np.any(cuts.slopes[:, place]))
    unknown = []
    if needed:
        names = ", ".join(policy.state_names[place] for place in needed[:5])
        unknown.append(f"The cuts are not ranked: the tables do not hold all of the state ({names}).")
    ranked: list[dict[str, Any]] = []
    cost: float | None = None
    if not needed:
        cost, ranked = _ranked(policy, node, state, own_place)
    factor, simulated = _discount(simulation, scenario, stage)
    found: dict[str, Any] = {
        "hydro": str(first["hydro_name"]),
        "scenario_id": scenario,
        "stage_id": stage,
        "storage_initial_hm3": float(first["storage_initial_hm3"]),
        "storage_final_hm3": float(last["storage_final_hm3"]),
        "value_in_stage": _positive(first["water_value_per_hm3"]),
        "value_after_stage": _value_after(policy, node, ranked, cost, own_place),
        "future_cost": cost,
        "discount_factor": factor,
        "matches_simulation": _matches(simulated, cost, factor),
        "cuts": ranked[:shown],
        "active_cuts": int(cuts.active.sum()),
        "binding": list(_binding(rows)),
        "unknown": unknown,
    }
    return {**found, "statements": list(_statements(found, ranked))}


def _positive(dual: Any) -> float:
    return 0.0 - float(dual)  # not -x, which would make -0.0 of 0.0


def _node(policy: Policy, row: Row) -> int:
    """Return the position of the node of a row."""
    for place, node in enumerate(policy.nodes):
        if node.id == int(row["node_id"]) and node.stage_id == int(row["stage_id"]):
            return place
    raise CobreError(
        "OtherStudy",
        f"the policy has no node {row['node_id']} of stage {row['stage_id']}: it is of another study",
        {"stage": int(row["stage_id"])},
        "give the output that holds both",
    )


def _state(
    simulation: Simulation, policy: Policy, case: Case | None, scenario: int, stage: int
) -> tuple[NDArray[np.float64], list[int]]:
    """Return the state that a stage leaves, 0 where it is unknown, and which components are."""
    known: dict[tuple[str, int, int], float] = {}
    for row in rows_of(simulation, "hydros", scenario=scenario, stage=stage):
        known["storage", int(row["hydro_id"]), 0] = float(row["storage_final_hm3"])
    stages = sorted({int(row["stage_id"]) for row in rows_of(simulation, "paths", scenario=scenario)})
    after = [number for number in stages if number > stage]
    for row in rows_of(simulation, "inflow_lags", scenario=scenario, stage=after[0]) if after else ():
        known["inflow_lag", int(row["hydro_id"]), int(row["lag_index"]) + 1] = float(row["inflow_m3s"])
    above = {} if case is None else _only_releasing(case)
    for row in rows_of(simulation, "in_transit", scenario=scenario, stage=stage):
        if int(row["hydro_id"]) in above:
            key = "in_transit", above[int(row["hydro_id"])], int(row["lag"])
            known[key] = float(row["in_transit_volume_hm3"])
    state = np.zeros(len(policy.components))
    missing = []
    for place, part in enumerate(policy.components):
        if part.key in known:
            state[place] = known[part.key]
        else:
            missing.append(place)
    return state, missing


def _only_releasing(case: Case) -> dict[int, int]:
    """Return the plant whose water is under way to another one, where that is a single plant."""
    sources: dict[int, list[int]] = {}
    for plant in case.hydros:
        if plant.travel_time_hours > 0.0 and plant.downstream_id is not None:
            sources.setdefault(plant.downstream_id, []).append(plant.id)
    return {below: found[0] for below, found in sources.items() if len(found) == 1}


def _ranked(
    policy: Policy, node: int, state: NDArray[np.float64], own: int | None
) -> tuple[float, list[dict[str, Any]]]:
    """Return the future cost at a state, and the active cuts of a node, the highest first."""
    cuts = policy.cuts[node]
    values = cuts.intercept + cuts.slopes @ state
    places = [int(place) for place in np.flatnonzero(cuts.active)]
    places.sort(key=lambda place: (-values[place], int(cuts.slot[place])))
    highest = float(max([policy.nodes[node].future_cost_floor, *values[places]]))
    cost = highest if np.isfinite(highest) else 0.0
    ranked = []
    for place in places:
        slope = 0.0 if own is None else float(cuts.slopes[place, own])
        ranked.append(
            {
                "slot": int(cuts.slot[place]),
                "iteration": int(cuts.iteration[place]),
                "value": float(values[place]),
                "below": cost - float(values[place]),
                "slope": slope,
                "water_value": 0.0 - slope,
            }
        )
    return cost, ranked


def _value_after(
    policy: Policy, node: int, ranked: list[dict[str, Any]], cost: float | None, own: int | None
) -> float | None:
    """Return the worth of water by the highest cut; 0 where the floor of the future cost is above all."""
    if cost is None or own is None:
        return None
    if not ranked or ranked[0]["below"] > _SAME * max(1.0, abs(cost)):
        return 0.0
    return float(ranked[0]["water_value"])


def _discount(simulation: Simulation, scenario: int, stage: int) -> tuple[float | None, float]:
    """Return what discounts the next stage to this one (``None`` in the last), and its future cost."""
    rows = sorted(rows_of(simulation, "costs", scenario=scenario), key=lambda row: int(row["stage_id"]))
    place = next(place for place, row in enumerate(rows) if int(row["stage_id"]) == stage)
    simulated = float(rows[place]["future_cost"])
    if place + 1 == len(rows):
        return None, simulated
    return float(rows[place + 1]["discount_factor"]) / float(rows[place]["discount_factor"]), simulated


def _matches(simulated: float, cost: float | None, factor: float | None) -> bool | None:
    """Return whether a future cost is that of the simulation."""
    if cost is None or factor is None:
        return None
    return abs(factor * cost - simulated) <= _SAME * max(1.0, abs(simulated))


def _binding(rows: list[Row]) -> Iterator[str]:
    last = rows[-1]
    if int(last["storage_binding_code"]) in _LIMITS:
        yield _LIMITS[int(last["storage_binding_code"])]
    states = {int(row["operative_state_code"]) for row in rows}
    for number, text in _STATES.items():
        if number in states:
            yield text if len(states) == 1 else f"{text} (in some blocks)"
    for column, text in _SLACKS.items():
        if any(float(row.get(column) or 0.0) > _TINY for row in rows):
            yield text
    if any(float(row["spillage_m3s"]) > _TINY for row in rows):
        yield "water is spilt"


def _statements(found: dict[str, Any], ranked: list[dict[str, Any]]) -> Iterator[str]:
    after, cost = found["value_after_stage"], found["future_cost"]
    if after is not None:
        same = [cut for cut in ranked if cut["below"] <= _SAME * max(1.0, abs(cost or 0.0))]
        if not same:
            yield "No cut is above the floor of the future cost: water left at the end is worth nothing."
        elif len({cut["water_value"] for cut in same}) == 1:
            cut = same[0]
            made = f"iteration {cut['iteration']}" if cut["iteration"] else "another policy"
            yield f"The highest cut (slot {cut['slot']}, of {made}) values another hm3 left at {after:.6g} $."
        else:
            values = [cut["water_value"] for cut in same]
            yield (
                f"{len(same)} cuts are highest: another hm3 left is worth {min(values):.6g} $, one hm3 less "
                f"costs {max(values):.6g} $."
            )
        yield _in_stage(found, after * (found["discount_factor"] or 1.0))
    elif found["binding"]:
        yield f"The plant is at limits: {', '.join(found['binding'])}."
    if found["matches_simulation"] is False:
        yield "The future cost by the cuts is not that of the simulation: it used another policy."


def _in_stage(found: dict[str, Any], discounted: float) -> str:
    """Return how the value at the beginning of the stage follows from that at its end."""
    inside, factor = found["value_in_stage"], found["discount_factor"]
    money = "" if factor in (None, 1.0) else f", discounted by {factor:.6g} to the stage"
    text = f"At the beginning of the stage another hm3 is worth {inside:.6g} $"
    if abs(inside - discounted) <= _SAME_VALUE * max(1.0, abs(discounted)):
        return f"{text}: what it is worth at its end{money}."
    limits = f" ({', '.join(found['binding'])})" if found["binding"] else ""
    return (
        f"{text}, at its end {discounted:.6g} ${money}: limits of the stage{limits}, other plants, or the "
        "change from one cut to another make the difference."
    )
