"""A policy in the FlatBuffers format of cobre-rs (:mod:`cobre.policy.foreign`), there and back.

Cuts are in $ in both formats; ``cost_scale_factor`` is the unit of the writer's LPs and is only passed
on. The files state what each coefficient belongs to: type 0 storage, 1 inflow lag (subindex = lag), 2
commitment, identified by the dates of delivery, 3 water in transit, by the plant it flows *to* and the
dates of arrival. What they hold is mapped to the state of a study, which knows its stages' dates and who
releases water to whom.
"""

from __future__ import annotations

import datetime
import secrets
import shutil
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from cobre._version import __version__
from cobre.case.model import Case
from cobre.durable import atomic_write, output_errors, put_directory
from cobre.errors import OutputError, Problem, ValidationError
from cobre.policy.foreign.directory import PolicyDirectory, check_replaceable
from cobre.policy.foreign.records import (
    NOT_IN_FORMAT,
    Manifest,
    ManifestEdge,
    ManifestNode,
    Pool,
    SeasonManifest,
    StateSlot,
)
from cobre.policy.foreign.slots import identified_slots, state_slots
from cobre.policy.matching import ComponentMap, described
from cobre.policy.model import NodeCuts, NodeEntry, Policy, StateEntry, TransitionEntry

_KIND = "PolicyIncompatible"
_CYCLES = {"monthly": 0, "weekly": 1, "custom": 2}


def case_nodes(case: Case, floors: Sequence[float] | None = None) -> tuple[NodeEntry, ...]:
    """Return the nodes of a study; with ``floors`` the bounds of their future costs, else none is known."""
    floors = [-np.inf] * len(case.graph.nodes) if floors is None else floors
    return tuple(
        NodeEntry(node.id, stage.id, stage.start_date, stage.end_date, float(floor))
        for node, floor in zip(case.graph.nodes, floors, strict=True)
        for stage in [case.stages[node.stage]]
    )


def from_flatbuffers(path: Path, case: Case, components: Sequence[StateEntry]) -> Policy:
    """Read a policy directory of cobre-rs as a policy of the study ``case``.

    Pools are found by the date at which they value states (on a graph with several nodes a stage also by
    node), and each of the study's components by what it is. The fingerprint is empty, because the files do
    not hold the study, and what they call lower bounds are estimates, because nothing proves them. The bounds
    of iterations that the files do not give are NaN.

    Parameters
    ----------
    components
        The study's state.

    Raises
    ------
    ValidationError
        When a file is damaged, a pool lacks a state of the study or values one that the study does not have,
        or no pool fits a stage.
    """
    directory = PolicyDirectory(path)
    manifest = directory.manifest
    dates = directory.priced_dates()
    problems: list[Problem] = []
    cuts: list[NodeCuts] = []
    nodes: list[NodeEntry] = []
    for node, entry in zip(case.graph.nodes, case_nodes(case), strict=True):
        pools = [directory.pool(pool_id) for pool_id, date in enumerate(dates) if date == entry.end_date]
        if len(pools) > 1:
            pools = [pool for pool in pools if pool.node_id == node.id]
        if not pools or not len(pools[0].intercepts):
            cuts.append(_no_cuts(len(components)))
            nodes.append(entry)
            continue
        ours = state_slots(case, [part.key for part in components], node.stage)
        slopes, faults = _mapped(pools[0], ours, path)
        problems += faults
        floor, loaded, found = _node_cuts(pools[0], slopes, manifest)
        cuts.append(found)
        nodes.append(replace(entry, future_cost_floor=floor, loaded_cuts=loaded))
    if not problems and not any(len(part) for part in cuts):
        known = ", ".join(sorted({str(date) for date in dates if date is not None})) or "none"
        problems = [
            Problem(
                _KIND,
                f"{path} has no cuts that value states at the end of a stage of the study",
                {"file": str(path)},
                f"dates in the policy: {known}",
            )
        ]
    if problems:
        raise ValidationError(problems, source=f"the policy in {path}")
    iterations, bounds = manifest.completed_iterations, manifest.lower_bound_history
    return Policy(
        components=tuple(components),
        nodes=tuple(nodes),
        transitions=case_transitions(case),
        cuts=tuple(cuts),
        is_chain=case.graph.is_chain,
        forward_passes=max(1, manifest.forward_passes),
        seed=manifest.rng_seed,
        completed_iterations=iterations,
        lower_bounds=np.array(bounds) if len(bounds) == iterations else np.full(iterations, np.nan),
        upper_bounds=np.full(iterations, np.nan),
        cost_scale_factor=manifest.cost_scale_factor or 1.0,
        lower_bound_kind="estimate",
    )


def _no_cuts(states: int) -> NodeCuts:
    none = np.zeros(0, np.int64)
    return NodeCuts(none, none, none, np.zeros(0), np.zeros((0, states)), np.zeros(0, np.bool_))


def _node_cuts(pool: Pool, slopes: NDArray[np.float64], manifest: Manifest) -> tuple[float, int, NodeCuts]:
    """Return floor, number of loaded cuts, and the cuts of a pool.

    A cut without slopes behind the others, of no iteration, is the floor that :func:`to_flatbuffers` writes.
    Where the origin of a cut contradicts the manifest, all cuts of the pool count as loaded.
    """
    count, floor = len(pool.intercepts), -np.inf
    last = count - 1
    behind = last >= max(1, pool.warm_start_count) and pool.iterations[last] == 0
    if behind and pool.active[last] and not pool.slopes[last].any():
        count, floor = last, float(pool.intercepts[last])
    loaded = min(pool.warm_start_count, count)
    iteration = pool.iterations[:count].astype(np.int64)
    forward_pass = pool.forward_passes[:count].astype(np.int64)
    made, passes = iteration[loaded:], forward_pass[loaded:]
    if not (
        ((made >= 1) & (made <= manifest.completed_iterations)).all()
        and (passes < max(1, manifest.forward_passes)).all()
    ):
        loaded = count
    iteration[:loaded] = 0
    forward_pass[:loaded] = 0
    slot = pool.slot_index[:count].astype(np.int64)
    if not (np.diff(slot) > 0).all():
        slot = np.arange(count, dtype=np.int64)
    cuts = NodeCuts(
        slot, iteration, forward_pass, pool.intercepts[:count], slopes[:count], pool.active[:count]
    )
    return floor, loaded, cuts


def _mapped(pool: Pool, ours: Sequence[StateSlot], path: Path) -> tuple[NDArray[np.float64], list[Problem]]:
    """Return the pool's slopes by component of the study, and what prevents their use."""
    found = ComponentMap.of(identified_slots(ours), identified_slots(pool.slots))
    name = f"pool {pool.pool_id} of {path}"
    faults = [
        _fault(f"{name} does not know a state of the study ({ours[place]})", path, ours[place])
        for place in found.unknown()
    ]
    faults += [
        _fault(
            f"{name} values a state that the study does not have ({pool.slots[place]})",
            path,
            pool.slots[place],
            "add the entity to the study, or start fresh",
        )
        for place in found.unused(len(pool.slots))
        if pool.slopes[pool.active][:, place].any()
    ]
    return found.slopes(pool.slopes), faults


def _fault(
    message: str, path: Path, slot: StateSlot, suggestion: str = "train that policy with this entity"
) -> Problem:
    return Problem(_KIND, message, {"file": str(path), "entity": str(slot)}, suggestion)


def write_flatbuffers(path: Path, policy: Policy, case: Case, *, software_version: str = __version__) -> None:
    """Write a policy directory of cobre-rs to ``path``, complete or not at all, in place of one there.

    Parameters
    ----------
    case
        The study that the policy was trained for.
    software_version
        What the manifest gives as the version of the writer. cobre-rs 0.18.0 loads only policies that give
        its own; whoever converts for it states that here.

    Raises
    ------
    OutputError
        When it cannot be written, or ``path`` holds anything that is not of such a directory.
    """
    from cobre.policy.foreign.encode import encode_manifest, encode_pool  # what only writers wait for

    manifest, pools = to_flatbuffers(policy, case)
    manifest = replace(manifest, software_version=software_version)
    contents = {f"cuts/{pool.pool_id:03d}.bin": encode_pool(pool) for pool in pools}
    contents["manifest.bin"] = encode_manifest(manifest)
    staging = path.with_name(f".{path.name}.{secrets.token_hex(4)}.staging")
    with output_errors(path):
        check_replaceable(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            for folder in ("cuts", "basis"):  # cobre-rs reads both; bases are not needed
                (staging / folder).mkdir(parents=True)
            for name, content in contents.items():
                atomic_write(staging / name, partial(_write_all, content=content))
            put_directory(staging, path)
        except BaseException:
            shutil.rmtree(staging, ignore_errors=True)
            raise


def _write_all(file: BinaryIO, content: bytes) -> None:
    file.write(content)


def to_flatbuffers(policy: Policy, case: Case) -> tuple[Manifest, tuple[Pool, ...]]:
    """Return the records of a policy directory of cobre-rs; ``case`` is the study it was trained for.

    The floor of a node's future cost becomes a cut without slopes behind the others, because the format has
    no other place for it.

    Raises
    ------
    ValidationError
        When the study has other nodes than the policy.
    OutputError
        When the format cannot hold the policy: it has a kind of state that the format lacks, or values water
        under way to the same plant differently.
    """
    _require_nodes(policy, case)
    pools = tuple(_pool(policy, case, position) for position in range(len(policy.nodes)))
    modes = [stage.block_mode for stage in case.stages]
    lower, upper = policy.lower_bounds, policy.upper_bounds
    manifest = Manifest(
        num_stages=len(case.stages),
        num_pools=len(pools),
        nodes=tuple(ManifestNode(node.id, node.stage_id, place) for place, node in enumerate(policy.nodes)),
        edges=tuple(
            ManifestEdge(edge.source_id, edge.target_id, edge.probability) for edge in policy.transitions
        ),
        software="cobre",
        software_version=__version__,
        created_at=datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        completed_iterations=policy.completed_iterations,
        final_lower_bound=float(lower[-1]) if len(lower) else 0.0,
        best_upper_bound=float(upper[-1]) if len(upper) and np.isfinite(upper[-1]) else None,
        max_iterations=case.training.iteration_limit,
        forward_passes=policy.forward_passes,
        rng_seed=policy.seed,
        training_block_mode=modes[0] if len(set(modes)) == 1 else "mixed",
        block_mode_per_stage=() if len(set(modes)) == 1 else tuple(modes),
        cost_scale_factor=policy.cost_scale_factor,
        lower_bound_history=tuple(lower.tolist()),
        warm_start_counts=tuple(node.loaded_cuts for node in policy.nodes),
        seasons=season_manifest(case),
    )
    return manifest, pools


def _require_nodes(policy: Policy, case: Case) -> None:
    stored = [(node.id, node.start_date, node.end_date) for node in policy.nodes]
    known = [(node.id, node.start_date, node.end_date) for node in case_nodes(case)]
    if stored == known:
        return
    place = next((i for i, (one, other) in enumerate(zip(stored, known, strict=False)) if one != other), None)
    words = f"the policy has {len(stored)} nodes, the case {len(known)}"
    if place is not None:
        (one, start, end), (other, first, last) = stored[place], known[place]
        words = f"its node {one} is of {start} to {end}, the case has node {other} of {first} to {last} there"
    raise ValidationError(
        [
            Problem(
                _KIND,
                f"the policy is not of the case {case.path}: {words}",
                {"file": str(case.path), "field": "stages"},
                "give the case that the policy was trained for",
            )
        ],
        source="converting a policy",
    )


def _pool(policy: Policy, case: Case, position: int) -> Pool:
    node, cuts = policy.nodes[position], policy.cuts[position]
    stage = case.graph.nodes[position].stage
    try:
        ours = state_slots(case, [part.key for part in policy.components], stage)
    except ValueError as error:
        raise OutputError(
            "OutputNotWritable", f"the format of cobre-rs cannot hold this policy: {error}", {"node": node.id}
        ) from error
    for part, own in zip(policy.components, ours, strict=True):
        if own.kind == NOT_IN_FORMAT:
            raise OutputError(
                "OutputNotWritable",
                f"the policy has the state {described(*part.key)}, which the format of cobre-rs cannot hold",
                {"entity": described(*part.key)},
                "keep the policy in the format of this package",
            )
    slots, slopes = merged_slots(ours, cuts.slopes)
    columns = [cuts.slot, cuts.iteration, cuts.forward_pass]
    intercepts, active = cuts.intercept, cuts.active
    if len(cuts) and np.isfinite(node.future_cost_floor):
        intercepts = np.append(intercepts, node.future_cost_floor)
        slopes = np.vstack([slopes, np.zeros((1, len(slots)))])
        active = np.append(active, True)
        columns = [
            np.append(column, value) for column, value in zip(columns, (cuts.slot[-1] + 1, 0, 0), strict=True)
        ]
    slot, iteration, forward_pass = (column.astype(np.uint32) for column in columns)
    return Pool(
        pool_id=position,
        slots=slots,
        intercepts=intercepts,
        slopes=slopes,
        active=active,
        cut_ids=slot.astype(np.uint64),
        slot_index=slot,
        iterations=iteration,
        forward_passes=forward_pass,
        cost_scale_factor=policy.cost_scale_factor,
        node_id=node.id,
        graph_stage_id=node.stage_id,
        priced_date=node.end_date,
        capacity=int(slot[-1]) + 1 if len(slot) else 0,
        warm_start_count=node.loaded_cuts,
    )


def merged_slots(
    slots: Sequence[StateSlot], slopes: NDArray[np.float64]
) -> tuple[tuple[StateSlot, ...], NDArray[np.float64]]:
    """Make one component of those that the format does not distinguish: water under way to the same plant.

    Raises
    ------
    OutputError
        When they have different slopes.
    """
    first: dict[StateSlot, int] = {}
    for place, slot in enumerate(slots):
        known = first.setdefault(slot, place)
        if not np.array_equal(slopes[:, known], slopes[:, place]):
            raise OutputError(
                "OutputNotWritable",
                f"the policy values {slot} differently by where it comes from, which the format cannot state",
                {"entity": str(slot)},
            )
    return tuple(first), slopes[:, list(first.values())]


def season_manifest(case: Case) -> SeasonManifest:
    """Return the study's cycle of seasons, and the largest autoregressive order of each plant in each."""
    if case.seasons is None:
        return SeasonManifest()
    from cobre.stochastic.par import inflow_model  # loads the compiler, which only models need

    order = inflow_model(case).order
    of_stage = np.array([-1 if stage.season_id is None else stage.season_id for stage in case.stages])
    found = np.array([order[of_stage == season.id].max(axis=0, initial=0) for season in case.seasons.seasons])
    orders = tuple(
        (hydro.id, tuple(int(value) for value in found[:, h])) for h, hydro in enumerate(case.hydros)
    )
    return SeasonManifest(_CYCLES[case.seasons.cycle_type], len(case.seasons.seasons), orders)


def case_transitions(case: Case) -> tuple[TransitionEntry, ...]:
    """Return the edges of a study's graph, between ids of nodes."""
    nodes = case.graph.nodes
    return tuple(
        TransitionEntry(nodes[edge.source].id, nodes[edge.target].id, edge.probability)
        for edge in case.graph.transitions
    )
