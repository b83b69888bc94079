"""A rank as the process that starts it sees it: a child process that carries out tasks, and its pipe."""

from __future__ import annotations

import contextlib
import functools
import os
import pickle
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from cobre.comm.launch.launched import ERROR, LENGTH, NO, QUESTION, RESULT, TASK, YES, Task
from cobre.comm.launch.processes import bind_to_parent
from cobre.errors import WorkerError

_CHUNK: Final = 1 << 20
_BOOT: Final = (
    "import sys; sys.path[:] = {path!r}; from cobre.comm.launch.launched import main; main({descriptor})"
)

OnProgress = Callable[[int, Any], object]
"""Called with a rank and what it sent; the answer to a question is whether it returns something true."""


class RankProcess:
    """One child process, which carries out the tasks that it is given, one after the other.

    Parameters
    ----------
    number
        Its rank.
    environment
        Its variables, all of them.
    descriptors
        What it inherits besides its pipe.
    output
        Descriptor of its standard output and error; ``None`` for those of this process.

    Attributes
    ----------
    process, connection
        The child, and this end of the pipe.
    result, error
        How its last task ended; ``None`` both as long as that is not known.
    ended
        Whether the process is known to have ended.
    silent
        Whether the pipe is at its end.
    """

    def __init__(
        self,
        number: int,
        environment: Mapping[str, str],
        *,
        descriptors: Sequence[int] = (),
        output: int | None = None,
    ) -> None:
        self.number = number
        self.result: bytes | None = None
        self.error: WorkerError | None = None
        self.ended = False
        self.silent = False
        self._last = False
        self._buffer = bytearray()
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                self.process = subprocess.Popen(
                    [sys.executable, "-c", _BOOT.format(path=sys.path, descriptor=theirs.fileno())],
                    env=dict(environment),
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    pass_fds=(theirs.fileno(), *descriptors),
                    start_new_session=True,
                    preexec_fn=functools.partial(bind_to_parent, os.getpid(), signal.SIGKILL),
                )
            except BaseException:
                ours.close()
                raise
        self.connection = ours

    def give(self, task: Task, descriptors: Sequence[int] = ()) -> None:
        """Have a task carried out, and send descriptors with it; one task at a time."""
        self.result = self.error = None
        self._last = task.last
        payload = pickle.dumps(task)
        self.connection.setblocking(True)
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # that it has ended is seen later
            if descriptors:
                socket.send_fds(self.connection, [TASK], descriptors)
            else:
                self.connection.sendall(TASK)
            self.connection.sendall(LENGTH.pack(len(payload)))
            self.connection.sendall(payload)
        self.connection.setblocking(False)

    @property
    def reported(self) -> bool:
        """Whether it is known how the task ended."""
        return self.result is not None or self.error is not None

    def value(self) -> Any:
        """Return what the function returned, and keep it no longer; only if there is a result."""
        result, self.result = self.result, b""
        assert result is not None
        return pickle.loads(result)

    @property
    def done(self) -> bool:
        """Whether nothing more will come of the task."""
        return self.ended or (self.reported and not self._last)

    def look(self, on_progress: OnProgress | None) -> None:
        """Take the messages that have arrived, and the end of the process if it has ended."""
        if self.ended:
            return
        exit_code = self.process.poll()  # before its messages are read for the last time: none is missed
        for kind, *content in self._messages():
            if kind == ERROR:
                self.error = _worker_error(self.number, *content)
            elif kind == RESULT:
                self.result = content[0]
            else:
                answer = on_progress is not None and on_progress(self.number, content[0])
                if kind == QUESTION:
                    self._answer(YES if answer else NO)
        if exit_code is not None:
            self.ended = True
            if self.error is not None:
                self.error.exit_code = self.error.context["exit_code"] = exit_code
            elif self.result is None or (self._last and exit_code != 0):
                self.error = _ended(self.number, exit_code)

    def _answer(self, answer: bytes) -> None:
        """Answer a question; a rank that is gone meanwhile needs none."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.connection.sendall(answer)

    def _messages(self) -> list[tuple[Any, ...]]:
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
