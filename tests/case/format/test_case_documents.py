"""Cases built from documents in memory, edited, saved and shown as tables."""

import dataclasses
import datetime
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from builders.base_case import PATHS, assert_same, base_files, write_case
from builders.base_case_extras import rich_files
from builders.base_case_time import write_rich
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from cobre.case import Case, build, load
from cobre.errors import OutputError, ValidationError
from cobre.lp import build_templates
from cobre.stochastic import OpeningTree

THERMALS = PATHS["thermals"]
THERMAL_BOUNDS = "constraints/thermal_bounds.parquet"


def mean_tree(case: Case) -> OpeningTree:
    """Return a tree of one opening a node: the means."""
    stage = np.array([node.stage for node in case.graph.nodes])
    given = case.scenarios
    return OpeningTree(
        0,
        np.arange(len(stage) + 1),
        np.zeros((len(stage), 0)),
        np.zeros(0, np.int64),
        given.inflow_mean_m3s[stage],
        given.load_mean_mw[stage],
        np.array([data.ncs_available_mw for data in case.stage_data])[stage],
    )


def assert_same_lps(one: Case, other: Case) -> None:
    for left, right in zip(
        build_templates(one, mean_tree(one)), build_templates(other, mean_tree(other)), strict=True
    ):
        assert (left.col_names, left.row_names) == (right.col_names, right.row_names)
        for field in dataclasses.fields(left):
            if field.name != "index":
                assert_same(getattr(left, field.name), getattr(right, field.name))


def contents(path: Path) -> dict[str, bytes]:
    return {
        file.relative_to(path).as_posix(): file.read_bytes() for file in path.rglob("*") if file.is_file()
    }


def test_documents_of_a_case_are_its_files(tmp_path: Path) -> None:
    path = write_case(tmp_path, extra={"notes.txt": "mine", THERMAL_BOUNDS: rich_files()[THERMAL_BOUNDS]})
    case = load(path)
    documents = case.documents
    assert documents is not None
    assert set(documents) == {*PATHS.values(), THERMAL_BOUNDS}
    assert len(documents) == len(PATHS) + 1
    assert documents[THERMALS] == base_files()["thermals"]
    assert documents[PATHS["inflow"]].equals(pq.read_table(path / PATHS["inflow"]))
    documents[THERMALS]["thermals"].clear()
    assert documents[THERMALS] == base_files()["thermals"]
    assert repr(documents) == f"CaseDocuments({str(path)!r}: 13 files)"


def test_build_from_documents_in_memory(tmp_path: Path) -> None:
    on_disk = load(write_case(tmp_path / "case", extra=rich_files()))
    files = {PATHS[name]: content for name, content in base_files().items()} | rich_files()
    in_memory = build(files, tmp_path / "case")
    assert_same(on_disk, in_memory)
    assert in_memory.path == on_disk.path
    assert not list((tmp_path / "case").glob("*.tmp"))


def test_build_says_what_is_wrong_in_memory() -> None:
    files = {PATHS[name]: content for name, content in base_files().items()}
    files["config.json"]["training"]["tree_seed"] = object()
    files[PATHS["load"]] = {"bus_id": [0, 1], "stage_id": [0]}
    files[PATHS["buses"]] = None
    files["system/thermal.json"] = {}
    with pytest.raises(ValidationError) as caught:
        build(files)
    found = {(problem.context["file"], problem.kind) for problem in caught.value.problems}
    assert {
        ("config.json", "ParseError"),
        (PATHS["load"], "ParseError"),
        (PATHS["buses"], "FileNotFound"),
        ("system/thermal.json", "SchemaViolation"),
    } <= found


def test_numpy_values_and_dates_in_memory() -> None:
    files = {PATHS[name]: content for name, content in base_files().items()}
    files[THERMALS]["thermals"][0]["cost_per_mwh"] = np.float64(33.5)
    files["stages.json"]["stages"][0]["start_date"] = datetime.date(2024, 1, 1)
    assert build(files).stage_data[0].thermal_cost[0] == 33.5


@pytest.mark.parametrize("rich", [False, True])
def test_saved_case_is_equal(tmp_path: Path, rich: bool) -> None:
    case = load(write_case(tmp_path / "one", extra=rich_files() if rich else {}))
    saved = case.save(tmp_path / "two")
    assert saved == (tmp_path / "two").resolve()
    again = load(saved)
    assert_same(case, again)
    assert_same_lps(case, again)
    assert (saved / "config.json").read_text().startswith("{\n  ")
    codec = pq.ParquetFile(saved / PATHS["inflow"]).metadata.row_group(0).column(0).compression
    assert codec == "ZSTD"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["one", "two"]


def test_saved_case_with_nodes_and_a_boundary_policy(tmp_path: Path) -> None:
    case = load(write_rich(tmp_path / "one"))
    again = load(case.save(tmp_path / "two"))
    assert case.policy.boundary_path is not None
    assert case.policy.boundary_path.resolve() == tmp_path / "one-later"
    assert_same(case, again)
    assert_same_lps(case, again)


@settings(
    max_examples=15,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    # Costs that one LP can hold, see cobre.lp.cost_unit.
    costs=st.lists(st.just(0.0) | st.floats(1e-3, 1e6), min_size=2, max_size=2),
    storage=st.floats(10.0, 200.0),
    inflow=st.lists(st.floats(-100, 1e4), min_size=6, max_size=6),
    name=st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=8),
)
def test_any_case_survives_saving(
    tmp_path: Path, costs: list[float], storage: float, inflow: list[float], name: str
) -> None:
    files: dict[str, Any] = {PATHS[key]: content for key, content in base_files().items()}
    for thermal, cost in zip(files[THERMALS]["thermals"], costs, strict=True):
        thermal["cost_per_mwh"] = cost
    files["initial_conditions.json"]["storage"][0]["value_hm3"] = storage
    files[PATHS["hydros"]]["hydros"][0]["name"] = name
    files[PATHS["inflow"]]["mean_m3s"] = inflow
    case = build(files, tmp_path / "never written")
    again = load(case.save(tmp_path / "saved", overwrite=True))
    assert_same(case, again)
    assert_same_lps(case, again)


def test_save_refuses_what_is_there(tmp_path: Path) -> None:
    case = load(write_case(tmp_path / "one"))
    (tmp_path / "empty").mkdir()
    case.save(tmp_path / "empty")
    before = contents(tmp_path)
    with pytest.raises(OutputError, match="not empty"):
        case.save(tmp_path / "empty")
    with pytest.raises(OutputError, match="not a directory"):
        case.save(tmp_path / "one" / "config.json")
    with pytest.raises(OutputError, match="cannot be written"):
        case.save(tmp_path / "one" / "config.json" / "below")
    assert contents(tmp_path) == before


def test_overwriting_keeps_what_is_not_of_the_case(tmp_path: Path) -> None:
    path = write_case(
        tmp_path / "one",
        extra={"notes.txt": "mine", "output/result.txt": "kept", "system/.hidden": "x", **rich_files()},
    )
    case = load(path)
    editor = case.edit()
    del editor[THERMAL_BOUNDS]
    editor.build().save(path, overwrite=True)
    assert not (path / THERMAL_BOUNDS).exists()
    assert (path / "notes.txt").read_text() == "mine"
    assert (path / "output" / "result.txt").read_text() == "kept"
    assert (path / "system" / ".hidden").read_text() == "x"
    assert [p.name for p in tmp_path.iterdir()] == ["one"]
    assert load(path).stage_data[1].thermal_cost[0] == 50.0
    # The case that was loaded before still knows its own files.
    assert case.edit().build().stage_data[1].thermal_cost[0] == 60.0


def test_edit_values_and_tables(tmp_path: Path) -> None:
    case = load(write_case(tmp_path, extra=rich_files()))
    editor = case.edit()
    editor[THERMALS]["thermals"][0]["cost_per_mwh"] = 30
    table = editor.table(THERMAL_BOUNDS)
    costs = [70.0, None, 61.0]
    place = table.column_names.index("cost_per_mwh")
    editor.set_table(THERMAL_BOUNDS, table.set_column(place, "cost_per_mwh", pa.array(costs)))
    editor["constraints/penalty_overrides_bus.parquet"] = {
        "bus_id": [0], "stage_id": [2], "excess_cost": [0.25],
    }  # fmt: skip
    new = editor.build()
    assert [data.thermal_cost[0] for data in new.stage_data] == [30.0, 70.0, 30.0]
    assert new.stage_data[2].excess_cost[0] == 0.25
    assert [data.thermal_cost[0] for data in case.stage_data] == [50.0, 60.0, 50.0]
    editor[THERMALS]["thermals"][0]["cost_per_mwh"] = 31
    assert new.edit()[THERMALS]["thermals"][0]["cost_per_mwh"] == 30
    assert repr(editor).startswith("CaseEditor(")


def test_edit_errors(tmp_path: Path) -> None:
    editor = load(write_case(tmp_path)).edit()
    with pytest.raises(KeyError, match=r"Did you mean 'system/thermals.json'"):
        editor["system/thermal.json"]
    with pytest.raises(KeyError, match="not a file of the format"):
        editor["system/thermal.json"] = {}
    with pytest.raises(KeyError, match="has no file"):
        del editor[THERMAL_BOUNDS]
    with pytest.raises(TypeError, match="must be a dict"):
        editor[THERMALS] = []
    with pytest.raises(TypeError, match="mapping of columns"):
        editor[THERMAL_BOUNDS] = 3
    with pytest.raises(ValueError, match="make no table"):
        editor[THERMAL_BOUNDS] = {"thermal_id": [1], "stage_id": [1, 2]}
    with pytest.raises(TypeError, match="not a table"):
        editor.table(THERMALS)
    with pytest.raises(TypeError, match="not a table"):
        editor.set_table(THERMALS, {})
    editor[THERMALS]["thermals"][0]["bus_id"] = 9
    editor[PATHS["hydros"]]["hydros"][0]["typo"] = {1, 2}
    with pytest.raises(ValidationError) as caught:
        editor.build()
    assert {problem.context["file"] for problem in caught.value.problems} == {THERMALS, PATHS["hydros"]}
    del editor[PATHS["buses"]]
    assert PATHS["buses"] not in editor
    with pytest.raises(ValidationError, match="missing"):
        editor.build()


def test_tables_of_a_case(tmp_path: Path) -> None:
    case = load(write_case(tmp_path, extra=rich_files()))
    tables = case.to_arrow()
    assert tables["hydros"].column("name").to_pylist() == ["UPPER", "LOWER"]
    assert tables["hydros"].column("downstream_id").to_pylist() == [4, None]
    assert tables["unit_groups"].to_pydict()["hydro_id"] == [1, 4, 4]
    assert tables["stages"].column("hours").to_pylist() == [744.0, 696.0, 744.0]
    assert tables["stages"].column("start_date").to_pylist()[0] == datetime.date(2024, 1, 1)
    assert tables["blocks"].num_rows == 6
    limits = [
        row for row in tables["thermal_limits"].to_pylist() if (row["thermal_id"], row["stage_id"]) == (0, 1)
    ]
    assert [(row["block_id"], row["thermal_max_mw"], row["thermal_cost"]) for row in limits] == [
        (0, 30.0, 60.0),
        (1, 25.0, 60.0),
    ]
    hydro = tables["hydro_stages"].to_pylist()[2]
    assert (hydro["stage_id"], hydro["hydro_id"], hydro["status"]) == (1, 1, "operating")
    assert hydro["spillage_cost"] == 0.5
    assert tables["loads"].column("mean_mw").to_pylist()[:2] == [70.0, 30.0]
    assert tables["contracts"].column("kind").to_pylist() == ["import", "export"]
    assert tables["production"].column("productivity_mw_per_m3s").to_pylist()[:2] == [1.1, 1.4]
    assert tables["transitions"].num_rows == 2
    for name, table in tables.items():
        assert isinstance(table, pa.Table), name
        assert table.num_columns > 1, name
        pq.write_table(table, tmp_path / f"{name}.table")


def test_tables_of_a_case_with_little_in_it(tmp_path: Path) -> None:
    def drop(name: str) -> Any:
        return lambda file: file[name].clear()

    case = load(
        write_case(
            tmp_path,
            hydros=drop("hydros"),
            thermals=drop("thermals"),
            lines=drop("lines"),
            initial=drop("storage"),
            production=None,
            inflow=None,
        )
    )
    tables = case.to_arrow()
    assert tables["hydros"].num_rows == tables["hydro_limits"].num_rows == tables["planes"].num_rows == 0
    assert case.summary().as_dict()["entities"]["hydros"] == 0


def test_summary(tmp_path: Path) -> None:
    summary = load(write_case(tmp_path)).summary()
    assert summary.entities["hydros"] == 2
    assert summary.openings == (1, 4, 4)
    assert summary.paths == 16
    assert summary.graph == "chain"
    assert summary.production == {"constant_productivity": 2}
    assert "independent normal noise at 1 of 2 buses (saa)" in str(summary)
    json.dumps(summary.as_dict(), allow_nan=False)
    graph = load(write_rich(tmp_path / "nodes")).summary()
    assert (graph.graph, graph.nodes) == ("nodes", 4)
    assert graph.paths == 8
    assert graph.forward_passes is None
    assert "external scenarios at nodes" in graph.uncertainty["load"]


def test_readable_reprs(tmp_path: Path) -> None:
    case = load(write_case(tmp_path, extra=rich_files()))
    assert repr(case.stage_data[0]) == "StageData(2 hydros, 2 thermals, 2 blocks)"
    assert repr(case.scenarios) == "Scenarios(3 stages, 2 hydros; external: none)"
    assert repr(case.production[0][0]) == "ProductionModel('constant_productivity', 1.1 MW/(m3/s))"
    assert "2 contracts" in repr(case)
