"""Every example: its derivation, the extensive form and training agree."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
from fractions import Fraction
from pathlib import Path
from types import ModuleType

import pyarrow.parquet as pq
import pytest
from builders.paths import EXAMPLES
from builders.realisations import drawn_openings, mean_openings
from oracle import optimum

import cobre.case
import cobre.sddp

NAMES = sorted(path.parent.name for path in EXAMPLES.glob("*/config.json"))
DERIVED = [name for name in NAMES if name != "random-inflow"]


def python_blocks(name: str) -> str:
    text = (EXAMPLES / name / "README.md").read_text(encoding="utf-8")
    return "\n".join(re.findall(r"^```python\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL))


def stated_value(name: str, label: str) -> Fraction:
    text = (EXAMPLES / name / "README.md").read_text(encoding="utf-8")
    found = re.search(rf"\*\*{label}: ([0-9./ ]+) \$", text)
    assert found, f"the README of {name} states no {label}"
    return Fraction(found[1].replace(" ", ""))


def make_examples() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_examples", EXAMPLES / "make_examples.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def derived_optimum(name: str) -> Fraction:
    scope: dict[str, object] = {}
    exec(python_blocks(name), scope)
    derived = scope["optimum"]
    assert isinstance(derived, Fraction)
    return derived


def test_all_examples_are_there_and_listed() -> None:
    assert sorted(make_examples().EXAMPLES) == NAMES
    listing = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"\]\(([a-z-]+)/README\.md\)", listing))
    assert listed == {path.parent.name for path in EXAMPLES.glob("*/README.md")}
    assert listed >= set(NAMES)


@pytest.mark.parametrize("name", DERIVED)
def test_derivation_is_the_optimum(name: str) -> None:
    derived = derived_optimum(name)
    assert derived == stated_value(name, "Optimum")
    assert optimum(EXAMPLES / name) == pytest.approx(float(derived), rel=1e-9)


def test_parallel_blocks_would_turbine_water_before_it_is_pumped(tmp_path: Path) -> None:
    path = tmp_path / "parallel"
    shutil.copytree(EXAMPLES / "pumped-storage", path, ignore=shutil.ignore_patterns("output"))
    stages = json.loads((path / "stages.json").read_text(encoding="utf-8"))
    for stage in stages["stages"]:
        stage["block_mode"] = "parallel"
    (path / "stages.json").write_text(json.dumps(stages), encoding="utf-8")
    result = cobre.sddp.train(cobre.case.load(path))
    stated = stated_value("pumped-storage", "With parallel blocks")
    assert result.lower_bound == pytest.approx(float(stated), rel=1e-9)


def test_stated_values_of_the_random_example() -> None:
    path = EXAMPLES / "random-inflow"
    openings = drawn_openings(cobre.case.load(path))
    best = optimum(path, openings)
    at_the_mean = optimum(path, mean_openings(openings))
    assert best == pytest.approx(float(stated_value("random-inflow", "Optimum")), rel=1e-9)
    assert at_the_mean == pytest.approx(float(stated_value("random-inflow", "At the mean")), rel=1e-9)
    # Jensen: the optimal cost is convex in inflow.
    assert at_the_mean < best


@pytest.mark.parametrize("name", NAMES)
def test_training_reaches_the_optimum_from_below(name: str) -> None:
    path = EXAMPLES / name
    case = cobre.case.load(path)
    best = optimum(path, drawn_openings(case))
    result = cobre.sddp.train(case)
    assert result.lower_bound == pytest.approx(best, rel=1e-8)
    assert all(record.lower_bound <= best * (1 + 1e-9) for record in result.history)


def test_files_are_what_the_script_writes(tmp_path: Path) -> None:
    make_examples().main(tmp_path)
    written = sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file())
    assert written == sorted(
        path.relative_to(EXAMPLES)
        for pattern in ("*/*.json", "*/system/*", "*/scenarios/*", "*/constraints/*")
        for path in EXAMPLES.glob(pattern)
    )
    for path in written:
        if path.suffix == ".json":
            fresh, kept = ((root / path).read_text(encoding="utf-8") for root in (tmp_path, EXAMPLES))
            assert json.loads(fresh) == json.loads(kept), path
        else:
            assert pq.read_table(tmp_path / path).equals(pq.read_table(EXAMPLES / path)), path
            assert pq.ParquetFile(EXAMPLES / path).metadata.row_group(0).column(0).compression == "ZSTD"
