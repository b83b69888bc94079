"""Tables of what forward passes were paid for."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from builders.studies import cascade_study

from cobre.results.costs import ENTITY_COST_SCHEMA, STAGE_COST_SCHEMA
from cobre.sddp import Study


def test_tables_hold_the_first_and_the_last_iteration(tmp_path: Path) -> None:
    case = cascade_study(hydros=3, passes=3, iterations=3, seed=2)
    result = Study(case).train(output=tmp_path, threads=1)
    by_stage = pq.read_table(tmp_path / "training" / "costs.parquet")
    by_entity = pq.read_table(tmp_path / "training" / "costs_by_entity.parquet")
    assert (by_stage.schema.names, by_stage.schema.types) == (
        STAGE_COST_SCHEMA.names,
        STAGE_COST_SCHEMA.types,
    )
    assert by_entity.schema.names == ENTITY_COST_SCHEMA.names
    assert set(by_stage["iteration"].to_pylist()) == set(by_entity["iteration"].to_pylist()) == {1, 3}
    assert result.costs is not None
    first, last = result.cost_breakdowns
    assert (first, last) == (result.history[0].costs, result.costs)
    for costs, record in ((first, result.history[0]), (last, result.history[2])):
        for table in (by_stage, by_entity):
            rows = [row for row in table.to_pylist() if row["iteration"] == costs.iteration]
            assert sum(row["cost"] for row in rows) == pytest.approx(record.upper_bound, rel=1e-12)
            violations = sum(row["cost"] for row in rows if row["is_violation"])
            assert violations == pytest.approx(sum(costs.violations.values()), rel=1e-12)
    assert by_stage.slice(len(first.stage_table())).equals(last.stage_table())
    assert sum(last.entity_table()["cost"].to_pylist()) == pytest.approx(last.total, rel=1e-12)
    # A run that has nothing left to do leaves the tables as they are.
    again = Study(case).train(output=tmp_path, threads=1, resume=True)
    assert again.costs is None
    assert pq.read_table(tmp_path / "training" / "costs.parquet").equals(by_stage)


def test_result_shows_its_costs_in_one_line() -> None:
    result = Study(cascade_study(hydros=2, passes=2, iterations=1)).train(threads=1)
    costs = result.costs
    assert costs is not None
    assert result.cost_breakdowns == (costs,)
    assert repr(costs).startswith(f"CostBreakdown(iteration=1, total={costs.total!r}, ")
    assert all(f"{name}=" in repr(costs) for name in costs.components)
    assert list(costs.components.values()) == sorted(costs.components.values(), reverse=True)
