"""How much work a study is before it begins: LPs, time and memory. LPs are counted, the rest is an estimate.

An iteration with M passes over T stages solves at most

    M T                            LPs forward,
    M sum_{t >= 1} openings(t)     backward, from the last stage but one, and
    openings(0)                    for the lower bound,

fewer where passes end a stage in the same state, which is then solved once.

The time of an LP is interpolated in the figures of ``docs/lp-engines.md`` by its rows (own engine, one
thread of a 2-core machine, without compiling and loading kernels), and grows with the cuts as measured
there. Another machine, degenerate LPs or cut selection change it by a factor of two or three.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np

from cobre.case.model import Case
from cobre.case.summary import summarize

MEASURED_US: Final = ((44, 24.0), (132, 49.0), (327, 160.0), (615, 320.0), (1590, 1600.0))
"""(rows of a stage LP, µs an LP) with few cuts, from ``docs/lp-engines.md``."""
SLOWER_BY_CUT: Final = 4e-4
"""Share of the time that a cut adds: 0.42 per 1,000 cuts on four regions, 0.41 on 30 plants with planes."""
UNCERTAINTY: Final = 3.0
"""Factor by which the time may be off."""

_PROCESS_BYTES: Final = 250_000_000
"""Of Python, libraries and loaded kernels."""


@dataclass(frozen=True)
class Effort:
    """Work of training as the case asks for it, on one rank and thread.

    Attributes
    ----------
    iterations
        Limit of the case; a stopping rule may end training before.
    lps_per_iteration
        Of each iteration at most; on a policy graph with several nodes in a stage a mean over them.
    training_lps, simulation_lps
        In all; simulation as ``simulation.enabled`` and ``num_scenarios`` ask for it.
    microseconds_per_lp, training_seconds
        Estimates; ``None`` where the LPs were not built.
    memory_bytes
        Estimate of a rank with one thread at the end of training.
    """

    iterations: int
    lps_per_iteration: int
    training_lps: int
    simulation_lps: int
    microseconds_per_lp: float | None
    training_seconds: float | None
    memory_bytes: int

    def as_dict(self) -> dict[str, Any]:
        """Return the numbers as plain data."""
        return {**asdict(self), "kind": "estimate", "uncertainty_factor": UNCERTAINTY}

    def rows(self) -> dict[str, str]:
        """Return the lines of a table, by title."""
        simulated = f", and {self.simulation_lps:,} to simulate" if self.simulation_lps else ""
        rows = {
            "LPs": f"at most {self.training_lps:,} in {self.iterations} iterations, "
            f"{self.lps_per_iteration:,} "
            f"each{simulated}"
        }
        if self.training_seconds is not None:
            rows["time"] = (
                f"estimate: {_duration(self.training_seconds)} on one thread, "
                f"{self.microseconds_per_lp:,.0f} µs an LP; "
                f"may be off by a factor of {UNCERTAINTY:g}"
            )
        rows["memory"] = f"estimate: {self.memory_bytes / 1e9:,.1f} GB with one thread"
        return rows


def estimate_effort(
    case: Case, states: int, rows: Sequence[int] | None, columns: Sequence[int] = ()
) -> Effort:
    """Return the work of training a case.

    Parameters
    ----------
    states
        Components of the state.
    rows, columns
        Sizes of the stage LPs, of all stages or some; ``None`` = not known.
    """
    summary = summarize(case)
    openings, nodes = summary.openings, case.graph.nodes
    stages, iterations = len(case.stages), case.training.iteration_limit
    passes = summary.paths if case.training.enumerated else case.training.forward_passes
    by_stage = [
        [openings[place] for place, node in enumerate(nodes) if node.stage == t] for t in range(stages)
    ]
    backward = sum(_solved_behind(case, openings, t) for t in range(1, stages))
    each = round(passes * (stages + backward)) + sum(by_stage[0])
    cuts = passes * iterations
    training = each * iterations
    micro = None if rows is None else _microseconds(rows) * (1.0 + SLOWER_BY_CUT * cuts / 2.0)
    simulation = summary.paths if case.simulation.enumerated else case.simulation.num_scenarios
    return Effort(
        iterations=iterations,
        lps_per_iteration=each,
        training_lps=training,
        simulation_lps=simulation * stages if case.option("simulation.enabled") else 0,
        microseconds_per_lp=micro,
        training_seconds=None if micro is None else 1e-6 * micro * training,
        memory_bytes=_memory(case, states, cuts, passes, rows or (), columns),
    )


def _solved_behind(case: Case, openings: Sequence[int], stage: int) -> float:
    """Return how many LPs of a stage value the end of the one before, on average over its nodes."""
    sources: dict[int, int] = {}
    for edge in case.graph.transitions:
        if edge.probability > 0.0 and case.graph.nodes[edge.target].stage == stage:
            sources[edge.source] = sources.get(edge.source, 0) + openings[edge.target]
    return float(np.mean(list(sources.values()))) if sources else 0.0


def _microseconds(rows: Sequence[int]) -> float:
    """Return the mean time of LPs of these sizes, interpolated on logarithmic axes and extended beyond."""
    size, time = np.log(np.array(MEASURED_US)).T
    wanted = np.log(np.maximum(np.asarray(rows, np.float64), 1.0))
    slope = (time[-1] - time[-2]) / (size[-1] - size[-2])
    inside = np.interp(wanted, size, time)
    return float(np.exp(inside + slope * np.maximum(wanted - size[-1], 0.0)).mean())


def _memory(
    case: Case, states: int, cuts: int, passes: int, rows: Sequence[int], columns: Sequence[int]
) -> int:
    """Add up what ``docs/architecture.md`` ("Memory") lists."""
    nodes = len(case.graph.nodes)
    pool = 8 * nodes * cuts * (states + 3) + 8 * nodes * cuts * states
    slots = 4 * nodes * cuts
    bases = passes * nodes * (5 * (max(rows, default=0) + max(columns, default=0)) + 4 * 64)
    workspace = 5_000 * max(rows, default=0)
    return int(_PROCESS_BYTES + pool + slots + bases + workspace)


def _duration(seconds: float) -> str:
    if seconds < 1.0:
        return "below a second"
    for size, unit in ((86400.0, "days"), (3600.0, "hours"), (60.0, "minutes")):
        if seconds >= 2.0 * size:
            return f"{seconds / size:,.0f} {unit}"
    return f"{seconds:,.0f} seconds"
