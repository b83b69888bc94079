"""What training writes of the resolved study: limits, planes, evaporation, rows of constraints, origins."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from builders.base_case import write_case
from builders.case_files import write_files
from builders.paths import EXAMPLES
from builders.rich_case import rich_files
from builders.shared_cases import shared_cases

import cobre.case
from cobre.case.model import Case
from cobre.lp import build_templates, scale_templates
from cobre.results.bounds import bounds_table
from cobre.results.dictionaries import CODES
from cobre.results.models import echo_table, evaporation_table, planes_table, write_models
from cobre.results.training_catalogue import MEANINGS, training_schemas
from cobre.stochastic import build_opening_tree
from cobre.templates import TEMPLATES


@pytest.fixture(scope="module")
def rich(tmp_path_factory: pytest.TempPathFactory) -> Case:
    return cobre.case.load(write_files(tmp_path_factory.mktemp("rich"), rich_files()))


def test_bounds_give_every_limit_of_every_block(rich: Case) -> None:
    rows = bounds_table(rich).to_pylist()
    types = CODES["entity_type"], CODES["bound_type"]
    found = {}
    for row in rows:
        kind, bound = (
            words[str(row[name])]
            for words, name in zip(types, ("entity_type_code", "bound_type_code"), strict=True)
        )
        key = (kind, row["hydro_id"], row["entity_id"], row["stage_id"], bound, row["block_id"])
        assert key not in found
        found[key] = row["bound_value"]

    def value(kind, owner, number, stage, bound, block):
        place = (kind, owner, number, stage, bound)
        return found.get((*place, block), found.get((*place, None)))

    checked = 0
    for stage, data in zip(rich.stages, rich.stage_data, strict=True):
        for k, block in enumerate(stage.blocks):
            for h, plant in enumerate(rich.hydros):
                at = ("hydro", None, plant.id, stage.id)
                assert value(*at, "storage_max", block.id) == data.storage_max_hm3[h]
                assert value(*at, "turbined_max", block.id) == data.turbined_max_m3s[h, k]
                most = data.outflow_max_m3s[h, k]
                assert value(*at, "outflow_max", block.id) == (most if most < float("inf") else None)
                checked += 1
            for i, thermal in enumerate(rich.thermals):
                at = ("thermal", None, thermal.id, stage.id)
                assert value(*at, "generation_max", block.id) == data.thermal_max_mw[i, k]
            for c, contract in enumerate(rich.contracts):
                at = ("contract", None, contract.id, stage.id)
                assert value(*at, "flow_min", block.id) == data.contract_min_mw[c, k]
            groups = [(plant.id, group.id) for plant in rich.hydros for group in plant.unit_groups]
            for u, (owner, number) in enumerate(groups):
                at = ("hydro_unit_group", owner, number, stage.id)
                assert value(*at, "generation_max", block.id) == data.group_generation_max_mw[u, k]
    assert checked > 3


def test_bounds_of_the_small_case_by_hand(tmp_path: Path) -> None:
    rows = bounds_table(cobre.case.load(write_case(tmp_path))).to_pylist()
    first = [row for row in rows if row["entity_type_code"] == 0 and row["stage_id"] == rows[0]["stage_id"]]
    storage = {row["bound_type_code"]: row["bound_value"] for row in first[:7]}
    assert (storage[0], storage[1], storage[3]) == (10.0, 200.0, 100.0)


def test_evaporation_is_that_of_cobre_rs() -> None:
    table = evaporation_table(cobre.case.load(shared_cases() / "d08-evaporation"))
    first = table.to_pylist()[0]
    assert first == {
        "hydro_id": 0,
        "stage_id": 0,
        "intercept_m3s": pytest.approx(0.018667861409796892, rel=1e-12),
        "volume_slope_m3s_per_hm3": pytest.approx(0.00018667861409796892, rel=1e-12),
        "reference_volume_hm3": 100.0,
        "source": "default_midpoint",
    }


def test_fitted_planes_can_be_an_input_again(tmp_path: Path) -> None:
    case = cobre.case.load(write_files(tmp_path, TEMPLATES["cascade"].build()))
    table = planes_table(case)
    given = pq.ParquetFile(shared_cases() / "d06-fpha-variable-head/system/fpha_hyperplanes.parquet")
    assert set(given.schema_arrow.names) <= set(table.column_names)
    place = [plant.id for plant in case.hydros].index(table["hydro_id"][0].as_py())
    planes = case.production[0][place].planes
    rows = [row for row in table.to_pylist() if row["stage_id"] == case.stages[0].id]
    assert [[row[f"gamma_{name}"] for name in "0vqs"] for row in rows] == planes.tolist()


def test_echo_lists_terms_and_shapes() -> None:
    case = cobre.case.load(EXAMPLES / "secure-import")
    rows = echo_table(case).to_pylist()
    assert [(row["variable_kind"], row["coefficient"]) for row in rows[:2]] == [
        ("thermal_generation", -0.5),
        ("line_exchange", 1.0),
    ]
    assert {(row["derived_shape"], row["bound_lower"], row["bound_upper"]) for row in rows} == {
        ("cap", None, 20.0)
    }
    assert {row["slack_penalty"] for row in rows} == {500.0}


def test_files_of_the_resolved_study(rich: Case, tmp_path: Path) -> None:
    _, scaling = scale_templates(build_templates(rich, build_opening_tree(rich)))
    write_models(tmp_path, rich, scaling)
    for path, table in (
        ("hydro_models/evaporation_models.parquet", evaporation_table(rich)),
        ("generic_constraints/resolved_echo.parquet", echo_table(rich)),
        ("training/dictionaries/bounds.parquet", bounds_table(rich)),
    ):
        assert pq.read_table(tmp_path / path).equals(table)
        assert len(table)
    training = tmp_path / "training"
    report = json.loads((training / "scaling_report.json").read_text())
    assert [stage["stage_id"] for stage in report["stages"]] == [stage.id for stage in rich.stages]
    models = json.loads((training / "hydro_models.json").read_text())
    assert models["n_constant"] + models["n_fpha"] == len(rich.hydros)
    assert models["n_evaporation"] + models["n_no_evaporation"] == len(rich.hydros)
    origins = json.loads((training / "model_provenance.json").read_text())
    assert origins["inflow"]["n_hydros"] == len(rich.hydros)
    # A study without such things leaves no file of an earlier one.
    plain = cobre.case.load(EXAMPLES / "thermal-merit-order")
    write_models(tmp_path, plain)
    assert not list((tmp_path / "hydro_models").iterdir())
    assert not list((tmp_path / "generic_constraints").iterdir())


def test_every_column_of_training_has_a_meaning(rich: Case, tmp_path: Path) -> None:
    assert {name: list(MEANINGS[name]) for name in MEANINGS} == {
        name: schema.names for name, schema in training_schemas().items()
    }
    write_models(tmp_path, rich)
    with (tmp_path / "training/dictionaries/variables.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert all(row["description"] for row in rows)
    assert {row["file"] for row in rows} == {
        *MEANINGS,
        *("bounds", "fpha_hyperplanes", "evaporation_models", "resolved_echo"),
    }
    types = {"i8", "i32", "i64", "u32", "u64", "f64", "bool", "string", "date32"}
    assert {row["type"] for row in rows} <= types
