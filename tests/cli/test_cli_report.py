"""``cobre report``: writes the page, or states why not."""

import json

import pytest
from builders.report_runs import small_run
from cli_helpers import run

pytest.importorskip("plotly")

__all__ = ["small_run"]


def test_the_page_and_where_it_is(small_run, tmp_path):
    page = tmp_path / "deep" / "plan.html"
    done = run("report", small_run, "--page", page, "--output-format", "json")
    envelope = json.loads(done.stdout)
    assert done.returncode == 0
    assert envelope["data"] == {"page": str(page), "bytes": page.stat().st_size}
    assert page.stat().st_size < 3_000_000
    assert list(page.parent.iterdir()) == [page]


def test_no_results(tmp_path):
    done = run("report", tmp_path)
    assert done.returncode == 2
    assert "OutputNotFound" in done.stderr
    assert "cobre train" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_an_output_that_cannot_be_written(small_run, tmp_path):
    (tmp_path / "file").write_text("")
    done = run("report", small_run, "--page", tmp_path / "file" / "page.html")
    assert done.returncode == 2
    assert "OutputError" in done.stderr or "page.html" in done.stderr
    assert (tmp_path / "file").read_text() == ""
