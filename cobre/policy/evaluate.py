"""What a policy states of a point: the future cost at a state, and what water is worth there.

A state is an array with a number for each component, or a mapping that names some of them; the others are
those at the start of the study, where the policy knows its study.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from cobre.case.model import Case
from cobre.errors import CobreError, Problem, ValidationError

if TYPE_CHECKING:
    from cobre.policy.model import Policy, StateEntry

FloatArray = NDArray[np.float64]

STORAGE: Final = "storage"
_SHOWN: Final = 5
_LEVELS: Final = 4
"""Directories above a policy in which its case is looked for; a checkpoint has the most."""
_AROUND: Final[WeakKeyDictionary[Policy, Case | None]] = WeakKeyDictionary()
"""Studies found around policies."""
_INITIAL: Final[WeakKeyDictionary[Case, dict[tuple[str, int, int], float]]] = WeakKeyDictionary()
"""Initial state of studies by component: its inflow model takes a while to fit."""


def future_cost(policy: Policy, stage: Any, state: Any) -> float:
    """Return the highest value ($) of a node's cuts and its floor at a state; see :meth:`Policy.evaluate`."""
    node = _node(policy, stage)
    return _value(policy, node, state_of(policy, state))


def water_values(policy: Policy, stage: Any, state: Any) -> dict[str, float]:
    """Return the worth of another hm3 in each reservoir, $/hm3; see :meth:`Policy.water_value`."""
    node = _node(policy, stage)
    slopes = _slopes(policy, node, state_of(policy, state))
    # 0.0 - x, because -x would make a worth of -0.0 of a slope of 0.
    return {
        plant_label(part): float(0.0 - slopes[place])
        for place, part in enumerate(policy.components)
        if part.kind == STORAGE
    }


def state_of(policy: Policy, state: Any) -> FloatArray:
    """Return float64[components]: an array as it is, a mapping with what it leaves out.

    Raises
    ------
    ValidationError
        When it is no state, names what the policy does not have, or leaves out what is not known.
    """
    if isinstance(state, Mapping):
        return _from_mapping(policy, state)
    names = policy.state_names
    try:
        point = np.asarray(state, np.float64)
    except (TypeError, ValueError):
        raise wrong("state", state, "a sequence of numbers") from None
    if point.shape != (len(names),):
        raise wrong(
            "state", state, f"{len(names)} numbers ({_listed(names)}), but its shape is {point.shape}"
        )
    if not np.isfinite(point).all():
        raise wrong("state", state, "finite numbers")
    return point


def storage_place(policy: Policy, plant: Any) -> int:
    """Return the component of a reservoir, by the plant's name or id.

    Raises
    ------
    ValidationError
        When the policy has no such reservoir.
    """
    reservoirs = {place: part for place, part in enumerate(policy.components) if part.kind == STORAGE}
    for place, part in reservoirs.items():
        if isinstance(plant, str):
            if plant in (plant_label(part), part.name):
                return place
        elif plant == part.entity_id:
            return place
    raise _unknown(policy, plant)


def plant_label(part: StateEntry) -> str:
    """Return the name of the plant of a storage: what is in brackets in ``hydro_storage[Furnas]``.

    >>> from cobre.policy.model import StateEntry
    >>> plant_label(StateEntry("storage", 3, 0, "hydro_storage[Furnas]"))
    'Furnas'
    """
    head, bracket, label = part.name.partition("[")
    return label[:-1] if bracket and label.endswith("]") and head == "hydro_storage" else part.name


def _from_mapping(policy: Policy, state: Mapping[Any, Any]) -> FloatArray:
    known = initial_state(policy)
    point = np.full(len(policy.components), np.nan) if known is None else known.copy()
    for key, value in state.items():
        if isinstance(value, (bool, str, bytes)) or not _is_finite(value):
            raise wrong("state", value, f"a finite number of hm3 for {key!r}")
        point[_place(policy, key)] = float(value)
    left = np.flatnonzero(np.isnan(point)).tolist()
    if left:
        names = [policy.state_names[place] for place in left]
        problem = Problem(
            "InvalidValue",
            f"state leaves out {len(left)} of {len(point)} components ({_listed(names)})",
            {"field": "state", "missing": names},
            "name them all, or give the study (cobre.load_policy(DIR, case=CASE)), whose initial state "
            "then fills in",
        )
        raise ValidationError([problem], source="arguments")
    return point


def initial_state(policy: Policy) -> FloatArray | None:
    """Return the state at the start of the policy's study; ``None`` where the study is not known."""
    study = policy.study if policy.study is not None else _study_around(policy)
    if study is None:
        return None
    from cobre.lp.state import StateLayout

    if study not in _INITIAL:
        layout = StateLayout(study)
        _INITIAL[study] = {
            (part.kind, part.entity_id, part.offset): float(value)
            for part, value in zip(layout.components, layout.initial, strict=True)
        }
    initial = _INITIAL[study]
    return np.array([initial.get(part.key, np.nan) for part in policy.components], np.float64)


def _study_around(policy: Policy) -> Case | None:
    """Return the case whose output the policy was found in, if it still is the study of the policy."""
    if policy not in _AROUND:
        _AROUND[policy] = _loaded_around(policy)
    return _AROUND[policy]


def _loaded_around(policy: Policy) -> Case | None:
    places = () if policy.found_in is None else policy.found_in.parents
    case = next((place for place in places[:_LEVELS] if (place / "config.json").is_file()), None)
    if case is None or not policy.fingerprint.topics:
        return None
    from cobre.case import load
    from cobre.policy.fingerprint import differences, study_fingerprint

    try:
        study = load(case)
        return None if differences(policy.fingerprint, study_fingerprint(study)) else study
    except CobreError:  # it is not the study any more: what is left out is then asked for
        return None


def _place(policy: Policy, key: Any) -> int:
    if isinstance(key, str) and key in policy.state_names:
        return policy.state_names.index(key)
    return storage_place(policy, key)


def _node(policy: Policy, stage: Any) -> int:
    nodes = len(policy.nodes)
    if isinstance(stage, bool) or not hasattr(stage, "__index__") or not 0 <= stage < nodes:
        raise wrong("stage", stage, f"a position from 0 to {nodes - 1}")
    return int(stage.__index__())


def _value(policy: Policy, node: int, point: FloatArray) -> float:
    cuts = policy.cuts[node]
    values = cuts.intercept + cuts.slopes @ point
    return float(max(policy.nodes[node].future_cost_floor, values.max(initial=-np.inf)))


def _slopes(policy: Policy, node: int, point: FloatArray) -> FloatArray:
    """Return the slopes of the highest cut, the first of several; 0 where the floor is above all."""
    cuts = policy.cuts[node]
    values = cuts.intercept + cuts.slopes @ point
    if not len(values) or values.max() < policy.nodes[node].future_cost_floor:
        return np.zeros(len(policy.components))
    best: FloatArray = cuts.slopes[int(values.argmax())]
    return best


def _is_finite(value: Any) -> bool:
    try:
        return bool(np.isfinite(float(value)))
    except (TypeError, ValueError, OverflowError):
        return False


def _unknown(policy: Policy, key: object) -> ValidationError:
    reservoirs = [part for part in policy.components if part.kind == STORAGE]
    names = [f"{plant_label(part)} ({part.entity_id})" for part in reservoirs]
    problem = Problem(
        "InvalidValue",
        f"the policy has no reservoir {key!r:.80}; it has {_listed(names) or 'none'}",
        {"field": "state", "value": f"{key!r:.80}"},
        _suggestion(key, [plant_label(part) for part in reservoirs]),
    )
    return ValidationError([problem], source="arguments")


def _suggestion(key: object, names: list[str]) -> str:
    from cobre.case.problems import did_you_mean

    close = did_you_mean(key, names) if isinstance(key, str) else None
    return f"did you mean {close!r}?" if close else "give the name or the id of a hydro plant"


def _listed(names: Any) -> str:
    return ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")


def wrong(name: str, value: object, wanted: str) -> ValidationError:
    """Return the error of an argument that is not what is wanted."""
    message = f"{name} must be {wanted}"
    if name == "stage":
        message += f", not {value!r}"
    return ValidationError(
        [Problem("InvalidValue", message, {"field": name, "value": f"{value!r:.80}"})], source="arguments"
    )
