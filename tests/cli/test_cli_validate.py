"""What ``cobre validate`` says about a case without errors."""

import json
import shutil

import pytest
from builders.uncertain_cases import estimated_documents
from cli_helpers import check_envelope, copy_example, run, strict_json

import cobre.case
from cobre.cli import main


def test_summary_as_json(tmp_path, capsys):
    case = copy_example(tmp_path)
    assert main(["validate", str(case), "--output-format", "json"]) == 0
    envelope = strict_json(capsys.readouterr().out)
    check_envelope(envelope, "validate", 0)
    data = envelope["data"]
    assert data["entities"]["hydros"] == data["hydros"] == 2
    assert data["openings"] == [4, 4, 4, 4]
    assert data["paths"] == 256
    assert data["uncertainty"]["inflow"].startswith("independent normal noise")
    lp = data["lp"]
    assert lp["stages_built"] == lp["stages"] == 4
    assert lp["columns"] == [14, 14]
    assert lp["before_scaling"]["matrix"][0] <= lp["before_scaling"]["matrix"][1]
    assert len(lp["scaling"]["stages"]) == 4


def test_summary_for_people(tmp_path, capsys):
    case = copy_example(tmp_path)
    assert main(["validate", str(case)]) == 0
    out = capsys.readouterr().out
    for text in ("Valid case", "3 thermals", "256 paths", "Stage LPs", "nonzeros", "matrix range"):
        assert text in out


def test_plausibility(tmp_path, capsys):
    """The same numbers for people and for programs, and the work of training as an estimate."""
    case = copy_example(tmp_path)
    assert main(["validate", str(case), "--output-format", "json"]) == 0
    data = strict_json(capsys.readouterr().out)["data"]
    balance, effort = data["balance"], data["effort"]
    assert (balance["load_mw"], balance["capacity_mw"], balance["short_stages"]) == (140.0, 227.0, [])
    assert balance["capacity_by_kind"] == {"thermal": 85.0, "hydro": 142.0}
    assert balance["deficit_cost"] == [800.0, 3000.0]
    # 4 passes over 4 stages, 4 openings of 3 stages behind each, and the 4 of the first for the bound.
    assert effort["lps_per_iteration"] == 4 * (4 + 3 * 4) + 4
    assert effort["training_lps"] == 40 * effort["lps_per_iteration"]
    assert effort["kind"] == "estimate"
    assert main(["validate", str(case)]) == 0
    out = capsys.readouterr().out
    for text in (
        "load 140 MW, capacity 227 MW",
        "39.0 days of load when full",
        "at most 2,720 in 40 iterations",
    ):
        assert text in out
    assert f"{balance['storage_days']:.1f} days" in out
    assert "time" in out
    assert out.count("estimate:") == 2


def test_load_above_capacity_is_a_warning_of_validate(tmp_path, capsys):
    assert main(["validate", str(copy_example(tmp_path, "thermal-merit-order")), "--no-lp"]) == 0
    captured = capsys.readouterr()
    assert "Valid case, warnings: 1" in captured.out
    assert "950 MW against 820 MW (thermal 820)" in " ".join(captured.err.split())


def test_without_lps(tmp_path, capsys):
    case = copy_example(tmp_path)
    assert main(["validate", str(case), "--no-lp", "--output-format", "json"]) == 0
    assert strict_json(capsys.readouterr().out)["data"]["lp"] is None
    assert main(["validate", str(case), "--no-lp"]) == 0
    assert "Stage LPs" not in capsys.readouterr().out


def test_badly_scaled_costs_are_a_warning(tmp_path, capsys):
    case = copy_example(tmp_path)
    path = case / "system" / "thermals.json"
    document = json.loads(path.read_text())
    document["thermals"][0]["cost_per_mwh"] = 1e-9
    path.write_text(json.dumps(document))
    assert main(["validate", str(case), "--output-format", "json"]) == 0
    envelope = strict_json(capsys.readouterr().out)
    found = [
        warning for warning in envelope["warnings"] if "coefficients of the objective" in warning["message"]
    ]
    assert [warning["context"]["stage"] for warning in found] == [0, 1, 2, 3]
    assert envelope["summary"]["warning_count"] == len(envelope["warnings"])


@pytest.mark.parametrize("options", [(), ("--no-lp",)])
def test_nothing_is_compiled(tmp_path, options):
    """The cache of compiled kernels stays empty."""
    cache = tmp_path / "cache"
    done = run("validate", copy_example(tmp_path), *options, COBRE_CACHE_DIR=str(cache))
    assert done.returncode == 0
    assert not [path for path in cache.rglob("*") if path.suffix in (".nbi", ".nbc", ".so")]
    shutil.rmtree(cache, ignore_errors=True)


def test_notes_on_the_inflow_model_are_warnings(tmp_path, capsys):
    """What training would warn of: here, coefficients of a short history that no stationary series has."""
    cobre.case.build(estimated_documents(years=4, annual=True)).save(tmp_path / "case")
    assert main(["validate", str(tmp_path / "case"), "--no-lp", "--output-format", "json"]) == 0
    envelope = strict_json(capsys.readouterr().out)
    fields = [warning["context"].get("field") for warning in envelope["warnings"]]
    assert "residual_ratio" in fields
    assert envelope["summary"]["warning_count"] == len(fields)
