"""Training on several ranks: the same bytes as on one, errors that all ranks tell, and who did what."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from builders.paths import EXAMPLES, ROOT, TESTS
from builders.studies import cascade_study, with_training
from rank_layouts import (
    collectives_of_iterations,
    identity,
    small_cases,
    train_cases,
    train_different_cases,
)

import cobre
from cobre.comm.launch import launch
from cobre.comm.local import LocalCommunicator
from cobre.comm.mpi.launchers import find_mpi_launchers
from cobre.errors import CobreError, SolverError, ValidationError, WorkerError
from cobre.sddp import Study, train
from cobre.sddp.ranks.cpus import rank_environment, threads_of_ranks
from cobre.sddp.timing import balance_of, iteration_timings, worker_infos

EXAMPLE = EXAMPLES / "random-inflow"
TIMEOUT_S = 280  # a hang; the first job of a backend also compiles
LAUNCHERS = {launcher.name: launcher for launcher in find_mpi_launchers()}
linux = pytest.mark.skipif(sys.platform != "linux", reason="shm and tcp need Linux")


@pytest.fixture(scope="module")
def alone():
    """What one rank with one thread makes of the cases."""
    return [identity(train(case)) for case in small_cases()]


@linux
@pytest.mark.parametrize(
    ("backend", "ranks", "threads"),
    [("shm", 2, 1), ("shm", 3, 1), ("shm", 4, 1), ("shm", 2, 2), ("tcp", 2, 1), ("tcp", 4, 1)],
)
def test_ranks_and_threads_change_no_bit(alone, backend, ranks, threads):
    results = launch(
        train_cases,
        ranks,
        backend=backend,
        args=(small_cases(), threads),
        timeout_s=TIMEOUT_S,
        environment=rank_environment(threads),
    )
    for identities, workers in results:
        assert identities == alone
        assert set(workers) == {ranks}


@pytest.fixture(scope="module", params=["own", "highs"])
def alone_with_engine(request):
    """An LP engine, and what one rank with one thread makes of the cases with it."""
    return request.param, [identity(train(case, lp_engine=request.param)) for case in small_cases()]


@linux
@pytest.mark.parametrize(("backend", "ranks", "threads"), [("local", 1, 2), ("shm", 2, 1), ("tcp", 2, 1)])
def test_either_lp_engine_gives_the_same_bits_on_all_layouts(alone_with_engine, backend, ranks, threads):
    lp_engine, expected = alone_with_engine
    arguments = (small_cases(), threads, lp_engine)
    if backend == "local":
        with LocalCommunicator() as communicator:
            results = [train_cases(communicator, *arguments)]
    else:
        results = launch(
            train_cases,
            ranks,
            backend=backend,
            args=arguments,
            timeout_s=TIMEOUT_S,
            environment=rank_environment(threads),
        )
    assert [identities for identities, _ in results] == [expected] * ranks


@linux
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_an_iteration_makes_three_collectives_and_one_for_each_stage_with_cuts(ranks):
    """One rank has nobody to report to and makes two less."""
    horizons = (1, 2, 5)
    cases = [cascade_study(hydros=2, stages=stages, passes=4, iterations=3) for stages in horizons]
    results = launch(
        collectives_of_iterations, ranks, backend="tcp", args=(cases,), timeout_s=TIMEOUT_S, environment={}
    )
    for counts in results:
        for stages, (_, *further) in zip(horizons, counts, strict=True):
            assert further == [(3 if ranks > 1 else 1) + (stages - 1)] * 2
        # The first iteration, which also splits its costs, makes no more: what is before it is the same.
        before = {first - stages for stages, (first, *_) in zip(horizons, counts, strict=True)}
        assert len(before) == 1


def _documents(text):
    """Return the JSON documents in what several ranks have printed, with or without line breaks between."""
    decoder, place = json.JSONDecoder(), text.find("[")
    while place >= 0:
        document, end = decoder.raw_decode(text, place)
        yield document
        place = text.find("[", end)


@pytest.mark.parametrize("name", ["mpich", "openmpi"])
@pytest.mark.parametrize(("ranks", "threads"), [(2, 1), (3, 2)])
def test_mpi_ranks_change_no_bit(alone, name, ranks, threads):
    if name not in LAUNCHERS:
        pytest.skip(f"no {name} found: pip install mpi4py {name}")
    launcher = LAUNCHERS[name]
    variables = {
        **launcher.environment(),
        **rank_environment(threads),
        "PYTHONPATH": f"{TESTS}:{os.environ.get('PYTHONPATH', '')}",
    }
    program = [sys.executable, str(TESTS / "sddp" / "ranks" / "rank_layouts.py"), str(threads)]
    done = subprocess.run(
        launcher.command(ranks, program), env=variables, capture_output=True, text=True, timeout=TIMEOUT_S
    )
    assert done.returncode == 0, done.stderr
    reports = dict(_documents(done.stdout))
    assert sorted(reports) == list(range(ranks))
    assert all(identities == alone for identities in reports.values())


def _children() -> list[int]:
    tasks = Path(f"/proc/{os.getpid()}/task")
    return [int(pid) for task in tasks.iterdir() for pid in (task / "children").read_text().split()]


@linux
def test_delays_in_random_ranks_change_no_bit(alone):
    dice = random.Random(1)
    before = set(_children())
    resumed = []

    def delay(record):
        pid = dice.choice([pid for pid in _children() if pid not in before])
        os.kill(pid, signal.SIGSTOP)
        timer = threading.Timer(dice.uniform(0.01, 0.2), os.kill, (pid, signal.SIGCONT))
        timer.start()
        resumed.append(timer)

    result = Study(small_cases()[0]).train(ranks=3, threads=1, on_iteration=delay)
    for timer in resumed:
        timer.join()
    assert len(resumed) == result.iterations
    assert identity(result) == alone[0]


@linux
def test_callback_runs_here_and_stops_all_ranks_after_that_iteration():
    case = cascade_study(passes=5, iterations=50)
    seen = []

    def stop_at_third(record):
        seen.append((os.getpid(), record.iteration))
        return record.iteration == 3

    result = Study(case).train(ranks=2, threads=1, on_iteration=stop_at_third)
    assert seen == [(os.getpid(), 1), (os.getpid(), 2), (os.getpid(), 3)]
    assert (result.iterations, result.termination_reason) == (3, "graceful_shutdown")
    here = train(case, on_iteration=lambda record: record.iteration == 3)
    assert identity(result) == identity(here)


@linux
def test_result_tells_what_each_rank_did():
    case = cascade_study(passes=5, stages=4, openings=3, iterations=2)
    result = Study(case).train(ranks=3, threads=1, backend="shm")
    assert (result.backend, result.ranks, result.threads) == ("shm", 3, 1)
    assert [worker.rank for worker in result.workers] == [0, 1, 2]
    assert [worker.scenarios_processed for worker in result.workers] == [4, 4, 2]
    # Each pass solves 4 stages in two iterations, and 3 openings for every cut; rank 0 also 3 at the root.
    assert result.lp_solves == 2 * 5 * 4 + 3 * sum(record.cuts_added for record in result.history) + 2 * 3
    forward = [2 * 2 * 4 + 2 * 3, 2 * 2 * 4, 2 * 1 * 4]
    assert all(worker.lp_solves > least for worker, least in zip(result.workers, forward, strict=True))
    assert sum(worker.lp_solves for worker in result.workers) == result.lp_solves
    assert len(result.timings) == 6
    for worker in result.workers:
        assert worker.memory_bytes > 1 << 20
        assert 0.0 < worker.work_time_ms < worker.wall_time_ms
    if all(worker.memory_share_bytes for worker in result.workers):
        assert all(worker.memory_share_bytes < worker.memory_bytes for worker in result.workers)


@linux
def test_study_takes_a_case_edited_in_memory_and_one_from_disk(tmp_path):
    loaded = cobre.load_case(EXAMPLE)
    editor = loaded.edit()
    editor["system/thermals.json"]["thermals"][0]["cost_per_mwh"] = 77
    edited = editor.build()
    there = Study(edited).train(ranks=2, threads=1, iterations=3, seed=5)
    assert identity(there) == identity(train(edited, iterations=3, seed=5))
    assert there.seed == 5
    assert identity(there) != identity(Study(EXAMPLE).train(iterations=3, seed=5))


@linux
def test_an_interactive_session_can_start_ranks(tmp_path):
    script = f"""
import cobre
seen = []
result = cobre.Study({str(EXAMPLE)!r}).train(
    ranks=2, threads=1, iterations=3, on_iteration=lambda record: seen.append(record.iteration))
print(result.policy_sha256, seen)
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-"],
        input=script,
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split(maxsplit=1) == [Study(EXAMPLE).train(iterations=3).policy_sha256, "[1, 2, 3]\n"]


@linux
@pytest.mark.parametrize(
    ("stage", "seed", "phase"), [(1, 46, "forward pass"), (1, 42, "backward pass"), (0, 43, "lower bound")]
)
def test_an_lp_without_solution_is_reported_by_all_ranks(tmp_path, stage, seed, phase):
    """A few openings of a stage drain the reservoir; the rank that solves one leads the others out."""
    case = cascade_study(
        hydros=1, thermals=1, buses=1, stages=2, blocks=1, openings=12, passes=3, noise=0.0, seed=2
    )
    std = np.zeros_like(case.scenarios.inflow_std_m3s)
    std[stage, 0] = 100.0
    case = with_training(
        replace(case, scenarios=replace(case.scenarios, inflow_std_m3s=std)),
        inflow_method="none",
        tree_seed=seed,
    )
    with pytest.raises(SolverError) as here:
        train(case, output=tmp_path)
    assert here.value.context["phase"] == phase
    with pytest.raises(WorkerError) as there:
        Study(case).train(ranks=3, threads=1, output=tmp_path)
    inner = there.value.inner
    assert isinstance(inner, SolverError)
    assert inner.on_all_ranks
    assert inner.message == here.value.message
    assert inner.context == here.value.context


@linux
def test_ranks_with_different_studies_do_not_train():
    with pytest.raises(WorkerError) as caught:
        launch(train_different_cases, 3, timeout_s=TIMEOUT_S)
    assert isinstance(caught.value.inner, CobreError)
    assert caught.value.inner.kind == "IncompatibleSettings"
    assert "rank 2 has built another study than rank 0" in caught.value.inner.message


@pytest.mark.parametrize(("argument", "value"), [("ranks", 0), ("threads", 0), ("iterations", -1)])
def test_arguments_are_checked_before_anything_starts(argument, value):
    with pytest.raises(ValidationError, match=f"{argument} must be a whole number, 1 or more"):
        Study(cascade_study()).train(**{argument: value})


def test_only_shm_and_tcp_ranks_are_started_from_here():
    with pytest.raises(CobreError, match="mpiexec"):
        Study(cascade_study()).train(ranks=2, backend="mpi")


def test_a_rank_of_a_job_starts_no_job(monkeypatch):
    for name, value in (("COBRE_SHM_NAME", "/cobre_x"), ("COBRE_SHM_RANK", "0"), ("COBRE_SHM_SIZE", "2")):
        monkeypatch.setenv(name, value)
    with pytest.raises(CobreError, match="itself a rank"):
        Study(cascade_study()).train(ranks=2)


def test_one_rank_needs_no_configuration_and_local_ignores_the_number_of_ranks():
    case = cascade_study(iterations=1)
    assert Study(case).train(backend="shm").backend == "local"
    result = Study(case).train(backend="local", ranks=3)
    assert (result.backend, result.ranks) == ("local", 1)


def test_threads_of_ranks(monkeypatch):
    monkeypatch.setattr("cobre.sddp.ranks.cpus.usable_cpus", lambda: 8)
    assert [threads_of_ranks(ranks, {}) for ranks in (2, 3, 16)] == [4, 2, 1]
    assert threads_of_ranks(2, {"COBRE_NUM_THREADS": "3", "SLURM_CPUS_PER_TASK": "5"}) == 3
    assert threads_of_ranks(2, {"SLURM_CPUS_PER_TASK": "5"}) == 5


def test_waiting_counts_as_idle_and_imbalance_has_a_name():
    rows = np.array(
        [
            [10.0, 100.0, 5.0, 4.0, 30.0, 2.0],
            [10.0, 60.0, 0.0, 44.0, 20.0, 1.0],
        ]
    )
    first, second = timings = iteration_timings(1, rows)
    assert (first.communication_time_ms, first.idle_time_ms, first.lower_bound_time_ms) == (4.0, 0.0, 5.0)
    assert (second.communication_time_ms, second.idle_time_ms, second.lower_bound_time_ms) == (4.0, 45.0, 0.0)
    workers = worker_infos(timings, "shm", ["a", "a"], np.zeros((2, 3)))
    balance = balance_of(workers)
    assert balance.imbalance == pytest.approx(110.0 / 70.0)
    assert balance.imbalance_word == "investigate"
    assert balance.communication_fraction == pytest.approx(8.0 / 238.0)
    assert not balance.too_many_ranks
    assert balance_of(workers[:1]).imbalance_word == "excellent"


@pytest.mark.parametrize(
    "error",
    [
        SolverError("text", stage=1, iteration=2, scenario=3, opening=4, solver_status="infeasible"),
        CobreError("Kind", "text", {"a": 1}, "do it"),
    ],
)
def test_errors_survive_the_way_to_another_process(error):
    import pickle

    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert copy.problems == error.problems
    assert str(copy) == str(error)
    assert vars(copy) == vars(error)
