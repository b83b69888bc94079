"""``cobre init``: a new case to start from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from cobre.cli.exit_codes import ConfigurationError
from cobre.cli.outcome import Outcome
from cobre.errors import Problem

if TYPE_CHECKING:
    from rich.console import Console

    from cobre.templates import Template


def list_command(outcome: Outcome) -> None:
    """Carry out ``cobre init --list``."""
    from cobre.templates import TEMPLATES

    rows = {template.name: template.summary for template in TEMPLATES.values()}
    outcome.data = {"templates": [{"name": name, "summary": summary} for name, summary in rows.items()]}
    outcome.show = lambda console: _show(console, "Templates", rows)


def init_command(directory: Path, template: Template, force: bool, outcome: Outcome) -> None:
    """Carry out ``cobre init``: write the case of a template and a README.md beside it.

    Raises
    ------
    ConfigurationError
        When the directory cannot be used: it is a file, or holds something and ``force`` is not given.
    """
    existing = _look(directory)
    if existing and not force:
        raise ConfigurationError(
            "DirectoryNotEmpty",
            f"the directory {directory} is not empty: it holds {_listing(existing)}",
            {"field": "DIR", "value": str(directory)},
            "give another directory, or --force to replace the files that have the names of the template's",
        )
    files = _write(directory, template)
    outcome.warnings += _left_over(directory, files)
    data: dict[str, Any] = {
        "directory": str(directory.absolute()),
        "template": template.name,
        "summary": template.summary,
        "files": files,
    }
    outcome.data = data
    outcome.summary = {"file_count": len(files)}
    rows = {
        "template": f"{template.name}: {template.summary}",
        "files": str(len(files)),
        "read": str(directory / "README.md"),
        "then": f"cobre validate {directory}; cobre run {directory}",
    }
    outcome.show = lambda console: _show(console, f"New case in {directory}", rows)


def _look(directory: Path) -> list[str]:
    """Return what lies in the directory; nothing when there is none."""
    try:
        return sorted(entry.name for entry in directory.iterdir())
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        reason = "it is a file" if isinstance(error, NotADirectoryError) else str(error)
        raise ConfigurationError(
            "DirectoryUnusable",
            f"the directory {directory} cannot be used: {reason}",
            {"field": "DIR", "value": str(directory)},
            "give another directory",
        ) from error


def _listing(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _write(directory: Path, template: Template) -> list[str]:
    from cobre.results.files import atomic_write, output_errors, write_json, write_parquet

    with output_errors(directory):
        directory.mkdir(parents=True, exist_ok=True)
    contents = template.build()
    for name, content in contents.items():
        target = directory / name
        with output_errors(target):
            target.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, dict):
            write_json(target, content)
        else:
            write_parquet(target, content)
    readme = template.readme().encode("utf-8")
    atomic_write(directory / "README.md", lambda file: _write_all(file, readme))
    return ["README.md", *contents]


def _write_all(file: Any, content: bytes) -> None:
    file.write(content)


def _left_over(directory: Path, files: list[str]) -> list[Problem]:
    """Warn of case files from before, which now belong to the new case."""
    from cobre.case.format.layout import KNOWN

    return [
        Problem(
            "SemanticAmbiguity",
            f"{path} was there before and now belongs to the new case",
            {"file": path},
            "remove it, unless it fits the new case",
        )
        for path in KNOWN
        if path not in files and (directory / path).exists()
    ]


def _show(console: Console, title: str, rows: dict[str, str]) -> None:
    from cobre.cli.human import show_table

    show_table(console, title, rows)
