"""Cuts of another policy at the end of a study."""

from __future__ import annotations

import datetime
from pathlib import Path

import numpy as np
import pytest
from builders.case_files import INFLOW, Builder, Feature, inflow_row, stages_of, write_files
from builders.realisations import drawn_openings
from oracle import optimum
from power_features import boundary_cuts, boundary_cuts_discounted

import cobre.case
import cobre.sddp
from cobre.policy.foreign import Manifest, ManifestNode, Pool, SlotKind, StateSlot
from cobre.policy.foreign.encode import encode_manifest, encode_pool


def with_noise() -> Feature:
    """The discounted case with uncertain inflow."""
    feature = boundary_cuts_discounted()
    feature.files[INFLOW] = [inflow_row(0, 0, 10.0), inflow_row(0, 1, 10.0, 4.0)]
    stages_of(feature.files)[1]["num_openings"] = 4
    return Feature(feature.files, drawn=True, boundary=feature.boundary)


def write_policy(directory: Path, feature: Feature, end: datetime.date) -> None:
    """Write a policy with one pool: the feature's cuts, priced at ``end``."""
    cuts = feature.boundary
    hydros = sorted({hydro for cut in cuts for hydro in cut.storage})
    number = np.arange(len(cuts))
    pool = Pool(
        pool_id=0,
        slots=tuple(StateSlot(SlotKind.STORAGE, hydro) for hydro in hydros),
        intercepts=np.array([cut.intercept for cut in cuts]),
        slopes=np.array([[cut.storage.get(hydro, 0.0) for hydro in hydros] for cut in cuts]),
        active=np.ones(len(cuts), np.bool_),
        cut_ids=number.astype(np.uint64),
        slot_index=number.astype(np.uint32),
        iterations=number.astype(np.uint32),
        forward_passes=np.zeros(len(cuts), np.uint32),
        cost_scale_factor=1000.0,
        node_id=0,
        graph_stage_id=0,
        priced_date=end,
        capacity=len(cuts),
    )
    manifest = Manifest(
        num_stages=1,
        num_pools=1,
        nodes=(ManifestNode(0, 0, 0),),
        edges=(),
        software="test",
        software_version="0",
        created_at="2024-01-01T00:00:00+00:00",
        completed_iterations=1,
        final_lower_bound=0.0,
        best_upper_bound=None,
        max_iterations=1,
        forward_passes=1,
        rng_seed=0,
        training_block_mode="parallel",
        block_mode_per_stage=("parallel",),
        cost_scale_factor=1000.0,
        lower_bound_history=(0.0,),
    )
    (directory / "cuts").mkdir(parents=True)
    (directory / "manifest.bin").write_bytes(encode_manifest(manifest))
    (directory / "cuts" / "000.bin").write_bytes(encode_pool(pool))


@pytest.mark.parametrize("build", [boundary_cuts, boundary_cuts_discounted, with_noise])
def test_training_equals_the_extensive_form(tmp_path: Path, build: Builder) -> None:
    feature = build()
    end = datetime.date.fromisoformat(stages_of(feature.files)[-1]["end_date"])
    write_policy(tmp_path / "after", feature, end)
    feature.files["config.json"]["policy"] = {"boundary": {"path": "../after", "strict": True}}
    path = write_files(tmp_path / "case", feature.files)
    case = cobre.case.load(path)
    openings = drawn_openings(case) if feature.drawn else None
    best = optimum(path, openings, boundary=feature.boundary)
    result = cobre.sddp.train(case)
    assert result.lower_bound == pytest.approx(best, rel=1e-8)
    # The value of the final state is a part of the cost.
    assert result.costs is not None
    if not feature.drawn:
        left = 1.1**-8 * 550_000 if build is boundary_cuts_discounted else 0.0
        assert result.costs.components.get("future", 0.0) == pytest.approx(left, rel=1e-9, abs=1e-3)
    assert result.costs.total == pytest.approx(result.upper_bound, rel=1e-12)
