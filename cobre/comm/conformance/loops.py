"""Checks that run inside one nopython function: many gathers in a row, and all operations together."""

from __future__ import annotations

import functools
from typing import Any, Final

import numpy as np
from numba import njit
from numpy.typing import NDArray

from cobre.comm.contract import Communicator
from cobre.comm.status import OK, error_from_status
from cobre.native import compile_for, monotonic_ns

_PAUSE_NS: Final = 100_000
_RARELY: Final = 97
_VALUES: Final = 500


@njit(cache=True, nogil=True)
def _gather_turns(kernel, turns, slow_rank, send, recv, counts, displs):  # type: ignore[no-untyped-def]
    """Gather in turns; return a status and the first turn with wrong content, or -1."""
    for turn in range(turns):
        for i in range(len(send)):
            send[i] = turn * 1000 + kernel.rank() * 10 + i
        if kernel.rank() == slow_rank and turn % _RARELY == 0:
            start = monotonic_ns()
            while monotonic_ns() - start < _PAUSE_NS:
                pass
        status = kernel.allgatherv(send, recv, counts, displs)
        if status != OK:
            return status, turn
        for r in range(kernel.size()):
            for i in range(counts[r]):
                if recv[displs[r] + i] != turn * 1000 + r * 10 + i:
                    return status, turn
    return OK, -1


def gather_with_a_slow_rank(communicator: Communicator, turns: int) -> None:
    """Gather many times without a pause, with one rank that is late now and then; check every element."""
    size = communicator.size
    counts = 1 + np.arange(size, dtype=np.int64) % 3
    displs = np.cumsum(counts) - counts
    send = np.zeros(counts[communicator.rank], np.int64)
    recv = np.zeros(counts.sum(), np.int64)
    for slow_rank in {0, size - 1}:
        arguments = (communicator.kernel, turns // 2, slow_rank, send, recv, counts, displs)
        compile_for(_gather_turns, f"conformance-turns-{communicator.backend}", *arguments)
        status, turn = _gather_turns(*arguments)
        if status != OK:
            raise error_from_status(status, communicator.detail)
        assert turn == -1, f"turn {turn} gathered {recv}"


@njit(cache=True, nogil=True)
def _same_function(kernel, send, gathered, counts, displs, values, total, low, high, word):  # type: ignore[no-untyped-def]
    """Call every operation once; return the first status that is not OK."""
    status = kernel.allgatherv(send, gathered, counts, displs)
    if status != OK:
        return status
    status = kernel.allreduce(values, total, 0)
    if status != OK:
        return status
    status = kernel.allreduce(values, low, 1)
    if status != OK:
        return status
    status = kernel.allreduce(values, high, 2)
    if status != OK:
        return status
    status = kernel.barrier()
    if status != OK:
        return status
    return kernel.broadcast(word, kernel.size() - 1)


def run_the_same_function(communicator: Communicator, sums_in_rank_order: bool) -> None:
    """Run one nopython function on the communicator's kernel; check each operation's bytes against NumPy.

    All backends are held to the same bytes, so they give the same as each other. Sums of a backend that does
    not fold in rank order are left out.
    """
    rank, size = communicator.rank, communicator.size
    counts = 5 + 3 * np.arange(size, dtype=np.int64)
    displs = (np.cumsum(counts) - counts + 2)[::-1].copy()
    counts = counts[::-1].copy()
    sends, values, words = zip(*(_inputs(r, counts[r]) for r in range(size)), strict=True)
    actual = {
        "gather": np.zeros(counts.sum() + 4),
        "sum": np.zeros(_VALUES),
        "min": np.zeros(_VALUES),
        "max": np.zeros(_VALUES),
        "broadcast": words[rank].copy(),
    }
    expected = {
        "gather": np.zeros(counts.sum() + 4),
        "sum": functools.reduce(np.add, values),
        "min": functools.reduce(np.minimum, values),
        "max": functools.reduce(np.maximum, values),
        "broadcast": words[-1],
    }
    for r in range(size):
        expected["gather"][displs[r] : displs[r] + counts[r]] = sends[r]
    gathered, total, low, high, word = actual.values()
    arguments = (
        communicator.kernel,
        sends[rank],
        gathered,
        counts,
        displs,
        values[rank],
        total,
        low,
        high,
        word,
    )
    compile_for(_same_function, f"conformance-same-{communicator.backend}", *arguments)
    status = _same_function(*arguments)
    if status != OK:
        raise error_from_status(status, communicator.detail)
    if not sums_in_rank_order:
        del actual["sum"]
    for name, array in actual.items():
        assert array.tobytes() == expected[name].tobytes(), f"{name}: {array} instead of {expected[name]}"


def _inputs(rank: int, count: int) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return what a rank sends to the gather, to the reductions and, where it is the root, to all."""
    generator = np.random.default_rng(rank)
    return generator.normal(size=count), generator.normal(size=_VALUES), generator.normal(size=33)
