"""The page with plots: what is in it, and what happens without plotly."""

import sys

import pytest
from builders.pages import figures, shown, visible
from builders.uncertain_cases import estimated_documents, synthetic_documents

import cobre.case
from cobre.results.pages.page import render
from cobre.results.pages.stochastic_page import PAGE, ReportExtraError, page, write_page

pytest.importorskip("plotly")


def test_figures_hold_the_numbers(tmp_path):
    report = cobre.case.build(estimated_documents()).stochastic()
    path = write_page(tmp_path, report)
    assert path == tmp_path / PAGE
    text = path.read_text(encoding="utf-8")
    found = figures(text)
    names = ["moments", "all-plants", "spatial", "orders", "openings", "opening-moments"]
    assert list(found) == names
    hydros = report.case.hydros
    moments = shown(found["moments"], f"{hydros[0].id} {hydros[0].name}")
    assert [trace["name"] for trace in moments] == ["observed", "generated"] * 3
    assert len(found["moments"]["choices"]) == len(hydros) == 3
    mean = report.quality.generated.mean_m3s[:, 0]
    assert moments[1]["y"] == pytest.approx(mean.tolist(), rel=1e-5)
    assert moments[2]["y"] == pytest.approx(report.quality.observed_std_m3s[:, 0].tolist(), rel=1e-5)
    assert len(moments[0]["x"]) == 12
    seasons = found["spatial"]["choices"]
    assert len(seasons) == 12
    assert seasons[0]["traces"][1]["z"][0] == pytest.approx(
        report.quality.generated.spatial[0, 0].tolist(), abs=1e-3
    )
    assert found["orders"]["traces"][0]["z"] == report.inflow.fit.order.T.tolist()
    assert "Coefficients: " in text


def test_the_same_page_again():
    documents = synthetic_documents(order=1)
    pages = [render(page(cobre.case.build(documents).stochastic()), PAGE) for _ in range(2)]
    assert pages[0] == pages[1]


def test_stated_moments_where_there_is_no_history():
    text = render(page(cobre.case.build(synthetic_documents(hydros=1)).stochastic()), PAGE)
    found = figures(text)
    assert "spatial" not in found
    assert "orders" not in found
    assert [trace["name"] for trace in found["moments"]["traces"]] == [
        "stated",
        "generated",
        "stated",
        "generated",
        "generated",
    ]
    assert "The case has no history" in text


def test_names_are_escaped():
    report = cobre.case.build(named("<b>Rio & Co</b>")).stochastic()
    assert "<b>Rio" not in visible(render(page(report), PAGE))


def named(name):
    documents = synthetic_documents(hydros=2)
    documents["system/hydros.json"]["hydros"][0]["name"] = name
    return documents


def test_a_study_without_hydros():
    documents = synthetic_documents(hydros=1)
    text = render(page(without_hydros(documents).stochastic()), PAGE)
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
    with pytest.raises(ReportExtraError, match="plotly is not installed") as caught:
        write_page(tmp_path, cobre.case.build(synthetic_documents()).stochastic())
    assert "pip install 'cobre-sddp[report]'" in caught.value.suggestion
    assert list(tmp_path.iterdir()) == []
