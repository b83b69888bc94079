"""A log of events as lines of JSON, written by a run and followed by whoever watches it.

Each line is one object that begins with ``"event": NAME`` and is appended by a single write, so that a reader
never sees part of one after its line break. A run appends to what earlier runs have left. Nothing that goes
wrong here stops a run: what could not be written is kept in :attr:`EventLog.error`.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from cobre.errors import Problem

_STARTED_FIELD = 19
"""Place of a process's start time behind its name in ``/proc/PID/stat``."""


class EventLog:
    """Appends to a log; several processes may do so at once.

    Parameters
    ----------
    path
        The file; it and its directory are made when the first event is written. ``None`` = nothing is.

    Attributes
    ----------
    error
        What went wrong; nothing is written after it.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.error: OSError | None = None
        self._descriptor: int | None = None
        self._made: list[Path] = []
        self._written = 0

    def write(self, events: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
        """Append events, each a name and its fields, by one write."""
        if self.path is None or self.error is not None:
            return
        lines = [json.dumps({"event": name, **_strict(fields)}, allow_nan=False) for name, fields in events]
        try:
            if self._descriptor is None:
                self._descriptor = self._open(self.path)
            content = "".join(f"{line}\n" for line in lines).encode()
            if os.write(self._descriptor, content) < len(content):
                raise OSError("the disk is full")
            self._written += len(content)
        except OSError as error:
            self.error = error
            self.close()

    def close(self) -> None:
        """Close the file; it opens again with the next event."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def discard(self) -> None:
        """Remove the file, and directories made for it, if it holds nothing but what this log has written."""
        self.close()
        if self.path is None or self.path not in self._made:
            return
        with contextlib.suppress(OSError):  # gone, or in a directory that others use by now
            if self.path.stat().st_size != self._written:
                return
            self.path.unlink()
            for directory in self._made[1:]:
                directory.rmdir()

    def _open(self, path: Path) -> int:
        missing = [place for place in (path, *path.parents) if not os.path.lexists(place)]
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
        self._made = self._made or missing
        size = os.fstat(descriptor).st_size
        if size and os.pread(descriptor, 1, size - 1) != b"\n":
            os.write(descriptor, b"\n")  # a run that was cut off has left part of a line
        return descriptor

    def problems(self) -> tuple[Problem, ...]:
        """Return a warning if something could not be written."""
        if self.error is None:
            return ()
        text = f"the events of this run are incomplete: {self.path} cannot be written: {self.error}"
        return (Problem("EventLogNotWritten", text, {"file": str(self.path)}, "results do not depend on it"),)


class EventReader:
    """Reads a log from its beginning, and what is appended later."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._offset = 0

    def new_events(self) -> Iterator[dict[str, Any]]:
        """Yield the events whose lines are complete by now; lines that are no events are passed over.

        Raises
        ------
        OSError
            When the file cannot be read.
        """
        with self.path.open("rb") as file:
            file.seek(self._offset)
            content = file.read()
        complete = content.rfind(b"\n") + 1
        self._offset += complete
        for line in content[:complete].splitlines():
            try:
                event = json.loads(line)
            except ValueError:
                continue
            if isinstance(event, dict) and isinstance(event.get("event"), str):
                yield event


def this_process() -> dict[str, Any]:
    """Return what identifies this process: host, number and start."""
    return {"host": socket.gethostname(), "pid": os.getpid(), "process_start": _process_start(os.getpid())}


def is_running(process: Mapping[str, Any]) -> bool | None:
    """Return whether a process that :func:`this_process` described still runs; ``None`` on another host."""
    if process.get("host") != socket.gethostname() or not isinstance(process.get("pid"), int):
        return None
    try:
        os.kill(process["pid"], 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # it is another user's
    began = _process_start(process["pid"])
    return began is None or process.get("process_start") in (None, began)


def _process_start(pid: int) -> int | None:
    """Return the start of a process in clock ticks since boot; ``None`` where the system does not report it.

    A zombie, which has ended and waits for its parent to notice, counts as started never: -1.
    """
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        fields = text.rpartition(")")[2].split()
        return -1 if fields[0] == "Z" else int(fields[_STARTED_FIELD])
    except (OSError, ValueError, IndexError):
        return None


def _strict(value: Any) -> Any:
    """Return a JSON value with null in place of numbers that are not finite."""
    if isinstance(value, Mapping):
        return {str(name): _strict(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_strict(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
