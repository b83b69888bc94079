"""Warnings: what is allowed but probably not meant."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cobre.case.catalogue import ENTITY_TYPES, by_id
from cobre.case.format import layout
from cobre.case.format.sources import Sources
from cobre.case.model import Case, Scenarios
from cobre.case.problems import Reporter, name_entity, short_ids
from cobre.case.scenarios.stats import group_by_stages, name_group


def check_penalty_order(sources: Sources, reporter: Reporter) -> None:
    """Warn where the order of costs would make the wrong thing give way first."""
    if sources.penalties.root is not None:
        bus, hydro = sources.penalties.root.bus, sources.penalties.root.hydro
        deficit = max((segment.cost for segment in bus.deficit_segments), default=None)
        if deficit is not None and deficit <= hydro.generation_violation_below_cost:
            reporter.warning(
                "ModelQuality",
                f"{layout.PENALTIES}: the highest deficit cost ({deficit}) is not above "
                f"hydro.generation_violation_below_cost ({hydro.generation_violation_below_cost}).",
                file=layout.PENALTIES,
                field="bus.deficit_segments",
                value=deficit,
                rule="5b.8",
                suggestion="Unserved load usually costs more than a missed minimum of generation.",
            )
        waste = max(hydro.spillage_cost, hydro.diversion_cost)
        violation = min(
            hydro.turbined_violation_below_cost,
            hydro.outflow_violation_below_cost,
            hydro.outflow_violation_above_cost,
            hydro.evaporation_violation_cost,
            hydro.water_withdrawal_violation_cost,
        )
        if violation <= waste:
            reporter.warning(
                "ModelQuality",
                f"{layout.PENALTIES}: the lowest cost of a flow violation ({violation}) is not above the "
                f"cost of spillage and diversion ({waste}).",
                file=layout.PENALTIES,
                field="hydro",
                value=violation,
                rule="5b.9",
                suggestion="Violating a flow limit usually costs more than spilling.",
            )
    for plant in by_id(sources.hydros.items):
        for key in ("spillage_cost", "diversion_cost"):
            if plant.penalties is not None and getattr(plant.penalties, key) == 0:
                entity = name_entity("hydro", plant.id, plant.name)
                reporter.warning(
                    "ModelQuality",
                    f"{layout.HYDROS}: penalties.{key} of {entity} is 0, so water can be wasted freely.",
                    file=layout.HYDROS,
                    entity=entity,
                    field=f"penalties.{key}",
                    value=0.0,
                    rule="5b.10",
                    suggestion="A small positive cost makes the solution unique.",
                )


def check_cost_order(case: Case, reporter: Reporter) -> None:
    """Warn of plants and imports that cost no less than any deficit of the buses that they can reach."""
    reachable = _deficit_cost_in_reach(case)
    thermals = [
        (plant.id, plant.name, reachable[plant.bus_id], max(costs))
        for number, plant in enumerate(case.thermals)
        if (
            costs := [
                float(data.thermal_cost[number])
                for data in case.stage_data
                if data.thermal_max_mw[number].max() > 0.0
            ]
        )
    ]
    contracts = [
        (contract.id, contract.name, reachable[contract.bus_id], max(prices))
        for number, contract in enumerate(case.contracts)
        if contract.kind == "import"
        and (
            prices := [
                float(data.contract_price[number].max())
                for data in case.stage_data
                if data.contract_max_mw[number].max() > 0.0
            ]
        )
    ]
    for path, word, field, found in (
        (layout.THERMALS, "thermal", "cost_per_mwh", thermals),
        (layout.CONTRACTS, "contract", "price_per_mwh", contracts),
    ):
        for number, name, deficit, cost in found:
            if cost >= deficit:
                entity = name_entity(word, number, name)
                reporter.warning(
                    "ModelQuality",
                    f"{path}: {entity} costs up to {cost:,.6g} $/MWh, but leaving load unserved costs at "
                    "most "
                    f"{deficit:,.6g} $/MWh where its power can go, so deficit comes before it.",
                    file=path,
                    entity=entity,
                    field=field,
                    value=cost,
                    suggestion="Check the unit of both costs ($/MWh), and that deficit costs most.",
                )


def _deficit_cost_in_reach(case: Case) -> dict[int, float]:
    """Return for every bus the highest deficit cost among the buses that lines tie it to, itself included."""
    group = {bus.id: bus.id for bus in case.buses}
    for line in case.lines:
        old, new = group[line.target_bus_id], group[line.source_bus_id]
        group = {bus: new if number == old else number for bus, number in group.items()}
    highest: dict[int, float] = {}
    for bus in case.buses:
        cost = max(segment.cost_per_mwh for segment in bus.deficit_segments)
        highest[group[bus.id]] = max(cost, highest.get(group[bus.id], -np.inf))
    return {bus: highest[number] for bus, number in group.items()}


def check_inflow_noise(sources: Sources, inflow_std: NDArray[np.float64], reporter: Reporter) -> None:
    """Warn of plants whose openings are all the same. Only for sources without errors."""
    names = sources.hydros.names
    hydro_ids = np.array(sorted(sources.hydros.id_set), dtype=np.int64)
    stages = by_id(sources.stages.items)
    stage_ids = np.array([stage.id for stage in stages], dtype=np.int64)
    if not hydro_ids.size:
        return
    if layout.INFLOW_STATS not in sources.present:
        if layout.INFLOW_HISTORY in sources.present:
            return
        reporter.warning(
            "ModelQuality",
            f"There is no {layout.INFLOW_STATS}, so the inflow of every hydro plant is 0.",
            file=layout.INFLOW_STATS,
            suggestion="Add the file with a row for every hydro plant and stage.",
        )
        return
    several = np.array([(stage.num_openings or 1) > 1 for stage in stages])
    still = (inflow_std == 0.0) & several[:, np.newaxis]
    for group, at in group_by_stages(still, hydro_ids, stage_ids):
        who = name_group("hydro", group, names)
        reporter.warning(
            "ModelQuality",
            f"{layout.INFLOW_STATS}: the inflow of {who} has standard deviation 0 at stage {short_ids(at)}, "
            "so it is the same in all openings.",
            file=layout.INFLOW_STATS,
            entity=who,
            field="std_m3s",
            value=0.0,
            rule="5b.12",
            suggestion="Give a standard deviation, or use one opening if nothing is random.",
        )


def check_start_dates(sources: Sources, reporter: Reporter) -> None:
    """Warn of entities that seem to start within the study by a date, which has no effect on dispatch."""
    first = min((stage.start_date for stage in sources.stages.items if stage.id >= 0), default=None)
    if first is None:
        return
    for kind in ENTITY_TYPES:
        parsed, path, word = sources.registry(kind), kind.path, kind.word
        late = [
            item
            for item in parsed.items
            if item.operational_start_date > first and getattr(item, "entry_stage_id", None) is None
        ]
        if not late:
            continue
        who = name_group(word, [item.id for item in late], parsed.names)
        instead = "Give entry_stage_id, the first stage in service, or an earlier date."
        reporter.warning(
            "SemanticAmbiguity",
            f"{path}: operational_start_date of {who} is after the start of the study ({first}), but has no "
            "effect.",
            file=path,
            entity=who,
            field="operational_start_date",
            value=str(late[0].operational_start_date),
            suggestion="Give an earlier date." if word == "bus" else instead,
        )


def check_unused_buses(sources: Sources, scenarios: Scenarios, reporter: Reporter) -> None:
    """Warn of buses with nothing attached. Only for sources without errors."""
    used = {group.bus_id for hydro in sources.hydros.items for group in hydro.unit_groups}
    for kind in ENTITY_TYPES:
        for field, target in kind.references:
            used |= {getattr(item, field) for item in sources.registry(kind).items if target == "bus"}
    loaded: NDArray[np.bool_] = ((scenarios.load_mean_mw != 0.0) | (scenarios.load_std_mw != 0.0)).any(axis=0)
    for external in scenarios.external_load_mw or ():
        loaded |= (external != 0.0).any(axis=0)
    for index, bus in enumerate(by_id(sources.buses.items)):
        if bus.id not in used and not loaded[index]:
            entity = name_entity("bus", bus.id, bus.name)
            reporter.warning(
                "UnusedEntity",
                f"{layout.BUSES}: {entity} has no load, no plant and no line.",
                file=layout.BUSES,
                entity=entity,
                field="id",
                value=bus.id,
                suggestion="Remove the bus, or attach something to it.",
            )
