"""Configurations of the tcp and the shm backend (SEL-06).

A program may give one to :func:`~cobre.comm.selection.create_communicator`; otherwise it comes from the
environment (:mod:`cobre.comm.environment`). Both are checked when they are made, with every fault at once.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import Any, Final

from cobre.errors import Problem, ValidationError

DEFAULT_PORT: Final = 29500
DEFAULT_CAPACITY_BYTES: Final = 8 * 1024 * 1024
DEFAULT_TCP_CONNECT_S: Final = 30.0
DEFAULT_SHM_CONNECT_S: Final = 60.0
DEFAULT_HEARTBEAT_S: Final = 1.0
DEFAULT_SILENCE_S: Final = 30.0
SILENT_BEATS: Final = 3
"""Heartbeats that a rank may at least miss before the others take it for dead."""
DEFAULT_TIMEOUT_S: Final = 3600.0
"""A backstop (10.7): ranks that die are found within seconds by other means; the rest is slow, or stuck."""
NONCE_BYTES: Final = 16
SHORTEST_TOKEN: Final = 16
"""Bytes that a token has at least."""
LARGEST_SIZE: Final = 65536
"""More ranks than this are taken for a mistake."""

_LONGEST_NAME: Final = 200  # names of regions are longer, and must stay below NAME_MAX (255)
_SEGMENT: Final = re.compile(r"/proc/\d+/fd/\d+")
_NAME: Final = re.compile(rf"/(?=.*[^./])[A-Za-z0-9_.-]{{1,{_LONGEST_NAME - 1}}}")


@dataclass(frozen=True)
class TcpConfig:
    """How one rank of a tcp job finds the others.

    Attributes
    ----------
    coordinator
        Host name or address of rank 0, without a port. Rank 0 itself does not dial it.
    rank, size
        This process's rank, and how many there are.
    port
        Where rank 0 listens.
    bind_addr
        Address that rank 0 listens on.
    connect_timeout_s
        How long all ranks together may take to find each other.
    timeout_s
        How long a collective may wait for a rank that is alive.
    token
        Secret that all ranks share, at least 16 bytes; a job of one rank needs none.
    listener_fd
        Listening socket that rank 0 takes over instead of opening one.
    heartbeat_s
        How often each rank gives a sign of life; the same on all ranks.
    silence_s
        How long a rank may give none before the others take it for dead, at least three heartbeats; the same
        on all ranks. A connection on which nothing gets through for as long is taken for broken.
    """

    coordinator: str
    rank: int
    size: int
    port: int = DEFAULT_PORT
    bind_addr: str = "127.0.0.1"
    connect_timeout_s: float = DEFAULT_TCP_CONNECT_S
    timeout_s: float = DEFAULT_TIMEOUT_S
    token: bytes | None = field(default=None, repr=False)
    listener_fd: int | None = None
    heartbeat_s: float = DEFAULT_HEARTBEAT_S
    silence_s: float = DEFAULT_SILENCE_S

    def __post_init__(self) -> None:
        faults = _Faults("TcpConfig")
        faults.ranks(self.rank, self.size)
        faults.host("coordinator", self.coordinator)
        faults.host("bind_addr", self.bind_addr)
        faults.whole("port", self.port, 1, 65535)
        faults.seconds("connect_timeout_s", self.connect_timeout_s)
        faults.seconds("timeout_s", self.timeout_s)
        paced = faults.seconds("heartbeat_s", self.heartbeat_s) & faults.seconds("silence_s", self.silence_s)
        if paced and self.silence_s < SILENT_BEATS * self.heartbeat_s:
            text = f"is less than {SILENT_BEATS} heartbeats of {self.heartbeat_s:g} s"
            faults.add("OutOfRange", "silence_s", self.silence_s, text)
        if self.token is None and self.size != 1:
            text = f"is missing: ranks prove themselves by it; give {SHORTEST_TOKEN} random bytes or more"
            faults.add("SchemaViolation", "token", None, text)
        elif self.token is not None and not (
            isinstance(self.token, bytes) and len(self.token) >= SHORTEST_TOKEN
        ):
            faults.add("SchemaViolation", "token", None, f"needs at least {SHORTEST_TOKEN} bytes")
        if self.listener_fd is not None:
            faults.whole("listener_fd", self.listener_fd, 0, 2**31 - 1)
        faults.done()


@dataclass(frozen=True)
class ShmConfig:
    """How one rank of a shm job finds the others.

    Attributes
    ----------
    name
        Name of the control segment: ``/`` and then letters, digits, ``_``, ``.`` or ``-``.
    rank, size
        This process's rank, and how many there are.
    connect_timeout_s
        How long all ranks together may take to find each other.
    timeout_s
        How long a collective may wait for a rank that is alive.
    nonce
        16 random bytes that all ranks share; a process without them cannot join. ``None`` skips this check.
    capacity_bytes
        Memory for payloads, shared by all ranks in two halves; larger ones go through in rounds. Rank 0's
        counts. More than the processors' caches hold is of no use.
    segment
        File that a launcher has made for the control segment, as ``/proc/<process id>/fd/<number>``. It has
        no name, so that nothing can be left behind; ``name`` then serves in messages only. ``None``: rank 0
        makes one with that name.
    """

    name: str
    rank: int
    size: int
    connect_timeout_s: float = DEFAULT_SHM_CONNECT_S
    timeout_s: float = DEFAULT_TIMEOUT_S
    nonce: bytes | None = field(default=None, repr=False)
    capacity_bytes: int = DEFAULT_CAPACITY_BYTES
    segment: str | None = None

    def __post_init__(self) -> None:
        faults = _Faults("ShmConfig")
        faults.ranks(self.rank, self.size)
        if not (
            isinstance(self.name, str) and _NAME.fullmatch(self.name) and len(self.name) <= _LONGEST_NAME
        ):
            text = f"is '/' and then 1 to {_LONGEST_NAME - 1} letters, digits, '_', '.' or '-'"
            faults.add("SchemaViolation", "name", self.name, text)
        elif self.name.lstrip("/.") == "":
            faults.add("SchemaViolation", "name", self.name, "needs more than dots")
        faults.seconds("connect_timeout_s", self.connect_timeout_s)
        faults.seconds("timeout_s", self.timeout_s)
        if self.nonce is not None and not (isinstance(self.nonce, bytes) and len(self.nonce) == NONCE_BYTES):
            faults.add("SchemaViolation", "nonce", None, f"needs {NONCE_BYTES} bytes, or None")
        faults.whole("capacity_bytes", self.capacity_bytes, 1, 2**62)
        if self.segment is not None and not (
            isinstance(self.segment, str) and _SEGMENT.fullmatch(self.segment)
        ):
            faults.add("SchemaViolation", "segment", self.segment, "is no /proc/<process id>/fd/<number>")
        faults.done()


class _Faults:
    """Collects what is wrong with a configuration; secrets stay out of it."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._problems: list[Problem] = []

    def add(self, kind: str, name: str, value: Any, text: str) -> None:
        context = {"setting": name} if value is None else {"setting": name, "value": value}
        shown = "" if value is None else f"={value!r}"
        self._problems.append(Problem(kind, f"{self._source}: {name}{shown} {text}", context))

    def ranks(self, rank: Any, size: Any) -> None:
        if self.whole("size", size, 1, LARGEST_SIZE):
            self.whole("rank", rank, 0, size - 1)

    def whole(self, name: str, value: Any, low: int, high: int) -> bool:
        if isinstance(value, bool) or not isinstance(value, int):
            self.add("TypeMismatch", name, value, "is no integer")
            return False
        if not low <= value <= high:
            self.add("OutOfRange", name, value, f"is outside of {low} to {high}")
            return False
        return True

    def seconds(self, name: str, value: Any) -> bool:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            self.add("TypeMismatch", name, value, "is no number")
        elif not (math.isfinite(value) and value > 0):
            self.add("OutOfRange", name, value, "is no positive number of seconds")
        else:
            return True
        return False

    def host(self, name: str, value: Any) -> None:
        if not isinstance(value, str):
            self.add("TypeMismatch", name, value, "is no text")
        elif not re.fullmatch(r"[^\s\[\]/]+", value) or value.count(":") == 1:
            self.add("SchemaViolation", name, value, "is no host name or address (without a port)")

    def done(self) -> None:
        if self._problems:
            raise ValidationError(self._problems, f"the {self._source}")
