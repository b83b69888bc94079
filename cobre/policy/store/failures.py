"""Errors that report damage of a policy directory."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from cobre.errors import Problem, ValidationError

DAMAGED: Final = "PolicyDamaged"
_AGAIN: Final = "use an earlier checkpoint or a copy of the directory, or train again"


def damaged(path: Path, what: str, kind: str = DAMAGED, suggestion: str = _AGAIN) -> ValidationError:
    """Return the error of a file that is not what it must be; the message is ``"<path> <what>"``."""
    problem = Problem(kind, f"{path} {what}", {"file": str(path)}, suggestion)
    return ValidationError([problem], source="the policy directory")
