"""Checks of the mpi backend that a rank makes with its communicator.

Each returns what it has to complain about, and what else it wants to report.
"""

from __future__ import annotations

import sys
import threading

import numpy as np
from mpi_reports import Complaints, make, note_segments

from cobre.comm import (
    SUPPORTED_DTYPES,
    AllocationFailed,
    CollectiveFailed,
    InvalidBufferSize,
    InvalidCommunicator,
    InvalidRoot,
    ReduceOp,
    create_communicator,
)
from cobre.comm import status as codes
from cobre.comm.mpi import calls
from cobre.errors import ValidationError


def values(dtype, rank, count):
    return ((np.arange(count) * 7 + rank * 3 + 1) % 50).astype(dtype)


def fold(op, arrays):
    result = arrays[0].copy()
    for array in arrays[1:]:
        result = {
            ReduceOp.SUM: np.add,
            ReduceOp.MIN: np.minimum,
            ReduceOp.MAX: np.maximum,
            ReduceOp.BITWISE_OR: np.bitwise_or,
        }[op](result, array)
    return result


def check_dtype(comm, dtype, wrong):
    size, rank = comm.size, comm.rank
    counts = [(r * 2) % 5 for r in range(size)]
    starts = np.cumsum([0] + [counts[r] + 2 for r in reversed(range(size))])
    displs = [int(starts[size - 1 - r]) for r in range(size)]  # permuted, with gaps
    recv = np.full(int(starts[-1]), 99, dtype)
    expected = recv.copy()
    for r in range(size):
        expected[displs[r] : displs[r] + counts[r]] = values(dtype, r, counts[r])
    comm.allgatherv(values(dtype, rank, counts[rank]), recv, counts, displs)
    wrong.equal(f"allgatherv {dtype}", recv, expected)

    for op in ReduceOp:
        send, result = values(dtype, rank, 9), np.empty(9, dtype)
        if op is ReduceOp.BITWISE_OR and dtype.kind == "f":
            wrong.raises(f"{op!r} {dtype}", ValidationError, comm.allreduce, send, result, op)
            continue
        comm.allreduce(send, result, op)
        wrong.equal(f"{op!r} {dtype}", result, fold(op, [values(dtype, r, 9) for r in range(size)]))

    for root in range(size):
        buf = values(dtype, rank, 11)
        comm.broadcast(buf, root)
        wrong.equal(f"broadcast {dtype} from {root}", buf, values(dtype, root, 11))


def collectives(comm):
    wrong = Complaints()
    size, rank = comm.size, comm.rank
    for dtype in SUPPORTED_DTYPES:
        check_dtype(comm, dtype, wrong)
    for _ in range(3):
        comm.barrier()

    # COM-21: sums of floats in the order of ranks, up to 64 KiB a rank
    def noise(r, count):
        return np.random.default_rng(r).standard_normal(count)

    for count in (1, 1000, 8192):
        result = np.empty(count)
        comm.allreduce(noise(rank, count), result, ReduceOp.SUM)
        expected = fold(ReduceOp.SUM, [noise(r, count) for r in range(size)])
        wrong.same(f"bits of the sum of {count}", result.tobytes(), expected.tobytes())
    result = np.empty(20_000)
    comm.allreduce(noise(rank, 20_000), result, ReduceOp.SUM)  # MPI's own order
    if not np.allclose(result, sum(noise(r, 20_000) for r in range(size)), rtol=1e-13, atol=1e-13):
        wrong.append("the large sum is wrong")
    everybody = np.empty(20_000 * size)
    comm.allgatherv(result, everybody, [20_000] * size, [20_000 * r for r in range(size)])
    wrong.equal("the large sum on all ranks", everybody.reshape(size, -1), np.tile(result, (size, 1)))

    # COM-22: NaN of any rank, also where the payload is folded in pieces
    for nan_rank in range(size):
        send = np.full(20_000, float(rank))
        if rank == nan_rank:
            send[[0, 9_000, 19_999]] = np.nan
        for op, normal in ((ReduceOp.MIN, 0.0), (ReduceOp.MAX, size - 1.0)):
            expected = np.full(20_000, normal)
            expected[[0, 9_000, 19_999]] = np.nan
            comm.allreduce(send, result, op)
            wrong.equal(f"NaN of rank {nan_rank} {op!r}", result, expected)

    split(comm, wrong)
    without_shared_memory(comm, wrong)
    topology = comm.topology()
    wrong.same("world size", topology.world_size, size)
    wrong.same("ranks", [r for host in topology.hosts for r in host.ranks], list(range(size)))
    wrong.same("thread level", topology.mpi.thread_level, "funneled")
    return wrong, {"library": topology.mpi.library, "standard": topology.mpi.standard}


def without_shared_memory(comm, wrong):
    """As on several hosts: MPI brings the elements that are folded."""
    state, _, detail = comm.kernel_arguments
    state = state.copy()
    wrong.same("shared slots", int(state[calls.IS_SHARED]), int(comm.size > 1))
    state[calls.IS_SHARED] = 0
    state[calls.CORNER] = comm.size * state[calls.STRIDE]
    scratch = np.zeros(state[calls.CORNER] + 8 * (comm.size + calls.CORNER_WORDS), np.uint8)
    for op, count in ((ReduceOp.SUM, 1000), (ReduceOp.MIN, 20_000), (ReduceOp.MAX, 20_000)):
        parts = [np.random.default_rng(r).standard_normal(count) for r in range(comm.size)]
        parts[-1][-1] = np.nan
        result = np.empty(count)
        status = comm.entries.allreduce((state, scratch, detail), parts[comm.rank], result, int(op))
        wrong.same(f"status of {op!r}", int(status), 0)
        wrong.equal(f"{op!r} gathered by MPI", result, fold(op, parts))


def split(comm, wrong):
    """More elements than MPI can count; here it can count to 3."""
    state = comm.kernel_arguments[0]
    state[calls.LIMIT] = 3
    for dtype in ("int64", "float64"):
        buf = values(dtype, comm.rank, 11)
        comm.broadcast(buf, comm.size - 1)
        wrong.equal(f"broadcast {dtype} in pieces", buf, values(dtype, comm.size - 1, 11))
    send = values("int64", comm.rank, 10)
    result = np.empty_like(send)
    comm.allreduce(send, result, ReduceOp.SUM)
    parts = [values("int64", r, 10) for r in range(comm.size)]
    wrong.equal("allreduce in pieces", result, fold(ReduceOp.SUM, parts))
    counts = [4] * comm.size
    displs = [4 * r for r in range(comm.size)]
    text = wrong.raises(
        "counts beyond the limit",
        InvalidBufferSize,
        comm.allgatherv,
        np.zeros(4),
        np.zeros(4 * comm.size),
        counts,
        displs,
        operation="allgatherv",
        expected=3,
        actual=4,
    )
    wrong.same("the message tells the limit", "up to 3" in text, True)
    state[calls.LIMIT] = calls.LARGEST_COUNT
    # ERR-04: a displacement beyond int32; the memory is only promised, never touched
    beyond = 2**31
    recv = np.empty(beyond + comm.size, np.uint8)
    wrong.raises(
        "int32",
        InvalidBufferSize,
        comm.allgatherv,
        np.zeros(1, np.uint8),
        recv,
        [1] * comm.size,
        [beyond + r for r in range(comm.size)],
        expected=2147483647,
        actual=beyond,
    )


def errors(comm):
    """ERR-04: what MPI reports becomes our errors; handles are swapped to make it report."""
    wrong = Complaints()
    mpi = sys.modules["mpi4py.MPI"]
    hook = sys.excepthook
    wrong.raises("lengths", InvalidBufferSize, comm.allreduce, np.zeros(4), np.zeros(3), ReduceOp.SUM)
    wrong.raises("root", InvalidRoot, comm.broadcast, np.zeros(1), 5, root=5, size=comm.size)
    comm.barrier()  # refused arguments leave the communicator as it was (COM-43)

    def swapped(place, value):
        victim = make()
        victim.kernel_arguments[0][place] = value
        return victim

    world = comm._world
    victim = swapped(calls.SIZE, 9)
    wrong.raises("MPI_ERR_ROOT", InvalidRoot, victim.broadcast, np.zeros(1), 7, root=7, size=victim.size)
    victim.close()

    datatype = calls.DATATYPES + SUPPORTED_DTYPES.index(np.dtype("float64"))
    victim = swapped(datatype, world.handle(mpi.DATATYPE_NULL))
    text = wrong.raises(
        "MPI_ERR_TYPE", CollectiveFailed, victim.broadcast, np.zeros(1), 0, operation="broadcast"
    )
    wrong.same("the text is MPI's", "type" in text.lower(), True)
    wrong.raises("poisoned", InvalidCommunicator, victim.barrier)
    arguments = victim._arguments
    wrong.same("poisoned kernel", int(arguments[0][calls.OPEN]), 0)
    victim.close()

    victim = swapped(calls.COMM, world.handle(mpi.COMM_NULL))
    wrong.raises("MPI_ERR_COMM", InvalidCommunicator, victim.barrier)
    victim.close()

    with make() as other:
        found = []

        def use():
            found.append(wrong.raises("other thread", ValidationError, other.barrier))

        thread = threading.Thread(target=use)
        thread.start()
        thread.join()
        wrong.same("thread", "main thread" in found[0], True)
    wrong.raises("closed", InvalidCommunicator, other.barrier)
    wrong.same("rank after close", other.rank, comm.rank)
    wrong.same("the hook stays while a communicator is open", sys.excepthook == hook, True)
    comm.barrier()
    return wrong, {}


def regions(comm):
    wrong = Complaints()
    size, rank = comm.size, comm.rank
    group = comm.split_local()
    wrong.same("local group", (group.rank, group.size), (rank, size))
    wrong.same("leader", comm.is_leader, rank == 0)
    group.barrier()

    region = comm.create_shared_region(100, "int64")
    wrong.raises("read before the fence", ValidationError, lambda: region.array)
    if comm.is_leader:
        region.writable()[:] = np.arange(100)
    else:
        wrong.raises("follower writes", ValidationError, region.writable)
    region.fence()
    wrong.equal("what the leader wrote", region.array, np.arange(100))
    wrong.same("read-only", region.array.flags.writeable, False)

    parts = comm.create_shared_region(10 * size, "float32")
    wrong.equal("zero", parts.target, np.zeros(10 * size, "float32"))
    comm.barrier()
    parts.population_view(10 * rank, 10 * rank + 10)[:] = rank
    parts.fence()
    wrong.equal("population", parts.array, np.repeat(np.arange(size), 10).astype("float32"))
    wrong.raises("late population", ValidationError, parts.population_view, 0, 1)

    empty = comm.create_shared_region(0, "uint8")
    empty.fence()
    wrong.same("empty", len(empty.array), 0)

    # closing is not collective: ranks may do it at different times, and keep arrays
    kept = region.array if rank == 0 else None
    if rank == size - 1:
        parts.close()
    region.close()
    table = comm.kernel_arguments[0]
    wrong.same("regions in the table", int(table[calls.REGIONS]), 3)
    third = comm.create_shared_region(5, "uint8")
    # the first has a living array, the second is closed by one rank only
    wrong.same("nothing freed that is in use", int(table[calls.REGIONS]), 3 if size == 1 else 4)
    if rank == 0:
        wrong.equal("an array outlives its region", kept, np.arange(100))
    del kept
    parts.close()
    comm.create_shared_region(1, "uint8").close()
    wrong.same("freed when all are done", int(table[calls.REGIONS]), 3)
    wrong.raises("closed region", InvalidCommunicator, lambda: third.close() or third.array)

    for count in (2**62, 10**15):
        wrong.raises("too large", AllocationFailed, comm.create_shared_region, count, "float64")
    gather(comm, wrong)
    last = comm.create_shared_region(3, "float64")
    last.fence()
    survivor = last.array
    note_segments()
    comm.close()
    wrong.raises("region of a closed communicator", InvalidCommunicator, lambda: last.array)
    wrong.equal("an array outlives the communicator", survivor, np.zeros(3))
    return wrong, {}


def gather(comm, wrong):
    size, rank = comm.size, comm.rank
    pair = [comm.create_shared_region(7 * size + 1, "float64") for _ in range(2)]
    counts = [7 - (r % 2) for r in range(size)]
    displs = [7 * r + 1 for r in range(size)]
    ordinary = np.zeros(7 * size + 1)
    for step in range(200):
        region = pair[step % 2]
        send = np.full(counts[rank], step * 10.0 + rank)
        expected = np.zeros(7 * size + 1)
        for r in range(size):
            expected[displs[r] : displs[r] + counts[r]] = step * 10.0 + r
        comm.gather_shared(send, region, counts, displs)
        wrong.equal(f"gather {step}", region.target, expected)
        if step % 50 == 0:
            # memory that nobody shares is gathered in the ordinary way
            ordinary[:] = 0
            status = comm.entries.gather_shared(
                comm.kernel_arguments, send, ordinary, np.array(counts), np.array(displs)
            )
            wrong.same("status", int(status), int(codes.OK))
            wrong.equal(f"ordinary gather {step}", ordinary, expected)
    wrong.raises(
        "gather_shared refuses",
        InvalidBufferSize,
        comm.gather_shared,
        np.zeros(99),
        pair[0],
        counts,
        displs,
        operation="gather_shared",
    )
    heap = create_communicator("local").create_shared_region(3, "float64")
    wrong.raises("foreign region", ValidationError, comm.gather_shared, np.zeros(1), heap, counts, displs)


def different_regions(comm):
    """SHR-10: ranks that ask for different regions."""
    wrong = Complaints()
    if comm.size == 1:
        return wrong, {}
    count = 10 + (comm.rank == comm.size - 1)
    text = wrong.raises("divergence", CollectiveFailed, comm.create_shared_region, count, "int64")
    wrong.same("the rank is named", f"rank {comm.size - 1}" in text, True)
    wrong.raises("poisoned", InvalidCommunicator, comm.barrier)
    return wrong, {}


CHECKS = (collectives, errors, regions, different_regions)
