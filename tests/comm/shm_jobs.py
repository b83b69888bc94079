"""Ranks of the shm backend as real processes, for tests that kill, stop and interrupt them."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np

from cobre.comm.shm_layout import R_PID, RANK_WORDS, RANKS

DEADLINE_S = 60.0
"""Longer than any step takes on a busy machine; only a hang comes near it."""

PRELUDE = """
import json, os, signal, sys, time
import numpy as np
from cobre.comm import *
from cobre.comm.config import ShmConfig
from cobre.comm.shm import ShmCommunicator

job = json.loads(os.environ["SHM_JOB"])
rank, size = job["rank"], job["size"]

def say(*words):
    print(*words, flush=True)

def connect(suffix="", **changes):
    values = dict(rank=rank, size=size, nonce=bytes.fromhex(job["nonce"]), timeout_s=40.0)
    values.update(job["config"])
    values.update(changes)
    return ShmCommunicator(ShmConfig(job["name"] + suffix, **values))

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
    """The ranks of one job; a context manager that kills what is left of them."""

    def __init__(self, size: int, body: str, **config: object) -> None:
        self.size = size
        self.name = f"/cobre_test_{secrets.token_hex(8)}"
        self.nonce = secrets.token_bytes(16)
        self._body = PRELUDE + body
        self._config = config
        self.processes: dict[int, subprocess.Popen[str]] = {}
        self.lines: dict[int, list[str]] = {}
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
        job = {"name": self.name, "rank": rank, "size": self.size, "nonce": self.nonce.hex()}
        variables = {name: value for name, value in os.environ.items() if not name.startswith("COBRE_SHM")}
        return subprocess.Popen(
            [sys.executable, "-c", self._body],
            env={**variables, "SHM_JOB": json.dumps({**job, "config": self._config})},
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

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
        for name in self.leftovers():
            (self.path.parent / name).unlink()
