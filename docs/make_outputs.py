"""Makes the tables of ``docs/outputs.md`` where columns are declared: run ``python docs/make_outputs.py``."""

from __future__ import annotations

from pathlib import Path

from cobre.results.columns import TableSpec
from cobre.results.dictionaries import CODES
from cobre.results.simulation.catalogue import TABLES

PAGE = Path(__file__).with_name("outputs.md")
BEGIN = "<!-- made by docs/make_outputs.py: edit cobre/results/simulation/catalogue.py instead -->"
END = "<!-- end of what docs/make_outputs.py makes -->"


def page(text: str) -> str:
    """Return the page with its tables made anew."""
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n\n{tables()}\n{END}{after}"


def tables() -> str:
    """Return all tables of a simulation, and the meanings of codes, in Markdown."""
    parts = [_table(spec) for spec in TABLES]
    rows = [
        f"| `{name}` | " + ", ".join(f"{number} {word}" for number, word in meanings.items()) + " |"
        for name, meanings in CODES.items()
    ]
    parts.append("\n".join(["### Codes", "", "| code | meanings |", "|---|---|", *rows, ""]))
    return "\n".join(parts)


def _table(spec: TableSpec) -> str:
    lines = [
        f"### {spec.name}",
        "",
        f"A row is {spec.row}.",
        "",
        "| column | type | unit | meaning |",
        "|---|---|---|---|",
    ]
    for column in spec.columns:
        kind = column.type + ("?" if column.nullable else "")
        lines.append(f"| `{column.name}` | {kind} | {column.unit} | {column.description} |")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
