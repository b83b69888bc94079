"""``cobre stochastic``, and training that exports the same files."""

import json
import sys

import pytest
from builders.uncertain_cases import estimated_documents
from cli_helpers import check_envelope, copy_example, edit_json, run, snapshot, strict_json

import cobre.case
from cobre.cli import main


@pytest.fixture(scope="module")
def estimated(tmp_path_factory):
    path = tmp_path_factory.mktemp("case") / "estimated"
    cobre.case.build(estimated_documents(years=30)).save(path)
    return path


def test_for_people(estimated, capsys):
    before = snapshot(estimated)
    assert main(["stochastic", str(estimated)]) == 0
    out = capsys.readouterr().out
    for text in ("Stochastic model", "full_estimation", "estimated from history", "Fit over 5000 years"):
        assert text in out
    assert "lag-1 correlation" in out
    assert "Written" not in out
    assert snapshot(estimated) == before


def test_as_json(estimated, capsys):
    assert main(["stochastic", str(estimated), "--output-format", "json"]) == 0
    envelope = strict_json(capsys.readouterr().out)
    check_envelope(envelope, "stochastic", 0)
    data = envelope["data"]
    assert data["provenance"]["estimation_path"] == "full_estimation"
    assert len(data["quality"]) == 36
    assert {"season_id", "hydro_id", "observed_mean_m3s", "generated_lag1"} <= set(data["quality"][0])
    assert sum(data["order_counts"].values()) == 36
    assert len(data["opening_tree"]["nodes"]) == 12
    assert data["files"] == []
    assert 0.0 < envelope["summary"]["largest_std_deviation"] < 0.5


def test_exports_and_page(estimated, tmp_path, capsys):
    pytest.importorskip("plotly")
    assert main(["stochastic", str(estimated), "--output", str(tmp_path / "out")]) == 0
    assert "Written" in capsys.readouterr().out
    assert (tmp_path / "out" / "stochastic.html").stat().st_size > 10**6
    names = {path.name for path in (tmp_path / "out" / "stochastic").iterdir()}
    assert {"correlation.json", "noise_openings.parquet", "fitting_report.json"} <= names


def test_without_plotly_the_rest_works(estimated, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "plotly", None)
    monkeypatch.setitem(sys.modules, "plotly.graph_objects", None)
    out = tmp_path / "out"
    assert main(["stochastic", str(estimated), "--output", str(out), "--output-format", "json"]) == 0
    envelope = strict_json(capsys.readouterr().out)
    (warning,) = [item for item in envelope["warnings"] if item["kind"] == "ReportExtraMissing"]
    assert "pip install 'cobre-sddp[report]'" in warning["suggestion"]
    assert not (out / "stochastic.html").exists()
    assert (out / "stochastic" / "noise_openings.parquet").exists()
    assert len(envelope["data"]["files"]) == len(list((out / "stochastic").iterdir()))


def test_wrong_cases_and_directories(estimated, tmp_path, capsys):
    assert main(["stochastic", str(tmp_path / "nowhere")]) != 0
    assert "nowhere" in capsys.readouterr().err
    file = tmp_path / "file"
    file.write_text("")
    assert main(["stochastic", str(estimated), "--output", str(file)]) == 2
    assert "not a directory" in capsys.readouterr().err
    case = copy_example(tmp_path)
    edit_json(case / "system" / "hydros.json", lambda document: document["hydros"][0].pop("id"))
    assert main(["stochastic", str(case)]) == 3


def test_white_noise_without_a_history(tmp_path, capsys):
    case = copy_example(tmp_path)
    assert main(["stochastic", str(case), "--output-format", "json"]) == 0
    data = strict_json(capsys.readouterr().out)["data"]
    assert data["provenance"]["estimation_path"] == "user_stats_white_noise"
    assert data["sample"]["kind"] == "study"
    assert data["reductions"] == []
    assert data["fit"] == []


def test_training_exports_the_same(tmp_path):
    case = copy_example(tmp_path)
    edit_json(case / "config.json", lambda document: document.update(exports={"stochastic": True}))
    done = run("train", case, "--iterations", 2, "--output", tmp_path / "trained", "--seed", 5)
    assert done.returncode == 0, done.stderr
    edit_json(case / "config.json", lambda document: document["training"].update(tree_seed=5))
    assert main(["stochastic", str(case), "--output", str(tmp_path / "told"), "--quiet"]) == 0
    assert snapshot(tmp_path / "trained" / "stochastic") == snapshot(tmp_path / "told" / "stochastic")
    edit_json(case / "config.json", lambda document: document["exports"].update(stochastic=False))
    done = run("train", case, "--iterations", 2, "--output", tmp_path / "plain")
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "plain" / "stochastic").exists()
    assert json.loads((tmp_path / "plain" / "training" / "metadata.json").read_text())["status"] == "complete"
