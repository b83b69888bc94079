"""How a command ended, and its JSON envelope (OUT-01)."""

from __future__ import annotations

import enum
import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cobre._version import __version__
from cobre.cli.exit_codes import ExitCode
from cobre.errors import Problem

if TYPE_CHECKING:
    from rich.console import Console

SCHEMA = "urn:cobre:response:v1"


@dataclass
class Outcome:
    """How a command ended.

    Attributes
    ----------
    command
        Its name.
    exit_code
        0 exactly when there are no errors.
    data, summary
        JSON objects of the envelope; ``None`` when the command has no result to report.
    show
        Prints the result for people.
    """

    command: str
    exit_code: ExitCode = ExitCode.OK
    errors: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)
    data: dict[str, Any] | None = None
    summary: dict[str, Any] | None = None
    show: Callable[[Console], None] | None = None

    def fail(self, exit_code: ExitCode, problems: Iterable[Problem]) -> None:
        """Record why the command failed."""
        self.errors.extend(problems)
        self.exit_code = exit_code

    def envelope(self) -> dict[str, Any]:
        """Return the JSON envelope."""
        return {
            "$schema": SCHEMA,
            "command": self.command,
            "success": not self.errors,
            "exit_code": int(self.exit_code),
            "cobre_version": __version__,
            "errors": [problem.as_dict() for problem in self.errors],
            "warnings": [problem.as_dict() for problem in self.warnings],
            "data": self.data,
            "summary": self.summary,
        }


def json_text(document: Any, indent: int | None = None) -> str:
    """Return strict JSON, in ASCII; a number that is not finite becomes ``null``."""
    return json.dumps(_strict(document), indent=indent, allow_nan=False)


def _strict(value: Any) -> Any:
    if isinstance(value, enum.Enum):
        return _strict(value.value)
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _strict(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_strict(item) for item in value]
    if hasattr(value, "tolist"):  # NumPy scalars and arrays
        return _strict(value.tolist())
    return str(value)
