"""The seam to machine code: cached kernels, C symbols by name, atomics, a clock, stable jitclass names.

Importing this package makes Numba keep the package's kernels in one private directory, stamped by the
sources they are made of (:mod:`cobre.native.cache`, :mod:`cobre.native.stamp`). Every module with an
``@njit(cache=True)`` kernel therefore imports from here before it decorates.
"""

from cobre.native.atomics import atomic_fetch_add
from cobre.native.cache import cache_directory, install_cache_locator
from cobre.native.clock import monotonic_ns
from cobre.native.generic import function_over
from cobre.native.guard import compile_for, compile_guard, kernel_cache_stats
from cobre.native.jitclass import HeldStruct, array_struct, stable_jitclass, struct_at
from cobre.native.kernels import engine_kernel, inner_kernel
from cobre.native.stamp import package_stamp
from cobre.native.symbols import bind_address, bind_library, c_string

__all__ = [
    "HeldStruct",
    "array_struct",
    "atomic_fetch_add",
    "bind_address",
    "bind_library",
    "c_string",
    "cache_directory",
    "compile_for",
    "compile_guard",
    "engine_kernel",
    "function_over",
    "inner_kernel",
    "kernel_cache_stats",
    "monotonic_ns",
    "package_stamp",
    "stable_jitclass",
    "struct_at",
]

install_cache_locator()
