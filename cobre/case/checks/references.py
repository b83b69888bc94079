"""Checks every file shares: ids that repeat, ids that point nowhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from cobre.case.catalogue import ENTITY_TYPES
from cobre.case.format import layout
from cobre.case.format.parse import Parsed
from cobre.case.format.sources import Sources
from cobre.case.problems import Reporter, known_ids, name_entity


def check_unique(
    ids: Sequence[int],
    path: str,
    word: str,
    reporter: Reporter,
    *,
    names: Mapping[int, str] | None = None,
    field: str = "id",
    entity: str | None = None,
) -> None:
    """Report each id that occurs more than once."""
    for number, count in sorted(Counter(ids).items()):
        if count > 1:
            whose = name_entity(word, number, (names or {}).get(number))
            owner = f" in {entity}" if entity else ""
            reporter.error(
                "DuplicateId",
                f"{path}: {word} {number} occurs {count} times{owner}.",
                file=path,
                entity=entity or whose,
                field=field,
                value=number,
                suggestion=f"Give every {word} an id of its own, or remove the extra entries.",
            )


def check_reference(
    value: int,
    target: Parsed[Any, Any],
    word: str,
    path: str,
    entity: str | None,
    field: str,
    reporter: Reporter,
    rule: str = "referential.1",
) -> bool:
    """Report ``value`` unless it is an id of ``target``; return whether it is known to exist.

    Nothing is reported while the ids of ``target`` are not all readable.
    """
    if target.ids is None:
        return False
    if value in target.id_set:
        return True
    where = f"{field} of {entity}" if entity else field
    reporter.error(
        "InvalidReference",
        f"{path}: {where} is {value}, but there is no {word} with that id.",
        file=path,
        entity=entity,
        field=field,
        value=value,
        rule=rule,
        suggestion=known_ids(target.ids, word),
    )
    return False


def check_faulty_entries(sources: Sources, reporter: Reporter) -> None:
    """Report dangling ids of entries that other faults keep from the checks of their own file."""
    by_hydro, by_bus = (("hydro_id", "hydro"),), (("bus_id", "bus"),)
    registries: list[tuple[str, Parsed[Any, Any] | None, str, str, tuple[tuple[str, str], ...]]] = [
        (kind.path, sources.registry(kind), kind.word, "id", kind.references)
        for kind in ENTITY_TYPES
        if kind.references
    ]
    registries += [
        (layout.INITIAL_CONDITIONS, sources.initial, "hydro", "hydro_id", by_hydro),
        (layout.PRODUCTION_MODELS, sources.production, "hydro", "hydro_id", by_hydro),
        (layout.LOAD_FACTORS, sources.load_factors, "bus", "bus_id", by_bus),
    ]
    for path, parsed, word, id_key, references in registries:
        for entry in parsed.faulty if parsed is not None else ():
            entity = name_entity(word, entry.get(id_key), entry.get("name"))
            for field, target in references:
                _check_raw(entry, field, field, target, path, entity, sources, reporter)
            groups = entry.get("unit_groups")
            for index, group in enumerate(groups if isinstance(groups, list) else ()):
                if isinstance(group, dict):
                    field = f"unit_groups[{index}].bus_id"
                    _check_raw(group, "bus_id", field, "bus", path, entity, sources, reporter)


def _check_raw(
    entry: Mapping[str, Any],
    key: str,
    field: str,
    target: str,
    path: str,
    entity: str,
    sources: Sources,
    reporter: Reporter,
) -> None:
    value = entry.get(key)
    # What is no 32-bit integer has been reported as such.
    if isinstance(value, int) and not isinstance(value, bool) and -(2**31) <= value < 2**31:
        registry: Parsed[Any, Any] = sources.buses if target == "bus" else sources.hydros
        check_reference(value, registry, target, path, entity, field, reporter)
