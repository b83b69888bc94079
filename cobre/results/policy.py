"""Writing a trained policy as a policy directory (:mod:`cobre.policy.foreign`).

The directory is complete or not there: it is written beside its place and renamed. One that stands there is
replaced, if it is a policy and holds nothing else.
"""

from __future__ import annotations

import datetime
import secrets
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from cobre._version import __version__
from cobre.errors import OutputError
from cobre.lp.state import StateLayout
from cobre.policy.foreign import (
    Manifest,
    ManifestEdge,
    ManifestNode,
    Pool,
    state_slots,
)
from cobre.policy.foreign.conversion import merged_slots, season_manifest
from cobre.results.files import atomic_write, output_errors, sync_directory

if TYPE_CHECKING:
    from cobre.case.model import Case
    from cobre.policy.foreign.slots import Component
    from cobre.sddp import TrainingResult

_OWN_NAMES = frozenset({"manifest.bin", "cuts", "basis", "states"})


def write_policy(
    directory: Path,
    case: Case,
    result: TrainingResult,
    components: Sequence[Component] | None = None,
) -> None:
    """Write the trained policy to ``directory``, from where it can be the boundary of another study.

    Parameters
    ----------
    directory
        Replaced if it is a policy directory; its parent is created where it is missing.
    case
        The study that was trained.
    components
        What the policy's states are; storages unless told otherwise.

    Raises
    ------
    OutputError
        When it cannot be written, or when ``directory`` holds anything else.
    """
    from cobre.policy.foreign.encode import encode_manifest, encode_pool  # what only writers wait for

    if components is None:
        components = [(part.kind, part.entity_id, part.offset) for part in StateLayout(case).components]
    pools = [_pool(case, result, node, components) for node in range(len(case.graph.nodes))]
    staging = directory.with_name(f".{directory.name}.{secrets.token_hex(4)}.staging")
    previous = staging.with_suffix(".previous")
    with output_errors(directory):
        _check_replaceable(directory)
        directory.parent.mkdir(parents=True, exist_ok=True)
        try:
            (staging / "cuts").mkdir(parents=True)
            for pool in pools:
                _write(staging / "cuts" / f"{pool.pool_id:03d}.bin", encode_pool(pool))
            _write(staging / "manifest.bin", encode_manifest(_manifest(case, result)))
            if directory.exists():
                directory.rename(previous)
            staging.rename(directory)
            sync_directory(directory.parent)
        except BaseException:
            if previous.exists() and not directory.exists():
                previous.rename(directory)
            shutil.rmtree(staging, ignore_errors=True)
            raise
        if previous.exists():
            shutil.rmtree(previous)


def _check_replaceable(directory: Path) -> None:
    if not directory.exists():
        return
    foreign = sorted(entry.name for entry in directory.iterdir() if entry.name not in _OWN_NAMES)
    if foreign:
        raise OutputError(
            "OutputNotWritable",
            f"{directory} holds files that are not of a policy, and writing would remove them: "
            f"{', '.join(foreign[:5])}",
            {"file": str(directory)},
            "choose another directory, or move these files away",
        )


def _pool(case: Case, result: TrainingResult, node: int, components: Sequence[Component]) -> Pool:
    """Return the cuts of a node, and behind them the floor of its future cost as a cut without slopes."""
    policy, graph_node = result.policy, case.graph.nodes[node]
    stage, last = case.stages[graph_node.stage], len(case.stages) - 1
    slots, slopes = merged_slots(state_slots(case, components, graph_node.stage), policy.slopes[node])
    intercepts = policy.intercepts[node]
    cuts = len(intercepts)
    if cuts:
        intercepts = np.append(intercepts, policy.future_cost_floor[node])
        slopes = np.vstack([slopes, np.zeros((1, len(slots)))])
    loaded = policy.boundary_cuts if graph_node.stage == last else 0
    index = np.arange(len(intercepts), dtype=np.uint32)
    floor = len(index) - cuts
    return Pool(
        pool_id=node,
        slots=slots,
        intercepts=intercepts,
        slopes=slopes,
        active=np.append(policy.active[node], np.ones(floor, np.bool_)),
        cut_ids=index.astype(np.uint64),
        slot_index=index,
        iterations=np.append(policy.iterations[node], np.zeros(floor)).astype(np.uint32),
        forward_passes=np.append(policy.passes[node], np.zeros(floor)).astype(np.uint32),
        cost_scale_factor=_cost_scale(case),
        node_id=graph_node.id,
        graph_stage_id=stage.id,
        priced_date=stage.end_date,
        capacity=len(index),
        warm_start_count=loaded,
    )


def _manifest(case: Case, result: TrainingResult) -> Manifest:
    nodes, modes = case.graph.nodes, [stage.block_mode for stage in case.stages]
    last = len(case.stages) - 1
    loaded = result.policy.boundary_cuts
    return Manifest(
        num_stages=len(case.stages),
        num_pools=len(nodes),
        nodes=tuple(
            ManifestNode(node.id, case.stages[node.stage].id, place) for place, node in enumerate(nodes)
        ),
        edges=tuple(
            ManifestEdge(nodes[edge.source].id, nodes[edge.target].id, edge.probability)
            for edge in case.graph.transitions
        ),
        software="cobre",
        software_version=__version__,
        created_at=datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        completed_iterations=result.iterations,
        final_lower_bound=result.lower_bound,
        best_upper_bound=result.upper_bound,
        max_iterations=case.training.iteration_limit,
        forward_passes=result.policy.forward_passes,
        rng_seed=result.seed,
        training_block_mode=modes[0] if len(set(modes)) == 1 else "mixed",
        block_mode_per_stage=() if len(set(modes)) == 1 else tuple(modes),
        cost_scale_factor=_cost_scale(case),
        lower_bound_history=tuple(record.lower_bound for record in result.history),
        warm_start_counts=tuple(loaded if node.stage == last else 0 for node in nodes),
        seasons=season_manifest(case),
    )


def _cost_scale(case: Case) -> float:
    """Return what the study asks for, else 1: the cuts are in $ and do not depend on it."""
    return case.training.cost_scale_factor or 1.0


def _write(path: Path, content: bytes) -> None:
    def write(file: BinaryIO) -> None:
        file.write(content)

    atomic_write(path, write)
