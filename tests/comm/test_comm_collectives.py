"""Collectives of shm and tcp between real processes: what the conformance suite does not reach.

That is every way a payload can take through a backend, ranks that are out of step in large payloads, what is
left after closing, and what is kept of compiled code.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from rank_jobs import ShmJob, TcpJob, each_backend

PAYLOADS = """
def values_of(r, dtype, count):
    generator = np.random.default_rng((r, count))
    if dtype.kind == "f":
        return generator.standard_normal(count).astype(dtype) * 10.0**r
    return generator.integers(0, 120, count).astype(dtype)

def check(comm, dtype, count):
    # regions in the opposite order of ranks with gaps, counts that differ, one rank without elements
    counts = [0 if r == 1 else count + r for r in range(size)]
    displs = [2 + sum(counts[r + 1:]) + 2 * (size - 1 - r) for r in range(size)]
    parts = [values_of(r, dtype, counts[r]) for r in range(size)]
    recv = np.full(sum(counts) + 2 * size + 2, 99, dtype)
    expected = recv.copy()
    for r in range(size):
        expected[displs[r]:displs[r] + counts[r]] = parts[r]
    comm.allgatherv(parts[rank], recv, counts, displs)
    assert recv.tobytes() == expected.tobytes(), (dtype, count)

    values = [values_of(r, dtype, count) for r in range(size)]
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

def check_slow_rank(comm, sizes):
    for turn in range(1000):
        count = sizes[turn % len(sizes)]
        if rank == 1 and turn % 50 == 0:
            time.sleep(0.002)
        recv = np.zeros(size * count, np.int64)
        comm.allgatherv(np.full(count, turn * 10 + rank), recv, [count] * size, offsets([count] * size))
        assert (recv == np.repeat(turn * 10 + np.arange(size), count)).all(), (turn, recv)

with connect() as comm:
    for dtype in map(np.dtype, ["float64", "float32", "uint8"]):
        for octets in OCTETS:
            check(comm, dtype, octets // dtype.itemsize)
    empty = np.zeros(0)
    comm.allgatherv(empty, np.zeros(3), [0] * size, [0] * size)
    comm.broadcast(empty, size - 1)
    check_slow_rank(comm, SLOW_SIZES)
say("done")
"""

# In the line, in one slot, in rounds of slots, read directly from the peers; turns around a full line.
SHM_SIZES = "OCTETS, SLOW_SIZES = (8, 120, 24_000, 33_000, 300_000), [1, 14, 15, 16, 600]\n"

# Through scratch memory, header first, more than fits in a socket, and in several rounds of folding.
TCP_SIZES = "OCTETS, SLOW_SIZES = (8, 800, 40_000, 320_008, 1_200_008), [1, 3, 600]\n"


def test_shm_payloads():  # COM-03, COM-11, COM-12, COM-21, COM-30, SHM-06 to SHM-10, TST-60
    with ShmJob(3, SHM_SIZES + PAYLOADS, capacity_bytes=3 * 65536) as job:
        assert job.start().finish(within_s=250) == {r: ["done"] for r in range(3)}
        assert job.leftovers() == []


def test_tcp_payloads():  # COM-03, COM-11, COM-12, COM-21, COM-30, TCP-07 to TCP-10, TST-60
    with TcpJob(3, TCP_SIZES + PAYLOADS) as job:
        assert job.start().finish(within_s=250) == {r: ["done"] for r in range(3)}


FORBIDDEN = """
from cobre.comm.shm.layout import S_DIRECT_BYTES, S_POLLS, S_SPREAD
values = [np.arange(50_000.0) + 1000 * r for r in range(size)]

def gather(comm):
    recv = np.zeros(size * 50_000)
    comm.allgatherv(values[rank], recv, [50_000] * size, offsets([50_000] * size))
    assert recv.tobytes() == np.concatenate(values).tobytes()

def broadcast(comm):
    buf = values[rank].copy()
    comm.broadcast(buf, 0)
    assert buf.tobytes() == values[0].tobytes()

for spread, calls, who, whom in CASES:
    with connect() as comm:
        state = comm.kernel_arguments[0]
        state[S_SPREAD] = spread  # whether each rank has a CPU of its own, whatever this machine has
        if rank == who:  # it cannot reach that peer's memory, as under a system that forbids it
            state[S_POLLS + size + whom] = 2**30
        for call in calls * 2:
            globals()[call](comm)
            say("direct" if state[S_DIRECT_BYTES] else "slots")
with connect(capacity_bytes=1) as comm:
    comm.kernel_arguments[0][S_DIRECT_BYTES] = 0  # the same on all ranks: large parts go through the slots
    gather(comm)
    broadcast(comm)
say("done")
"""


def test_shm_payloads_where_the_memory_of_a_peer_is_out_of_reach():  # SHM-10
    cases = [
        (1, ["gather", "broadcast"], 1, 0),
        (1, ["broadcast", "gather"], 1, 0),
        (1, ["broadcast", "gather"], 0, 2),
        (0, ["broadcast", "gather"], 1, 0),
    ]
    # A root is read and reads nothing; ranks that take turns on a CPU broadcast through the slots. In both
    # cases the first gather finds out.
    taken = ["slots"] * 8 + (["direct"] + ["slots"] * 3) * 2
    with ShmJob(3, f"CASES = {cases!r}\n" + FORBIDDEN) as job:
        assert job.start().finish(within_s=200) == {r: [*taken, "done"] for r in range(3)}


CROWDED = """
from cobre.comm.shm.layout import S_LOOKS
cpus = os.sched_getaffinity(0)
os.sched_setaffinity(0, {min(cpus)} if rank < 2 else {max(cpus)})
with connect() as comm:
    for _ in range(300):  # more than a line tells of the number of a meeting
        comm.barrier()
    say("looks" if comm.kernel_arguments[0][S_LOOKS] else "yields")
"""


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs")
def test_ranks_that_share_a_cpu_yield_it_at_once():
    with ShmJob(3, CROWDED) as job:
        assert job.start().finish() == {0: ["yields"], 1: ["yields"], 2: ["looks"]}


CALLS = {
    "barrier": "comm.barrier()",
    "reduce": "comm.allreduce(np.zeros(4), np.zeros(4), ReduceOp.SUM)",
    "other operation": "comm.allreduce(np.zeros(4), np.zeros(4), ReduceOp.MAX)",
    "other dtype": "comm.allreduce(np.zeros(4, np.int64), np.zeros(4, np.int64), ReduceOp.SUM)",
    "other length": "comm.allreduce(np.zeros(5), np.zeros(5), ReduceOp.SUM)",
    "gather": "comm.allgatherv(np.zeros(2), np.zeros(6), [2, 2, 2], [0, 2, 4])",
    "large gather": "comm.allgatherv(np.zeros(900_000), np.zeros(2_700_000), [900_000] * 3, "
    "offsets([900_000] * 3))",
    "other counts": "comm.allgatherv(np.zeros(2), np.zeros(6), [2, 2, 2][:rank] + [2] + [1] * (2 - rank), "
    "[0, 2, 4])",
    "broadcast": "comm.broadcast(np.zeros(3), 0)",
    "large broadcast": "comm.broadcast(np.zeros(900_000), 0)",
    "other root": "comm.broadcast(np.zeros(3), 2)",
    "other count": "comm.broadcast(np.zeros(2), 0)",
}

CASES = [
    ("barrier", "reduce"),
    ("reduce", "other operation"),
    ("reduce", "other dtype"),
    ("reduce", "other length"),
    ("gather", "other counts"),
    ("broadcast", "other root"),
    ("broadcast", "other count"),
    ("gather", "broadcast"),
    ("large gather", "large broadcast"),
]

DIVERGING = """
for calls in CASES:
    comm = connect()
    say(outcome(lambda: eval(calls[rank])))
    say(outcome(comm.barrier))
    comm.close()
"""


@pytest.mark.parametrize(("job_type", "odd_rank"), [(ShmJob, 1), (TcpJob, 0), (TcpJob, 1)])
def test_ranks_out_of_step_all_fail(job_type, odd_rank):  # COM-42, COM-43; in the suite rank 0 is the odd one
    cases = [[CALLS[odd if rank == odd_rank else usual] for rank in range(3)] for usual, odd in CASES]
    with job_type(3, f"CASES = {cases!r}\n" + DIVERGING) as job:
        for said in job.start().finish(within_s=120).values():
            assert len(said) == 2 * len(CASES)
            for case, failure, after in zip(CASES, said[::2], said[1::2], strict=True):
                assert failure.startswith("CollectiveFailed: "), (case, failure)
                # ranks 0 and 2 agree, and may meet on shared memory before they see rank 1 or hear of it
                assert " called " in failure or (job_type is ShmJob and "gave up" in failure), (case, failure)
                assert after.startswith("InvalidCommunicator"), (case, after)


LEFTOVERS = """
def descriptors():
    return sorted(os.listdir("/proc/self/fd"))

before = descriptors()
for _ in range(3):
    comm = connect()
    region = comm.create_shared_region(10, np.float64)
    region.fence()
    comm.barrier()
    watched = any(thread.name.startswith("cobre-tcp") for thread in threading.enumerate())
    assert watched == (comm.backend == "tcp")
    comm.close()
    comm.close()
    assert threading.active_count() == 1
    assert (comm.rank, comm.size) == (rank, size)
    assert comm.topology().hosts[0].ranks == (0, 1)
    say(outcome(comm.barrier).split(":")[0], outcome(lambda: comm.kernel).split(":")[0])
if "listener" in job:
    before.remove(str(job["listener"]))
assert descriptors() == before, (before, descriptors())
"""


@each_backend
def test_nothing_is_left_after_close(job_type):  # TCP-12: the port is free again
    with job_type(2, LEFTOVERS) as job:
        lines = job.start().finish()
        assert lines == {r: ["InvalidCommunicator InvalidCommunicator"] * 3 for r in range(2)}
        assert job.leftovers() == []


UNCLOSED = """
comm = connect()
comm.barrier()
say("done")
"""


@each_backend
def test_a_communicator_that_nobody_closes_ends_with_the_process(job_type):
    with job_type(2, UNCLOSED) as job:
        assert job.start().finish() == {r: ["done"] for r in range(2)}
        assert job.leftovers() == []


RING = """
from numba import njit
@njit(cache=True, nogil=True)
def ring(kernel):
    for _ in range(10):
        status = kernel.barrier()
        if status != 0:
            break
    return status
"""

CACHED = """
import rank_job_kernels
from cobre.native import kernel_cache_stats
with connect() as comm:
    comm.barrier()
    assert rank_job_kernels.ring(comm.kernel) == 0
    say("ring", *kernel_cache_stats(rank_job_kernels.ring))
    say("entry", *kernel_cache_stats(comm.entries.barrier))
"""


@each_backend
def test_a_second_process_compiles_nothing(job_type, tmp_path, monkeypatch):
    (tmp_path / "rank_job_kernels.py").write_text(RING)  # a function of a user that takes the kernel
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    with job_type(1, CACHED) as job:
        assert job.start().finish()[0][0] == "ring 0 1"
    with job_type(1, CACHED) as job:
        assert job.start().finish()[0] == ["ring 1 0", "entry 1 0"]


def test_without_the_jit_the_backend_is_refused():
    code = (
        "from cobre.comm.config import ShmConfig\nfrom cobre.comm.shm.communicator import ShmCommunicator\n"
        "from cobre.comm import InitializationFailed\n"
        "try:\n    ShmCommunicator(ShmConfig('/cobre_test_nojit', 0, 1))\n"
        "except InitializationFailed as error:\n    print(error)\n"
    )
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    run = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    assert "NUMBA_DISABLE_JIT" in run.stdout


FORKED = """
from cobre.comm.status import INVALID_COMMUNICATOR
comm = connect()
comm.barrier()
entry, arguments = comm.entries.barrier, comm.kernel_arguments
child = os.fork()
if child == 0:
    with comm:
        say(outcome(lambda: comm.abort(9)).partition(";")[0].split("process")[0])
    say(entry(arguments) == INVALID_COMMUNICATOR, comm.rank == rank, comm.size == size)
    sys.exit(0)  # with all exit handlers
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
comm.barrier()
say("on")
comm.close()
"""


@each_backend
def test_a_forked_child_is_no_rank(job_type):  # COM-41
    with job_type(2, FORKED) as job:
        refused = "InvalidCommunicator: the communicator belongs to "
        assert job.start().finish() == {r: [refused, "True True True", "on"] for r in range(2)}
        assert job.leftovers() == []


CLOSED_IN_USE = """
comm = connect()
comm.barrier()
if rank == 0:
    thread = threading.Thread(target=comm.barrier)
    thread.start()
    while not comm._in_use:
        time.sleep(0.001)
    say(outcome(comm.close).partition(":")[0])
    say("ready")
    thread.join()
else:
    input()
    comm.barrier()
comm.close()
"""


@each_backend
def test_a_communicator_in_use_is_not_closed(job_type):
    with job_type(2, CLOSED_IN_USE) as job:
        job.start().wait_for("ready", 0)
        job.go(1)
        assert job.finish()[0] == ["InvalidCommunicator", "ready"]


@each_backend
def test_numbers_that_no_kernel_can_hold(job_type):
    body = """
comm = connect()
say(outcome(lambda: comm.broadcast(np.zeros(1), 2**70)).partition(":")[0])
say(outcome(lambda: comm.broadcast(np.zeros(1), 0.5)).partition(":")[0])
say(outcome(lambda: comm.allreduce(np.zeros(1), np.ones(1), 2**70)).partition(":")[0])
comm.barrier()
comm.close()
"""
    with job_type(1, body) as job:
        assert job.start().finish()[0] == ["InvalidRoot", "ValidationError", "ValidationError"]
