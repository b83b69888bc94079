"""What a run of the suite leaves behind on the machine: processes, and segments of jobs that have ended.

Processes are known by a variable that all of them inherit, the workers of a parallel run included. Other runs
of the suite may go on beside this one: a segment counts only if it is new and its job has ended.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

SESSION_VARIABLE = "COBRE_TEST_SESSION"
SEGMENTS = Path("/dev/shm")
GRACE_S = 10.0
"""How long processes that were told to end may take, and other runs to remove what they have made."""


def mark_session() -> str:
    """Give this process's children, and theirs, a mark besides those of the runs that this one is part of."""
    mark = secrets.token_hex(8)
    os.environ[SESSION_VARIABLE] = " ".join([*os.environ.get(SESSION_VARIABLE, "").split(), mark])
    return mark


def marked_processes(mark: str) -> dict[int, str]:
    """Return the command lines of the processes that have not ended, by process id; this one is none."""
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it ended meanwhile, or is another user's
            if mark.encode() in (process / "environ").read_bytes() and int(process.name) != os.getpid():
                found[int(process.name)] = (process / "cmdline").read_text().replace("\0", " ")
    return found


def abandoned_segments() -> set[str]:
    """Return the segments of this user's jobs that have ended: no process holds their lock."""
    found = set()
    for path in SEGMENTS.glob("cobre_*"):
        with suppress(OSError), path.open("rb") as file:  # removed meanwhile, locked, or another user's
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            found.add(path.name)
    return found


def end_leftovers(mark: str, segments_before: set[str]) -> list[str]:
    """Wait until nothing is left; after a grace period end and remove what is, and return what it was."""
    deadline = time.monotonic() + GRACE_S
    while True:
        processes = marked_processes(mark)
        segments = abandoned_segments() - segments_before
        if not (processes or segments):
            return []
        if time.monotonic() > deadline:
            break
        time.sleep(0.1)
    for pid in processes:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    for name in segments:
        (SEGMENTS / name).unlink(missing_ok=True)
    return [
        *(f"process {pid}: {command[:200]}" for pid, command in sorted(processes.items())),
        *(f"segment {SEGMENTS / name}" for name in sorted(segments)),
    ]


@contextmanager
def only_cleaner() -> Iterator[None]:
    """Keep other tests from removing abandoned segments, which are those of the whole machine."""
    directory = os.open(SEGMENTS, os.O_RDONLY)
    try:
        fcntl.flock(directory, fcntl.LOCK_EX)
        yield
    finally:
        os.close(directory)
