"""The page with plots: what is in it, and what happens without plotly."""

import json
import re
import sys

import pytest
from builders.uncertain_cases import estimated_documents, synthetic_documents

import cobre.case
from cobre.results.report.stochastic_page import PAGE, ReportExtraError, page, write_page

pytest.importorskip("plotly")


def figures(text):
    """Data of the figures of a page, by the id of their place."""
    found = {}
    for match in re.finditer(r'Plotly\.newPlot\(\s*"([\w-]+)",\s*', text):
        found[match[1]], _ = json.JSONDecoder().raw_decode(text[match.end() :])
    return found


def test_figures_hold_the_numbers(tmp_path):
    report = cobre.case.build(estimated_documents()).stochastic()
    path = write_page(tmp_path, report)
    assert path == tmp_path / PAGE
    text = path.read_text(encoding="utf-8")
    assert "<script src=" not in text  # nothing is fetched
    found = figures(text)
    assert list(found) == ["moments", "all-plants", "spatial", "orders", "openings"]
    moments = found["moments"]
    assert [trace["name"] for trace in moments[:6]] == ["observed", "generated"] * 3
    assert len(moments) == 3 * 6
    mean = report.quality.generated.mean_m3s[:, 0]
    assert moments[1]["y"] == pytest.approx(mean.tolist(), rel=1e-5)
    assert moments[2]["y"] == pytest.approx(report.quality.observed_std_m3s[:, 0].tolist(), rel=1e-5)
    assert len(moments[0]["x"]) == 12
    assert len(found["spatial"]) == 2 * 12
    assert found["spatial"][1]["z"][0] == pytest.approx(
        report.quality.generated.spatial[0, 0].tolist(), abs=1e-3
    )
    assert found["orders"][0]["z"] == report.inflow.fit.order.T.tolist()
    assert "Coefficients: " in text


def test_the_same_page_again():
    documents = synthetic_documents(order=1)
    pages = [page(cobre.case.build(documents).stochastic()) for _ in range(2)]
    assert pages[0] == pages[1]


def test_stated_moments_where_there_is_no_history():
    text = page(cobre.case.build(synthetic_documents(hydros=1)).stochastic())
    found = figures(text)
    assert "spatial" not in found
    assert "orders" not in found
    assert [trace["name"] for trace in found["moments"]] == [
        "stated",
        "generated",
        "stated",
        "generated",
        "generated",
    ]
    assert "The case has no history" in text


def test_names_are_escaped():
    report = cobre.case.build(named("<b>Rio & Co</b>")).stochastic()
    body = page(report)
    assert "<b>Rio" not in body.split("</script>")[-1]


def named(name):
    documents = synthetic_documents(hydros=2)
    documents["system/hydros.json"]["hydros"][0]["name"] = name
    return documents


def test_a_study_without_hydros():
    documents = synthetic_documents(hydros=1)
    text = page(without_hydros(documents).stochastic())
    assert figures(text) == {}
    assert "inflow model" in text


def without_hydros(documents):
    documents["system/hydros.json"]["hydros"] = []
    documents["initial_conditions.json"] = {"storage": [], "filling_storage": []}
    for name in [*documents]:
        if name.startswith(("scenarios/inflow", "system/hydro_", "constraints/")):
            del documents[name]
    return cobre.case.build(documents)


def test_without_plotly(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "plotly", None)
    monkeypatch.setitem(sys.modules, "plotly.graph_objects", None)
    with pytest.raises(ReportExtraError, match="plotly is not installed") as caught:
        write_page(tmp_path, cobre.case.build(synthetic_documents()).stochastic())
    assert "pip install 'cobre-sddp[report]'" in caught.value.suggestion
    assert list(tmp_path.iterdir()) == []
