"""The deterministic upper bound against extensive forms of random systems and the public cases."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from builders.random_case import write_random_case
from builders.realisations import drawn_openings
from builders.shared_cases import shared_cases
from oracle import optimum

import cobre.case
import cobre.sddp
from cobre.case.model import Case, UpperBoundOptions


def bounded(case: Case, **options: int) -> Case:
    asked = UpperBoundOptions(enabled=True, **options)
    return replace(case, training=replace(case.training, upper_bound=asked))


@pytest.mark.parametrize("seed", range(40))
def test_bound_is_never_below_the_optimum_of_random_systems(tmp_path: Path, seed: int) -> None:
    path = write_random_case(tmp_path, seed)
    case = cobre.case.load(path)
    best = optimum(path, drawn_openings(case))
    result = cobre.sddp.train(bounded(case, interval_iterations=1), iterations=20)
    for record in result.history:
        assert record.deterministic_upper_bound is not None
        assert record.deterministic_upper_bound >= best - 1e-9 * abs(best)
    assert result.deterministic_bound is not None
    assert result.deterministic_bound.value <= best * 1.02


def test_bounds_meet_on_the_stochastic_case() -> None:
    path = shared_cases() / "1dtoy"
    case = cobre.case.load(path)
    result = cobre.sddp.train(bounded(case))
    best = optimum(path, drawn_openings(case))
    assert result.deterministic_bound is not None
    assert result.lower_bound <= best <= result.deterministic_bound.value
    assert result.gap_percent is not None
    assert result.gap_percent < 1.0
