"""What a user waits for before anything happens."""

from __future__ import annotations

from .common import run_python, train


class Import:
    """A fresh interpreter that imports a package."""

    params = ("cobre", "cobre.cli", "cobre.case", "cobre.sddp.training")
    param_names = ("package",)
    number = 1
    warmup_time = 0.0

    def setup(self, package: str) -> None:
        run_python("-c", f"import {package}")  # bytecode and, for the last one, compiled kernels

    def time_import(self, package: str) -> None:
        run_python("-c", f"import {package}")


class FirstIteration:
    """From the start of the command to the end of its first iteration, with kernels in the cache."""

    params = ("thermal-merit-order", "two-plant-cascade", "random-inflow")
    param_names = ("example",)
    number = 1
    warmup_time = 0.0
    timeout = 900  # the setup compiles where the cache is cold

    def setup(self, example: str) -> None:
        train(example, "--iterations", "1")

    def time_warm_start(self, example: str) -> None:
        train(example, "--iterations", "1")
