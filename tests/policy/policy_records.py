"""A pool and a manifest with something in every field."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np

from cobre.policy.foreign import (
    Manifest,
    ManifestEdge,
    ManifestNode,
    Pool,
    SeasonManifest,
    SlotKind,
    StateSlot,
)

END = datetime.date(2024, 3, 31)


def make_pool(**changes: Any) -> Pool:
    """Three cuts over four states, the second cut inactive."""
    fields: dict[str, Any] = {
        "pool_id": 1,
        "slots": (
            StateSlot(SlotKind.STORAGE, 3),
            StateSlot(SlotKind.STORAGE, -7, was_active=False),
            StateSlot(SlotKind.INFLOW_LAG, 3, 2, reference_date=datetime.date(2024, 1, 1)),
            StateSlot(SlotKind.ANTICIPATED, 5, 1, interval=(END, datetime.date(2024, 4, 30))),
        ),
        "intercepts": np.array([1.0e6, -0.0, -2.5]),
        "slopes": np.array([[-1.5, 0.0, 0.0, 2.0], [-9.0, 1.0, 0.0, 1.0], [-0.1, 0.0, 0.0, -3.0]]),
        "active": np.array([True, False, True]),
        "cut_ids": np.array([7, 2**63, 9], np.uint64),
        "slot_index": np.array([0, 1, 2], np.uint32),
        "iterations": np.array([1, 1, 2], np.uint32),
        "forward_passes": np.array([0, 1, 0], np.uint32),
        "cost_scale_factor": 1024.0,
        "node_id": 0,
        "graph_stage_id": 4,
        "priced_date": END,
        "capacity": 10,
        "warm_start_count": 1,
    }
    return Pool(**{**fields, **changes})


def make_manifest(**changes: Any) -> Manifest:
    """Two stages, two pools."""
    fields: dict[str, Any] = {
        "num_stages": 2,
        "num_pools": 2,
        "nodes": (ManifestNode(0, 3, 0), ManifestNode(1, 4, 1)),
        "edges": (ManifestEdge(0, 1, 1.0),),
        "software": "cobre",
        "software_version": "1.2.3",
        "created_at": "2024-01-01T00:00:00+00:00",
        "completed_iterations": 8,
        "final_lower_bound": 12.5,
        "best_upper_bound": 0.0,
        "max_iterations": 10,
        "forward_passes": 4,
        "rng_seed": 2**64 - 1,
        "training_block_mode": "mixed",
        "block_mode_per_stage": ("parallel", "chronological"),
        "cost_scale_factor": 1000.0,
        "lower_bound_history": (1.0, 12.5),
        "warm_start_counts": (0, 1),
        "seasons": SeasonManifest(0, 2, ((3, (0, 1)), (-7, (2, 0)))),
    }
    return Manifest(**{**fields, **changes})


def same_pool(one: Pool, other: Pool) -> bool:
    """Whether two pools hold the same bits."""
    return all(
        a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
        if isinstance(a, np.ndarray)
        else a == b
        for a, b in ((vars(one)[name], vars(other)[name]) for name in vars(one))
    )
