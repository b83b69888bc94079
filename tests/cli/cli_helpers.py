"""A copy of an example to change, and running the command line in a process of its own."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from builders.paths import EXAMPLES

ENVELOPE_KEYS = [
    "$schema",
    "command",
    "success",
    "exit_code",
    "cobre_version",
    "errors",
    "warnings",
    "data",
    "summary",
]
_OUR_VARIABLES = ("COBRE_", "SLURM_", "NUMBA_", "OMPI_", "PMI_", "COLUMNS", "NO_COLOR", "FORCE_COLOR")


def copy_example(directory: Path, name: str = "random-inflow") -> Path:
    """Copy an example (without results) into a directory."""
    return Path(shutil.copytree(EXAMPLES / name, directory / name, ignore=shutil.ignore_patterns("output")))


def edit_json(path: Path, change: Callable[[Any], object]) -> None:
    """Change the content of a JSON file in place."""
    content = json.loads(path.read_text(encoding="utf-8"))
    change(content)
    path.write_text(json.dumps(content), encoding="utf-8")


def snapshot(directory: Path) -> dict[str, bytes | None]:
    """Everything below a directory: content of files, ``None`` for directories."""
    return {
        str(path.relative_to(directory)): path.read_bytes() if path.is_file() else None
        for path in directory.rglob("*")
    }


def start(*arguments: object, cwd: Path | None = None, **environment: str) -> subprocess.Popen[str]:
    """Start ``python -m cobre`` with an environment that says nothing else about cobre."""
    keep = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(_OUR_VARIABLES) or name == "COBRE_CACHE_DIR"
    }
    return subprocess.Popen(
        [sys.executable, "-m", "cobre", *map(str, arguments)],
        cwd=cwd,
        env={**keep, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def run(*arguments: object, cwd: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run ``python -m cobre`` to its end."""
    process = start(*arguments, cwd=cwd, **environment)
    stdout, stderr = process.communicate()
    return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)


def strict_json(text: str) -> Any:
    """Parse JSON that has neither NaN nor Infinity."""

    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is not JSON")

    return json.loads(text, parse_constant=refuse)


def check_envelope(envelope: dict[str, Any], command: str, exit_code: int) -> None:
    """Check what every envelope keeps (OUT-01)."""
    assert list(envelope) == ENVELOPE_KEYS
    assert envelope["$schema"] == "urn:cobre:response:v1"
    assert envelope["command"] == command
    assert envelope["exit_code"] == exit_code
    assert envelope["success"] is (exit_code == 0)
    assert (envelope["errors"] == []) is (exit_code == 0)
    for problem in (*envelope["errors"], *envelope["warnings"]):
        assert list(problem) == ["kind", "message", "context", "suggestion"]
