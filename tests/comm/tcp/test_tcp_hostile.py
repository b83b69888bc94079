"""Strangers at the port of a tcp job: none joins, none holds it up, none makes rank 0 grow (TCP-05, 10.6)."""

from __future__ import annotations

import contextlib
import secrets
import socket
import threading
import time
from collections.abc import Iterator

import pytest
from rank_jobs import TcpJob, receive, refusal_code

from cobre.comm.config import TcpConfig
from cobre.comm.errors import InitializationFailed
from cobre.comm.tcp.communicator import TcpCommunicator
from cobre.comm.tcp.handshake import (
    ACK_BYTES,
    CHALLENGE_BYTES,
    HELLO_BYTES,
    LARGEST_MESSAGE,
    Channel,
    Hello,
    Refusal,
    hello,
    new_nonce,
    read_challenge,
)
from cobre.comm.tcp.rendezvous import HANDSHAKE_S, LARGEST_PENDING, Coordinator
from cobre.comm.tcp.wire import HEADER_BYTES, Header, Tag
from cobre.errors import ValidationError

TOKEN = secrets.token_bytes(32)

WORKING = """
if rank == size - 1:
    say("ready")
    input()
else:
    say("ready")
with connect() as comm:
    for turn in range(20):
        total = np.zeros(1000)
        comm.allreduce(np.ones(1000), total, ReduceOp.SUM)
        assert (total == size).all()
say("done")
"""


@contextlib.contextmanager
def besieged(size: int = 2) -> Iterator[TcpJob]:
    """Start a job whose last rank waits, so that the port stays open; let it come in the end and succeed."""
    with TcpJob(size, WORKING) as job:
        job.start().wait_for("ready")
        yield job
        job.go(size - 1)
        assert job.finish() == {r: ["ready", "done"] for r in range(size)}


def header_of_length(length: int) -> bytes:
    return Header(Tag.HANDSHAKE, length=length, source=1).encode()


def test_who_does_not_belong_to_the_job_is_refused():
    with besieged() as job:
        answer = job.pose(job.identity(key=secrets.token_bytes(32)), 1)
        assert len(answer) == HEADER_BYTES
        assert refusal_code(answer) == Refusal.TOKEN
        assert refusal_code(job.pose(job.identity(size=3), 1)) == Refusal.SIZE
        assert refusal_code(job.pose(job.identity(configuration=b"x" * 16), 1)) == Refusal.CONFIGURATION
        for rank in (0, 2, 2**32 - 1):
            assert refusal_code(job.pose(job.identity(), rank)) == Refusal.RANK
        for length in (0, 1, HELLO_BYTES, 2**31, 2**63, 2**64 - 1):
            with job.knock() as connection:
                receive(connection, CHALLENGE_BYTES)
                connection.sendall(header_of_length(length))
                assert refusal_code(receive(connection, ACK_BYTES)) == Refusal.PROTOCOL
                assert receive(connection, 1) == b""


def test_duplicate_rank():
    with besieged(3) as job:
        job.wait_joined(connections=2)  # rank 1; whoever claims to be it now stays outside, token or not
        answers = [job.pose(job.identity(), 1, channel) for channel in Channel]
        assert [refusal_code(answer) for answer in answers] == [Refusal.DUPLICATE] * 2


def test_garbage_and_floods():
    with besieged() as job:
        for _ in range(20):
            with job.knock() as connection, contextlib.suppress(OSError):
                connection.sendall(secrets.token_bytes(100_000))
        for request in (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\0" * 64, b"CBRE" * 100):
            with job.knock() as connection, contextlib.suppress(OSError):
                connection.sendall(request)
                receive(connection, LARGEST_MESSAGE)


def test_idle_and_slow_strangers_hold_up_nobody():
    began = time.monotonic()
    strangers = []
    with besieged() as job:
        for _ in range(3 * LARGEST_PENDING):  # more than rank 0 keeps
            strangers.append(job.knock())
        for connection in strangers[-8:]:  # one byte, and then nothing
            with contextlib.suppress(OSError):
                connection.sendall(b"C")
    assert time.monotonic() - began < 60
    for connection in strangers:
        connection.close()


def test_a_slow_loris_is_dropped_in_time():
    with besieged() as job, job.knock() as connection:
        identity = job.identity()
        theirs = read_challenge(receive(connection, CHALLENGE_BYTES))
        message = hello(identity, Hello(1, Channel.DATA, "slow"), new_nonce(), theirs)
        began = time.monotonic()
        with contextlib.suppress(OSError):
            for byte in message:  # would take far longer than the deadline for one handshake
                connection.sendall(bytes([byte]))
                time.sleep(0.1)
        assert HANDSHAKE_S - 1 < time.monotonic() - began < HANDSHAKE_S + 10


def test_a_thousand_connections_while_a_job_starts_and_completes():
    stop = threading.Event()
    knocks = 0

    def knock(job: TcpJob) -> None:
        nonlocal knocks
        while not stop.is_set():
            try:
                socket.create_connection(("127.0.0.1", job.port), timeout=5).close()
                knocks += 1
            except ConnectionRefusedError:  # all are there, the port is closed
                return
            except OSError:
                continue

    with besieged(3) as job:
        before = _memory_kib(job.processes[0].pid)
        thread = threading.Thread(target=knock, args=(job,))
        thread.start()
        deadline = time.monotonic() + 60
        while knocks < 1000 and time.monotonic() < deadline:
            time.sleep(0.01)
        after = _memory_kib(job.processes[0].pid)
    stop.set()
    thread.join(10)
    assert knocks >= 1000
    assert after - before < 64 * 1024  # rank 0 still loads its modules at the first measurement


def _memory_kib(pid: int) -> int:
    with open(f"/proc/{pid}/status", encoding="ascii") as status:  # noqa: PTH123
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))


def test_memory_stays_flat_under_strangers():
    """Rank 0's own code, in this process: thousands of handshakes leave nothing behind."""
    import tracemalloc

    listener = socket.create_server(("127.0.0.1", 0), backlog=128)
    job = TcpJob(2, "")
    coordinator = Coordinator(listener, job.identity(), "here", 60.0, 30.0)
    stop = threading.Event()
    port = listener.getsockname()[1]
    failure: list[BaseException] = []

    def serve() -> None:
        try:
            coordinator.assemble()
        except BaseException as error:
            failure.append(error)

    server = threading.Thread(target=serve)
    server.start()
    try:

        def storm(count: int) -> None:
            for turn in range(count):
                with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
                    if turn % 3 == 0:
                        connection.sendall(secrets.token_bytes(HELLO_BYTES))
                        receive(connection, LARGEST_MESSAGE)

        storm(200)
        tracemalloc.start()
        storm(100)
        before = tracemalloc.get_traced_memory()[0]
        storm(1000)
        grown = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.stop()
        assert grown < 200_000
        assert len(coordinator._pending) <= LARGEST_PENDING
    finally:
        stop.set()
        # a worker that joins and leaves ends the start
        with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
            assert len(TcpJob.greet(connection, job.identity(), 1)) == ACK_BYTES
        server.join(20)
        job.__exit__()
    assert not server.is_alive()
    assert "rank 1 ended" in str(failure[0])


FALSE_WORKER = """
comm = connect()
say("up")
say(outcome(comm.barrier))
comm.close()
"""


@pytest.mark.parametrize("frame", [header_of_length(2**63), b"\xff" * 32, secrets.token_bytes(4096)])
def test_a_worker_that_sends_nonsense_in_a_collective(frame):
    with TcpJob(2, FALSE_WORKER) as job, contextlib.ExitStack() as stack:
        job.start(0)
        data, control = (stack.enter_context(job.knock()) for _ in Channel)
        assert len(job.greet(data, job.identity(), 1, Channel.DATA)) == ACK_BYTES
        assert len(job.greet(control, job.identity(), 1, Channel.CONTROL)) == ACK_BYTES
        job.wait_for("up", 0)
        data.sendall(frame)
        said = job.finish(0, within_s=60)[0]
        assert said[1] == "CollectiveFailed: barrier: rank 1 sent what makes no sense"


@pytest.mark.parametrize("token", [None, b"", b"fifteen bytes.."])
def test_no_job_without_a_token_that_nobody_guesses(token):  # 10.6: loopback included
    with pytest.raises(ValidationError, match="token"):
        TcpConfig("127.0.0.1", 0, 2, token=token)


def test_a_job_of_one_rank_needs_no_token():
    with TcpCommunicator(TcpConfig("127.0.0.1", 0, 1)) as comm:
        comm.barrier()


def test_a_process_of_the_same_host_takes_no_rank_without_the_token():
    body = "comm = connect()\nsay('up')\ncomm.barrier()\ncomm.close()\n"
    with TcpJob(2, body) as job:
        job.start(0)
        almost = job.token[:-1] + bytes([job.token[-1] ^ 1])
        for guess in (b"cobre tcp without a token", b"\0" * 16, almost):
            assert refusal_code(job.pose(job.identity(key=guess), 1)) == Refusal.TOKEN
        job.start(1)
        job.finish()


def test_a_port_that_is_taken():
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(InitializationFailed, match=f"cannot listen on 127.0.0.1 port {port}"):
            TcpCommunicator(TcpConfig("127.0.0.1", 0, 2, port=port, token=TOKEN))


def test_a_descriptor_that_is_no_listener(tmp_path):
    with (tmp_path / "file").open("w") as file:
        config = TcpConfig("127.0.0.1", 0, 2, listener_fd=file.fileno(), token=TOKEN)
        with pytest.raises(InitializationFailed, match="no listening socket"):
            TcpCommunicator(config)


def test_the_token_is_not_shown():
    config = TcpConfig("127.0.0.1", 0, 2, token=b"a very secret token")
    assert "secret" not in repr(config)
