"""The furniture of pages: complete in one file, readable without a script, the same bytes every time."""

import json
import math
import re
import sys
from html.parser import HTMLParser

import pytest
from builders.pages import figures, packed_parts, visible

from cobre.errors import OutputError
from cobre.results.pages.figures import Choice, Figure, axes, fan, fan_values, line, numbers
from cobre.results.pages.page import Page, Section, banner, render, table, tiles, write_page
from cobre.results.pages.plotly_code import ReportExtraError

pytest.importorskip("plotly")

NAME = "</script><b>Rio & Co</b>"


def small_page(**changes):
    layout = axes("iteration", "cost, $")
    plain = Figure("bounds", "Bounds", "They rise.", [line([1, 2], [3.0, math.nan], NAME, "@blue")], layout)
    base = fan(["2025-01-01"], [[1.0]] * 5, [1.0])
    choices = [Choice(f"{NAME} {at}", fan_values([[at]] * 5, [at])) for at in range(20)]
    menu = Figure("storage", "Storage", "It falls.", base, layout, choices=choices)
    parts = [plain, menu, table(["bus", "MWh"], [(NAME, "1")], caption="Deficit")]
    values = {"title": NAME, "lead": "a study", "sections": [Section("one", NAME, "intro", parts)]}
    return Page(**(values | changes))


class Outline(HTMLParser):
    """Collects headings, ids, references to ids, and names of controls."""

    VOID = ("meta", "input", "br", "link", "img")

    def __init__(self):
        super().__init__()
        self.open, self.levels, self.ids, self.references, self.unnamed = [], [], [], [], []
        self.labels, self.controls = set(), []

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        if tag not in self.VOID:
            self.open.append(tag)
        if re.fullmatch(r"h\d", tag):
            self.levels.append(int(tag[1]))
        if "id" in values:
            self.ids.append(values["id"])
        for name in ("aria-labelledby", "aria-describedby"):
            self.references += values.get(name, "").split()
        self.references += [values["href"][1:]] if tag == "a" else []
        if tag == "label":
            self.labels.add(values["for"])
        if tag in ("select", "input") and "aria-label" not in values:
            self.controls.append(values["id"])

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_structure():
    outline = Outline()
    outline.feed(render(small_page(), "x.html"))
    outline.close()
    assert outline.open == []
    assert outline.levels == [1, 2, 3, 3]
    assert len(outline.ids) == len(set(outline.ids))
    assert {*outline.references} - {"main"} <= {*outline.ids} - {"main"}
    assert {*outline.controls} <= outline.labels


def test_nothing_is_fetched():
    text = render(small_page(), "x.html")
    assert not re.search(r"https?://|<link|<img|\bsrc=|@import|url\(", text)
    assert "default-src 'none'" in text


def test_data_and_names():
    text = render(small_page(), "x.html")
    assert NAME not in visible(text)
    assert "Rio &amp; Co" in visible(text)
    found = figures(text)
    assert found["bounds"]["traces"][0]["y"] == [3, None]
    assert found["bounds"]["traces"][0]["name"] == NAME
    assert [choice["label"] for choice in found["storage"]["choices"]] == [f"{NAME} {at}" for at in range(20)]
    assert found["storage"]["choices"][7]["traces"][0] == {"y": [7]}
    assert "id='search-storage'" in text
    assert "id='choose-bounds'" not in text


def test_plotly_is_whole():
    import plotly

    code = packed_parts(render(small_page(), "x.html"))["plotly"]
    assert code == plotly.offline.get_plotlyjs()


def test_a_page_without_figures_has_no_plotly():
    page = small_page(
        sections=[Section("one", "One", parts=[tiles([("cost", "3 $", "")]), banner("", "x", [])])]
    )
    assert packed_parts(render(page, "x.html")) == {}
    assert len(render(page, "x.html")) < 40_000


def test_the_same_bytes_again():
    assert render(small_page(), "x.html") == render(small_page(), "x.html")


def test_fan_names_its_quantiles():
    quantiles = [[5.0], [25.0], [50.0], [75.0], [95.0]]
    found = {trace["name"]: trace["y"] for trace in fan(["2025-01-01"], quantiles, [40.0])}
    assert {name: found[name] for name in ("95 %", "75 %", "median", "25 %", "5 %", "mean")} == {
        "95 %": [95], "75 %": [75], "median": [50], "25 %": [25], "5 %": [5], "mean": [40],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("value", "short"), [(1234567.891, 1234600), (0.000123456, 0.00012346), (-2.0, -2), (math.inf, None)]
)
def test_numbers_are_cut_to_what_can_be_seen(value, short):
    assert numbers([value]) == [short]
    assert json.dumps(numbers([value])) == f"[{json.dumps(short)}]"


def test_nothing_is_written_where_writing_fails(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError):
        write_page(tmp_path / "file" / "x.html", small_page())
    (tmp_path / "page.html").mkdir()
    with pytest.raises(OutputError):
        write_page(tmp_path / "page.html", small_page())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "page.html"]


def test_without_plotly(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "plotly", None)
    with pytest.raises(ReportExtraError, match=r"report\.html is not written, since plotly is not installed"):
        write_page(tmp_path / "report.html", small_page())
    assert list(tmp_path.iterdir()) == []
