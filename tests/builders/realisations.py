"""What an opening tree comes to in the LPs of a study whose inflows do not follow earlier ones."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cobre.case.model import Case
from cobre.stochastic import OpeningTree


def realised_inflow(case: Case, tree: OpeningTree) -> NDArray[np.float64]:
    """Return the inflows of the tree as the LPs see them: truncated where the study says so."""
    if "truncation" not in case.training.inflow_method:
        return tree.inflow_m3s
    stages = np.repeat([node.stage for node in case.graph.nodes], tree.num_openings)
    random = case.scenarios.inflow_std_m3s[stages] > 0.0
    return np.where(random, np.maximum(tree.inflow_m3s, 0.0), tree.inflow_m3s)
