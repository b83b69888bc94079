"""Training converges to the extensive form on random systems."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders.random_case import write_random_case
from builders.realisations import drawn_openings
from oracle import optimum

import cobre.case
import cobre.sddp

# Systems in which storage decisions matter: one iteration is not enough for any of them.
SEEDS = [0, 2, 5, 9, 11, 17, 19, 21, 24, 27, 28, 32, 33, 36, 37]


@pytest.mark.parametrize("seed", SEEDS)
def test_trained_bound_is_the_optimum(tmp_path: Path, seed: int) -> None:
    path = write_random_case(tmp_path, seed)
    case = cobre.case.load(path)
    best = optimum(path, drawn_openings(case))
    result = cobre.sddp.train(case)
    assert result.lower_bound == pytest.approx(best, rel=1e-7)
    assert max(record.lower_bound for record in result.history) <= best * (1 + 1e-8)
