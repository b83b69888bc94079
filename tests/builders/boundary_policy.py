"""A policy of another study that values the end of a case, in the format of cobre-rs."""

from __future__ import annotations

import datetime
from pathlib import Path

import numpy as np

from cobre.policy.foreign import Manifest, ManifestNode, Pool, SeasonManifest, SlotKind, StateSlot
from cobre.policy.foreign.encode import encode_manifest, encode_pool


def write_boundary(path: Path, hydro_id: int, priced: datetime.date) -> Path:
    """Write a policy of one stage with one cut over the storage of a plant; return its directory."""
    (path / "cuts").mkdir(parents=True, exist_ok=True)
    pool = Pool(
        pool_id=0,
        slots=(StateSlot(SlotKind.STORAGE, hydro_id),),
        intercepts=np.array([1.0e4]),
        slopes=np.array([[-1.5]]),
        active=np.array([True]),
        cut_ids=np.zeros(1, np.uint64),
        slot_index=np.zeros(1, np.uint32),
        iterations=np.ones(1, np.uint32),
        forward_passes=np.zeros(1, np.uint32),
        cost_scale_factor=1.0,
        node_id=0,
        graph_stage_id=0,
        priced_date=priced,
        capacity=1,
        warm_start_count=0,
    )
    manifest = Manifest(
        num_stages=1,
        num_pools=1,
        nodes=(ManifestNode(0, 0, 0),),
        edges=(),
        software="cobre",
        software_version="1",
        created_at="2024-01-01T00:00:00+00:00",
        completed_iterations=1,
        final_lower_bound=0.0,
        best_upper_bound=0.0,
        max_iterations=1,
        forward_passes=1,
        rng_seed=0,
        training_block_mode="parallel",
        block_mode_per_stage=(),
        cost_scale_factor=1.0,
        lower_bound_history=(0.0,),
        warm_start_counts=(0,),
        seasons=SeasonManifest(0, 0, ()),
    )
    (path / "manifest.bin").write_bytes(encode_manifest(manifest))
    (path / "cuts" / "000.bin").write_bytes(encode_pool(pool))
    return path
