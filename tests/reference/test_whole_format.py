"""The extensive form of the whole format on the public cases, and training on those with more features."""

from __future__ import annotations

import pytest
from builders.shared_cases import reference_bound, shared_cases
from oracle import optimum

import cobre.case
import cobre.sddp

WITH_FEATURES = [
    "d06-fpha-variable-head",
    "d08-evaporation",
    "d11-water-withdrawal",
    "d13-generic-constraint",
    "d15-non-controllable-source",
]
PLAIN = [
    "d01-thermal-dispatch",
    "d02-single-hydro",
    "d03-two-hydro-cascade",
    "d04-transmission",
    "d09-multi-deficit",
    "d20-operational-violations",
    "d24-productivity-override",
    "d25-discount-rate",
]


@pytest.mark.parametrize("name", WITH_FEATURES + PLAIN)
def test_extensive_form_equals_the_published_bound(name: str) -> None:
    assert optimum(shared_cases() / name) == pytest.approx(reference_bound(name), rel=1e-10)


@pytest.mark.parametrize("name", WITH_FEATURES)
def test_training_equals_the_published_bound(name: str) -> None:
    result = cobre.sddp.train(cobre.case.load(shared_cases() / name))
    assert result.lower_bound == pytest.approx(reference_bound(name), rel=1e-9)
