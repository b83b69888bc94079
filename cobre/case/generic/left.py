"""Left-hand sides of rows: which variables, of which block, with what coefficients.

What does not depend on the values of parameters is worked out once for each constraint and block and shared
by all stages; so are whole left-hand sides with equal values.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from cobre.case.generic.catalogue import VARIABLES
from cobre.case.generic.expression import Variable
from cobre.case.generic.linear import LinearForm
from cobre.case.generic.scope import term_block
from cobre.case.model import GenericTerm, VariableKind

STORAGE: Mapping[VariableKind, VariableKind] = {
    "hydro_useful_volume_initial": "hydro_storage_initial",
    "hydro_useful_volume_final": "hydro_storage_final",
}
"""The storage behind each useful volume."""

_KIND_ORDER = {kind: position for position, kind in enumerate(VARIABLES)}

Sum = tuple[tuple[float, str | None], ...]
"""``scale * parameter`` summed up; the parameter may be absent."""


@dataclass(frozen=True, eq=False)
class Left:
    """The left-hand side of a row.

    Attributes
    ----------
    terms
        Without zeros, in the order of variables, entities, blocks and buses.
    remainder
        What the constants leave on the right-hand side.
    shift
        What dead volumes add to both bounds.
    finite
        Whether all numbers are.
    """

    terms: tuple[GenericTerm, ...]
    remainder: float
    shift: float
    finite: bool


@dataclass(frozen=True, eq=False)
class _Pattern:
    """A left-hand side before its parameters have values."""

    slots: tuple[tuple[GenericTerm, Sum], ...]
    """A term, and the sum of its coefficient if that has parameters; else the term is ready."""
    constant: Sum
    shift: Sum


class LeftSides:
    """The left-hand sides of one constraint.

    Parameters
    ----------
    form
        Its expression.
    dead_hm3
        Dead volume by hydro id, of all plants with a useful volume in the expression.
    """

    def __init__(self, form: LinearForm, dead_hm3: Mapping[int, float]) -> None:
        self._form = form
        self._dead = dead_hm3
        self._patterns: dict[tuple[int | None, bool, frozenset[Variable]], _Pattern] = {}
        self._known: dict[tuple[_Pattern, tuple[float, ...]], Left] = {}

    def at(
        self, block: int | None, chronological: bool, gone: frozenset[Variable], values: Mapping[str, float]
    ) -> Left:
        """Return the left-hand side of a row.

        Parameters
        ----------
        block
            Of the row; ``None`` for a row of the whole stage.
        chronological
            Whether the blocks of the stage follow each other.
        gone
            Variables that the stage does not have.
        values
            Of every parameter in the expression, always in the same order.
        """
        key = (block, chronological, gone)
        if key not in self._patterns:
            self._patterns[key] = self._pattern(block, chronological, gone)
        pattern = self._patterns[key]
        numbers = tuple(values.values())
        if (pattern, numbers) not in self._known:
            self._known[pattern, numbers] = _evaluate(pattern, values)
        return self._known[pattern, numbers]

    def _pattern(self, block: int | None, chronological: bool, gone: frozenset[Variable]) -> _Pattern:
        sums: dict[GenericTerm, list[tuple[float, str | None]]] = {}
        shift: list[tuple[float, str | None]] = []
        for (variable, parameter), scale in self._form.terms.items():
            if variable in gone:
                continue
            if variable.kind in STORAGE:
                shift.append((scale * self._dead[variable.entity_id], parameter))
            kind = STORAGE.get(variable.kind, variable.kind)
            at = term_block(variable, block, chronological)
            slot = GenericTerm(1.0, kind, variable.entity_id, at, variable.bus_id)
            sums.setdefault(slot, []).append((scale, parameter))
        slots: list[tuple[GenericTerm, Sum]] = []
        for slot in sorted(sums, key=_term_order):
            parts = tuple(sums[slot])
            if any(parameter is not None for _, parameter in parts):
                slots.append((slot, parts))
            elif (total := sum(scale for scale, _ in parts)) != 0.0:
                slots.append((_with(slot, total), ()))
        constants = tuple((scale, parameter) for parameter, scale in self._form.constants.items())
        return _Pattern(tuple(slots), constants, tuple(shift))


def _evaluate(pattern: _Pattern, values: Mapping[str, float]) -> Left:
    terms = []
    for term, parts in pattern.slots:
        if not parts:
            terms.append(term)
        elif (coefficient := _total(parts, values)) != 0.0:
            terms.append(_with(term, coefficient))
    remainder, shift = 0.0 - _total(pattern.constant, values), _total(pattern.shift, values)
    finite = math.isfinite(remainder + shift) and all(math.isfinite(term.coefficient) for term in terms)
    return Left(tuple(terms), remainder, shift, finite)


def _total(parts: Sum, values: Mapping[str, float]) -> float:
    total = 0.0
    for scale, parameter in parts:
        total += scale if parameter is None else scale * values[parameter]
    return total


def _with(term: GenericTerm, coefficient: float) -> GenericTerm:
    return GenericTerm(coefficient, term.kind, term.entity_id, term.block, term.bus_id)


def _term_order(term: GenericTerm) -> tuple[int, int, int, bool, int]:
    block = -1 if term.block is None else term.block
    return _KIND_ORDER[term.kind], term.entity_id, block, term.bus_id is not None, term.bus_id or 0
