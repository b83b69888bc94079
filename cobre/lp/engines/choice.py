"""Which engine solves the LPs of a node: the one asked for, or with ``auto`` a fixed rule.

The rule looks at sizes alone, so that a study is solved in the same way wherever and whenever it runs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, Literal

from cobre.lp.reduction import CoreForm, core_forms
from cobre.lp.template import StageTemplate

_MOST_ROWS: Final = math.inf
"""Of a core form that ``auto`` solves by the own engine."""


def prefers_own(form: CoreForm) -> bool:
    """Return whether ``auto`` solves LPs of this core form by the own engine, not by HiGHS."""
    return form.num_rows <= _MOST_ROWS


def chosen_forms(
    asked: Literal["auto", "highs", "own"], templates: Sequence[StageTemplate]
) -> tuple[CoreForm | None, ...]:
    """Return the core forms, by node, of LPs that the own engine solves; ``None`` where HiGHS does."""
    if asked == "highs":
        return (None,) * len(templates)
    forms = core_forms(templates)
    return tuple(form if asked == "own" or prefers_own(form) else None for form in forms)


def used_engine(forms: Sequence[CoreForm | None]) -> Literal["own", "highs", "both"]:
    """Return which engines the LPs of these nodes are given to; HiGHS as a fall-back does not count."""
    by_highs = sum(form is None for form in forms)
    return "own" if by_highs == 0 else "highs" if by_highs == len(forms) else "both"
