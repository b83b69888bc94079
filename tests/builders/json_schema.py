"""A validator of the JSON Schema (2020-12) keywords that the exported schemas use, apart from pydantic."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

TYPES: dict[str, Any] = {
    "object": dict,
    "array": list,
    "string": str,
    "number": (int, float),
    "integer": int,
    "boolean": bool,
    "null": type(None),
}
ANNOTATIONS = {
    "$schema", "$id", "$comment", "$defs", "title", "description", "default", "discriminator", "format",
    "x-honoured",
}  # fmt: skip


def faults(value: Any, schema: dict[str, Any], root: dict[str, Any], place: str = "") -> list[str]:
    """Return where and why the value breaks the schema."""
    found: list[str] = []
    for keyword, argument in schema.items():
        if keyword not in ANNOTATIONS:
            found += [f"{place}: {why}" for why in _check(keyword, argument, value, schema, root)]
    found += _inside(value, schema, root, place)
    return found


def _is(value: Any, name: str) -> bool:
    if isinstance(value, bool):
        return name == "boolean"
    return isinstance(value, TYPES[name])


def _check(
    keyword: str, argument: Any, value: Any, schema: dict[str, Any], root: dict[str, Any]
) -> Iterator[str]:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if keyword == "$ref":
        yield from faults(value, root["$defs"][argument.removeprefix("#/$defs/")], root)
    elif keyword in ("anyOf", "oneOf"):
        passed = sum(not faults(value, option, root) for option in argument)
        if not passed or (keyword == "oneOf" and passed > 1):
            yield f"{passed} options of {keyword} fit"
    elif keyword == "type":
        if not _is(value, argument):
            yield f"not of type {argument}"
    elif keyword in ("enum", "const"):
        if value not in (argument if keyword == "enum" else [argument]):
            yield f"not {argument}"
    elif keyword == "minimum":
        if number and value < argument:
            yield f"below {argument}"
    elif keyword == "maximum":
        if number and value > argument:
            yield f"above {argument}"
    elif keyword == "exclusiveMinimum":
        if number and value <= argument:
            yield f"not above {argument}"
    elif keyword == "exclusiveMaximum":
        if number and value >= argument:
            yield f"not below {argument}"
    elif keyword == "minItems":
        if isinstance(value, list) and len(value) < argument:
            yield f"fewer than {argument} items"
    elif keyword == "maxItems":
        if isinstance(value, list) and len(value) > argument:
            yield f"more than {argument} items"
    elif keyword == "required":
        if isinstance(value, dict):
            yield from (f"{key} is missing" for key in argument if key not in value)
    elif keyword == "additionalProperties":
        if argument is False and isinstance(value, dict):
            yield from (f"unknown key {key}" for key in value if key not in schema.get("properties", {}))
    elif keyword not in ("properties", "items", "prefixItems"):
        raise AssertionError(f"the keyword {keyword} is not known here")


def _inside(value: Any, schema: dict[str, Any], root: dict[str, Any], place: str) -> list[str]:
    found: list[str] = []
    if isinstance(value, dict):
        other = schema.get("additionalProperties")
        for key, item in value.items():
            part = schema.get("properties", {}).get(key, other if isinstance(other, dict) else None)
            if part is not None:
                found += faults(item, part, root, f"{place}.{key}")
    if isinstance(value, list):
        first = schema.get("prefixItems", [])
        for index, item in enumerate(value):
            part = first[index] if index < len(first) else schema.get("items")
            if part is not None:
                found += faults(item, part, root, f"{place}[{index}]")
    return found
