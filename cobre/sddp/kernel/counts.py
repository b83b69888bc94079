"""How much work LPs are, by worker, phase and stage: what both engines count, as differences.

Counts are sums over LPs, each a function of its LP alone: neither ranks nor threads change them. Times do.
"""

# Kernels are typed by Numba when they are compiled, not by annotations.
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False
from __future__ import annotations

import numpy as np

from cobre.lp import arrays as highs
from cobre.lp.engines.own import core as own_engine
from cobre.lp.engines.own.core import WorkStruct
from cobre.native import inner_kernel, monotonic_ns, struct_at
from cobre.sddp.kernel.buffers import PHASE_BACKWARD

# Columns of IterationBuffers.lp_counts.
LP_SOLVES = 0
SIMPLEX_ITERATIONS = 1
LP_RETRIES = 2
FALL_BACKS = 3
REFACTORISATIONS = 4
COLD_STARTS = 5
CHECKS_FAILED = 6
CUTS_ADDED = 7
BUSY_NS = 8
# Their number is that of cobre.sddp.kernel.buffers.LP_COUNTS.


@inner_kernel
def solved_stage(phase, stage):
    """Return the stage whose LPs a phase at ``stage`` solves."""
    return max(stage + 1 if phase == PHASE_BACKWARD else stage, np.int64(0))


@inner_kernel
def add_counts(work, own, buffers, phase, stage, worker, sign):
    """Add what a worker has counted so far, and the clock, to its row of the phase, times ``sign``.

    Called with -1 before the work and with 1 after it, this adds the work in between.
    """
    stages = buffers.node_all.shape[1]
    row = buffers.lp_counts[worker, phase * stages + solved_stage(phase, stage)]
    by_highs = work.counters[worker]
    by_own = struct_at(WorkStruct, own.work[worker]).counters
    row[LP_SOLVES] += sign * (by_highs[highs.LP_SOLVES] + by_highs[highs.LP_SOLVES_OWN])
    row[SIMPLEX_ITERATIONS] += sign * by_highs[highs.SIMPLEX_ITERATIONS]
    row[SIMPLEX_ITERATIONS] += sign * by_own[own_engine.ITERATIONS]
    row[LP_RETRIES] += sign * (by_highs[highs.LP_RETRIES] + by_highs[highs.LP_FALLBACKS])
    row[FALL_BACKS] += sign * by_highs[highs.LP_FALLBACKS]
    row[REFACTORISATIONS] += sign * by_own[own_engine.REFACTORISATIONS]
    row[COLD_STARTS] += sign * by_own[own_engine.COLD_STARTS]
    row[CHECKS_FAILED] += sign * by_own[own_engine.CHECKS_FAILED]
    row[CUTS_ADDED] += sign * by_own[own_engine.CUTS_ADDED]
    row[BUSY_NS] += sign * monotonic_ns()
