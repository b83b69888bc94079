"""Digests of a study: one for each topic, so that a comparison can name what differs.

A topic is a part of the resolved study and one of its fields, such as ``hydros.initial_storage_hm3`` or
``stage_data.thermal_max_mw``. All fields count unless they are listed in ``_NO_MATTER``: a field added to
the model changes the fingerprint by itself. Nothing of the files counts, neither their places nor
the order of their content.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from cobre.case.catalogue import singular
from cobre.case.horizon import further_keys
from cobre.case.model import Case
from cobre.errors import Problem, ValidationError
from cobre.policy.canonical import counted_fields, write_canonical

if TYPE_CHECKING:
    from cobre.policy.model import Policy

Scalar = bool | int | float | str | None

_NO_MATTER: Final = frozenset(
    {
        # Where files are, warnings of the loader, figures for reports.
        *("path", "documents", "warnings", "energy", "config", "extensions"),
        # What training does besides making cuts, how long it goes on, and what is written.
        *("simulation", "exports", "training.upper_bound"),
        *(
            "training.enabled",
            "training.iteration_limit",
            "training.stopping_rules",
            "training.stopping_mode",
            "training.stopping",
        ),
        *(
            "policy.boundary_path",
            "policy.boundary_strict",
            "policy.path",
            "policy.mode",
            "policy.checkpointing",
        ),
    }
)
_SKIPPED_FIELDS: Final = frozenset({"name", "label", "quality"})
"""Fields of any part that are for people: names of entities, quality of fitted planes."""

_BY_STAGE: Final = frozenset(
    {
        *("stage_data", "production", "evaporation", "generic"),
        *(
            f"scenarios.{name}"
            for name in (
                *("inflow_mean_m3s", "inflow_std_m3s", "load_mean_mw", "load_std_mw", "ncs_mean", "ncs_std"),
                *("external_inflow_m3s", "external_load_mw", "external_ncs", "noise_openings"),
                *("ar_coefficients", "annual.coefficient", "annual.mean_m3s", "annual.std_m3s"),
                "correlation.of_stage",
            )
        ),
    }
)
"""Sections and fields whose entries are in the order of stages; others may have as many by chance."""

_WORDS: Final = {
    "stages": "stages",
    "graph": "the policy graph",
    "stage_data": "limits, costs and service by stage",
    "production": "production models",
    "evaporation": "evaporation models",
    "generic": "generic constraints",
    "scenarios": "statistics and scenarios",
    "training": "options of training",
    "post_study_stages": "stages after the study",
    "seasons": "seasons",
    "boundary": "the cuts that value the end of the study",
}
_SHORT: Final = 8
_SHOWN: Final = 6


@dataclass(frozen=True)
class Topic:
    """The digest of one topic.

    Attributes
    ----------
    sha256
        Over all of it; this alone decides whether two are equal.
    value
        The value, where it is a single one and ``scalar`` is set.
    parts
        Short digests by stage or entity, to find where two differ.
    """

    sha256: str
    scalar: bool = False
    value: Scalar = None
    parts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Fingerprint:
    """The digests of a study by topic."""

    topics: Mapping[str, Topic]

    def sha256(self) -> str:
        """Return one digest over all topics."""
        digest = hashlib.sha256(b"cobre-fingerprint-1")
        for name in sorted(self.topics):
            digest.update(f"{name}\0{self.topics[name].sha256}\n".encode())
        return digest.hexdigest()

    def __repr__(self) -> str:
        return f"Fingerprint({len(self.topics)} topics, {self.sha256()[:12]})"


def case_fingerprint(case: Case, extra: Mapping[str, Any] | None = None) -> Fingerprint:
    """Return the fingerprint of a study.

    Parameters
    ----------
    case
        The study. The policy that values its end is read, if there is one.
    extra
        Further topics that results depend on and that the study does not hold, such as a seed given on the
        command line or the version of the solver. They replace topics of the same name.

    Raises
    ------
    ValidationError
        When the boundary policy cannot be read.
    """
    topics = {name: _topic(value, parts) for name, value, parts in _topics(case)}
    if case.config is not None:
        topics |= {f"config.{path}": _topic(value, {}) for path, value in further_keys(case.config).items()}
    from cobre.policy.boundary import boundary_content  # reads policies, which hold fingerprints

    topics["boundary"] = _topic(boundary_content(case), {})
    for name, value in (extra or {}).items():
        topics[name] = _topic(value, {})
    return Fingerprint(topics)


def study_fingerprint(case: Case) -> Fingerprint:
    """Return what identifies a study, the solver included."""
    from cobre.lp.highs import version  # loads the library, which only those who train need

    return case_fingerprint(case, {"solver": f"HiGHS {version()}"})


def with_fingerprint(policy: Policy, case: Case) -> Policy:
    """Return the policy with the fingerprint of its study, where it has none yet."""
    if policy.fingerprint.topics:
        return policy
    return dataclasses.replace(policy, fingerprint=study_fingerprint(case))


def differences(
    old: Fingerprint, new: Fingerprint, names: tuple[str, str] = ("the stored policy", "this study")
) -> list[Problem]:
    """Return what two studies differ in, one problem for each topic; none when they are the same.

    Where entities or stages came or went, that is reported once, not for each of their fields.

    Parameters
    ----------
    names
        What messages call the two.
    """
    changed = {
        name
        for name in {*old.topics, *new.topics}
        if name not in old.topics
        or name not in new.topics
        or old.topics[name].sha256 != new.topics[name].sha256
    }
    found = []
    for name in sorted(changed):
        before, after = old.topics.get(name), new.topics.get(name)
        if _follows(name, before, after, changed):
            continue
        context: dict[str, Any] = {"topic": name}
        if before is not None and before.scalar:
            context["stored"] = before.value
        if after is not None and after.scalar:
            context["value"] = after.value
        found.append(Problem("PolicyIncompatible", _difference(name, before, after, names), context))
    return found


def _follows(name: str, before: Topic | None, after: Topic | None, changed: set[str]) -> bool:
    """Whether a difference is only the consequence of one that is reported elsewhere."""
    section, _, part = name.partition(".")
    if before is None or after is None:
        return any(parent in changed for parent in _parents(name))
    if part == "id" or not changed & {f"{section}.id", "stages.id"}:
        return False
    return bool(before.parts) and bool(after.parts) and not _changed_parts(before, after)


def _parents(name: str) -> list[str]:
    words = name.split(".")
    return [".".join(words[:length]) for length in range(1, len(words))]


def _changed_parts(before: Topic, after: Topic) -> list[str]:
    return [label for label, digest in before.parts.items() if after.parts.get(label, digest) != digest]


def require_same(old: Fingerprint, new: Fingerprint, source: str) -> None:
    """Refuse to go on from what was stored for another study.

    Parameters
    ----------
    source
        What was stored, such as the checkpoint's path.

    Raises
    ------
    ValidationError
        With one problem for each topic that differs.
    """
    found = differences(old, new)
    if found:
        suggestion = "undo the change to resume, or start with policy.mode 'warm_start' or 'fresh'"
        raise ValidationError(
            [dataclasses.replace(problem, suggestion=suggestion) for problem in found],
            source=f"resuming from {source}, which is of another study",
        )


def _difference(name: str, before: Topic | None, after: Topic | None, names: tuple[str, str]) -> str:
    old, new = names
    section, _, part = name.partition(".")
    known = _WORDS.get(section, section.replace("_", " "))
    words = f"{known} ({part})" if part else known
    if before is None:
        return f"{words}: {new} has it, but {old} knows nothing of it"
    if after is None:
        return f"{words}: {old} knows it, but {new} does not have it"
    if before.scalar and after.scalar:
        return f"{words}: {before.value!r} in {old}, {after.value!r} in {new}"
    only_old = [label for label in before.parts if label not in after.parts]
    only_new = [label for label in after.parts if label not in before.parts]
    changed = _changed_parts(before, after)
    places = [
        f"{what} {_listed(labels)}"
        for what, labels in (
            ("differs at", changed),
            (f"only in {old}:", only_old),
            (f"only in {new}:", only_new),
        )
        if labels
    ]
    return f"{words}: {'; '.join(places) or 'differs'}"


def _listed(labels: Sequence[str]) -> str:
    shown = ", ".join(labels[:_SHOWN])
    return shown if len(labels) <= _SHOWN else f"{shown} and {len(labels) - _SHOWN} more"


def _topics(case: Case) -> Iterator[tuple[str, Any, dict[str, Any]]]:
    """Yield name, value and labelled parts of every topic."""
    stages = [f"stage {stage.id}" for stage in case.stages]
    for section, value in _fields(case):
        labels = stages if section in _BY_STAGE else []
        if dataclasses.is_dataclass(value):
            yield from _section_topics(section, value, stages)
        elif _is_table(value):
            yield section, len(value), {}
            owners = labels or [_label(section, item, place) for place, item in enumerate(value)]
            for name in sorted({name for item in value for name, _ in _fields(item, f"{section}.")}):
                column = [getattr(item, name, None) for item in value]
                yield f"{section}.{name}", column, _parts(column, owners)
        else:
            yield section, value, _parts(value, labels)
    for section, items in case.extensions.items():
        yield section, len(items), {}
        owners = [f"{singular(section)} {item.id}" for item in items]
        for name in type(items[0]).model_fields:
            if name not in (*_SKIPPED_FIELDS, "operational_start_date"):
                column = [getattr(item, name) for item in items]
                yield f"{section}.{name}", column, _parts(column, owners)


def _section_topics(
    section: str, value: Any, stages: Sequence[str]
) -> Iterator[tuple[str, Any, dict[str, Any]]]:
    yield section, "given", {}
    for name, part in _fields(value, f"{section}."):
        topic = f"{section}.{name}"
        if dataclasses.is_dataclass(part):
            yield from _section_topics(topic, part, stages)
        else:
            yield topic, part, _parts(part, stages if topic in _BY_STAGE else [])


def _fields(part: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for entry in counted_fields(part):
        if entry.name not in _SKIPPED_FIELDS and prefix + entry.name not in _NO_MATTER:
            yield entry.name, getattr(part, entry.name)


def _is_table(value: Any) -> bool:
    """Whether it is a sequence of dataclasses (or of nothing), which is compared field by field."""
    return isinstance(value, tuple) and all(map(dataclasses.is_dataclass, value))


def _label(section: str, item: Any, place: int) -> str:
    identity = getattr(item, "id", place)
    return f"{section.rstrip('s').replace('_', ' ')} {identity}"


def _parts(value: Any, labels: Sequence[str]) -> dict[str, Any]:
    """Return what of ``value`` belongs to which label, where it has one entry for each."""
    listed = isinstance(value, (tuple, list)) or (isinstance(value, np.ndarray) and value.ndim > 0)
    return dict(zip(labels, value, strict=True)) if listed and len(value) == len(labels) else {}


def _topic(value: Any, parts: Mapping[str, Any]) -> Topic:
    scalar = value is None or isinstance(value, (bool, int, float, str))
    return Topic(
        sha256=_digest(value),
        scalar=scalar,
        value=value if scalar else None,
        parts={label: _digest(part)[:_SHORT] for label, part in parts.items()},
    )


def _digest(value: Any) -> str:
    digest = hashlib.sha256()
    update: Callable[[bytes], object] = digest.update
    write_canonical(value, update, _SKIPPED_FIELDS)
    return digest.hexdigest()
