"""The two formats of a policy directory: that of cobre, and that of cobre-rs."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from cobre.errors import Problem, ValidationError
from cobre.policy.foreign.directory import MANIFEST as FOREIGN_MANIFEST
from cobre.policy.store.manifest import MANIFEST

Format = Literal["cobre", "cobre-rs"]


def format_of(path: Path) -> Format:
    """Return the format of the policy directory at ``path``, by the manifest that it holds.

    Raises
    ------
    ValidationError
        When it holds neither.
    """
    if (path / MANIFEST).exists():
        return "cobre"
    if (path / FOREIGN_MANIFEST).exists():
        return "cobre-rs"
    what = (
        f"holds neither {MANIFEST} (a policy of cobre) nor {FOREIGN_MANIFEST} (of cobre-rs)"
        if path.is_dir()
        else "is no directory"
    )
    problem = Problem(
        "FileNotFound",
        f"{path} {what}",
        {"file": str(path)},
        "give the directory of a policy (OUTPUT/policy), or of a checkpoint (OUTPUT/checkpoints/latest)",
    )
    raise ValidationError([problem], source="the policy directory")
