"""Functions that launched ranks run; they have to live in a module that a new process can import."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import numpy as np

from cobre.comm import ReduceOp
from cobre.comm.launch import ask, progress


def add_ranks(comm, offset=0):
    total = np.zeros(1)
    comm.allreduce(np.array([float(comm.rank + offset)]), total, ReduceOp.SUM)
    return comm.rank, comm.size, comm.backend, total[0]


only_here = False


def inherited(comm):
    return only_here


def surroundings(comm):
    foreign = ("PMI_", "PMIX_", "OMPI_", "SLURM_PROCID", "COBRE_SHM", "COBRE_TCP", "COBRE_COMM")
    names = [name for name in os.environ if name.startswith(foreign)]
    with open("/proc/self/cmdline", "rb") as file:  # noqa: PTH123
        arguments = file.read()
    return sorted(os.sched_getaffinity(0)), names, arguments, os.getcwd()  # noqa: PTH109


def large_result(comm, count):
    for turn in range(50):
        progress((turn, "x" * 100_000))
    return np.full(count, comm.rank, np.uint8)


class UnsendableError(Exception):
    def __init__(self, first, second):
        super().__init__(f"{first} {second}")


def fail(comm, who, how):
    comm.barrier()
    if comm.rank == who:
        if how == "raise":
            raise ValueError("the plant is on fire")
        if how == "unpicklable":
            raise UnsendableError("cannot", "travel")
        if how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if how == "exit":
            os._exit(7)
        if how == "silent exit":
            os._exit(0)
        if how == "system exit":
            raise SystemExit(5)
    comm.barrier()
    return "unreachable"


class DiesWhenRead:
    """Ends the process that unpickles it: a rank that dies before it can join."""

    def __reduce__(self):
        return signal.raise_signal, (signal.SIGKILL,)


def never_end(comm, stubborn=False):
    if stubborn:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    progress(os.getpid())
    while True:
        time.sleep(60)


def never_end_from(comm, who):
    """One rank is in no collective, and does not see what happens to the others."""
    if comm.rank == who:
        never_end(comm)
    comm.barrier()


def process_facts(comm):
    """Return the process, what it was prepared with, its directory, and how many descriptors it has."""
    return os.getpid(), prepared, os.getcwd(), len(os.listdir("/proc/self/fd"))  # noqa: PTH109, PTH208


def say(comm, text):
    print(f"rank {comm.rank}: {text}")


def say_and_crash(comm, text):
    say(comm, text)
    if comm.rank == 1:
        os.abort()
    comm.barrier()


prepared = []


def prepare(word, forbidden=None):
    if forbidden is not None and Path(forbidden).exists():
        raise ValueError(f"{forbidden} is there")
    prepared.append(word)


def return_lambda(comm):
    return lambda: None


def ask_until_yes(comm, variable):
    answers = [ask(number) for number in range(3)]
    return answers, os.environ.get(variable)


def keep_asking(comm):
    while True:
        ask(os.getpid())


def report_from_fork(comm):
    child = os.fork()
    if child == 0:
        progress("a fork")
        os._exit(1 if ask("a fork") else 0)
    progress("the rank itself")
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
