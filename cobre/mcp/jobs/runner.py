"""The process of a job: waits for its turn, carries out the command, writes how it ended.

``python -m cobre.mcp.jobs.runner DIRECTORY DESCRIPTOR``, started by :class:`cobre.mcp.jobs.store.JobStore`.
The descriptor holds the lock that shows that the job is alive; the command inherits it, so that the job
counts as alive for as long as anything of it works.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

from cobre.errors import CobreError
from cobre.mcp.jobs.state import CANCEL, CASE, LOG, MESSAGES, Request, append_to, last_line, read_request
from cobre.mcp.jobs.store import take_turn, write_result
from cobre.mcp.paths import PRIVATE_DIRECTORY, Root

_POLL_S: Final = 0.2
_PATIENCE_S: Final = 30.0
"""From a request to stop at once until the process is killed."""
_GRACE_S: Final = 600.0
"""From the limit of time, when the job is asked to stop after its iteration, until it shall stop at once."""
_PR_SET_PDEATHSIG: Final = 1
_FLAGS: Final = frozenset({"resume", "force"})
_NUMBERS: Final = frozenset(
    {"iterations", "scenarios", "seed", "ranks", "threads", "checkpoint_every", "keep_checkpoints"}
)
_PATHS: Final = frozenset({"policy", "warm_start"})


class _Stop:
    """Why and how urgently a job shall stop.

    Attributes
    ----------
    reason
        ``cancel``, ``time`` or ``signal``; ``None`` while it may go on.
    at_once
        Whether it shall not wait for the end of the iteration.
    """

    def __init__(self, place: Path) -> None:
        self._marker = place / CANCEL
        self._deadline: float | None = None
        self.reason: str | None = None
        self.at_once = False

    def allow(self, minutes: float) -> None:
        """Let the job take so long from now on."""
        self._deadline = time.monotonic() + 60.0 * minutes

    def signalled(self, number: int, frame: object) -> None:
        """Take a signal."""
        del number, frame
        self.at_once = self.reason == "signal"
        self.reason = self.reason or "signal"

    def asked(self) -> bool:
        """Return whether the job shall stop."""
        with contextlib.suppress(OSError):
            content = self._marker.read_bytes()
            self.reason = self.reason or "cancel"
            self.at_once |= content == b"now"
        if self._deadline is not None and time.monotonic() > self._deadline:
            self.reason = self.reason or "time"
        return self.reason is not None


def main(directory: str, descriptor: str) -> None:
    """Carry out a job."""
    place, alive = Path(directory), int(descriptor)
    request = read_request(place)
    stop = _Stop(place)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, stop.signalled)
    while not stop.asked():
        if take_turn(place):
            break
        time.sleep(_POLL_S)
    else:
        write_result(place, None, stop.reason, None)
        return
    stop.allow(request.max_minutes)
    try:
        command = command_of(request, place, Root.at(place.parents[1]))
    except CobreError as error:
        problems = [problem.as_dict() for problem in error.problems]
        write_result(place, None, None, {"success": False, "errors": problems, "warnings": []})
        return
    code = _run(command, place, alive, stop)
    write_result(place, code, stop.reason, _envelope(place / LOG))


def command_of(request: Request, place: Path, root: Root) -> list[str]:
    """Return the command line of a job; its output directory is made, and holds no link out of the root.

    Raises
    ------
    CobreError
        When it does.
    """
    with root.directory(request.output, create=True) as descriptor:
        root.check_tree(request.output, descriptor)
        output = root.inside(request.output)
    if output.split("/")[0] == PRIVATE_DIRECTORY:
        raise CobreError("PathOutsideRoot", "the output lies where jobs are kept", {"path": request.output})
    with root.directory(f"{PRIVATE_DIRECTORY}/{place.name}/{CASE}") as descriptor:
        root.check_tree(place.name, descriptor)
    command = [sys.executable, "-m", "cobre", request.kind, str(place / CASE)]
    command += ["--output", str(root.path / output), "--output-format", "json-lines"]
    for name, value in request.options.items():
        option = f"--{name.replace('_', '-')}"
        if name in _FLAGS and value is True:
            command.append(option)
        elif name in _NUMBERS and type(value) is int:
            command += [option, str(value)]
        elif name in _PATHS and isinstance(value, str):
            command += [option, str(root.path / root.inside(value))]
        elif name == "lp_engine" and value in ("auto", "highs", "own"):
            command += [option, value]
        else:
            raise CobreError(
                "JobDamaged", f"the job has an impossible option {name!r:.80}", {"job": request.id}
            )
    return command


def _run(command: list[str], place: Path, alive: int, stop: _Stop) -> int:
    """Run the command to its end, stop it when asked to; return its exit code, negative for a signal."""
    parent = os.getpid()
    with append_to(place / LOG) as log, append_to(place / MESSAGES) as messages:
        process = subprocess.Popen(
            command,
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=messages,
            pass_fds=[alive],
            preexec_fn=lambda: _end_with(parent),
        )
    asked = forced = 0.0
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(_POLL_S)
        moment = time.monotonic()
        late = stop.reason == "time" and asked > 0.0 and moment > asked + _GRACE_S
        if stop.asked() and not asked:
            asked = moment
            process.send_signal(signal.SIGTERM)
        elif asked and (stop.at_once or late) and not forced and moment > asked + _POLL_S:
            forced = moment
            process.send_signal(signal.SIGTERM)
        elif forced and moment > forced + _PATIENCE_S:
            process.kill()


def _end_with(parent: int) -> None:
    """Have the system ask this process to stop when its parent ends, however that happens."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGTERM)


def _envelope(path: Path) -> dict[str, Any] | None:
    """Return the result that the command printed last; ``None`` where it ended without one."""
    found = last_line(path)
    return found if found.get("type") == "result" else None


if __name__ == "__main__":
    main(*sys.argv[1:])
