"""The frame of the tcp backend: 32 bytes of header, then the payload (TCP-04).

========  =========  ===========================================================================
bytes     field      meaning
========  =========  ===========================================================================
0 - 3     magic      ``CBRE``
4         version    :data:`VERSION`
5         tag        what the frame is, a :class:`Tag`
6         op         reduce operation; in an Error frame the reason; in a Shutdown frame 1 while
                     the sender waits for the others
7         dtype      code of the elements' type, 0 for none
8 - 15    sequence   number of the collective, from 1; in an Abort frame the exit code
16 - 23   length     bytes of payload that follow
24 - 27   source     rank of the sender; in an Error frame the rank that is to blame
28 - 31   digest     digest of what all ranks have to agree on beyond the length
========  =========  ===========================================================================

Numbers are little-endian, so that a header is four int64 words on the hosts that the backend runs on, and
payloads start at a multiple of eight. A receiver compares a header with what it expects, length included,
before it reads one byte of payload: nothing is ever allocated or written on a peer's request.
"""

from __future__ import annotations

import enum
import struct
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from cobre.comm.contract import SUPPORTED_DTYPES

MAGIC: Final = int.from_bytes(b"CBRE", "little")
VERSION: Final = 2
HEADER: Final = struct.Struct("<IBBBBQQII")
HEADER_BYTES: Final = HEADER.size
HEADER_WORDS: Final = HEADER_BYTES // 8

DTYPE_CODES: Final = {dtype: code for code, dtype in enumerate(SUPPORTED_DTYPES, start=1)}


class Tag(enum.IntEnum):
    """What a frame is (TCP-03)."""

    ALLGATHERV_SEND = 0x01
    ALLGATHERV_RECV = 0x02
    ALLREDUCE_SEND = 0x03
    ALLREDUCE_RECV = 0x04
    BROADCAST = 0x05
    BARRIER_READY = 0x06
    BARRIER_GO = 0x07
    HANDSHAKE = 0x08
    ACK = 0x09
    SHUTDOWN = 0x0A
    ERROR = 0x0B
    HEARTBEAT = 0x0C
    ABORT = 0x0D
    ROSTER = 0x0E


class FrameError(Exception):
    """Bytes that are no frame of this protocol."""


@dataclass(frozen=True)
class Header:
    """The fields of a header that vary."""

    tag: Tag
    length: int = 0
    source: int = 0
    op: int = 0
    dtype: int = 0
    sequence: int = 0
    digest: int = 0

    def encode(self) -> bytes:
        """Return the 32 bytes of the header."""
        return HEADER.pack(
            MAGIC,
            VERSION,
            self.tag,
            self.op,
            self.dtype,
            self.sequence,
            self.length,
            self.source,
            self.digest,
        )

    @classmethod
    def decode(cls, data: bytes) -> Header:
        """Return the header that 32 bytes hold.

        Raises
        ------
        FrameError
            When they are too few or too many, or not of this protocol, version and set of tags.
        """
        if len(data) != HEADER_BYTES:
            raise FrameError(f"a header has {HEADER_BYTES} bytes, not {len(data)}")
        magic, version, tag, op, dtype, sequence, length, source, digest = HEADER.unpack(data)
        if magic != MAGIC:
            raise FrameError("the peer does not speak the protocol of cobre")
        if version != VERSION:
            raise FrameError(f"the peer speaks version {version} of the protocol, not {VERSION}")
        try:
            known = Tag(tag)
        except ValueError:
            raise FrameError(f"there are no frames with the tag {tag}") from None
        return cls(known, length, source, op, dtype, sequence, digest)


def first_word(tag: int, op: int, dtype: int) -> int:
    """Return the first eight bytes of a header as nopython code has them: one number, little-endian."""
    return MAGIC | VERSION << 32 | int(tag) << 40 | op << 48 | dtype << 56


def dtype_code(dtype: np.dtype[Any]) -> int:
    """Return the code of an element type."""
    return DTYPE_CODES[dtype]
