"""JSON objects to pydantic models; every fault of a field becomes a problem.

A list of entities is used as far as it can be: an entity with a faulty field is left out of the later
checks, but its id still counts as known, so that one fault doesn't turn into a trail of dangling ids.
"""

from __future__ import annotations

import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar

import pydantic
from pydantic_core import ErrorDetails

from cobre.case.problems import Reporter, name_entity, show, suggest_name
from cobre.fields import ACCEPT_UNSUPPORTED, NOT_SUPPORTED, RootModel

RootT = TypeVar("RootT", bound=RootModel)
ItemT = TypeVar("ItemT")


@dataclass(frozen=True)
class Collection:
    """The list of entities in a file: its key, what an entry is called and which key identifies it."""

    key: str
    word: str
    id_key: str = "id"


@dataclass(frozen=True)
class Parsed(Generic[RootT, ItemT]):
    """What could be used of a file.

    Attributes
    ----------
    root
        The whole file, or ``None`` when any part of it is malformed.
    items
        Entries without a malformed field, in file order.
    ids
        Ids of all entries, faulty ones too; ``None`` when some id is unknown (then it cannot be known that a
        reference dangles).
    names
        Names by id, as far as they are known.
    faulty
        The JSON objects of the entries that are not among ``items``.
    """

    root: RootT | None
    items: tuple[ItemT, ...]
    ids: tuple[int, ...] | None
    names: Mapping[int, str]
    faulty: tuple[Mapping[str, Any], ...] = ()

    @cached_property
    def id_set(self) -> frozenset[int]:
        """The ids for quick lookups; empty when they are not all known."""
        return frozenset(self.ids or ())


def parse(
    raw: Mapping[str, Any] | None,
    path: str,
    model: type[RootT],
    item_type: Any,
    collection: Collection | None,
    reporter: Reporter,
) -> Parsed[RootT, Any]:
    """Validate the object of one file and report every faulty field.

    Parameters
    ----------
    raw
        The JSON object, or ``None`` if the file could not be read (already reported).
    model, item_type
        The pydantic model of the file and the type of the entries of ``collection``.
    """
    if raw is None:
        return Parsed(None, (), None, {})
    faulty: set[int] = set()
    malformed = False
    root: RootT | None = None
    try:
        root = model.model_validate(raw)
    except pydantic.ValidationError as error:
        for detail in error.errors(include_url=False):
            _report(detail, raw, path, model, collection, reporter)
            if detail["type"] == NOT_SUPPORTED:
                continue
            malformed = True
            place = detail["loc"]
            if collection and len(place) > 1 and place[0] == collection.key and isinstance(place[1], int):
                faulty.add(place[1])
        if not malformed:
            root = model.model_validate(raw, context={ACCEPT_UNSUPPORTED: True})
    if collection is None:
        return Parsed(root, (), None, {})
    entries = raw.get(collection.key)
    if not isinstance(entries, list):
        return Parsed(root, (), None, {})
    if root is not None:
        items = tuple(getattr(root, collection.key))
    else:
        adapter = pydantic.TypeAdapter(item_type)
        items = tuple(
            adapter.validate_python(entry, context={ACCEPT_UNSUPPORTED: True})
            for index, entry in enumerate(entries)
            if index not in faulty
        )
    rejected = tuple(entries[index] for index in sorted(faulty) if isinstance(entries[index], dict))
    return Parsed(root, items, *_identify(entries, collection), faulty=rejected)


def _entry_id(entry: Any, collection: Collection) -> int | None:
    number = entry.get(collection.id_key) if isinstance(entry, dict) else None
    if isinstance(number, bool) or not isinstance(number, int):
        return None
    return number if -(2**31) <= number < 2**31 else None


def _identify(entries: list[Any], collection: Collection) -> tuple[tuple[int, ...] | None, dict[int, str]]:
    ids: list[int] = []
    names: dict[int, str] = {}
    complete = True
    for entry in entries:
        number = _entry_id(entry, collection)
        if number is None:
            complete = False
            continue
        ids.append(number)
        if isinstance(entry.get("name"), str):
            names[number] = entry["name"]
    return (tuple(ids) if complete else None), names


# ---------------------------------------------------------------------------------------------------------
# One pydantic error to one problem

_TYPE_NAMES = {
    "float_type": "a number",
    "int_type": "an integer",
    "bool_type": "true or false",
    "string_type": "a string",
    "list_type": "an array",
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
}
_LIMITS = {
    "greater_than": (">", "gt"),
    "greater_than_equal": (">=", "ge"),
    "less_than": ("<", "lt"),
    "less_than_equal": ("<=", "le"),
}

_MOVED = {
    "config.json: training.forward_passes": 'Write "selection": {"method": "sampled", "forward_passes": N}.',
    "config.json: simulation.num_scenarios": 'Write "selection": {"method": "sampled", "num_scenarios": N}.',
    "stages.json: scenario_source": "It belongs in config.json, as training.scenario_source.",
    "stages.json: num_scenarios": "It is called num_openings now.",
    "penalties.json: hydro.fpha_turbined_cost": "It is called turbined_cost now, for every plant.",
    "initial_conditions.json: past_inflows": "Inflows before the study are dated now: recent_observations.",
    "system/hydros.json: bus_id": "The bus belongs to each entry of unit_groups.",
    "system/hydros.json: generation.productivity_mw_per_m3s": (
        "Productivity belongs in system/hydro_production_models.json."
    ),
    "system/thermals.json: gnl_config": "It is called anticipated_config now.",
}
"""Keys of older versions of the format, by file and field, and where they went."""


def _report(
    detail: ErrorDetails,
    raw: Mapping[str, Any],
    path: str,
    model: type[RootModel],
    collection: Collection | None,
    reporter: Reporter,
) -> None:
    place, holders = _trace(detail, raw, model)
    entity, inner = _split_entity(place, raw, collection)
    field = format_field(inner) or None
    where = field or "the entry"
    if field and entity:
        where = f"{field} of {entity}"
    elif entity:
        where = entity
    context: dict[str, Any] = {"file": path, "entity": entity, "field": field}
    kind = detail["type"]
    if kind != "missing":
        context["value"] = detail["input"]
    if kind == "missing":
        reporter.error(
            "SchemaViolation",
            f"{path}: the required key {where} is missing.",
            suggestion=f"Add the key '{place[-1]}'.",
            **context,
        )
    elif kind == "extra_forbidden":
        expected = {_key_name(name, info) for holder in holders for name, info in holder.model_fields.items()}
        moved = _MOVED.get(f"{path}: {field}")
        reporter.error(
            "SchemaViolation",
            f"{path}: unknown key {where}.",
            suggestion=moved or suggest_name(str(place[-1]), expected, "keys"),
            **context,
        )
    elif kind == NOT_SUPPORTED:
        feature = detail["ctx"]["feature"]
        shown = "" if isinstance(detail["input"], (dict, list)) else f" = {show(detail['input'])}"
        reporter.error(
            "NotImplemented",
            f"{path}: {where}{shown} asks for {feature}, which is not supported yet.",
            suggestion="Remove the key or set it to its default to run the case without this feature.",
            **context,
        )
    elif kind in ("union_tag_not_found", "union_tag_invalid"):
        _report_tag(detail, path, entity, inner, reporter)
    else:
        problem, wanted = _describe(detail)
        reporter.error(
            problem,
            f"{path}: {where} must be {wanted}, but is {show(detail['input'])}.",
            suggestion=f"Give {wanted}.",
            **context,
        )


def _describe(detail: ErrorDetails) -> tuple[str, str]:
    """Return the kind of problem and what the value must be."""
    kind, found = detail["type"], detail["input"]
    if kind == "float_type" and isinstance(found, int) and not isinstance(found, bool):
        return "InvalidValue", "a number that fits a double"
    if kind in _TYPE_NAMES:
        return "SchemaViolation", _TYPE_NAMES[kind]
    if kind == "finite_number":
        return "InvalidValue", "a finite number"
    if kind in _LIMITS:
        sign, key = _LIMITS[kind]
        limit = detail["ctx"][key]
        return "InvalidValue", f"{sign} {int(limit) if limit == int(limit) else limit}"
    if kind == "literal_error":
        return "InvalidValue", f"one of {detail['ctx']['expected']}"
    if kind in ("too_short", "too_long"):
        length = detail["ctx"]["min_length" if kind == "too_short" else "max_length"]
        return "InvalidValue", "an array that is not empty" if length == 1 else f"an array of {length} values"
    if kind == "date_type":
        return "SchemaViolation", "a date written as a string YYYY-MM-DD"
    # Own validators phrase their message as "must be ...".
    return "InvalidValue", detail["msg"].removeprefix("must be ")


def _report_tag(
    detail: ErrorDetails, path: str, entity: str | None, inner: Sequence[str | int], reporter: Reporter
) -> None:
    key = detail["ctx"]["discriminator"].strip("'")
    field = format_field((*inner, key))
    where = f"{field} of {entity}" if entity else field
    if detail["type"] == "union_tag_not_found":
        reporter.error(
            "SchemaViolation",
            f"{path}: the required key {where} is missing.",
            file=path,
            entity=entity,
            field=field,
            suggestion=f"Add the key '{key}'.",
        )
        return
    expected = [name.strip(" '") for name in detail["ctx"]["expected_tags"].split(",")]
    found = detail["input"].get(key) if isinstance(detail["input"], dict) else detail["input"]
    reporter.error(
        "InvalidValue" if isinstance(found, str) else "SchemaViolation",
        f"{path}: {where} must be one of {', '.join(expected)}, but is {show(found)}.",
        file=path,
        entity=entity,
        field=field,
        value=found,
        suggestion=suggest_name(str(found), expected, "values"),
    )


def _trace(
    detail: ErrorDetails, raw: Any, model: type[RootModel]
) -> tuple[tuple[int | str, ...], list[type[pydantic.BaseModel]]]:
    """Return the place of an error in the file, and the models of the object that holds it.

    A pydantic location also names the branch it took in a union (its tag, or a type); those parts are dropped
    from the place, and narrow the models down.
    """
    place: list[int | str] = []
    here: Any = raw
    models: list[type[pydantic.BaseModel]] = [model]
    holders = models
    tag_follows = False
    last = len(detail["loc"]) - 1
    for position, part in enumerate(detail["loc"]):
        if tag_follows and isinstance(part, str):
            models = [candidate for candidate in models if part in _tags(candidate)] or models
            tag_follows = False
            continue
        is_item = isinstance(here, list) and isinstance(part, int) and part < len(here)
        if is_item or (isinstance(here, dict) and part in here):
            here = here[part]
        elif not (detail["type"] == "missing" and position == last):
            continue
        place.append(part)
        if isinstance(part, str):
            holders = models
            models = [found for candidate in models for found in _models_of_key(candidate, part)]
            tag_follows = len(models) > 1
    return tuple(place), holders


def _split_entity(
    place: tuple[int | str, ...], raw: Mapping[str, Any], collection: Collection | None
) -> tuple[str | None, tuple[int | str, ...]]:
    """Return the name of the entity a place lies in, and the place inside that entity."""
    if collection is None or len(place) < 2 or place[0] != collection.key or not isinstance(place[1], int):
        return None, place
    entry = raw[collection.key][place[1]]
    number = _entry_id(entry, collection)
    if number is None:
        name = entry.get("name") if isinstance(entry, dict) else None
        return name_entity("entry", f"{collection.key}[{place[1]}]", name), place[2:]
    return name_entity(collection.word, number, entry.get("name")), place[2:]


def format_field(place: Sequence[str | int]) -> str:
    """Return a place as a field path: ``unit_groups[0].bus_id``."""
    text = ""
    for part in place:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f".{part}" if text else part
    return text


def _models_of_key(candidate: type[pydantic.BaseModel], key: str) -> list[type[pydantic.BaseModel]]:
    for name, info in candidate.model_fields.items():
        if _key_name(name, info) == key:
            return _members(info.metadata) or _models_in(info.annotation)
    return []


def _key_name(name: str, info: pydantic.fields.FieldInfo) -> str:
    return info.alias or name


def _members(marks: Sequence[Any]) -> list[type[pydantic.BaseModel]]:
    """Return the models of a field that is marked to take one of them (:class:`cobre.fields.OneOf`)."""
    return [found for mark in marks for found in getattr(mark, "members", ())]


def _models_in(annotation: Any) -> list[type[pydantic.BaseModel]]:
    # In Python 3.10 a parametrised dict[...] calls itself a type, so ask for the origin first.
    if typing.get_origin(annotation) is None:
        known = isinstance(annotation, type) and issubclass(annotation, pydantic.BaseModel)
        return [annotation] if known else []
    arguments = typing.get_args(annotation)
    return _members(arguments) or [found for argument in arguments for found in _models_in(argument)]


def _tags(candidate: type[pydantic.BaseModel]) -> set[str]:
    return {
        tag
        for info in candidate.model_fields.values()
        if typing.get_origin(info.annotation) is typing.Literal
        for tag in typing.get_args(info.annotation)
    }
