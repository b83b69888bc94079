"""Whether the entities of a constraint exist and have the variable that is asked of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from cobre.case.format import layout
from cobre.case.format.parse import Parsed
from cobre.case.format.sources import Sources
from cobre.case.generic.catalogue import VARIABLES, Registry
from cobre.case.generic.expression import Variable
from cobre.case.problems import Reporter, known_ids, name_entity, short_ids

_FILE = layout.GENERIC_CONSTRAINTS


class EntityIndex:
    """The entities of a case by class and id."""

    def __init__(self, sources: Sources) -> None:
        self.registries: dict[Registry, Parsed[Any, Any]] = {
            "hydro": sources.hydros,
            "thermal": sources.thermals,
            "line": sources.lines,
            "bus": sources.buses,
            "pumping station": sources.pumping_stations,
            "contract": sources.contracts,
            "source": sources.non_controllables,
        }
        self._items = {
            word: {item.id: item for item in parsed.items} for word, parsed in self.registries.items()
        }

    def item(self, variable: Variable) -> Any:
        """Return the entry of the variable's entity; ``None`` if it is unknown or has a faulty field."""
        return self._items[VARIABLES[variable.kind].registry].get(variable.entity_id)


def check_entities(
    number: int, name: str, variables: Iterable[Variable], index: EntityIndex, reporter: Reporter
) -> None:
    """Report every variable of a constraint whose entity does not exist or does not have it."""
    entity = name_entity("constraint", number, name)
    for variable in variables:
        fault = _fault(variable, index)
        if fault is not None:
            message, rule, suggestion = fault
            reporter.error(
                "InvalidReference",
                f"{_FILE}: {variable} in {entity}: {message}.",
                file=_FILE,
                entity=entity,
                field="expression",
                value=str(variable),
                rule=rule,
                suggestion=suggestion,
            )


def _fault(variable: Variable, index: EntityIndex) -> tuple[str, str, str | None] | None:
    """Return what is wrong, the rule and the suggestion; ``None`` if nothing is, or that is unknown."""
    word = VARIABLES[variable.kind].registry
    known = index.registries[word]
    if known.ids is None:
        return None
    if variable.entity_id not in known.id_set:
        listing = known_ids(known.ids, word)
        return f"there is no {word} {variable.entity_id}", "referential.9", listing
    item = index.item(variable)
    if item is None:
        return None
    if variable.kind == "anticipated_decision" and item.anticipated_config is None:
        return (
            f"thermal {item.id} is not committed ahead of time",
            "referential.9",
            "Use thermal_generation, or give the plant an anticipated_config.",
        )
    if word == "contract" and item.type != variable.kind.removeprefix("contract_"):
        return f"contract {item.id} is of type {item.type}", "referential.11", f"Use contract_{item.type}."
    if variable.bus_id is not None:
        buses = sorted({group.bus_id for group in item.unit_groups})
        if variable.bus_id not in buses:
            return (
                f"hydro {item.id} has no unit group on bus {variable.bus_id}",
                "referential.10",
                f"Its unit groups are on bus {short_ids(buses)}.",
            )
    return None
