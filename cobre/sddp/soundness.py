"""What keeps a study from being trained although each of its files is right, found before anything is built.

Inflow models that start from periods without observations, openings that cannot be drawn, paths that cannot
be enumerated, a boundary policy that does not fit: :func:`cobre.case.check` asks for them last, so that
loading, validating and training return one verdict. Only what the stage LPs themselves show is left to those
who build them.
"""

from __future__ import annotations

from dataclasses import replace

from cobre.case.format import layout
from cobre.case.model import Case
from cobre.errors import CobreError, Problem
from cobre.lp.state import StateLayout
from cobre.policy.boundary import boundary_cuts
from cobre.sddp.kernel.graph import graph_arrays
from cobre.stochastic.tree import openings_by_node


def study_problems(case: Case) -> tuple[Problem, ...]:
    """Return the problems of a case whose files have none; empty where it can be trained."""
    try:
        state = StateLayout(case)
        graph_arrays(case, openings_by_node(case, state.inflow))
        boundary_cuts(case, [(part.kind, part.entity_id, part.offset) for part in state.components])
    except CobreError as error:
        return tuple(_of_a_case(problem) for problem in error.problems)
    return ()


def _of_a_case(problem: Problem) -> Problem:
    """Give a problem the form of those of files: a sentence, and the file to look at."""
    context = {"file": layout.CONFIG, **problem.context}
    return replace(problem, message=f"{problem.message.rstrip('.')}.", context=context)
