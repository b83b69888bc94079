"""Collectives of the shm backend between real processes, by way of lines, slots and direct reads."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest
from shm_jobs import Job

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

with connect(capacity_bytes=65536 * size) as comm:
    for dtype in map(np.dtype, job["dtypes"] if "dtypes" in job else ["float64"]):
        # in the line, in one slot, in rounds of slots, read directly from the peers
        for count in (1, 100 // dtype.itemsize, 3000, 33_000 // dtype.itemsize, 300_000 // dtype.itemsize):
            check(comm, dtype, count)
        comm.barrier()
    empty = np.zeros(0)
    comm.allgatherv(empty, np.zeros(3), [0] * size, [0] * size)
    comm.broadcast(empty, size - 1)
    nan = np.array([np.nan if rank == size - 1 else 1.0, 2.0])
    for op in (ReduceOp.MIN, ReduceOp.MAX):  # COM-22
        recv = np.zeros(2)
        comm.allreduce(nan, recv, op)
        assert np.isnan(recv[0]) and recv[1] == 2.0
say("done")
"""


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_collectives(size):  # COM-11, COM-12, COM-21, COM-22, COM-30, SHM-06 to SHM-10
    with Job(size, COLLECTIVES) as job:
        assert job.start().finish(within_s=200) == {r: ["done"] for r in range(size)}
        assert job.leftovers() == []


def test_collectives_of_other_types():  # COM-03; the conformance suite has all of them
    types = "job['dtypes'] = ['float32', 'uint8']\n"
    with Job(2, types + COLLECTIVES) as job:
        assert job.start().finish(within_s=280) == {r: ["done"] for r in range(2)}


FORBIDDEN = """
from cobre.comm.shm_layout import S_DIRECT_BYTES, S_POLLS
values = [np.arange(50_000.0) + 1000 * r for r in range(size)]

def gather(comm):
    recv = np.zeros(size * 50_000)
    comm.allgatherv(values[rank], recv, [50_000] * size, offsets([50_000] * size))
    assert recv.tobytes() == np.concatenate(values).tobytes()

def broadcast(comm):
    buf = values[rank].copy()
    comm.broadcast(buf, 0)
    assert buf.tobytes() == values[0].tobytes()

with connect() as comm:
    state = comm.kernel_arguments[0]
    if rank == job["who"]:  # it cannot reach that peer's memory, as under a system that forbids it
        state[S_POLLS + size + job["whom"]] = 2**30
    for call in job["calls"] * 2:
        globals()[call](comm)
        say("direct" if state[S_DIRECT_BYTES] else "slots")
"""


@pytest.mark.parametrize(
    ("calls", "who", "whom"),
    [(["gather", "broadcast"], 1, 0), (["broadcast", "gather"], 1, 0), (["broadcast", "gather"], 0, 2)],
    ids=["gather", "reader", "root"],
)
def test_large_payloads_where_the_memory_of_a_peer_is_out_of_reach(calls, who, whom):
    settings = f"job.update(calls={calls}, who={who}, whom={whom})\n"
    with Job(3, settings + FORBIDDEN) as job:
        assert job.start().finish(within_s=200) == {r: ["slots"] * 4 for r in range(3)}


SLOTS_ONLY = """
from cobre.comm.shm_layout import S_DIRECT_BYTES
with connect(capacity_bytes=1) as comm:
    comm.kernel_arguments[0][S_DIRECT_BYTES] = 0  # the same on all ranks: large parts go through the slots
    send = np.arange(60_000.0) + 1000 * rank
    recv = np.zeros(size * len(send))
    comm.allgatherv(send, recv, [len(send)] * size, offsets([len(send)] * size))
    assert recv.tobytes() == np.concatenate([np.arange(60_000.0) + 1000 * r for r in range(size)]).tobytes()
    buf = send.copy()
    comm.broadcast(buf, 2)
    assert buf.tobytes() == (np.arange(60_000.0) + 2000).tobytes()
say("done")
"""


def test_payloads_larger_than_the_segment():  # SHM-10
    with Job(3, SLOTS_ONLY) as job:
        assert job.start().finish() == {r: ["done"] for r in range(3)}


SLOW_RANK = """
rng = np.random.default_rng(rank)
with connect() as comm:
    sizes = [1, 14, 15, 16, 600]  # around what fits into a line, and in slots
    for turn in range(10_000):
        count = sizes[turn % len(sizes)]
        if rank == 1 and turn % 50 == 0:
            time.sleep(0.002)
        send = np.full(count, turn * 10 + rank)
        recv = np.zeros(size * count, np.int64)
        comm.allgatherv(send, recv, [count] * size, offsets([count] * size))
        if (recv != np.repeat(turn * 10 + np.arange(size), count)).any():
            say("corrupt", turn, recv)
            break
say("done")
"""


@pytest.mark.parametrize("size", [2, 3])
def test_ten_thousand_gathers_with_a_slow_rank(size):  # TST-60, SHM-09
    with Job(size, SLOW_RANK) as job:
        assert job.start().finish(within_s=200) == {r: ["done"] for r in range(size)}


CROWDED = """
from cobre.comm.shm_layout import S_LOOKS
cpus = os.sched_getaffinity(0)
os.sched_setaffinity(0, {min(cpus)} if rank < 2 else {max(cpus)})
with connect() as comm:
    for _ in range(300):  # more than a line tells of the number of a meeting
        comm.barrier()
    say("looks" if comm.kernel_arguments[0][S_LOOKS] else "yields")
"""


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs")
def test_ranks_that_share_a_cpu_yield_it_at_once():
    with Job(3, CROWDED) as job:
        assert job.start().finish() == {0: ["yields"], 1: ["yields"], 2: ["looks"]}


DIVERGENCE = """
cases = [
    lambda c: c.barrier() if rank else c.broadcast(np.zeros(1), 0),
    lambda c: c.broadcast(np.zeros(2, np.int64 if rank else np.float64), 0),
    lambda c: c.broadcast(np.zeros(3 + rank), 0),
    lambda c: c.broadcast(np.zeros(3), rank),
    lambda c: c.allreduce(np.zeros(2 + rank), np.zeros(2 + rank), ReduceOp.SUM),
    lambda c: c.allreduce(np.zeros(2), np.zeros(2), ReduceOp.SUM if rank else ReduceOp.MAX),
    lambda c: c.allgatherv(np.zeros(1), np.zeros(9), [1, 1 + rank, 1], [0, 2, 6]) if rank != 1
              else c.allgatherv(np.zeros(2), np.zeros(9), [1, 2, 1], [0, 2, 6]),
    lambda c: c.close() if rank else c.barrier(),
]
for number, case in enumerate(cases):
    comm = connect(f"_{number}")
    say(number, outcome(lambda: case(comm)))
    say(number, "then", outcome(comm.barrier))
    comm.close()
"""


def test_ranks_that_diverge_all_fail():  # COM-42, COM-43
    with Job(3, DIVERGENCE) as job:
        for rank, lines in job.start().finish(within_s=120).items():
            first, then = lines[::2], lines[1::2]
            assert len(first) == 8, lines
            for number, line in enumerate(first):
                # rank 2 and rank 1 agree in some cases, and blame rank 0
                assert line.startswith(f"{number} CollectiveFailed: "), (rank, lines)
                assert "called" in line or "gave up" in line, (rank, lines)
            assert all("then InvalidCommunicator: " in line for line in then), (rank, lines)


CACHED = """
import shm_job_kernels as kernels
from cobre.native import kernel_cache_stats
with connect() as comm:
    status, total = kernels.ring(comm.kernel, np.array([rank + 1.0]), np.zeros(1))
    assert (status, total) == (0, 3.0)
    say(*kernel_cache_stats(kernels.ring))
"""

RING = """
from numba import njit
@njit(cache=True, nogil=True)
def ring(kernel, send, recv):
    status = kernel.barrier()
    for _ in range(10):
        status = kernel.allreduce(send, recv, 0)
        if status != 0:
            break
    return status, recv[0]
"""


def test_functions_that_take_the_kernel_are_cached(tmp_path, monkeypatch):
    (tmp_path / "shm_job_kernels.py").write_text(RING)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with Job(2, CACHED) as job:
        compiled = job.start().finish()
    with Job(2, CACHED) as job:
        loaded = job.start().finish()
    assert ["0 1"] in compiled.values()
    assert loaded == {0: ["1 0"], 1: ["1 0"]}


def test_nothing_is_left_open():
    body = """
    before = set(os.listdir("/proc/self/fd"))
    for number in range(3):
        comm = connect(f"_{number}")
        region = comm.create_shared_region(10, np.float64)
        region.fence()
        comm.barrier()
        comm.close()
        comm.close()
        assert (comm.rank, comm.size) == (rank, size)
        assert comm.topology().hosts[0].ranks == (0, 1)
        say(outcome(comm.barrier).split(":")[0], outcome(lambda: comm.kernel).split(":")[0])
    say(len(set(os.listdir("/proc/self/fd")) - before))
    """
    with Job(2, textwrap.dedent(body)) as job:
        lines = job.start().finish()
    assert lines[0] == ["InvalidCommunicator InvalidCommunicator"] * 3 + ["0"]
    assert lines[1] == lines[0]


def test_without_the_jit_the_backend_is_refused():
    code = (
        "from cobre.comm.config import ShmConfig\nfrom cobre.comm.shm import ShmCommunicator\n"
        "from cobre.comm import InitializationFailed\n"
        "try:\n    ShmCommunicator(ShmConfig('/cobre_test_nojit', 0, 1))\n"
        "except InitializationFailed as error:\n    print(error)\n"
    )
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    run = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    assert "NUMBA_DISABLE_JIT" in run.stdout
