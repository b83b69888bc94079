"""Generic constraints: any linear row over the variables of a stage.

A term names a variable and a block; what the LP does not have (a plant out of service, a decision that no
delivery needs) counts 0. ``hydro_outflow`` is turbined + spilt flow, without diversion. A useful volume is
the storage above the stage's minimum, a withdrawal the scheduled one corrected by its slacks; their
constants move to the limits of the row. A block variable without a block is summed over the blocks, the
evaporation of a chronological stage averaged over its hours.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from cobre.case.model import GenericRow, GenericTerm
from cobre.lp.index import IdArray, unique_labels
from cobre.lp.stage.context import StageContext
from cobre.lp.stage.plants import has_planes

Part = tuple[IdArray, float]
"""Columns (any shape) with a common coefficient."""
Expression = tuple[list[Part], float]
"""Parts, and a constant."""
Resolver = Callable[[StageContext, GenericTerm, int], Expression]


def add_generic_rows(stage: StageContext) -> None:
    """Add the rows of this stage, with slacks where they have a penalty."""
    rows = stage.case.generic[stage.position]
    if not rows:
        return
    lp = stage.lp
    _add_inflow_columns(stage, rows)
    names = [
        row.name if row.block is None else f"{row.name}, {stage.block_labels[row.block]}" for row in rows
    ]
    labels = unique_labels(names, [f"{row.constraint_id}.{number}" for number, row in enumerate(rows)])
    resolved = [[(term.coefficient, _resolve(stage, term)) for term in row.terms] for row in rows]
    constant = np.array([sum(factor * part[1] for factor, part in terms) for terms in resolved])
    lower = np.array([row.lower for row in rows]) - constant
    upper = np.array([row.upper for row in rows]) - constant
    ids = lp.add_rows("generic", (labels,), lower=lower, upper=upper)
    entries = [
        (row, np.ravel(columns), factor * coefficient)
        for row, terms in zip(ids, resolved, strict=True)
        for factor, (parts, _) in terms
        for columns, coefficient in parts
    ]
    if entries:  # at once: there may be many, of few columns each
        count = [len(columns) for _, columns, _ in entries]
        lp.put(
            np.repeat([row for row, _, _ in entries], count),
            np.concatenate([columns for _, columns, _ in entries]),
            np.repeat([value for _, _, value in entries], count),
        )
    hours = np.array([stage.stage.hours if row.block is None else stage.hours[row.block] for row in rows])
    price = hours * np.array([0.0 if row.penalty is None else row.penalty for row in rows])
    priced = np.array([row.penalty is not None for row in rows], bool)
    for side, limit, sign in (("below", lower, 1.0), ("above", upper, -1.0)):
        slack = lp.add_columns(f"generic_{side}", (labels,), where=priced & np.isfinite(limit), cost=price)
        lp.put(ids, slack, sign)


def _add_inflow_columns(stage: StageContext, rows: tuple[GenericRow, ...]) -> None:
    """Make natural inflow a column where a row contains it."""
    place = stage.topology.place["hydro"]
    used = np.zeros(len(place), bool)
    for row in rows:
        for term in row.terms:
            if term.kind == "hydro_inflow":
                used[place[term.entity_id]] = True
    labels = (stage.topology.hydro_labels,)
    inflow = stage.lp.add_columns("hydro_inflow", labels, where=used, lower=-np.inf)
    equal = stage.lp.add_equations("hydro_inflow", labels, where=used)
    stage.lp.put(equal, inflow, 1.0)
    stage.lp.put_noise(equal, stage.noise.hydro, 1.0)


def _resolve(stage: StageContext, term: GenericTerm) -> Expression:
    entity_class, resolver = _RESOLVERS[term.kind]
    return resolver(stage, term, stage.topology.place[entity_class][term.entity_id])


def _in_block(ids: IdArray, term: GenericTerm) -> IdArray:
    """Return the columns of the term's block, or of all blocks (the last axis)."""
    return ids if term.block is None else ids[..., term.block]


def _family(kind: str, factor: float = 1.0) -> Resolver:
    """A family by (entity, ..., block)."""

    def resolve(stage: StageContext, term: GenericTerm, place: int) -> Expression:
        return [(_in_block(stage.lp.columns[kind][place], term), factor)], 0.0

    return resolve


def _difference(plus: str, minus: str) -> Resolver:
    def resolve(stage: StageContext, term: GenericTerm, place: int) -> Expression:
        added, taken = (_in_block(stage.lp.columns[kind][place], term) for kind in (plus, minus))
        return [(added, 1.0), (taken, -1.0)], 0.0

    return resolve


def _final_storage(stage: StageContext, term: GenericTerm, place: int) -> Expression:
    ends = stage.storage_after[place]
    block = term.block if stage.chronological and term.block is not None else -1
    return [(ends[block], 1.0)], 0.0


def _initial_storage(stage: StageContext, term: GenericTerm, place: int) -> Expression:
    begins = stage.storage_before[place]
    block = term.block if stage.chronological and term.block is not None else 0
    return [(begins[block], 1.0)], 0.0


def _useful(storage: Resolver) -> Resolver:
    def resolve(stage: StageContext, term: GenericTerm, place: int) -> Expression:
        parts, _ = storage(stage, term, place)
        return parts, -float(stage.data.storage_min_hm3[place])

    return resolve


def _groups(stage: StageContext, term: GenericTerm, place: int) -> NDArray[np.int64]:
    topology = stage.topology
    first, end = np.searchsorted(topology.group_hydro, (place, place + 1))
    groups: NDArray[np.int64] = np.arange(first, end)
    if term.bus_id is None:
        return groups
    on_bus = topology.group_bus[first:end] == topology.place["bus"][term.bus_id]
    return np.asarray(groups[on_bus])


def _turbined(stage: StageContext, term: GenericTerm, place: int) -> Expression:
    groups = _groups(stage, term, place)
    return [(_in_block(stage.lp.columns["hydro_turbined"][groups], term), 1.0)], 0.0


def _generation(stage: StageContext, term: GenericTerm, place: int) -> Expression:
    groups = _groups(stage, term, place)
    model = stage.case.production[stage.position][place]
    if has_planes(model):
        return [(_in_block(stage.lp.columns["hydro_generation"][groups], term), 1.0)], 0.0
    columns = _in_block(stage.lp.columns["hydro_turbined"][groups], term)
    return [(columns, model.productivity_mw_per_m3s)], 0.0


def _outflow(stage: StageContext, term: GenericTerm, place: int) -> Expression:
    parts, _ = _turbined(stage, term, place)
    spilt = _in_block(stage.lp.columns["hydro_spillage"][place], term)
    return [*parts, (spilt, 1.0)], 0.0


def _evaporation(stage: StageContext, term: GenericTerm, place: int) -> Expression:
    columns = stage.ids_by_period(stage.lp.columns["hydro_evaporation"])[place]
    if not stage.chronological:
        return [(columns, 1.0)], 0.0
    if term.block is not None:
        return [(columns[term.block], 1.0)], 0.0
    weights = stage.period_hours / stage.stage.hours
    return [(columns[p], float(weight)) for p, weight in enumerate(weights)], 0.0


def _withdrawal(stage: StageContext, term: GenericTerm, place: int) -> Expression:
    scheduled = float(stage.data.withdrawal_m3s[place]) if stage.dammed[place] else 0.0
    less, more = (stage.lp.columns[f"hydro_withdrawal_{side}"][place] for side in ("below", "above"))
    return [(less, -1.0), (more, 1.0)], scheduled


def _inflow(stage: StageContext, term: GenericTerm, place: int) -> Expression:
    return [(stage.lp.columns["hydro_inflow"][place], 1.0)], 0.0


def _decision(stage: StageContext, term: GenericTerm, place: int) -> Expression:
    layout = stage.layout
    first = int(layout.commitment_first[place] - layout.commitment_first[0])
    columns = stage.lp.columns["anticipated_decision"]
    return [(columns[first : first + int(layout.commitment_depth[place])], 1.0)], 0.0


def _pumping_power(stage: StageContext, term: GenericTerm, place: int) -> Expression:
    columns = _in_block(stage.lp.columns["pumping_flow"][place], term)
    return [(columns, float(stage.topology.pump_consumption[place]))], 0.0


_RESOLVERS: dict[str, tuple[str, Resolver]] = {
    "hydro_storage": ("hydro", _final_storage),
    "hydro_storage_initial": ("hydro", _initial_storage),
    "hydro_storage_final": ("hydro", _final_storage),
    "hydro_useful_volume_initial": ("hydro", _useful(_initial_storage)),
    "hydro_useful_volume_final": ("hydro", _useful(_final_storage)),
    "hydro_turbined": ("hydro", _turbined),
    "hydro_spillage": ("hydro", _family("hydro_spillage")),
    "hydro_diversion": ("hydro", _family("hydro_diversion")),
    "hydro_outflow": ("hydro", _outflow),
    "hydro_generation": ("hydro", _generation),
    "hydro_evaporation": ("hydro", _evaporation),
    "hydro_withdrawal": ("hydro", _withdrawal),
    "hydro_inflow": ("hydro", _inflow),
    "thermal_generation": ("thermal", _family("thermal_generation")),
    "anticipated_decision": ("thermal", _decision),
    "line_direct": ("line", _family("line_direct")),
    "line_reverse": ("line", _family("line_reverse")),
    "line_exchange": ("line", _difference("line_direct", "line_reverse")),
    "bus_deficit": ("bus", _family("bus_deficit")),
    "bus_excess": ("bus", _family("bus_excess")),
    "pumping_flow": ("pump", _family("pumping_flow")),
    "pumping_power": ("pump", _pumping_power),
    "contract_import": ("contract", _family("contract_power")),
    "contract_export": ("contract", _family("contract_power")),
    "non_controllable_generation": ("ncs", _family("non_controllable_generation")),
    "non_controllable_curtailment": ("ncs", _family("non_controllable_curtailment")),
}
