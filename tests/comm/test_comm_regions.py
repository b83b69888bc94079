"""Shared regions: the contract on the heap, and in memory that ranks of the shm backend share."""

from __future__ import annotations

import numpy as np
import pytest
from rank_jobs import ShmJob

from cobre.comm import AllocationFailed, InvalidCommunicator
from cobre.comm.local import LocalCommunicator
from cobre.comm.regions import HeapRegion
from cobre.errors import ValidationError


@pytest.fixture
def communicator():
    with LocalCommunicator() as owner:
        yield owner


def test_heap_region_goes_through_its_phases(communicator):  # SHR-02, SHR-03, SHR-08
    region = communicator.create_shared_region(5, np.int64)
    assert region.is_leader
    assert len(region) == 5
    with pytest.raises(ValidationError, match="fence"):
        _ = region.array
    region.population_view(1, 3)[:] = 7
    region.writable()[4] = 9
    region.fence()
    assert region.array.tolist() == [0, 7, 7, 0, 9]
    with pytest.raises(ValueError, match="read-only"):
        region.array[0] = 1
    with pytest.raises(ValidationError, match="already fenced"):
        region.population_view(0, 1)
    region.writable()[0] = 1
    region.fence()
    assert region.array[0] == 1


def test_heap_groups_have_one_rank(communicator):  # SHR-05, SHR-06, SHR-07
    group = communicator.split_local()
    group.barrier()
    assert (group.rank, group.size, communicator.is_leader) == (0, 1, True)


@pytest.mark.parametrize(("start", "stop"), [(-1, 2), (0, 6), (3, 2)])
def test_parts_outside_are_refused(communicator, start, stop):
    region = communicator.create_shared_region(5, np.float64)
    with pytest.raises(ValidationError, match="no part of 5"):
        region.population_view(start, stop)


@pytest.mark.parametrize("count", [2**62, 2**80, 10**14])
def test_excessive_sizes(count):
    with pytest.raises(AllocationFailed) as caught:
        HeapRegion.allocate(count, np.float64)
    assert caught.value.requested_bytes == 8 * count


@pytest.mark.parametrize(("count", "dtype"), [(-1, "f8"), (1.5, "f8"), (True, "f8"), (1, "c16"), (1, ">f8")])
def test_impossible_layouts(communicator, count, dtype):
    with pytest.raises(ValidationError):
        communicator.create_shared_region(count, dtype)


def test_empty_region(communicator):
    region = communicator.create_shared_region(0, np.uint8)
    region.fence()
    assert region.array.size == 0


def test_close_releases_in_order(communicator):  # SHR-11
    region = communicator.create_shared_region(3, np.float64)
    region.fence()
    kept = region.array
    communicator.close()
    assert region.is_closed
    for use in (lambda: region.array, lambda: region.target, region.writable, region.fence):
        with pytest.raises(InvalidCommunicator):
            use()
    assert kept.tolist() == [0.0, 0.0, 0.0]
    with pytest.raises(InvalidCommunicator):
        communicator.create_shared_region(1, np.float64)


def test_gather_into_a_heap_region(communicator):
    with communicator.create_shared_region(4, np.float64) as region:
        communicator.gather_shared(np.array([1.0, 2.0]), region, [2], [1])
        region.fence()
        assert region.array.tolist() == [0.0, 1.0, 2.0, 0.0]
        with pytest.raises(ValidationError, match="dtype"):
            communicator.gather_shared(np.zeros(2, np.float32), region, [2], [1])
    foreign = HeapRegion.allocate(4, np.float64)
    with pytest.raises(ValidationError, match="another communicator"):
        communicator.gather_shared(np.zeros(2), foreign, [2], [1])


SHARED = """
from cobre.errors import ValidationError
before = set(os.listdir("/dev/shm"))
with connect() as comm:
    assert comm.is_leader == (rank == 0)
    group = comm.split_local()
    group.barrier()
    assert (group.rank, group.size) == (rank, size)

    with comm.create_shared_region(100, np.int64) as region:
        if comm.is_leader:
            region.writable()[:] = np.arange(100)
        else:
            assert outcome(region.writable).startswith("ValidationError")
        region.fence()
        assert region.array.tolist() == list(range(100))
        assert not region.array.flags.writeable
        for turn in range(20):  # what the leader writes between fences is seen after the next
            if comm.is_leader:
                region.writable()[turn] = -turn
            region.fence()
            assert region.array[turn] == -turn
            region.fence()

    region = comm.create_shared_region(10 * size, np.float32)
    region.population_view(10 * rank, 10 * rank + 10)[:] = rank
    region.fence()
    assert region.array.tolist() == np.repeat(np.arange(size), 10).tolist()

    # memory is one: two regions, alternately, each gather seen by all without a copy
    count = 30_000
    targets = [comm.create_shared_region(count * size, np.float64) for _ in range(2)]
    for target in targets:
        target.fence()
    counts, displs = [count] * size, [count * (size - 1 - r) for r in range(size)]
    for turn in range(50):
        target = targets[turn % 2]
        comm.gather_shared(np.full(count, turn + 100.0 * rank), target, counts, displs)
        expected = np.repeat(turn + 100.0 * np.arange(size)[::-1], count)
        assert target.array.tobytes() == expected.tobytes(), turn

    for wanted in (2**45, 2**62, 2**80):
        assert outcome(lambda: comm.create_shared_region(wanted, np.float64)).startswith("AllocationFailed")
    comm.barrier()  # a refusal does not poison
    comm.create_shared_region(0, np.uint8).fence()
    assert not [n for n in set(os.listdir("/dev/shm")) - before if job["name"][1:] in n]
    kept = region.array
assert region.is_closed and kept[-1] == size - 1
say("done")
"""


@pytest.mark.parametrize("size", [1, 3])
def test_regions_between_processes(size):  # SHR-03 to SHR-05, SHR-08 to SHR-11
    with ShmJob(size, SHARED) as job:
        assert job.start().finish(within_s=120) == {r: ["done"] for r in range(size)}


DIFFERENT = """
for count, dtype in [(10 + rank, np.float64), (10, [np.int64, np.float64][rank])]:
    comm = connect()
    say(outcome(lambda: comm.create_shared_region(count, dtype)))
    comm.close()
"""


def test_ranks_that_ask_for_different_regions_all_fail():  # SHR-10
    with ShmJob(2, DIFFERENT) as job:
        for lines in job.start().finish().values():
            assert len(lines) == 2
            assert all(line.startswith("CollectiveFailed: create_shared_region: ") for line in lines)


KILLED = """
comm = connect()
region = comm.create_shared_region(10, np.float64)
region.fence()
say("ready")
if rank == 0:
    input()
said = outcome(region.fence)
say(said)
said = outcome(lambda: comm.create_shared_region(10, np.float64))
say(said.split(":")[0])
"""


def test_the_leader_is_killed():
    with ShmJob(3, KILLED) as job:
        job.start().wait_for("ready")
        job.kill(0)
        for lines in job.finish(1, 2, within_s=5).values():
            assert lines[1:] == [
                "CollectiveFailed: fence: the process of rank 0 has ended",
                "InvalidCommunicator",
            ]
        assert job.leftovers() == []
