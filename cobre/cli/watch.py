"""``cobre watch``: follows a training run by the events that it writes; also shows one that has ended.

It reads ``training/events.jsonl`` and nothing else, so it may run anywhere that sees the directory, and takes
nothing from the run.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

from cobre.cli.exit_codes import ExitCode
from cobre.cli.outcome import Outcome, json_text
from cobre.cli.views import StreamFormat, View, make_view
from cobre.errors import OutputError, Problem
from cobre.event_log import EventReader, is_running

if TYPE_CHECKING:
    from rich.console import Console

_POLL_S: Final = 0.2
_SILENCE_S: Final = 60.0
_FAILED = frozenset({"failed", "interrupted"})


class _EventLines(View):
    """The events themselves, one a line, and behind them the envelope as a line ``result``."""

    def finish(self, outcome: Outcome) -> None:
        """Write the last line."""
        print(json_text({"type": "result", **outcome.envelope()}), flush=True)


def watch_view(output_format: StreamFormat) -> View:
    """Return the view that the command's options ask for."""
    return _EventLines() if output_format is StreamFormat.JSON_LINES else make_view("watch", output_format)


@dataclass
class _Run:
    """What is known of the latest run in a log."""

    started: dict[str, Any]
    iteration: int = 0
    checkpoint: int = 0
    finished: dict[str, Any] | None = None
    bounds: dict[str, Any] = field(default_factory=dict)

    def data(self, status: str) -> dict[str, Any]:
        """Return the data of the JSON envelope."""
        end = self.finished or {}
        return {
            "status": status,
            "iteration": self.iteration,
            "max_iterations": self.started.get("max_iterations"),
            "lower_bound": self.bounds.get("lower_bound"),
            "last_checkpoint": self.checkpoint or None,
            "case": self.started.get("case"),
            "output_dir": self.started.get("output_dir"),
            "process": {name: self.started.get(name) for name in ("host", "pid")},
            "verdict": end.get("verdict"),
        }


def watch_command(directory: Path, view: View, outcome: Outcome, *, follow: bool = True) -> None:
    """Carry out ``cobre watch``: return when the run has ended, or at once unless ``follow``."""
    watcher = _Watcher(EventReader(_log_of(directory)), view)
    status = watcher.run(follow)
    run = watcher.latest
    view.terminated({})
    outcome.data = run.data(status)
    outcome.summary = {"status": status, "iteration": run.iteration}
    outcome.show = lambda console: _show(console, run, status)
    if status == "gone":
        outcome.fail(ExitCode.RUNTIME, [_gone(run)])
    elif status in _FAILED:
        outcome.fail(ExitCode.RUNTIME, [_failure(run, status)])


class _Watcher:
    def __init__(self, reader: EventReader, view: View) -> None:
        self.reader, self.view = reader, view
        self.raw = isinstance(view, _EventLines)
        self.run_seen: _Run | None = None
        self.handlers: dict[str, Callable[[_Run, dict[str, Any]], None]] = {
            "ConvergenceUpdate": self._bounds,
            "IterationSummary": self._iteration,
            "CheckpointComplete": self._checkpoint,
            "TrainingFinished": self._finished,
        }

    @property
    def latest(self) -> _Run:
        """The latest run of the log, which there is by then."""
        if self.run_seen is None:
            raise OutputError(
                "OutputCorrupted",
                f"{self.reader.path} holds no TrainingStarted event",
                {"file": str(self.reader.path)},
                "give the output directory of a 'cobre train' run",
            )
        return self.run_seen

    def run(self, follow: bool) -> str:
        """Take all events; return how the run ended, ``running`` if it has not."""
        heard, noticed = time.monotonic(), False
        while True:
            alive = None if self.run_seen is None else is_running(self.run_seen.started)
            try:
                events = self._take()
            except FileNotFoundError:  # removed by a run that has ended before its first iteration
                return "failed"
            if self.latest.finished is not None:
                return str(self.latest.finished.get("status"))
            if events:
                heard, noticed = time.monotonic(), False
            elif alive is False:  # and it had written its last line before that was asked
                return "gone"
            if not follow:
                known = is_running(self.latest.started)
                return "unknown" if known is None else "running" if known else "gone"
            if alive is None and not noticed and time.monotonic() - heard > _SILENCE_S:
                noticed = True
                self.view.notice(f"{_process(self.latest)} has written nothing for {_SILENCE_S:.0f} s")
            time.sleep(_POLL_S)

    def _take(self) -> int:
        """Handle new events; return how many there were. Of what is there at first, the latest run counts."""
        events = list(self.reader.new_events())
        starts = [place for place, event in enumerate(events) if event["event"] == "TrainingStarted"]
        for event in events[starts[-1] if starts else 0 :]:
            if event["event"] == "TrainingStarted":
                self._started(event)
            elif self.run_seen is not None and event["event"] in self.handlers:
                self.handlers[event["event"]](self.run_seen, event)
            if self.raw:
                sys.stdout.write(json_text(event) + "\n")
        sys.stdout.flush()
        return len(events)

    def _started(self, event: dict[str, Any]) -> None:
        if self.run_seen is not None:
            self.view.terminated({})
        self.run_seen = _Run(event)
        if not self.raw:
            self.view.started(event)

    def _bounds(self, run: _Run, event: dict[str, Any]) -> None:
        run.bounds = event

    def _iteration(self, run: _Run, event: dict[str, Any]) -> None:
        run.iteration = int(event["iteration"])
        if not self.raw and run.bounds:
            record: Any = SimpleNamespace(**{**run.bounds, **event, "costs": None})
            self.view.iteration(record)

    def _checkpoint(self, run: _Run, event: dict[str, Any]) -> None:
        run.checkpoint = int(event["iteration"])

    def _finished(self, run: _Run, event: dict[str, Any]) -> None:
        run.finished = event


def _log_of(directory: Path) -> Path:
    """Return the log of an output directory, or of the case whose output has its usual place."""
    places = [directory / part / "training" / "events.jsonl" for part in ("", "output")]
    for path in places:
        if path.is_file():
            return path
    raise OutputError(
        "OutputNotFound",
        f"there is no run to watch in {directory}: {places[0]} is missing",
        {"file": str(places[0])},
        "give the output directory of a 'cobre train' run, once it has started",
    )


def _process(run: _Run) -> str:
    return f"process {run.started.get('pid')} on {run.started.get('host')}"


def _gone(run: _Run) -> Problem:
    kept = f"; its last checkpoint holds {run.checkpoint} iterations" if run.checkpoint else ""
    return Problem(
        "RunGone",
        f"the run has ended without a word after iteration {run.iteration}: {_process(run)} is gone{kept}",
        {"file": str(run.started.get("output_dir"))},
        "go on from the checkpoint with 'cobre train ... --resume'" if run.checkpoint else "start it again",
    )


def _failure(run: _Run, status: str) -> Problem:
    error: Mapping[str, Any] = (run.finished or {}).get("error") or {}
    text = f"{error.get('kind', 'unknown')}: {error.get('message') or 'no message'}"
    return Problem(
        "RunFailed",
        f"the run was {'interrupted' if status == 'interrupted' else 'ended by an error'} after iteration "
        f"{run.iteration}, without results: {text}",
        {"file": str(run.started.get("output_dir"))},
    )


def _show(console: Console, run: _Run, status: str) -> None:
    from cobre.cli.human import show_table
    from cobre.cli.verdict import TITLES, verdict_rows

    limit = run.started.get("max_iterations")
    rows = {
        "iterations": f"{run.iteration} of {limit}",
        "run": f"{_process(run)}, started {run.started.get('timestamp')}",
        "output": str(run.started.get("output_dir")),
    }
    show_table(console, f"Training {status}", rows)
    verdict = (run.finished or {}).get("verdict")
    if verdict:
        show_table(console, f"Verdict: {TITLES[verdict['conclusion']]}", verdict_rows(verdict))
