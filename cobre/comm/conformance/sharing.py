"""Checks of shared regions and of gathers into them."""

from __future__ import annotations

import os
from functools import partial

import numpy as np

from cobre.comm.conformance.catalogue import Case, case_check, expect, same
from cobre.comm.errors import AllocationFailed, CollectiveFailed, InvalidBufferSize, InvalidCommunicator
from cobre.comm.regions import SharedRegion
from cobre.errors import ValidationError


def _require_closed(region: SharedRegion) -> None:
    expect(InvalidCommunicator, lambda: region.array)


@case_check("SHR-02", "SHR-03", "SHR-04", both_faces=False)
def _shared_region_lifecycle(case: Case) -> None:
    with case.owner.create_shared_region(100, np.int64) as region:
        assert len(region) == 100
        if region.is_leader:
            region.writable()[:] = np.arange(100)
        region.fence()
        same(region.array, np.arange(100))


@case_check("SHR-03", both_faces=False)
def _shared_region_zeroed(case: Case) -> None:
    # a size that no page divides, and a second region, which may reuse the memory of the first
    for dtype in (np.uint8, np.float64):
        with case.owner.create_shared_region(12_345, dtype) as region:
            region.fence()
            assert not region.array.any()
            case.owner.barrier()
            if region.is_leader:
                region.writable()[:] = 7
            region.fence()
            assert (region.array == 7).all()


@case_check("SHR-03", "SHR-07", both_faces=False)
def _shared_region_is_leader(case: Case) -> None:
    leaders = np.zeros(case.owner.size, np.uint8)
    counts = [1] * case.owner.size
    mine = np.array([case.owner.is_leader], np.uint8)
    case.owner.allgatherv(mine, leaders, counts, list(range(case.owner.size)))
    wanted = 1 if case.traits.shares_regions else case.owner.size
    assert leaders.sum() == wanted, f"{leaders.sum()} leaders instead of {wanted}"
    with case.owner.create_shared_region(1, np.float64) as region:
        assert region.is_leader == case.owner.is_leader


@case_check("SHR-05", "SHR-06", "SHR-09", both_faces=False)
def _split_local_rank_size(case: Case) -> None:
    group = case.owner.split_local()
    if case.traits.shares_regions:
        assert (group.rank, group.size) == (case.owner.rank, case.owner.size)
    else:
        assert (group.rank, group.size) == (0, 1)
    assert (group.rank == 0) == case.owner.is_leader
    group.barrier()
    group.barrier()


@case_check("SHR-10", "SHR-11", both_faces=False)
def _shared_region_drop(case: Case) -> None:
    for turn in range(5):
        region = case.owner.create_shared_region(1000, np.float64)
        if region.is_leader:
            region.writable()[:] = turn
        region.fence()
        kept = region.array
        assert kept[999] == turn
        region.close()
        region.close()
        _require_closed(region)
        assert kept[0] == turn, "memory that is still looked at went away"
    case.owner.barrier()


@case_check("SHR-08", both_faces=False)
def _shared_region_population(case: Case) -> None:
    group = case.owner.split_local()
    share = 100
    with case.owner.create_shared_region(share * group.size, np.float64) as region:
        start = share * group.rank
        region.population_view(start, start + share)[:] = np.arange(start, start + share)
        region.fence()
        same(region.array, np.arange(float(share * group.size)))
        expect(ValidationError, lambda: region.population_view(0, 1))


@case_check("SHR-03", "SHR-08", both_faces=False)
def _shared_region_access(case: Case) -> None:
    with case.owner.create_shared_region(4, np.float64) as region:
        expect(ValidationError, lambda: region.array)
        expect(ValidationError, lambda: region.population_view(0, 5))
        expect(ValidationError, lambda: region.population_view(-1, 2))
        if not region.is_leader:
            expect(ValidationError, region.writable)
        region.fence()
        assert not region.array.flags.writeable
        expect(ValueError, lambda: region.array.__setitem__(0, 1.0))


@case_check("SHR-10", "ERR-01", both_faces=False)
def _shared_region_excessive_size(case: Case) -> None:
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for count in (2**62, 2**60, 10 * physical):
        create = partial(case.owner.create_shared_region, count, np.float64)
        expect(AllocationFailed, create, requested_bytes=8 * count)
    expect(ValidationError, lambda: case.owner.create_shared_region(-1, np.float64))
    expect(ValidationError, lambda: case.owner.create_shared_region(1, np.complex128))
    case.owner.barrier()  # none of this harms the communicator
    with case.owner.create_shared_region(8, np.float64) as region:
        region.fence()
        assert not region.array.any()


@case_check("SHR-10", both_faces=False)
def _shared_region_empty(case: Case) -> None:
    with case.owner.create_shared_region(0, np.float64) as region:
        region.fence()
        assert len(region.array) == 0


@case_check("COM-42", "SHR-10", smallest=2, needs=("detects_divergence", "shares_regions"), both_faces=False)
def _shared_region_divergence(case: Case) -> None:
    count = 10 if case.owner.rank == 0 else 11
    expect(CollectiveFailed, lambda: case.owner.create_shared_region(count, np.float64))


@case_check("SHR-11", "ERR-01", both_faces=False)
def _shared_region_after_close(case: Case) -> None:
    region = case.owner.create_shared_region(10, np.float64)
    region.fence()
    case.owner.close()
    expect(InvalidCommunicator, lambda: region.array)
    expect(InvalidCommunicator, lambda: case.owner.create_shared_region(1, np.float64))
    region.close()


@case_check("COM-11", "COM-12", "SHR-05")
def _gather_shared(case: Case) -> None:
    size, rank = case.owner.size, case.owner.rank
    counts = [r + 1 for r in range(size)]
    displs = [1 + sum(counts[r + 1 :]) + (size - 1 - r) for r in range(size)]  # reversed, with gaps
    expected = np.zeros(sum(counts) + size + 1)
    for r in range(size):
        expected[displs[r] : displs[r] + counts[r]] = 10.0 + r
    with case.owner.create_shared_region(len(expected), np.float64) as region:
        region.fence()
        case.face.gather_shared(np.full(counts[rank], 10.0 + rank), region, counts, displs)
        same(region.array, expected)
        case.owner.barrier()


@case_check("COM-11", "COM-13", "SHR-05", "TST-60")
def _gather_shared_alternating(case: Case) -> None:
    size, rank = case.owner.size, case.owner.rank
    counts, displs = [3] * size, [3 * r for r in range(size)]
    regions = [case.owner.create_shared_region(3 * size, np.int64) for _ in range(2)]
    for region in regions:
        region.fence()
    for turn in range(300):
        region = regions[turn % 2]
        case.face.gather_shared(np.full(3, 10 * turn + rank), region, counts, displs)
        same(region.array, np.repeat(10 * turn + np.arange(size), 3))
    for region in regions:
        region.close()


@case_check("COM-10", "COM-14")
def _gather_shared_too_small(case: Case) -> None:
    size = case.owner.size
    with case.owner.create_shared_region(2 * size - 1, np.float64) as region:
        region.fence()
        expect(
            InvalidBufferSize,
            lambda: case.face.gather_shared(np.zeros(2), region, [2] * size, [2 * r for r in range(size)]),
            expected=2 * size,
            actual=2 * size - 1,
        )
        case.owner.barrier()
