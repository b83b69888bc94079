"""The deterministic upper bound: what it takes, and how close it comes."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from .common import example as example_directory

if TYPE_CHECKING:
    from cobre.sddp import IterationRecord

GAPS = (5.0, 2.0, 1.0)
REFERENCE = 9.187e8
"""What the lower bound of the template four-region tends to, $: 918.66 million after 150 iterations."""
WINDOW_S = 3.0
"""Over which the gap is averaged; some times what the first evaluation takes."""


class UpperBound:
    """An example trained with one evaluation at the end; a first run loads the kernels."""

    params = ("two-plant-cascade", "random-inflow")
    param_names = ("example",)
    timeout = 900
    iterations = 40

    def setup(self, example: str) -> None:
        import cobre
        from cobre.case.model import UpperBoundOptions

        case = cobre.load_case(example_directory(example))
        self.case = replace(
            case, training=replace(case.training, upper_bound=UpperBoundOptions(enabled=True))
        )
        cobre.train(self.case, iterations=1)

    def _bound(self) -> tuple[float, float]:
        """Return seconds of the evaluation and the true gap in percent."""
        import cobre

        result = cobre.train(self.case, iterations=self.iterations)
        assert result.deterministic_bound is not None
        assert result.gap_percent is not None
        return result.deterministic_bound.seconds, result.gap_percent

    def track_seconds(self, example: str) -> float:
        return self._bound()[0]

    track_seconds.unit = "s"  # type: ignore[attr-defined]

    def track_true_gap(self, example: str) -> float:
        return self._bound()[1]

    track_true_gap.unit = "%"  # type: ignore[attr-defined]


SCHEDULES = ("all", "few early")


class FourRegions:
    """How soon a policy is proven good: the template four-region with an evaluation every five iterations.

    Eight passes, or one in the first iterations and more later. Wall time from the first iteration on,
    evaluations included; kernels are loaded before.
    """

    params = SCHEDULES
    param_names = ("passes",)
    timeout = 900
    iterations = 60
    interval = 5
    passes = 8

    def setup_cache(self) -> dict[str, dict[str, float]]:
        return {name: self._figures(name) for name in SCHEDULES}

    setup_cache.timeout = 900  # type: ignore[attr-defined]

    def _figures(self, name: str) -> dict[str, float]:
        import cobre
        import cobre.case
        from cobre.case.model import PassSchedule, UpperBoundOptions
        from cobre.templates.four_region import build

        case = cobre.case.build(build())
        options = UpperBoundOptions(
            enabled=True, initial_iteration=self.interval, interval_iterations=self.interval
        )
        schedule = None if name == "all" else PassSchedule(initial=1, double_every=10)
        training = replace(
            case.training, upper_bound=options, forward_passes=self.passes, pass_schedule=schedule
        )
        case = replace(case, training=training)
        cobre.train(case, iterations=self.interval)
        proven: list[tuple[float, float]] = []
        bounds: list[tuple[float, float]] = []
        began = [time.perf_counter()]

        def note(record: IterationRecord) -> None:
            now = time.perf_counter()
            if record.iteration == 1:
                began[0] = now - record.iteration_time_ms / 1e3
            bounds.append((now - began[0], record.lower_bound))
            upper = record.deterministic_upper_bound
            if upper is not None:
                gap = 100.0 * (upper - record.lower_bound) / max(1.0, abs(record.lower_bound))
                proven.append((now - began[0], gap))

        result = cobre.train(case, iterations=self.iterations, on_iteration=note)
        figures = {
            f"{goal:g}": next((at for at, gap in proven if gap <= goal), float("nan")) for goal in GAPS
        }
        missing = [(at, 100.0 * (1.0 - bound / REFERENCE)) for at, bound in bounds]
        trained_s = sum(record.iteration_time_ms for record in result.history) / 1e3
        return figures | {
            "weighted": mean_gap(proven, WINDOW_S),
            "missing": mean_gap(missing, WINDOW_S),
            "rate": result.lp_solves / trained_s,
        }

    def track_seconds_to_5_percent(self, figures: dict[str, dict[str, float]], passes: str) -> float:
        return figures[passes]["5"]

    def track_seconds_to_2_percent(self, figures: dict[str, dict[str, float]], passes: str) -> float:
        return figures[passes]["2"]

    def track_seconds_to_1_percent(self, figures: dict[str, dict[str, float]], passes: str) -> float:
        return figures[passes]["1"]

    def track_time_weighted_gap(self, figures: dict[str, dict[str, float]], passes: str) -> float:
        return figures[passes]["weighted"]

    def track_time_weighted_lower_bound(self, figures: dict[str, dict[str, float]], passes: str) -> float:
        """How far the lower bound is below its limit, on average over the window."""
        return figures[passes]["missing"]

    def track_lps_per_second(self, figures: dict[str, dict[str, float]], passes: str) -> float:
        return figures[passes]["rate"]

    track_seconds_to_5_percent.unit = "s"  # type: ignore[attr-defined]
    track_seconds_to_2_percent.unit = "s"  # type: ignore[attr-defined]
    track_seconds_to_1_percent.unit = "s"  # type: ignore[attr-defined]
    track_time_weighted_gap.unit = "%"  # type: ignore[attr-defined]
    track_time_weighted_lower_bound.unit = "%"  # type: ignore[attr-defined]
    track_lps_per_second.unit = "1/s"  # type: ignore[attr-defined]


class ThirtyPlants:
    """What the bound takes of a run on the synthetic case mid: 40 iterations with a bound every 20."""

    timeout = 900
    iterations = 40
    interval = 20

    def setup_cache(self) -> dict[str, float]:
        import cobre
        from cobre.case.model import UpperBoundOptions

        from .common import synthetic_case

        case = synthetic_case("mid")
        options = UpperBoundOptions(
            enabled=True, initial_iteration=self.interval, interval_iterations=self.interval
        )
        case = replace(case, training=replace(case.training, upper_bound=options))
        cobre.train(case, iterations=1)
        result = cobre.train(case, iterations=self.iterations)
        trained_s = sum(record.iteration_time_ms for record in result.history) / 1e3
        total_s = (result.total_time_ms - result.compile_time_ms) / 1e3
        assert result.gap_percent is not None
        return {
            "total": total_s,
            "share": 100.0 * (1.0 - trained_s / total_s),
            "gap": result.gap_percent,
        }

    setup_cache.timeout = 900  # type: ignore[attr-defined]

    def track_seconds(self, figures: dict[str, float]) -> float:
        return figures["total"]

    def track_share_of_the_bound(self, figures: dict[str, float]) -> float:
        return figures["share"]

    def track_true_gap(self, figures: dict[str, float]) -> float:
        return figures["gap"]

    track_seconds.unit = "s"  # type: ignore[attr-defined]
    track_share_of_the_bound.unit = "%"  # type: ignore[attr-defined]
    track_true_gap.unit = "%"  # type: ignore[attr-defined]


def mean_gap(proven: list[tuple[float, float]], window_s: float) -> float:
    """Return the mean true gap over the first ``window_s``; 100 % before the first evaluation.

    Parameters
    ----------
    proven
        When a gap was known (s), and the gap (%), in the order of time.
    """
    starts = [0.0, *(min(at, window_s) for at, _ in proven)]
    gaps = [100.0, *(gap for _, gap in proven)]
    ends = [*starts[1:], window_s]
    return sum(gap * (end - start) for gap, start, end in zip(gaps, starts, ends, strict=True)) / window_s
