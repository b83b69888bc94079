"""Keep for each visited state the oldest cut that comes within the tolerance of the highest one."""

# Kernels are typed by Numba when they are compiled, not by annotations.
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False
from __future__ import annotations

from typing import Literal

from cobre.fields import NonNegative, PositiveCount
from cobre.rules.contracts import CutMethod, CutMethodEntry


class LimitedMemoryLevel1(CutMethodEntry):
    """Keep the oldest of the highest cuts at each visited state."""

    method: Literal["lml1"]
    """Names this form."""
    check_frequency: PositiveCount | None = None
    """Iterations between two selections; 5 unless given."""
    tie_tolerance: NonNegative | None = None
    """Distance below the highest cut that counts as a tie, $; 1e-10 unless given."""


def keep_oldest(comes_close):
    """Mark the oldest cut that comes close at each visited state.

    As the best rises, fewer of the old cuts come close: the search goes on where it ended last time.
    """

    def mark(cuts, stage, tolerance, parameters):
        for node in range(cuts.stage_start[stage], cuts.stage_start[stage + 1]):
            for slot in range(cuts.num_cuts[node]):
                cuts.keep[node, slot] = False
        for place in range(cuts.num_visited[stage]):
            node = cuts.visited_node[stage, place]
            slot = max(cuts.holder[stage, place], 0)
            while slot < cuts.num_cuts[node] and not (
                cuts.active[node, slot] and comes_close(cuts, stage, place, slot, tolerance)
            ):
                slot += 1
            if slot < cuts.num_cuts[node]:
                cuts.holder[stage, place] = slot
                cuts.keep[node, slot] = True

    return mark


METHOD = CutMethod(LimitedMemoryLevel1, tolerance_key="tie_tolerance", mark=keep_oldest)
