"""Ranks of the tcp backend as real processes, and strangers who knock at their port."""

from __future__ import annotations

import json
import os
import secrets
import socket
import subprocess
import sys
import time
from pathlib import Path

from shm_jobs import DEADLINE_S, Job

from cobre.comm.tcp import HEARTBEAT_S, SILENCE_S
from cobre.comm.tcp_handshake import (
    ACK_BYTES,
    CHALLENGE_BYTES,
    HEADER_BYTES,
    Channel,
    Hello,
    Identity,
    Refusal,
    configuration_digest,
    hello,
    key_of,
    new_nonce,
    read_challenge,
)
from cobre.comm.tcp_wire import Header

PRELUDE = """
import gc, json, os, signal, sys, threading, time
import numpy as np
from cobre.comm import *
from cobre.comm.config import TcpConfig
from cobre.comm.tcp import TcpCommunicator

job = json.loads(os.environ["TCP_JOB"])
rank, size = job["rank"], job["size"]

def say(*words):
    print(*words, flush=True)

def connect(heartbeat_s=None, silence_s=None, **changes):
    values = dict(rank=rank, size=size, port=job["port"], token=bytes.fromhex(job["token"]), timeout_s=40.0)
    if rank == 0:
        values["listener_fd"] = job["listener"]
    values.update(job["config"])
    values.update(changes)
    pace = {} if silence_s is None else dict(heartbeat_s=heartbeat_s, silence_s=silence_s)
    return TcpCommunicator(TcpConfig("127.0.0.1", **values), **pace)

def outcome(call):
    try:
        call()
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
    return "ok"

def offsets(counts):
    return [sum(counts[:r]) for r in range(len(counts))]
"""


class TcpJob(Job):
    """The ranks of one job on the loopback interface; rank 0 inherits the listening socket."""

    def __init__(self, size: int, body: str, **config: object) -> None:
        super().__init__(size, "", **config)
        self._program = PRELUDE + body
        self.token = secrets.token_bytes(32)
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.port: int = self._listener.getsockname()[1]

    def spawn(self, rank: int) -> subprocess.Popen[str]:
        """Start one more process with this rank."""
        job = {"rank": rank, "size": self.size, "port": self.port, "token": self.token.hex()}
        variables = {name: value for name, value in os.environ.items() if not name.startswith("COBRE_TCP")}
        inherited = ()
        if rank == 0:
            job["listener"] = self._listener.fileno()
            inherited = (self._listener.fileno(),)
        process = subprocess.Popen(
            [sys.executable, "-c", self._program],
            env={**variables, "TCP_JOB": json.dumps({**job, "config": self._config})},
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=inherited,
        )
        if rank == 0:
            self._listener.close()  # the port belongs to rank 0 alone
        return process

    def identity(self, **changes: object) -> Identity:
        """Return what a rank of this job knows, with changes."""
        values = {
            "size": self.size,
            "key": key_of(self.token),
            "configuration": configuration_digest(HEARTBEAT_S, SILENCE_S),
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
        self._listener.close()


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
