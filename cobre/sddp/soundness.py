"""What keeps a study from being trained although each of its files is right, found before anything is built.

Inflow models that start from periods without observations, openings that cannot be drawn, paths that cannot
be enumerated, a boundary policy that does not fit: :func:`cobre.case.check` asks for them last, so that
loading, validating and training return one verdict. Only what the stage LPs themselves show is left to those
who build them.
"""

from __future__ import annotations

from cobre.case.model import Case
from cobre.errors import CobreError, Problem
from cobre.lp.state import StateLayout
from cobre.policy_files import boundary_cuts
from cobre.sddp.graph import graph_arrays
from cobre.stochastic.tree import openings_by_node


def study_problems(case: Case) -> tuple[Problem, ...]:
    """Return the problems of a case whose files have none; empty where it can be trained."""
    try:
        layout = StateLayout(case)
        graph_arrays(case, openings_by_node(case, layout.inflow))
        boundary_cuts(case, [(part.kind, part.entity_id, part.offset) for part in layout.components])
    except CobreError as error:
        return error.problems
    return ()
