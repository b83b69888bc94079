"""How much work the LPs of training were: by iteration, phase and stage, summed over ranks and threads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from cobre.sddp.kernel import buffers, counts

PHASES: Final = ("forward", "backward", "lower_bound")
"""Names of phases, in the order of their numbers."""

_NS_PER_MS = 1.0e6
_COLUMNS: Final = {
    "lp_solves": counts.LP_SOLVES,
    "simplex_iterations": counts.SIMPLEX_ITERATIONS,
    "lp_retries": counts.LP_RETRIES,
    "fall_backs": counts.FALL_BACKS,
    "refactorisations": counts.REFACTORISATIONS,
    "cold_starts": counts.COLD_STARTS,
    "checks_failed": counts.CHECKS_FAILED,
    "working_set_cuts": counts.CUTS_ADDED,
}


@dataclass(frozen=True)
class LpStatistics:
    """LPs of one stage in one phase of an iteration.

    Attributes
    ----------
    stage
        Position of the stage whose LPs were solved.
    lp_solves
        LPs solved, each once whatever it took.
    simplex_iterations
        Of all attempts; in the own engine most of them are pivots.
    lp_retries
        Further attempts by HiGHS: fall-backs, and steps of its ladder of retries.
    fall_backs
        LPs that the own engine gave up, solved by HiGHS.
    refactorisations, cold_starts
        Of the own engine: inverses computed anew, and starts from the slack basis.
    checks_failed
        Solutions that the own engine found not exact enough and solved further.
    working_set_cuts
        Cuts that the own engine added to LPs.
    solve_time_ms
        What workers took for it, all threads and ranks added up, with what surrounds the LPs.
    """

    iteration: int
    phase: str
    stage: int
    lp_solves: int
    simplex_iterations: int
    lp_retries: int
    fall_backs: int
    refactorisations: int
    cold_starts: int
    checks_failed: int
    working_set_cuts: int
    solve_time_ms: float


@dataclass(frozen=True, eq=False)
class IterationLps:
    """The LPs of one iteration.

    Attributes
    ----------
    table
        int64[phases, stages, :data:`cobre.sddp.kernel.buffers.LP_COUNTS`].
    """

    iteration: int
    table: NDArray[np.int64]

    def total(self, column: int) -> int:
        """Return the sum of a column."""
        return int(self.table[:, :, column].sum())

    def rows(self) -> Iterator[LpStatistics]:
        """Yield what solved LPs, by phase, then stage."""
        for phase, name in enumerate(PHASES):
            for stage, row in enumerate(self.table[phase].tolist()):
                if row[counts.LP_SOLVES]:
                    counted = {field: row[column] for field, column in _COLUMNS.items()}
                    time_ms = row[counts.BUSY_NS] / _NS_PER_MS
                    yield LpStatistics(self.iteration, name, stage, solve_time_ms=time_ms, **counted)

    def __repr__(self) -> str:
        return f"IterationLps(iteration={self.iteration}, lp_solves={self.total(counts.LP_SOLVES)})"


def own_counts(lp_counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the counts of a rank as numbers to be gathered; exact below 2**53."""
    own: NDArray[np.float64] = lp_counts.sum(axis=0).astype(np.float64).reshape(-1)
    return own


def iteration_lps(iteration: int, gathered: Iterable[NDArray[np.float64]]) -> IterationLps:
    """Add up what :func:`own_counts` gave on each rank."""
    total = np.sum([part.astype(np.int64) for part in gathered], axis=0)
    return IterationLps(iteration, total.reshape(len(PHASES), -1, buffers.LP_COUNTS))
