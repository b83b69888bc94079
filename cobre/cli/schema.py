"""``cobre schema``: the case format for editors and programs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from cobre.cli.outcome import Outcome

if TYPE_CHECKING:
    from rich.console import Console


def schema_command(directory: Path, outcome: Outcome) -> None:
    """Carry out ``cobre schema``: write a schema document for every file of the format."""
    from cobre.case.format import describe, schema_paths
    from cobre.results.files import output_errors, write_json

    files: list[dict[str, str]] = []
    for described, name in schema_paths().items():
        target = directory / name
        with output_errors(target):
            target.parent.mkdir(parents=True, exist_ok=True)
        write_json(target, describe(described))
        kind = "parquet-columns" if described.endswith(".parquet") else "json-schema"
        files.append({"path": name, "describes": described, "kind": kind})
    data: dict[str, Any] = {"directory": str(directory.absolute()), "files": files}
    outcome.data = data
    outcome.summary = {"file_count": len(files)}
    outcome.show = lambda console: _show(console, data)


def _show(console: Console, data: dict[str, Any]) -> None:
    from cobre.cli.human import show_table

    rows = {entry["describes"]: entry["path"] for entry in data["files"]}
    show_table(console, f"Schemas in {data['directory']}", rows)
