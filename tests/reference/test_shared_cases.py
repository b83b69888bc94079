"""Training on the public cases: their published lower bounds, and never above the true optimum."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from builders.realisations import drawn_openings
from builders.shared_cases import reference_bound, shared_cases
from oracle import optimum

import cobre.case
import cobre.sddp

DETERMINISTIC = [
    "d01-thermal-dispatch",
    "d02-single-hydro",
    "d03-two-hydro-cascade",
    "d04-transmission",
    "d06-fpha-variable-head",
    "d08-evaporation",
    "d09-multi-deficit",
    "d11-water-withdrawal",
    "d13-generic-constraint",
    "d15-non-controllable-source",
    "d20-operational-violations",
    "d24-productivity-override",
    "d25-discount-rate",
]


@pytest.mark.parametrize("name", DETERMINISTIC)
def test_lower_bound_of_deterministic_cases(name: str) -> None:
    path = shared_cases() / name
    case = cobre.case.load(path)
    result = cobre.sddp.train(case)
    assert result.lower_bound == pytest.approx(reference_bound(name), rel=1e-9)
    best = optimum(path, drawn_openings(case))
    assert best == pytest.approx(reference_bound(name), rel=1e-10)
    assert best == pytest.approx(optimum(path), rel=1e-12)
    assert result.lower_bound == pytest.approx(best, rel=1e-9)
    assert max(record.lower_bound for record in result.history) <= best * (1 + 1e-9)


def test_lower_bound_of_the_stochastic_case() -> None:
    # 128 iterations of one pass do not close the gap on 10,000 paths: the bound is the published one, and
    # stays below the optimum.
    path = shared_cases() / "1dtoy"
    case = cobre.case.load(path)
    result = cobre.sddp.train(case)
    assert len(result.history) == 128
    assert result.lower_bound == pytest.approx(reference_bound("1dtoy"), rel=1e-9)
    best = optimum(path, drawn_openings(case))
    assert max(record.lower_bound for record in result.history) <= best * (1 + 1e-9)


def test_lower_bound_with_a_risk_measure(tmp_path: Path) -> None:
    path = Path(shutil.copytree(shared_cases() / "1dtoy", tmp_path / "1dtoy"))
    document = json.loads((path / "stages.json").read_text(encoding="utf-8"))
    for stage in document["stages"]:
        stage["risk_measure"] = {"cvar": {"alpha": 0.3, "lambda": 0.4}}
    (path / "stages.json").write_text(json.dumps(document), encoding="utf-8")
    # cobre-rs 0.18.0 after 15 iterations.
    result = cobre.sddp.train(cobre.case.load(path), iterations=15)
    assert result.lower_bound == pytest.approx(7_523_998.788977019, rel=1e-12)
