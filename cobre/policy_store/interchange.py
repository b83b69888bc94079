"""A policy in the FlatBuffers format of cobre-rs (:mod:`cobre.policy_files`), there and back.

Cuts are in $ in both formats; ``cost_scale_factor`` tells the unit of the writer's LPs and is only handed
on. The files say what each coefficient belongs to: type 0 storage, 1 inflow lag (subindex = lag), 2
commitment, told apart by the dates of delivery, 3 water in transit, by the plant it flows *to* and the
dates of arrival. What they hold is mapped to the state of a study, which knows its stages' dates and who
releases water to whom.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cobre._version import __version__
from cobre.case.model import Case
from cobre.errors import OutputError, Problem, ValidationError
from cobre.policy_files import Manifest, ManifestEdge, ManifestNode, PolicyDirectory, Pool, SeasonManifest
from cobre.policy_files.records import NOT_IN_FORMAT, StateSlot
from cobre.policy_files.slots import find_slots, state_slots
from cobre.policy_store.fingerprint import Fingerprint
from cobre.policy_store.records import NodeCuts, NodeEntry, PolicyData, StateEntry, TransitionEntry

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


def from_flatbuffers(path: Path, case: Case, components: Sequence[StateEntry]) -> PolicyData:
    """Read a policy directory of cobre-rs for a warm start of ``case``.

    Pools are found by the date at which they value states (on a graph with several nodes a stage also by
    node), and each of the study's components by what it is. Every cut counts as loaded. The fingerprint is
    empty: the files do not hold the study.

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
    for node in case.graph.nodes:
        end = case.stages[node.stage].end_date
        pools = [directory.pool(pool_id) for pool_id, date in enumerate(dates) if date == end]
        if len(pools) > 1:
            pools = [pool for pool in pools if pool.node_id == node.id]
        if not pools or not len(pools[0].intercepts):
            cuts.append(_loaded(np.zeros(0), np.zeros((0, len(components))), np.zeros(0, np.bool_)))
            continue
        ours = state_slots(case, [part.key for part in components], node.stage)
        slopes, faults = _mapped(pools[0], ours, path)
        problems += faults
        cuts.append(_loaded(pools[0].intercepts, slopes, pools[0].active))
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
    return PolicyData(
        components=tuple(components),
        nodes=tuple(
            NodeEntry(node.id, node.stage_id, node.start_date, node.end_date, -np.inf, len(part))
            for node, part in zip(case_nodes(case), cuts, strict=True)
        ),
        transitions=case_transitions(case),
        cuts=tuple(cuts),
        is_chain=case.graph.is_chain,
        forward_passes=max(1, manifest.forward_passes),
        seed=manifest.rng_seed,
        completed_iterations=0,
        lower_bounds=np.zeros(0),
        upper_bounds=np.zeros(0),
        fingerprint=Fingerprint({}),
        cost_scale_factor=manifest.cost_scale_factor or 1.0,
        lower_bound_kind="estimate",
    )


def _loaded(
    intercepts: NDArray[np.float64], slopes: NDArray[np.float64], active: NDArray[np.bool_]
) -> NodeCuts:
    zeros = np.zeros(len(intercepts), np.int64)
    return NodeCuts(np.arange(len(intercepts), dtype=np.int64), zeros, zeros, intercepts, slopes, active)


def _mapped(pool: Pool, ours: Sequence[StateSlot], path: Path) -> tuple[NDArray[np.float64], list[Problem]]:
    """Return the pool's slopes by component of the study, and what stands in the way."""
    found = find_slots(ours, pool.slots)
    used = {place for place in found if place is not None}
    faults = [
        Problem(
            _KIND,
            f"pool {pool.pool_id} of {path} does not know a state of the study ({slot})",
            {"file": str(path), "entity": str(slot)},
            "train that policy with this entity, or start fresh",
        )
        for slot, place in zip(ours, found, strict=True)
        if place is None
    ]
    faults += [
        Problem(
            _KIND,
            f"pool {pool.pool_id} of {path} values a state that the study does not have ({slot})",
            {"file": str(path), "entity": str(slot)},
            "add the entity to the study, or start fresh",
        )
        for place, slot in enumerate(pool.slots)
        if place not in used and pool.slopes[pool.active][:, place].any()
    ]
    slopes = np.zeros((len(pool.intercepts), len(ours)))
    for component, place in enumerate(found):
        if place is not None:
            slopes[:, component] = pool.slopes[:, place]
    return slopes, faults


def to_flatbuffers(policy: PolicyData, case: Case) -> tuple[Manifest, tuple[Pool, ...]]:
    """Return the records of a policy directory of cobre-rs; ``case`` is the study it was trained for.

    The floor of a node's future cost becomes a cut without slopes behind the others, because the format has
    no other place for it.

    Raises
    ------
    OutputError
        When the policy tells states apart that are one in the format: water under way to the same plant.
    """
    pools = tuple(_pool(policy, case, position) for position in range(len(policy.nodes)))
    modes = [stage.block_mode for stage in case.stages]
    bounds = policy.lower_bounds
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
        final_lower_bound=float(bounds[-1]) if len(bounds) else 0.0,
        best_upper_bound=float(policy.upper_bounds[-1]) if len(bounds) else None,
        max_iterations=case.training.iteration_limit,
        forward_passes=policy.forward_passes,
        rng_seed=policy.seed,
        training_block_mode=modes[0] if len(set(modes)) == 1 else "mixed",
        block_mode_per_stage=() if len(set(modes)) == 1 else tuple(modes),
        cost_scale_factor=policy.cost_scale_factor,
        lower_bound_history=tuple(bounds.tolist()),
        warm_start_counts=tuple(node.loaded_cuts for node in policy.nodes),
        seasons=season_manifest(case),
    )
    return manifest, pools


def _pool(policy: PolicyData, case: Case, position: int) -> Pool:
    node, cuts = policy.nodes[position], policy.cuts[position]
    stage = case.graph.nodes[position].stage
    ours = state_slots(case, [part.key for part in policy.components], stage)
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
    """Make one component of those that the format does not tell apart: water under way to the same plant.

    Raises
    ------
    OutputError
        When they have different slopes, or the format has no such component.
    """
    foreign = next((slot for slot in slots if slot.kind == NOT_IN_FORMAT), None)
    if foreign is not None:
        raise OutputError(
            "OutputNotWritable",
            f"the policy values {foreign}, which the format of cobre-rs cannot hold",
            {"entity": str(foreign)},
            "keep the policy in the format of this package",
        )
    first: dict[StateSlot, int] = {}
    for place, slot in enumerate(slots):
        known = first.setdefault(slot, place)
        if not np.array_equal(slopes[:, known], slopes[:, place]):
            raise OutputError(
                "OutputNotWritable",
                f"the policy values {slot} differently by where it comes from, which the format cannot tell",
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
