"""Inflows of public cases with one opening a stage: put into one LP, they give the published bound."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from builders.known_inflows import follow, with_inflows
from builders.shared_cases import reference_bound, shared_cases
from oracle import optimum


@pytest.mark.parametrize("name", ["d16-par1-lag-shift", "d19-multi-hydro-par", "d26-estimated-par2"])
def test_inflows_give_the_published_bound(name: str, tmp_path: Path) -> None:
    path = shared_cases() / name
    best = optimum(with_inflows(path, tmp_path / "known", follow(path)))
    assert best == pytest.approx(reference_bound(name), rel=1e-12)


def test_lags_shift_with_every_month() -> None:
    """d16: 100 + 0.5 (z - 100) from 200, where lags that stay would give 150 three times."""
    inflow = follow(shared_cases() / "d16-par1-lag-shift")
    np.testing.assert_allclose(inflow[:, 0], [150.0, 125.0, 112.5], rtol=1e-9)
