"""Every key of the JSON files, tried out on a case: is it refused, warned about, or does it do something?"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from mutations import Documents, Place, value_at

from cobre.case import Case, build
from cobre.case.format.schema.config import ConfigFile
from cobre.case.horizon import further_keys
from cobre.errors import ValidationError

Effect = Literal["refused", "warned", "changed", "silent", "same"]

NUMBERS = (0.25, 1.0, 2.0, 7.5, 40.0, 3000.0)
COUNTS = (0, 1, 2, 3, 5, 12)
TEXTS = ("2022-12-31", "2023-12-31", "word", "2023-01-15", "2023-04-01", "system")


def same(one: Any, other: Any) -> bool:
    """Whether two models are equal bit by bit, apart from the documents they come from."""
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        return one.shape == other.shape and bool(np.array_equal(one, other, equal_nan=one.dtype.kind == "f"))
    if isinstance(one, (tuple, list)):
        return len(one) == len(other) and all(same(a, b) for a, b in zip(one, other, strict=True))
    if isinstance(one, ConfigFile):
        return further_keys(one) == further_keys(other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if dataclasses.is_dataclass(one):
        fields = [
            field.name for field in dataclasses.fields(one) if field.name not in ("documents", "warnings")
        ]
        return all(same(getattr(one, name), getattr(other, name)) for name in fields)
    return bool(one == other)


def built(documents: Documents) -> Case | None:
    """Return the case, or nothing when it is refused."""
    try:
        return build(documents)
    except ValidationError:
        return None


def variants(schema: dict[str, Any], root: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the alternatives of a schema without references, null left out."""
    if "$ref" in schema:
        return variants(root["$defs"][schema["$ref"].rsplit("/", 1)[1]], root)
    inner = schema.get("anyOf") or schema.get("oneOf")
    if inner:
        return [found for part in inner for found in variants(part, root)]
    return [] if schema.get("type") == "null" else [schema]


def samples(schema: dict[str, Any], root: dict[str, Any]) -> list[Any]:
    """Return values that a schema allows."""
    found: list[Any] = []
    for part in variants(schema, root):
        kind = part.get("type")
        if "const" in part:
            found.append(part["const"])
        elif "enum" in part:
            found += part["enum"]
        elif kind == "boolean":
            found += [True, False]
        elif kind == "integer":
            found += COUNTS
        elif kind == "number":
            found += NUMBERS
        elif kind == "string":
            found += TEXTS
        elif kind == "array":
            items = samples(part.get("items", {}), root)
            length = max(1, part.get("minItems", 1))
            found += [[item] * length for item in items[:2]] + ([[]] if length == 1 else [])
        elif kind == "object":
            found.append(smallest_object(part, root))
    return found


def smallest_object(schema: dict[str, Any], root: dict[str, Any]) -> dict[str, Any]:
    """Return an object with the required keys only."""
    required = schema.get("required", ())
    return {key: samples(schema["properties"][key], root)[0] for key in required}


def tried_keys(document: Any, root: dict[str, Any]) -> Iterator[tuple[str, Place, Any, list[Any]]]:
    """Yield (name, place, base document, values) for every key of a file.

    A key that the document has nowhere is tried in the first object that may carry it; objects that are
    absent are put there with their required keys, which makes the base document.
    """
    seen: set[str] = set()

    def walk(schema: dict[str, Any], place: Place, name: str, base: Any) -> Iterator[Any]:
        value = value_at(base, place)
        for part in variants(schema, root):
            if part.get("type") == "array" and isinstance(value, list):
                for number in range(len(value)):
                    yield from walk(part.get("items", {}), (*place, number), f"{name}[]", base)
            if part.get("type") != "object" or not isinstance(value, dict) or not _fits(part, value, root):
                continue
            for key, inner in part.get("properties", {}).items():
                yield from visit(inner, (*place, key), f"{name}.{key}".lstrip("."), base, key in value)

    def visit(schema: dict[str, Any], place: Place, name: str, base: Any, present: bool) -> Iterator[Any]:
        holders = [part for part in variants(schema, root) if part.get("type") in ("object", "array")]
        if name.split(".")[-1] == "$schema":
            return
        if present and value_at(base, place) is not None:
            yield name, place, base, samples(schema, root)
            yield from walk(schema, place, name, base)
        elif name not in seen:
            yield name, place, base, samples(schema, root)
            for holder in holders:
                inside = (
                    smallest_object(holder, root) if holder["type"] == "object" else samples(holder, root)[0]
                )
                filled = copy.deepcopy(base)
                value_at(filled, place[:-1])[place[-1]] = inside
                yield from walk(schema, place, name, filled)
        seen.add(name)

    yield from walk(root, (), "", document)


def _fits(schema: dict[str, Any], value: dict[str, Any], root: dict[str, Any]) -> bool:
    """Whether an object is of this alternative: its constants agree and it has the required keys."""
    for key, inner in schema.get("properties", {}).items():
        if "const" in inner and key in value and value[key] != inner["const"]:
            return False
    return set(schema.get("required", ())) <= set(value) <= set(schema.get("properties", {}))


def effect_of(
    documents: Documents, path: str, base: Any, place: Place, value: Any, bases: dict[int, Any]
) -> Effect:
    """Return what setting one key to a value does to a case."""
    if id(base) not in bases:
        bases[id(base)] = (base, built({**documents, path: base}))
    before = bases[id(base)][1]
    changed = copy.deepcopy(base)
    holder = value_at(changed, place[:-1])
    if place[-1] in holder and holder[place[-1]] == value:
        return "same"
    holder[place[-1]] = value
    case = built({**documents, path: changed})
    if case is None or before is None:
        return "refused"
    messages = {problem.message for problem in before.warnings}
    if {problem.message for problem in case.warnings} - messages:
        return "warned"
    return "silent" if same(before, case) else "changed"
