"""Text for people: a live display on a terminal, plain lines elsewhere, then the result."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console, Group
from rich.live import Live
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from cobre.cli.exit_codes import ExitCode
from cobre.cli.live_scenarios import LiveScenarios, ScenarioLines, described_simulation
from cobre.cli.outcome import Outcome
from cobre.cli.problems import printable, show_line, show_problems
from cobre.cli.views import View, WarningDetail
from cobre.cli.warning_groups import show_warnings
from cobre.errors import Problem

if TYPE_CHECKING:
    from cobre.sddp.costs import CostBreakdown
    from cobre.sddp.progress import IterationRecord
    from cobre.sddp.simulation.result import SimulationProgress

STARTING_UP = "loading kernels (or compiling them)..."

_EVERY_LINE_UNTIL = 20
_LEAST_SHARE = 5e-4
_GROWTH = 1.1
_LONGEST_SILENCE_S = 60.0


class HumanView(View):
    """Progress and results on standard output; errors and warnings on standard error."""

    def __init__(
        self,
        *,
        quiet: bool = False,
        progress: bool = True,
        warnings: WarningDetail = WarningDetail.GROUPED,
    ) -> None:
        self.out = Console(highlight=False, markup=False, emoji=False)
        self.err = Console(stderr=True, highlight=False, markup=False, emoji=False)
        self._quiet = quiet
        self._progress = progress and not quiet
        self._display: _LiveDisplay | _PlainLines | None = None
        self._scenarios: LiveScenarios | ScenarioLines | None = None
        self._show_warnings = show_warnings if warnings is WarningDetail.GROUPED else _show_all_warnings
        self._warned: tuple[Problem, ...] = ()
        self._began = ""

    def started(self, facts: Mapping[str, Any], warnings: Sequence[Problem] = ()) -> None:
        """Print the warnings so far and what is done, and begin to show progress."""
        self._began = self._began or facts.get("phase", "training")
        new = [warning for warning in warnings if not any(warning is shown for shown in self._warned)]
        if new and not self._quiet:
            self._show_warnings(self.err, new)
            self._warned += tuple(new)
        if not self._progress:
            return
        live = self.out.is_terminal and not self.out.is_dumb_terminal
        if facts.get("phase") == "simulation":
            show_line(self.out, 0, Text(printable(described_simulation(facts))))
            count = facts["scenarios"]
            self._scenarios = LiveScenarios(self.out) if live else ScenarioLines(self.out, count)
            return
        show_line(self.out, 0, Text(printable(_describe(facts))))
        limit = int(facts["max_iterations"])
        self._display = _LiveDisplay(self.out, limit) if live else _PlainLines(self.out, limit)

    def iteration(self, record: IterationRecord) -> None:
        """Show an iteration; of the first one also what is paid for, and a first stage full of violations."""
        if self._display is None:
            return
        self._display.iteration(record)
        if record.costs is not None:
            show_line(self.out, 0, Text(_shares(record.costs)))
            for problem in record.costs.first_stage_warnings():
                self.notice(printable(f"{problem.message} -> {problem.suggestion}"))

    def scenarios(self, progress: SimulationProgress) -> None:
        """Show how far a simulation is."""
        if self._scenarios is not None:
            self._scenarios.progress(progress)

    def terminated(self, facts: Mapping[str, Any]) -> None:
        """End the display of progress."""
        self._stop()

    def notice(self, message: str) -> None:
        """Print a message beside the progress display."""
        is_live = isinstance(self._display, _LiveDisplay) or isinstance(self._scenarios, LiveScenarios)
        console = self.out if is_live else self.err
        console.print(Text(message, "yellow"), soft_wrap=True)

    def finish(self, outcome: Outcome) -> None:
        """Print result, warnings and errors."""
        self._stop()
        if outcome.show is not None and not self._quiet:
            outcome.show(self.out)
        if not self._quiet:
            self._finish_warnings(outcome.warnings)
        if outcome.exit_code in (ExitCode.INTERRUPTED, ExitCode.TERMINATED):
            for problem in outcome.errors:
                show_line(self.err, 0, Text(printable(f"interrupted: {problem.message}"), "bold yellow"))
        else:
            show_problems(self.err, outcome.errors, "error")
        if len(outcome.errors) > 1:
            show_line(self.err, 0, Text(f"{len(outcome.errors)} errors", "bold red"))

    def _finish_warnings(self, warnings: Sequence[Problem]) -> None:
        shown = {id(warning) for warning in self._warned}
        self._show_warnings(self.err, [warning for warning in warnings if id(warning) not in shown])
        if shown:
            text = f"{_plural(len(shown), 'warning')} above, before {self._began}"
            show_line(self.err, 0, Text(text, "yellow"))

    def _stop(self) -> None:
        if self._display is not None:
            self._display.stop()
            self._display = None
        if self._scenarios is not None:
            self._scenarios.stop()
            self._scenarios = None


def _show_all_warnings(console: Console, warnings: Sequence[Problem]) -> None:
    show_problems(console, warnings, "warning")


def _describe(facts: Mapping[str, Any]) -> str:
    passes, threads, ranks = facts["forward_passes"], facts["threads_per_rank"], facts["ranks"]
    workers = _plural(threads, "thread")
    if ranks > 1:
        workers = f"{ranks} ranks of {workers}"
    return (
        f"Training {facts['case']}: "
        f"{_plural(facts['stages'], 'stage')}, {_plural(facts['hydros'], 'hydro')}, "
        f"{_plural(facts['thermals'], 'thermal')}, {_plural(facts['buses'], 'bus', 'buses')}, "
        f"{_plural(facts['lines'], 'line')}; {_plural(facts['max_iterations'], 'iteration')} of "
        f"{_plural(passes, 'forward pass', 'forward passes')}, {workers}"
    )


def _plural(count: int, one: str, many: str | None = None) -> str:
    return f"{count} {one if count == 1 else many or one + 's'}"


class _PlainLines:
    """A line for each of the first iterations, then at growing distances, and for the last."""

    def __init__(self, console: Console, limit: int) -> None:
        self._console = console
        self._limit = limit
        self._next = 1
        self._last_line = time.monotonic()
        self._pending: IterationRecord | None = None
        self._print(STARTING_UP)

    def _print(self, text: str) -> None:
        self._console.print(Text(text), soft_wrap=True)
        self._console.file.flush()

    def iteration(self, record: IterationRecord) -> None:
        now = time.monotonic()
        due = record.iteration >= min(self._next, self._limit) or now - self._last_line >= _LONGEST_SILENCE_S
        if not due:
            self._pending = record
            return
        self._write(record)
        self._last_line = now
        step = 1 if record.iteration < _EVERY_LINE_UNTIL else int(record.iteration * (_GROWTH - 1.0))
        self._next = record.iteration + max(1, step)

    def _write(self, record: IterationRecord) -> None:
        self._pending = None
        width = len(str(self._limit))
        self._print(
            f"iteration {record.iteration:>{width}}/{self._limit}  {_bounds(record)}"
            f"  time {record.wall_time_ms / 1e3:.1f} s"
        )

    def stop(self) -> None:
        if self._pending is not None:
            self._write(self._pending)


def _bounds(record: IterationRecord) -> str:
    gap = "" if record.gap_percent is None else f"  gap {abs(record.gap_percent):.4g} %"
    lower = "lower bound" if record.lower_bound_kind == "bound" else "estimate"
    upper = record.deterministic_upper_bound
    bound = "" if upper is None else f"  upper bound {upper:.6e}"
    return f"{lower} {record.lower_bound:.6e}  {passes_words(record)} {record.upper_bound:.6e}{bound}{gap}"


def passes_words(record: IterationRecord) -> str:
    """Return what the mean cost of an iteration's forward passes is."""
    if record.upper_bound_kind == "statistical":
        return "sample cost"
    return "mean cost" if record.risk_averse else "upper bound"


def _shares(costs: CostBreakdown) -> str:
    """Return in one line what forward passes are paid for."""
    shares = {name.replace("_", " "): costs.share(name) for name in costs.components}
    parts = ", ".join(f"{name} {share:.1%}" for name, share in shares.items() if abs(share) >= _LEAST_SHARE)
    return f"cost of the passes of iteration {costs.iteration}: {parts or 'none'}"


class _LiveDisplay:
    """A progress bar with the bounds below it, redrawn in place."""

    def __init__(self, console: Console, limit: int) -> None:
        self._bar = Progress(
            SpinnerColumn(),
            BarColumn(bar_width=None),
            MofNCompleteColumn(),
            TextColumn("iterations"),
            TimeElapsedColumn(),
            TextColumn("ETA"),
            TimeRemainingColumn(),
            console=console,
            expand=True,
        )
        self._task = self._bar.add_task("training", total=None)
        self._limit = limit
        self._live = Live(self._render(STARTING_UP), console=console, refresh_per_second=8)
        self._live.start(refresh=True)

    def _render(self, text: str) -> Group:
        return Group(self._bar, Text(text, overflow="fold"))

    def iteration(self, record: IterationRecord) -> None:
        self._bar.update(self._task, total=self._limit, completed=record.iteration)
        self._live.update(self._render(_bounds(record)))

    def stop(self) -> None:
        self._bar.stop_task(self._task)
        self._live.stop()


def key_value_table(rows: Mapping[str, str]) -> Table:
    """Return a table of names and values that wraps long values instead of cutting them."""
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows.items():
        table.add_row(Text(name), Text(printable(value)))
    return table


def show_table(console: Console, title: str, rows: Mapping[str, str]) -> None:
    """Print a title and its table; where there is no terminal, one unwrapped line for each row."""
    console.print(Text(title, "bold"), soft_wrap=True)
    if console.is_terminal:
        console.print(key_value_table(rows))
        return
    width = max(len(name) for name in rows)
    for name, value in rows.items():
        console.print(Text(f"  {name:<{width}}  {printable(value)}"), soft_wrap=True)
