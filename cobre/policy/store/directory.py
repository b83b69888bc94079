"""Writing and reading a policy directory: complete or not there."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cobre.durable import output_errors, put_directory, sync_directory
from cobre.errors import OutputError, ValidationError
from cobre.policy.bases import FirstBases, StartingBases
from cobre.policy.history import (
    HistoryColumn,
    column_type,
    history_of,
    history_schema,
    history_table,
)
from cobre.policy.model import ARRAY_DTYPES, CheckpointData, Policy
from cobre.policy.store import manifest as parts
from cobre.policy.store import tables
from cobre.policy.store.failures import damaged
from cobre.policy.store.manifest import check_manifest, parse_manifest, read_file, read_manifest
from cobre.policy.visited import VisitedRows

_OWN_NAMES: Final = frozenset(
    {
        *(parts.MANIFEST, parts.MANIFEST_DIGEST, parts.ARRAYS),
        *(parts.CUTS, parts.BASES, parts.FIRST_BASES, parts.STATES, parts.HISTORY),
    }
)
_BLOCK: Final = 2**20
_ARRAY_FILE: Final = re.compile(r"[a-z][a-z0-9_]{0,62}\.parquet\Z")


def write_policy_directory(path: Path, data: Policy, *, compress: bool = True) -> None:
    """Write a policy to ``path``, in place of the one there, if any.

    Raises
    ------
    OutputError
        When it cannot be written, or ``path`` holds anything that is not of a policy directory.
    """
    write_directory(path, CheckpointData(data), "policy", 0, compress)


def write_directory(
    path: Path, data: CheckpointData, kind: parts.Kind, sequence: int, compress: bool
) -> None:
    """Write a policy or checkpoint beside its place, sync it, and give it its name."""
    staging = path.with_name(f".{path.name}.{secrets.token_hex(4)}.staging")
    with output_errors(path):
        check_replaceable(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        remove_leftovers(path.parent, re.escape(path.name))
        try:
            _write_files(staging, data, kind, sequence, compress)
            put_directory(staging, path)
        except BaseException:
            shutil.rmtree(staging, ignore_errors=True)
            raise


def remove_leftovers(parent: Path, name: str) -> None:
    """Remove what killed writers of directories left behind.

    Where the writer was killed while a complete directory had another name for a moment, it gets its name
    back.

    Parameters
    ----------
    name
        A regular expression for the names of the directories.
    """
    pattern = re.compile(rf"\.({name})\.[0-9a-f]{{8}}\.(staging|staging\.previous|removed)\Z")
    for path in sorted(parent.iterdir()):
        found = pattern.match(path.name)
        if found is None or path.is_symlink() or not path.is_dir():
            continue
        target = parent / found[1]
        if found[2] == "staging.previous" and not os.path.lexists(target):
            path.rename(target)
        else:
            shutil.rmtree(path)


def check_replaceable(path: Path) -> None:
    """Refuse a place that holds anything but a policy directory.

    Raises
    ------
    OutputError
        Naming what is there.
    """
    if not os.path.lexists(path):
        return
    foreign = foreign_entries(path)
    if foreign:
        raise OutputError(
            "OutputNotWritable",
            f"{path} holds what is not of a policy directory, and writing would remove it: "
            f"{', '.join(foreign[:5])}",
            {"file": str(path)},
            "choose another directory, or move these files away",
        )


def foreign_entries(path: Path) -> list[str]:
    """Return what in ``path`` no policy directory of this format holds; ``path`` itself if it is none."""
    if path.is_symlink() or not path.is_dir():
        return [path.name]
    foreign = [entry.name for entry in path.iterdir() if entry.name not in _OWN_NAMES or entry.is_symlink()]
    arrays = path / parts.ARRAYS
    if arrays.is_dir():
        foreign += [f"{parts.ARRAYS}/{e.name}" for e in arrays.iterdir() if not _ARRAY_FILE.match(e.name)]
    names = {entry.name for entry in path.iterdir()}
    if names and not foreign and not _is_own(path):
        foreign = sorted(names)
    return sorted(foreign)


def _is_own(path: Path) -> bool:
    """Whether one of the manifest and its digest, either of which may be damaged, shows who wrote it."""
    try:
        read_manifest(path, verify=False)
    except ValidationError:
        digest = path / parts.MANIFEST_DIGEST
        return digest.is_file() and bool(parts.DIGEST_LINE.match(digest.read_bytes()[:100]))
    return True


def _write_files(
    staging: Path, data: CheckpointData, kind: parts.Kind, sequence: int, compress: bool
) -> None:
    policy, states = data.policy, len(data.policy.components)
    document = parts.policy_document(policy, kind, sequence)
    node_ids = [node.id for node in policy.nodes]
    content: dict[str, pa.Table] = {parts.CUTS: tables.cuts_table(policy.cuts, node_ids, states)}
    if policy.first_bases is not None:
        content[parts.FIRST_BASES] = tables.first_bases_table(policy.first_bases)
    if kind == "checkpoint":
        document["checkpointing"] = dict(data.checkpointing)
        document["history"] = {name: column_type(column) for name, column in data.history.items()}
        if data.history:
            content[parts.HISTORY] = history_table(data.history)
        if data.bases is not None:
            content[parts.BASES] = tables.bases_table(data.bases)
        if data.states is not None:
            content[parts.STATES] = tables.states_table(data.states)
        document["arrays"] = {
            name: {"dtype": _type_name(array.dtype), "shape": list(array.shape)}
            for name, array in data.extra_arrays.items()
        }
        for name, array in data.extra_arrays.items():
            content[f"{parts.ARRAYS}/{name}.parquet"] = tables.array_table(array)
    staging.mkdir()
    if any("/" in name for name in content):
        (staging / parts.ARRAYS).mkdir()
    document["files"] = {
        name: _write_table(staging / name, table, compress) for name, table in content.items()
    }
    if (staging / parts.ARRAYS).exists():
        sync_directory(staging / parts.ARRAYS)
    manifest, digest = parts.manifest_bytes(document)
    _write_bytes(staging / parts.MANIFEST, manifest)
    _write_bytes(staging / parts.MANIFEST_DIGEST, digest)


def _write_table(path: Path, table: pa.Table, compress: bool) -> dict[str, Any]:
    with path.open("xb") as file:
        tables.write_table(table, file, compress)
        _sync(file)
    with path.open("rb") as file:
        digest = hashlib.sha256()
        while block := file.read(_BLOCK):
            digest.update(block)
    return {"bytes": path.stat().st_size, "sha256": digest.hexdigest(), "rows": table.num_rows}


def _write_bytes(path: Path, content: bytes) -> None:
    with path.open("xb") as file:
        file.write(content)
        _sync(file)


def _sync(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def read_policy_directory(path: Path, *, verify: bool = True) -> Policy:
    """Read the policy of a policy directory or checkpoint.

    Parameters
    ----------
    verify
        Whether digests are compared; shapes, types and ranges are always checked.

    Raises
    ------
    ValidationError
        When anything is missing, damaged, or of a newer format.
    """
    return StoredDirectory(path, verify=verify).policy()


def read_checkpoint(path: Path, *, verify: bool = True) -> CheckpointData:
    """Read a checkpoint; see :func:`read_policy_directory`."""
    return StoredDirectory(path, verify=verify).checkpoint()


class StoredDirectory:
    """A policy directory or checkpoint, each of whose files is read once.

    Parameters
    ----------
    verify
        Whether digests are compared; shapes, types and ranges are always checked.
    files
        Contents of its files by name, the manifest among them, in place of those on disk.

    Raises
    ------
    ValidationError
        Here and in every method: when anything is missing, damaged, or of a newer format.
    """

    def __init__(self, path: Path, *, verify: bool = True, files: Mapping[str, bytes] | None = None) -> None:
        self.path = Path(path)
        self.verify = verify
        self._kept: dict[str, bytes] = {}
        self._given = dict(files or {})
        if self._given:
            self.manifest = parse_manifest(self.path, self._given.pop(parts.MANIFEST))
        else:
            self.manifest = read_manifest(self.path, verify=verify)

    def keep(self) -> None:
        """Read all files, check them against the manifest, and keep them until they are used."""
        if not self.verify:
            check_manifest(self.manifest)
            self.verify = True
        for name in self.manifest.files:
            if name not in self._kept:
                self._kept[name] = self.content(name)

    def files(self) -> dict[str, bytes]:
        """Return the contents of all files, the manifest among them, for a process that has no such disk."""
        self.keep()
        return {parts.MANIFEST: self.manifest.content, **self._kept}

    def release(self) -> None:
        """Forget what :meth:`keep` has read."""
        self._kept.clear()

    def content(self, name: str) -> bytes:
        """Return the content of a file, which is no longer kept then."""
        if name in self._kept:
            return self._kept.pop(name)
        entry = self.manifest.files[name]
        content = self._given.pop(name, None)
        if content is None:
            content = read_file(self.path / name, size=entry.bytes)
        if self.verify and (found := hashlib.sha256(content).hexdigest()) != entry.sha256:
            raise damaged(
                self.path / name,
                f"was changed or damaged: its SHA-256 is {found}, its manifest states {entry.sha256}",
            )
        return content

    def _table(self, name: str, schema: pa.Schema, rows: int | None = None) -> pa.Table:
        if rows is None:
            rows = self._value(lambda document: int(document["files"][name]["rows"]))
        return tables.read_table(self.path / name, self.content(name), schema, rows)

    def _value(self, get: Any) -> Any:
        try:
            return get(self.manifest.document)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise damaged(self.manifest.path, f"is malformed: {error!r}") from error

    def policy(self) -> Policy:
        """Decode the policy."""
        known = parts.policy_of(self.manifest)
        counts = parts.cut_counts(self.manifest)
        states = len(known["components"])
        activity = parts.text_map(self.manifest, "activity")
        schema = tables.cuts_schema(states, self._value(lambda _: tables.activity_names(activity)))
        table = self._table(parts.CUTS, schema, sum(counts))
        node_ids = [node.id for node in known["nodes"]]
        cuts = tables.cuts_of(self.path / parts.CUTS, table, node_ids, counts, states)
        try:
            policy = Policy(cuts=cuts, first_bases=self._first_bases(len(node_ids)), **known)
        except ValueError as error:
            raise damaged(self.path, f"contradicts itself: {error}") from error
        stored, found = self.manifest.document.get("policy_sha256"), policy.sha256()
        if self.verify and stored != found:
            raise damaged(
                self.manifest.path, f"gives the policy_sha256 {stored}; that of the cuts is {found}"
            )
        return policy

    def checkpoint(self) -> CheckpointData:
        """Decode a checkpoint."""
        if self.manifest.kind != "checkpoint":
            raise damaged(
                self.path,
                "is a policy, not a checkpoint: training cannot resume from it",
                "PolicyIncompatible",
                "give a checkpoint, or start from the policy with policy.mode 'warm_start'",
            )
        policy = self.policy()
        try:
            return CheckpointData(
                policy=policy,
                history=self._history(policy.completed_iterations),
                bases=self._bases(),
                states=self._states(len(policy.components)),
                extra_arrays=self._arrays(),
                checkpointing=parts.checkpointing_of(self.manifest),
            )
        except ValidationError:
            raise
        except ValueError as error:
            raise damaged(self.path, f"contradicts itself: {error}") from error

    def _history(self, rows: int) -> Mapping[str, HistoryColumn]:
        types = parts.text_map(self.manifest, "history")
        if not types:
            return {}
        return history_of(self._optional(parts.HISTORY, self._value(lambda _: history_schema(types)), rows))

    def _optional(self, name: str, schema: pa.Schema, rows: int | None = None) -> pa.Table:
        if name not in self.manifest.files:
            raise damaged(self.manifest.path, f"does not list {name}, which it refers to")
        return self._table(name, schema, rows)

    def _bases(self) -> StartingBases | None:
        if parts.BASES not in self.manifest.files:
            return None
        return tables.bases_of(self._table(parts.BASES, tables.BASES_SCHEMA))

    def _first_bases(self, nodes: int) -> FirstBases | None:
        if parts.FIRST_BASES not in self.manifest.files:
            return None
        bases = tables.first_bases_of(self._table(parts.FIRST_BASES, tables.FIRST_BASES_SCHEMA))
        bases.check(nodes)
        return bases

    def _states(self, states: int) -> VisitedRows | None:
        if parts.STATES not in self.manifest.files:
            return None
        return tables.states_of(self._table(parts.STATES, tables.states_schema(states)), states)

    def _arrays(self) -> dict[str, NDArray[np.generic]]:
        found = {}
        for name, (dtype, shape) in self._value(_array_shapes).items():
            size = 1
            for length in shape:
                size *= length
            table = self._optional(f"{parts.ARRAYS}/{name}.parquet", tables.array_schema(dtype), size)
            found[name] = tables.array_of(table, dtype, shape)
        return found


def _array_shapes(document: Mapping[str, Any]) -> dict[str, tuple[np.dtype[Any], tuple[int, ...]]]:
    known = {_type_name(dtype): dtype for dtype in ARRAY_DTYPES}
    shapes = {}
    for name, entry in parts.as_object(document["arrays"]).items():
        dtype, shape = known.get(str(entry["dtype"])), tuple(entry["shape"])
        if dtype is None:
            raise ValueError(f"array {name} has the unknown type {entry['dtype']!r}")
        if not all(type(length) is int and 0 <= length < 2**48 for length in shape):
            raise ValueError(f"array {name} has the impossible shape {shape}")
        shapes[name] = (dtype, shape)
    return shapes


def _type_name(dtype: np.dtype[Any]) -> str:
    """Return the type without its byte order, such as ``f8``."""
    return f"{dtype.kind}{dtype.itemsize}"
