"""Every feature of the case format: by hand, by the extensive form, and by training."""

from __future__ import annotations

import inspect
from pathlib import Path

import power_features
import pytest
import water_features
from builders.case_files import Builder, Feature, write_files
from builders.realisations import drawn_openings, fitted_planes
from builders.rich_case import rich_files
from oracle import optimum

import cobre.case
import cobre.sddp


def builders() -> dict[str, Builder]:
    """Features by name."""
    found: dict[str, Builder] = {"rich_case": lambda: Feature(rich_files(), drawn=True, fitted=True)}
    for module in (water_features, power_features):
        for name, function in inspect.getmembers(module, inspect.isfunction):
            if function.__module__ == module.__name__ and not inspect.signature(function).parameters:
                found[name] = function
    return found


FEATURES = builders()
DERIVED = [name for name, build in FEATURES.items() if build().hand is not None]
OPTIONAL = [
    name for name in rich_files() if name.startswith("constraints/") and name.endswith(".parquet")
] + [
    "scenarios/load_factors.json",
    "scenarios/non_controllable_stats.parquet",
    "scenarios/non_controllable_factors.json",
    "system/non_controllable_sources.json",
    "system/fpha_hyperplanes.parquet",
    "system/energy_contracts.json",
]
"""Files that the extensive form can do without."""
TRAINED = [name for name, build in FEATURES.items() if not build().boundary]


@pytest.mark.parametrize("name", DERIVED)
def test_extensive_form_equals_the_derivation(tmp_path: Path, name: str) -> None:
    feature = FEATURES[name]()
    path = write_files(tmp_path, feature.files)
    value = optimum(path, feature.openings, boundary=feature.boundary)
    assert value == pytest.approx(feature.hand, rel=1e-10)


@pytest.mark.parametrize("name", TRAINED)
def test_training_equals_the_extensive_form(tmp_path: Path, name: str) -> None:
    feature = FEATURES[name]()
    path = write_files(tmp_path, feature.files)
    case = cobre.case.load(path)
    openings = drawn_openings(case) if feature.drawn else feature.openings
    best = optimum(path, openings, planes=fitted_planes(case) if feature.fitted else None)
    result = cobre.sddp.train(case)
    assert result.lower_bound == pytest.approx(best, rel=1e-8)
    # Never above the truth on the way there.
    assert max(record.lower_bound for record in result.history) <= best + 1e-9 * abs(best)


@pytest.mark.parametrize("name", OPTIONAL)
def test_every_file_of_the_rich_case_matters(tmp_path: Path, name: str) -> None:
    # At the means, with constant productivity where planes would be fitted: the extensive form alone.
    whole = optimum(write_files(tmp_path / "whole", rich_files()))
    files = rich_files()
    del files[name]
    without = optimum(write_files(tmp_path / "without", files))
    assert abs(whole - without) > 1e-6 * abs(whole)
