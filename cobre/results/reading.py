"""Reading results back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from cobre.errors import OutputError


def read_convergence(output_dir: Path | str) -> pa.Table:
    """Return the convergence of a training run, one row for each iteration.

    Returns
    -------
    pyarrow.Table
        With the columns of :data:`cobre.results.training.CONVERGENCE_SCHEMA`.

    Raises
    ------
    OutputError
        Kind ``OutputNotFound`` when there are no results, ``OutputCorrupted`` when they cannot be read.
    """
    path = _existing(output_dir, "convergence.parquet")
    try:
        return pq.read_table(path)
    except (OSError, pa.ArrowException) as error:
        raise _corrupted(path, error) from error


def read_metadata(output_dir: Path | str) -> dict[str, Any]:
    """Return the content of ``training/metadata.json`` of a training run.

    Raises
    ------
    OutputError
        Kind ``OutputNotFound`` when there are no results, ``OutputCorrupted`` when they cannot be read.
    """
    path = _existing(output_dir, "metadata.json")
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise _corrupted(path, error) from error
    if not isinstance(document, dict):
        raise _corrupted(path, "it does not hold a JSON object")
    return document


def _existing(output_dir: Path | str, name: str) -> Path:
    path = Path(output_dir) / "training" / name
    if not path.is_file():
        raise OutputError(
            "OutputNotFound",
            f"there are no training results in {output_dir}: {path} is missing",
            {"file": str(path)},
            "give the output directory of a 'cobre train' run",
        )
    return path


def _corrupted(path: Path, reason: Exception | str) -> OutputError:
    return OutputError(
        "OutputCorrupted", f"{path} cannot be read: {reason}", {"file": str(path)}, "run 'cobre train' again"
    )
