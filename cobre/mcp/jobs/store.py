"""The jobs of a root: submitted, listed, read, cancelled; by any number of servers at once.

Whoever decides something (a number, whose turn it is, whether a job needs a new process) holds the lock of
the queue while doing so. Files are complete or not there.
"""

from __future__ import annotations

import contextlib
import datetime
import fcntl
import json
import os
import re
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Final

from cobre.durable import atomic_files, atomic_write, sync_directory
from cobre.errors import CobreError
from cobre.mcp.contract import Settings
from cobre.mcp.jobs.state import (
    ALIVE,
    CANCEL,
    CASE,
    JOB,
    MESSAGES,
    RESULT,
    STARTED,
    JobState,
    Kind,
    Request,
    append_to,
    has_ended,
    has_started,
    is_alive,
    is_waiting,
    read_request,
    read_state,
)
from cobre.mcp.paths import PRIVATE_DIRECTORY, Root

_QUEUE: Final = "queue.lock"
_ID: Final = re.compile(r"(train|simulate|run)-([1-9]\d{0,8})\Z")
_STAGING: Final = ".new-"
_FORGOTTEN_S: Final = 3600.0
"""Age from which what a submission has left that was broken off is removed."""


class JobStore:
    """The jobs of a server.

    Attributes
    ----------
    directory
        ``ROOT/.cobre-jobs``.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.directory = jobs_directory(settings.root)
        self._runners: list[subprocess.Popen[bytes]] = []

    def submit(
        self,
        kind: Kind,
        case: str,
        contents: Mapping[str, bytes],
        output: str,
        options: Mapping[str, Any],
        resumes: str | None = None,
    ) -> str:
        """Put a job behind those that wait, start its process, and return its id.

        Parameters
        ----------
        contents
            The files of the case; the job keeps them.

        Raises
        ------
        CobreError
            Kind ``QueueFull``; ``OutputError`` when the job cannot be written.
        """
        self._make_directory()
        self._clean()
        staging = self.directory / f"{_STAGING}{secrets.token_hex(8)}"
        try:
            _write_case(staging / CASE, contents)
            with queue_lock(self.directory):
                waiting = sum(is_waiting(place) for place in job_directories(self.directory))
                if waiting >= self.settings.max_waiting:
                    raise CobreError(
                        "QueueFull",
                        f"{waiting} jobs wait already",
                        {"waiting": waiting},
                        "cancel some, or wait",
                    )
                number = 1 + max(map(_number, job_directories(self.directory)), default=0)
                request = Request(
                    id=f"{kind}-{number}",
                    number=number,
                    kind=kind,
                    case=case,
                    output=output,
                    options=dict(options),
                    submitted_at=now(),
                    resumes=resumes,
                    max_jobs=self.settings.max_jobs,
                    max_minutes=self.settings.max_minutes,
                )
                write_json(staging / JOB, request.as_dict())
                staging.rename(self.directory / request.id)
                sync_directory(self.directory)
                self._start(self.directory / request.id)
        finally:
            shutil.rmtree(staging, ignore_errors=True)
        return request.id

    def revive(self) -> list[str]:
        """Start new processes for jobs that waited when theirs were lost; return their ids."""
        if self.directory.is_symlink() or not self.directory.is_dir():
            return []
        with queue_lock(self.directory):
            lost = [
                place
                for place in job_directories(self.directory)
                if not (
                    has_started(place) or has_ended(place) or (place / CANCEL).exists() or is_alive(place)
                )
            ]
            return [place.name for place in lost if self._started_again(place)]

    def _started_again(self, place: Path) -> bool:
        try:
            read_request(place)
            self._start(place)
        except (CobreError, OSError) as error:  # somebody has changed its files
            print(f"cobre mcp: job {place.name} cannot be started: {error}", file=sys.stderr)
            return False
        return True

    def state(self, job: str) -> JobState:
        """Return a job.

        Raises
        ------
        CobreError
            Kind ``UnknownJob``.
        """
        return read_state(self._place(job))

    def states(self) -> list[JobState]:
        """Return all jobs whose records can be read, the latest first."""
        found = []
        for place in reversed(job_directories(self.directory)):
            with contextlib.suppress(CobreError):
                found.append(read_state(place))
        return found

    def cancel(self, job: str, *, at_once: bool) -> JobState:
        """Ask a job to stop, and return it; one that has ended stays as it is.

        One that was lost while it waited is not taken up again.
        """
        place = self._place(job)
        if not has_ended(place):
            atomic_write(place / CANCEL, lambda file: _write(file, b"now" if at_once else b"soon"))
        return read_state(place)

    def _place(self, job: str) -> Path:
        known = [place.name for place in job_directories(self.directory)]
        if job not in known:
            raise CobreError(
                "UnknownJob",
                f"there is no job {job[:80]!r}",
                {"job": job[:80]},
                f"the latest: {', '.join(reversed(known[-10:])) or 'none'}",
            )
        return self.directory / job

    def _clean(self) -> None:
        for place in self.directory.glob(f"{_STAGING}*"):
            with contextlib.suppress(FileNotFoundError):  # another server removes it too
                if time.time() - place.stat().st_mtime > _FORGOTTEN_S:
                    shutil.rmtree(place, ignore_errors=True)

    def _make_directory(self) -> None:
        if self.directory.is_symlink():
            raise CobreError("PathOutsideRoot", f"{PRIVATE_DIRECTORY} is a link", {"path": PRIVATE_DIRECTORY})
        with self.settings.root.directory(PRIVATE_DIRECTORY, create=True) as descriptor:
            os.fchmod(descriptor, 0o700)

    def _start(self, place: Path) -> None:
        """Start the process of a job; it is alive from the moment this returns."""
        self._runners = [runner for runner in self._runners if runner.poll() is None]
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        alive = os.open(place / ALIVE, flags, 0o600)
        try:
            fcntl.flock(alive, fcntl.LOCK_EX)  # others hold it for the moment in which they ask
            with append_to(place / MESSAGES) as messages:
                self._runners.append(
                    subprocess.Popen(
                        [sys.executable, "-m", "cobre.mcp.jobs.runner", str(place), str(alive)],
                        # Python imports from the working directory, where a case may hold anything.
                        cwd="/",
                        stdin=subprocess.DEVNULL,
                        stdout=subprocess.DEVNULL,
                        stderr=messages,
                        pass_fds=[alive],
                        start_new_session=True,
                    )
                )
        finally:
            os.close(alive)


def _write_case(place: Path, contents: Mapping[str, bytes]) -> None:
    paths = [place / path for path in contents]
    for folder in {place, *(path.parent for path in paths)}:
        folder.mkdir(parents=True, exist_ok=True)
    with atomic_files(paths) as files:
        for file, content in zip(files, contents.values(), strict=True):
            file.write(content)


def jobs_directory(root: Root) -> Path:
    """Return where the jobs of a root are."""
    return root.path / PRIVATE_DIRECTORY


def job_directories(directory: Path) -> list[Path]:
    """Return the directories of all jobs, by number; links are none."""
    if directory.is_symlink():
        return []
    try:
        found = [place for place in directory.iterdir() if _ID.match(place.name) and not place.is_symlink()]
    except FileNotFoundError:
        return []
    return sorted(found, key=_number)


def _number(place: Path) -> int:
    return int(place.name.rpartition("-")[2])


@contextlib.contextmanager
def queue_lock(directory: Path) -> Iterator[None]:
    """Hold the lock of the queue for the block."""
    descriptor = os.open(directory / _QUEUE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def take_turn(place: Path) -> bool:
    """Start a job if its turn has come: none before it waits, and no more run than may.

    Two jobs with the same output never run at the same time.
    """
    request = read_request(place)
    with queue_lock(place.parent):
        running = []
        for other in job_directories(place.parent):
            if other == place or has_ended(other) or not is_alive(other):
                continue
            if has_started(other):
                running.append(read_request(other).output)
            elif _number(other) < request.number:
                return False
        if len(running) >= request.max_jobs or request.output in running:
            return False
        write_json(place / STARTED, {"at": now(), "pid": os.getpid()})
    return True


def write_result(place: Path, exit_code: int | None, stopped_by: str | None, envelope: Any) -> None:
    """Write how a job ended."""
    document = {"at": now(), "exit_code": exit_code, "stopped_by": stopped_by, "envelope": envelope}
    write_json(place / RESULT, document)


def write_json(path: Path, document: Any) -> None:
    """Write a JSON file that is complete or not there."""
    content = json.dumps(document).encode()
    atomic_write(path, lambda file: _write(file, content))


def _write(file: BinaryIO, content: bytes) -> None:
    file.write(content)


def now() -> str:
    """Return the time as text."""
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds")
