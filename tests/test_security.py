"""What SECURITY.md claims: the tests that it names exist, and what no other file tests."""

from __future__ import annotations

import ast
import io
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from builders.base_case import PATHS, base_files, only, write_case

import cobre.case
from cobre import parquet_size
from cobre.durable import atomic_write
from cobre.errors import ValidationError
from cobre.parquet_size import excessive_size
from cobre.policy.store.tables import read_table

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "cobre"
INFLOW = PATHS["inflow"]


def test_every_claim_names_tests_that_exist() -> None:
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(test_\w+)`", text))
    defined = {
        node.name
        for path in (ROOT / "tests").rglob("test_*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef)
    }
    assert len(named) > 40
    assert named - defined == set()
    claims = text.partition("## Claims")[2].partition("## Known limits")[0]
    items = re.split(r"^- ", claims, flags=re.MULTILINE)[1:]
    assert [item for item in items if "`test_" not in item and not item.startswith("Known limit")] == []


def constant_table(rows: int) -> bytes:
    """A Parquet file of a few kilobytes: each column is one value, repeated."""
    ids, values = pa.array(np.zeros(rows, np.int32)), pa.array(np.ones(rows))
    table = pa.table({"hydro_id": ids, "stage_id": ids, "mean_m3s": values, "std_m3s": values})
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="zstd")
    return buffer.getvalue()


@pytest.fixture
def small_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bomb above the limit of 1 GiB would take a second to write."""
    monkeypatch.setattr(parquet_size, "ALWAYS_READ_BYTES", 2**20)


@pytest.mark.usefixtures("small_limit")
def test_a_parquet_bomb_in_a_case_is_refused(tmp_path: Path) -> None:
    bomb = constant_table(200_000)
    assert len(bomb) < 10_000
    problem = only(write_case(tmp_path, inflow=bomb), "ParseError", file=INFLOW)
    assert "6,400,000 in memory" in problem.message


@pytest.mark.usefixtures("small_limit")
def test_a_parquet_bomb_in_a_policy_is_refused(tmp_path: Path) -> None:
    bomb = constant_table(200_000)
    schema = pq.read_schema(io.BytesIO(bomb))
    with pytest.raises(ValidationError, match="6,400,000 in memory"):
        read_table(tmp_path / "cuts.parquet", bomb, schema, 200_000)


@pytest.mark.usefixtures("small_limit")
def test_a_large_table_of_ordinary_density_is_read(tmp_path: Path) -> None:
    """Two MiB of random numbers beside ids that repeat."""
    random = np.random.default_rng(3)
    table = pa.table({"id": pa.array(np.zeros(250_000, np.int32)), "value": random.random(250_000)})
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="zstd")
    assert read_table(tmp_path / "t.parquet", buffer.getvalue(), table.schema, 250_000).equals(table)
    assert excessive_size(pq.read_metadata(buffer), 2_000) is not None
    assert cobre.case.check(write_case(tmp_path / "case", inflow=base_files()["inflow"]))[0] is not None


def test_a_link_in_the_output_is_replaced_and_its_target_kept(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / "out").mkdir()
    name = tmp_path / "out" / "metadata.json"
    name.symlink_to(victim)
    atomic_write(name, lambda file: file.write(b"{}") and None)
    assert victim.read_text() == "precious"
    assert not name.is_symlink()
    assert name.read_bytes() == b"{}"
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["metadata.json"]


ALLOWED = {
    # Kernels of a private directory, checked by their digest; texts of code that the package itself made.
    ("native/cache.py", "pickle.loads"),
    ("native/jitclass.py", "exec"),
    ("comm/mpi/calls.py", "exec"),
    # Pipes between a launcher and the ranks it has started, both of one user.
    ("comm/launch/rank_process.py", "pickle.loads"),
    ("comm/launch/launched.py", "pickle.loads"),
}
DANGEROUS = {
    *("eval", "exec", "compile", "__import__", "os.system", "os.popen"),
    *("pickle.load", "pickle.loads", "pickle.Unpickler", "marshal.loads", "yaml.load", "shelve.open"),
}


def name_of(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return f"{name_of(function.value)}.{function.attr}"
    return function.id if isinstance(function, ast.Name) else ""


def test_nothing_evaluates_unpickles_or_starts_a_shell() -> None:
    found = set()
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module in ("pickle", "marshal", "shelve"):
                found.add((path.relative_to(PACKAGE).as_posix(), f"from {node.module}"))
            if not isinstance(node, ast.Call):
                continue
            name = name_of(node.func)
            options = {word.arg: word.value for word in node.keywords}
            shell = options.get("shell")
            if name in DANGEROUS or (isinstance(shell, ast.Constant) and shell.value):
                found.add((path.relative_to(PACKAGE).as_posix(), name))
            if name.endswith("np.load"):
                allowed = options.get("allow_pickle")
                assert isinstance(allowed, ast.Constant), path
                assert allowed.value is False, path
    assert found == ALLOWED
