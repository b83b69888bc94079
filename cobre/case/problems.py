"""Collecting problems: JSON-safe values, near misses of a name, id ranges in short form."""

from __future__ import annotations

import difflib
import json
import math
from collections.abc import Iterable, Sequence
from typing import Any

from cobre.errors import Problem

_MAX_VALUE_CHARS = 200
"""Longest JSON text of a list or object that a problem repeats in full."""


class Reporter:
    """The errors and warnings found so far, in the order they were found."""

    def __init__(self) -> None:
        self.errors: list[Problem] = []
        self.warnings: list[Problem] = []

    def error(self, kind: str, message: str, *, suggestion: str | None = None, **context: Any) -> None:
        """Record an error; see :func:`make_problem` for the context keys."""
        self.errors.append(make_problem(kind, message, suggestion, context))

    def warning(self, kind: str, message: str, *, suggestion: str | None = None, **context: Any) -> None:
        """Record a warning; see :func:`make_problem` for the context keys."""
        self.warnings.append(make_problem(kind, message, suggestion, context))


def make_problem(kind: str, message: str, suggestion: str | None, context: dict[str, Any]) -> Problem:
    """Build a problem with a JSON-safe context.

    Context keys in use: ``file`` (path inside the case), ``entity``, ``field``, ``value``, ``rule``
    (id in the rule catalogue of the format), ``line``, ``column``. A key whose value is ``None`` is left
    out, except ``value``: there it means the JSON ``null`` that was found.
    """
    kept = {key: json_safe(value) for key, value in context.items() if value is not None or key == "value"}
    return Problem(kind, _printable(message), kept, None if suggestion is None else _printable(suggestion))


def json_safe(value: Any) -> Any:
    """Return ``value`` in a form that strict JSON and UTF-8 can carry; long containers become text.

    >>> json_safe([1.5, float("nan"), float("-inf")])
    [1.5, 'NaN', '-Infinity']
    """
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        if math.isfinite(value):
            return float(value)
        return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    if isinstance(value, str):
        return _printable(value)
    if isinstance(value, (dict, list, tuple)):
        safe = _safe_container(value)
        text = json.dumps(safe)
        return safe if len(text) <= _MAX_VALUE_CHARS else text[:_MAX_VALUE_CHARS] + "..."
    return _printable(str(value))


def _safe_container(value: Any) -> Any:
    if isinstance(value, dict):
        return {_printable(str(key)): _safe_container(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_safe_container(item) for item in value]
    return json_safe(value)


def show(value: Any) -> str:
    """Return ``value`` as it looks in JSON, for messages."""
    safe = json_safe(value)
    if isinstance(safe, str) and not isinstance(value, str):
        return safe
    return json.dumps(safe, ensure_ascii=False)


def _printable(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """Return the known name closest to ``name``, or ``None`` when nothing is close.

    >>> did_you_mean("cost_per_mhw", ["cost_per_mwh", "bus_id"])
    'cost_per_mwh'
    """
    candidates = sorted(set(known))
    lowered = {candidate.lower(): candidate for candidate in candidates}
    matches = difflib.get_close_matches(name.lower(), list(lowered), n=1, cutoff=0.7)
    return lowered[matches[0]] if matches else None


def suggest_name(name: str, known: Iterable[str], what: str) -> str:
    """Return "did you mean ...?" where a known name is close, and always the list of known names."""
    names = sorted(set(known))
    listing = f"Expected {what}: {', '.join(names) if names else '(none)'}."
    close = did_you_mean(name, names)
    return f"Did you mean '{close}'? {listing}" if close else listing


def short_ids(ids: Sequence[int]) -> str:
    """Return ids in short form.

    >>> short_ids([0, 1, 2, 3, 7])
    '0-3, 7'
    """
    ordered = sorted(set(ids))
    runs: list[list[int]] = []
    for number in ordered:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(str(low) if low == high else f"{_span(low, high)}" for low, high in runs)


def known_ids(ids: Sequence[int], word: str, most: int = 30) -> str:
    """Return the sentence that lists the ids one may refer to, cut off after ``most`` runs."""
    runs = short_ids(ids).split(", ") if ids else ["(none)"]
    shown = ", ".join(runs[:most])
    return f"Known {word} ids: {shown}{', ...' if len(runs) > most else ''}."


def _span(low: int, high: int) -> str:
    # "-3--1" would be unreadable.
    return f"{low}-{high}" if low >= 0 else f"{low} to {high}"


def plural(word: str) -> str:
    """Return the English plural of the name of an entity type."""
    return word + ("es" if word.endswith("s") else "s")


def name_entity(word: str, entity_id: object, name: object = None) -> str:
    """Return how an entity is called in problems.

    >>> name_entity("hydro", 3, "Itaipu")
    'hydro 3 (Itaipu)'
    """
    label = f"{word} {entity_id}"
    return f"{label} ({name})" if isinstance(name, str) and name else label
