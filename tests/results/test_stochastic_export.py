"""Exports of a study's uncertainty are inputs that give it back."""

import json
import shutil

import pyarrow.parquet as pq
import pytest
from builders.uncertain_cases import check_same, estimated_documents, round_trip, synthetic_documents

import cobre.case
from cobre.case.format import layout
from cobre.case.format.columns import PARQUET_FILES
from cobre.results import write_stochastic
from cobre.results.stochastic import FITTING, OPENINGS


@pytest.mark.parametrize(
    "options",
    [
        {"order": 0},
        {"order": 3, "correlation": 0.6, "stages": 14},
        {"order": 2, "stages": 3},
    ],
)
def test_given_models_come_back(tmp_path, options):
    cobre.case.build(synthetic_documents(**options)).save(tmp_path / "case")
    before, after = round_trip(tmp_path / "case", tmp_path)
    check_same(before, after)
    assert after.tree.inflow_m3s.tobytes() == before.tree.inflow_m3s.tobytes()


def test_openings_are_the_same_without_the_file_too(tmp_path):
    """Statistics, coefficients and correlation alone give the same tree from the same seed."""
    cobre.case.build(estimated_documents()).save(tmp_path / "case")
    report = cobre.case.load(tmp_path / "case").stochastic()
    files = write_stochastic(tmp_path / "output", report)
    shutil.copytree(tmp_path / "case", tmp_path / "copy")
    for file in files:
        if file.name not in (FITTING, OPENINGS):
            shutil.copy(file, tmp_path / "copy" / "scenarios" / file.name)
    after = cobre.case.load(tmp_path / "copy").stochastic()
    assert after.provenance.opening_tree_source == "generated"
    assert after.tree.noise.tobytes() == report.tree.noise.tobytes()


@pytest.mark.parametrize("annual", [False, True])
@pytest.mark.parametrize("stages", [12, 4])
def test_estimated_models_come_back(tmp_path, annual, stages):
    """The format has no share of the noise: it follows from coefficients, those before the study included."""
    documents = estimated_documents(stages=stages, annual=annual)
    cobre.case.build(documents).save(tmp_path / "case")
    before, after = round_trip(tmp_path / "case", tmp_path)
    assert before.inflow.path == "full_estimation"
    assert after.inflow.path == "user_provided_all"
    check_same(before, after)
    shares = before.inflow.sigma_m3s / before.inflow.std_m3s
    assert 0.0 < shares.min() < shares.max() < 1.0


def test_files_have_the_columns_of_inputs(tmp_path):
    report = cobre.case.build(estimated_documents(annual=True)).stochastic()
    files = {file.name for file in write_stochastic(tmp_path, report)}
    assert files == {
        *("inflow_seasonal_stats.parquet", "inflow_ar_coefficients.parquet"),
        *("inflow_annual_component.parquet", "load_seasonal_stats.parquet"),
        *("correlation.json", "noise_openings.parquet", "fitting_report.json"),
    }
    for name in files:
        if name.endswith(".parquet"):
            described = PARQUET_FILES[f"scenarios/{name}"]
            table = pq.read_table(tmp_path / "stochastic" / name)
            assert table.column_names == [column.name for column in described.columns]
            assert [str(kind).replace("double", "float64") for kind in table.schema.types] == [
                column.type for column in described.columns
            ]


def test_fitting_report(tmp_path):
    report = cobre.case.build(estimated_documents()).stochastic()
    write_stochastic(tmp_path, report)
    document = json.loads((tmp_path / "stochastic" / FITTING).read_text())
    fit = report.inflow.fit
    assert set(document["hydros"]) == {"0", "1", "2"}
    for position in range(3):
        part = document["hydros"][str(position)]
        assert part["selected_order"] == fit.order[:, position].max()
        assert [len(season) for season in part["coefficients"]] == fit.order[:, position].tolist()
        assert part["coefficients"][4] == fit.coefficients[4, position, : fit.order[4, position]].tolist()
        wanted = [item for item in fit.reductions if item.hydro == position]
        assert [item["reason"] for item in part["contribution_reductions"]] == [
            item.reason for item in wanted
        ]


def test_files_of_an_earlier_run_go(tmp_path):
    write_stochastic(tmp_path, cobre.case.build(estimated_documents()).stochastic())
    assert (tmp_path / "stochastic" / FITTING).exists()
    (tmp_path / "stochastic" / "notes.txt").write_text("mine")
    files = write_stochastic(tmp_path, cobre.case.build(synthetic_documents()).stochastic())
    left = {path.name for path in (tmp_path / "stochastic").iterdir()}
    assert left == {file.name for file in files} | {"notes.txt"}
    assert FITTING not in left


def test_orders_of_zero_are_not_estimated_again(tmp_path):
    """White noise from a history: a file of coefficients without rows says so."""
    documents = estimated_documents(phi=())
    documents[layout.CONFIG]["estimation"]["max_order"] = 0
    cobre.case.build(documents).save(tmp_path / "case")
    before, after = round_trip(tmp_path / "case", tmp_path)
    assert not before.orders.any()
    check_same(before, after)
