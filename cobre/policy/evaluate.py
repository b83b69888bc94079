"""What a policy states of a point: the future cost at a state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cobre.errors import Problem, ValidationError

if TYPE_CHECKING:
    from cobre.policy.model import Policy

_SHOWN = 5


def future_cost(policy: Policy, stage: Any, state: Any) -> float:
    """Return the highest value ($) of a node's cuts and its floor at a state; see :meth:`Policy.evaluate`."""
    nodes, names = len(policy.nodes), policy.state_names
    if not hasattr(stage, "__index__") or not 0 <= stage < nodes:
        raise _wrong("stage", stage, f"a position from 0 to {nodes - 1}")
    try:
        point = np.asarray(state, np.float64)
    except (TypeError, ValueError):
        raise _wrong("state", state, "a sequence of numbers") from None
    if point.shape != (len(names),):
        listed = ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")
        raise _wrong("state", state, f"{len(names)} numbers ({listed}), but its shape is {point.shape}")
    if not np.isfinite(point).all():
        raise _wrong("state", state, "finite numbers")
    cuts = policy.cuts[stage]
    values = cuts.intercept + cuts.slopes @ point
    return float(max(policy.nodes[stage].future_cost_floor, values.max(initial=-np.inf)))


def _wrong(name: str, value: object, wanted: str) -> ValidationError:
    message = f"{name} must be {wanted}"
    if name == "stage":
        message += f", not {value!r}"
    return ValidationError(
        [Problem("InvalidValue", message, {"field": name, "value": f"{value!r:.80}"})], source="arguments"
    )
