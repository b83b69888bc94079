"""What each rank of a launched test does; importable by new processes."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from cobre.comm import Communicator
from cobre.lp import StateLayout, build_templates
from cobre.policy.visited import VisitedStates
from cobre.sddp.kernel.graph import graph_arrays
from cobre.sddp.upper_bound import upper_bound
from cobre.stochastic import build_opening_tree


def bound_of(comm: Communicator | None) -> tuple[str, list[str]]:
    """Return the bound of a study and its vertex values, to the last bit."""
    sys.path.append(str(Path(__file__).resolve().parents[2]))
    from builders.studies import cascade_study

    case = cascade_study(hydros=3, stages=4, openings=3)
    tree, layout = build_opening_tree(case), StateLayout(case)
    templates = build_templates(case, tree, layout)
    visited = VisitedStates(4, 3)
    count = 80  # more than one block
    states = np.random.default_rng(1).uniform(10.0, 400.0, (4, count, 3))
    visited.append(states, np.arange(4)[:, None].repeat(count, axis=1))
    result = upper_bound(templates, graph_arrays(case, tree.num_openings), visited, layout.initial, comm=comm)
    return result.value.hex(), [values.tobytes().hex() for values in result.vertex_values]
