"""Studies on kept workers: the same bytes, one after the other; what a death or an error leaves."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from builders.paths import EXAMPLES, ROOT
from builders.studies import cascade_study, with_training

import cobre
from cobre.comm.local import LocalCommunicator
from cobre.errors import CobreError, SolverError, ValidationError, WorkerError

EXAMPLE = EXAMPLES / "random-inflow"
ITERATIONS = 6
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="shm and tcp need Linux")


@pytest.fixture(scope="module")
def alone():
    """What this process makes of two studies."""
    return [train(case) for case in cases()]


@pytest.fixture(scope="module")
def shm_pool():
    with cobre.WorkerPool(3, threads=1) as workers:
        yield workers


@pytest.fixture(scope="module")
def tcp_pool():
    with cobre.WorkerPool(2, "tcp", threads=1, warm=False) as workers:
        yield workers


@pytest.fixture
def pool(shm_pool):
    """The pool for what does not depend on the backend."""
    return shm_pool


def cases():
    return cobre.load_case(EXAMPLE), cascade_study(hydros=2, passes=4, iterations=ITERATIONS, seed=2)


def train(case, **options):
    return cobre.Study(case).train(iterations=ITERATIONS, **options)


@pytest.mark.parametrize("name", ["shm_pool", "tcp_pool"])
def test_studies_one_after_the_other_give_the_bytes_of_one_process(name, request, alone):
    pool = request.getfixturevalue(name)
    pids = pool.pids
    for _ in range(2):
        for case, expected in zip(cases(), alone, strict=True):
            result = train(case, pool=pool)
            assert result.policy_sha256 == expected.policy_sha256
            assert [record.upper_bound for record in result.history] == [
                record.upper_bound for record in expected.history
            ]
            assert (result.backend, result.ranks, result.threads) == (pool.backend, pool.ranks, 1)
    assert pool.pids == pids


@pytest.mark.parametrize("name", ["shm_pool", "tcp_pool"])
def test_simulations_give_the_bytes_of_one_process(name, request, alone):
    pool = request.getfixturevalue(name)
    for case, trained in zip(cases(), alone, strict=True):
        expected = cobre.simulate(case, trained, scenarios=40)
        result = cobre.simulate(case, trained, scenarios=40, pool=pool)
        assert np.array_equal(result.scenario_cost, expected.scenario_cost)
        assert result.ranks == pool.ranks


def test_a_run_trains_and_simulates(pool, alone, tmp_path):
    progress = []
    run = cobre.Study(EXAMPLE).run(
        pool=pool,
        iterations=ITERATIONS,
        scenarios=20,
        output=tmp_path,
        on_progress=lambda report: progress.append(report.scenarios_done),
    )
    assert run.training.policy_sha256 == alone[0].policy_sha256
    assert (run.simulation.scenarios, progress[-1]) == (20, 20)
    assert (tmp_path / "simulation" / "_SUCCESS").exists()


def test_killing_a_worker_fails_that_run_and_not_the_next(pool, alone):
    assert train(EXAMPLE, pool=pool).policy_sha256 == alone[0].policy_sha256
    pids = pool.pids

    def kill(record):
        if record.iteration == 2:
            os.kill(pids[1], signal.SIGKILL)

    with pytest.raises(WorkerError, match="rank 1 was ended by signal 9") as caught:
        train(EXAMPLE, pool=pool, on_iteration=kill)
    assert (caught.value.rank, caught.value.exit_code) == (1, -signal.SIGKILL)
    assert "--resume" in caught.value.suggestion
    assert train(EXAMPLE, pool=pool).policy_sha256 == alone[0].policy_sha256
    assert [old == new for old, new in zip(pids, pool.pids, strict=True)] == [True, False, True]


def test_what_stops_a_run_leaves_its_checkpoint_and_the_pool(pool, alone, tmp_path):
    """A caller that says so, one whose function fails, and Ctrl-C; each goes on from the one before."""
    pids = pool.pids
    stopped = train(EXAMPLE, pool=pool, output=tmp_path, on_iteration=lambda record: record.iteration == 1)
    assert (stopped.iterations, stopped.termination_reason) == (1, "graceful_shutdown")

    with pytest.raises(ZeroDivisionError):
        train(EXAMPLE, pool=pool, output=tmp_path, resume=True, on_iteration=lambda record: 1 // 0)
    seen = []

    def interrupt(record):
        seen.append(record.iteration)
        if record.iteration == 4:
            os.kill(os.getpid(), signal.SIGINT)

    # a shell starts jobs in the background with interrupts ignored
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            train(EXAMPLE, pool=pool, output=tmp_path, resume=True, on_iteration=interrupt)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert seen == [3, 4]
    resumed = train(EXAMPLE, pool=pool, output=tmp_path, resume=True, on_iteration=lambda r: seen.append(r))
    assert [record.iteration for record in seen[2:]] == [5, 6]
    assert resumed.policy_sha256 == alone[0].policy_sha256
    assert pool.pids == pids


def test_an_error_of_all_ranks_leaves_the_pool(pool, alone):
    case = cascade_study(
        hydros=1, thermals=1, buses=1, stages=2, blocks=1, openings=12, passes=3, noise=0.0, seed=2
    )
    std = np.zeros_like(case.scenarios.inflow_std_m3s)
    std[1, 0] = 100.0
    case = replace(case, scenarios=replace(case.scenarios, inflow_std_m3s=std))
    case = with_training(case, inflow_method="none", tree_seed=46)
    pids = pool.pids
    with pytest.raises(WorkerError) as caught:
        train(case, pool=pool)
    assert isinstance(caught.value.inner, SolverError)
    assert train(EXAMPLE, pool=pool).policy_sha256 == alone[0].policy_sha256
    assert pool.pids == pids


def test_what_contradicts_a_pool_is_refused(pool):
    study = cobre.Study(EXAMPLE)
    for options, text in (
        ({"ranks": 1}, f"ranks=1 contradicts the pool, which has ranks={pool.ranks}"),
        ({"threads": 2}, "threads=2 contradicts the pool, which has threads=1"),
        ({"backend": "tcp"}, "backend='tcp' contradicts the pool, which has backend='shm'"),
    ):
        for call in (study.train, study.simulate):
            with pytest.raises(ValidationError, match=text):
                call(pool=pool, **options)
    with LocalCommunicator() as comm, pytest.raises(ValidationError, match="exclude each other"):
        study.train(pool=pool, communicator=comm)
    with pytest.raises(ValidationError, match=r"pool must be a cobre\.WorkerPool, not 4"):
        study.train(pool=4)
    same = study.train(pool=pool, ranks=pool.ranks, threads=1, backend=pool.backend, iterations=1)
    assert same.ranks == pool.ranks


def test_one_run_at_a_time(pool):
    refused = []

    def train_again(record):
        with pytest.raises(CobreError, match="one call at a time") as caught:
            train(EXAMPLE, pool=pool)
        refused.append(caught.value.kind)

    train(EXAMPLE, pool=pool, on_iteration=train_again)
    assert refused == ["PoolInUse"] * ITERATIONS


def test_a_pool_shows_itself(pool):
    facts = f"ranks={pool.ranks}, backend={pool.backend!r}, threads=1"
    assert repr(pool) == f"WorkerPool({facts}, alive={pool.ranks})"
    html = pool._repr_html_()
    assert html.startswith("<table><caption>WorkerPool</caption>")
    assert all(str(pid) in html for pid in pool.pids)


def test_a_closed_pool_is_refused_before_anything_is_written(tmp_path):
    pool = cobre.WorkerPool(1, threads=1, warm=False)
    pool.close()
    assert repr(pool) == "WorkerPool(ranks=1, backend='shm', threads=1, closed=True)"
    with pytest.raises(CobreError) as caught:
        train(EXAMPLE, pool=pool, output=tmp_path / "out")
    assert caught.value.kind == "PoolClosed"
    assert not (tmp_path / "out").exists()


def test_a_pool_that_cannot_be_is_refused(monkeypatch):
    for arguments, text in (
        ((0,), "ranks must be a whole number"),
        ((2, "local"), "cannot be started from here"),
    ):
        with pytest.raises(CobreError, match=text):
            cobre.WorkerPool(*arguments)
    with pytest.raises(ValidationError, match="threads must be"):
        cobre.WorkerPool(2, threads=0)
    monkeypatch.setenv("COBRE_SHM_SIZE", "2")
    with pytest.raises(CobreError, match="itself a rank of another job"):
        cobre.WorkerPool(2)


def test_an_interactive_session_can_keep_workers(tmp_path, alone):
    script = f"""
import cobre
pool = cobre.WorkerPool(1, threads=1, warm=False)
for _ in range(2):
    print(cobre.train({str(EXAMPLE)!r}, pool=pool, iterations={ITERATIONS}).policy_sha256)
print(*pool.pids)
"""
    done = subprocess.run(
        [sys.executable, "-"],
        input=script,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr
    *digests, pids = done.stdout.splitlines()
    assert digests == [alone[0].policy_sha256] * 2
    assert not [pid for pid in pids.split() if os.path.exists(f"/proc/{pid}")]  # noqa: PTH110
