"""Cut pool, openings and coefficients in memory that the ranks of a host share."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cobre.comm import AllocationFailed, Communicator
from cobre.comm.regions import SharedRegion
from cobre.errors import Problem
from cobre.lp.arrays import CutPool, LpArrays, cut_pool
from cobre.sddp.ranks.agreement import largest

_SHARED_PARTS = (
    *("matrix_value", "cost", "col_lower", "col_upper", "row_lower", "row_upper"),
    *("opening_value", "fixed_rhs", "noise_value", "state_value", "psi_value", "cost_value"),
)


class SharedPool(NamedTuple):
    """A cut pool, the region that it lies in, and what went wrong with sharing it.

    The region has to live as long as the pool is used.
    """

    pool: CutPool
    region: SharedRegion | None
    warnings: tuple[Problem, ...]


def shared_cut_pool(
    comm: Communicator,
    nodes: int,
    capacity: int,
    states: int,
    added_per_round: int = 1,
    violation_tolerance: float = 0.0,
) -> SharedPool:
    """Make an empty pool, one copy for each host where its ranks can share memory; collective.

    Cut records are gathered straight into it (:mod:`cobre.sddp.kernel.iteration`). Cuts that are loaded, and
    those of a stage with several nodes, are written by every rank, the same bytes to the same place, so that
    no rank has to wait for another. What is small is each rank's own: the number of cuts, where they come
    from and which are active.
    """
    own = cut_pool(nodes, capacity, states, added_per_round, violation_tolerance)
    if largest(comm, comm.split_local().size) == 1:
        return SharedPool(own, None, ())
    try:
        region = comm.create_shared_region(own.record.size, np.float64)
    except AllocationFailed as error:  # on all ranks
        problem = Problem(
            "OutOfMemory",
            f"the cuts cannot be shared, every rank keeps a copy: {error.message}",
            {},
            "give the host more shared memory (/dev/shm), or ask for fewer iterations",
        )
        return SharedPool(own, None, (problem,))
    record = region.target.reshape(own.record.shape)
    return SharedPool(own._replace(record=record, shared=1), region, ())


def share_stage_lps(comm: Communicator, arrays: LpArrays) -> tuple[LpArrays, SharedRegion | None]:
    """Put openings and coefficients, which never change, into one copy for each host; collective.

    Returns
    -------
    (LpArrays, SharedRegion or None)
        The same numbers, and the region that has to live as long as they are used; ``None`` where there is
        nothing to share or no room for it.
    """
    if largest(comm, comm.split_local().size) == 1:
        return arrays, None
    parts = {name: getattr(arrays, name) for name in _SHARED_PARTS}
    size = sum(part.size for part in parts.values())
    try:
        region = comm.create_shared_region(max(size, 1), np.float64)
    except AllocationFailed:  # on all ranks; each keeps a copy
        return arrays, None
    shared: dict[str, Any] = {}
    start = 0
    for name, part in parts.items():
        view = region.target[start : start + part.size]
        if region.is_leader:
            view[:] = part
        shared[name] = view
        start += part.size
    region.fence()
    return arrays._replace(**shared), region


def shared_numbers(comm: Communicator, count: int) -> tuple[NDArray[np.float64], SharedRegion | None]:
    """Return zeros, one copy for each host where its ranks can share memory; collective.

    Ranks that share them must write the same numbers to the same places.

    Returns
    -------
    (float64[count], SharedRegion or None)
        And the region that has to live as long as they are used, ``None`` where there is none.
    """
    if largest(comm, comm.split_local().size) == 1:
        return np.zeros(count), None
    try:
        region = comm.create_shared_region(max(count, 1), np.float64)
    except AllocationFailed:  # on all ranks; each keeps a copy
        return np.zeros(count), None
    return region.target[:count], region
