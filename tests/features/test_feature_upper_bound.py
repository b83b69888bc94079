"""The deterministic upper bound on every feature: never below the extensive form, with and without risk."""

from __future__ import annotations

import datetime
from dataclasses import replace
from pathlib import Path

import pytest
from builders.case_files import Builder, Feature, stages_of, write_files
from builders.realisations import drawn_openings, fitted_planes
from oracle import optimum
from power_features import boundary_cuts, boundary_cuts_discounted
from test_feature_boundary import with_noise, write_policy
from test_features import FEATURES, TRAINED

import cobre.case
import cobre.sddp
from cobre.case.model import Case, UpperBoundOptions


def bounded(case: Case) -> Case:
    return replace(case, training=replace(case.training, upper_bound=UpperBoundOptions(enabled=True)))


def best_of(path: Path, feature: Feature, case: Case) -> float:
    openings = drawn_openings(case) if feature.drawn else feature.openings
    planes = fitted_planes(case) if feature.fitted else None
    return optimum(path, openings, planes=planes, boundary=feature.boundary)


@pytest.mark.parametrize("measure", ["as given", "averse"])
@pytest.mark.parametrize("name", TRAINED)
def test_bound_is_never_below_the_optimum(tmp_path: Path, name: str, measure: str) -> None:
    feature = FEATURES[name]()
    if measure == "averse":
        for stage in stages_of(feature.files):
            stage["risk_measure"] = {"cvar": {"alpha": 0.3, "lambda": 0.6}}
    path = write_files(tmp_path, feature.files)
    case = bounded(cobre.case.load(path))
    best = best_of(path, feature, case)
    early = cobre.sddp.train(case, iterations=1).deterministic_bound
    late = cobre.sddp.train(case).deterministic_bound
    assert early is not None
    assert late is not None
    assert early.value >= best - 1e-9 * abs(best)
    assert best - 1e-9 * abs(best) <= late.value <= best + 1e-6 * abs(best)


@pytest.mark.parametrize("build", [boundary_cuts, boundary_cuts_discounted, with_noise])
def test_boundary_cuts_end_the_bound(tmp_path: Path, build: Builder) -> None:
    feature = build()
    end = datetime.date.fromisoformat(stages_of(feature.files)[-1]["end_date"])
    write_policy(tmp_path / "after", feature, end)
    feature.files["config.json"]["policy"] = {"boundary": {"path": "../after", "strict": True}}
    path = write_files(tmp_path / "case", feature.files)
    case = bounded(cobre.case.load(path))
    best = best_of(path, feature, case)
    bound = cobre.sddp.train(case).deterministic_bound
    assert bound is not None
    assert best - 1e-9 * abs(best) <= bound.value <= best + 1e-6 * abs(best)
