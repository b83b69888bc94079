"""``cobre show`` and ``cobre compare``."""

from __future__ import annotations

import csv
import io
import json

import pytest
from builders.small_results import write_simulation

from cobre.cli import main


@pytest.fixture(scope="module")
def output(tmp_path_factory):
    return write_simulation(tmp_path_factory.mktemp("run"))


def run(capsys, *arguments):
    code = main([str(item) for item in arguments])
    streams = capsys.readouterr()
    return code, streams.out, streams.err


def test_a_list_of_tables(output, capsys):
    code, out, err = run(capsys, "show", output)
    assert code == 0
    assert ["hydros", "24", "45", "simulation/hydros"] in [line.split() for line in out.splitlines()]
    assert err == ""
    _, out, _ = run(capsys, "show", output, "--output-format", "json")
    assert json.loads(out)["summary"] == {"tables": 6}


def test_a_missing_simulation_is_a_warning_with_the_command(tmp_path, capsys):
    (tmp_path / "training").mkdir()
    (tmp_path / "training" / "metadata.json").write_text("{}")
    code, _, err = run(capsys, "show", tmp_path)
    assert code == 0
    assert "no simulation in" in err
    assert "cobre simulate CASE --output" in err


def test_rows_of_an_entity_with_units(output, capsys):
    code, out, _ = run(capsys, "show", output, "hydros", "--entity", "Serra", "--stage", 2)
    lines = [line.split() for line in out.splitlines()]
    assert code == 0
    assert out.startswith("hydros, 4 rows\n")
    assert lines[1][:5] == ["scenario_id", "stage_id", "block_id", "hydro_name", "start_date"]
    assert "hm3" in lines[2]
    assert "103" in lines[6]
    assert "hidden, as they are 0 or empty" in lines[7][0] + " " + " ".join(lines[7][1:])
    assert "turbined_m3s" not in out.splitlines()[1]


def test_conditions_columns_and_limits(output, capsys):
    arguments = ("buses", "--where", "deficit_mw > 0", "--columns", "deficit_mwh,spot_price")
    _, out, _ = run(capsys, "show", output, *arguments, "--limit", 1)
    assert out.startswith("buses, the first 1 of 2 rows (--limit)\n")
    _, out, _ = run(capsys, "show", output, *arguments, "--output-format", "json")
    data = json.loads(out)["data"]
    assert data["rows_total"] == 2
    assert data["units"]["deficit_mwh"] == "MWh"
    assert [row["deficit_mwh"] for row in data["rows"]] == [300.0, 1000.0]
    assert data["rows"][0]["start_date"] == "2024-01-01"


def test_csv_has_all_rows_and_numbers_in_full(output, capsys):
    _, out, err = run(capsys, "show", output, "hydros", "--output-format", "csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert (len(rows), len(rows[0]), err) == (24, 45, "")
    assert float(rows[-2]["storage_final_hm3"]) == 103.0
    _, out, _ = run(capsys, "show", output, "hydros", "--output-format", "csv", "--limit", 20)
    assert len(out.splitlines()) == 21
    _, out, _ = run(capsys, "show", output, "--output-format", "csv")
    assert out.splitlines()[0] == "table,rows,columns,file"


def test_quantiles(output, capsys):
    arguments = ("hydros", "--quantiles", "--columns", "storage_final_hm3", "--levels", "0,1")
    _, out, _ = run(
        capsys, "show", output, *arguments, "--entity", "Serra", "--stage", 2, "--output-format", "csv"
    )
    (row,) = csv.DictReader(io.StringIO(out))
    assert (row["name"], row["mean"], row["p00"], row["p100"]) == ("Serra", "101.5", "100.0", "103.0")
    code, out, _ = run(capsys, "show", output, *arguments)
    assert code == 0
    assert "hydros, over scenarios, 6 rows" in out


def test_what_columns_mean(output, capsys):
    _, out, _ = run(capsys, "show", output, "buses", "--describe")
    assert "Load that is not served" in out


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("hydro",), 2, "did you mean hydros"),
        (("hydros", "--entity", "Sera"), 1, "did you mean Serra"),
        (("hydros", "--stage", "99"), 1, "there are: 1 to 2"),
        (("hydros", "--scenario", "77"), 1, "table hydros has no scenario 77"),
        (("hydros", "--columns", "storage"), 1, "no column 'storage'"),
        (("hydros", "--where", "storage"), 1, "COLUMN OPERATOR VALUE"),
        (("hydros", "--quantiles"), 1, "quantiles of which columns"),
        (("--quantiles",), 1, "these options need a table"),
        (("hydros", "--levels", "0.5"), 1, "it needs --quantiles"),
        (("hydros", "--quantiles", "--levels", "half"), 1, "not a list of numbers"),
        (("hydros", "--quantiles", "--describe"), 1, "exclude each other"),
        (("hydros", "--quantiles", "--columns", "storage_final_hm3", "--levels", "2"), 1, "give 0 to 1"),
    ],
)
def test_what_is_wrong_is_named(output, capsys, arguments, code, message):
    found, out, err = run(capsys, "show", output, *arguments)
    assert (found, out) == (code, "")
    assert message in " ".join(err.split())


def test_no_results(tmp_path, capsys):
    code, _, err = run(capsys, "show", tmp_path)
    assert code == 2
    assert "there are no results" in err


def test_comparisons(output, tmp_path, capsys):
    other = write_simulation(tmp_path / "b", factor=2.0)
    code, out, _ = run(capsys, "compare", output, other)
    assert code == 0
    line = next(line.split() for line in out.splitlines() if line.startswith("expected "))
    assert line[:5] == ["expected", "250", "500", "$", "250"]
    assert "Stored energy" not in out  # the same in both
    code, out, _ = run(capsys, "compare", output, other, "--all")
    assert "Stored energy" in out
    code, out, err = run(capsys, "compare", output, other, "--exit-code")
    assert code == 5
    assert "differ" in err
    _, out, _ = run(capsys, "compare", output, other, "--output-format", "json")
    data = json.loads(out)["data"]
    assert data["equal"] is False
    assert {row["topic"] for row in data["rows"]} >= {"cost", "deficit", "stored energy"}
    code, out, _ = run(capsys, "compare", output, output, "--exit-code")
    assert code == 0
    assert "The same in all" in out
    code, _, _ = run(capsys, "compare", output, other, "--exit-code", "--tolerance", 0.6)
    assert code == 0
