"""Training, opening trees and loading on synthetic systems of three sizes."""

from __future__ import annotations

import statistics
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from .common import synthetic_case

if TYPE_CHECKING:
    from cobre import TrainingResult

SIZES = ("small", "mid", "large")
ITERATIONS = {"small": 40, "mid": 4, "large": 1}
REPETITIONS = {"small": 3, "mid": 1, "large": 1}
WINDOW_S = {"small": 2.0, "mid": 20.0, "large": 60.0}
"""Over which the bound is averaged; some times what the first iteration takes."""
SPEEDUP_ITERATIONS = 3
SPEEDUP_REPETITIONS = 3

Figures = dict[str, dict[str, float]]


def seconds_of(result: TrainingResult) -> float:
    """Return the time of all iterations."""
    return sum(record.iteration_time_ms for record in result.history) / 1e3


def mean_bound(result: TrainingResult, window_s: float) -> float:
    """Return the mean lower bound over the first ``window_s`` of iterating, in percent of the last one.

    0 before the first iteration has ended. A faster iteration raises it, and so does a better cut.
    """
    ends = [0.0]
    for record in result.history:
        ends.append(ends[-1] + record.iteration_time_ms / 1e3)
    bounds = [0.0, *(record.lower_bound for record in result.history)]
    area = sum(
        bound * max(0.0, min(end, window_s) - start)
        for bound, (start, end) in zip(bounds, pairwise([*ends, max(window_s, ends[-1])]), strict=True)
        if start < window_s
    )
    return 100.0 * area / (window_s * result.lower_bound)


class Training:
    """One thread on one rank; all figures come from the same runs. Loading of kernels does not count."""

    params = (SIZES,)
    param_names = ("size",)
    timeout = 3600

    def setup_cache(self) -> Figures:
        import cobre

        cobre.train(synthetic_case("small"), iterations=1)
        figures: Figures = {}
        for size in SIZES:
            case = synthetic_case(size)
            runs = [cobre.train(case, iterations=ITERATIONS[size]) for _ in range(REPETITIONS[size])]
            figures[size] = {
                "iterations": statistics.median(run.iterations / seconds_of(run) for run in runs),
                "lps": statistics.median(run.lp_solves / seconds_of(run) for run in runs),
                "bound": statistics.median(mean_bound(run, WINDOW_S[size]) for run in runs),
            }
        return figures

    setup_cache.timeout = 3600  # type: ignore[attr-defined]

    def track_iterations_per_second(self, figures: Figures, size: str) -> float:
        return figures[size]["iterations"]

    def track_lps_per_second(self, figures: Figures, size: str) -> float:
        return figures[size]["lps"]

    def track_time_weighted_bound(self, figures: Figures, size: str) -> float:
        return figures[size]["bound"]

    track_iterations_per_second.unit = "iterations/s"  # type: ignore[attr-defined]
    track_lps_per_second.unit = "LPs/s"  # type: ignore[attr-defined]
    track_time_weighted_bound.unit = "% of last bound"  # type: ignore[attr-defined]


class Memory:
    """Peak memory of a process that loads and trains."""

    params = (SIZES,)
    param_names = ("size",)
    timeout = 3600

    def peakmem_training(self, size: str) -> None:
        import cobre

        cobre.train(synthetic_case(size), iterations=1)


class Speedup:
    """How many times faster two workers are than one, on the mid size; runs take turns, medians count.

    A ratio of times taken side by side does not depend on the machine's speed, only on its being idle.
    """

    timeout = 3600

    def setup_cache(self) -> dict[str, float]:
        import cobre

        study = cobre.Study(synthetic_case("mid"))
        ways = {
            "one": {"ranks": 1, "threads": 1},
            "threads": {"ranks": 1, "threads": 2},
            "shm": {"ranks": 2, "threads": 1, "backend": "shm"},
            "tcp": {"ranks": 2, "threads": 1, "backend": "tcp"},
        }
        for way in ways.values():
            study.train(iterations=1, **way)
        seconds: dict[str, list[float]] = {name: [] for name in ways}
        shares: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(SPEEDUP_REPETITIONS):
            for name, way in ways.items():
                result = study.train(iterations=SPEEDUP_ITERATIONS, **way)
                seconds[name].append(seconds_of(result))
                talking = sum(record.communication_time_ms for record in result.history) / 1e3
                shares[name].append(100.0 * talking / seconds_of(result))
        median = {name: statistics.median(values) for name, values in seconds.items()}
        figures = {f"speedup {name}": median["one"] / value for name, value in median.items()}
        return figures | {f"share {name}": statistics.median(values) for name, values in shares.items()}

    setup_cache.timeout = 3600  # type: ignore[attr-defined]

    def track_speedup_two_threads(self, figures: dict[str, float]) -> float:
        return figures["speedup threads"]

    def track_speedup_two_ranks_shm(self, figures: dict[str, float]) -> float:
        return figures["speedup shm"]

    def track_speedup_two_ranks_tcp(self, figures: dict[str, float]) -> float:
        return figures["speedup tcp"]

    def track_communication_share_shm(self, figures: dict[str, float]) -> float:
        return figures["share shm"]

    def track_communication_share_tcp(self, figures: dict[str, float]) -> float:
        return figures["share tcp"]

    track_speedup_two_threads.unit = "times"  # type: ignore[attr-defined]
    track_speedup_two_ranks_shm.unit = "times"  # type: ignore[attr-defined]
    track_speedup_two_ranks_tcp.unit = "times"  # type: ignore[attr-defined]
    track_communication_share_shm.unit = "% of time"  # type: ignore[attr-defined]
    track_communication_share_tcp.unit = "% of time"  # type: ignore[attr-defined]


class OpeningTree:
    """Drawing all openings, once loaded kernels are there."""

    params = (SIZES,)
    param_names = ("size",)
    timeout = 900

    def setup(self, size: str) -> None:
        self.case = synthetic_case(size)
        self.time_tree(size)

    def time_tree(self, size: str) -> None:
        from cobre.stochastic import build_opening_tree

        build_opening_tree(self.case)


class PlanningTree:
    """The tree of a study as large as they come: 160 plants, 60 months, 100 openings, order 6, correlated."""

    timeout = 900

    def setup(self) -> None:
        import cobre.case
        from cobre.templates.synthetic import build
        from cobre.templates.synthetic_options import SyntheticOptions

        options = SyntheticOptions(hydros=160, stages=60, openings=100, order=6, correlation=0.8)
        self.case = cobre.case.build(build(options))
        self.time_tree()

    def time_tree(self) -> None:
        from cobre.stochastic import build_opening_tree

        build_opening_tree(self.case)

    def peakmem_tree(self) -> None:
        self.time_tree()


class Loading:
    """A case directory to a validated case, and to its stage LPs."""

    params = (SIZES,)
    param_names = ("size",)
    timeout = 900

    def setup(self, size: str) -> None:
        self.directory = tempfile.TemporaryDirectory()
        self.path = Path(self.directory.name) / "case"
        synthetic_case(size).save(self.path)

    def teardown(self, size: str) -> None:
        self.directory.cleanup()

    def time_generate(self, size: str) -> None:
        from cobre.templates.synthetic import build
        from cobre.templates.synthetic_options import SIZES as OPTIONS

        build(OPTIONS[size])

    def time_load(self, size: str) -> None:
        from cobre.case import load

        load(self.path)

    def peakmem_load(self, size: str) -> None:
        from cobre.case import load

        load(self.path)
