"""Training on the public cases: their published lower bounds, and never above the true optimum."""

from __future__ import annotations

import pytest
from check_case import drawn_openings
from extensive_form import solve_extensive_form
from shared_cases import reference_bound, shared_cases

import cobre.case
import cobre.sddp

DETERMINISTIC = [
    "d01-thermal-dispatch",
    "d02-single-hydro",
    "d03-two-hydro-cascade",
    "d04-transmission",
    "d09-multi-deficit",
    "d20-operational-violations",
    "d24-productivity-override",
    "d25-discount-rate",
]


@pytest.mark.parametrize("name", DETERMINISTIC)
def test_lower_bound_of_deterministic_cases(name: str) -> None:
    path = shared_cases() / name
    result = cobre.sddp.train(cobre.case.load(path))
    assert result.lower_bound == pytest.approx(reference_bound(name), rel=1e-9)
    optimum = solve_extensive_form(path, drawn_openings(path))
    assert result.lower_bound == pytest.approx(optimum, rel=1e-9)
    assert max(record.lower_bound for record in result.history) <= optimum * (1 + 1e-9)


def test_lower_bound_of_the_stochastic_case() -> None:
    # 128 iterations of one pass do not close the gap on 10,000 paths: the bound is the published one, and
    # stays below the optimum.
    path = shared_cases() / "1dtoy"
    result = cobre.sddp.train(cobre.case.load(path))
    assert len(result.history) == 128
    assert result.lower_bound == pytest.approx(reference_bound("1dtoy"), rel=1e-9)
    optimum = solve_extensive_form(path, drawn_openings(path))
    assert max(record.lower_bound for record in result.history) <= optimum * (1 + 1e-9)
