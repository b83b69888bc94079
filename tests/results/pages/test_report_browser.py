"""The pages in a headless Chromium: they render, follow theme and pointer, and complain of nothing."""

from pathlib import Path

import pytest
from builders.browser import Browser
from builders.uncertain_cases import estimated_documents

import cobre.case
from cobre.results import report
from cobre.results.pages.stochastic_page import write_page

pytest.importorskip("plotly")

LINES = "document.querySelectorAll('#plot-{} .scatterlayer .trace').length"


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with Browser(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.fixture(scope="module")
def page(small_run, tmp_path_factory):
    return report(small_run, tmp_path_factory.mktemp("browser") / "page.html")


def opened(browser: Browser, path: Path, width: int = 1400, scheme: str = "light") -> None:
    browser.events.clear()
    browser.view(width, 900, scheme)
    browser.open(path)
    browser.wait("window.cobrePage")


def draw_all(browser: Browser) -> None:
    browser.run(
        "Promise.all(Object.keys(cobrePage.figures).map((id) => cobrePage.draw(id))).then(() => true)"
    )


def assert_quiet(browser: Browser) -> None:
    assert browser.complaints() == []
    assert [url for url in browser.requests() if not url.startswith(("file:", "data:", "blob:"))] == []


@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (1400, "dark")])
def test_everything_is_drawn_and_fits(browser, page, width, scheme):
    opened(browser, page, width, scheme)
    draw_all(browser)
    undrawn = "[...document.querySelectorAll('.plot')].filter((plot) => !plot.querySelector('.main-svg'))"
    assert browser.run(f"{undrawn}.map((plot) => plot.id)") == []
    assert browser.run("document.documentElement.scrollWidth") == width
    assert browser.run("document.documentElement.dataset.theme") == scheme
    assert browser.run("document.getElementById('notice').hidden") is True
    assert_quiet(browser)


def test_only_what_is_near_is_drawn_at_first(browser, page):
    opened(browser, page)
    browser.wait("document.querySelector('#plot-bounds .main-svg')")
    assert browser.run("document.querySelector('#plot-simplex .main-svg')") is None
    browser.run("document.getElementById('plot-simplex').scrollIntoView()")
    browser.wait("document.querySelector('#plot-simplex .main-svg')")
    assert_quiet(browser)


def test_the_theme_can_be_chosen(browser, page):
    opened(browser, page)
    draw_all(browser)
    ink = "getComputedStyle(document.querySelector('#plot-bounds .xtick text')).fill"
    light = browser.run(ink)
    browser.run("document.getElementById('theme').click()")
    assert browser.run("document.documentElement.dataset.theme") == "dark"
    browser.wait(f"{ink} !== '{light}'")
    opened(browser, page)
    assert browser.run("document.documentElement.dataset.theme") == "dark"  # remembered
    browser.run("localStorage.clear()")
    assert_quiet(browser)


def test_the_pointer_and_the_legend(browser, page):
    opened(browser, page)
    draw_all(browser)
    browser.run(
        "document.getElementById('plot-bounds').scrollIntoView({block: 'center', behavior: 'instant'})"
    )
    box = "document.querySelector('#plot-bounds .nsewdrag').getBoundingClientRect()"
    at = "document.getElementById('plot-bounds')._fullLayout.xaxis.d2p(3)"  # the third iteration
    x, y = browser.run(f"{box}.x + {at}"), browser.run(f"{box}.y + {box}.height / 2")
    for step in (0, 3):
        browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=x + step, y=y)
    browser.wait("document.querySelector('#plot-bounds .hoverlayer').textContent.includes('lower bound')")
    before = browser.run(LINES.format("bounds"))
    toggle = browser.run(
        "(() => { const box = document.querySelector('#plot-bounds .legendtoggle').getBoundingClientRect();"
        " return [box.x + box.width / 2, box.y + box.height / 2]; })()"
    )
    for kind in ("mousePressed", "mouseReleased"):
        browser.call(
            "Input.dispatchMouseEvent", type=kind, x=toggle[0], y=toggle[1], button="left", clickCount=1
        )
    browser.wait(f"{LINES.format('bounds')} === {before - 1}")
    assert_quiet(browser)


def test_a_plant_is_chosen_everywhere(browser, tmp_path):
    path = write_page(tmp_path, cobre.case.build(estimated_documents()).stochastic())
    opened(browser, path, 800)
    draw_all(browser)
    assert browser.run("document.getElementById('choose-moments').options.length") == 3
    shown = "document.getElementById('plot-moments').data[0].y[0]"
    first = browser.run(shown)
    browser.run(
        "(() => { const menu = document.getElementById('choose-moments'); menu.value = '1';"
        " menu.dispatchEvent(new Event('change')); })()"
    )
    browser.wait(f"{shown} !== {first}")
    assert browser.run(f"{shown} === cobrePage.figures.moments.choices[1].traces[0].y[0]")
    assert_quiet(browser)


def test_a_browser_that_cannot_unpack(browser, page):
    script = browser.call("Page.addScriptToEvaluateOnNewDocument", source="delete window.DecompressionStream")
    try:
        browser.events.clear()
        browser.open(page)
        browser.wait("!document.getElementById('notice').hidden")
        assert "need a browser of 2023" in browser.run("document.getElementById('notice').textContent")
        assert "Deficit in" in browser.run("document.body.innerText")
        assert_quiet(browser)
    finally:
        browser.call("Page.removeScriptToEvaluateOnNewDocument", identifier=script["identifier"])
