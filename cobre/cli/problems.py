"""Errors and warnings for people: grouped by file, nothing cut off, readable without colour."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from cobre.errors import Problem

_PLACE_KEYS = ("file", "entity", "field", "value", "line", "column", "rule")
_NARROWEST = 20
_ELSEWHERE = ""


def show_problems(console: Console, problems: Sequence[Problem], severity: str) -> None:
    """Print problems grouped by file.

    Parameters
    ----------
    console
        Where to; text is wrapped to its width on a terminal only, so that logs can be searched.
    severity
        ``"error"`` or ``"warning"``.
    """
    style = "bold red" if severity == "error" else "bold yellow"
    groups: dict[str, list[Problem]] = {}
    for problem in problems:
        file = str(problem.context.get("file", _ELSEWHERE))
        groups.setdefault(_ELSEWHERE if file == "." else file, []).append(problem)
    for file, members in groups.items():
        if file != _ELSEWHERE:
            show_line(console, 0, Text.assemble((printable(file), "bold"), f" ({_count(members, severity)})"))
        for problem in members:
            _show_problem(console, problem, severity, style, indent=2 if file != _ELSEWHERE else 0)


def _count(members: Sequence[Problem], severity: str) -> str:
    return f"{len(members)} {severity}{'' if len(members) == 1 else 's'}"


def _show_problem(console: Console, problem: Problem, severity: str, style: str, indent: int) -> None:
    title = Text.assemble((f"{severity}: ", style), f"[{problem.kind}] ", (place_of(problem.context), "bold"))
    title.rstrip()
    show_line(console, indent, title)
    show_line(console, indent + 2, Text(printable(problem.message)))
    for key, value in problem.context.items():
        if key not in _PLACE_KEYS and isinstance(value, (str, int, float)):
            show_line(console, indent + 2, Text(printable(f"{key}: {value}"), "dim"))
    if problem.suggestion:
        show_line(console, indent + 2, Text(printable(f"-> {problem.suggestion}"), "cyan"))


def place_of(context: Mapping[str, Any]) -> str:
    """Return where inside the file: entity, field and value, line and column."""
    parts = [str(context["entity"])] if "entity" in context else []
    if "field" in context:
        value = f" = {_value(context['value'])}" if "value" in context else ""
        parts.append(f"{context['field']}{value}")
    elif "value" in context:
        parts.append(f"value {_value(context['value'])}")
    if "line" in context:
        column = f", column {context['column']}" if "column" in context else ""
        parts.append(f"line {context['line']}{column}")
    return printable("  ".join(parts))


def _value(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return str(value)


def show_line(console: Console, indent: int, text: Text) -> None:
    """Print one line with an indent; on a terminal its continuation lines keep the indent."""
    lines: Sequence[Text] = [text]
    if console.is_terminal:
        lines = list(text.wrap(console, max(_NARROWEST, console.width - indent), overflow="fold"))
    for line in lines:
        console.print(Text(" " * indent) + line, soft_wrap=True)


def printable(text: str) -> str:
    """Return the text with control characters (a terminal would obey them) written as escapes."""
    return "".join(
        character if character.isprintable() or character == "\n" else repr(character)[1:-1]
        for character in text
    )
