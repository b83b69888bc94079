"""Lower bounds of studies whose inflow follows earlier inflow, against those of cobre-rs.

Numbers of cobre-rs come from running its published wheel 0.18.0 on the directories that the helpers write::

    python -c "import cobre.run; print(cobre.run.run(CASE, output_dir=OUT, threads=1)['lower_bound'])"
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from builders.inflow_variations import DIFFERENCES, ITERATIONS, PUBLISHED, estimated, given

import cobre.case
import cobre.sddp
from cobre.results import write_stochastic


def bounds(path: Path) -> list[float]:
    return [record.lower_bound for record in cobre.sddp.train(cobre.case.load(path)).history]


@pytest.mark.parametrize("order_selection", ["pacf", "pacf_annual"])
def test_estimated_models(tmp_path: Path, order_selection: str) -> None:
    """Of four months, each has the share of the noise that its season has; so has the model read back."""
    path = estimated(tmp_path / "case", order_selection)
    found = bounds(path)
    assert found == pytest.approx([PUBLISHED[order_selection]] * ITERATIONS, rel=1e-12)
    for file in write_stochastic(tmp_path / "output", cobre.case.load(path).stochastic()):
        if file.name not in ("fitting_report.json", "noise_openings.parquet"):
            shutil.copy(file, path / "scenarios" / file.name)
    (path / "scenarios/inflow_history.parquet").unlink()
    assert bounds(path) == pytest.approx(found, rel=1e-12)


def test_given_models_with_coefficients_before_the_study(tmp_path: Path) -> None:
    assert bounds(given(tmp_path / "case")) == pytest.approx([PUBLISHED["given"]] * ITERATIONS, rel=1e-12)


@pytest.mark.parametrize(("make", "published", "ours"), DIFFERENCES)
def test_differences(tmp_path: Path, make: Callable[[Path], Path], published: float, ours: float) -> None:
    """Rows of ``docs/differences.md`` on inflow models, with the number of cobre-rs beside ours."""
    found = bounds(make(tmp_path / "case"))[-1]
    assert found == pytest.approx(ours, rel=1e-12)
    assert found != pytest.approx(published, rel=1e-4)
