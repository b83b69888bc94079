"""Equal arrays of many LPs kept once: those of stages differ in few of their arrays."""

from __future__ import annotations

import hashlib
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

_Array = TypeVar("_Array", bound=NDArray[Any])


class SharedArrays:
    """Arrays by their content; they must not change any more.

    >>> shared = SharedArrays()
    >>> first = shared.one_of(np.array([1.0, 2.0]))
    >>> shared.one_of(np.array([1.0, 2.0])) is first
    True
    >>> shared.one_of(np.array([1, 2])) is first
    False
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, tuple[int, ...], bytes], Any] = {}

    def one_of(self, array: _Array) -> _Array:
        """Return the first array that was equal to this one, bit for bit and in its type and shape."""
        content = hashlib.blake2b(np.ascontiguousarray(array).data, digest_size=16).digest()
        known: _Array = self._known.setdefault((array.dtype.str, array.shape, content), array)
        return known
