"""How many forward passes an iteration makes, and which: few in early iterations, later all of them.

Cuts of the first iterations are soon beaten whatever they cost, so that few of them are enough. A pass that
an iteration does not make is a copy of one that it makes: it costs no LP, makes no cut and is not counted.
Which are made follows from the iteration alone, and they are spread over all, that is, over ranks.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cobre.case.model import PassSchedule


def passes_made(iteration: int, passes: int, schedule: PassSchedule | None) -> int:
    """Return how many of ``passes`` an iteration (from 1) makes.

    >>> from cobre.case.model import PassSchedule
    >>> [passes_made(k, 6, PassSchedule(initial=1, double_every=2)) for k in range(1, 9)]
    [1, 1, 2, 2, 4, 4, 6, 6]
    """
    if schedule is None:
        return passes
    doubled = min((iteration - 1) // schedule.double_every, passes.bit_length())
    return min(passes, schedule.initial << doubled)


def pass_models(iteration: int, passes: int, schedule: PassSchedule | None) -> NDArray[np.int64]:
    """Return by pass: itself where an iteration (from 1) makes it, else the one made before it, int64[M].

    >>> from cobre.case.model import PassSchedule
    >>> pass_models(3, 6, PassSchedule(initial=1, double_every=2)).tolist()
    [0, 0, 0, 3, 3, 3]
    """
    made = passes_made(iteration, passes, schedule)
    first = np.arange(made, dtype=np.int64) * passes // made
    return np.repeat(first, np.diff(np.append(first, passes)))
