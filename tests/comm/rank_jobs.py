"""Ranks of the shm and tcp backends as real processes, for tests that kill, stop and interrupt them."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from cobre.comm.config import DEFAULT_HEARTBEAT_S, DEFAULT_SILENCE_S
from cobre.comm.shm.layout import R_PID, RANK_WORDS, RANKS
from cobre.comm.tcp.handshake import (
    ACK_BYTES,
    CHALLENGE_BYTES,
    HEADER_BYTES,
    Channel,
    Hello,
    Identity,
    Refusal,
    configuration_digest,
    hello,
    new_nonce,
    read_challenge,
)
from cobre.comm.tcp.wire import Header

DEADLINE_S = 60.0
"""Longer than any step takes on a busy machine; only a hang comes near it."""

PRELUDE = """
import json, os, signal, sys, threading, time
import numpy as np
from cobre.comm import *

# Shells start jobs in the background with interrupts ignored, which would be inherited.
signal.signal(signal.SIGINT, signal.default_int_handler)
job = json.loads(os.environ["RANK_JOB"])
rank, size = job["rank"], job["size"]
made = 0  # communicators

def say(*words):
    print(*words, flush=True)

def outcome(call):
    try:
        call()
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
    return "ok"

def offsets(counts):
    return [sum(counts[:r]) for r in range(len(counts))]
"""


class Job:
    """The ranks of one job; a context manager that kills what is left of them.

    A body finds ``rank``, ``size``, ``say``, ``outcome``, ``offsets``, and ``connect``, which makes one
    communicator after the other; its keywords and those of the job are fields of the configuration.
    """

    backend: ClassVar[str]
    connect: ClassVar[str]

    def __init__(self, size: int, body: str, **config: object) -> None:
        self.size = size
        self.processes: dict[int, subprocess.Popen[str]] = {}
        self.lines: dict[int, list[str]] = {}
        self._program = PRELUDE + self.connect + body
        self._config = config
        self._readers: list[threading.Thread] = []
        self._changed = threading.Condition()

    def start(self, *ranks: int) -> Job:
        """Start these ranks, or all."""
        for rank in ranks or range(self.size):
            self.processes[rank] = self.spawn(rank)
            self._follow(rank)
        return self

    def spawn(self, rank: int) -> subprocess.Popen[str]:
        """Start one more process with this rank."""
        place = self._place(rank)
        job = {"rank": rank, "size": self.size, "config": self._config, **place}
        foreign = ("COBRE_SHM", "COBRE_TCP")
        variables = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
        return subprocess.Popen(
            [sys.executable, "-c", self._program],
            env={**variables, "RANK_JOB": json.dumps(job)},
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=[place["listener"]] if "listener" in place else [],
        )

    def _place(self, rank: int) -> dict[str, Any]:
        """Return where a rank finds the others."""
        raise NotImplementedError

    def _follow(self, rank: int) -> None:
        self.lines[rank] = []

        def read() -> None:
            output = self.processes[rank].stdout
            assert output is not None
            for line in output:
                with self._changed:
                    self.lines[rank].append(line.rstrip("\n"))
                    self._changed.notify_all()

        self._readers.append(threading.Thread(target=read, daemon=True))
        self._readers[-1].start()

    def wait_for(self, text: str, *ranks: int) -> None:
        """Wait until these ranks, or all that were started, have printed a line that begins so."""
        wanted = ranks or tuple(self.processes)

        def printed() -> bool:
            return all(any(line.startswith(text) for line in self.lines[rank]) for rank in wanted)

        with self._changed:
            assert self._changed.wait_for(printed, DEADLINE_S), f"no {text!r} from {wanted}: {self.lines}"

    def go(self, *ranks: int) -> None:
        """Let ranks that wait in ``input()`` continue."""
        for rank in ranks or tuple(self.processes):
            stdin = self.processes[rank].stdin
            assert stdin is not None
            stdin.write("\n")
            stdin.flush()

    def kill(self, rank: int, number: int = signal.SIGKILL) -> None:
        """Send a signal to a rank."""
        self.processes[rank].send_signal(number)

    def finish(self, *ranks: int, within_s: float = DEADLINE_S) -> dict[int, list[str]]:
        """Wait for ranks to end; return what each has printed, and fail if one has failed."""
        deadline = time.monotonic() + within_s
        chosen = ranks or tuple(self.processes)
        for rank in chosen:
            left = max(deadline - time.monotonic(), 0.01)
            try:
                code = self.processes[rank].wait(left)
            except subprocess.TimeoutExpired:
                raise AssertionError(f"rank {rank} hangs: {self.lines}") from None
            assert code == 0, f"rank {rank} ended with {code}: {self.lines}"
        for reader in self._readers:
            if reader.is_alive() and set(chosen) == set(self.processes):
                reader.join(5)
        return {rank: self.lines[rank] for rank in chosen}

    def leftovers(self) -> list[str]:
        """Return what this job has left behind on the machine."""
        return []

    def __enter__(self) -> Job:
        return self

    def __exit__(self, *exception: object) -> None:
        for process in self.processes.values():
            if process.poll() is None:
                process.kill()
            process.wait(DEADLINE_S)
        for reader in self._readers:
            reader.join(5)
        for process in self.processes.values():
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    with contextlib.suppress(BrokenPipeError):
                        stream.close()


class ShmJob(Job):
    """The ranks of one job on shared memory."""

    backend = "shm"
    connect = """
from cobre.comm.config import ShmConfig
from cobre.comm.shm.communicator import ShmCommunicator

def connect(**changes):
    global made
    name = job["name"] + f"_{made}" * (made > 0)
    made += 1
    values = dict(rank=rank, size=size, nonce=bytes.fromhex(job["nonce"]), timeout_s=40.0)
    return ShmCommunicator(ShmConfig(name, **{**values, **job["config"], **changes}))
"""

    def __init__(self, size: int, body: str, **config: object) -> None:
        super().__init__(size, body, **config)
        self.name = f"/cobre_test_{secrets.token_hex(8)}"
        self.nonce = secrets.token_bytes(16)

    def _place(self, rank: int) -> dict[str, Any]:
        return {"name": self.name, "nonce": self.nonce.hex()}

    @property
    def path(self) -> Path:
        """Where the control segment has its name."""
        return Path("/dev/shm") / self.name.removeprefix("/")

    def wait_registered(self, *ranks: int) -> None:
        """Wait until ranks have written who they are into the segment, which still has its name."""
        deadline = time.monotonic() + DEADLINE_S
        while time.monotonic() < deadline:
            with contextlib.suppress(FileNotFoundError):
                words = np.frombuffer(self.path.read_bytes()[: 2**16], np.int64)
                if len(words) and all(words[RANKS + r * RANK_WORDS + R_PID] for r in ranks):
                    return
            time.sleep(0.005)
        raise AssertionError(f"ranks {ranks} did not register: {self.lines}")

    def leftovers(self) -> list[str]:
        """Return the names of this job's segments that exist."""
        return [path.name for path in self.path.parent.glob(f"{self.path.name}*")]

    def __exit__(self, *exception: object) -> None:
        super().__exit__(*exception)
        for name in self.leftovers():
            (self.path.parent / name).unlink()


class TcpJob(Job):
    """The ranks of one job on the loopback interface; rank 0 inherits the listening socket."""

    backend = "tcp"
    connect = """
from cobre.comm.config import TcpConfig
from cobre.comm.tcp.communicator import TcpCommunicator

def connect(**changes):
    global made
    values = dict(rank=rank, size=size, port=job["port"], token=bytes.fromhex(job["token"]), timeout_s=40.0)
    if rank == 0 and made == 0:  # later on it opens the port itself
        values["listener_fd"] = job["listener"]
    made += 1
    return TcpCommunicator(TcpConfig("127.0.0.1", **{**values, **job["config"], **changes}))
"""

    def __init__(self, size: int, body: str, **config: object) -> None:
        super().__init__(size, body, **config)
        self.token = secrets.token_bytes(32)
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.port: int = self.listener.getsockname()[1]

    def _place(self, rank: int) -> dict[str, Any]:
        place = {"port": self.port, "token": self.token.hex()}
        return {**place, "listener": self.listener.fileno()} if rank == 0 else place

    def spawn(self, rank: int) -> subprocess.Popen[str]:
        process = super().spawn(rank)
        if rank == 0:
            self.listener.close()  # the port belongs to rank 0 alone
        return process

    def identity(self, **changes: object) -> Identity:
        """Return what a rank of this job knows, with changes."""
        values = {
            "size": self.size,
            "key": self.token,
            "configuration": configuration_digest(DEFAULT_HEARTBEAT_S, DEFAULT_SILENCE_S),
        }
        return Identity(**{**values, **changes})  # type: ignore[arg-type]

    def knock(self) -> socket.socket:
        """Connect to the port like a stranger."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=20)

    def pose(self, identity: Identity, rank: int, channel: Channel = Channel.DATA) -> bytes:
        """Say hello as a rank; return the coordinator's whole answer until it closes or has acknowledged."""
        with self.knock() as connection:
            return self.greet(connection, identity, rank, channel)

    @staticmethod
    def greet(
        connection: socket.socket, identity: Identity, rank: int, channel: Channel = Channel.DATA
    ) -> bytes:
        """Say hello on a connection; return the answer."""
        theirs = read_challenge(receive(connection, CHALLENGE_BYTES))
        connection.sendall(hello(identity, Hello(rank, channel, "stranger"), new_nonce(), theirs))
        return receive(connection, ACK_BYTES)

    def wait_joined(self, connections: int) -> None:
        """Wait until rank 0 has accepted so many connections and answered all of them."""
        deadline = time.monotonic() + DEADLINE_S
        while time.monotonic() < deadline:
            if established(self.port) >= connections:
                # rank 0 serves connections in the order in which they came: this one is answered last
                assert refusal_code(self.pose(self.identity(size=65536), 1)) == Refusal.SIZE
                return
            time.sleep(0.02)
        raise AssertionError(f"no {connections} connections to rank 0: {self.lines}")

    def __exit__(self, *exception: object) -> None:
        super().__exit__(*exception)
        self.listener.close()


each_backend = pytest.mark.parametrize("job_type", [ShmJob, TcpJob], ids=lambda job_type: job_type.backend)
"""For tests that hold for both backends."""


def receive(connection: socket.socket, count: int) -> bytes:
    """Return so many bytes, or what came until the other side closed."""
    received = b""
    while len(received) < count:
        try:
            data = connection.recv(count - len(received))
        except ConnectionResetError:
            break
        if not data:
            break
        received += data
    return received


def established(port: int) -> int:
    """Return how many connections the listening side of a port has."""
    count = 0
    for line in Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]:
        local, _, state = line.split()[1:4]
        count += int(local.split(":")[1], 16) == port and state == "01"
    return count


def refusal_code(answer: bytes) -> int:
    """Return the reason of an Error frame."""
    return Header.decode(answer[:HEADER_BYTES]).op
