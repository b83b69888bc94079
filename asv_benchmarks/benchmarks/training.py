"""How fast training is once it runs."""

from __future__ import annotations

import statistics

from .common import example as example_directory


class Training:
    """An example trained in this process; the first run, which loads the kernels, does not count."""

    params = (("two-plant-cascade", "random-inflow"), (1, 2))
    param_names = ("example", "threads")
    timeout = 900
    iterations = 40
    repetitions = 3

    def setup(self, example: str, threads: int) -> None:
        import cobre

        self.case = cobre.load_case(example_directory(example))
        cobre.train(self.case, iterations=1, threads=threads)

    def track_lps_per_second(self, example: str, threads: int) -> float:
        import cobre

        rates = []
        for _ in range(self.repetitions):
            result = cobre.train(self.case, iterations=self.iterations, threads=threads)
            seconds = sum(record.iteration_time_ms for record in result.history) / 1e3
            rates.append(result.lp_solves / seconds)
        return statistics.median(rates)

    track_lps_per_second.unit = "LPs/s"  # type: ignore[attr-defined]

    def peakmem_training(self, example: str, threads: int) -> None:
        import cobre

        cobre.train(self.case, iterations=self.iterations, threads=threads)
