"""Programs for the ranks of an MPI job: ``python mpi_programs.py <name> <folder for reports>``."""

from __future__ import annotations

import os
import signal
import sys

import mpi_checks
import numpy as np
from mpi_reports import Complaints, make, note_segments, report

from cobre.comm import InitializationFailed, InvalidCommunicator, create_communicator
from cobre.comm import status as codes
from cobre.native import kernel_cache_stats


def hook():
    before = sys.excepthook
    wrong = Complaints()
    comm = make()
    wrong.same("hook installed", sys.excepthook == before, False)
    comm.close()
    comm.close()
    wrong.same("hook restored", sys.excepthook == before, True)
    report(comm.rank, wrong)


def finalized():
    """The program ends MPI itself: communicators and regions go first."""
    wrong = Complaints()
    comm = make()
    region = comm.create_shared_region(4, "float64")
    region.fence()
    comm.barrier()
    arguments = comm.kernel_arguments
    sys.modules["mpi4py.MPI"].Finalize()
    wrong.raises("owner", InvalidCommunicator, comm.barrier)
    wrong.same("kernel", int(comm.entries.barrier(arguments)), int(codes.INVALID_COMMUNICATOR))
    wrong.raises("region", InvalidCommunicator, lambda: region.array)
    wrong.raises("another one", InitializationFailed, create_communicator, "mpi")
    comm.close()
    report(comm.rank, wrong)


def unclosed():
    """Nothing is closed, and a region's object is dropped."""
    comm = make()
    comm.create_shared_region(1000, "float64")
    keep = comm.create_shared_region(1000, "float64").target
    note_segments()
    comm.barrier()
    report(comm.rank, [] if keep.sum() == 0 else ["not zero"])


def mismatch():
    """MPI-06, with a launcher that lies: its variables are changed once MPI has started."""
    from mpi4py import MPI

    wrong = Complaints()
    for name in ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE"):
        if name in os.environ:
            os.environ[name] = "5"
    text = wrong.raises("size", InitializationFailed, create_communicator)
    wrong.same("both sizes are told", "5 processes" in text and f"sees {MPI.COMM_WORLD.size}" in text, True)
    report(MPI.COMM_WORLD.rank, wrong)


def singletons():
    """MPI-06 in earnest: the launcher of one MPI with the library of another."""
    wrong = Complaints()
    wrong.raises("size", InitializationFailed, make)
    report(int(os.environ["PMI_RANK"]), wrong)


def uncaught():
    comm = make()
    if comm.rank == comm.size - 1:
        raise ValueError("a fault of one rank")
    comm.barrier()
    comm.barrier()


def uncaught_in_block():
    with make() as comm:
        comm.create_shared_region(10, "int64")
        if comm.rank == comm.size - 1:
            raise ValueError("a fault of one rank")
        comm.barrier()


def exit_in_block():
    with make() as comm:
        if comm.rank == comm.size - 1:
            sys.exit(3)
        comm.barrier()


def caught():
    """A fault that all ranks handle does not end the job."""
    wrong = Complaints()
    try:
        with make() as comm:
            raise ValueError("a fault of all ranks")
    except ValueError:
        pass
    wrong.raises("closed", InvalidCommunicator, comm.barrier)
    with make() as comm:
        comm.barrier()
    report(comm.rank, wrong)


def abort():
    comm = make()
    if comm.rank == comm.size - 1:
        print("last words", end="")
        comm.abort(7)
    comm.barrier()


def killed():
    comm = make()
    comm.barrier()
    if comm.rank == comm.size - 1:
        os.kill(os.getpid(), signal.SIGKILL)
    comm.barrier()


def checks():
    """All checks one after the other, each with a communicator of its own."""
    wrong, extra = Complaints(), {}
    for check in mpi_checks.CHECKS:
        with create_communicator() as comm:
            assert comm.backend == "mpi"
            note_segments()
            complaints, more = check(comm)
        wrong += [f"{check.__name__}: {complaint}" for complaint in complaints]
        extra.update(more)
    report(comm.rank, wrong, **extra)


def cache():
    """Which of the entries were loaded from disk, and which compiled."""
    with make() as comm:
        comm.barrier()
        comm.broadcast(np.zeros(3), 0)
    entries = (comm.entries.barrier, comm.entries.broadcast)
    report(comm.rank, [], stats=[kernel_cache_stats(entry) for entry in entries])


if __name__ == "__main__":
    globals()[sys.argv[1]]()
