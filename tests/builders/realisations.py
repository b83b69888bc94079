"""What the package draws and fits, in the words of the oracle.

The oracle imports nothing of the package; noise and fitted planes are judged elsewhere and given to it. The
inflows of the studies here do not follow earlier ones.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from oracle import Opening

from cobre.case.model import Case
from cobre.stochastic import OpeningTree, build_opening_tree


def realised_inflow(case: Case, tree: OpeningTree) -> NDArray[np.float64]:
    """Return the inflows of the tree as the LPs see them: truncated where the study asks for it."""
    if "truncation" not in case.training.inflow_method:
        return tree.inflow_m3s
    stages = np.repeat([node.stage for node in case.graph.nodes], tree.num_openings)
    random = case.scenarios.inflow_std_m3s[stages] > 0.0
    return np.where(random, np.maximum(tree.inflow_m3s, 0.0), tree.inflow_m3s)


def drawn_openings(case: Case) -> dict[int, list[Opening]]:
    """Return the realisations that the package drew, by stage id."""
    tree = build_opening_tree(case)
    inflow = realised_inflow(case, tree)
    found: dict[int, list[Opening]] = {}
    for t, stage in enumerate(case.stages):
        rows = range(int(tree.offset[t]), int(tree.offset[t + 1]))
        found[stage.id] = [
            Opening(
                dict(zip((hydro.id for hydro in case.hydros), inflow[row], strict=True)),
                dict(zip((bus.id for bus in case.buses), tree.load_mw[row], strict=True)),
                {
                    source.id: tree.ncs_mw[row, r] / source.max_generation_mw
                    for r, source in enumerate(case.non_controllables)
                    if case.scenarios.ncs_has_stats[r]
                },
            )
            for row in rows
        ]
    return found


def mean_openings(openings: dict[int, list[Opening]]) -> dict[int, list[Opening]]:
    """Return one opening a stage: the mean of the given ones."""

    def mean(values: list[dict[int, float]]) -> dict[int, float]:
        return {key: float(np.mean([value[key] for value in values])) for key in values[0]}

    return {
        stage: [
            Opening(
                mean([one.inflow_m3s for one in given]),
                mean([one.load_mw for one in given]),
                mean([one.ncs_share for one in given]),
            )
        ]
        for stage, given in openings.items()
    }


def fitted_planes(case: Case) -> dict[tuple[int, int], list[tuple[float, float, float, float]]]:
    """Return the planes that the package fitted, by hydro and stage id."""
    return {
        (hydro.id, stage.id): [tuple(map(float, plane)) for plane in case.production[t][h].planes]
        for t, stage in enumerate(case.stages)
        for h, hydro in enumerate(case.hydros)
        if len(case.production[t][h].planes)
    }
