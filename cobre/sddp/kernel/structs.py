"""The arrays of a study as structs that kernels find by address.

Python has them as NamedTuples of more than a hundred arrays. Taking these over costs seconds of compilation
for each kernel that does it, so kernels take an array of addresses instead.
"""

from __future__ import annotations

import numpy as np

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
from cobre.lp.engines.own.trial import OwnArrays, OwnStruct
from cobre.native import HeldStruct
from cobre.sddp.kernel.buffers import BuffersStruct, IterationBuffers
from cobre.sddp.kernel.graph import GraphArrays, GraphStruct

# Places in an array of addresses.
LP = 0
GRAPH = 1
POOL = 2
WORKSPACE = 3
BASIS = 4
BUFFERS = 5
OWN = 6
STRUCTS = 7


class StudyStructs:
    """The structs of a study; ``addresses`` are valid as long as this object lives, intp[STRUCTS]."""

    def __init__(
        self,
        lp: LpArrays,
        graph: GraphArrays,
        pool: CutPool,
        work: LpWorkspace,
        basis: BasisStore,
        buffers: IterationBuffers,
        own: OwnArrays,
    ) -> None:
        self._held = {
            LP: HeldStruct(LpStruct, lp),
            GRAPH: HeldStruct(GraphStruct, graph),
            POOL: HeldStruct(PoolStruct, pool),
            WORKSPACE: HeldStruct(WorkspaceStruct, work),
            BASIS: HeldStruct(BasisStruct, basis),
            BUFFERS: HeldStruct(BuffersStruct, buffers),
            OWN: HeldStruct(OwnStruct, own),
        }
        self.addresses = np.array([self._held[place].address for place in range(STRUCTS)], np.intp)
