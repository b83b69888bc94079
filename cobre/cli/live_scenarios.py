"""How far a simulation is, for people: a bar on a terminal, lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Mapping
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
from rich.text import Text

if TYPE_CHECKING:
    from cobre.sddp.simulation.result import SimulationProgress

_STARTING_UP = "loading kernels (or compiling them)..."
_LINES = 10
_LONGEST_SILENCE_S = 60.0


def described_simulation(facts: Mapping[str, Any]) -> str:
    """Return in one line what is simulated."""
    count = facts["scenarios"]
    scenarios = "all scenarios of the tree" if count is None else f"{count:,} scenarios"
    threads, ranks = facts["threads_per_rank"], facts["ranks"]
    workers = f"{threads} thread{'' if threads == 1 else 's'}"
    if ranks > 1:
        workers = f"{ranks} ranks of {workers}"
    return f"Simulating {facts['policy']} of {facts['case']}: {scenarios}, {workers}"


class ScenarioLines:
    """A line at every tenth of the scenarios, or a minute after the one before."""

    def __init__(self, console: Console, scenarios: int | None) -> None:
        self._console = console
        self._next = 0.0
        self._last_line = time.monotonic()
        self._set_up_ms: float | None = None
        self._print(_STARTING_UP)

    def _print(self, text: str) -> None:
        self._console.print(Text(text), soft_wrap=True)
        self._console.file.flush()

    def progress(self, progress: SimulationProgress) -> None:
        """Print a line where one is due."""
        now = time.monotonic()
        if self._set_up_ms is None:
            self._set_up_ms = progress.wall_time_ms
        done, total = progress.scenarios_done, progress.scenarios
        overdue = now - self._last_line >= _LONGEST_SILENCE_S
        if done == 0 or (done < min(self._next, total) and not overdue):
            return
        self._next = done + total / _LINES
        self._last_line = now
        left = remaining_s(progress, self._set_up_ms)
        self._print(
            f"scenario {done:>{len(str(total))}}/{total}  mean cost {progress.mean_cost:.6e}"
            f"  time {progress.wall_time_ms / 1e3:.1f} s" + ("" if left is None else f"  ETA {left:.0f} s")
        )

    def stop(self) -> None:
        """Print nothing more."""


def remaining_s(progress: SimulationProgress, set_up_ms: float) -> float | None:
    """Return how long the rest takes at the pace so far; ``None`` where nothing is left or known."""
    made = progress.scenarios_done - progress.scenarios_resumed
    left = progress.scenarios - progress.scenarios_done
    if made <= 0 or left <= 0:
        return None
    return (progress.wall_time_ms - set_up_ms) / 1e3 / made * left


class LiveScenarios:
    """A progress bar with the mean cost below it, redrawn in place."""

    def __init__(self, console: Console) -> None:
        self._bar = Progress(
            SpinnerColumn(),
            BarColumn(bar_width=None),
            MofNCompleteColumn(),
            TextColumn("scenarios"),
            TimeElapsedColumn(),
            TextColumn("ETA"),
            TimeRemainingColumn(),
            console=console,
            expand=True,
        )
        self._task = self._bar.add_task("simulation", total=None)
        self._live = Live(self._render(_STARTING_UP), console=console, refresh_per_second=8)
        self._live.start(refresh=True)

    def _render(self, text: str) -> Group:
        return Group(self._bar, Text(text, overflow="fold"))

    def progress(self, progress: SimulationProgress) -> None:
        """Redraw the bar."""
        self._bar.update(self._task, total=progress.scenarios, completed=progress.scenarios_done)
        text = f"mean cost {progress.mean_cost:.6e}" if progress.scenarios_done else ""
        self._live.update(self._render(text))

    def stop(self) -> None:
        """Leave the bar as it is."""
        self._bar.stop_task(self._task)
        self._live.stop()
