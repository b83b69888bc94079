"""As ``level1``, with a tolerance that must be given: drop cuts that others dominate."""

from __future__ import annotations

from typing import Literal

from cobre.fields import NonNegative, PositiveCount
from cobre.rules.contracts import CutMethod, CutMethodEntry
from cobre.rules.selection.level1 import keep_close


class Domination(CutMethodEntry):
    """Drop cuts that others dominate."""

    method: Literal["domination"]
    """Names this form."""
    check_frequency: PositiveCount | None = None
    """Iterations between two selections; 5 unless given."""
    domination_tolerance: NonNegative
    """Distance below the highest cut at which a cut is dominated, $."""


METHOD = CutMethod(Domination, tolerance_key="domination_tolerance", mark=keep_close)
