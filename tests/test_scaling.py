"""The cost model of ``docs/scaling.md``: the page is what measurements make, and limits that are known."""

from __future__ import annotations

import importlib
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).resolve().parents[1] / "docs"


@pytest.fixture(scope="module")
def made() -> Any:
    sys.path.insert(0, str(DOCS))
    try:
        yield importlib.import_module("make_scaling")
    finally:
        sys.path.remove(str(DOCS))


@pytest.fixture(scope="module")
def measured(made: Any) -> dict[str, Any]:
    return json.loads(made.MEASUREMENTS.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def fitted(made: Any, measured: dict[str, Any]) -> Any:
    system = measured["system"]["found"]
    found = made.model.fit(measured, system["stages"], system["openings"])
    return made.model.Study(system["stages"], system["openings"], system["state_components"], 200, 5), found


def test_the_page_is_made_from_the_measurements(made: Any, measured: dict[str, Any]) -> None:
    assert made.page(measured) == made.PAGE.read_text(encoding="utf-8")


def test_all_layouts_of_a_measurement_made_one_policy(measured: dict[str, Any]) -> None:
    runs = measured["layouts"]["found"]
    assert len({rank["policy_sha256"] for run in runs for rank in run["by_rank"]}) == 1
    assert {run["backend"] for run in runs} >= {"local", "shm", "tcp"}


def test_one_rank_does_what_its_lps_take(made: Any, fitted: Any) -> None:
    study, found = fitted
    study = replace(study, iterations=1)
    parts = made.model.iteration(study, found, made.Layout("tcp", 1), 1)
    lp = found.step_s * found.steps
    assert parts.forward == pytest.approx(study.passes * study.stages * lp)
    assert parts.backward == pytest.approx(study.passes * (study.stages - 1) * study.openings * lp)
    assert (parts.waiting, parts.gathers) == (0.0, 0.0)


@pytest.mark.parametrize("transport", ["shm", "tcp", "mpi", "two-level"])
def test_ranks_beyond_the_passes_bring_nothing(made: Any, fitted: Any, transport: str) -> None:
    study, found = fitted
    as_many, twice = (
        made.model.run(study, found, made.Layout(transport, ranks, 1, 64)) for ranks in (200, 400)
    )
    assert twice.backward == as_many.backward
    assert twice.total >= as_many.total


def test_the_slowest_of_ranks_by_a_distribution_that_can_be_counted(made: Any) -> None:
    """Efforts of 0.5 and 1.5: of R ranks all draw the lower one with probability 2 ** -R."""
    efforts = (0.5, 1.5)
    slowest = made.model.slowest_over_mean
    assert slowest(efforts, 1, 1) == 1.0
    for ranks in (2, 3, 10):
        assert slowest(efforts, 1, ranks) == pytest.approx(1.5 - 2.0**-ranks)
    # Two trial points: 1, 2 and 3 with probabilities 1/4, 1/2, 1/4.
    assert slowest(efforts, 2, 2) == pytest.approx((3 * 7 + 2 * 8 + 1) / 16 / 2)
    assert slowest(efforts, 50, 2) < slowest(efforts, 5, 2)


def test_coefficients_are_found_again(made: Any) -> None:
    rows = [
        {"lps": 100, "simplex_iterations": 100 * steps, "cuts_before": 3 * cuts, "cpu_s": 100 * seconds}
        for steps, cuts in ((150, 10), (160, 30), (170, 90), (165, 200))
        for seconds in (2e-5 * steps + 3e-7 * cuts,)
    ]
    assert made.model.fit_lp(rows, 4) == pytest.approx((2e-5, 3e-7))
    without_cuts = [{**row, "cpu_s": 2e-3 * row["simplex_iterations"] / 100} for row in rows]
    assert made.model.fit_lp(without_cuts, 4)[1] == pytest.approx(0.0, abs=1e-8)


def test_the_star_of_tcp_sends_everything_to_everybody(made: Any, fitted: Any) -> None:
    _, found = fitted
    network = replace(made.model.ETHERNET, latency_s=0.0)
    found = replace(found, tcp_peer_s=0.0, tcp_byte_s=0.0)
    gather = made.model.tcp_gather_s
    assert gather(found, 2, 1e6, network) == pytest.approx(1e6 / network.bytes_per_s)
    assert gather(found, 100, 1e6, network) == pytest.approx(99e6 / network.bytes_per_s)
