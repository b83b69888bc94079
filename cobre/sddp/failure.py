"""From the status of a failed iteration to a complete error, the same on all ranks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from cobre.comm import Communicator
from cobre.comm.status import error_from_status
from cobre.errors import CobreError, SolverError
from cobre.lp import StageTemplate, diagnose
from cobre.lp.arrays import CutPool
from cobre.lp.engine import CUTS_REFUSED, INFEASIBLE, RIGHT_HAND_SIDE_REFUSED
from cobre.lp.highs import INFINITE
from cobre.sddp.kernel import buffers as fields
from cobre.sddp.kernel.buffers import IterationBuffers
from cobre.sddp.kernel.graph import GraphArrays
from cobre.sddp.kernel.iteration import COMMUNICATION_FAILED
from cobre.sddp.kernel.records import BAD_RECORD, ITERATION_FAILED
from cobre.sddp.ranks.agreement import raise_together

FloatArray = NDArray[np.float64]

_PHASES = {
    fields.PHASE_FORWARD: "forward pass",
    fields.PHASE_BACKWARD: "backward pass",
    fields.PHASE_LOWER_BOUND: "lower bound",
}
_NAMED_ROWS = 5


def raise_failure(
    status: int,
    iteration: int,
    comm: Communicator,
    templates: Sequence[StageTemplate],
    graph: GraphArrays,
    pool: CutPool,
    buffers: IterationBuffers,
    directory: Path,
) -> NoReturn:
    """Raise what the kernel's status stands for; collective unless the communication itself failed.

    Parameters
    ----------
    iteration
        From 0.
    directory
        Where the LP that failed is written.
    """
    if status >= COMMUNICATION_FAILED:
        raise error_from_status(status - COMMUNICATION_FAILED, comm.detail)
    failed = np.flatnonzero(buffers.failure[:, fields.FAILED_STATUS])
    error: CobreError | None = None
    if status == ITERATION_FAILED and len(failed):
        error = solver_error(int(failed[0]), iteration, comm.rank, templates, graph, pool, buffers, directory)
    elif status != ITERATION_FAILED:
        what = {BAD_RECORD: "a cut record with an impossible slot was received"}.get(
            status, f"the iteration kernel returned status {status}"
        )
        error = CobreError("MpiError", what, {"iteration": iteration + 1, "rank": comm.rank})
    raise_together(comm, error)
    raise CobreError(
        "InternalError", "an iteration failed and no rank knows why", {"iteration": iteration + 1}
    )


def solver_error(
    own_pass: int,
    iteration: int,
    rank: int,
    templates: Sequence[StageTemplate],
    graph: GraphArrays,
    pool: CutPool,
    buffers: IterationBuffers,
    directory: Path,
) -> SolverError:
    """Explain the LP of an iteration that failed, and write it as a file."""
    status, node, opening, phase = (int(value) for value in buffers.failure[own_pass])
    template, stage = templates[node], int(graph.node_stage[node])
    forward = phase == fields.PHASE_FORWARD
    place = LpPlace(
        stage=template.stage_id,
        node=node,
        scenario=int(buffers.pass_start[rank]) + own_pass,
        opening=opening,
        phase=_PHASES[phase],
        iteration=iteration + 1,
    )
    return explained_failure(
        status,
        place,
        template,
        pool,
        noise=buffers.noise_own[own_pass, stage] if forward else template.opening_values[opening],
        state=buffers.start_own[own_pass] if stage == 0 else buffers.state_own[own_pass, stage - 1],
        directory=directory,
    )


@dataclass(frozen=True)
class LpPlace:
    """Which LP failed.

    Attributes
    ----------
    stage, node
        Declared id of the stage; position of the node.
    phase
        In words.
    iteration
        From 1; 0 in simulation.
    """

    stage: int
    node: int
    scenario: int
    opening: int
    phase: str
    iteration: int

    def __str__(self) -> str:
        when = f", iteration {self.iteration}" if self.iteration else ""
        return f"stage {self.stage}, scenario {self.scenario}, opening {self.opening} ({self.phase}{when})"


def explained_failure(
    status: int,
    place: LpPlace,
    template: StageTemplate,
    pool: CutPool,
    *,
    noise: FloatArray,
    state: FloatArray,
    directory: Path,
) -> SolverError:
    """Explain an LP that could not be solved, and write it as a file into ``directory``.

    Parameters
    ----------
    status
        Of :mod:`cobre.lp.engine`.
    template
        Of its node, not scaled.
    noise, state
        Values of the random entities without the part of past inflows, and the incoming state.
    """
    if status in (RIGHT_HAND_SIDE_REFUSED, CUTS_REFUSED):
        return _refused_numbers(template, status, noise, state, place)
    cuts = int(pool.num_cuts[place.node])
    active = pool.active[place.node, :cuts]
    name = f"failed_stage{template.stage_id}_scenario{place.scenario}_opening{place.opening}.mps"
    diagnosis = diagnose(
        template,
        pool.intercept[place.node, :cuts][active],
        pool.slope[place.node, :cuts][active],
        state,
        noise,
        directory / name,
    )
    rows = [f"{violation.row} by {violation.amount:.6g}" for violation in diagnosis.violations]
    shown = "; ".join(rows[:_NAMED_ROWS]) or "none found when solved from scratch"
    first = "infeasible" if status == INFEASIBLE else "no solution in any attempt"
    anew = f"not solved from scratch ({diagnosis.trouble})" if diagnosis.status is None else diagnosis.status
    found = first if anew == first else f"{first}; from scratch: {anew}"
    return SolverError(
        f"the LP of {place} could not be solved: {found}; rows that cannot hold: {shown}",
        stage=template.stage_id,
        iteration=place.iteration,
        scenario=place.scenario,
        opening=place.opening,
        solver_status=diagnosis.status or first,
        context={
            "phase": place.phase,
            "violated_rows": rows,
            "model_file": None if diagnosis.model_file is None else str(diagnosis.model_file),
            "model_file_error": diagnosis.trouble,
            "state": [float(value) for value in state],
        },
        suggestion="look at the limits and inflows of the entities named; "
        "negative inflows need inflow_non_negativity 'penalty' or 'truncation'",
    )


def _refused_numbers(
    template: StageTemplate, status: int, noise: FloatArray, state: FloatArray, place: LpPlace
) -> SolverError:
    """Name the numbers that the LP cannot hold: those of rows, or of cuts."""
    what, rows = "a cut on the future cost", []
    if status == RIGHT_HAND_SIDE_REFUSED:
        rhs = template.rhs_at(noise, state)
        wrong = np.flatnonzero(~(np.abs(rhs) < INFINITE))
        rows = [f"{template.row_names[row]} = {rhs[row]:.6g}" for row in wrong]
        what = f"right-hand sides: {'; '.join(rows[:_NAMED_ROWS]) or 'see the state'}"
    return SolverError(
        f"the LP of {place} cannot hold {what}: numbers must lie below {INFINITE:.0e}",
        stage=template.stage_id,
        iteration=place.iteration,
        scenario=place.scenario,
        opening=place.opening,
        solver_status="numbers refused",
        context={"phase": place.phase, "refused_rows": rows, "state": [float(value) for value in state]},
        suggestion="look at loads, inflows and inflow models of the entities named; "
        "an inflow model whose coefficients let inflows grow from stage to stage does this",
    )
