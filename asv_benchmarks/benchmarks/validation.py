"""Loading and validating a case of any size, and measuring its stage LPs."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

from builders.large_case import write_large

from .common import run_python


class Validate:
    """``cobre validate`` of a synthetic case, in a process of its own."""

    params = ((100, 1000), (12, 120))
    param_names = ("hydros", "stages")
    number = 1
    rounds = 1
    warmup_time = 0.0
    timeout = 600

    def setup(self, hydros: int, stages: int) -> None:
        self.directory = tempfile.TemporaryDirectory()
        self.path = write_large(Path(self.directory.name) / "case", hydros=hydros, stages=stages)

    def teardown(self, hydros: int, stages: int) -> None:
        self.directory.cleanup()

    def time_validate(self, hydros: int, stages: int) -> None:
        run_python("-m", "cobre", "validate", str(self.path), "--quiet")

    def time_validate_without_lps(self, hydros: int, stages: int) -> None:
        run_python("-m", "cobre", "validate", str(self.path), "--quiet", "--no-lp")

    def peakmem_load(self, hydros: int, stages: int) -> None:
        from cobre.case import load

        load(self.path)
