"""The cuts of another policy that value the state at the end of a study.

The policy may be a directory of cobre, as ``cobre train`` writes it, or of cobre-rs. Of its nodes (pools) the
one is taken that values states at the end of the last stage. Its cuts are

    theta >= alpha_c + sum_j pi_cj x_j        (c over active cuts, j over the node's components)

and each of our components takes the slope of the component that it is there. The floor of the node's future
cost is one more cut, without slopes.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cobre.case.model import Case
from cobre.errors import CobreError, Problem, ValidationError
from cobre.policy.foreign.directory import PolicyDirectory
from cobre.policy.foreign.slots import identified_slots, state_slots
from cobre.policy.formats import format_of
from cobre.policy.matching import Component, ComponentMap, Identified, identified, study_days
from cobre.policy.store.directory import read_policy_directory

_KIND = "BoundaryReconciliationError"
_FIELD = {"file": "config.json", "field": "policy.boundary"}


@dataclass(frozen=True, eq=False)
class BoundaryCuts:
    """Cuts on the cost after the study, in $.

    Attributes
    ----------
    intercepts, slopes
        float64[cuts] and float64[cuts, states]; states in the order of the study's components.
    warnings
        Components of the study that the policy does not know.
    """

    intercepts: NDArray[np.float64]
    slopes: NDArray[np.float64]
    warnings: tuple[Problem, ...] = ()


def boundary_cuts(case: Case, components: Sequence[Component]) -> BoundaryCuts | None:
    """Return the cuts that the study's boundary policy gives; ``None`` where it has none.

    Parameters
    ----------
    case
        The study; ``case.policy`` holds the path of the boundary.
    components
        The study's state, see :data:`cobre.policy.matching.Component`.

    Raises
    ------
    ValidationError
        When the policy cannot be read, does not value states at the end of the study, or values states
        that the study does not have. With ``boundary_strict`` also when it lacks one of the study's.
    """
    if case.policy.boundary_path is None:
        return None
    path = case.policy.boundary_path
    valuation = _foreign_valuation if format_of(path) == "cobre-rs" else _own_valuation
    return _mapped(valuation(case, components, path), case.stages[-1].end_date, case.policy.boundary_strict)


def boundary_content(case: Case) -> tuple[object, ...] | None:
    """Return what the boundary policy holds of the study's end, for a fingerprint; ``None`` without one."""
    path, end = case.policy.boundary_path, case.stages[-1].end_date
    if path is None:
        return None
    if format_of(path) == "cobre-rs":
        directory = PolicyDirectory(path)
        return tuple(
            directory.content(pool) for pool, date in enumerate(directory.priced_dates()) if date == end
        )
    policy = read_policy_directory(path)
    state = tuple(part.key for part in policy.components)
    return tuple(
        (state, *policy.valuation(place)) for place, node in enumerate(policy.nodes) if node.end_date == end
    )


def future_cost_floor(cuts: BoundaryCuts, lower: NDArray[np.float64], upper: NDArray[np.float64]) -> float:
    """Return a lower bound ($) of the cuts' value over the box of states from ``lower`` to ``upper``.

    It is the highest of the cuts' minima: max_c (alpha_c + sum_j min(pi_cj lower_j, pi_cj upper_j)).

    Raises
    ------
    CobreError
        When no cut is bounded on the box.
    """
    corner = np.where(cuts.slopes > 0.0, lower, upper)
    corner = np.where(cuts.slopes == 0.0, 0.0, corner)
    floor = float((cuts.intercepts + (cuts.slopes * corner).sum(axis=1)).max())
    if not np.isfinite(floor):
        raise CobreError(
            _KIND,
            "the boundary cuts have no lower bound, because a state variable that they value has no limit",
            dict(_FIELD),
            "give storages, commitments and releases finite limits",
        )
    return floor


@dataclass(frozen=True, eq=False)
class _Valuation:
    """The cuts of a stored policy that value states on one day: active ones, $.

    ``name`` is what errors call them; ``ours`` are the study's components as this policy identifies them.
    """

    name: str
    ours: Sequence[Identified]
    theirs: Sequence[Identified]
    intercepts: NDArray[np.float64]
    slopes: NDArray[np.float64]


def _foreign_valuation(case: Case, components: Sequence[Component], path: Path) -> _Valuation:
    directory = PolicyDirectory(path)
    number = _of_the_end(case, path, "pool", dict(enumerate(directory.priced_dates())))
    pool = directory.pool(number)
    ours = state_slots(case, components, len(case.stages) - 1)
    return _Valuation(
        f"pool {number} of {path}",
        identified_slots(ours),
        identified_slots(pool.slots),
        pool.intercepts[pool.active],
        pool.slopes[pool.active],
    )


def _own_valuation(case: Case, components: Sequence[Component], path: Path) -> _Valuation:
    policy = read_policy_directory(path)
    number = _of_the_end(case, path, "node", {node.id: node.end_date for node in policy.nodes})
    position = [node.id for node in policy.nodes].index(number)
    node, days = policy.nodes[position], policy.stage_days()
    theirs = identified(
        [part.key for part in policy.components], days, days.index((node.start_date, node.end_date))
    )
    ours = identified(components, study_days(case), len(case.stages) - 1)
    return _Valuation(f"node {number} of {path}", ours, theirs, *policy.valuation(position))


def _of_the_end(case: Case, path: Path, what: str, dates: Mapping[int, datetime.date | None]) -> int:
    """Return the number of the one pool or node that values states at the end of the study."""
    end = case.stages[-1].end_date
    matching = [number for number, date in dates.items() if date == end]
    if len(matching) == 1:
        return matching[0]
    known = ", ".join(sorted({str(date) for date in dates.values() if date is not None})) or "none"
    found = "none" if not matching else f"{len(matching)} ({what}s {', '.join(map(str, matching))})"
    raise _error(
        f"the study ends on {end}, and one {what} of {path} must value states at that date; there is {found}",
        f"dates in the policy: {known}; end the study at one of them, or choose another policy",
        end.isoformat(),
    )


def _mapped(cuts: _Valuation, end: datetime.date, strict: bool) -> BoundaryCuts:
    if not len(cuts.intercepts):
        raise _error(
            f"{cuts.name}, which values states on {end}, has no active cuts",
            "train that policy first, with at least one stage after this date",
            end.isoformat(),
        )
    found = ComponentMap.of(cuts.ours, cuts.theirs)
    errors: list[Problem] = []
    for place in found.unused(len(cuts.theirs)):
        label, weighs = cuts.theirs[place].label, bool(cuts.slopes[:, place].any())
        if weighs or strict:
            tail = "with coefficients that are not zero" if weighs else "and policy.boundary.strict is set"
            message = f"{cuts.name} values a state that the study does not have ({label}), {tail}"
            errors.append(
                _difference(message, label, "add the entity to the study, or choose another policy")
            )
    unknown = [
        _difference(
            f"{cuts.name} does not know a state of the study ({cuts.ours[place].label}); it is worth nothing "
            "at the end",
            cuts.ours[place].label,
            "train the boundary policy with this entity",
        )
        for place in found.unknown()
    ]
    if strict:
        errors += unknown
    if errors:
        raise ValidationError(errors, source="the boundary policy")
    return BoundaryCuts(cuts.intercepts.copy(), found.slopes(cuts.slopes), tuple(unknown))


def _difference(message: str, label: str, suggestion: str) -> Problem:
    return Problem(_KIND, message, {**_FIELD, "entity": label}, suggestion)


def _error(message: str, suggestion: str, value: str) -> ValidationError:
    return ValidationError([Problem(_KIND, message, {**_FIELD, "value": value}, suggestion)])
