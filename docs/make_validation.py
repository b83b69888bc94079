"""Makes ``docs/validation.md``: run ``python docs/make_validation.py``, with the extra ``test`` installed.

Every number that was published, found by cobre-rs, derived by hand or solved as one LP (HiGHS) stands beside
ours. Cases of ``shared/`` beside the repository are needed for the whole page: without them the command lists
what it cannot make and writes nothing; ``--fast`` leaves out the rows marked as slow, and prints. A number
that is not what its row expects ends the command with an error, and nothing is written.
"""

from __future__ import annotations

import argparse
import importlib
import math
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "validation.md"
TESTS = ROOT / "tests"

SAME, BELOW, ABOVE, DIFFERS = "same", "bound below it", "cost above it", "differs"
SMALLEST_SHOWN = 1e-11
"""Relative differences below this are rounding, which may be another on another processor."""

HEAD = """# Validation

<!-- made by docs/make_validation.py -->

Numbers of others beside ours. `python docs/make_validation.py` makes this page, and fails where a number is
not what its row expects; the tests make the rows anew and compare. *Ours* is the trained lower bound unless
*what* names something else. Relative differences below 1e-11 are rounding.

- *same*: equal to the digits of the source, or to 1e-9.
- *bound below it*: a lower bound must lie below; the iterations of the case end before the gap is closed.
- *cost above it*: the cost of a plan cannot be less than the optimum.
- *differs*: both numbers are known to be different, for the reason given; `differences.md` has more.

Rows marked † are slow to make; the tests leave them out.
"""


@dataclass(frozen=True)
class Row:
    """One number of somebody else and ours."""

    case: str
    what: str
    source: str
    theirs: float
    ours: float
    expected: str = SAME
    tolerance: float = 1e-9
    """Relative: of *same*, and how far below a bound may lie."""
    note: str = ""
    slow: bool = False

    @property
    def difference(self) -> float:
        """Ours less theirs, relative to theirs."""
        return (self.ours - self.theirs) / max(abs(self.theirs), 1e-300)

    def is_as_expected(self) -> bool:
        """Whether the verdict holds."""
        if self.expected == SAME:
            return abs(self.difference) <= self.tolerance
        if self.expected == BELOW:
            return -self.tolerance <= self.difference <= 1e-9
        if self.expected == ABOVE:
            return -1e-9 <= self.difference <= self.tolerance
        return abs(self.difference) > 1e-6

    def text(self) -> str:
        """Return the row in Markdown."""
        verdict = f"{self.expected}: {self.note}" if self.note else self.expected
        cells = (
            self.case + (" †" if self.slow else ""),
            self.what,
            self.source,
            number(self.theirs),
            number(self.ours),
            "< 1e-11" if abs(self.difference) < SMALLEST_SHOWN else f"{self.difference:.1e}",
            verdict,
        )
        return "| " + " | ".join(cells) + " |"


@dataclass(frozen=True)
class Section:
    """Rows under one title."""

    title: str
    text: str
    rows: Callable[[Path, bool], Iterator[Row]]
    shared: bool = False
    """Whether its cases are those of ``shared/``."""


def number(value: float) -> str:
    """Return a number with ten significant digits."""
    places = 9 - math.floor(math.log10(abs(value))) if value else 0
    text = f"{round(value, places):,.{max(places, 0)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def page(sections: Sequence[tuple[Section, Sequence[Row]]]) -> str:
    """Return the page."""
    parts = [HEAD]
    for section, rows in sections:
        parts.append(f"## {section.title}\n\n{section.text}\n")
        parts.append("| case | what | source | theirs | ours | relative difference | verdict |")
        parts.append("|---|---|---|---|---|---|---|")
        parts.extend(row.text() for row in rows)
        parts.append("")
    return "\n".join(parts)


def sections() -> tuple[Section, ...]:
    """Return all sections; the numbers are in ``tests/reference/validation_rows.py``."""
    for directory in (TESTS, TESTS / "reference"):
        if str(directory) not in sys.path:
            sys.path.insert(0, str(directory))
    sys.modules.setdefault("make_validation", sys.modules[__name__])
    found: tuple[Section, ...] = importlib.import_module("validation_rows").SECTIONS
    return found


def shared_is_there() -> bool:
    """Whether the cases of ``shared/`` lie beside the repository, or beside a directory above it."""
    return any(
        (directory / "shared" / "cases" / "reference.json").is_file() for directory in ROOT.parents
    ) and any((directory / "shared" / "systems" / "net-rain").is_dir() for directory in ROOT.parents)


def made(section: Section, fast: bool) -> list[Row]:
    """Return the rows of a section; what its cases write is thrown away."""
    with tempfile.TemporaryDirectory() as work:
        return [row for row in section.rows(Path(work), fast) if not (fast and row.slow)]


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the page; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fast", action="store_true", help="without slow rows; print instead of writing")
    fast = parser.parse_args(arguments).fast
    here = shared_is_there()
    lacking = [section.title for section in sections() if section.shared and not here]
    if lacking:
        print("shared/cases and shared/systems are not here; these sections cannot be made:", file=sys.stderr)
        print("\n".join(f"  {title}" for title in lacking), file=sys.stderr)
        if not fast:
            print(f"{PAGE.relative_to(ROOT)} is left as it is", file=sys.stderr)
            return 1
    results = [(section, made(section, fast)) for section in sections() if here or not section.shared]
    wrong = [row for _, rows in results for row in rows if not row.is_as_expected()]
    if wrong:
        print("not as expected:", *(row.text() for row in wrong), sep="\n", file=sys.stderr)
        return 1
    if fast:
        print(page(results))
    else:
        PAGE.write_text(page(results), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
