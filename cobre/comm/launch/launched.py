"""A rank started by :func:`cobre.comm.launch.launching.launch`: what runs in the child process.

The parent sends one message (how to set up, the communicator's configuration, what to run), the child answers
with messages of progress and one last message, its result or its error. A message is a pickled tuple after
its length, 8 bytes little endian. A question is a message of progress that the parent answers with one byte.
When the parent dies, the child ends at once: the system kills it
(:func:`~cobre.comm.launch.processes.bind_to_parent`) and, where that cannot be asked for, it sees that the
pipe has ended or that it has another parent.
"""

from __future__ import annotations

import errno
import os
import pickle
import queue
import socket
import struct
import threading
import traceback
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from multiprocessing import spawn
from typing import Any, Final

PROGRESS: Final = "progress"
QUESTION: Final = "question"
RESULT: Final = "result"
ERROR: Final = "error"
LENGTH: Final = struct.Struct("<Q")
NO: Final = b"\0"
YES: Final = b"\1"

_EXIT_FAILED: Final = 1
_EXIT_ORPHANED: Final = 3
_CHUNK: Final = 1 << 20
_LOOK_AGAIN_S: Final = 1.0

preparing = False
"""Whether this process is a rank that still imports the main module of its parent."""

_channel: Channel | None = None


@dataclass(frozen=True)
class Setup:
    """The parent's message.

    Attributes
    ----------
    preparation
        For ``multiprocessing.spawn.prepare``: search path, arguments, directory, main module.
    cpus
        The CPUs to run on, or ``None`` for all.
    backend, config
        The communicator's backend and configuration.
    body
        Pickled function, positional and keyword arguments; may need the main module to be read.
    """

    preparation: dict[str, Any]
    cpus: tuple[int, ...] | None
    backend: str
    config: Any
    body: bytes


class Channel:
    """The child's end of the pipe."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._pid, self._parent = os.getpid(), os.getppid()
        self._lock = threading.Lock()
        self._answers: queue.SimpleQueue[bool] = queue.SimpleQueue()

    def receive(self) -> Any:
        """Return the parent's next message."""
        (length,) = LENGTH.unpack(self._read(LENGTH.size))
        return pickle.loads(self._read(length))

    def send(self, kind: str, *content: Any) -> None:
        """Send a message; raise whatever pickling raises before anything is sent."""
        payload = pickle.dumps((kind, *content))
        with self._lock:
            self._connection.sendall(LENGTH.pack(len(payload)))
            self._connection.sendall(payload)

    def watch(self, on_end: Callable[[], None]) -> None:
        """Take the parent's answers, and call a function when it is gone."""

        def wait() -> None:
            try:
                while answer := self._connection.recv(1):
                    self._answers.put(answer != NO)
            except OSError as error:
                if error.errno == errno.EBADF:
                    return  # this process itself is ending
            on_end()  # also after a reset: the parent has died with messages of ours unread

        threading.Thread(target=wait, name="cobre-parent", daemon=True).start()

    def ask(self, *content: Any) -> bool:
        """Send a question and wait for the answer while the parent lives; one at a time."""
        self.send(QUESTION, *content)
        while True:
            try:
                return self._answers.get(timeout=_LOOK_AGAIN_S)
            except queue.Empty:
                if os.getppid() != self._parent:
                    os._exit(_EXIT_ORPHANED)

    @property
    def is_own(self) -> bool:
        """Whether this process is the rank itself and no fork of it."""
        return os.getpid() == self._pid

    def _read(self, count: int) -> bytes:
        buffer = bytearray()
        while len(buffer) < count:
            part = self._connection.recv(min(_CHUNK, count - len(buffer)))
            if not part:
                os._exit(_EXIT_ORPHANED)
            buffer += part
        return bytes(buffer)


def progress(item: Any) -> None:
    """Send something to the parent's ``on_progress``, from a function that ``launch`` runs.

    In a process that ``launch`` did not start it does nothing.

    Parameters
    ----------
    item
        Anything that can be pickled.
    """
    if _channel is not None and _channel.is_own:
        _channel.send(PROGRESS, item)


def ask(item: Any) -> bool:
    """Send an item to the parent's ``on_progress``; return whether that returned something true.

    In a process that ``launch`` did not start the answer is false. Only one thread of a rank may call this.

    Parameters
    ----------
    item
        Anything that can be pickled.
    """
    return _channel is not None and _channel.is_own and _channel.ask(item)


def main(descriptor: int) -> None:
    """Run one rank to its end; ``descriptor`` is its end of the pipe."""
    global _channel
    _channel = channel = Channel(socket.socket(fileno=descriptor))
    setup: Setup = channel.receive()
    channel.watch(lambda: os._exit(_EXIT_ORPHANED))
    with ExitStack() as resources:
        try:
            if setup.cpus is not None:
                os.sched_setaffinity(0, setup.cpus)
            _prepare(setup.preparation)
            channel.send(RESULT, _run(setup, resources))
        except BaseException as error:  # sent to the parent, which raises it there
            # The communicator is still open, so that the parent receives the cause before its consequences.
            _report(channel, error)
            raise SystemExit(_EXIT_FAILED) from error


def _prepare(preparation: dict[str, Any]) -> None:
    """Import the parent's main module, where the function may be defined."""
    global preparing
    preparing = True
    spawn.prepare(preparation)
    preparing = False


def _run(setup: Setup, resources: ExitStack) -> bytes:
    from cobre.comm.selection import create_communicator

    function, arguments, keywords = pickle.loads(setup.body)
    communicator = resources.enter_context(create_communicator(setup.backend, setup.config))
    result = function(communicator, *arguments, **keywords)
    try:
        pickled = pickle.dumps(result)
    except Exception as error:  # pickling runs the object's own code, which may raise anything
        raise TypeError(f"the result, a {type(result).__name__}, cannot be sent: {error}") from error
    resources.close()
    return pickled


def _report(channel: Channel, error: BaseException) -> None:
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    inner: bytes | None
    try:
        inner = pickle.dumps(error)
        pickle.loads(inner)  # exceptions with arguments of their own often fail only here
    except Exception:  # as above
        inner = None
    channel.send(ERROR, inner, f"{type(error).__name__}: {error}", text)
