"""What a command shows while it runs and at its end: text for people, JSON, or lines of JSON."""

from __future__ import annotations

import datetime
import enum
import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from cobre._version import __version__
from cobre.cli.exit_codes import ExitCode
from cobre.cli.outcome import Outcome, json_text

if TYPE_CHECKING:
    from cobre.errors import Problem
    from cobre.sddp.progress import IterationRecord
    from cobre.sddp.simulation.result import SimulationProgress


_INTERRUPTED = (ExitCode.INTERRUPTED, ExitCode.TERMINATED)


class OutputFormat(str, enum.Enum):
    """Formats of commands that answer once."""

    HUMAN = "human"
    JSON = "json"


class StreamFormat(str, enum.Enum):
    """Formats of commands that also report while they run."""

    HUMAN = "human"
    JSON = "json"
    JSON_LINES = "json-lines"


class WarningDetail(str, enum.Enum):
    """How many warnings people see; the JSON formats hold all."""

    GROUPED = "grouped"
    ALL = "all"


class View(ABC):
    """Receives the events of a command; decides what is shown.

    Attributes
    ----------
    step
        What a run can be stopped at the end of.
    """

    step = "iteration"

    def started(self, facts: Mapping[str, Any], warnings: Sequence[Problem] = ()) -> None:  # noqa: B027
        """Training begins; ``facts`` describe the study, ``warnings`` are those found so far.

        With ``facts["phase"] == "simulation"`` it is a simulation that begins.
        """

    def iteration(self, record: IterationRecord) -> None:  # noqa: B027
        """An iteration is complete."""

    def scenarios(self, progress: SimulationProgress) -> None:  # noqa: B027
        """Further scenarios are complete."""

    def terminated(self, facts: Mapping[str, Any]) -> None:  # noqa: B027
        """Training, or a simulation, has ended by itself or on request."""

    def notice(self, message: str) -> None:
        """Show a line to a person while the command runs; any thread may call it."""
        print(message, file=sys.stderr, flush=True)

    @abstractmethod
    def finish(self, outcome: Outcome) -> None:
        """Show how the command ended; the last call."""


class JsonView(View):
    """Exactly one JSON document on standard output."""

    def finish(self, outcome: Outcome) -> None:
        """Print the envelope."""
        print(json_text(outcome.envelope(), indent=2), flush=True)


class JsonLinesView(View):
    """One JSON object a line, ``type`` first: ``started``, ``progress``..., ``terminated``, ``result``."""

    def __init__(self, command: str, progress: bool = True) -> None:
        self._command = command
        self._progress = progress
        self._written: set[str] = set()

    def _line(self, kind: str, content: Mapping[str, Any]) -> None:
        self._written.add(kind)
        sys.stdout.write(json_text({"type": kind, **content}) + "\n")
        sys.stdout.flush()

    def started(self, facts: Mapping[str, Any], warnings: Sequence[Problem] = ()) -> None:
        """Write the line ``started``; warnings are in the line ``result``."""
        now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds")
        header = {"command": self._command, "cobre_version": __version__, "timestamp": now}
        self._line("started", {**header, **facts})

    def iteration(self, record: IterationRecord) -> None:
        """Write a line ``progress``."""
        if self._progress:
            self._line("progress", progress_fields(record))

    def scenarios(self, progress: SimulationProgress) -> None:
        """Write a line ``progress``."""
        if self._progress:
            self._line("progress", {"phase": "simulation", **asdict(progress)})

    def terminated(self, facts: Mapping[str, Any]) -> None:
        """Write the line ``terminated``."""
        self._line("terminated", facts)

    def finish(self, outcome: Outcome) -> None:
        """Write the line ``result``, and before it what a command that failed has left out."""
        if "started" not in self._written:
            self.started({})
        if "terminated" not in self._written:
            self.terminated({"reason": "interrupted" if outcome.exit_code in _INTERRUPTED else "error"})
        self._line("result", outcome.envelope())


class RankView(View):
    """What a rank shows: everything on rank 0; on others only errors that rank 0 cannot report.

    Attributes
    ----------
    rank
        Of this process; 0 until it is known.
    reported
        Whether rank 0 reports how this rank ended.
    """

    def __init__(self, view: View) -> None:
        self._view = view
        self.rank = 0
        self.reported = False

    def started(self, facts: Mapping[str, Any], warnings: Sequence[Problem] = ()) -> None:
        """Show it on rank 0."""
        if self.rank == 0:
            self._view.started(facts, warnings)

    def iteration(self, record: IterationRecord) -> None:
        """Show it on rank 0."""
        if self.rank == 0:
            self._view.iteration(record)

    def scenarios(self, progress: SimulationProgress) -> None:
        """Show it on rank 0."""
        if self.rank == 0:
            self._view.scenarios(progress)

    def terminated(self, facts: Mapping[str, Any]) -> None:
        """Report it on rank 0."""
        if self.rank == 0:
            self._view.terminated(facts)

    def notice(self, message: str) -> None:
        """Print it on rank 0."""
        if self.rank == 0:
            self._view.notice(message)

    def finish(self, outcome: Outcome) -> None:
        """Show the end on rank 0."""
        if self.rank == 0:
            self._view.finish(outcome)
        elif not self.reported:
            for problem in outcome.errors:
                advice = f" ({problem.suggestion})" if problem.suggestion else ""
                story = f"rank {self.rank}: {problem.kind}: {problem.message}{advice}"
                print(story, file=sys.stderr, flush=True)


def progress_fields(record: IterationRecord) -> dict[str, Any]:
    """Return the fields of a line ``progress``: one iteration (OUT-01).

    ``upper_bound`` is the mean cost of this iteration's forward passes: a bound only where its kind is
    ``exact`` and no stage has a risk measure. ``gap`` is ``gap_percent`` as a fraction; both are null unless
    two bounds are proven (:mod:`cobre.rules.bounds`).
    """
    gap = record.gap_percent
    return {
        "iteration": record.iteration,
        "lower_bound": record.lower_bound,
        "upper_bound": record.upper_bound,
        "upper_bound_std": record.sample_std,
        "ci_95": record.ci_95,
        "gap": None if gap is None else gap / 100.0,
        "wall_time_ms": round(record.wall_time_ms, 3),
        "iteration_time_ms": round(record.iteration_time_ms, 3),
        "lower_bound_kind": record.lower_bound_kind,
        "upper_bound_kind": record.upper_bound_kind,
        "gap_percent": gap,
        "lp_solves": record.lp_solves,
        "cuts_active": record.cuts_active,
        **_evaluated_bound(record),
        **({} if record.costs is None else {"costs": record.costs.as_dict()}),
    }


def _evaluated_bound(record: IterationRecord) -> dict[str, Any]:
    """Return the deterministic upper bound of iterations that evaluate it; null where there is none."""
    bound = record.deterministic_upper_bound
    if bound is None:
        return {}
    return {"deterministic_upper_bound": bound if math.isfinite(bound) else None}


def make_view(
    command: str,
    output_format: OutputFormat | StreamFormat,
    *,
    quiet: bool = False,
    progress: bool = True,
    warnings: WarningDetail = WarningDetail.GROUPED,
) -> View:
    """Return the view that the options of a command ask for.

    Parameters
    ----------
    quiet
        Show only errors; the JSON formats keep their envelope.
    progress
        Show iterations.
    warnings
        How many warnings people see.
    """
    if output_format.value == StreamFormat.JSON.value:
        return JsonView()
    if output_format.value == StreamFormat.JSON_LINES.value:
        return JsonLinesView(command, progress=progress and not quiet)
    from cobre.cli.human import HumanView  # rich is needed by people only

    return HumanView(quiet=quiet, progress=progress, warnings=warnings)
