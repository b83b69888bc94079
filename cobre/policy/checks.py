"""Conditions that data of a policy must fulfil; broken ones are ``ValueError``, whoever made the data."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def require(condition: object, message: str) -> None:
    """Raise ``ValueError`` unless the condition holds."""
    if not condition:
        raise ValueError(message)


def require_array(name: str, array: NDArray[np.generic], dtype: object, shape: tuple[int, ...]) -> None:
    """Raise ``ValueError`` unless an array has this type and shape."""
    require(
        array.dtype == dtype and array.shape == shape,
        f"{name} is {array.dtype}{list(array.shape)}; expected {np.dtype(dtype)}{list(shape)}",  # type: ignore[call-overload]
    )


def require_unique(what: str, keys: Sequence[object]) -> None:
    """Raise ``ValueError`` where a key is there twice."""
    twice = (
        next((key for place, key in enumerate(keys) if key in keys[:place]), None)
        if len(set(keys)) != len(keys)
        else None
    )
    require(twice is None, f"{what} {twice} is there twice")
