"""Complete cases with a history of inflows, cases with everything shuffled, and exports read back."""

from __future__ import annotations

import datetime
import json
import random
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import cobre.case
from cobre.case.format import layout
from cobre.case.model import Case
from cobre.results import write_stochastic
from cobre.results.stochastic import FITTING, OPENINGS
from cobre.stochastic.report.document import StochasticReport
from cobre.templates.synthetic import build
from cobre.templates.synthetic_options import SyntheticOptions

MEAN = 100.0 + 20.0 * np.cos(2.0 * np.pi * np.arange(12) / 12.0)
STD = 25.0 + 5.0 * np.sin(2.0 * np.pi * np.arange(12) / 12.0)


def synthetic_documents(**options: Any) -> dict[str, Any]:
    """Documents of a synthetic case of three plants, one year."""
    return dict(build(SyntheticOptions(**{"hydros": 3, "stages": 12, "openings": 5, **options})))


def simulated_history(hydros: int, years: int, phi: tuple[float, ...], mix: float, seed: int) -> np.ndarray:
    """Monthly inflows by (hydro, month) of known models; ``mix`` is the share of common noise."""
    rng = np.random.default_rng(seed)
    length = 12 * (years + 5)
    noise = np.sqrt(1 - mix**2) * rng.normal(size=(hydros, length)) + mix * rng.normal(size=(1, length))
    series = np.zeros((hydros, length))
    for month in range(length):
        for lag, value in enumerate(phi, start=1):
            if month >= lag:
                series[:, month] += value * series[:, month - lag]
        series[:, month] += noise[:, month]
    series = series[:, 60:] / series[:, 60:].std()
    at = np.arange(series.shape[1]) % 12
    return MEAN[at] + STD[at] * series


def history_table(values: np.ndarray, ids: list[int], last_year: int = 2024) -> pa.Table:
    """Monthly values that end with December of a year, as ``inflow_history.parquet``."""
    hydros, months = values.shape
    first = last_year + 1 - months // 12
    starts = [datetime.date(first + n // 12, n % 12 + 1, 1) for n in range(months + 1)]
    return pa.table(
        {
            "hydro_id": pa.array(np.repeat(np.array(ids, np.int32), months)),
            "start_date": pa.array(starts[:-1] * hydros),
            "end_date": pa.array(starts[1:] * hydros),
            "value_m3s": pa.array(values.ravel()),
        }
    )


def estimated_documents(
    years: int = 60,
    phi: tuple[float, ...] = (0.5, 0.3),
    stages: int = 12,
    annual: bool = False,
    seed: int = 3,
) -> dict[str, Any]:
    """A case whose inflow models are estimated from history."""
    documents = synthetic_documents(stages=stages)
    for name in (layout.INFLOW_STATS, layout.INFLOW_AR, layout.CORRELATION):
        documents.pop(name, None)
    ids = [hydro["id"] for hydro in documents[layout.HYDROS]["hydros"]]
    values = simulated_history(len(ids), years, phi, 0.7, seed)
    documents[layout.INFLOW_HISTORY] = history_table(values, ids)
    documents[layout.CONFIG]["estimation"] = {
        "max_order": 3,
        "order_selection": "pacf_annual" if annual else "pacf",
    }
    return documents


def shuffled_copy(source: Path, target: Path, seed: int) -> Case:
    """Copy a case with all lists of entities and all rows of tables in another order."""
    rng = random.Random(seed)
    shutil.copytree(source, target)
    for path in [*(target / "system").glob("*.json"), target / "initial_conditions.json"]:
        content = json.loads(path.read_text())
        for value in content.values():
            if isinstance(value, list):
                rng.shuffle(value)
        path.write_text(json.dumps(content))
    for path in target.rglob("*.parquet"):
        table = pq.read_table(path)
        order = list(range(len(table)))
        rng.shuffle(order)
        pq.write_table(pc.take(table, pa.array(order)), path)
    correlation = target / "scenarios" / "correlation.json"
    if correlation.is_file():
        content = json.loads(correlation.read_text())
        for profile in content["profiles"].values():
            for group in profile["correlation_groups"]:
                order = list(range(len(group["entities"])))
                rng.shuffle(order)
                group["entities"] = [group["entities"][at] for at in order]
                group["matrix"] = [[group["matrix"][i][j] for j in order] for i in order]
        correlation.write_text(json.dumps(content))
    return cobre.case.load(target)


def reimported(source: Path, files: tuple[Path, ...], target: Path) -> Case:
    """Load a copy of a case that has the exported files in place of its own."""
    shutil.copytree(source, target)
    (target / "scenarios").mkdir(exist_ok=True)
    for file in files:
        if file.name != FITTING:
            shutil.copy(file, target / "scenarios" / file.name)
    config = json.loads((target / "config.json").read_text())
    config["training"].setdefault("scenario_source", {})["openings"] = {"source": "file"}
    (target / "config.json").write_text(json.dumps(config))
    return cobre.case.load(target)


def round_trip(source: Path, tmp_path: Path) -> tuple[StochasticReport, StochasticReport]:
    """Export the uncertainty of a case and read it back as input: before and after."""
    report = cobre.case.load(source).stochastic()
    files = write_stochastic(tmp_path / "output", report)
    assert OPENINGS in {file.name for file in files}
    return report, reimported(source, files, tmp_path / "copy").stochastic()


def check_same(before: StochasticReport, after: StochasticReport) -> None:
    """Check that models agree to 1e-12 and noise in every bit."""
    for name in ("base_m3s", "psi", "sigma_m3s"):
        old, new = getattr(before.inflow, name), getattr(after.inflow, name)
        np.testing.assert_allclose(new, old, rtol=1e-12, atol=1e-12 * np.abs(old).max(initial=1.0))
    assert after.tree.noise.tobytes() == before.tree.noise.tobytes()
    assert after.tree.load_mw.tobytes() == before.tree.load_mw.tobytes()
    assert after.provenance.opening_tree_source == "file"
    assert (before.correlation is None) == (after.correlation is None)
    if before.correlation is not None:
        assert after.correlation.of_stage == before.correlation.of_stage
        for name, groups in before.correlation.profiles.items():
            for old, new in zip(groups, after.correlation.profiles[name], strict=True):
                assert new.matrix.tobytes() == old.matrix.tobytes()
