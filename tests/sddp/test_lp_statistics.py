"""How much work LPs were: both engines count the same LPs, and neither ranks nor threads change a count."""

import numpy as np
import pyarrow.parquet as pq
import pytest
from builders.studies import cascade_study
from rich.console import Console

from cobre.cli.train_report import result_data, show_result
from cobre.lp.engines.own import setup
from cobre.lp.engines.own.core import FAILING_CHECKS, MOST_ITERATIONS
from cobre.sddp import train
from cobre.sddp.kernel import counts
from cobre.sddp.kernel.buffers import LP_COUNTS

STAGES, PASSES, OPENINGS, ITERATIONS = 4, 5, 3, 3


def study():
    return cascade_study(hydros=2, stages=STAGES, passes=PASSES, openings=OPENINGS, iterations=ITERATIONS)


def counted(result):
    """All counts of a run, without times."""
    return np.stack([lps.table[:, :, : counts.BUSY_NS] for lps in result.lp_statistics])


@pytest.fixture(scope="module")
def by_engine():
    return {engine: train(study(), lp_engine=engine) for engine in ("own", "highs")}


def test_every_column_has_a_name():
    assert counts.BUSY_NS == LP_COUNTS - 1


@pytest.mark.parametrize("engine", ["own", "highs"])
def test_lps_of_each_phase_and_stage(by_engine, engine):
    result = by_engine[engine]
    table = counted(result)
    assert table.shape == (ITERATIONS, 3, STAGES, counts.BUSY_NS)
    forward, backward, root = table[:, :, :, counts.LP_SOLVES].transpose(1, 0, 2)
    assert (forward == PASSES).all()
    made = [
        [OPENINGS * int((node == iteration).sum()) for node in result.policy.iterations[:-1]]
        for iteration in range(1, ITERATIONS + 1)
    ]
    assert backward.tolist() == [[0, *lps] for lps in made]
    assert root.tolist() == [[OPENINGS, *[0] * (STAGES - 1)]] * ITERATIONS
    assert not table[:, :, :, [counts.FALL_BACKS, counts.CHECKS_FAILED]].any()
    for record, lps in zip(result.history, result.lp_statistics, strict=True):
        assert record.lp_solves == lps.total(counts.LP_SOLVES)
        assert record.simplex_iterations == lps.total(counts.SIMPLEX_ITERATIONS) > 0
        assert record.lp_retries == 0
    assert result.lp_fall_backs == 0


def test_the_own_engine_counts_its_own_work(by_engine):
    own, highs = (counted(by_engine[engine]) for engine in ("own", "highs"))
    # Without a stored basis the first iteration starts from scratch, and none after it.
    assert own[:, :, :, counts.COLD_STARTS].sum(axis=(1, 2)).tolist() == [PASSES * STAGES, 0, 0]
    assert own[1:, 0, :, counts.REFACTORISATIONS].min() >= PASSES
    # The last stage has no cuts.
    assert own[1:, 0, :-1, counts.CUTS_ADDED].min() > 0
    assert own[:, :, -1, counts.CUTS_ADDED].max() == 0
    assert not highs[:, :, :, counts.REFACTORISATIONS :].any()


@pytest.mark.parametrize("engine", ["own", "highs"])
def test_counts_depend_neither_on_ranks_nor_on_threads(by_engine, engine):
    expected = counted(by_engine[engine])
    for layout in ({"threads": 2}, {"ranks": 2, "threads": 1}):
        assert np.array_equal(counted(train(study(), lp_engine=engine, **layout)), expected)


def hindered(monkeypatch, limit, value):
    """Let every workspace of the own engine have a limit of its own."""
    usual = setup.new_workspace

    def workspace(*sizes):
        made = usual(*sizes)
        made.limits[limit] = value
        return made

    monkeypatch.setattr(setup, "new_workspace", workspace)


def test_what_the_own_engine_gives_up_is_solved_by_highs_and_reported(by_engine, monkeypatch, capsys):
    hindered(monkeypatch, MOST_ITERATIONS, 0)
    case = study()
    result = train(case, lp_engine="own")
    table = counted(result)
    fallen = result.lp_fall_backs
    # Without a pivot no LP can be solved from the slack basis.
    assert table[0, 0, :, counts.FALL_BACKS].tolist() == [PASSES] * STAGES
    assert table[0, 0, :, counts.LP_SOLVES].tolist() == [PASSES] * STAGES
    assert [record.lp_retries for record in result.history] == table[:, :, :, counts.FALL_BACKS].sum(
        axis=(1, 2)
    ).tolist()
    assert result.lower_bound == pytest.approx(by_engine["highs"].lower_bound, rel=1e-9)
    assert np.array_equal(counted(train(case, lp_engine="own", threads=2)), table)
    assert result_data(case, result)["lp_fall_backs"] == fallen
    show_result(Console(width=200), case, result)
    assert f"{fallen:,} LPs that the own engine gave up, solved by HiGHS" in capsys.readouterr().out


def test_checks_that_fail_are_counted(monkeypatch, by_engine):
    hindered(monkeypatch, FAILING_CHECKS, 2)
    result = train(study(), lp_engine="own")
    assert result.lp_statistics[0].table[0, 0, counts.CHECKS_FAILED] == 2
    assert counted(result)[:, :, :, counts.CHECKS_FAILED].sum() == 2
    assert result.lp_fall_backs == 0
    assert result.lower_bound == pytest.approx(by_engine["own"].lower_bound, rel=1e-9)


def test_the_table_on_disk(tmp_path):
    case = study()
    result = train(case, output=tmp_path)
    table = pq.read_table(tmp_path / "training" / "solver" / "iterations.parquet")
    rows = table.to_pylist()
    assert sum(row["lp_solves"] for row in rows) == result.lp_solves
    assert [row["phase"] for row in rows[: 2 * STAGES]] == [
        *["forward"] * STAGES,
        *["backward"] * (STAGES - 1),
        "lower_bound",
    ]
    ids = [stage.id for stage in case.stages]
    assert [row["stage_id"] for row in rows[: 2 * STAGES]] == [*ids, *ids[1:], None]
    assert all(row["solve_time_ms"] > 0.0 for row in rows)
    assert all(row["lp_successes"] == row["lp_solves"] for row in rows)
    assert rows[0]["cold_starts"] == PASSES
