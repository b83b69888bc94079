"""How the ranks of a tcp job find each other (TCP-01, TCP-05, TCP-06): rank 0 listens, the others dial.

Rank 0 serves all connections at once, so that a silent one delays no other. Each has five seconds and
:data:`~cobre.comm.tcp.handshake.LARGEST_MESSAGE` bytes to prove that it belongs to the job. At most
:data:`LARGEST_PENDING` may be pending; a new one then replaces the oldest, since ranks of the job prove it at
once. A connection that fails is dropped and the job goes on. The port is closed when all have joined.

A rank that ends after it has joined and before all have is detected at once: rank 0 notifies those that have
joined, and a worker detects rank 0's end itself. A rank that never joins is reported at the deadline.
"""

from __future__ import annotations

import contextlib
import errno
import select
import selectors
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from cobre.comm.config import TcpConfig
from cobre.comm.errors import InitializationFailed, RankLost
from cobre.comm.tcp.handshake import (
    ACK_BYTES,
    CHALLENGE_BYTES,
    HELLO_BYTES,
    HOST_BYTES,
    Channel,
    Hello,
    Identity,
    Refusal,
    Refused,
    challenge,
    check_ack,
    check_hello_header,
    decode_host,
    encode_host,
    hello,
    new_nonce,
    read_ack_header,
    read_challenge,
    read_hello,
    refusal,
)
from cobre.comm.tcp.watch import Link
from cobre.comm.tcp.wire import HEADER_BYTES, FrameError, Header, Tag

BACKEND: Final = "tcp"
HANDSHAKE_S: Final = 5.0
LARGEST_PENDING: Final = 64
_ACCEPTS_AT_ONCE: Final = 32
_BACKLOG: Final = 512
_FIRST_RETRY_S: Final = 0.01
_LAST_RETRY_S: Final = 0.5
_GRACE_S: Final = 5.0
"""How much longer workers wait than rank 0, which reports to them the missing ranks."""
_LONGEST_STORY: Final = 1024
_PROBES: Final = 3
_LONGEST_TIMEOUT_MS: Final = 2**31 - 1
_LOST: Final = "ended or broke off during the start"
_NO_DESCRIPTORS: Final = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


@dataclass
class Party:
    """The ranks that have joined: links in the order of the peers' ranks, and the host of each rank."""

    links: list[Link]
    hosts: list[str]


def open_listener(config: TcpConfig) -> socket.socket:
    """Return rank 0's listening socket: the one handed over by the parent, or a new one.

    Raises
    ------
    InitializationFailed
        When it cannot be opened, for example because the port is taken.
    """
    if config.listener_fd is not None:
        try:
            listener = socket.socket(fileno=config.listener_fd)
            listener.listen(_BACKLOG)
        except OSError as error:
            story = f"descriptor {config.listener_fd} is no listening socket: {error}"
            raise InitializationFailed(BACKEND, story) from error
        return listener
    try:
        family, _, _, _, place = socket.getaddrinfo(
            config.bind_addr, config.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        return socket.create_server(place[:2], family=family, backlog=_BACKLOG)
    except OSError as error:
        story = f"cannot listen on {config.bind_addr} port {config.port}: {error}"
        raise InitializationFailed(BACKEND, story, error.errno or 0) from error


@contextlib.contextmanager
def _closed_on_error(*sockets: socket.socket) -> Iterator[None]:
    try:
        yield
    except BaseException:
        for connection in sockets:
            connection.close()
        raise


def _tune(link: Link, silence_s: float) -> None:
    """Set up a peer's connections for small messages, and for a network that loses them.

    They are blocking, since the kernel decides for itself when to wait. The system gives up a control
    connection on which heartbeats get no acknowledgement. It must not do so with data: a peer that computes
    does not read, and TCP_USER_TIMEOUT would count its full buffer as a loss. The watcher covers those.
    """
    probe_s = max(1, round(silence_s / _PROBES))
    for connection in (link.data, link.control):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, probe_s)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, probe_s)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, _PROBES)
        connection.setblocking(True)
    patience_ms = min(round(silence_s * 1000), _LONGEST_TIMEOUT_MS)
    link.control.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, patience_ms)


@dataclass
class _Pending:
    """A connection that has not yet proved to belong to the job."""

    deadline: float
    nonce: bytes = field(default_factory=new_nonce)
    received: bytearray = field(default_factory=bytearray)


class Coordinator:
    """Rank 0's side of the start.

    Parameters
    ----------
    listener
        The listening socket; closed at the end.
    identity
        Rank 0's description of the job.
    host
        Name of rank 0's host.
    timeout_s
        How long to wait for all.
    silence_s
        How long a connection may be dead before it is given up.
    """

    def __init__(
        self, listener: socket.socket, identity: Identity, host: str, timeout_s: float, silence_s: float
    ) -> None:
        self._listener = listener
        self._identity = identity
        self._host = host
        self._deadline = time.monotonic() + timeout_s
        self._timeout_s = timeout_s
        self._silence_s = silence_s
        self._selector = selectors.DefaultSelector()
        self._pending: dict[socket.socket, _Pending] = {}  # oldest first
        self._joined: dict[tuple[int, Channel], socket.socket] = {}
        self._ranks: dict[socket.socket, int] = {}
        self._hosts: dict[int, str] = {}

    def assemble(self) -> Party:
        """Wait for all workers and send the list of ranks to each.

        Raises
        ------
        InitializationFailed
            When some do not join in time; names them. Those that have joined are notified.
        RankLost
            When one that has joined ends. The others that have joined are notified.
        """
        try:
            self._listener.setblocking(False)
            self._selector.register(self._listener, selectors.EVENT_READ)
            while len(self._joined) < 2 * (self._identity.size - 1):
                self._step()
            self._listener.close()
            return self._announce()
        except BaseException as error:
            self._give_up(error)
            raise
        finally:
            for connection in list(self._pending):
                self._drop(connection)
            self._selector.close()
            self._listener.close()

    def _step(self) -> None:
        now = time.monotonic()
        if now >= self._deadline:
            missing = [r for r in range(1, self._identity.size) if (r, Channel.CONTROL) not in self._joined]
            names = ", ".join(str(rank) for rank in missing)
            raise InitializationFailed(
                BACKEND, f"after {self._timeout_s:g} s these ranks had not joined: {names}"
            )
        while self._pending and next(iter(self._pending.values())).deadline <= now:
            self._drop(next(iter(self._pending)))
        soonest = min([self._deadline, *(p.deadline for p in self._pending.values())])
        for key, _ in self._selector.select(max(soonest - now, 0.0)):
            connection = key.fileobj
            assert isinstance(connection, socket.socket)
            if connection is self._listener:
                self._accept()
            elif connection in self._pending:
                self._read(connection)
            elif connection in self._ranks:  # sends nothing before all have joined, so it is gone
                raise RankLost(BACKEND, self._ranks[connection], _LOST)

    def _accept(self) -> None:
        for _ in range(_ACCEPTS_AT_ONCE):
            try:
                connection, _ = self._listener.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in _NO_DESCRIPTORS and self._pending:
                    self._drop(next(iter(self._pending)))
                    continue
                if error.errno in _NO_DESCRIPTORS:
                    story = f"rank 0 cannot accept more connections, descriptors or memory ran out: {error}"
                    raise InitializationFailed(BACKEND, story, error.errno) from error
                continue  # a connection that went away before it was accepted
            while len(self._pending) >= LARGEST_PENDING:
                self._drop(next(iter(self._pending)))
            connection.setblocking(False)
            pending = _Pending(time.monotonic() + HANDSHAKE_S)
            self._pending[connection] = pending
            self._selector.register(connection, selectors.EVENT_READ)
            self._send(connection, challenge(pending.nonce))

    def _read(self, connection: socket.socket) -> None:
        pending = self._pending[connection]
        try:
            data = connection.recv(HELLO_BYTES - len(pending.received))
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._drop(connection)
            return
        before = len(pending.received)
        pending.received += data
        try:
            if before < HEADER_BYTES <= len(pending.received):
                check_hello_header(bytes(pending.received[:HEADER_BYTES]))
            if len(pending.received) == HELLO_BYTES:
                self._join(connection, pending)
        except Refused as refused:
            self._send(connection, refusal(refused.reason))
            self._drop(connection)

    def _join(self, connection: socket.socket, pending: _Pending) -> None:
        who, acknowledgement = read_hello(self._identity, bytes(pending.received), pending.nonce)
        if (who.rank, who.channel) in self._joined:
            raise Refused(Refusal.DUPLICATE)
        if not self._send(connection, acknowledgement):
            return
        del self._pending[connection]
        self._joined[who.rank, who.channel] = connection
        self._ranks[connection] = who.rank
        self._hosts[who.rank] = who.host

    def _send(self, connection: socket.socket, message: bytes) -> bool:
        """Send a short message at once; drop a peer whose buffer does not even take that."""
        try:
            if connection.send(message, socket.MSG_NOSIGNAL) == len(message):
                return True
        except OSError:
            pass  # the peer is gone, which is its own affair
        self._drop(connection)
        return False

    def _drop(self, connection: socket.socket) -> None:
        if self._pending.pop(connection, None) is not None:
            self._selector.unregister(connection)
            connection.close()

    def _announce(self) -> Party:
        """Send every worker the roster: all ranks' hosts. It also means: all are there."""
        ranks = range(1, self._identity.size)
        hosts = [self._host, *(self._hosts[rank] for rank in ranks)]
        roster = b"".join(encode_host(host) for host in hosts)
        frame = Header(Tag.ROSTER, length=len(roster)).encode() + roster
        links = []
        for rank in ranks:
            data, control = self._joined[rank, Channel.DATA], self._joined[rank, Channel.CONTROL]
            # the watcher detects a peer that has gone meanwhile, and can send its rank to the others
            with contextlib.suppress(OSError):
                control.settimeout(HANDSHAKE_S)
                control.sendall(frame)
            links.append(Link(rank, data, control))
        for link in links:
            _tune(link, self._silence_s)
        return Party(links, hosts)

    def _give_up(self, error: BaseException) -> None:
        """Notify the joined workers, on whichever connection they listen, that the start failed; close."""
        for connection in self._joined.values():
            with contextlib.suppress(OSError):  # it may be the very one that is gone
                connection.setblocking(False)
                connection.send(_story_frame(error), socket.MSG_NOSIGNAL)
        for connection in self._joined.values():
            connection.close()


def _story_frame(error: BaseException) -> bytes:
    if isinstance(error, RankLost):
        return Header(Tag.ERROR, op=Refusal.RANK_LOST, source=error.rank).encode()
    story = error.source if isinstance(error, InitializationFailed) else type(error).__name__
    text = story.encode()[:_LONGEST_STORY]
    return Header(Tag.ERROR, op=Refusal.START_FAILED, length=len(text)).encode() + text


class Worker:
    """A worker's side of the start.

    Parameters
    ----------
    config
        Where rank 0 is, and this worker's rank.
    identity
        The worker's description of the job.
    host
        Name of this host.
    """

    def __init__(self, config: TcpConfig, identity: Identity, host: str) -> None:
        self._config = config
        self._identity = identity
        self._host = host
        self._deadline = time.monotonic() + config.connect_timeout_s

    def join(self) -> Party:
        """Connect to rank 0 and wait until all ranks have joined.

        Raises
        ------
        InitializationFailed
            When rank 0 cannot be reached in time, refuses this worker or is not what it seems, or when the
            start failed for all.
        RankLost
            When rank 0 ends after it has admitted this worker, or reports that another rank has ended.
        """
        data = self._dial(Channel.DATA)
        with _closed_on_error(data):
            control = self._dial(Channel.CONTROL, data)
            with _closed_on_error(control):
                hosts = self._await_roster(control)
        link = Link(0, data, control)
        _tune(link, self._config.silence_s)
        return Party([link], hosts)

    def _dial(self, channel: Channel, joined: socket.socket | None = None) -> socket.socket:
        """Connect and authenticate; retry at growing intervals while rank 0 does not listen yet (TCP-05).

        Rank 0 sends nothing on a connection that it has admitted, unless the start has failed.
        """
        place = (self._config.coordinator, self._config.port)
        delay = _FIRST_RETRY_S
        while True:
            try:
                connection = socket.create_connection(place, timeout=self._left())
                with _closed_on_error(connection):
                    # where no process listens, the system may connect a socket to itself
                    if connection.getsockname() == connection.getpeername():
                        raise ConnectionRefusedError("nobody listens there")
                    self._prove(connection, channel)
                return connection
            except Refused as refused:
                raise self._failure(f"refused it: {refused}") from refused
            except (OSError, FrameError) as error:
                if joined is not None and select.select([joined], [], [], 0)[0]:
                    self._receive_header(joined, HANDSHAKE_S)
                if time.monotonic() + delay >= self._deadline:
                    seconds = f"{self._config.connect_timeout_s:g} s"
                    raise self._failure(f"could not be joined within {seconds}: {error}") from error
            time.sleep(delay)
            delay = min(2 * delay, _LAST_RETRY_S)

    def _prove(self, connection: socket.socket, channel: Channel) -> None:
        who = Hello(self._config.rank, channel, self._host)
        theirs = read_challenge(self._receive(connection, CHALLENGE_BYTES, self._left()))
        mine = new_nonce()
        connection.sendall(hello(self._identity, who, mine, theirs))
        header = self._receive(connection, HEADER_BYTES, self._left())
        read_ack_header(header)
        rest = self._receive(connection, ACK_BYTES - HEADER_BYTES, self._left())
        check_ack(self._identity, who, header + rest, mine, theirs)

    def _await_roster(self, control: socket.socket) -> list[str]:
        size = self._identity.size
        header = self._receive_header(control, self._left() + _GRACE_S)
        if header.tag != Tag.ROSTER or header.length != size * HOST_BYTES:
            raise self._failure(f"sent {header.tag.name} with {header.length} bytes instead of the roster")
        roster = self._hear(control, header.length, HANDSHAKE_S)
        return [decode_host(roster[r * HOST_BYTES : (r + 1) * HOST_BYTES]) for r in range(size)]

    def _receive_header(self, connection: socket.socket, seconds: float) -> Header:
        """Return the next header from rank 0, or raise the failure of the start that it reports."""
        try:
            header = Header.decode(self._hear(connection, HEADER_BYTES, seconds))
        except FrameError as error:
            raise self._failure(f"sent what is no frame: {error}") from error
        if header.tag != Tag.ERROR or header.length > _LONGEST_STORY:
            return header
        if header.op == Refusal.RANK_LOST:
            raise RankLost(BACKEND, header.source, _LOST)
        story = self._hear(connection, header.length, HANDSHAKE_S).decode("utf-8", "replace")
        raise self._failure(f"says: {''.join(c if c.isprintable() else '?' for c in story)}")

    def _hear(self, connection: socket.socket, count: int, seconds: float) -> bytes:
        """Return exactly so many bytes from rank 0, which has let this worker in."""
        try:
            return self._receive(connection, count, seconds)
        except TimeoutError as error:
            raise self._failure(f"has not said within {seconds:g} s that all ranks are there") from error
        except OSError as error:
            raise RankLost(BACKEND, 0, f"({self._place}) {_LOST}: {error}") from error

    def _left(self) -> float:
        return max(self._deadline - time.monotonic(), _FIRST_RETRY_S)

    def _failure(self, story: str) -> InitializationFailed:
        return InitializationFailed(BACKEND, f"rank {self._config.rank}: {self._place} {story}")

    @property
    def _place(self) -> str:
        return f"the coordinator at {self._config.coordinator} port {self._config.port}"

    @staticmethod
    def _receive(connection: socket.socket, count: int, seconds: float) -> bytes:
        """Return exactly so many bytes, within so many seconds."""
        deadline = time.monotonic() + seconds
        received = bytearray()
        while len(received) < count:
            connection.settimeout(max(deadline - time.monotonic(), _FIRST_RETRY_S))
            data = connection.recv(count - len(received))
            if not data:
                raise ConnectionError("the connection was closed")
            received += data
        return bytes(received)
