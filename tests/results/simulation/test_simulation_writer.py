"""Files of simulations: complete, the same bytes whatever writes them, readable by anything."""

from __future__ import annotations

import csv
import hashlib
import json
import pickle
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from builders.case_files import write_files
from builders.rich_case import rich_files
from builders.simulated_blocks import Simulated, simulate

import cobre.case
from cobre.durable import atomic_files
from cobre.errors import OutputError
from cobre.results.simulation import SimulationTables, SimulationWriter, remove_tables
from cobre.results.simulation import writer as writing
from cobre.results.simulation.writer import SINGLE_FILES


@pytest.fixture(scope="module")
def blocks(tmp_path_factory: pytest.TempPathFactory) -> list[Simulated]:
    """Two blocks of a study with a file of nearly every kind, of two scenarios and of one."""
    case = cobre.case.load(write_files(tmp_path_factory.mktemp("case"), rich_files()))
    return [simulate(case, scenarios=2), simulate(case, scenarios=1, first=2)]


def writer_of(blocks: list[Simulated], directory: Path) -> SimulationWriter:
    first = blocks[0]
    return SimulationWriter(directory, SimulationTables(first.case, first.templates, first.layout))


def digests(directory: Path) -> dict[str, str]:
    return {
        str(path.relative_to(directory)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


def test_files_hold_the_tables_whatever_wrote_them(blocks: list[Simulated], tmp_path: Path) -> None:
    one, other = writer_of(blocks, tmp_path / "one"), writer_of(blocks, tmp_path / "other")
    for number, simulated in enumerate(blocks):
        assert not one.is_written(number)
        one.write_block(number, simulated.block)
        assert one.is_written(number)
    # Another process, another order, a block written twice.
    for number in (1, 0, 1):
        writer_of(blocks, tmp_path / "other").write_block(number, blocks[number].block)
    one.finish(2)
    other.finish(2)
    assert digests(tmp_path / "one") == digests(tmp_path / "other")
    tables = [one.tables.tables(simulated.block) for simulated in blocks]
    for name, schema in one.tables.schemas().items():
        whole = pa.concat_tables([part[name] for part in tables])
        if name in SINGLE_FILES:
            read = pq.read_table(tmp_path / "one" / f"{name}.parquet")
            paths = [tmp_path / "one" / f"{name}.parquet"]
        else:
            paths = sorted((tmp_path / "one" / name).iterdir())
            assert [path.name for path in paths] == ["part-00000.parquet", "part-00001.parquet"]
            read = ds.dataset(tmp_path / "one" / name).to_table()
            assert pq.read_table(tmp_path / "one" / name).equals(read)
        assert read.schema.equals(schema), name
        assert read.equals(whole), name
        for path in paths:
            metadata = pq.ParquetFile(path).metadata
            assert metadata.metadata is None
            compressions = {
                metadata.row_group(group).column(column).compression
                for group in range(metadata.num_row_groups)
                for column in range(metadata.num_columns)
            }
            assert compressions == {"ZSTD"}
    assert {path.name for path in (tmp_path / "one").iterdir()} == {
        *("dictionaries", *(f"{name}.parquet" for name in SINGLE_FILES)),
        *(name for name in one.tables.schemas() if name not in SINGLE_FILES),
    }


def test_tables_of_an_earlier_simulation_are_removed_and_nothing_else(
    blocks: list[Simulated], tmp_path: Path
) -> None:
    writer = writer_of(blocks, tmp_path)
    writer.write_block(0, blocks[0].block)
    writer.finish(1)
    (tmp_path / "notes.txt").write_text("mine")
    remove_tables(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
    remove_tables(tmp_path / "missing")


def test_a_block_that_cannot_be_written_leaves_no_part(blocks: list[Simulated], tmp_path: Path) -> None:
    (tmp_path / "thermals").write_text("in the way")
    with pytest.raises(OutputError, match="thermals cannot be written"):
        writer_of(blocks, tmp_path).write_block(0, blocks[0].block)
    assert not list(tmp_path.rglob("*.parquet"))
    assert not list(tmp_path.rglob("*.tmp"))


def test_files_are_written_together_or_not_at_all(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_text("old")

    def write_half() -> None:
        with atomic_files([old, new]) as (first, _):
            first.write(b"replaced")
            raise KeyError

    with pytest.raises(KeyError):
        write_half()
    with pytest.raises(OutputError, match="below cannot be written"), atomic_files([old, new / "below"]):
        pass
    assert old.read_text() == "old"
    assert list(tmp_path.iterdir()) == [old]
    with atomic_files([old, new]) as (first, second):
        first.write(b"replaced")
        second.write(b"whole")
    assert (old.read_text(), new.read_text()) == ("replaced", "whole")
    assert sorted(tmp_path.iterdir()) == [new, old]
    with atomic_files([]) as files:
        assert files == []


def test_a_disk_that_is_full_in_the_middle_of_a_block_leaves_no_part(
    blocks: list[Simulated], tmp_path: Path
) -> None:
    limit = 1 << 10
    code = (
        "import pickle, resource, signal, sys; from pathlib import Path\n"
        "from cobre.results.simulation import SimulationTables, SimulationWriter\n"
        "case, templates, layout, block = pickle.loads(Path(sys.argv[1]).read_bytes())\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))\n"
        "writer = SimulationWriter(Path(sys.argv[2]), SimulationTables(case, templates, layout))\n"
        "writer.write_block(0, block)\n"
    )
    found = blocks[0]
    given = tmp_path / "given"
    given.write_bytes(pickle.dumps((found.case, found.templates, found.layout, found.block)))
    output = tmp_path / "output"
    ended = subprocess.run(
        [sys.executable, "-c", code, given, output], capture_output=True, text=True, timeout=60
    )
    assert "cannot be written: File too large" in ended.stderr.splitlines()[-1]
    assert "Exception ignored" not in ended.stderr
    assert not [path for path in output.rglob("*") if path.is_file()]


def test_tables_made_for_a_few_scenarios_at_a_time_are_the_same(
    blocks: list[Simulated], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer_of(blocks, tmp_path / "whole").write_block(0, blocks[0].block)
    monkeypatch.setattr(writing, "_CELLS_AT_ONCE", 1)
    writer = writer_of(blocks, tmp_path / "single")
    writer.write_block(0, blocks[0].block)
    for whole in (tmp_path / "whole").rglob("*.parquet"):
        single = pq.ParquetFile(tmp_path / "single" / whole.relative_to(tmp_path / "whole"))
        assert single.num_row_groups == len(blocks[0].block.stages[0].node)
        assert single.read().equals(pq.read_table(whole))


def test_dictionaries_describe_what_is_written(blocks: list[Simulated], tmp_path: Path) -> None:
    writer = writer_of(blocks, tmp_path)
    writer.write_block(0, blocks[0].block)
    writer.finish(1)
    with (tmp_path / "dictionaries" / "variables.csv").open(newline="") as file:
        variables = list(csv.DictReader(file))
    arrow = {"i8": "int8", "i32": "int32", "f64": "double", "bool": "bool", "string": "string"}
    arrow["date32"] = "date32[day]"
    for name, schema in writer.tables.schemas().items():
        rows = [row for row in variables if row["file"] == name]
        assert [row["column"] for row in rows] == schema.names
        assert [arrow[row["type"]] for row in rows] == [str(kind) for kind in schema.types]
        assert [row["nullable"] for row in rows] == [str(field.nullable).lower() for field in schema]
    assert {row["file"] for row in variables} == set(writer.tables.schemas())
    codes = json.loads((tmp_path / "dictionaries" / "codes.json").read_text())
    assert codes["operative_state"] == {
        "0": "deactivated",
        "1": "maintenance",
        "2": "operating",
        "3": "saturated",
    }
    with (tmp_path / "dictionaries" / "entities.csv").open(newline="") as file:
        entities = list(csv.DictReader(file))
    case = blocks[0].case
    found = {}
    for row in entities:
        found.setdefault(codes["entity_type"][row["entity_type_code"]], {})[int(row["entity_id"])] = row
    assert {number: row["name"] for number, row in found["bus"].items()} == {
        bus.id: bus.name for bus in case.buses
    }
    assert {number: int(row["bus_id"]) for number, row in found["thermal"].items()} == {
        thermal.id: thermal.bus_id for thermal in case.thermals
    }
    groups = sum(len(plant.unit_groups) for plant in case.hydros)
    names = [row["name"] for row in entities if row["entity_type_code"] == "8"]
    assert len(names) == groups
    assert f"{case.hydros[0].id}/{case.hydros[0].unit_groups[0].name}" in names
