"""C functions by name, callable from nopython code that stays cacheable.

A ctypes function in a kernel makes Numba refuse to cache it, and an address baked into a kernel crashes the
next process. A symbol that is only named in the cached code and bound to its address in every process has
neither fault. A name that is not bound when cached code calls it crashes, so every name is checked here.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import llvmlite.binding as llvm
import numba
import numpy as np
from numba import types
from numpy.typing import NDArray

from cobre.errors import CobreError

_CTYPES: dict[Any, Any] = {
    types.void: None,
    types.boolean: ctypes.c_bool,
    types.int8: ctypes.c_int8,
    types.int16: ctypes.c_int16,
    types.int32: ctypes.c_int32,
    types.int64: ctypes.c_int64,
    types.uint8: ctypes.c_uint8,
    types.uint16: ctypes.c_uint16,
    types.uint32: ctypes.c_uint32,
    types.uint64: ctypes.c_uint64,
    types.float32: ctypes.c_float,
    types.float64: ctypes.c_double,
}

_bound_libraries: list[ctypes.CDLL] = []  # a library that is unloaded would leave its symbols dangling


def bind_library(library: ctypes.CDLL, prefix: str, signatures: Mapping[str, Any]) -> SimpleNamespace:
    """Make functions of a loaded C library callable from nopython code.

    Assign the result's attributes to module-level names and call those in kernels: Numba resolves globals
    of a module, not attributes of a namespace. The module that owns a cached kernel must import the module
    that binds its symbols. Pass arrays as ``array.ctypes`` to ``CPointer`` parameters: that keeps the array
    alive during the call and makes a wrong dtype a typing error.

    Parameters
    ----------
    library
        The library; it stays loaded until the process ends.
    prefix
        What the library puts before every name, for example ``"Highs_"``.
    signatures
        Numba signature for each name without the prefix, for example ``{"run": types.int32(types.intp)}``.

    Returns
    -------
    SimpleNamespace
        One callable for each name; plain ctypes functions when ``NUMBA_DISABLE_JIT`` is set.

    Raises
    ------
    CobreError
        Kind ``MissingSymbol`` when the library lacks any of the names; lists them all.
    """
    missing = [prefix + name for name in signatures if not hasattr(library, prefix + name)]
    if missing:
        path = getattr(library, "_name", None) or "the running program"
        raise CobreError(
            "MissingSymbol",
            f"{path} lacks {len(missing)} of the C functions that are needed: {', '.join(missing)}",
            {"library": str(path), "missing": missing},
            "install a version of the library that has them",
        )
    _bound_libraries.append(library)
    bind = _ctypes_function if numba.config.DISABLE_JIT else _external_function
    return SimpleNamespace(
        **{name: bind(library, prefix + name, signature) for name, signature in signatures.items()}
    )


def bind_address(symbol: str, address: int) -> None:
    """Bind a name that cached code calls (``types.ExternalFunction``) to an address in this process."""
    llvm.add_symbol(symbol, address)


def _external_function(library: ctypes.CDLL, symbol: str, signature: Any) -> Any:
    llvm.add_symbol(symbol, ctypes.cast(getattr(library, symbol), ctypes.c_void_p).value)
    return types.ExternalFunction(symbol, signature)


def _ctypes_function(library: ctypes.CDLL, symbol: str, signature: Any) -> Any:
    function = getattr(library, symbol)
    function.restype = _ctypes_type(signature.return_type)
    function.argtypes = [_ctypes_type(argument) for argument in signature.args]
    return function


def _ctypes_type(numba_type: Any) -> Any:
    if isinstance(numba_type, types.CPointer) or numba_type == types.voidptr:
        return ctypes.c_void_p
    try:
        return _CTYPES[numba_type]
    except KeyError:
        raise TypeError(f"no C type is known for the Numba type {numba_type}") from None


def c_string(text: str) -> NDArray[np.uint8]:
    """Return a text as the bytes of a C string, with its terminating NUL.

    As a module-level constant it can be passed from cached kernels (``NAME.ctypes``) to a
    ``CPointer(uint8)`` parameter.

    Raises
    ------
    ValueError
        When the text contains a NUL itself.
    """
    if "\0" in text:
        raise ValueError("a C string cannot contain NUL")
    characters: NDArray[np.uint8] = np.frombuffer(text.encode() + b"\0", np.uint8).copy()
    return characters
