"""The optimum of a case over its own opening tree: ``python tests/reference/check_case.py CASE``.

Inflows and loads are drawn by the package; the LP over the tree is built and solved apart from it.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from builders.realisations import realised_inflow
from extensive_form import Openings, solve_extensive_form

import cobre.case
from cobre.stochastic import build_opening_tree


def drawn_openings(case_dir: Path) -> Openings:
    """Realisations (inflow, load) of every opening of every stage, as training uses them."""
    case = cobre.case.load(case_dir)
    tree = build_opening_tree(case)
    inflow = realised_inflow(case, tree)
    bounds = zip(tree.offset[:-1], tree.offset[1:], strict=True)
    return [(inflow[first:last], tree.load_mw[first:last]) for first, last in bounds]


def expected_openings(openings: Openings) -> Openings:
    """One opening a stage: the mean of the given ones."""
    return [
        (inflow.mean(axis=0, keepdims=True), load.mean(axis=0, keepdims=True)) for inflow, load in openings
    ]


def main(case_dir: Path) -> None:
    """Print the optimum over the tree, and what it would be if every stage had its mean realisation."""
    openings = drawn_openings(case_dir)
    leaves = int(np.prod([len(inflow) for inflow, _ in openings]))
    print(f"optimum over {leaves} paths: {solve_extensive_form(case_dir, openings)!r} $")
    at_the_mean = solve_extensive_form(case_dir, expected_openings(openings))
    print(f"optimum at the mean inflow and load of the tree: {at_the_mean!r} $")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
