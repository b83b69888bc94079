"""Inflow models of the public cases, exported and read back as inputs."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders.shared_cases import shared_cases
from builders.uncertain_cases import check_same, round_trip

import cobre.case
from cobre.cli import main


@pytest.mark.parametrize(
    "name", ["1dtoy", "d15-non-controllable-source", "d16-par1-lag-shift", "d19-multi-hydro-par"]
)
def test_given_models_come_back(tmp_path: Path, name: str) -> None:
    before, after = round_trip(shared_cases() / name, tmp_path)
    check_same(before, after)
    assert after.inflow.path == before.inflow.path


def test_the_estimated_model_comes_back(tmp_path: Path) -> None:
    """Its first month has order 1, so that the share of the noise agrees as well."""
    before, after = round_trip(shared_cases() / "d26-estimated-par2", tmp_path)
    check_same(before, after)
    assert (before.inflow.path, after.inflow.path) == ("full_estimation", "user_provided_all")


def test_openings_that_follow_external_scenarios_stay(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    case = shared_cases() / "d28-decomp-weekly-monthly"
    assert main(["stochastic", str(case), "--output", str(tmp_path)]) == 0
    assert (
        "noise_openings.parquet is not written: openings follow external scenarios" in capsys.readouterr().err
    )
    assert not (tmp_path / "stochastic" / "noise_openings.parquet").exists()
    assert (tmp_path / "stochastic" / "inflow_seasonal_stats.parquet").exists()
    assert len(cobre.case.load(case).stochastic().tables["openings"]) == 10
