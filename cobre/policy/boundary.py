"""The cuts of another policy that value the state at the end of a study.

Of the policy's pools the one is taken whose date is the end of the last stage. Its cuts say

    theta >= alpha_c + sum_j pi_cj x_j        (c over active cuts, j over the pool's components)

and each of our components takes the slope of the component that it is in the pool.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cobre.case.model import Case
from cobre.errors import CobreError, Problem, ValidationError
from cobre.policy.foreign.directory import PolicyDirectory
from cobre.policy.foreign.records import Pool, StateSlot
from cobre.policy.foreign.slots import Component, find_slots, state_slots

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
        The study; ``case.policy`` tells where the boundary is.
    components
        The study's state, see :data:`cobre.policy.foreign.slots.Component`.

    Raises
    ------
    ValidationError
        When the policy cannot be read, does not value states at the end of the study, or speaks of states
        that the study does not have. With ``boundary_strict`` also when it lacks one of the study's.
    """
    if case.policy.boundary_path is None:
        return None
    pool, name = _choose(case, PolicyDirectory(case.policy.boundary_path))
    ours = state_slots(case, components, len(case.stages) - 1)
    return _mapped(pool, ours, name, case.policy.boundary_strict)


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


def _choose(case: Case, directory: PolicyDirectory) -> tuple[Pool, str]:
    """Return the pool that values states at the end of the study, and how to call it."""
    end = case.stages[-1].end_date
    dates = directory.priced_dates()
    matching = [pool_id for pool_id, date in enumerate(dates) if date == end]
    if len(matching) != 1:
        known = ", ".join(sorted({str(date) for date in dates if date is not None})) or "none"
        found = "none" if not matching else f"{len(matching)} (pools {', '.join(map(str, matching))})"
        raise _error(
            f"the study ends on {end}, and one pool of cuts in {directory.path} must value states at that "
            f"date; there is {found}",
            f"dates in the policy: {known}; end the study at one of them, or choose another policy",
            end.isoformat(),
        )
    pool = directory.pool(matching[0])
    if not pool.active.any():
        raise _error(
            f"pool {pool.pool_id} of {directory.path}, which values states on {end}, has no active cuts",
            "train that policy first, with at least one stage after this date",
            end.isoformat(),
        )
    return pool, f"pool {pool.pool_id} of {directory.path}"


def _mapped(pool: Pool, ours: Sequence[StateSlot], name: str, strict: bool) -> BoundaryCuts:
    found = find_slots(ours, pool.slots)
    slopes = pool.slopes[pool.active]
    used = {place for place in found if place is not None}
    errors: list[Problem] = []
    for place, slot in enumerate(pool.slots):
        weighs = bool(slopes[:, place].any())
        if place not in used and (weighs or strict):
            tail = "with coefficients that are not zero" if weighs else "and policy.boundary.strict is set"
            message = f"{name} values a state that the study does not have ({slot}), {tail}"
            errors.append(_difference(message, slot, "add the entity to the study, or choose another policy"))
    unknown = [
        _difference(
            f"{name} does not know a state of the study ({slot}); it is worth nothing at the end",
            slot,
            "train the boundary policy with this entity",
        )
        for slot, place in zip(ours, found, strict=True)
        if place is None
    ]
    if strict:
        errors += unknown
    if errors:
        raise ValidationError(errors, source="the boundary policy")
    mapped = np.zeros((len(slopes), len(ours)))
    for component, known in enumerate(found):
        if known is not None:
            mapped[:, component] = slopes[:, known]
    return BoundaryCuts(pool.intercepts[pool.active].copy(), mapped, tuple(unknown))


def _difference(message: str, slot: StateSlot, suggestion: str) -> Problem:
    return Problem(_KIND, message, {**_FIELD, "entity": str(slot)}, suggestion)


def _error(message: str, suggestion: str, value: str) -> ValidationError:
    return ValidationError([Problem(_KIND, message, {**_FIELD, "value": value}, suggestion)])
