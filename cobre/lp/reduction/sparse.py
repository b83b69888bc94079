"""Sparse matrices as compressed arrays: the few operations that the reduction takes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int32]
PlaceArray = NDArray[np.int64]

_CANCELLED = 4.0 * float(np.finfo(np.float64).eps)
"""Share of the magnitudes in a sum up to which the sum is rounding."""


@dataclass(frozen=True, eq=False)
class Compressed:
    """A matrix by lines (columns or rows); line i has entries ``start[i]`` to ``start[i + 1]``, sorted."""

    start: IntArray
    place: IntArray
    value: FloatArray

    @property
    def count(self) -> PlaceArray:
        """Number of entries in each line."""
        return np.diff(self.start).astype(np.int64)

    @property
    def line(self) -> PlaceArray:
        """Line of each entry."""
        return np.repeat(np.arange(len(self.start) - 1), np.diff(self.start))

    def entries_of(self, lines: PlaceArray) -> tuple[PlaceArray, PlaceArray]:
        """Return the entries of some lines one after the other, and the position in ``lines`` of each."""
        count = self.count[lines]
        owner = np.repeat(np.arange(len(lines)), count)
        return np.arange(len(owner)) + np.repeat(self.start[lines] - (np.cumsum(count) - count), count), owner

    def take(self, lines: PlaceArray) -> Compressed:
        """Return the matrix of some lines, in their order."""
        entries, _ = self.entries_of(lines)
        return Compressed(starts(self.count[lines]), self.place[entries], self.value[entries])

    def transposed(self, num_lines: int) -> Compressed:
        """Return the same matrix by its other lines."""
        order = np.argsort(self.place, kind="stable")
        count = np.bincount(self.place, minlength=num_lines)
        return Compressed(starts(count), self.line[order].astype(np.int32), self.value[order])


def totals(place: NDArray[np.integer], value: FloatArray, size: int) -> FloatArray:
    """Return the sum of the values at each place, added up in order."""
    # Without entries np.bincount returns integers.
    return np.bincount(place, weights=value, minlength=size).astype(np.float64, copy=False)


def starts(count: NDArray[np.integer]) -> IntArray:
    """Return where each line begins, and the end of the last one."""
    return np.concatenate([[0], np.cumsum(count)]).astype(np.int32)


def compressed(
    line: PlaceArray, place: PlaceArray, value: FloatArray, num_lines: int, num_places: int
) -> Compressed:
    """Return a matrix from entries; those of one place are added up in order, what cancels is left out."""
    key = line * np.int64(max(num_places, 1)) + place
    if len(key) and not (key[1:] > key[:-1]).all():
        order = np.argsort(key, kind="stable")
        key, terms = key[order], value[order]
        first = np.concatenate([[True], key[1:] != key[:-1]])
        group = np.cumsum(first) - 1
        value = totals(group, terms, group[-1] + 1)
        kept = np.abs(value) > _CANCELLED * totals(group, np.abs(terms), len(value))
        key, value = key[first][kept], value[kept]
    line, place = np.divmod(key, np.int64(max(num_places, 1)))
    return Compressed(starts(np.bincount(line, minlength=num_lines)), place.astype(np.int32), value)
