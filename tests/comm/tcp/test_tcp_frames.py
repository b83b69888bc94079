"""Frames and handshake messages of the tcp backend against arbitrary bytes (TCP-04, TCP-05, COM-42)."""

from __future__ import annotations

import os
import socket

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cobre.comm.config import TcpConfig
from cobre.comm.owner import entries_over
from cobre.comm.status import COLLECTIVE_FAILED, CORRUPTED, DIVERGED, OK, PEER_DIED, TIMED_OUT, new_detail
from cobre.comm.tcp import communicator as tcp
from cobre.comm.tcp import engine
from cobre.comm.tcp.alarm import REASON, new_alarm
from cobre.comm.tcp.handshake import (
    ACK_BYTES,
    HELLO_BYTES,
    Channel,
    Hello,
    Identity,
    Refusal,
    Refused,
    challenge,
    check_ack,
    configuration_digest,
    decode_host,
    encode_host,
    hello,
    new_nonce,
    read_ack_header,
    read_challenge,
    read_hello,
    refusal,
)
from cobre.comm.tcp.kernel import TcpKernel, scratch_bytes
from cobre.comm.tcp.watch import Link
from cobre.comm.tcp.wire import HEADER_BYTES, FrameError, Header, Tag, dtype_code, first_word

IDENTITY = Identity(4, b"a secret", configuration_digest(1.0, 10.0))
ENTRIES = entries_over(TcpKernel)
WHO = Hello(3, Channel.CONTROL, "node-7")


def exchange() -> tuple[bytes, bytes, bytes, bytes]:
    """Return the nonces, hello and acknowledgement of a handshake that succeeds."""
    theirs, mine = new_nonce(), new_nonce()
    message = hello(IDENTITY, WHO, mine, theirs)
    who, acknowledgement = read_hello(IDENTITY, message, theirs)
    assert who == WHO
    return theirs, mine, message, acknowledgement


def test_a_header_has_32_bytes_in_the_order_of_the_table():  # TCP-04
    header = Header(Tag.ALLREDUCE_SEND, length=2**40, source=7, op=2, dtype=3, sequence=2**50, digest=99)
    data = header.encode()
    assert len(data) == HEADER_BYTES == 32
    assert data[:8] == b"CBRE\x02\x03\x02\x03"
    assert Header.decode(data) == header
    assert first_word(Tag.ALLREDUCE_SEND, 2, 3) == int.from_bytes(data[:8], "little")


@given(st.binary(max_size=64))
def test_bytes_that_are_no_header(data):
    try:
        header = Header.decode(data)
    except FrameError:
        return
    assert header.encode() == data


def test_both_sides_are_convinced():
    theirs, mine, _, acknowledgement = exchange()
    check_ack(IDENTITY, WHO, acknowledgement, mine, theirs)
    assert read_challenge(challenge(theirs)) == theirs


def test_every_bit_of_a_hello_counts():
    theirs, _, message, _ = exchange()
    for place in range(len(message)):
        changed = bytearray(message)
        changed[place] ^= 1 << (place % 8)
        with pytest.raises(Refused):
            read_hello(IDENTITY, bytes(changed), theirs)


def test_every_bit_of_an_acknowledgement_counts():
    theirs, mine, _, acknowledgement = exchange()
    for place in range(len(acknowledgement)):
        changed = bytearray(acknowledgement)
        changed[place] ^= 1 << (place % 8)
        with pytest.raises((Refused, FrameError)):
            check_ack(IDENTITY, WHO, bytes(changed), mine, theirs)


def test_proofs_cannot_be_played_back():
    theirs, mine, message, acknowledgement = exchange()
    with pytest.raises(Refused) as caught:  # to another challenge
        read_hello(IDENTITY, message, new_nonce())
    assert caught.value.reason == Refusal.TOKEN
    reflected = acknowledgement[:-32] + message[-32:]  # the worker's own proof
    with pytest.raises(Refused):
        check_ack(IDENTITY, WHO, reflected, mine, theirs)
    with pytest.raises(Refused):  # as another rank or for the other channel
        check_ack(IDENTITY, Hello(2, Channel.CONTROL, "node-7"), acknowledgement, mine, theirs)
    with pytest.raises(Refused):
        check_ack(IDENTITY, Hello(3, Channel.DATA, "node-7"), acknowledgement, mine, theirs)


@pytest.mark.parametrize(
    ("identity", "who", "reason"),
    [
        (Identity(4, b"another secret", IDENTITY.configuration), WHO, Refusal.TOKEN),
        (Identity(5, IDENTITY.key, IDENTITY.configuration), WHO, Refusal.SIZE),
        (Identity(4, IDENTITY.key, configuration_digest(2.0, 10.0)), WHO, Refusal.CONFIGURATION),
        (IDENTITY, Hello(0, Channel.DATA, ""), Refusal.RANK),
        (IDENTITY, Hello(4, Channel.DATA, ""), Refusal.RANK),
        (IDENTITY, Hello(1, 7, ""), Refusal.PROTOCOL),  # type: ignore[arg-type]
    ],
)
def test_why_a_worker_is_refused(identity, who, reason):
    theirs = new_nonce()
    with pytest.raises(Refused) as caught:
        read_hello(IDENTITY, hello(identity, who, new_nonce(), theirs), theirs)
    assert caught.value.reason == reason
    with pytest.raises(Refused) as told:
        read_ack_header(refusal(reason))
    assert told.value.reason == reason


@given(st.one_of(st.binary(max_size=256), st.binary(min_size=HELLO_BYTES, max_size=HELLO_BYTES)))
def test_arbitrary_hellos_are_refused(data):
    with pytest.raises(Refused):
        read_hello(IDENTITY, data, new_nonce())


@given(st.binary(min_size=HELLO_BYTES - HEADER_BYTES, max_size=HELLO_BYTES - HEADER_BYTES))
def test_hellos_with_a_good_header_are_refused(payload):
    header = Header(Tag.HANDSHAKE, length=HELLO_BYTES - HEADER_BYTES, source=3).encode()
    with pytest.raises(Refused) as caught:
        read_hello(IDENTITY, header + payload, new_nonce())
    assert caught.value.reason == Refusal.TOKEN


@given(st.one_of(st.binary(max_size=256), st.binary(min_size=ACK_BYTES, max_size=ACK_BYTES)))
def test_arbitrary_answers_are_no_acknowledgement(data):
    with pytest.raises((Refused, FrameError)):
        check_ack(IDENTITY, WHO, data, new_nonce(), new_nonce())


@given(st.text())
def test_host_names_survive_or_are_cleaned(name):
    field = encode_host(name)
    assert len(field) == 64
    assert decode_host(field).isprintable()
    assert decode_host(field) != ""


def test_plain_host_names_are_kept():
    assert decode_host(encode_host("node-7.cluster")) == "node-7.cluster"


class Rank:
    """One rank of 2 in this process, without a watcher; the other end of its link is in the test's hands."""

    def __init__(self, rank: int) -> None:
        self.peer, end = socket.socketpair()
        self.control = socket.socketpair()
        self.end = end
        config = TcpConfig("127.0.0.1", rank, 2, timeout_s=0.2, token=bytes(16))
        link = Link(1 - rank, end, self.control[0])
        self.state = tcp._new_state(config, [link])
        self.scratch = np.zeros(scratch_bytes(rank, 1), np.uint8)
        self.wake = os.eventfd(0, os.EFD_NONBLOCK)
        self.alarm = new_alarm(1, self.wake)
        self.detail = new_detail()

    def gather(self, recv: np.ndarray) -> int:
        counts = np.array([2, len(recv) - 2], np.int64)
        displs = np.array([0, 2], np.int64)
        send = np.array([1, 2], recv.dtype)
        return int(ENTRIES.allgatherv(self._arguments, send, recv, counts, displs))

    def barrier(self) -> int:
        return int(ENTRIES.barrier(self._arguments))

    @property
    def _arguments(self) -> tuple[np.ndarray, ...]:
        return self.state, self.scratch, self.alarm, self.detail

    def close(self) -> None:
        for connection in (self.peer, self.end, *self.control):
            connection.close()
        os.close(self.wake)


def fnv(values: list[int]) -> int:
    digest = 2166136261
    for value in values:
        for half in (value & 0xFFFFFFFF, value >> 32):
            digest = ((digest ^ half) * 16777619) & 0xFFFFFFFF
    return digest


def proper_header(elements: int) -> Header:
    dtype = dtype_code(np.dtype(np.int64))
    return Header(
        Tag.ALLGATHERV_SEND, length=8 * elements, source=1, dtype=dtype, sequence=1, digest=fnv([2, elements])
    )


@pytest.mark.parametrize("elements", [3, 5000])  # through scratch memory, and header first
def test_a_proper_frame_is_taken(elements):
    coordinator = Rank(0)
    try:
        payload = np.arange(elements) + 100
        coordinator.peer.sendall(proper_header(elements).encode() + payload.tobytes())
        recv = np.zeros(2 + elements, np.int64)
        assert coordinator.gather(recv) == OK
        assert recv.tolist() == [1, 2, *payload]
        answer = coordinator.peer.recv(HEADER_BYTES)
        assert Header.decode(answer).tag == Tag.ALLGATHERV_RECV
        assert np.frombuffer(coordinator.peer.recv(16), np.int64).tolist() == [1, 2]
    finally:
        coordinator.close()


@pytest.mark.parametrize(("follows", "reason"), [(b"", PEER_DIED), (b"x", CORRUPTED)], ids=["end", "more"])
def test_a_worker_that_has_come_and_given_up_is_not_answered(follows, reason):
    coordinator = Rank(0)
    try:
        coordinator.peer.sendall(proper_header(3).encode() + bytes(24) + follows)
        coordinator.peer.shutdown(socket.SHUT_WR)
        assert coordinator.gather(np.zeros(5, np.int64)) == COLLECTIVE_FAILED
        assert coordinator.detail[2:4].tolist() == [1, reason]
        coordinator.peer.setblocking(False)
        with pytest.raises(BlockingIOError):
            coordinator.peer.recv(1)
    finally:
        coordinator.close()


def test_a_worker_that_gives_up_says_so_on_the_link_itself():
    worker = Rank(1)
    try:
        assert worker.barrier() == COLLECTIVE_FAILED
        assert worker.detail[2:4].tolist() == [0, TIMED_OUT]
        worker.peer.settimeout(20)
        assert Header.decode(worker.peer.recv(HEADER_BYTES)).tag == Tag.BARRIER_READY
        assert worker.peer.recv(1) == b""  # however late rank 0 looks
    finally:
        worker.close()


WORD = st.integers(0, 2**32 - 1)
LONG = st.one_of(
    st.sampled_from([0, 1, 7, 8, 24, 40_000, 2**31, 2**63, 2**64 - 1]), st.integers(0, 2**64 - 1)
)


@settings(deadline=None, max_examples=150)
@given(
    elements=st.sampled_from([3, 5000]),
    change=st.fixed_dictionaries(
        {},
        optional={
            "tag": st.sampled_from(list(Tag)),
            "length": LONG,
            "source": WORD,
            "op": st.integers(0, 255),
            "dtype": st.integers(0, 255),
            "sequence": LONG,
            "digest": WORD,
        },
    ),
    tail=st.binary(max_size=400),
)
def test_a_frame_that_differs_fails_before_a_byte_is_written(elements, change, tail):
    proper = proper_header(elements)
    changed = Header(**{**proper.__dict__, **change})
    if changed == proper:
        return
    coordinator = Rank(0)
    try:
        coordinator.peer.sendall(changed.encode() + tail)
        coordinator.peer.shutdown(socket.SHUT_WR)
        recv = np.full(2 + elements, -9, np.int64)
        assert coordinator.gather(recv) == COLLECTIVE_FAILED
        assert coordinator.detail[2] == 1  # the rank to blame
        assert coordinator.detail[3] in (DIVERGED, CORRUPTED)
        assert coordinator.alarm[REASON] == coordinator.detail[3]
        assert (recv[2:] == -9).all()
        assert coordinator.state[engine.POISONED] == 1
    finally:
        coordinator.close()


@settings(deadline=None, max_examples=100)
@given(data=st.binary(min_size=HEADER_BYTES, max_size=200))
def test_arbitrary_bytes_fail_as_nonsense(data):
    coordinator = Rank(0)
    try:
        coordinator.peer.sendall(data)
        recv = np.full(5, -9, np.int64)
        assert coordinator.gather(recv) == COLLECTIVE_FAILED
        assert (recv[2:] == -9).all()
        assert coordinator.detail[3] in (CORRUPTED, DIVERGED)
    finally:
        coordinator.close()
