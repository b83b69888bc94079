"""Warnings for people: grouped by what they are about, with a count and three examples of each group.

A case of a real system has hundreds of warnings of a few kinds. JSON output and ``--warnings all`` list
every one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from cobre.cli.problems import place_of, printable, show_line
from cobre.errors import Problem

EXAMPLES = 3
MOST_LINES = 12
"""Lines of all groups together; groups beyond are named in the line that closes the list."""

_NUMBERS = re.compile(r"\d+([-.,\s]+\d+)*")


def group_warnings(warnings: Sequence[Problem]) -> list[list[Problem]]:
    """Return the warnings in groups of one kind, file, field and suggestion, whatever their entities.

    Groups and their members keep the order in which they were found.
    """
    groups: dict[tuple[str, str, str, str], list[Problem]] = {}
    for warning in warnings:
        about = str(warning.context.get("field") or warning.message)
        key = (
            warning.kind,
            str(warning.context.get("file", "")),
            _pattern(about, warning),
            _pattern(warning.suggestion or "", warning),
        )
        groups.setdefault(key, []).append(warning)
    return list(groups.values())


def _pattern(text: str, warning: Problem) -> str:
    """Return the text without its numbers and without the value that the warning is about."""
    value = warning.context.get("value")
    if isinstance(value, str) and value:
        text = text.replace(value, "#")
    return _NUMBERS.sub("#", text)


def show_warnings(console: Console, warnings: Sequence[Problem]) -> None:
    """Print each group, in two lines where there is room for the further examples, and how to see all."""
    groups = group_warnings(warnings)
    roomy = sum(min(2, len(group)) for group in groups) <= MOST_LINES
    for group in groups[:MOST_LINES]:
        _show_group(console, group, roomy=roomy)
    left_out = groups[MOST_LINES:]
    if left_out or any(len(group) > EXAMPLES for group in groups):
        show_line(console, 0, Text(printable(_closing_line(warnings, groups, left_out))))


def _show_group(console: Console, group: Sequence[Problem], *, roomy: bool) -> None:
    first = group[0]
    title = Text.assemble(
        ("warning: ", "bold yellow"),
        f"[{first.kind}] ",
        (f"{len(group)} like this: " if len(group) > 1 else "", "bold"),
        printable(first.message),
        (printable(f" -> {first.suggestion}") if first.suggestion else "", "cyan"),
    )
    examples = [_example(problem) for problem in group[1:EXAMPLES]]
    examples += [f"{len(group) - EXAMPLES} more"] if len(group) > EXAMPLES else []
    also = Text(printable(f"also: {'; '.join(examples)}"))
    if examples and not roomy:
        title = Text.assemble(title, " (", also, ")")
    show_line(console, 0, title)
    if examples and roomy:
        show_line(console, 2, also)


def _example(problem: Problem) -> str:
    """Return where a warning applies, or its message where it names no place."""
    where = place_of(problem.context)
    others = [f"{key} {value}" for key, value in problem.context.items() if key in ("stage", "node")]
    return where or ", ".join(others) or problem.message


def _closing_line(
    warnings: Sequence[Problem], groups: Sequence[list[Problem]], left_out: Sequence[list[Problem]]
) -> str:
    names = [
        f"{len(group)} {group[0].kind}"
        + (f" in {group[0].context['file']}" if "file" in group[0].context else "")
        for group in left_out
    ]
    unseen = f"; not shown: {', '.join(names)}" if names else ""
    kinds = "kind" if len(groups) == 1 else "kinds"
    return f"{len(warnings)} warnings of {len(groups)} {kinds}{unseen} (--warnings all lists every one)"
