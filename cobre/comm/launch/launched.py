"""A rank started from Python (:mod:`cobre.comm.launch.rank_process`): what runs in the child process.

The parent gives it tasks, as a rule to make a communicator and call a function with it. The child answers
each with messages of progress and one last message, its result or its error. A message is a pickled tuple
after its length, 8 bytes little endian. A question is a message of progress that the parent answers with one
byte; a task comes behind another byte, also with its length, and the descriptors that its communicator needs.
When the parent dies, the child ends at once: the system kills it
(:func:`~cobre.comm.launch.processes.bind_to_parent`) and, where that cannot be asked for, it sees that the
pipe has ended or that it has another parent.
"""

from __future__ import annotations

import errno
import gc
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
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from cobre.comm.contract import Communicator

PROGRESS: Final = "progress"
QUESTION: Final = "question"
RESULT: Final = "result"
ERROR: Final = "error"
LENGTH: Final = struct.Struct("<Q")
NO: Final = b"\0"
YES: Final = b"\1"
TASK: Final = b"\2"

_EXIT_FAILED: Final = 1
_EXIT_ORPHANED: Final = 3
_CHUNK: Final = 1 << 20
_LOOK_AGAIN_S: Final = 1.0
_MOST_DESCRIPTORS: Final = 16
_CLOSE_ON_EXEC: Final = getattr(socket, "MSG_CMSG_CLOEXEC", 0)

preparing = False
"""Whether this process is a rank that still imports the main module of its parent."""

_channel: Channel | None = None


@dataclass(frozen=True)
class Task:
    """What the parent asks for.

    Attributes
    ----------
    preparation
        For ``multiprocessing.spawn.prepare``: search path, arguments, directory, main module.
    cpus
        The CPUs to run on, or ``None`` for all.
    backend, config
        The communicator's backend and configuration; without a backend the function gets no communicator.
    body
        Pickled function, positional and keyword arguments; may need the main module to be read.
    last
        Whether the process ends with it.
    """

    preparation: dict[str, Any]
    cpus: tuple[int, ...] | None
    backend: str | None
    config: Any
    body: bytes
    last: bool


class Channel:
    """The child's end of the pipe.

    Parameters
    ----------
    connection
        The socket.
    on_end
        Called, by another thread, when the parent is gone.
    """

    def __init__(self, connection: socket.socket, on_end: Callable[[], None]) -> None:
        self._connection = connection
        self._pid, self._parent = os.getpid(), os.getppid()
        self._lock = threading.Lock()
        self._answers: queue.SimpleQueue[bool] = queue.SimpleQueue()
        self._tasks: queue.SimpleQueue[tuple[bytes, list[int]]] = queue.SimpleQueue()
        self._descriptors: list[int] = []
        threading.Thread(target=self._listen, args=(on_end,), name="cobre-parent", daemon=True).start()

    def next_task(self) -> tuple[Task, list[int]]:
        """Wait for the parent's next task; its descriptors are the caller's to close."""
        payload, descriptors = self._tasks.get()
        return pickle.loads(payload), descriptors

    def send(self, kind: str, *content: Any) -> None:
        """Send a message; raise whatever pickling raises before anything is sent."""
        payload = pickle.dumps((kind, *content))
        with self._lock:
            self._connection.sendall(LENGTH.pack(len(payload)))
            self._connection.sendall(payload)

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

    def _listen(self, on_end: Callable[[], None]) -> None:
        try:
            while True:
                kind = self._read(1)
                if kind == TASK:
                    (length,) = LENGTH.unpack(self._read(LENGTH.size))
                    payload = self._read(length)
                    self._tasks.put((payload, self._descriptors))
                    self._descriptors = []
                else:
                    self._answers.put(kind != NO)
        except OSError as error:
            if error.errno == errno.EBADF:
                return  # this process itself is ending
        except EOFError:
            pass
        on_end()  # also after a reset: the parent has died with messages of ours unread

    def _read(self, count: int) -> bytes:
        """Return exactly so many bytes; never reads beyond a message, with which its descriptors come."""
        buffer = bytearray()
        while len(buffer) < count:
            wanted = min(_CHUNK, count - len(buffer))
            part, descriptors, _, _ = socket.recv_fds(
                self._connection, wanted, _MOST_DESCRIPTORS, _CLOSE_ON_EXEC
            )
            self._descriptors += descriptors
            if not part:
                raise EOFError
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
    """Carry out the parent's tasks, the last of which ends this process; ``descriptor`` is the pipe's."""
    global _channel
    _channel = channel = Channel(socket.socket(fileno=descriptor), lambda: os._exit(_EXIT_ORPHANED))
    while not _carry_out(channel, *channel.next_task()):
        gc.collect()  # what the task has left behind: communicators, arrays, errors with their frames
        gc.freeze()  # what is left stays, above all loaded kernels: later collections need not look at it


def _carry_out(channel: Channel, task: Task, descriptors: list[int]) -> bool:
    """Carry out a task and report how it ended; return whether it was the last."""
    try:
        with ExitStack() as resources:
            try:
                if task.cpus is not None:
                    os.sched_setaffinity(0, task.cpus)
                channel.send(RESULT, _run(task, descriptors, resources))
            except BaseException as error:  # sent to the parent, which raises it there
                # The communicator is still open: the parent receives the cause before its consequences.
                _report(channel, error)
                raise
    except BaseException as error:
        if task.last:
            raise SystemExit(_EXIT_FAILED) from error
    return task.last


def _prepare(preparation: dict[str, Any]) -> None:
    """Import the parent's main module, where the function may be defined."""
    global preparing
    preparing = True
    try:
        spawn.prepare(preparation)
    finally:
        preparing = False


def _run(task: Task, descriptors: list[int], resources: ExitStack) -> bytes:
    try:
        _prepare(task.preparation)
        function, arguments, keywords = pickle.loads(task.body)
    except BaseException:
        for descriptor in descriptors:
            os.close(descriptor)
        raise
    if task.backend is not None:
        communicator = _communicator(task.backend, task.config, descriptors)
        arguments = (resources.enter_context(communicator), *arguments)
    result = function(*arguments, **keywords)
    try:
        pickled = pickle.dumps(result)
    except Exception as error:  # pickling runs the object's own code, which may raise anything
        raise TypeError(f"the result, a {type(result).__name__}, cannot be sent: {error}") from error
    resources.close()
    return pickled


def _communicator(backend: str, config: Any, descriptors: list[int]) -> Communicator:
    from cobre.comm.registry import find_backend
    from cobre.comm.selection import create_communicator

    if descriptors:
        config = find_backend(backend).with_descriptors(config, descriptors)
    return create_communicator(backend, config)


def _report(channel: Channel, error: BaseException) -> None:
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    inner: bytes | None
    try:
        inner = pickle.dumps(error)
        pickle.loads(inner)  # exceptions with arguments of their own often fail only here
    except Exception:  # as above
        inner = None
    channel.send(ERROR, inner, f"{type(error).__name__}: {error}", text)
