"""What all pages share: one HTML file with its style, its script, its data and plotly, and no network.

Texts and tables are HTML, complete without a script. Plotly and the data of figures are compressed; the page
unpacks them (``DecompressionStream``, in all browsers since 2023) and states it where the browser cannot.
"""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

from cobre._version import __version__
from cobre.results.files import atomic_write, output_errors
from cobre.results.pages.figures import Figure
from cobre.results.pages.plotly_code import packed, plotly_code

_MENU_SEARCH = 12
"""Entries of a menu beyond which it gets a field to search in."""
_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; "
    "connect-src data: blob:"
)
"""What the browser lets the page do: nothing outside of it is fetched."""


@dataclass
class Section:
    """A part of a page with an entry in the table of contents.

    Attributes
    ----------
    intro
        A paragraph under the heading; HTML.
    parts
        Figures, and pieces of HTML (:func:`table`, :func:`card`).
    """

    key: str
    title: str
    intro: str = ""
    parts: list[Figure | str] = field(default_factory=list)


@dataclass
class Page:
    """A page.

    Attributes
    ----------
    lead
        What the page is of, under its title; HTML.
    top
        HTML before the first section.
    """

    title: str
    lead: str
    sections: list[Section]
    top: str = ""

    def figures(self) -> list[Figure]:
        """Return all figures in their order."""
        return [part for section in self.sections for part in section.parts if isinstance(part, Figure)]


def write_page(target: Path, page: Page) -> None:
    """Write a page as one file, completely or not at all.

    Raises
    ------
    ReportExtraError
        When plotly is not installed.
    OutputError
        When the file cannot be written.
    """
    content = render(page, target.name).encode()
    with output_errors(target):
        target.parent.mkdir(parents=True, exist_ok=True)
    atomic_write(target, lambda file: _write_all(file, content))


def _write_all(file: Any, content: bytes) -> None:
    file.write(content)


def render(page: Page, name: str) -> str:
    """Return a page as HTML; ``name`` is what an error calls it."""
    code = plotly_code(name)
    figures = page.figures()
    data = {figure.key: figure.as_data() for figure in figures}
    entries = "".join(
        f"<li><a href='#{section.key}'>{escape(section.title)}</a></li>" for section in page.sections
    )
    body = "\n".join(_section(section) for section in page.sections)
    title = escape(page.title)
    scripts = ""
    if figures:
        text = json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        scripts = (
            f"<script type='application/octet-stream' id='data'>{packed(text)}</script>\n"
            f"<script type='application/octet-stream' id='plotly'>{code}</script>\n"
        )
    return f"""<!DOCTYPE html>
<html lang="en" data-theme="light">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<meta name="generator" content="cobre {__version__}">
<title>{title}</title>
<style>
{_asset("page.css")}</style>
</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
<div class="frame">
<header class="top">
<div><h1>{title}</h1><p class="lead">{page.lead}</p></div>
<button id="theme" type="button" aria-pressed="false">Dark colours</button>
</header>
<noscript><p class="banner warn">Plots need JavaScript; texts and tables are complete.</p></noscript>
<p id="notice" class="banner warn" role="alert" hidden></p>
<div class="columns">
<nav class="contents" aria-label="Contents"><details open><summary>Contents</summary>
<ol>{entries}</ol></details></nav>
<main id="main">
{page.top}
{body}
</main>
</div>
<footer>Made by cobre {__version__}. Nothing of the page is fetched from a network.</footer>
</div>
{scripts}<script>
{_asset("page.js")}</script>
</body>
</html>
"""


def _asset(name: str) -> str:
    return resources.files(__package__).joinpath("assets").joinpath(name).read_text(encoding="utf-8")


def _section(section: Section) -> str:
    parts = [
        f"<section aria-labelledby='{section.key}'>",
        f"<h2 id='{section.key}'>{escape(section.title)}</h2>",
    ]
    if section.intro:
        parts.append(f"<p class='intro'>{section.intro}</p>")
    in_pair = False
    for part in section.parts:
        half = isinstance(part, Figure) and part.half
        if half != in_pair:
            parts.append("<div class='pair'>" if half else "</div>")
            in_pair = half
        parts.append(_figure(part) if isinstance(part, Figure) else part)
    if in_pair:
        parts.append("</div>")
    return "\n".join([*parts, "</section>"])


def _figure(figure: Figure) -> str:
    key = figure.key
    save = (
        f"<button class='save' id='save-{key}' type='button' aria-label='Numbers of this figure as a CSV "
        "file'>"
        "CSV</button>"
    )
    tools = ""
    if len(figure.choices) > 1:
        name = escape(figure.choice_name)
        tools = f"<label for='choose-{key}'>{name}</label><select id='choose-{key}'></select>"
        if len(figure.choices) > _MENU_SEARCH:
            tools += (
                f"<input id='search-{key}' type='search' placeholder='Search' aria-label='Search: {name}'>"
            )
        tools = f"<div class='tools'>{tools}</div>\n"
    return (
        f"<figure id='{key}' aria-labelledby='title-{key}'>\n<figcaption><div class='head'>"
        f"<h3 id='title-{key}'>{escape(figure.title)}</h3>{save}</div>"
        f"<p class='reading' id='reading-{key}'>{figure.reading}</p></figcaption>\n{tools}"
        f"<div class='plot' id='plot-{key}' role='img' aria-labelledby='title-{key}' "
        f"aria-describedby='reading-{key}' style='min-height:{figure.height}px'></div>\n</figure>"
    )


def escape(text: object) -> str:
    """Return a text as HTML shows it."""
    return html.escape(str(text))


def card(title: str, content: str) -> str:
    """Return a piece of a page with a heading and a frame."""
    heading = f"<h3>{escape(title)}</h3>" if title else ""
    return f"<div class='card'>{heading}{content}</div>"


def table(
    columns: Sequence[str], rows: Iterable[Sequence[object]], *, texts: int = 1, caption: str = ""
) -> str:
    """Return a table.

    Parameters
    ----------
    texts
        How many columns, from the left, are texts; the others are numbers.
    caption
        What a screen reader calls it.
    """
    kinds = [" class='number'" if at >= texts else "" for at in range(len(columns))]
    head = "".join(
        f"<th scope='col'{kind}>{escape(name)}</th>" for name, kind in zip(columns, kinds, strict=True)
    )
    body = "\n".join(
        "<tr>"
        + "".join(
            f"<th scope='row'{kind}>{escape(cell)}</th>" if at == 0 else f"<td{kind}>{escape(cell)}</td>"
            for at, (cell, kind) in enumerate(zip(row, kinds, strict=True))
        )
        + "</tr>"
        for row in rows
    )
    label = f" aria-label='{escape(caption)}'" if caption else ""
    return (
        f"<div class='scroll' tabindex='0' role='region'{label or ' aria-label=Table'}>"
        f"<table><thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div>"
    )


def key_values(rows: Iterable[tuple[str, object]]) -> str:
    """Return names and values as a table without a heading."""
    lines = "\n".join(
        f"<tr><th scope='row'>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in rows
    )
    return f"<div class='scroll'><table><tbody>\n{lines}\n</tbody></table></div>"


def tiles(entries: Iterable[tuple[str, str, str]]) -> str:
    """Return the most important numbers: name, value, and a note."""
    return (
        "<dl class='tiles'>"
        + "".join(
            f"<div class='tile'><dt>{escape(name)}</dt><dd>{escape(value)}"
            + (f"<span class='note'>{escape(note)}</span>" if note else "")
            + "</dd></div>"
            for name, value, note in entries
        )
        + "</dl>"
    )


def banner(kind: str, head: str, lines: Sequence[str]) -> str:
    """Return a statement, ``good``, ``warn`` or plain (``""``); the lines are HTML."""
    points = "<ul>" + "".join(f"<li>{line}</li>" for line in lines) + "</ul>" if lines else ""
    return f"<div class='banner {kind}'><p class='head'>{escape(head)}</p>{points}</div>"
