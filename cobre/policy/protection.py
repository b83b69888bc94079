"""What an output directory holds already, and whether a run may put its own work in that place.

A policy is replaced only by one of the same study that holds at least as many iterations. Training is a
function of the study and of the number of iterations, so such a policy holds all of the earlier one. Where
one of the two began with the cuts of another policy, both must have begun with the same ones, or the new one
with the earlier policy itself.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cobre.errors import OutputError, Problem, ValidationError
from cobre.policy.fingerprint import Fingerprint, differences
from cobre.policy.model import LpEngine
from cobre.policy.store.directory import check_replaceable
from cobre.policy.store.manifest import Manifest, checkpointing_of, policy_of, read_manifest

KIND = "OutputProtected"
_UNKNOWN = "unknown"
_SHOWN = 3
_CHOICES = "choose another output directory, or let it be replaced: --force (force=True)"


@dataclass(frozen=True)
class StoredWork:
    """A policy or checkpoint on disk, as its manifest describes it.

    Attributes
    ----------
    iterations
        Completed iterations.
    started_from
        Digest of the policy whose cuts it began with; ``None`` = it began without any. Cuts that value the
        end of the study do not count.
    loaded_cuts
        Cuts that a node began with, at most.
    checkpointing
        Options of its checkpoints that were given in place of the case's.
    lp_engine
        What its training was asked to solve LPs with; ``None`` = unknown.
    """

    path: Path
    iterations: int
    fingerprint: Fingerprint
    policy_sha256: str
    started_from: str | None
    loaded_cuts: int
    checkpointing: Mapping[str, int]
    lp_engine: LpEngine | None = None


@dataclass(frozen=True)
class PlannedWork:
    """What a run is about to write: so many iterations at most, begun with the cuts of ``started_from``."""

    fingerprint: Fingerprint
    iterations: int
    started_from: str | None = None

    def holds_all_of(self, held: StoredWork) -> bool:
        """Whether the run, if it gets as far, makes everything that ``held`` holds."""
        return self.started_from in (held.started_from, held.policy_sha256)


def stored_work(path: Path) -> StoredWork | None:
    """Return what is at ``path``; ``None`` where nothing does.

    Raises
    ------
    ValidationError
        When it is not a policy directory of cobre, or damaged.
    """
    if not os.path.lexists(path) or (path.is_dir() and not any(path.iterdir())):
        return None
    return described_work(read_manifest(path))


def described_work(manifest: Manifest) -> StoredWork:
    """Return what a manifest describes.

    Raises
    ------
    ValidationError
        When something is missing from it or of another type.
    """
    known = policy_of(manifest)
    last_stage = known["nodes"][-1].stage_id
    loaded = any(node.loaded_cuts for node in known["nodes"] if node.stage_id != last_stage)
    return StoredWork(
        path=manifest.path.parent,
        iterations=known["completed_iterations"],
        fingerprint=known["fingerprint"],
        policy_sha256=str(manifest.document.get("policy_sha256")),
        started_from=known["started_from"] or (_UNKNOWN if loaded else None),
        loaded_cuts=max(node.loaded_cuts for node in known["nodes"]),
        checkpointing=checkpointing_of(manifest),
        lp_engine=None if known["lp_engine"] is None else known["lp_engine"].asked,
    )


def source_digest(path: Path) -> str:
    """Return what identifies the policy of a warm start: its digest, or of another format that of its files.

    Raises
    ------
    ValidationError
        When nothing is there, or a policy directory of cobre is damaged.
    """
    files = sorted(entry for entry in path.rglob("*.bin") if entry.is_file())
    if not files:
        return str(read_manifest(path).document.get("policy_sha256"))
    digest = hashlib.sha256()
    for entry in files:
        digest.update(f"{entry.relative_to(path).as_posix()}\0".encode())
        digest.update(hashlib.sha256(entry.read_bytes()).digest())
    return digest.hexdigest()


def protected_work(path: Path, *, force: bool) -> StoredWork | None:
    """Return what a run would replace at ``path``; ``None`` where nothing is, or ``force`` is given.

    Raises
    ------
    OutputError
        When something foreign is there, which is never replaced, or something whose worth is unknown.
    """
    check_replaceable(path)
    if force:
        return None
    try:
        return stored_work(path)
    except ValidationError as error:
        raise OutputError(
            KIND,
            f"{path} cannot be read, and training would replace it: {error.message}",
            {"file": str(path)},
            _CHOICES,
        ) from error


def objection(held: StoredWork, planned: PlannedWork) -> Problem | None:
    """Return why a run must not replace ``held``; ``None`` where it may."""
    context = {"file": str(held.path), "stored_iterations": held.iterations, "value": planned.iterations}
    found = differences(held.fingerprint, planned.fingerprint)
    if found:
        shown = "; ".join(problem.message for problem in found[:_SHOWN])
        more = f"; and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        return Problem(
            KIND,
            f"{held.path} holds {_iterations(held.iterations)} of another study, which training would "
            f"replace ({shown}{more})",
            {**context, "differs": [problem.message for problem in found]},
            _CHOICES,
        )
    if not planned.holds_all_of(held):
        began = "without any cuts" if held.started_from is None else "with the cuts of another policy"
        return Problem(
            KIND,
            f"{held.path} holds {_iterations(held.iterations)} of this study that began {began}; this run "
            "begins otherwise and would replace them",
            context,
            _CHOICES,
        )
    if held.iterations > planned.iterations:
        return Problem(
            KIND,
            f"{held.path} holds {_iterations(held.iterations)} of this study, which training would replace "
            f"by {planned.iterations}",
            {**context, "field": "iterations"},
            f"go on from it: --resume with more than {held.iterations} iterations; {_CHOICES}",
        )
    return None


def _iterations(count: int) -> str:
    return f"{count} iteration{'' if count == 1 else 's'}"
