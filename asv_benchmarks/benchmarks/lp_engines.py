"""What an LP takes with each engine, by the size of the system and the number of cuts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .common import named_case

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cobre.sddp.lp_statistics import IterationLps

ENGINES = ("own", "highs")
CUTS = (200, 1000, 3000)
"""Of a stage, before LPs are timed."""
MOST_CUTS = {"four-region": 3000, "mid": 1000, "large": 200}
"""What can be trained in minutes."""
TIMED_ITERATIONS = 2

Figures = dict[str, dict[str, float]]


def figures_of(timed: Sequence[IterationLps], seconds: float) -> dict[str, float]:
    """Return µs and simplex iterations for each LP, and LPs per second of whole iterations."""
    from cobre.sddp.kernel import counts

    lps = sum(part.total(counts.LP_SOLVES) for part in timed)
    return {
        "us": sum(part.total(counts.BUSY_NS) for part in timed) / 1e3 / lps,
        "pivots": sum(part.total(counts.SIMPLEX_ITERATIONS) for part in timed) / lps,
        "rate": lps / seconds,
    }


class LpTime:
    """LPs of two iterations once a stage has so many cuts, on one thread; each engine made its own cuts."""

    params = (tuple(MOST_CUTS), ENGINES, CUTS)
    param_names = ("system", "engine", "cuts")
    timeout = 3600

    def setup_cache(self) -> Figures:
        import cobre

        figures: Figures = {}
        for system, most in MOST_CUTS.items():
            case = named_case(system)
            passes = case.training.forward_passes
            for engine in ENGINES:
                last = -(-most // passes) + TIMED_ITERATIONS
                result = cobre.train(case, iterations=last, lp_engine=engine)
                for cuts in (number for number in CUTS if number <= most):
                    timed = slice(-(-cuts // passes), -(-cuts // passes) + TIMED_ITERATIONS)
                    figures[f"{system} {engine} {cuts}"] = figures_of(
                        result.lp_statistics[timed],
                        sum(record.iteration_time_ms for record in result.history[timed]) / 1e3,
                    )
        return figures

    setup_cache.timeout = 3600  # type: ignore[attr-defined]

    def setup(self, figures: Figures, system: str, engine: str, cuts: int) -> None:
        if cuts > MOST_CUTS[system]:
            raise NotImplementedError(f"{cuts} cuts take too long to make")

    def track_us_per_lp(self, figures: Figures, system: str, engine: str, cuts: int) -> float:
        return figures[f"{system} {engine} {cuts}"]["us"]

    def track_iterations_per_lp(self, figures: Figures, system: str, engine: str, cuts: int) -> float:
        return figures[f"{system} {engine} {cuts}"]["pivots"]

    def track_lps_per_second(self, figures: Figures, system: str, engine: str, cuts: int) -> float:
        return figures[f"{system} {engine} {cuts}"]["rate"]

    track_us_per_lp.unit = "us"  # type: ignore[attr-defined]
    track_iterations_per_lp.unit = "iterations"  # type: ignore[attr-defined]
    track_lps_per_second.unit = "LPs/s"  # type: ignore[attr-defined]


class Memory:
    """Peak memory of a process that loads and trains."""

    params = (tuple(MOST_CUTS), ENGINES)
    param_names = ("system", "engine")
    timeout = 3600

    def peakmem_training(self, system: str, engine: str) -> None:
        import cobre

        cobre.train(named_case(system), iterations=2, lp_engine=engine)
