"""What a job is, and what became of it, read from its directory."""

from __future__ import annotations

import fcntl
import json
import os
import stat
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal

from cobre.errors import CobreError

Kind = Literal["train", "simulate", "run"]
Status = Literal["queued", "running", "complete", "stopped", "cancelled", "failed", "interrupted"]
ENDED: Final = frozenset({"complete", "stopped", "cancelled", "failed", "interrupted"})

JOB, STARTED, RESULT, CANCEL = "job.json", "started.json", "result.json", "cancel"
ALIVE, LOG, MESSAGES, CASE = "alive", "log.jsonl", "messages.log", "case"
_READ: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
_TAIL: Final = (1 << 16, 1 << 20)
_SHOWN_MESSAGES: Final = 4_000


@dataclass(frozen=True)
class Request:
    """What a job was asked for.

    Attributes
    ----------
    number
        Order of submission; jobs take their turns by it.
    case, output
        Relative to the root; the case is the one that the job holds.
    options
        Of the command line, such as ``{"iterations": 20}``.
    resumes
        The job whose work this one goes on with.
    max_jobs, max_minutes
        What the server that took the job allows.
    """

    id: str
    number: int
    kind: Kind
    case: str
    output: str
    options: dict[str, Any]
    submitted_at: str
    resumes: str | None = None
    max_jobs: int = 1
    max_minutes: float = 1440.0

    def as_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class Progress:
    """How far a job is.

    Attributes
    ----------
    done
        Never decreases: iterations, then (behind their limit) scenarios.
    total
        ``None`` where it is not known.
    last
        The last line of progress.
    """

    done: int = 0
    total: int | None = None
    last: dict[str, Any] = field(default_factory=dict)

    def message(self) -> str:
        """Return it in words."""
        if not self.last:
            return ""
        if self.last.get("phase") == "simulation":
            return f"{self.last.get('scenarios_done')} of {self.last.get('scenarios')} scenarios"
        limit = f" of at most {self.total}" if self.total is not None else ""
        bound = self.last.get("lower_bound")
        shown = f", lower bound {bound:.8g} $" if isinstance(bound, float) else ""
        return f"iteration {self.last.get('iteration')}{limit}{shown}"


@dataclass(frozen=True)
class JobState:
    """A job at a moment.

    Attributes
    ----------
    result
        The envelope of the command (``data``, ``errors``, ``warnings``, ...); ``None`` where it has none.
    messages
        The end of what the command said besides.
    """

    request: Request
    status: Status
    progress: Progress
    result: dict[str, Any] | None
    exit_code: int | None
    stopped_by: str | None
    cancel_requested: bool
    started_at: str | None
    ended_at: str | None
    messages: str

    @property
    def ended(self) -> bool:
        """Whether it will not change any more."""
        return self.status in ENDED


def read_state(directory: Path) -> JobState:
    """Return a job from its directory.

    Raises
    ------
    CobreError
        Kind ``JobDamaged``.
    """
    request = read_request(directory)
    running = is_alive(directory)  # asked first: whatever was alive may have written its result since
    ended = _document(directory / RESULT)
    started = _document(directory / STARTED)
    progress, last = _progress(directory, request)
    envelope = ended.get("envelope") or (last if last.get("type") == "result" else None)
    cancelled = (directory / CANCEL).exists()
    stopped_by = ended.get("stopped_by")
    if ended or (envelope is not None and not running):
        status = _ended_status(ended, envelope)
    elif running:
        status = "running" if started else "queued"
    else:
        status = "cancelled" if cancelled and not started else "interrupted"
    return JobState(
        request,
        status,
        progress,
        envelope,
        ended.get("exit_code"),
        stopped_by,
        cancelled,
        started.get("at"),
        ended.get("at"),
        _messages(directory / MESSAGES),
    )


def read_request(directory: Path) -> Request:
    """Return what a job was asked for.

    Raises
    ------
    CobreError
        Kind ``JobDamaged``.
    """
    document = _document(directory / JOB)
    try:
        return Request(**document)
    except TypeError as error:
        raise CobreError(
            "JobDamaged", f"the record of job {directory.name} cannot be read", {"job": directory.name}
        ) from error


def is_alive(directory: Path) -> bool:
    """Return whether a process works on a job or waits for its turn: it holds a lock."""
    try:
        descriptor = os.open(directory / ALIVE, _READ)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def is_waiting(directory: Path) -> bool:
    """Return whether a job is alive and its turn has not come."""
    return not has_started(directory) and is_alive(directory)


def has_started(directory: Path) -> bool:
    """Return whether the turn of a job has come."""
    return (directory / STARTED).exists()


def has_ended(directory: Path) -> bool:
    """Return whether a job has a result."""
    return (directory / RESULT).exists()


def _ended_status(ended: dict[str, Any], envelope: dict[str, Any] | None) -> Status:
    stopped_by = ended.get("stopped_by")
    if envelope is not None and envelope.get("success"):
        data = envelope.get("data") or {}
        parts = [data, *(part for part in (data.get("training"), data.get("simulation")) if part)]
        summary = envelope.get("summary") or {}
        partial = summary.get("status") == "partial" or any(part.get("status") == "partial" for part in parts)
        if not partial:
            return "complete"
        return "cancelled" if stopped_by == "cancel" else "stopped"
    if stopped_by is not None:
        return "cancelled" if stopped_by == "cancel" else "stopped"
    return "failed"


def _progress(directory: Path, request: Request) -> tuple[Progress, dict[str, Any]]:
    """Return how far a job is, and the last line of its log."""
    path = directory / LOG
    head, lines = _first_line(path), []
    for size in _TAIL:
        lines = _last_lines(path, size)
        if any(line.get("type") == "progress" for line in lines):
            break
    found = [line for line in lines if line.get("type") == "progress"]
    last = found[-1] if found else {}
    limit = head.get("max_iterations") if isinstance(head.get("max_iterations"), int) else None
    if last.get("phase") == "simulation":
        before = limit or 0
        done, scenarios = int(last.get("scenarios_done", 0)), int(last.get("scenarios", 0))
        progress = Progress(before + done, before + scenarios, last)
    else:
        total = limit if request.kind == "train" else None
        progress = Progress(int(last.get("iteration", 0)), total if last else None, last)
    return progress, lines[-1] if lines else {}


def last_line(path: Path) -> dict[str, Any]:
    """Return the last line of a log that is an object; nothing where there is none."""
    lines: list[dict[str, Any]] = []
    for size in (*_TAIL, None):
        lines = _last_lines(path, size)
        if lines:
            break
    return lines[-1] if lines else {}


def open_file(path: Path) -> BinaryIO:
    """Open a file of a job to read it; links and pipes in its place are none.

    Raises
    ------
    OSError
        When there is no such file.
    """
    descriptor = os.open(path, _READ)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise FileNotFoundError(path)
    return os.fdopen(descriptor, "rb")


def append_to(path: Path) -> BinaryIO:
    """Open a file of a job to append to it, which is no link.

    Raises
    ------
    OSError
        When it is one.
    """
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.fdopen(os.open(path, flags, 0o600), "ab")


def _first_line(path: Path) -> dict[str, Any]:
    try:
        with open_file(path) as file:
            return _parsed(file.readline(_TAIL[1]))
    except OSError:
        return {}


def _last_lines(path: Path, size: int | None) -> list[dict[str, Any]]:
    """Return the complete lines at the end of a log that are objects."""
    try:
        with open_file(path) as file:
            end = file.seek(0, os.SEEK_END)
            size = end if size is None else size
            file.seek(max(0, end - size))
            content = file.read()
    except OSError:
        return []
    complete = content[: content.rfind(b"\n") + 1].split(b"\n")
    return [line for text in complete[0 if end <= size else 1 :] if (line := _parsed(text))]


def _parsed(text: bytes) -> dict[str, Any]:
    try:
        document = json.loads(text)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def _document(path: Path) -> dict[str, Any]:
    try:
        with open_file(path) as file:
            return _parsed(file.read())
    except OSError:
        return {}


def _messages(path: Path) -> str:
    try:
        with open_file(path) as file:
            end = file.seek(0, os.SEEK_END)
            file.seek(max(0, end - _SHOWN_MESSAGES))
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""
