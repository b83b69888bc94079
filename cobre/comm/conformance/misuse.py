"""Checks of uses that a communicator has to refuse by name: in a forked child, by two threads at once."""

from __future__ import annotations

import atexit
import contextlib
import os
import select
import signal
import threading
import time
from functools import partial
from typing import Final

import numpy as np

from cobre.comm.conformance.catalogue import Case, case_check, expect, same
from cobre.comm.contract import ReduceOp
from cobre.comm.errors import InvalidRoot
from cobre.comm.faces import Face
from cobre.errors import CobreError

_PATIENCE_S: Final = 30.0
_CHUNK: Final = 4096


@case_check("COM-30", "COM-43", both_faces=False)
def _broadcast_root_beyond_any_integer_type(case: Case) -> None:
    buf = np.array([1.0, 2.0])
    for root in (2**70, -(2**70)):
        broadcast = partial(case.owner.broadcast, buf, root)
        expect(InvalidRoot, broadcast, root=root, size=case.owner.size)
    same(buf, [1.0, 2.0])
    case.owner.barrier()  # refused before anything was sent


@case_check("API-03", "COM-41", smallest=2)
def _forked_child_is_refused(case: Case) -> None:
    _require_sum(case.face)  # everything is compiled now
    told, tell = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(tell, _use_in_child(case.face).encode())
            atexit._run_exitfuncs()  # what a child runs that ends by itself; it must not wait for anybody
            os.write(tell, b", left")
        finally:
            os._exit(0)
    os.close(tell)
    try:
        story = _read_all(told, _PATIENCE_S)
    finally:
        os.close(told)
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    _require_sum(case.face)  # the rank itself goes on
    assert story == "refused, left", f"the forked child: {story!r}"


@case_check("COM-41", smallest=2)
def _second_thread_is_refused(case: Case) -> None:
    _require_sum(case.face)
    if case.face.rank == 0:
        refusals: list[CobreError] = []
        threads = [threading.Thread(target=_wait_in_barrier, args=(case.face, refusals)) for _ in range(2)]
        for thread in threads:
            thread.start()
        deadline = time.monotonic() + _PATIENCE_S
        while not refusals and time.monotonic() < deadline:
            time.sleep(0.01)
        refused_in_time = len(refusals)
        case.meet()
        for thread in threads:
            thread.join(_PATIENCE_S)
        if len(refusals) == len(threads):  # a backend for the main thread only
            case.face.barrier()
        assert refused_in_time, "two threads were in a collective at once"
    else:
        case.meet()
        case.face.barrier()
    _require_sum(case.face)


def _wait_in_barrier(face: Face, refusals: list[CobreError]) -> None:
    try:
        face.barrier()
    except CobreError as error:
        refusals.append(error)


def _use_in_child(face: Face) -> str:
    try:
        face.allreduce(np.ones(1), np.zeros(1), ReduceOp.SUM)
    except CobreError:
        return "refused"
    return "accepted"


def _require_sum(face: Face) -> None:
    total = np.zeros(1)
    face.allreduce(np.array([1.0 + face.rank]), total, ReduceOp.SUM)
    same(total, [face.size * (face.size + 1) / 2])


def _read_all(descriptor: int, patience_s: float) -> str:
    """Return what a pipe delivers until its end, or until the time is over."""
    deadline = time.monotonic() + patience_s
    received = b""
    while select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))[0]:
        part = os.read(descriptor, _CHUNK)
        if not part:
            return received.decode()
        received += part
    return f"{received.decode()}, then nothing for {patience_s:g} s"
