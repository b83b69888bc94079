"""``manifest.json``: what a policy directory holds, and how to know that it is all there.

``manifest.sha256`` holds the manifest's own digest, so that ``sha256sum -c manifest.sha256`` checks it.
"""

from __future__ import annotations

import dataclasses
import datetime
import hashlib
import json
import math
import re
import socket
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np

from cobre._version import __version__
from cobre.policy.fingerprint import Fingerprint, Topic
from cobre.policy.model import LpEngines, NodeEntry, Policy, StateEntry, TransitionEntry
from cobre.policy.store.failures import damaged

FORMAT: Final = "cobre-policy"
FORMAT_VERSION: Final = 1
MANIFEST: Final = "manifest.json"
MANIFEST_DIGEST: Final = "manifest.sha256"
CUTS: Final = "cuts.parquet"
BASES: Final = "bases.parquet"
FIRST_BASES: Final = "first_bases.parquet"
STATES: Final = "states.parquet"
HISTORY: Final = "history.parquet"
ARRAYS: Final = "arrays"

Kind = Literal["policy", "checkpoint"]

_FILE_NAME: Final = re.compile(
    r"(cuts|bases|first_bases|states|history|arrays/[a-z][a-z0-9_]{0,62})\.parquet\Z"
)
DIGEST_LINE: Final = re.compile(rb"[0-9a-f]{64}  manifest\.json\n\Z")
"""What the file of the manifest's digest holds."""
_LARGEST_MANIFEST: Final = 2**30
_NON_FINITE: Final = {"Infinity": math.inf, "-Infinity": -math.inf, "NaN": math.nan}
_FOREIGN: Final = "give a directory that cobre wrote as policy or checkpoint"


@dataclass(frozen=True)
class FileEntry:
    """Size and digest of a file."""

    bytes: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """A manifest whose shape was checked; ``document`` holds all of it, ``content`` its bytes."""

    path: Path
    document: Mapping[str, Any]
    files: Mapping[str, FileEntry]
    content: bytes = field(repr=False)

    @property
    def kind(self) -> Kind:
        """What the directory is."""
        kind: Kind = self.document["kind"]
        return kind

    @property
    def sequence(self) -> int:
        """Place among the checkpoints of a run, from 1; 0 for a policy."""
        return int(self.document["sequence"])


def policy_document(policy: Policy, kind: Kind, sequence: int) -> dict[str, Any]:
    """Return the manifest of the policy; its writer adds the files."""
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "kind": kind,
        "sequence": sequence,
        "cobre_version": __version__,
        "created_at": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "hostname": socket.gethostname(),
        "policy_sha256": policy.sha256(),
        "completed_iterations": policy.completed_iterations,
        "forward_passes": policy.forward_passes,
        "seed": policy.seed,
        "cost_scale_factor": policy.cost_scale_factor,
        "started_from": policy.started_from,
        "lower_bounds": [_number(value) for value in policy.lower_bounds.tolist()],
        "upper_bounds": [_number(value) for value in policy.upper_bounds.tolist()],
        "lower_bound_kind": policy.lower_bound_kind,
        "lp_engine": None if policy.lp_engine is None else dataclasses.asdict(policy.lp_engine),
        "is_chain": policy.is_chain,
        "components": [
            {"kind": part.kind, "entity_id": part.entity_id, "offset": part.offset, "name": part.name}
            for part in policy.components
        ],
        "nodes": [
            {
                "id": node.id,
                "stage_id": node.stage_id,
                "start_date": node.start_date.isoformat(),
                "end_date": node.end_date.isoformat(),
                "future_cost_floor": _number(node.future_cost_floor),
                "loaded_cuts": node.loaded_cuts,
                "cuts": len(cuts),
            }
            for node, cuts in zip(policy.nodes, policy.cuts, strict=True)
        ],
        "transitions": [
            {"source_id": edge.source_id, "target_id": edge.target_id, "probability": edge.probability}
            for edge in policy.transitions
        ],
        "activity": {name: str(column.dtype) for name, column in policy.cuts[0].activity.items()},
        "fingerprint": {
            name: {"sha256": topic.sha256}
            | ({"value": _scalar(topic.value)} if topic.scalar else {})
            | ({"parts": dict(topic.parts)} if topic.parts else {})
            for name, topic in sorted(policy.fingerprint.topics.items())
        },
    }


def manifest_bytes(document: Mapping[str, Any]) -> tuple[bytes, bytes]:
    """Return the content of the manifest and of the file with its digest."""
    text = json.dumps(document, indent=1, ensure_ascii=True, allow_nan=False) + "\n"
    content = text.encode()
    return content, f"{hashlib.sha256(content).hexdigest()}  {MANIFEST}\n".encode()


def read_manifest(directory: Path, *, verify: bool = True) -> Manifest:
    """Read a manifest; only its shape is checked, its content is not trusted.

    Raises
    ------
    ValidationError
        When it is not there, not of this format, of a newer version, or does not match its digest.
    """
    manifest = parse_manifest(directory, read_file(directory / MANIFEST, largest=_LARGEST_MANIFEST))
    if verify:
        check_manifest(manifest)
    return manifest


def parse_manifest(directory: Path, content: bytes) -> Manifest:
    """Return the manifest of a directory from its bytes; its digest is not compared.

    Raises
    ------
    ValidationError
        When it is not of this format, or of a newer version.
    """
    path = directory / MANIFEST
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise damaged(path, f"is no JSON: {error}") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise damaged(
            path, f"is not of a policy directory of cobre (no format {FORMAT!r})", suggestion=_FOREIGN
        )
    version = document.get("format_version")
    if type(version) is not int or version < 1:
        raise damaged(path, f"has the impossible format_version {version!r}")
    if version > FORMAT_VERSION:
        raise damaged(
            path,
            f"is of format version {version}; cobre {__version__} reads up to version {FORMAT_VERSION}",
            "UnsupportedVersion",
            f"use the version of cobre that wrote it ({document.get('cobre_version')}), or a later one",
        )
    try:
        if document["kind"] not in ("policy", "checkpoint"):
            raise ValueError(f"the kind is {document['kind']!r}")
        _whole(document["sequence"])
        files = {_file_name(name): _file_entry(entry) for name, entry in as_object(document["files"]).items()}
        if CUTS not in files:
            raise ValueError(f"{CUTS} is not among its files")
    except (KeyError, TypeError, ValueError) as error:
        raise _malformed(path, error) from error
    return Manifest(path, document, files, content)


def check_manifest(manifest: Manifest) -> None:
    """Compare a manifest with the digest beside it.

    Raises
    ------
    ValidationError
        When they differ.
    """
    path = manifest.path.with_name(MANIFEST_DIGEST)
    stored = read_file(path, largest=4096).decode("ascii", "replace").split()
    found = hashlib.sha256(manifest.content).hexdigest()
    if stored != [found, MANIFEST]:
        raise damaged(
            manifest.path,
            f"was changed or damaged: its SHA-256 is {found}, {path.name} states another",
        )


def policy_of(manifest: Manifest) -> dict[str, Any]:
    """Return the manifest's part of the arguments of :class:`Policy`, types checked.

    Raises
    ------
    ValidationError
        When something is missing or of another type.
    """
    document = manifest.document
    try:
        return {
            "components": tuple(
                StateEntry(_text(e["kind"]), _whole(e["entity_id"]), _whole(e["offset"]), _text(e["name"]))
                for e in document["components"]
            ),
            "nodes": tuple(
                NodeEntry(
                    _whole(e["id"]),
                    _whole(e["stage_id"]),
                    datetime.date.fromisoformat(_text(e["start_date"])),
                    datetime.date.fromisoformat(_text(e["end_date"])),
                    _float(e["future_cost_floor"]),
                    _whole(e["loaded_cuts"]),
                )
                for e in document["nodes"]
            ),
            "transitions": tuple(
                TransitionEntry(_whole(e["source_id"]), _whole(e["target_id"]), _float(e["probability"]))
                for e in document["transitions"]
            ),
            "is_chain": _flag(document["is_chain"]),
            "forward_passes": _whole(document["forward_passes"]),
            "seed": _whole(document["seed"]),
            "completed_iterations": _whole(document["completed_iterations"]),
            "lower_bounds": np.array([_float(value) for value in document["lower_bounds"]], np.float64),
            "upper_bounds": np.array([_float(value) for value in document["upper_bounds"]], np.float64),
            "fingerprint": _fingerprint(as_object(document["fingerprint"])),
            "cost_scale_factor": _float(document["cost_scale_factor"]),
            "started_from": _optional_text(document.get("started_from")),
            "lower_bound_kind": _text(document.get("lower_bound_kind", "bound")),
            "lp_engine": _lp_engine(document.get("lp_engine")),
        }
    except (KeyError, TypeError, ValueError) as error:
        raise _malformed(manifest.path, error) from error


def cut_counts(manifest: Manifest) -> list[int]:
    """Return how many cuts each node has."""
    try:
        counts = [_whole(entry["cuts"]) for entry in manifest.document["nodes"]]
        if not all(0 <= count < 2**48 for count in counts):
            raise ValueError("a number of cuts is impossible")
    except (KeyError, TypeError, ValueError) as error:
        raise _malformed(manifest.path, error) from error
    return counts


def checkpointing_of(manifest: Manifest) -> dict[str, int]:
    """Return the options of checkpoints that were given in place of the case's; older files have none."""
    try:
        entries = as_object(manifest.document.get("checkpointing", {}))
        return {name: value if isinstance(value, bool) else _whole(value) for name, value in entries.items()}
    except (TypeError, ValueError) as error:
        raise _malformed(manifest.path, error) from error


def text_map(manifest: Manifest, key: str) -> dict[str, str]:
    """Return an object of texts."""
    try:
        return {name: _text(value) for name, value in as_object(manifest.document[key]).items()}
    except (KeyError, TypeError, ValueError) as error:
        raise _malformed(manifest.path, error) from error


def _lp_engine(entry: Any) -> LpEngines | None:
    return None if entry is None else LpEngines(entry["asked"], entry["used"])


def _malformed(path: Path, error: Exception) -> Exception:
    what = f"lacks {error}" if isinstance(error, KeyError) else f"is malformed: {error}"
    return damaged(path, what)


def read_file(path: Path, *, size: int | None = None, largest: int | None = None) -> bytes:
    """Read a regular file of the expected size.

    Raises
    ------
    ValidationError
        When it is missing, something else than a file, or of another size.
    """
    try:
        status = path.lstat()
        if not stat.S_ISREG(status.st_mode):
            raise damaged(path, "is not a regular file")
        if size is not None and status.st_size != size:
            raise damaged(path, f"has {status.st_size} bytes; its manifest states {size}")
        if largest is not None and status.st_size > largest:
            raise damaged(path, f"has {status.st_size} bytes, more than {largest}")
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        if path.parent.is_dir():
            raise damaged(path, "does not exist", "FileNotFound") from None
        wanted = "give the directory of a policy (OUTPUT/policy) or of a checkpoint"
        raise damaged(path.parent, "is no directory", "FileNotFound", wanted) from None
    except OSError as error:
        raise damaged(path, f"cannot be read: {error.strerror or error}", "IoError") from error


def _fingerprint(topics: Mapping[str, Any]) -> Fingerprint:
    return Fingerprint(
        {
            name: Topic(
                sha256=_text(entry["sha256"]),
                scalar="value" in entry,
                value=_read_scalar(entry.get("value")),
                parts={label: _text(part) for label, part in as_object(entry.get("parts", {})).items()},
            )
            for name, entry in topics.items()
        }
    )


def _file_name(name: str) -> str:
    if not _FILE_NAME.match(name):
        raise ValueError(f"{name!r} is no file of a policy directory")
    return name


def _file_entry(entry: Any) -> FileEntry:
    return FileEntry(_whole(entry["bytes"]), _text(entry["sha256"]))


def _number(value: float) -> float | str:
    """Return a number as JSON can hold it."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _scalar(value: Any) -> Any:
    return {"float": _number(value)} if isinstance(value, float) and not math.isfinite(value) else value


def _read_scalar(value: Any) -> Any:
    if isinstance(value, dict):
        return _float(value["float"])
    if not (value is None or isinstance(value, (bool, int, float, str))):
        raise TypeError(f"{value!r} is no single value")
    return value


def _float(value: Any) -> float:
    if isinstance(value, str) and value in _NON_FINITE:
        return _NON_FINITE[value]
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{value!r} is no number")
    return float(value)


def _whole(value: Any) -> int:
    if type(value) is not int or not -(2**63) <= value < 2**64:
        raise TypeError(f"{value!r} is no whole number of 64 bits")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


def _optional_text(value: Any) -> str | None:
    return None if value is None else _text(value)


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{value!r} is neither true nor false")
    return value


def as_object(value: Any) -> dict[str, Any]:
    """Return a JSON object; anything else is a ``TypeError``."""
    if not isinstance(value, dict):
        raise TypeError(f"{str(value)[:80]!r} is no object")
    return value
