"""What an output directory holds already, and whether a run may put its own work in that place.

A policy is replaced only by one of the same study that holds at least as many iterations. Training is a
function of the study and of the number of iterations, so such a policy holds all of the earlier one. Where one
of the two began with the cuts of another policy that is so only if those cuts are the earlier policy itself.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from cobre.errors import OutputError, Problem, ValidationError
from cobre.policy_store.directory import check_replaceable
from cobre.policy_store.fingerprint import Fingerprint, differences
from cobre.policy_store.manifest import policy_of, read_manifest

PolicyOrigin = Literal["fresh", "warm_start", "resume"]
KIND = "OutputProtected"
_SHOWN = 3
_CHOICES = "choose another output directory, or let it be replaced: --force (force=True)"


@dataclass(frozen=True)
class StoredWork:
    """A policy or checkpoint on disk, as its manifest describes it.

    Attributes
    ----------
    iterations
        Completed iterations.
    warm_started
        Whether it began with the cuts of another policy; those that value the end of the study do not count.
    loaded_cuts
        Cuts that a node began with, at most.
    """

    path: Path
    iterations: int
    fingerprint: Fingerprint
    policy_sha256: str
    warm_started: bool
    loaded_cuts: int


@dataclass(frozen=True)
class PlannedWork:
    """What a run is about to write.

    Attributes
    ----------
    iterations
        Completed iterations, at most.
    continues
        The stored policy or checkpoint that the run begins with; ``None`` for a fresh one, or where the cuts
        come from a format without digests.
    """

    fingerprint: Fingerprint
    iterations: int
    origin: PolicyOrigin = "fresh"
    continues: StoredWork | None = None

    def holds_all_of(self, held: StoredWork) -> bool:
        """Whether the run, if it gets as far, makes everything that ``held`` holds."""
        if self.origin == "warm_start":
            return self.continues is not None and self.continues.policy_sha256 == held.policy_sha256
        warm = self.continues is not None and self.continues.warm_started
        return warm == held.warm_started


def stored_work(path: Path) -> StoredWork | None:
    """Return what stands at ``path``; ``None`` where nothing does.

    Raises
    ------
    ValidationError
        When it is not a policy directory of cobre, or damaged.
    """
    if not os.path.lexists(path) or (path.is_dir() and not any(path.iterdir())):
        return None
    manifest = read_manifest(path)
    known = policy_of(manifest)
    last_stage = known["nodes"][-1].stage_id
    return StoredWork(
        path=path,
        iterations=known["completed_iterations"],
        fingerprint=known["fingerprint"],
        policy_sha256=str(manifest.document.get("policy_sha256")),
        warm_started=any(node.loaded_cuts for node in known["nodes"] if node.stage_id != last_stage),
        loaded_cuts=max(node.loaded_cuts for node in known["nodes"]),
    )


def protected_work(path: Path, *, force: bool) -> StoredWork | None:
    """Return what a run would replace at ``path``; ``None`` where nothing stands, or ``force`` gives it up.

    Raises
    ------
    OutputError
        When something foreign stands there, which nothing replaces, or something whose worth is unknown.
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
            f"{held.path} holds {_iterations(held.iterations)} of another study, which training would replace "
            f"({shown}{more})",
            {**context, "differs": [problem.message for problem in found]},
            _CHOICES,
        )
    if not planned.holds_all_of(held):
        began = "began with the cuts of another policy" if held.warm_started else "began without any cuts"
        return Problem(
            KIND,
            f"{held.path} holds {_iterations(held.iterations)} of this study that {began}; this run begins "
            "otherwise and would replace them",
            context,
            _CHOICES,
        )
    if held.iterations > planned.iterations:
        return Problem(
            KIND,
            f"{held.path} holds {_iterations(held.iterations)} of this study, which training would replace by "
            f"{planned.iterations}",
            {**context, "field": "iterations"},
            f"go on from it: --resume with more than {held.iterations} iterations; {_CHOICES}",
        )
    return None


def _iterations(count: int) -> str:
    return f"{count} iteration{'' if count == 1 else 's'}"
