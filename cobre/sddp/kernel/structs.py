"""The arrays of a study as structs that kernels find by address.

Python has them as NamedTuples of more than a hundred arrays. Taking these over costs seconds of compilation
for each kernel that does it, and the iteration is compiled for each communicator. So one small kernel makes
the structs, and all others take an array of their addresses.
"""

# Kernels are typed by Numba when they are compiled, not by annotations.
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from numba import njit
from numpy.typing import NDArray

from cobre.lp.arrays import (
    BasisStore,
    BasisStruct,
    CutPool,
    LpArrays,
    LpStruct,
    LpWorkspace,
    PoolStruct,
    WorkspaceStruct,
)
from cobre.native import compile_for, keep_struct, release_struct
from cobre.sddp.kernel.buffers import BuffersStruct, IterationBuffers
from cobre.sddp.kernel.graph import GraphArrays, GraphStruct

# Places in an array of addresses.
LP = 0
GRAPH = 1
POOL = 2
WORKSPACE = 3
BASIS = 4
BUFFERS = 5
STRUCTS = 6


@contextmanager
def study_structs(
    lp: LpArrays,
    graph: GraphArrays,
    pool: CutPool,
    work: LpWorkspace,
    basis: BasisStore,
    buffers: IterationBuffers,
) -> Iterator[NDArray[np.intp]]:
    """Give the addresses of the structs of a study, intp[STRUCTS]; they are valid inside the block."""
    arrays = (lp, graph, pool, work, basis, buffers)
    addresses = np.zeros(STRUCTS, np.intp)
    compile_for(_make, "structs", *arrays, addresses)
    compile_for(_release, "structs-end", addresses)
    _make(*arrays, addresses)
    try:
        yield addresses
    finally:
        _release(addresses)


@njit(cache=True)
def _make(lp, graph, pool, work, basis, buffers, addresses):
    addresses[LP] = keep_struct(LpStruct(lp))
    addresses[GRAPH] = keep_struct(GraphStruct(graph))
    addresses[POOL] = keep_struct(PoolStruct(pool))
    addresses[WORKSPACE] = keep_struct(WorkspaceStruct(work))
    addresses[BASIS] = keep_struct(BasisStruct(basis))
    addresses[BUFFERS] = keep_struct(BuffersStruct(buffers))


@njit(cache=True)
def _release(addresses):
    release_struct(LpStruct, addresses[LP])
    release_struct(GraphStruct, addresses[GRAPH])
    release_struct(PoolStruct, addresses[POOL])
    release_struct(WorkspaceStruct, addresses[WORKSPACE])
    release_struct(BasisStruct, addresses[BASIS])
    release_struct(BuffersStruct, addresses[BUFFERS])
