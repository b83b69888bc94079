"""How kernels are compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from numba import njit

_Function = TypeVar("_Function", bound=Callable[..., Any])


def inner_kernel(function: _Function) -> _Function:
    """Compile a function that only other kernels call, never Python.

    Releases the GIL like its callers. It gets no wrapper for calls from Python, which for arguments made of
    many arrays costs more to compile than the function itself, and no cache file of its own: it becomes part
    of the cached kernels that call it.
    """
    compiled: _Function = njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)(function)
    return compiled
