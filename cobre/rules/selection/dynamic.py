"""Drop nothing: older cuts enter an LP only where its solution violates them.

:func:`cobre.lp.engine.solve_with_cuts` adds them.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from cobre.fields import Count, Positive, PositiveCount
from cobre.rules.contracts import CutMethod, CutMethodEntry


class Dynamic(CutMethodEntry):
    """Add cuts to the LPs as they are violated."""

    method: Literal["dynamic"]
    """Names this form."""
    start_iteration: PositiveCount | None = None
    """First iteration with this method; 2 unless given."""
    seed_window: Count | None = None
    """Latest iterations whose cuts an LP starts with; 5 unless given."""
    candidate_recency: PositiveCount | None = None
    """Latest iterations whose cuts are candidates; all unless given."""
    max_added_per_round: PositiveCount | None = None
    """Most cuts added at once; 10 unless given."""
    violation_tolerance: Positive | None = None
    """Violation from which a cut is added, $; 1e-10 unless given."""


def _first_slots(options: Any, made_in: Any, iteration: int) -> tuple[int, int] | None:
    if iteration < options.start_iteration:
        return None
    recency = options.candidate_recency
    return (
        int(np.searchsorted(made_in, iteration - options.seed_window)),
        0 if recency is None else int(np.searchsorted(made_in, iteration - recency)),
    )


METHOD = CutMethod(Dynamic, tolerance_key="violation_tolerance", loads=_first_slots)
