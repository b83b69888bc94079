"""A policy from a directory, as Python users want it: with its study, if they give it."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from cobre.errors import Problem, ValidationError
from cobre.policy.foreign.conversion import from_flatbuffers
from cobre.policy.formats import format_of
from cobre.policy.model import Policy
from cobre.policy.store.directory import read_policy_directory
from cobre.policy.warm_start import state_entries

if TYPE_CHECKING:
    from cobre.case.model import Case


def load_policy(
    directory: str | os.PathLike[str], case: Case | str | os.PathLike[str] | None = None
) -> Policy:
    """Read a policy, and check every digest of it.

    >>> import cobre
    >>> cobre.load_policy("examples/random-inflow")
    Traceback (most recent call last):
    cobre.errors.ValidationError: examples/random-inflow holds neither ...

    Parameters
    ----------
    directory
        A policy directory (of cobre, or of cobre-rs), a checkpoint, or the output directory of a run, whose
        ``policy`` is then read.
    case
        The study, or its directory: what a state leaves out is then as at its start. Not needed where the
        policy is in the output directory of its case, which is read when a state leaves something out; always
        needed for a policy of cobre-rs, whose files do not hold the study.

    Raises
    ------
    ValidationError
        When there is no policy, or it is damaged, or not one of this study's state.
    """
    path = Path(directory)
    if not (path / "manifest.json").exists() and (path / "policy").is_dir():
        path = path / "policy"
    study = _study(case)
    if format_of(path) == "cobre-rs":
        if study is None:
            problem = Problem(
                "InvalidValue",
                f"{path} is a policy of cobre-rs, which does not hold its study",
                {"field": "case", "file": str(path)},
                "give it: cobre.load_policy(DIR, case=CASE)",
            )
            raise ValidationError([problem], source="arguments")
        from cobre.lp.state import StateLayout

        return replace(from_flatbuffers(path, study, state_entries(StateLayout(study))), study=study)
    return replace(read_policy_directory(path), study=study, found_in=path.absolute())


def _study(case: Case | str | os.PathLike[str] | None) -> Case | None:
    if isinstance(case, (str, os.PathLike)):
        from cobre.case import load

        return load(case)
    return case
