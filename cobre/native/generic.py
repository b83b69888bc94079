"""Cached functions that are generic over a jitclass, of this package or of another.

A function that takes a jitclass object needs its constructor compiled in every process. One that takes the
constructor's arguments and makes the object inside does not, but has to name the class. It is therefore
written once, over the placeholder name ``Kernel``, and copied for each class that it is wanted for. Such a
copy is cached like any kernel of the module that the function is written in; its name, and with it the file
on disk, carries a digest of what the class is made of.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numba
from numba import njit

from cobre.errors import CobreError
from cobre.native.stamp import module_stamp

PLACEHOLDER = "Kernel"
_DIGEST_DIGITS = 16


@functools.cache
def function_over(template: Callable[..., Any], jitclass: Any) -> Any:
    """Return a cached nopython function: a copy of a plain one, with a jitclass in place of ``Kernel``.

    Parameters
    ----------
    template
        A function at the top level of a module of this package that calls the global name ``Kernel``.
    jitclass
        A class made by :func:`~cobre.native.jitclass.stable_jitclass`.

    Raises
    ------
    CobreError
        Kind ``IncompatibleSettings`` when it is none: code over it would be compiled in every process.
    """
    name = f"{template.__name__}_{jitclass_digest(jitclass)}"
    code = template.__code__
    copy = FunctionType(code, {**template.__globals__, PLACEHOLDER: jitclass}, name)
    copy.__qualname__ = name
    copy.__doc__ = template.__doc__
    return njit(cache=True, nogil=True)(copy)


@functools.cache
def jitclass_digest(jitclass: Any) -> str:
    """Return 16 hexadecimal digits that identify a jitclass and all sources that it is compiled from."""
    if numba.config.DISABLE_JIT:
        return "0" * _DIGEST_DIGITS
    name = getattr(getattr(jitclass, "class_type", None), "name", "")
    label = getattr(jitclass, "__qualname__", repr(jitclass))
    if not name.startswith(f"jitclass.{jitclass.__module__}.{label}."):
        raise CobreError(
            "IncompatibleSettings",
            f"{jitclass.__module__}.{label} has no name that is the same in every process, "
            "so what is compiled for it cannot be kept",
            {"setting": "kernel_class", "value": label},
            "decorate the class by cobre.native.stable_jitclass",
        )
    parts = f"{name}\0{module_stamp(jitclass.__module__)}"
    return hashlib.sha256(parts.encode()).hexdigest()[:_DIGEST_DIGITS]
