"""The optimum of a case over its own opening tree: ``python tests/check_case.py CASE``.

Noise is drawn and planes are fitted by the package; the LP over the tree is built and solved apart from it.
"""

from __future__ import annotations

import sys
from math import prod
from pathlib import Path

from builders.realisations import drawn_openings, fitted_planes, mean_openings
from oracle import optimum

import cobre.case


def main(case_dir: Path) -> None:
    """Print the optimum over the tree, and what it would be if every stage had its mean realisation."""
    case = cobre.case.load(case_dir)
    openings, planes = drawn_openings(case), fitted_planes(case)
    leaves = prod(len(of_stage) for of_stage in openings.values())
    print(f"optimum over {leaves} paths: {optimum(case_dir, openings, planes=planes)!r} $")
    at_the_mean = optimum(case_dir, mean_openings(openings), planes=planes)
    print(f"optimum at the mean realisation of every stage: {at_the_mean!r} $")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
