"""Warming up compiles what a training needs, and writes nothing but the cache."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from builders.paths import EXAMPLES

from cobre.sddp.warmup import tiny_study, warm_kernels

EXAMPLE = EXAMPLES / "random-inflow"


def _cobre(*arguments: str, cwd: Path) -> dict:
    command = [sys.executable, "-m", "cobre", *arguments, "--output-format", "json"]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["data"]


def test_training_after_warming_up_compiles_nothing(tmp_path):
    first = _cobre("warmup", cwd=tmp_path)
    cache = Path(first["cache_directory"])
    kernels = {path.name for path in cache.glob("*.nbc")}
    assert kernels
    second = _cobre("warmup", cwd=tmp_path)
    assert (second["cache_hits"], second["cache_misses"]) == (1, 0)
    assert list(tmp_path.iterdir()) == []
    _cobre("train", str(EXAMPLE), "--iterations", "1", "--output", "results", cwd=tmp_path)
    assert {path.name for path in cache.glob("*.nbc")} == kernels


def test_warming_up_twice_in_one_process_is_harmless(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    warm_kernels()
    report = warm_kernels()
    assert (report.hits, report.misses) == (0, 0)
    assert report.seconds > 0.0
    assert report.cache_directory.is_dir()
    assert list(tmp_path.iterdir()) == []


def test_the_study_is_small():
    study = tiny_study()
    assert (len(study.stages), len(study.hydros), study.training.iteration_limit) == (2, 1, 1)
