"""Changes of documents, their differences, and what cannot be changed."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from cobre.errors import CobreError
from cobre.mcp.tools.documents import Change, changed, decoded, encoded, unified_diff

THERMALS = "system/thermals.json"
TABLE = "scenarios/load_seasonal_stats.parquet"


def document() -> dict[str, Any]:
    return {"thermals": [{"id": 3, "name": "Gas", "a/b": {"~": 1}}, {"id": 5, "name": "Coal"}], "x": [1, 2]}


def edited(**change: Any) -> Any:
    return changed(document(), Change(file=THERMALS, **change))


def table() -> pa.Table:
    return pa.table({"bus_id": pa.array([0, 1, 1], pa.int32()), "mean_mw": [10.0, 20.0, None]})


def rows(**change: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = changed(table(), Change(file=TABLE, **change)).to_pylist()
    return found


@pytest.mark.parametrize(
    ("pointer", "place"),
    [
        ("/thermals/0/name", lambda found: found["thermals"][0]["name"]),
        ("/thermals/id=5/name", lambda found: found["thermals"][1]["name"]),
        ("/thermals/name=Coal/id", lambda found: found["thermals"][1]["id"]),
        ("/thermals/0/a~1b/~0", lambda found: found["thermals"][0]["a/b"]["~"]),
        ("/x", lambda found: found["x"]),
    ],
)
def test_a_value_is_replaced(pointer: str, place: Any) -> None:
    found = edited(pointer=pointer, value="new")
    assert place(found) == "new"
    assert len(found["thermals"]) == 2


def test_values_are_added_and_removed() -> None:
    assert edited(op="add", pointer="/x/-", value=3)["x"] == [1, 2, 3]
    assert edited(op="add", pointer="/x/0", value=3)["x"] == [3, 1, 2]
    assert edited(op="add", pointer="/y", value={"k": None})["y"] == {"k": None}
    assert edited(op="remove", pointer="/thermals/id=3")["thermals"] == [{"id": 5, "name": "Coal"}]
    assert "x" not in edited(op="remove", pointer="/x")


@pytest.mark.parametrize(
    "change",
    [
        {"pointer": "/none", "value": 1},
        {"pointer": "/none/deeper", "value": 1},
        {"pointer": "/x/2", "value": 1},
        {"pointer": "/x/-", "value": 1},
        {"pointer": "/x/-1", "value": 1},
        {"pointer": "/thermals/name=Oil/id", "value": 1},
        {"pointer": "/thermals/nothing", "value": 1},
        {"pointer": "/x/0/deeper", "value": 1},
        {"pointer": "x", "value": 1},
        {"pointer": "", "value": 1},
        {"value": 1},
        {"op": "remove", "pointer": "/none"},
        {"pointer": "/x", "value": 1, "where": {}},
        {"rows": []},
    ],
)
def test_impossible_changes_of_json_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(CobreError) as caught:
        edited(**change)
    assert caught.value.kind == "InvalidEdit"


def test_a_value_nested_too_deeply_is_refused() -> None:
    deep: Any = 1
    for _ in range(60):
        deep = [deep]
    with pytest.raises(CobreError, match="50 levels"):
        edited(pointer="/x", value=deep)


def test_rows_are_changed() -> None:
    assert [row["mean_mw"] for row in rows(where={"bus_id": 1}, scale={"mean_mw": 2.0})] == [10.0, 40.0, None]
    assert [row["mean_mw"] for row in rows(where={}, set={"mean_mw": 5})] == [5.0, 5.0, 5.0]
    assert rows(op="remove", where={"bus_id": 1}) == [{"bus_id": 0, "mean_mw": 10.0}]
    assert rows(op="add", rows=[{"bus_id": 7, "mean_mw": 1.5}])[-1] == {"bus_id": 7, "mean_mw": 1.5}


@pytest.mark.parametrize(
    "change",
    [
        {"where": {"none": 1}, "set": {"mean_mw": 1}},
        {"where": {"bus_id": 9}, "set": {"mean_mw": 1}},
        {"where": {}, "set": {"bus_id": "text"}},
        {"where": {}, "set": {"bus_id": 2**40}},
        {"where": {}, "set": {"none": 1}},
        {"where": {}},
        {"op": "remove"},
        {"op": "remove", "where": {}, "set": {"mean_mw": 1}},
        {"op": "add", "rows": [{"none": 1}]},
        {"op": "add", "rows": [{"bus_id": "text"}]},
        {"rows": [{"bus_id": 1}]},
        {"pointer": "/x"},
        {"value": 1},
    ],
)
def test_impossible_changes_of_a_table_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(CobreError) as caught:
        rows(**change)
    assert caught.value.kind == "InvalidEdit"


@pytest.mark.parametrize("indent", [2, 4])
def test_json_keeps_its_indent(indent: int) -> None:
    before = f'{{\n{" " * indent}"a": 1,\n{" " * indent}"b": "ä"\n}}\n'.encode()
    assert encoded(THERMALS, {"a": 1, "b": "ä"}, before) == before


def test_tables_survive() -> None:
    assert decoded(TABLE, encoded(TABLE, table(), None)).equals(table())


def test_differences_show_what_changes_and_nothing_else() -> None:
    assert unified_diff(THERMALS, document(), document()) == []
    lines = unified_diff(THERMALS, document(), edited(pointer="/thermals/id=3/name", value="Oil"))
    assert [line for line in lines if line[0] in "+-" and line[:3] not in ("+++", "---")] == [
        '-      "name": "Gas",',
        '+      "name": "Oil",',
    ]
    other = changed(table(), Change(file=TABLE, where={"bus_id": 0}, set={"mean_mw": 11.0}))
    assert unified_diff(TABLE, table(), other)[2:] == ["@@ -2 +2 @@", "-0,10", "+0,11"]
    assert unified_diff(TABLE, None, table())[0] == "--- /dev/null"


def test_a_difference_of_a_large_table_is_cut_off() -> None:
    many = pa.table({"bus_id": pa.array(range(50_000), pa.int32()), "mean_mw": [1.0] * 50_000})
    other = changed(many, Change(file=TABLE, where={}, scale={"mean_mw": 2.0}))
    assert len(lines := unified_diff(TABLE, many, other)) == 2_001
    assert lines[-1] == "... (cut off)"
