"""The engine as one C function, compiled once and called by address.

Its callers do not contain its code, so that both can be compiled at the same time, by different processes
(:mod:`cobre.sddp.compilation`).
"""

# Kernels are typed by Numba when they are compiled, not by annotations.
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False
from __future__ import annotations

import functools
from typing import Any

import numpy as np
from llvmlite import ir
from numba import cfunc, types
from numba.extending import intrinsic

from cobre.lp.engines.own.core import (
    OPTIMAL,
    CoreStruct,
    CutStruct,
    SavedStruct,
    StoreStruct,
    WorkStruct,
)
from cobre.lp.engines.own.restart import (
    forget_saved,
    restore_state,
    save_state,
    start_from_store,
    store_basis,
)
from cobre.lp.engines.own.simplex import solve
from cobre.native import compile_guard, engine_kernel, struct_at

ENGINE_TAG = "lp-engine"

# What an LP starts from, besides places of saved states (0, 1, ...).
AS_IT_IS = np.int64(-1)
FROM_STORE = np.int64(-2)

# What happens to the state it ends in, besides places of saved states.
FORGET = np.int64(-1)
INTO_STORE = np.int64(-2)

_ARGUMENTS = 8
_SIGNATURE = types.int64(*[types.intp] * 5, *[types.int64] * 3)


@engine_kernel
def _solve(core, work, cuts, saved, store, key, start, end):
    if start == FROM_STORE:
        forget_saved(saved)
        start_from_store(core, work, cuts, store, key)
    elif start >= 0:
        restore_state(core, work, saved, start)
    status = solve(core, work, cuts)
    if end >= 0:
        save_state(core, work, saved, end)
    elif end == INTO_STORE and status == OPTIMAL:
        store_basis(core, work, store, key)
    return np.int64(status)


def _entry(core, work, cuts, saved, store, key, start, end):
    return _solve(
        struct_at(CoreStruct, core),
        struct_at(WorkStruct, work),
        struct_at(CutStruct, cuts),
        struct_at(SavedStruct, saved),
        struct_at(StoreStruct, store),
        key,
        start,
        end,
    )


@functools.cache
def engine_function() -> Any:
    """Compile the engine, or load it; its ``address`` is valid as long as the result is alive."""
    with compile_guard(ENGINE_TAG):
        return cfunc(_SIGNATURE, cache=True)(_entry)


@intrinsic
def solve_at(typing_context, address, core, work, cuts, saved, store, key, start, end):
    """Call the engine at an address; a status of :mod:`core`.

    Parameters
    ----------
    core, work, cuts, saved, store
        Addresses of structs.
    key
        Of the stored basis.
    start, end
        What the LP starts from, and where its state goes: places of saved states, or the names above.
    """

    def generate(context, builder, signature, arguments):
        word = ir.IntType(64)
        function = ir.FunctionType(word, [word] * _ARGUMENTS)
        return builder.call(builder.inttoptr(arguments[0], function.as_pointer()), arguments[1:])

    return types.int64(types.intp, *_SIGNATURE.args), generate
