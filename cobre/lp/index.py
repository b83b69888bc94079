"""Names and places of everything in a stage LP: one index for messages, model files, duals and outputs.

Columns (and rows) of one kind form a family: an array of ids over the axes of the kind, such as (hydro,
block), with -1 where the LP has no such column. A name is the kind and the labels of its axes, as in
``hydro_turbined[Itaipu, peak]``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Labels = tuple[str, ...]
IdArray = NDArray[np.int32]

ABSENT = -1
"""Id of a column or row that the LP does not have."""


@dataclass(frozen=True, eq=False)
class Family:
    """The columns or rows of one kind.

    Attributes
    ----------
    ids
        int32, one axis for each of ``axes``; ``ABSENT`` where there is none.
    axes
        Labels along each axis.
    """

    kind: str
    ids: IdArray
    axes: tuple[Labels, ...]

    def name(self, place: tuple[int, ...]) -> str:
        """Return the name of the member at ``place``."""
        if not place:
            return self.kind
        labels = ", ".join(axis[position] for axis, position in zip(self.axes, place, strict=True))
        return f"{self.kind}[{labels}]"


class LpIndex:
    """Families of columns and rows by kind; names are made when they are first asked for."""

    def __init__(self, columns: Iterable[Family], rows: Iterable[Family]) -> None:
        self.columns: Mapping[str, Family] = {family.kind: family for family in columns}
        self.rows: Mapping[str, Family] = {family.kind: family for family in rows}

    @cached_property
    def col_names(self) -> tuple[str, ...]:
        """Name of every column."""
        return _names(self.columns.values())

    @cached_property
    def row_names(self) -> tuple[str, ...]:
        """Name of every row of the template."""
        return _names(self.rows.values())

    @cached_property
    def _col_places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.col_names)}

    @cached_property
    def _row_places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.row_names)}

    def column(self, name: str) -> int:
        """Return the column called ``name``.

        Raises
        ------
        KeyError
            When the LP has no such column.
        """
        return self._col_places[name]

    def row(self, name: str) -> int:
        """Return the row called ``name``.

        Raises
        ------
        KeyError
            When the LP has no such row.
        """
        return self._row_places[name]


def _names(families: Iterable[Family]) -> tuple[str, ...]:
    named: dict[int, str] = {}
    for family in families:
        for place in zip(*np.nonzero(family.ids != ABSENT), strict=True) if family.axes else [()]:
            where = tuple(int(position) for position in place)
            named[int(family.ids[where])] = family.name(where)
    return tuple(named[place] for place in range(len(named)))


def unique_labels(names: Sequence[str], ids: Sequence[object]) -> Labels:
    """Return the names, with the id appended to those that occur more than once."""
    count = Counter(names)
    labels = [
        f"{name} #{number}" if count[name] > 1 else name for name, number in zip(names, ids, strict=True)
    ]
    if len(set(labels)) < len(labels):
        labels = [f"{name} #{number}" for name, number in zip(names, ids, strict=True)]
    return tuple(labels)
