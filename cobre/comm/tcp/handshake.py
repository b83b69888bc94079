"""How a worker and the coordinator authenticate each other, as messages without sockets (TCP-05, 10.6).

1. The coordinator sends a challenge: 32 random bytes.
2. The worker sends a hello: rank, size, channel, configuration, host, 32 random bytes of its own, and an
   HMAC-SHA256 of all that and the challenge, under the token.
3. The coordinator checks it and sends an acknowledgement with an HMAC of its own over the same bytes.

The role is part of what is authenticated, so that neither side's proof can be played back as the other's;
both nonces are, so that no earlier exchange can be. Messages have fixed lengths, at most 256 bytes.

Every job has a token: no process without it, on the same host or another, can take a rank.
"""

from __future__ import annotations

import enum
import hashlib
import hmac
import secrets
import struct
from dataclasses import dataclass
from typing import Final

from cobre import __version__
from cobre.comm.tcp.wire import HEADER_BYTES, VERSION, FrameError, Header, Tag

NONCE_BYTES: Final = 32
HOST_BYTES: Final = 64
LARGEST_MESSAGE: Final = 256

_MAC_BYTES: Final = hashlib.sha256().digest_size
_DIGEST_BYTES: Final = 16
_HELLO: Final = struct.Struct(f"<IIB3x{_DIGEST_BYTES}s{HOST_BYTES}s{NONCE_BYTES}s{_MAC_BYTES}s")
_ACK: Final = struct.Struct(f"<I4x{_MAC_BYTES}s")

CHALLENGE_BYTES: Final = HEADER_BYTES + NONCE_BYTES
HELLO_BYTES: Final = HEADER_BYTES + _HELLO.size
ACK_BYTES: Final = HEADER_BYTES + _ACK.size

assert max(CHALLENGE_BYTES, HELLO_BYTES, ACK_BYTES) <= LARGEST_MESSAGE


class Channel(enum.IntEnum):
    """What a connection is for: each worker has one of both."""

    DATA = 0
    CONTROL = 1


class Refusal(enum.IntEnum):
    """Why the coordinator refuses a peer; the code travels in the Error frame."""

    PROTOCOL = 1
    TOKEN = 2
    SIZE = 3
    RANK = 4
    DUPLICATE = 5
    CONFIGURATION = 6
    START_FAILED = 7
    RANK_LOST = 8

    @property
    def story(self) -> str:
        """One phrase for people."""
        return _STORIES[self]


_STORIES: Final = {
    Refusal.PROTOCOL: "it does not understand this rank's protocol",
    Refusal.TOKEN: "the tokens differ",
    Refusal.SIZE: "its number of ranks is another",
    Refusal.RANK: "no worker of its job has this rank",
    Refusal.DUPLICATE: "this rank has already joined",
    Refusal.CONFIGURATION: "its version of cobre or its heartbeat settings are others",
    Refusal.START_FAILED: "the start failed",
    Refusal.RANK_LOST: "another rank ended during the start",
}


class Refused(Exception):  # noqa: N818  (a verdict, not a fault of the program)
    """A peer is not admitted."""

    def __init__(self, reason: Refusal) -> None:
        super().__init__(reason.story)
        self.reason = reason


@dataclass(frozen=True)
class Identity:
    """One side's description of the job; all of it is authenticated.

    Attributes
    ----------
    size
        Number of ranks.
    key
        Key of the HMACs: the job's token.
    configuration
        Digest of what all ranks must have in common; see :func:`configuration_digest`.
    """

    size: int
    key: bytes
    configuration: bytes


@dataclass(frozen=True)
class Hello:
    """A worker's description of itself."""

    rank: int
    channel: Channel
    host: str


def configuration_digest(heartbeat_s: float, silence_s: float) -> bytes:
    """Return a digest of the settings that only work when all ranks have the same."""
    text = f"cobre {__version__} heartbeat {heartbeat_s!r} silence {silence_s!r}"
    return hashlib.sha256(text.encode()).digest()[:_DIGEST_BYTES]


def new_nonce() -> bytes:
    """Return fresh random bytes for one handshake."""
    return secrets.token_bytes(NONCE_BYTES)


def encode_host(host: str) -> bytes:
    """Return a host's name as it travels: cut to 64 bytes, filled up with NUL."""
    encoded = host.encode("utf-8", "replace")[:HOST_BYTES]
    return encoded.ljust(HOST_BYTES, b"\0")


def decode_host(field: bytes) -> str:
    """Return the host's name of such a field; unprintable characters become ``?``."""
    text = field.rstrip(b"\0").decode("utf-8", "replace")
    return "".join(character if character.isprintable() else "?" for character in text) or "unknown"


def challenge(nonce: bytes) -> bytes:
    """Return the coordinator's first message."""
    return Header(Tag.HANDSHAKE, length=NONCE_BYTES).encode() + nonce


def read_challenge(message: bytes) -> bytes:
    """Return the nonce of the coordinator's first message.

    Raises
    ------
    FrameError
        When the message is none.
    """
    _expect(message[:HEADER_BYTES], Tag.HANDSHAKE, NONCE_BYTES)
    return message[HEADER_BYTES:CHALLENGE_BYTES]


def hello(identity: Identity, who: Hello, worker_nonce: bytes, coordinator_nonce: bytes) -> bytes:
    """Return the worker's message."""
    host = encode_host(who.host)
    proof = _mac(identity, b"worker", who.rank, who.channel, host, worker_nonce, coordinator_nonce)
    header = Header(Tag.HANDSHAKE, length=_HELLO.size, source=who.rank)
    return header.encode() + _HELLO.pack(
        who.rank, identity.size, who.channel, identity.configuration, host, worker_nonce, proof
    )


def check_hello_header(data: bytes) -> None:
    """Check the first 32 bytes of a worker's message, as soon as they are there.

    Raises
    ------
    Refused
        When they do not announce a hello of exactly the right length.
    """
    try:
        _expect(data, Tag.HANDSHAKE, _HELLO.size)
    except FrameError:
        raise Refused(Refusal.PROTOCOL) from None


def read_hello(identity: Identity, message: bytes, coordinator_nonce: bytes) -> tuple[Hello, bytes]:
    """Check a worker's whole message.

    Parameters
    ----------
    identity
        The coordinator's description of the job.
    message
        All bytes that the worker sent.
    coordinator_nonce
        The challenge that it answers.

    Returns
    -------
    tuple
        Who the worker is, and the acknowledgement to send to it.

    Raises
    ------
    Refused
        When it does not hold the token, or belongs to another job.
    """
    check_hello_header(message[:HEADER_BYTES])
    if len(message) != HELLO_BYTES:
        raise Refused(Refusal.PROTOCOL)
    fields = _HELLO.unpack(message[HEADER_BYTES:])
    rank, size, channel, configuration, host, worker_nonce, proof = fields
    claimed = Identity(size, identity.key, configuration)
    expected = _mac(claimed, b"worker", rank, channel, host, worker_nonce, coordinator_nonce)
    if not hmac.compare_digest(proof, expected):
        raise Refused(Refusal.TOKEN)
    if size != identity.size:
        raise Refused(Refusal.SIZE)
    if configuration != identity.configuration:
        raise Refused(Refusal.CONFIGURATION)
    if not 1 <= rank < size or Header.decode(message[:HEADER_BYTES]).source != rank:
        raise Refused(Refusal.RANK)
    if channel not in tuple(Channel) or message[HEADER_BYTES:] != _HELLO.pack(*fields):  # the padding
        raise Refused(Refusal.PROTOCOL)
    answer = _mac(identity, b"coordinator", rank, channel, host, worker_nonce, coordinator_nonce)
    acknowledgement = Header(Tag.ACK, length=_ACK.size).encode() + _ACK.pack(size, answer)
    return Hello(rank, Channel(channel), decode_host(host)), acknowledgement


def read_ack_header(data: bytes) -> None:
    """Check the first 32 bytes of the coordinator's answer.

    Raises
    ------
    Refused
        When the answer is an Error frame; carries the coordinator's reason.
    FrameError
        When it is neither an acknowledgement nor an Error frame.
    """
    header = Header.decode(data)
    if header.tag == Tag.ERROR:
        try:
            reason = Refusal(header.op)
        except ValueError:
            raise FrameError(f"the coordinator refused for an unknown reason ({header.op})") from None
        raise Refused(reason)
    _expect(data, Tag.ACK, _ACK.size)


def check_ack(
    identity: Identity, who: Hello, message: bytes, worker_nonce: bytes, coordinator_nonce: bytes
) -> None:
    """Check the coordinator's acknowledgement: it must prove the token too, and echo the size.

    Raises
    ------
    Refused, FrameError
        As in :func:`read_ack_header`; and ``Refused`` when the proof or the size is wrong.
    """
    read_ack_header(message[:HEADER_BYTES])
    if len(message) != ACK_BYTES:
        raise FrameError(f"an acknowledgement has {ACK_BYTES} bytes, not {len(message)}")
    size, proof = _ACK.unpack(message[HEADER_BYTES:])
    if message != Header(Tag.ACK, length=_ACK.size).encode() + _ACK.pack(size, proof):
        raise FrameError("an acknowledgement with something in fields that have no meaning there")
    host = encode_host(who.host)
    expected = _mac(identity, b"coordinator", who.rank, who.channel, host, worker_nonce, coordinator_nonce)
    if not hmac.compare_digest(proof, expected):
        raise Refused(Refusal.TOKEN)
    if size != identity.size:
        raise Refused(Refusal.SIZE)


def refusal(reason: Refusal) -> bytes:
    """Return the Error frame with the reason why a peer is not admitted."""
    return Header(Tag.ERROR, op=reason).encode()


def _expect(data: bytes, tag: Tag, length: int) -> None:
    header = Header.decode(data)
    if header.tag != tag or header.length != length:
        raise FrameError(f"{header.tag.name} with {header.length} bytes instead of {tag.name} with {length}")
    if header != Header(tag, length, header.source):
        raise FrameError(f"{tag.name} with fields that have no meaning there")


def _mac(
    identity: Identity,
    role: bytes,
    rank: int,
    channel: int,
    host: bytes,
    worker_nonce: bytes,
    coordinator_nonce: bytes,
) -> bytes:
    parts = struct.pack("<BIIB", VERSION, rank, identity.size, channel)
    content = b"\0".join((b"cobre-tcp", role)) + b"\0" + parts
    content += identity.configuration + host + worker_nonce + coordinator_nonce  # all of fixed length
    return hmac.new(identity.key, content, hashlib.sha256).digest()
