"""The deterministic upper bound: what it takes, and how close it comes."""

from __future__ import annotations

from dataclasses import replace

from .common import example as example_directory


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
        assert result.true_gap_percent is not None
        return result.deterministic_bound.seconds, result.true_gap_percent

    def track_seconds(self, example: str) -> float:
        return self._bound()[0]

    track_seconds.unit = "s"  # type: ignore[attr-defined]

    def track_true_gap(self, example: str) -> float:
        return self._bound()[1]

    track_true_gap.unit = "%"  # type: ignore[attr-defined]
