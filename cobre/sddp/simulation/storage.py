"""Where a simulation is kept while it runs, and what may take the place of what.

::

    <output>/.simulation.partial/   study.json        what is simulated
                                    blocks/NNNNN.npz  what is kept of a block, written when its tables are
                                    <tables>          as they will be in simulation/
    <output>/simulation/            the complete one; takes its name when everything in it is written

So ``simulation/`` is complete or not there, and an interrupted simulation goes on from its blocks. One is
replaced only by another one of the same study.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal

import numpy as np
from numpy.typing import NDArray

from cobre.durable import atomic_write, output_errors, put_directory, sync_directory
from cobre.errors import OutputError, Problem, ValidationError
from cobre.policy import Fingerprint

Resume = bool | Literal["auto"]
"""Whether to go on with an interrupted simulation; ``"auto"`` = where there is one of the same study."""

DIRECTORY: Final = "simulation"
PARTIAL: Final = ".simulation.partial"
METADATA: Final = "metadata.json"
_STUDY: Final = "study.json"
_BLOCKS: Final = "blocks"
_RECORD: Final = re.compile(r"(\d{5,})\.npz\Z")
_SHOWN: Final = 3
_KIND: Final = "OutputProtected"
_CHOICES: Final = "choose another output directory, or let it be replaced: --force (force=True)"


def topics_of(fingerprint: Fingerprint) -> dict[str, str]:
    """Return the digests of a study by topic."""
    return {name: topic.sha256 for name, topic in sorted(fingerprint.topics.items())}


def check_place(
    output: Path, fingerprint: Fingerprint, policy_sha256: str, scenarios: int | None, *, force: bool
) -> None:
    """Refuse an output whose simulation would be lost: another study's, or a longer one of the same policy.

    Parameters
    ----------
    scenarios
        That will be simulated; ``None`` = all there are.

    Raises
    ------
    OutputError
        Naming what is there.
    """
    place = output / DIRECTORY
    if not os.path.lexists(place) or (place.is_dir() and not any(place.iterdir())):
        return
    held = _stored_study(place)
    if held is None:
        raise OutputError(
            "OutputNotWritable",
            f"{place} holds what no simulation of cobre has written, and writing would remove it",
            {"file": str(place)},
            "choose another output directory, or move it away",
        )
    if force:
        return
    differing = _differences(held["topics"], topics_of(fingerprint))
    if differing:
        raise OutputError(
            _KIND,
            f"{place} is a simulation of another study, which this one would replace; they differ in "
            f"{_listed(differing)}",
            {"file": str(place), "differs": differing},
            _CHOICES,
        )
    there = held.get("scenarios")
    same_policy = held.get("policy_sha256") == policy_sha256
    if same_policy and scenarios is not None and isinstance(there, int) and there > scenarios:
        raise OutputError(
            _KIND,
            f"{place} has {there} scenarios of this policy, which {scenarios} would replace",
            {"file": str(place), "field": "scenarios", "value": scenarios},
            _CHOICES,
        )


def interrupted_simulation(output: Path) -> bool:
    """Whether there is a simulation to go on with."""
    return (output / PARTIAL / _STUDY).is_file()


class SimulationStore:
    """The directory of a simulation that runs; each rank has one, and each writes its own blocks."""

    def __init__(self, output: Path) -> None:
        self.output = output
        self.directory = output / PARTIAL

    def begin(self, study: Mapping[str, Any], *, resume: Resume) -> tuple[list[int], tuple[Problem, ...]]:
        """Make the directory, or go on with the one there; on one rank, before the others write.

        Parameters
        ----------
        study
            What is simulated, in JSON: everything that results depend on.
        resume
            ``"auto"`` goes on with a directory that is of the same study, and begins where it is not.

        Returns
        -------
        (list of int, tuple of Problem)
            The blocks that are complete, ascending, and a warning where others were thrown away.

        Raises
        ------
        ValidationError
            When what is to be resumed is of something else.
        OutputError
            When the directory cannot be made.
        """
        if resume == "auto":
            resume = interrupted_simulation(self.output) and not self._differing(study)
        if resume:
            self._require_same(study)
            self._remove_leftovers()
            return self.complete_blocks(), ()
        warnings: tuple[Problem, ...] = ()
        with output_errors(self.directory):
            if os.path.lexists(self.directory):
                lost = len(self.complete_blocks())
                if lost:
                    text = f"an interrupted simulation in {self.output}, {lost} blocks of it, was given up"
                    context = {"file": str(self.directory)}
                    advice = "go on with an interrupted one by --resume (resume=True)"
                    warnings = (Problem("InterruptedSimulationReplaced", text, context, advice),)
                shutil.rmtree(self.directory)
            (self.directory / _BLOCKS).mkdir(parents=True)
        content = json.dumps(study, indent=1, sort_keys=True).encode()
        atomic_write(self.directory / _STUDY, lambda file: _put(file, content))
        return [], warnings

    def _require_same(self, study: Mapping[str, Any]) -> None:
        problems = self._differing(study)
        if problems:
            raise ValidationError(problems, source="the interrupted simulation")

    def _differing(self, study: Mapping[str, Any]) -> list[Problem]:
        """Return what the interrupted simulation is of, and this one is not."""
        path = self.directory / _STUDY
        try:
            stored = json.loads(path.read_text())
            if not isinstance(stored, dict):
                raise ValueError("it holds no JSON object")
        except (OSError, ValueError) as error:
            problem = Problem(
                "OutputCorrupted",
                f"the interrupted simulation cannot be read: {path}: {error}",
                {"file": str(path)},
                "simulate without resuming",
            )
            raise ValidationError([problem], source="the interrupted simulation") from error
        wanted = json.loads(json.dumps(study))
        names = [name for name in {**_WORDS, **wanted, **stored} if wanted.get(name) != stored.get(name)]
        return [_resume_problem(name, stored.get(name), wanted.get(name), path) for name in names]

    def _remove_leftovers(self) -> None:
        """Remove files that a killed rank has left half-written."""
        with output_errors(self.directory):
            for path in self.directory.rglob(".*.tmp"):
                path.unlink(missing_ok=True)

    def complete_blocks(self) -> list[int]:
        """Return the numbers of complete blocks, ascending."""
        directory = self.directory / _BLOCKS
        names = [path.name for path in directory.iterdir()] if directory.is_dir() else []
        return sorted(int(found[1]) for name in names if (found := _RECORD.match(name)))

    def put_record(self, number: int, record: NDArray[np.float64]) -> None:
        """Keep what later is needed of a block; its tables are written."""
        path = self.directory / _BLOCKS / f"{number:05d}.npz"
        atomic_write(path, lambda file: np.savez(file, record=record))

    def record(self, number: int, length: int) -> NDArray[np.float64]:
        """Return what was kept of a block.

        Raises
        ------
        ValidationError
            When it cannot be read.
        """
        path = self.directory / _BLOCKS / f"{number:05d}.npz"
        try:
            with np.load(path, allow_pickle=False) as arrays:
                found: NDArray[np.float64] = arrays["record"]
            if found.dtype != np.float64 or found.shape != (length,):
                raise ValueError(f"{found.dtype}{found.shape} in place of float64({length},)")
        except (OSError, ValueError, KeyError) as error:
            problem = Problem(
                "OutputCorrupted",
                f"a block of the interrupted simulation cannot be read: {path}: {error}",
                {"file": str(path)},
                "simulate without resuming",
            )
            raise ValidationError([problem], source="the interrupted simulation") from error
        return found

    def finish(self) -> Path:
        """Give the simulation its name, in place of the one there; all its files are written."""
        target = self.output / DIRECTORY
        with output_errors(target):
            shutil.rmtree(self.directory / _BLOCKS)
            (self.directory / _STUDY).unlink()
            for path in self.directory.rglob("*"):
                if path.is_dir():
                    sync_directory(path)
            put_directory(self.directory, target)
        return target

    def discard_if_empty(self) -> None:
        """Remove the directory unless a block of it is worth going on with."""
        if not self.complete_blocks():
            shutil.rmtree(self.directory, ignore_errors=True)


def _put(file: BinaryIO, content: bytes) -> None:
    file.write(content)


def _stored_study(place: Path) -> dict[str, Any] | None:
    """Return the study of a complete simulation; ``None`` where it is none of ours."""
    try:
        document = json.loads((place / METADATA).read_text())
        study = document["study"]
        return study if isinstance(study["topics"], dict) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _differences(old: Mapping[str, str], new: Mapping[str, str]) -> list[str]:
    return [name for name in sorted({*old, *new}) if old.get(name) != new.get(name)]


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


_WORDS: Final = {
    "topics": "another study",
    "policy_sha256": "another policy",
    "seed": "another seed",
    "scenarios": "another number of scenarios",
    "source": "other sources of scenarios",
    "software_version": "another version of cobre",
    "lp_engine": "another LP engine",
}


def _resume_problem(name: str, stored: Any, wanted: Any, path: Path) -> Problem:
    context: dict[str, Any] = {"file": str(path), "field": name}
    if name == "topics" and isinstance(stored, dict) and isinstance(wanted, dict):
        differing = _differences(stored, wanted)
        text = f"it is of another study; they differ in {_listed(differing)}"
        context["differs"] = differing
    else:
        text = f"it has {_WORDS.get(name, f'another {name}')}: {stored!r:.120}, not {wanted!r:.120}"
        context |= {"stored": stored, "value": wanted}
    return Problem(
        "IncompatibleSettings",
        f"the interrupted simulation cannot be gone on with: {text}",
        context,
        "undo the change to resume, or simulate without resuming",
    )
