"""Collectives of the tcp backend between real processes."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from tcp_jobs import TcpJob

COLLECTIVES = """
def check(comm, dtype, count):
    # regions in the opposite order of ranks with gaps, counts that differ, one rank without elements
    counts = [0 if r == 1 else count + r for r in range(size)]
    displs = [2 + sum(counts[r + 1:]) + 2 * (size - 1 - r) for r in range(size)]
    parts = [(np.arange(counts[r]) * 7 + 31 * r).astype(dtype) for r in range(size)]
    recv = np.full(sum(counts) + 2 * size + 2, 99, dtype)
    expected = recv.copy()
    for r in range(size):
        expected[displs[r]:displs[r] + counts[r]] = parts[r]
    comm.allgatherv(parts[rank], recv, counts, displs)
    assert recv.tobytes() == expected.tobytes(), (dtype, count)

    values = [(np.arange(count) * (r + 3) % 101).astype(dtype) for r in range(size)]
    folds = {ReduceOp.SUM: np.add, ReduceOp.MIN: np.minimum, ReduceOp.MAX: np.maximum}
    if dtype.kind in "iu":
        folds[ReduceOp.BITWISE_OR] = np.bitwise_or
    for op, fold in folds.items():
        expected = values[0].copy()
        for r in range(1, size):
            expected = fold(expected, values[r], dtype=dtype)
        recv = np.full(count, 99, dtype)
        comm.allreduce(values[rank], recv, op)
        assert recv.tobytes() == expected.tobytes(), (dtype, count, op)

    for root in range(size):
        buf = values[root].copy() if rank == root else np.full(count, 99, dtype)
        comm.broadcast(buf, root)
        assert buf.tobytes() == values[root].tobytes(), (dtype, count, root)

with connect() as comm:
    topology = comm.topology()
    assert (topology.backend, topology.world_size) == ("tcp", size)
    assert topology.hosts[0].ranks == tuple(range(size)) and topology.num_hosts == 1
    assert comm.is_leader and comm.split_local().size == 1  # SHR-05
    for dtype in map(np.dtype, job.get("dtypes", ["float64"])):
        # through scratch memory, header first, more than fits in a socket, and in several rounds of folding
        for count in (1, 100, 5000, 40_001, 150_001):
            check(comm, dtype, count)
        comm.barrier()
    empty = np.zeros(0)
    comm.allgatherv(empty, np.zeros(3), [0] * size, [0] * size)
    comm.broadcast(empty, size - 1)
    for holder in range(size):
        nan = np.array([np.nan if rank == holder else 1.0, 2.0])
        for op in (ReduceOp.MIN, ReduceOp.MAX):  # COM-22
            recv = np.zeros(2)
            comm.allreduce(nan, recv, op)
            assert np.isnan(recv[0]) and recv[1] == 2.0
    region = comm.create_shared_region(3 * size, np.float64)
    comm.gather_shared(np.full(3, float(rank)), region, [3] * size, offsets([3] * size))
    region.fence()
    assert region.array.tolist() == np.repeat(np.arange(float(size)), 3).tolist()
say("done")
"""


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_collectives(size):  # COM-11, COM-12, COM-21, COM-22, COM-30, TCP-07 to TCP-10
    with TcpJob(size, COLLECTIVES) as job:
        assert job.start().finish(within_s=200) == {r: ["done"] for r in range(size)}


def test_collectives_of_all_types():  # COM-03
    types = "job['dtypes'] = ['float32', 'int32', 'int64', 'uint8', 'uint32', 'uint64']\n"
    with TcpJob(3, types + COLLECTIVES) as job:
        assert job.start().finish(within_s=280) == {r: ["done"] for r in range(3)}


ROUNDING = """
with connect() as comm:
    values = [np.random.default_rng(r).standard_normal(50_000) * 10.0**r for r in range(size)]
    total = np.zeros(50_000)
    comm.allreduce(values[rank], total, ReduceOp.SUM)
    expected = values[0].copy()
    for r in range(1, size):
        expected += values[r]
    assert total.tobytes() == expected.tobytes()
say("done")
"""


def test_sums_are_folded_by_rank():  # COM-21, TCP-08
    with TcpJob(4, ROUNDING) as job:
        assert job.start().finish() == {r: ["done"] for r in range(4)}


BACK_TO_BACK = """
with connect() as comm:
    counts, displs = np.full(size, 3), np.arange(size) * 3
    base = np.repeat(np.arange(size) * 10, 3) + np.tile(np.arange(3), size)
    recv = np.zeros(3 * size, np.int64)
    for turn in range(10_000):
        if rank == 1 and turn % 100 == 0:
            time.sleep(0.002)  # the slow one
        comm.allgatherv(turn * 100 + rank * 10 + np.arange(3), recv, counts, displs)
        assert (recv == turn * 100 + base).all(), (turn, recv)
say("done")
"""


@pytest.mark.parametrize("size", [2, 3])
def test_many_gathers_with_a_slow_rank(size):  # TST-60
    with TcpJob(size, BACK_TO_BACK) as job:
        assert job.start().finish(within_s=200) == {r: ["done"] for r in range(size)}


LEFTOVERS = """
def descriptors():
    return sorted(os.listdir("/proc/self/fd"))

before = descriptors()
listener = job.get("listener")
for turn in range(3):
    comm = connect() if turn == 0 else connect(listener_fd=None, port=job["port"])
    comm.barrier()
    assert any(thread.name.startswith("cobre-tcp") for thread in threading.enumerate())
    comm.close()
    comm.close()
    assert threading.active_count() == 1
    assert outcome(comm.barrier).startswith("InvalidCommunicator")
    assert (comm.rank, comm.size) == (rank, size)
if rank == 0:
    before.remove(str(listener))
assert descriptors() == before, (before, descriptors())
say("done")
"""


def test_nothing_is_left_after_close_and_the_port_is_free_again():  # TCP-12
    with TcpJob(3, LEFTOVERS) as job:
        assert job.start().finish() == {r: ["done"] for r in range(3)}


UNCLOSED = """
comm = connect()
comm.barrier()
say("done")
"""


def test_a_communicator_that_nobody_closes_ends_with_the_process():
    with TcpJob(2, UNCLOSED) as job:
        assert job.start().finish() == {r: ["done"] for r in range(2)}


CACHED = """
import numpy as np
from cobre.comm import tcp
from cobre.comm.config import TcpConfig
from cobre.native import kernel_cache_stats
with tcp.TcpCommunicator(TcpConfig("localhost", 0, 1)) as comm:
    comm.barrier()
    comm.broadcast(np.zeros(1), 0)
print(*kernel_cache_stats(tcp._barrier), *kernel_cache_stats(tcp._broadcast))
"""


def test_a_second_process_compiles_nothing():
    def run() -> str:
        done = subprocess.run(
            [sys.executable, "-c", CACHED], env=os.environ, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    run()
    assert run() == "1 0 1 0"
