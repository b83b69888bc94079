"""What two policies differ in: what ``cobre policy compare`` reports.

Everything counts that both hold: the study, the state, the graph, every bit of every cut, the bounds. Times,
hosts, versions, forms of files and what cut selection remembers do not. What only one of them holds is not
compared: a policy that was read from files of cobre-rs has no study and no proven bound.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cobre.policy.fingerprint import differences
from cobre.policy.model import NodeCuts, Policy

NAMES = ("A", "B")
_SHOWN = 5


@dataclass(frozen=True)
class Difference:
    """One difference; ``topic`` is ``study``, ``training``, ``state``, ``graph``, ``cuts`` or ``bounds``."""

    topic: str
    message: str


def policy_differences(one: Policy, other: Policy) -> list[Difference]:
    """Return what two policies, called A and B, differ in; none when they are the same."""
    found = [*_study(one, other), *_training(one, other)]
    state = _lists("state", [str(c) for c in one.components], [str(c) for c in other.components])
    graph = _lists("graph", _nodes(one), _nodes(other)) or _lists("graph", _edges(one), _edges(other))
    if not state and [node.id for node in one.nodes] == [node.id for node in other.nodes]:
        for node, theirs, mine, cuts in zip(one.nodes, other.nodes, one.cuts, other.cuts, strict=True):
            where = f"node {node.id} (stage {node.stage_id})"
            found += [Difference("cuts", f"{where}: {text}") for text in _cuts(mine, cuts)]
            floors = np.array([node.future_cost_floor, theirs.future_cost_floor])
            known = np.isfinite(floors).all() or _both_hold_studies(one, other)
            if known and floors[:1].tobytes() != floors[1:].tobytes():
                text = f"floor {node.future_cost_floor!r} in A, {theirs.future_cost_floor!r} in B"
                found.append(Difference("cuts", f"{where}: {text}"))
    elif one.sha256() != other.sha256():
        found.append(Difference("cuts", "cuts are not compared individually: state or nodes differ"))
    return [*state, *graph, *found, *_bounds(one, other)]


def _both_hold_studies(one: Policy, other: Policy) -> bool:
    return bool(one.fingerprint.topics) and bool(other.fingerprint.topics)


def _study(one: Policy, other: Policy) -> Iterator[Difference]:
    if _both_hold_studies(one, other):
        for problem in differences(one.fingerprint, other.fingerprint, NAMES):
            yield Difference("study", problem.message)


def _training(one: Policy, other: Policy) -> Iterator[Difference]:
    names = ["completed_iterations", "forward_passes", "seed"]
    for name in [*names, "started_from"] if _both_hold_studies(one, other) else names:
        mine, theirs = getattr(one, name), getattr(other, name)
        if mine != theirs:
            yield Difference("training", f"{name}: {mine} in A, {theirs} in B")


def _nodes(policy: Policy) -> list[str]:
    return [f"node {n.id}, stage {n.stage_id}, {n.start_date} to {n.end_date}" for n in policy.nodes]


def _edges(policy: Policy) -> list[str]:
    return [f"{e.source_id} to {e.target_id} with {e.probability!r}" for e in policy.transitions]


def _lists(topic: str, mine: Sequence[str], theirs: Sequence[str]) -> list[Difference]:
    if list(mine) == list(theirs):
        return []
    extra = [item for item in mine if item not in theirs], [item for item in theirs if item not in mine]
    only = [f"only in {name}: {_shortened(items)}" for name, items in zip(NAMES, extra, strict=True) if items]
    return [Difference(topic, "; ".join(only) or "the same in another order")]


def _shortened(items: Sequence[str]) -> str:
    more = f" and {len(items) - _SHOWN} more" if len(items) > _SHOWN else ""
    return "; ".join(items[:_SHOWN]) + more


def _cuts(mine: NodeCuts, theirs: NodeCuts) -> Iterator[str]:
    if len(mine) != len(theirs):
        yield f"{len(mine)} cuts in A, {len(theirs)} in B"
    count = min(len(mine), len(theirs))
    numbers = _bits(mine, count) != _bits(theirs, count)
    differing = np.flatnonzero(numbers.any(axis=1))
    if len(differing):
        gap = np.abs(mine.intercept[:count] - theirs.intercept[:count])
        slopes = np.abs(mine.slopes[:count] - theirs.slopes[:count])
        yield (
            f"{len(differing)} of {count} cuts differ, the first at slot {mine.slot[differing[0]]}; largest "
            f"difference of intercepts {gap.max(initial=0.0):.6g} $, of slopes {slopes.max(initial=0.0):.6g}"
        )
    for name in () if len(differing) else ("slot", "iteration", "forward_pass"):
        other = np.flatnonzero(getattr(mine, name)[:count] != getattr(theirs, name)[:count])
        if len(other):
            yield f"{name} of {len(other)} of {count} cuts differs"
    other = np.flatnonzero(mine.active[:count] != theirs.active[:count])
    if len(other):
        yield f"{len(other)} of {count} cuts are active in one only, the first at slot {mine.slot[other[0]]}"


def _bits(cuts: NodeCuts, count: int) -> NDArray[np.uint64]:
    """Return the bits of the numbers of the first cuts, so that 0 and -0 differ."""
    numbers = np.column_stack([cuts.intercept[:count], cuts.slopes[:count]])
    return np.ascontiguousarray(numbers, np.float64).view(np.uint64)


def _bounds(one: Policy, other: Policy) -> Iterator[Difference]:
    kinds = one.lower_bound_kind, other.lower_bound_kind
    if kinds[0] != kinds[1] and _both_hold_studies(one, other):
        yield Difference("bounds", f"lower_bound_kind: {kinds[0]} in A, {kinds[1]} in B")
    for name in ("lower_bounds", "upper_bounds"):
        mine, theirs = getattr(one, name), getattr(other, name)
        count = min(len(mine), len(theirs))
        known = ~(np.isnan(mine[:count]) | np.isnan(theirs[:count]))
        changed = np.flatnonzero(known & (mine[:count] != theirs[:count]))
        if len(changed):
            first = int(changed[0])
            yield Difference(
                "bounds",
                f"{name}: {len(changed)} of {count} iterations differ, the first is {first + 1}: "
                f"{float(mine[first])!r} in A, {float(theirs[first])!r} in B",
            )
