"""The order of entities, rows and stages in the files never changes a bit of the result."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from builders.case_files import Files, write_files
from builders.rich_case import rich_files
from power_features import cvar_on_a_graph

import cobre.case
import cobre.sddp

ORDERED = {"coefficients", "coefficients_mm", "reference_volumes_hm3", "deficit_segments", "stopping_rules"}
"""Lists whose order means something."""


def shuffled(content: Any, rng: random.Random, key: str = "") -> Any:
    """The same content with lists of objects or rows, and keys, in another order."""
    if isinstance(content, dict):
        items = [(name, shuffled(value, rng, name)) for name, value in content.items()]
        rng.shuffle(items)
        return dict(items)
    if isinstance(content, list):
        items = [shuffled(value, rng, key) for value in content]
        if key not in ORDERED and all(isinstance(value, dict) for value in items):
            rng.shuffle(items)
        return items
    return content


def outcome(path: Path) -> tuple[str, list[tuple[float, float]]]:
    result = cobre.sddp.train(cobre.case.load(path))
    return result.policy_sha256, [(record.lower_bound, record.upper_bound) for record in result.history]


def few_iterations(files: Files) -> Files:
    files["config.json"]["training"]["stopping_rules"] = [{"type": "iteration_limit", "limit": 4}]
    return files


@pytest.mark.parametrize("build", [rich_files, lambda: cvar_on_a_graph().files], ids=["rich", "graph"])
def test_order_in_the_files_changes_nothing(tmp_path: Path, build: Any) -> None:
    expected = outcome(write_files(tmp_path / "written", few_iterations(build())))
    for seed in range(3):
        files = few_iterations(build())
        # The post-study stages and ranges of production models are positional: the first match counts.
        fixed = {name: files[name] for name in ("post_study_stages.json",) if name in files}
        other = {name: shuffled(content, random.Random(seed)) for name, content in files.items()}
        assert outcome(write_files(tmp_path / str(seed), other | fixed)) == expected
