"""Run a function, or a command, on several ranks of this machine (API-02, API-05, API-08).

``launch`` starts Python processes that each make a communicator and call one function with it::

    def work(comm, n):
        ...                       # the same collectives on every rank
        return result

    if __name__ == "__main__":
        results = launch(work, 4, args=(1000,))

:func:`~cobre.comm.launch.command.run_command` starts copies of any command instead, which find their ranks in
the environment.
"""

from __future__ import annotations

import contextlib
import functools
import math
import os
import pickle
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from cobre.comm.descriptors import require_descriptors
from cobre.comm.errors import CollectiveFailed, InvalidCommunicator
from cobre.comm.launch import launched
from cobre.comm.launch.launched import ERROR, LENGTH, NO, QUESTION, RESULT, YES, Setup
from cobre.comm.launch.processes import bind_to_parent, cpu_slices, end_processes, exit_watches, scrubbed
from cobre.comm.registry import Transport, make_transport
from cobre.errors import CobreError, Problem, ValidationError, WorkerError
from cobre.machine import most_workers, too_many

_CHUNK: Final = 1 << 20
_DESCRIPTORS_OF_A_RANK: Final = 2  # its pipe, and the descriptor that signals its end
# A rank may report the death of a peer before the launcher sees it; wait this long for the cause.
_CAUSE_SECONDS: Final = 1.0
_EXIT_SECONDS: Final = 10.0
_POLL_SECONDS: Final = 0.1
_BOOT: Final = (
    "import sys; sys.path[:] = {path!r}; from cobre.comm.launch.launched import main; main({descriptor})"
)


def launch(
    function: Callable[..., Any],
    ranks: int,
    *,
    backend: str = "shm",
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    timeout_s: float | None = None,
    on_progress: Callable[[int, Any], object] | None = None,
    pin: bool = True,
    environment: Mapping[str, str] | None = None,
) -> list[Any]:
    """Run ``function(communicator, *args, **kwargs)`` in several new processes and return their results.

    The processes start afresh, never by fork (API-03), whatever multiprocessing is set to, and without the
    variables of any other launcher. They end with this call, also when it raises or this process is killed.
    Data does not go through the parent: ranks exchange it by their communicator; arguments and results are
    for small things, such as paths.

    Parameters
    ----------
    function
        Defined at the top level of a module that the new processes can import. A script that calls ``launch``
        needs ``if __name__ == "__main__":`` around the call.
    ranks
        Number of processes.
    backend
        ``"shm"``, ``"tcp"`` (on the loopback interface), or another that has a transport.
    args, kwargs
        Further arguments; pickled.
    timeout_s
        Give up after so many seconds.
    on_progress
        Called here with ``(rank, item)`` for each ``progress(item)`` and ``ask(item)`` of a rank, while it
        runs; items of one rank come in their order. ``ask`` answers whether it returned something true.
    pin
        Give each rank CPUs of its own, if there are at least as many CPUs as ranks.
    environment
        Variables that the new processes get besides this one's.

    Returns
    -------
    list
        What the function returned, by rank.

    Raises
    ------
    WorkerError
        When a rank raises, is killed, or ends without a result, or the time is over; describes the first
        failure. All other ranks have been ended.
    ValidationError
        When an argument is wrong, or cannot be sent to another process.
    CobreError
        Kind ``IncompatibleSettings`` when a rank calls ``launch`` while it imports its main module.
    """
    _check_arguments(ranks, timeout_s)
    _check_not_importing()
    body = _pickled(function, tuple(args), dict(kwargs or {}))
    require_descriptors(backend, _DESCRIPTORS_OF_A_RANK * ranks, f"the launcher of {ranks} ranks")
    with make_transport(backend, ranks) as transport:
        return _Job(transport, body, pin, environment or {}).run(timeout_s, on_progress)


class _Rank:
    """One child process as the parent sees it."""

    def __init__(self, process: subprocess.Popen[bytes], connection: socket.socket) -> None:
        self.process = process
        self.connection = connection
        self.result: bytes | None = None
        self.error: WorkerError | None = None
        self.silent = False
        self.ended = False
        self._buffer = bytearray()

    def answer(self, answer: bytes) -> None:
        """Answer a question; a rank that is gone meanwhile needs none."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.connection.sendall(answer)

    def messages(self) -> list[tuple[Any, ...]]:
        """Return the messages that have arrived in full, without waiting for more."""
        while not self.silent:
            try:
                part = self.connection.recv(_CHUNK)
            except BlockingIOError:
                break
            except ConnectionResetError:
                part = b""
            self._buffer += part
            self.silent = not part
        complete: list[tuple[Any, ...]] = []
        while len(self._buffer) >= LENGTH.size:
            (length,) = LENGTH.unpack_from(self._buffer)
            end = LENGTH.size + length
            if len(self._buffer) < end:
                break
            complete.append(pickle.loads(self._buffer[LENGTH.size : end]))
            del self._buffer[:end]
        return complete


class _Job:
    """The ranks of one call of ``launch``."""

    def __init__(self, transport: Transport, body: bytes, pin: bool, environment: Mapping[str, str]) -> None:
        self._transport = transport
        self._environment = environment
        self._slices = cpu_slices(transport.size) if pin else None
        self._body = body
        self._preparation = _preparation(needs_main=b"__main__" in body)
        self._ranks: list[_Rank] = []

    def run(self, timeout_s: float | None, on_progress: Callable[[int, Any], object] | None) -> list[Any]:
        try:
            environment = {**scrubbed(os.environ), **self._environment}
            for number in range(self._transport.size):
                self._start(number, environment)
            self._transport.started()
            self._watch(timeout_s, on_progress)
            return [pickle.loads(rank.result) for rank in self._ranks if rank.result is not None]
        finally:
            end_processes([rank.process for rank in self._ranks])
            for rank in self._ranks:
                rank.connection.close()

    def _start(self, rank: int, environment: Mapping[str, str]) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            code = _BOOT.format(path=sys.path, descriptor=theirs.fileno())
            try:
                process = subprocess.Popen(
                    [sys.executable, "-c", code],
                    env=dict(environment),
                    stdin=subprocess.DEVNULL,
                    pass_fds=(theirs.fileno(), *self._transport.descriptors(rank)),
                    start_new_session=True,
                    preexec_fn=functools.partial(bind_to_parent, os.getpid(), signal.SIGKILL),
                )
            except BaseException:
                ours.close()
                raise
        self._ranks.append(_Rank(process, ours))
        cpus = tuple(self._slices[rank]) if self._slices is not None else None
        setup = Setup(
            self._preparation, cpus, self._transport.backend, self._transport.config(rank), self._body
        )
        message = pickle.dumps(setup)
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # its end is handled below
            ours.sendall(LENGTH.pack(len(message)) + message)
        ours.setblocking(False)

    def _watch(self, timeout_s: float | None, on_progress: Callable[[int, Any], object] | None) -> None:
        deadline = math.inf if timeout_s is None else time.monotonic() + timeout_s
        hopeless = math.inf
        with (
            exit_watches([rank.process for rank in self._ranks]) as watches,
            selectors.DefaultSelector() as selector,
        ):
            for descriptor, place in watches.items():
                selector.register(descriptor, selectors.EVENT_READ, place)
            for place, child in enumerate(self._ranks):
                selector.register(child.connection, selectors.EVENT_READ, place)
            while not all(child.ended for child in self._ranks) and self._cause() is None:
                now = time.monotonic()
                if now >= hopeless:
                    break
                if now >= deadline:
                    raise self._too_late(timeout_s)
                patience = min(deadline, hopeless) - now if watches else _POLL_SECONDS
                selector.select(None if math.isinf(patience) else patience)
                for number, rank in enumerate(self._ranks):
                    self._look_at(number, rank, on_progress)
                    self._forget(selector, number, rank)
                if math.isinf(hopeless) and any(rank.error for rank in self._ranks):
                    hopeless = time.monotonic() + _CAUSE_SECONDS
        self._raise_first_failure()

    @staticmethod
    def _look_at(number: int, rank: _Rank, on_progress: Callable[[int, Any], object] | None) -> None:
        if rank.ended:
            return
        exit_code = rank.process.poll()  # before its messages are read for the last time: none is missed
        for kind, *content in rank.messages():
            if kind == ERROR:
                rank.error = _worker_error(number, *content)
            elif kind == RESULT:
                rank.result = content[0]
            else:
                answer = on_progress is not None and on_progress(number, content[0])
                if kind == QUESTION:
                    rank.answer(YES if answer else NO)
        if exit_code is not None:
            rank.ended = True
            if rank.error is not None:
                rank.error.exit_code = rank.error.context["exit_code"] = exit_code
            elif exit_code != 0 or rank.result is None:
                rank.error = _ended(number, exit_code)

    @staticmethod
    def _forget(selector: selectors.BaseSelector, number: int, rank: _Rank) -> None:
        """Stop polling a descriptor at its end of file: it would be ready forever."""
        for key in list(selector.get_map().values()):
            if key.data == number and (rank.ended or (rank.silent and key.fileobj is rank.connection)):
                selector.unregister(key.fileobj)

    def _cause(self) -> WorkerError | None:
        """Return a failure whose kind is not a consequence of another rank's failure."""
        for rank in self._ranks:
            if rank.error is not None and not isinstance(
                rank.error.inner, (CollectiveFailed, InvalidCommunicator)
            ):
                return rank.error
        return None

    def _raise_first_failure(self) -> None:
        failures = [rank.error for rank in self._ranks if rank.error is not None]
        if not failures:
            return
        first = self._cause() or failures[0]
        end_processes([rank.process for rank in self._ranks if rank is not self._ranks[first.rank]])
        if first.exit_code is None:  # it has reported its error and is about to end
            with contextlib.suppress(subprocess.TimeoutExpired):
                code = self._ranks[first.rank].process.wait(_EXIT_SECONDS)
                first.exit_code = first.context["exit_code"] = code
        raise first from first.inner

    def _too_late(self, timeout_s: float | None) -> WorkerError:
        running = [number for number, rank in enumerate(self._ranks) if not rank.ended]
        names = ", ".join(map(str, running))
        text = f"after {timeout_s} s {'rank' if len(running) == 1 else 'ranks'} {names} had not ended"
        return WorkerError(running[0], None, TimeoutError(text), message=text)


def _worker_error(rank: int, inner: bytes | None, summary: str, traceback: str) -> WorkerError:
    original: BaseException | None = None
    if inner is not None:
        # an exception that the child could read may still need a module that is not there
        with contextlib.suppress(Exception):
            original = pickle.loads(inner)
    return WorkerError(rank, None, original, message=f"rank {rank} failed: {summary}", traceback=traceback)


def _ended(rank: int, exit_code: int) -> WorkerError:
    if exit_code == 0:
        return WorkerError(rank, 0, message=f"rank {rank} ended without a result")
    return WorkerError(rank, exit_code)


def _check_arguments(ranks: Any, timeout_s: Any) -> None:
    problems = []
    if isinstance(ranks, bool) or not isinstance(ranks, int) or ranks < 1:
        problems.append(
            Problem("OutOfRange", f"launch: ranks={ranks!r} is no positive integer", {"argument": "ranks"})
        )
    elif ranks > most_workers():
        problems.append(too_many("ranks", ranks))
    if timeout_s is not None and not timeout_s > 0:
        problems.append(
            Problem(
                "OutOfRange", f"launch: timeout_s={timeout_s!r} is not positive", {"argument": "timeout_s"}
            )
        )
    if problems:
        raise ValidationError(problems, "the arguments of launch")


def _check_not_importing() -> None:
    if launched.preparing:
        raise CobreError(
            "IncompatibleSettings",
            "a rank called launch while it imported the main module: ranks would start ranks without end",
            {"setting": "main module"},
            "put the call below 'if __name__ == \"__main__\":'",
        )


def _pickled(function: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> bytes:
    name = getattr(function, "__qualname__", type(function).__name__)
    main = sys.modules.get("__main__")
    if getattr(function, "__module__", None) == "__main__" and _main_location(main) is None:
        fault = "is defined in an interactive session, which other processes cannot import"
    else:
        try:
            return pickle.dumps((function, arguments, keywords))
        except Exception as error:  # pickling runs the objects' own code, which may raise anything
            fault = f"or its arguments cannot be sent to another process: {error}"
    problem = Problem(
        "TypeMismatch",
        f"launch: {name} {fault}",
        {"argument": "function"},
        "give a function from the top level of a module (no lambda, no function inside another), "
        "and arguments that can be pickled",
    )
    raise ValidationError([problem], "the arguments of launch")


def _preparation(*, needs_main: bool) -> dict[str, Any]:
    """Return what ``multiprocessing.spawn.prepare`` takes.

    Its own ``get_preparation_data`` would fix the program's start method as a side effect, and import the
    main module even where nothing that is sent comes from there.
    """
    main = _main_location(sys.modules.get("__main__")) if needs_main else None
    return {
        "sys_path": [str(Path.cwd()) if entry == "" else entry for entry in sys.path],
        "sys_argv": sys.argv,
        "dir": str(Path.cwd()),
        **({} if main is None else {main[0]: main[1]}),
    }


def _main_location(main: Any) -> tuple[str, str] | None:
    name = getattr(getattr(main, "__spec__", None), "name", None)
    if name is not None:
        return "init_main_from_name", name
    file = getattr(main, "__file__", None)
    if file is None or not Path(file).exists():
        return None
    return "init_main_from_path", str(Path(file).resolve())
