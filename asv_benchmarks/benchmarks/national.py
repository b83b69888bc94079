"""Loading and training a national system: 152 hydro plants, 132 thermal plants, 120 stages of 3 blocks."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from .common import shared_system

if TYPE_CHECKING:
    from cobre.case import Case

NATIONAL = "brazil-2018"
FOURTEEN_STAGES = "brazil-2018-14-stages"


def system(name: str) -> Case:
    """Return a national system without its exports, so that training writes nothing."""
    import cobre

    case = cobre.load_case(shared_system(name))
    return replace(case, exports=replace(case.exports, stochastic=False))


class Loading:
    """Reading and checking the files, with inflow history and geometry of all plants."""

    number = 1
    warmup_time = 0.0
    timeout = 600

    def setup(self) -> None:
        self.path = shared_system(NATIONAL)

    def time_load(self) -> None:
        from cobre.case import load

        load(self.path)

    def peakmem_load(self) -> None:
        from cobre.case import load

        load(self.path)


class Training:
    """One thread on one rank; the first run, which loads the kernels, does not count."""

    params = ((NATIONAL, FOURTEEN_STAGES),)
    param_names = ("system",)
    timeout = 3600

    def setup(self, name: str) -> None:
        import cobre

        self.case = system(name)
        cobre.train(system(FOURTEEN_STAGES), iterations=1)

    def track_lps_per_second(self, name: str) -> float:
        import cobre

        result = cobre.train(self.case)
        return result.lp_solves / sum(record.iteration_time_ms for record in result.history) * 1e3

    track_lps_per_second.unit = "LPs/s"  # type: ignore[attr-defined]

    def peakmem_training(self, name: str) -> None:
        import cobre

        cobre.train(self.case, iterations=1)
