"""Correlation of noise: profiles of groups, each with a matrix."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from cobre.case.checks.stages import ids_before_study
from cobre.case.format import layout
from cobre.case.format.schema.scenarios import CorrelationFile, CorrelationProfile
from cobre.case.format.schema.scenarios import CorrelationGroup as GroupEntry
from cobre.case.format.sources import Sources
from cobre.case.model import Correlation, CorrelationGroup
from cobre.case.model.options import ClassName
from cobre.case.problems import Reporter, known_ids, short_ids, suggest_name
from cobre.case.scenarios.external import registry_of

_FILE = layout.CORRELATION
_SYMMETRY_TOLERANCE = 1e-10
EIGENVALUE_TOLERANCE = 1e-8
"""Eigenvalues down to minus this are rounding errors."""
_DEFAULT = "default"
CLASSES: tuple[ClassName, ...] = ("inflow", "load", "ncs")


def load_correlation(sources: Sources, reporter: Reporter) -> Correlation | None:
    """Check the correlation file.

    Returns
    -------
    Correlation or None
        ``None`` without a file, when anything is wrong with it, or stages or entities are not all known.
    """
    if sources.correlation is None or sources.correlation.root is None:
        return None
    file = sources.correlation.root
    before = len(reporter.errors)
    if not file.profiles:
        _report("InvalidValue", "profiles must hold at least one profile", "profiles", {}, reporter)
    elif len(file.profiles) > 1 and _DEFAULT not in file.profiles:
        _report(
            "BusinessRuleViolation",
            f"there are {len(file.profiles)} profiles, but none is called '{_DEFAULT}'",
            "profiles",
            sorted(file.profiles),
            reporter,
        )
    for name, profile in sorted(file.profiles.items()):
        _check_profile(name, profile, sources, reporter)
    stages = Counter(item.stage_id for item in file.schedule or ())
    for index, item in enumerate(file.schedule or ()):
        if item.profile_name not in file.profiles:
            _report(
                "InvalidReference",
                f"schedule[{index}].profile_name is '{item.profile_name}', which is not among profiles",
                f"schedule[{index}].profile_name",
                item.profile_name,
                reporter,
                "dimensional.5",
                suggest_name(item.profile_name, file.profiles, "profiles"),
            )
        # Profiles of stages before the study occur in exports of an estimated model; no noise needs them.
        known = sources.stages.ids is None or item.stage_id in sources.stages.id_set
        if not known and item.stage_id not in ids_before_study(sources):
            _report(
                "InvalidReference",
                f"schedule[{index}].stage_id is {item.stage_id}, but there is no study stage with that id",
                f"schedule[{index}].stage_id",
                item.stage_id,
                reporter,
                "referential.1",
                known_ids(sources.stages.ids or (), "stage"),
            )
    repeated = sorted(number for number, count in stages.items() if count > 1)
    if repeated:
        _report(
            "DuplicateId",
            f"schedule lists stage {short_ids(repeated)} more than once",
            "schedule",
            None,
            reporter,
        )
    return _resolve(file, sources) if len(reporter.errors) == before else None


def _resolve(file: CorrelationFile, sources: Sources) -> Correlation | None:
    """Return the correlation of a file without errors; ``None`` while stages or entities are not known."""
    positions: dict[ClassName, dict[int, int]] = {}
    for kind in CLASSES:
        registry = registry_of(sources, kind)
        if registry.ids is None:
            return None
        positions[kind] = {number: position for position, number in enumerate(sorted(registry.id_set))}
    if sources.stages.ids is None:
        return None
    return resolve_correlation(file, positions, sorted(sources.stages.id_set))


def resolve_correlation(
    file: CorrelationFile, positions: Mapping[ClassName, Mapping[int, int]], stage_ids: Sequence[int]
) -> Correlation:
    """Return the correlation that a file without errors gives a study.

    Parameters
    ----------
    positions
        Of the entities of each class, by id.
    stage_ids
        Of the study stages, in order.
    """
    profiles = {}
    for name, profile in sorted(file.profiles.items()):
        profiles[name] = tuple(
            _group(group, positions[group.entities[0].type])
            for group in profile.correlation_groups
            if group.entities
        )
    usual = _DEFAULT if _DEFAULT in profiles else next(iter(profiles))
    scheduled = {item.stage_id: item.profile_name for item in file.schedule or ()}
    of_stage = tuple(scheduled.get(stage, usual) for stage in stage_ids)
    return Correlation(profiles, of_stage)


def _group(group: GroupEntry, position: Mapping[int, int]) -> CorrelationGroup:
    members = np.array([position[member.id] for member in group.entities], np.int64)
    matrix = np.array(group.matrix, np.float64)
    for array in (members, matrix):
        array.setflags(write=False)
    return CorrelationGroup(group.name, group.entities[0].type, members, matrix)


def _report(
    kind: str,
    what: str,
    field: str,
    value: object,
    reporter: Reporter,
    rule: str | None = None,
    suggestion: str = "Correct the entry.",
) -> None:
    reporter.error(
        kind, f"{_FILE}: {what}.", file=_FILE, field=field, value=value, rule=rule, suggestion=suggestion
    )


def _check_profile(name: str, profile: CorrelationProfile, sources: Sources, reporter: Reporter) -> None:
    members: Counter[tuple[str, int]] = Counter()
    for index, group in enumerate(profile.correlation_groups):
        place = f"profiles.{name}.correlation_groups[{index}]"
        kinds = {member.type for member in group.entities}
        if len(kinds) > 1:
            _report(
                "BusinessRuleViolation",
                f"{place}.entities mixes {' and '.join(sorted(kinds))}",
                f"{place}.entities",
                sorted(kinds),
                reporter,
                None,
                "A group holds entities of one type.",
            )
        for position, member in enumerate(group.entities):
            members[member.type, member.id] += 1
            registry = registry_of(sources, member.type)
            if registry.ids is not None and member.id not in registry.id_set:
                _report(
                    "InvalidReference",
                    f"{place}.entities[{position}].id is {member.id}, but there is no such entity of type "
                    f"{member.type}",
                    f"{place}.entities[{position}].id",
                    member.id,
                    reporter,
                    "referential.1",
                    known_ids(registry.ids, member.type),
                )
        _check_matrix(group, place, reporter)
    for (kind, number), count in sorted(members.items()):
        if count > 1:
            _report(
                "DuplicateId",
                f"{kind} {number} occurs {count} times in the groups of profile '{name}'",
                f"profiles.{name}.correlation_groups",
                number,
                reporter,
                None,
                "An entity may be in one group only.",
            )


def _check_matrix(group: GroupEntry, place: str, reporter: Reporter) -> None:
    size = len(group.entities)
    field = f"{place}.matrix"
    lengths = [len(row) for row in group.matrix]
    if lengths != [size] * size:
        _report(
            "DimensionMismatch",
            f"{field} must have {size} rows of {size} values, one for each entity",
            field,
            lengths,
            reporter,
        )
        return
    if size == 0:
        return
    matrix = np.array(group.matrix, np.float64)
    if (np.diagonal(matrix) != 1.0).any():
        _report("InvalidValue", f"{field} must have 1 on its diagonal", field, None, reporter)
    if (np.abs(matrix - matrix.T) > _SYMMETRY_TOLERANCE).any():
        _report("InvalidValue", f"{field} must be symmetric", field, None, reporter)
        return
    lowest, change = _repair(matrix)
    if lowest < -EIGENVALUE_TOLERANCE:
        reporter.warning(
            "ModelQuality",
            f"{_FILE}: {field} is not positive semidefinite (lowest eigenvalue {lowest:.3g}); the nearest "
            f"correlations that are possible together are used, which differ by up to {change:.3g}.",
            file=_FILE,
            entity=f"correlation group {group.name!r}",
            field=field,
            value=lowest,
            suggestion="Give correlations that are possible together.",
        )


def _repair(matrix: NDArray[np.float64]) -> tuple[float, float]:
    """Return the lowest eigenvalue, and by how much a correlation changes when negative ones are left out."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2.0)
    if values[0] >= -EIGENVALUE_TOLERANCE:
        return float(values[0]), 0.0
    possible = (vectors * np.maximum(values, 0.0)) @ vectors.T
    size = np.sqrt(np.diagonal(possible))
    return float(values[0]), float(np.abs(possible / np.outer(size, size) - matrix).max())
