"""Parquet files: codecs, column types, cells, coverage."""

import io
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from builders.base_case import PATHS, base_files, errors_of, only, pick, warnings_of, write_case

from cobre.case import check, load

INFLOW, LOAD = PATHS["inflow"], PATHS["load"]


def table_bytes(table: pa.Table, **options: Any) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(table, buffer, **options)
    return buffer.getvalue()


def inflow_table(**types: pa.DataType) -> pa.Table:
    columns = base_files()["inflow"]
    defaults = {
        "hydro_id": pa.int32(),
        "stage_id": pa.int32(),
        "mean_m3s": pa.float64(),
        "std_m3s": pa.float64(),
    }
    return pa.table({name: pa.array(columns[name], {**defaults, **types}[name]) for name in columns})


@pytest.mark.parametrize("codec", ["none", "snappy", "gzip", "zstd", "lz4", "brotli"])
def test_every_codec_is_read(tmp_path: Path, codec: str) -> None:
    case = load(write_case(tmp_path, inflow=table_bytes(inflow_table(), compression=codec)))
    np.testing.assert_array_equal(case.scenarios.inflow_mean_m3s, [[40, 10], [41, 11], [42, 12]])


@pytest.mark.parametrize(
    "types",
    [
        {"hydro_id": pa.int64(), "stage_id": pa.uint8()},
        {"hydro_id": pa.float64(), "stage_id": pa.float32()},
        {"mean_m3s": pa.float32()},
        {"mean_m3s": pa.int16()},
        {"mean_m3s": pa.uint64()},
    ],
)
def test_types_that_convert_without_loss(tmp_path: Path, types: dict[str, pa.DataType]) -> None:
    case = load(write_case(tmp_path, inflow=inflow_table(**types)))
    np.testing.assert_array_equal(case.scenarios.inflow_mean_m3s, [[40, 10], [41, 11], [42, 12]])


@pytest.mark.parametrize(
    ("column", "array", "shown"),
    [
        ("hydro_id", pa.array(["1", "1", "1", "4", "4", "4"]), "string"),
        ("hydro_id", pa.array([1.5, 1, 1, 4, 4, 4]), "double"),
        ("hydro_id", pa.array([2**40, 1, 1, 4, 4, 4]), "int64"),
        ("hydro_id", pa.array([float("nan"), 1, 1, 4, 4, 4]), "double"),
        ("stage_id", pa.array([True] * 6), "bool"),
        ("mean_m3s", pa.array([2**60 + 1, 1, 1, 4, 4, 4]), "int64"),
        ("mean_m3s", pa.array(["40"] * 6), "string"),
        ("mean_m3s", pa.array([[1.0]] * 6), "list"),
        ("mean_m3s", pa.nulls(6), "null"),
    ],
)
def test_types_that_do_not_convert(tmp_path: Path, column: str, array: pa.Array, shown: str) -> None:
    table = inflow_table()
    table = table.set_column(table.column_names.index(column), column, array)
    problem = only(write_case(tmp_path, inflow=table), "SchemaViolation", file=INFLOW, field=column)
    assert shown in problem.message
    assert "int32" in problem.message or "double" in problem.message


def test_missing_column(tmp_path: Path) -> None:
    table = inflow_table().rename_columns(["hydro", "stage_id", "mean_m3s", "std"])
    errors = errors_of(write_case(tmp_path, inflow=table))
    assert "'hydro'" in (pick(errors, "SchemaViolation", file=INFLOW, field="hydro_id").suggestion or "")
    pick(errors, "SchemaViolation", file=INFLOW, field="std_m3s")
    assert len(errors) == 2


def test_repeated_column(tmp_path: Path) -> None:
    table = inflow_table()
    table = table.append_column("std_m3s", table.column("std_m3s"))
    assert "2 times" in only(write_case(tmp_path, inflow=table), "SchemaViolation", field="std_m3s").message


def test_extra_columns_are_ignored_with_a_warning(tmp_path: Path) -> None:
    table = inflow_table().append_column("note", pa.array(["x"] * 6))
    pick(warnings_of(write_case(tmp_path, inflow=table)), "SemanticAmbiguity", file=INFLOW, field="note")


@pytest.mark.parametrize("content", [b"", b"PAR1", b"not parquet at all", b"PAR1" + b"\0" * 50 + b"PAR1"])
def test_not_parquet(tmp_path: Path, content: bytes) -> None:
    only(write_case(tmp_path, inflow=content), "ParseError", file=INFLOW)


def test_damaged_parquet_never_raises(tmp_path: Path) -> None:
    good = table_bytes(inflow_table())
    generator = random.Random(5)
    path = write_case(tmp_path)
    for _ in range(60):
        damaged = bytearray(good)
        for _ in range(3):
            damaged[generator.randrange(len(damaged))] = generator.randrange(256)
        (path / INFLOW).write_bytes(bytes(damaged[: generator.choice([len(good), len(good) // 2])]))
        case, errors, _ = check(path)
        assert (case is None) == bool(errors)


@pytest.mark.parametrize(
    ("column", "value", "shown"),
    [
        ("mean_m3s", float("nan"), "NaN"),
        ("mean_m3s", None, "NaN"),
        ("mean_m3s", float("inf"), "Infinity"),
        ("std_m3s", float("-inf"), "-Infinity"),
        ("std_m3s", -0.5, -0.5),
    ],
)
def test_bad_cell(tmp_path: Path, column: str, value: float | None, shown: object) -> None:
    def edit(table: dict) -> None:
        table[column][3] = value

    path = write_case(tmp_path, inflow=edit)
    problem = only(
        path, "InvalidValue", file=INFLOW, entity="hydro 4 (LOWER)", field=f"{column}[row 3]", value=shown
    )
    assert "stage 0" in problem.message


def test_many_bad_cells_are_summed_up(tmp_path: Path) -> None:
    def edit(table: dict) -> None:
        count = 500
        table.update(bus_id=[0] * count, stage_id=[7] * count, mean_mw=[None] * count, std_mw=[0.0] * count)

    errors = errors_of(write_case(tmp_path, load=edit))
    assert len(errors) == 22  # 20 cells, the rest, and the missing rows
    assert "480 more rows: 20-499" in errors[20].message


@pytest.mark.parametrize("column", ["hydro_id", "stage_id"])
def test_null_id(tmp_path: Path, column: str) -> None:
    def edit(table: dict) -> None:
        table[column][2] = None

    assert (
        "row 2" in only(write_case(tmp_path, inflow=edit), "InvalidValue", file=INFLOW, field=column).message
    )


def test_negative_mean_is_allowed(tmp_path: Path) -> None:
    def edit(table: dict) -> None:
        table["mean_m3s"][0] = -3.0

    assert load(write_case(tmp_path, inflow=edit)).scenarios.inflow_mean_m3s[0, 0] == -3.0


def test_unknown_entity(tmp_path: Path) -> None:
    def edit(table: dict) -> None:
        for name, cell in {"hydro_id": 9, "stage_id": 0, "mean_m3s": 1.0, "std_m3s": 1.0}.items():
            table[name].append(cell)

    path = write_case(tmp_path, inflow=edit)
    only(path, "InvalidReference", file=INFLOW, entity="hydro 9", field="hydro_id", value=9)


def test_other_stages_are_ignored_with_a_warning(tmp_path: Path) -> None:
    def edit(table: dict) -> None:
        # Stage -1 is the period before the study: a row of it counts.
        for number in (-1, -2000, 7):
            for name, cell in {"hydro_id": 1, "stage_id": number, "mean_m3s": 1.0, "std_m3s": 1.0}.items():
                table[name].append(cell)

    warnings = warnings_of(write_case(tmp_path, inflow=edit))
    pick(warnings, "SemanticAmbiguity", file=INFLOW, field="stage_id", value="-2000, 7")


def test_duplicate_row(tmp_path: Path) -> None:
    def edit(table: dict) -> None:
        for column in table.values():
            column.append(column[1])

    problem = only(write_case(tmp_path, load=edit), "DuplicateId", file=LOAD, entity="bus 0 (SOUTH)", value=1)
    assert "rows 1, 6" in problem.message


def test_missing_rows_are_grouped(tmp_path: Path) -> None:
    def keep_one(table: dict) -> None:
        for name in table:
            table[name] = table[name][3:4]

    errors = errors_of(write_case(tmp_path, inflow=keep_one, load=lambda t: [c.clear() for c in t.values()]))
    pick(
        errors, "DimensionMismatch", file=INFLOW, entity="hydro 1 (UPPER)", value="0-2", rule="dimensional.1"
    )
    pick(
        errors, "DimensionMismatch", file=INFLOW, entity="hydro 4 (LOWER)", value="1-2", rule="dimensional.1"
    )
    pick(errors, "DimensionMismatch", file=LOAD, entity="buses 0, 3", value="0-2", rule="dimensional.2")
    assert len(errors) == 3


def test_folder_names_are_not_columns(tmp_path: Path) -> None:
    assert warnings_of(write_case(tmp_path / "stage_id=5")) == []
