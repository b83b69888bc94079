"""Run copies of a command, each as one rank: ``cobre launch -n 4 -- python script.py``.

The ranks find each other through ``COBRE_*`` variables, from which ``create_communicator()`` makes their
communicator. Their output is passed on line by line. When one fails, the others are ended.
"""

from __future__ import annotations

import contextlib
import functools
import os
import selectors
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import IO, Any, BinaryIO, Final

from cobre.comm.descriptors import require_descriptors
from cobre.comm.launch.processes import (
    bind_to_parent,
    cpu_slices,
    end_processes,
    ending_orphans,
    exit_watches,
    scrubbed,
    signal_group,
)
from cobre.comm.registry import Transport, make_transport
from cobre.errors import Problem, ValidationError
from cobre.machine import most_workers, too_many
from cobre.stop_signals import watched_signals

_CHUNK: Final = 1 << 16
_DESCRIPTORS_OF_A_RANK: Final = 3  # two pipes, and the descriptor that signals its end
_POLL_SECONDS: Final = 0.1
_DRAIN_SECONDS: Final = 1.0
_SIGNAL_EXIT: Final = 128


def run_command(
    command: Sequence[str],
    ranks: int,
    *,
    backend: str = "shm",
    prefix: bool = False,
    pin: bool = True,
    stdout: BinaryIO | None = None,
    stderr: BinaryIO | None = None,
) -> int:
    """Run a command once for each rank and wait for all.

    SIGINT and SIGTERM are passed on to the ranks; a second one ends them.

    Parameters
    ----------
    command
        The program and its arguments.
    ranks
        Number of copies.
    backend
        ``"shm"``, ``"tcp"`` (on the loopback interface), or another that has a transport.
    prefix
        Put ``[rank]`` before each line of output.
    pin
        Give each rank CPUs of its own, if there are at least as many CPUs as ranks.
    stdout, stderr
        Where the ranks' output goes; default this process's own.

    Returns
    -------
    int
        0 if all ranks ended with 0, else the exit code of the first that did not; 128 plus the number of the
        signal that ended it.

    Raises
    ------
    ValidationError
        When there is no command, it cannot be found, or ``ranks`` is not positive.
    """
    _check(command, ranks)
    outputs = (stdout or sys.stdout.buffer, stderr or sys.stderr.buffer)
    require_descriptors(backend, _DESCRIPTORS_OF_A_RANK * ranks, f"the launcher of {ranks} ranks")
    with make_transport(backend, ranks) as transport:
        return _Copies(transport, list(command), prefix, pin, outputs).run()


class _Copies:
    """The ranks of one call of ``run_command``."""

    def __init__(
        self,
        transport: Transport,
        command: list[str],
        prefix: bool,
        pin: bool,
        outputs: tuple[BinaryIO, BinaryIO],
    ) -> None:
        self._transport = transport
        self._command = command
        self._prefix = prefix
        self._slices = cpu_slices(transport.size) if pin else None
        self._outputs = outputs
        self._processes: list[subprocess.Popen[bytes]] = []
        self._streams: dict[int, _Stream] = {}
        self._code: int | None = None

    def run(self) -> int:
        try:
            with _forwarding(self._forward), ending_orphans() as mark:
                environment = {**scrubbed(os.environ), **mark}
                for rank in range(self._transport.size):
                    if self._code is None:  # else a signal arrived meanwhile
                        self._start(rank, environment)
                self._transport.started()
                self._watch()
        finally:
            end_processes(self._processes)
            self._drain()
        return self._code or 0

    def _start(self, rank: int, environment: dict[str, str]) -> None:
        # without PYTHONUNBUFFERED a Python program keeps its lines back when it writes to a pipe
        variables = {**environment, "PYTHONUNBUFFERED": "1", **self._transport.environment(rank)}
        cpus = None if self._slices is None else self._slices[rank]
        process = subprocess.Popen(
            self._command,
            env=variables,
            stdin=None if rank == 0 and not _on_terminal() else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            pass_fds=self._transport.descriptors(rank),
            start_new_session=True,
            preexec_fn=functools.partial(bind_to_parent, os.getpid(), signal.SIGKILL, cpus),
        )
        self._processes.append(process)
        label = f"[{rank}] ".encode() if self._prefix else b""
        for pipe, sink in zip((process.stdout, process.stderr), self._outputs, strict=True):
            if pipe is not None:
                os.set_blocking(pipe.fileno(), False)
                self._streams[pipe.fileno()] = _Stream(pipe, sink, label)

    def _forward(self, number: int, again: bool) -> None:
        if self._code is None:
            self._code = _SIGNAL_EXIT + number
        for process in self._processes:
            signal_group(process, signal.SIGKILL if again else number)

    def _watch(self) -> None:
        running = set(range(len(self._processes)))
        with exit_watches(self._processes) as watches, selectors.DefaultSelector() as selector:
            for descriptor in (*watches, *self._streams):
                selector.register(descriptor, selectors.EVENT_READ)
            while running:
                # a signal handler does not end the wait by itself
                for key, _ in selector.select(_POLL_SECONDS if not watches else None):
                    stream = self._streams.get(key.fd)
                    if (stream is not None and not stream.forward()) or key.fd in watches:
                        selector.unregister(key.fd)
                for rank in sorted(running):
                    code = self._processes[rank].poll()
                    if code is not None:
                        running.discard(rank)
                        if code != 0:
                            self._fail(code)
                            return

    def _fail(self, code: int) -> None:
        if self._code is None:
            self._code = code if code > 0 else _SIGNAL_EXIT - code

    def _drain(self) -> None:
        """Pass on what the ranks had written when they ended."""
        with selectors.DefaultSelector() as selector:
            for descriptor, stream in self._streams.items():
                if not stream.ended:
                    selector.register(descriptor, selectors.EVENT_READ)
            while selector.get_map():
                ready = selector.select(_DRAIN_SECONDS)
                if not ready:
                    break  # a process that has left its group still holds the pipe
                for key, _ in ready:
                    if not self._streams[key.fd].forward():
                        selector.unregister(key.fd)
        for stream in self._streams.values():
            stream.close()


class _Stream:
    """One output stream of one rank, passed on in whole lines."""

    def __init__(self, pipe: IO[bytes], sink: BinaryIO, label: bytes) -> None:
        self.ended = False
        self._pipe = pipe
        self._sink = sink
        self._label = label
        self._rest = b""

    def forward(self) -> bool:
        """Pass on the lines that have arrived; return whether more can follow."""
        try:
            part = os.read(self._pipe.fileno(), _CHUNK)
        except BlockingIOError:
            return True
        *lines, self._rest = (self._rest + part).split(b"\n")
        self._write(b"".join(self._label + line + b"\n" for line in lines))
        if not part:
            self.ended = True
            self._flush()
        return bool(part)

    def close(self) -> None:
        """Pass on an unfinished last line and close the pipe."""
        self._flush()
        self._pipe.close()

    def _flush(self) -> None:
        if self._rest:
            self._write(self._label + self._rest + b"\n")
            self._rest = b""

    def _write(self, text: bytes) -> None:
        if text:
            self._sink.write(text)
            self._sink.flush()


@contextlib.contextmanager
def _forwarding(forward: Callable[[int, bool], None]) -> Iterator[None]:
    """Hand signals that ask to stop to ``forward`` meanwhile; outside the main thread nothing can."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    seen: list[int] = []

    def handle(number: int, frame: FrameType | None) -> None:
        seen.append(number)
        forward(number, len(seen) > 1)

    saved: dict[int, Any] = {number: signal.signal(number, handle) for number in watched_signals()}
    try:
        yield
    finally:
        for number, handler in saved.items():
            signal.signal(number, handler)


def _on_terminal() -> bool:
    """Whether standard input is a terminal, from which a process in a session of its own cannot read."""
    return sys.stdin is None or sys.stdin.isatty()


def _check(command: Sequence[str], ranks: int) -> None:
    problems = []
    if isinstance(ranks, bool) or not isinstance(ranks, int) or ranks < 1:
        text = f"launch: ranks={ranks!r} is no positive integer"
        problems.append(Problem("OutOfRange", text, {"argument": "ranks"}))
    elif ranks > most_workers():
        problems.append(too_many("ranks", ranks))
    if not command:
        text = "launch: no command is given"
        problems.append(Problem("SchemaViolation", text, {"argument": "command"}, "put it after '--'"))
    elif shutil.which(command[0]) is None:
        text = f"launch: there is no program {command[0]!r}"
        problems.append(Problem("MissingFile", text, {"argument": "command"}, "check the name and PATH"))
    if problems:
        raise ValidationError(problems, "the arguments of launch")
