"""Keep a cut that comes within the tolerance of the highest one at some visited state."""

# Kernels are typed by Numba when they are compiled, not by annotations.
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False
from __future__ import annotations

from typing import Literal

from cobre.fields import NonNegative, PositiveCount
from cobre.rules.contracts import CutMethod, CutMethodEntry


class Level1(CutMethodEntry):
    """Keep cuts that are (nearly) highest at some visited state."""

    method: Literal["level1"]
    """Names this form."""
    check_frequency: PositiveCount | None = None
    """Iterations between two selections; 5 unless given."""
    tie_tolerance: NonNegative | None = None
    """Distance below the highest cut that counts as a tie, $; 1e-10 unless given."""


def keep_close(comes_close):
    """Mark every active cut that comes close at some visited state; look first at that of last time."""

    def mark(cuts, stage, tolerance, parameters):
        for node in range(cuts.stage_start[stage], cuts.stage_start[stage + 1]):
            for slot in range(cuts.num_cuts[node]):
                cuts.keep[node, slot] = False
                if not cuts.active[node, slot]:
                    continue
                place = cuts.witness[node, slot]
                if place >= 0 and comes_close(cuts, stage, place, slot, tolerance):
                    cuts.keep[node, slot] = True
                    continue
                cuts.witness[node, slot] = -1
                for place in range(cuts.num_visited[stage]):
                    if cuts.visited_node[stage, place] == node and comes_close(
                        cuts, stage, place, slot, tolerance
                    ):
                        cuts.keep[node, slot] = True
                        cuts.witness[node, slot] = place
                        break

    return mark


METHOD = CutMethod(Level1, tolerance_key="tie_tolerance", mark=keep_close)
