"""Functions on several ranks of this machine (API-02, API-05, API-08, TST-50)."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import launch_functions
import numpy as np
import pytest

from cobre.comm import BackendNotAvailable, InitializationFailed, InvalidBackend
from cobre.comm.backends import ShmTransport, TcpTransport
from cobre.comm.launch import launch, progress
from cobre.comm.launch.processes import cpu_slices, scrubbed
from cobre.errors import ValidationError, WorkerError

HERE = Path(__file__).parent
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="shm and tcp need Linux")


def segments() -> set[str]:
    return {path.name for path in Path("/dev/shm").glob("cobre_job_*")}


def children() -> set[int]:
    # by the parent that each process names: lists by thread change while a thread of this process ends
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it ended meanwhile
            parent = int((process / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == os.getpid():
                found.add(int(process.name))
    return found


@pytest.fixture(autouse=True)
def _nothing_is_left(monkeypatch):
    names = []
    make = ShmTransport.__init__

    def make_and_note(self, *arguments):
        make(self, *arguments)
        names.append(self.name)

    monkeypatch.setattr(ShmTransport, "__init__", make_and_note)
    before = children()
    yield
    assert not [path for name in names for path in Path("/dev/shm").glob(f"{name[1:]}*")]
    assert children() <= before


def test_a_rank_can_ask_and_gets_variables_of_its_own():
    asked = []

    def answer(rank, number):
        asked.append((rank, number))
        return number == rank

    results = launch(
        launch_functions.ask_until_yes,
        2,
        args=("COBRE_TEST_VARIABLE",),
        on_progress=answer,
        environment={"COBRE_TEST_VARIABLE": "seen"},
        timeout_s=120,
    )
    assert results == [([True, False, False], "seen"), ([False, True, False], "seen")]
    assert sorted(asked) == [(rank, number) for rank in range(2) for number in range(3)]
    unanswered = launch(launch_functions.ask_until_yes, 1, args=("COBRE_TEST_VARIABLE",), timeout_s=120)
    assert unanswered == [([False, False, False], None)]


@pytest.mark.parametrize("backend", ["shm", "tcp"])
@pytest.mark.parametrize("ranks", [1, 3])
def test_results_come_by_rank(backend, ranks):  # API-02
    results = launch(launch_functions.add_ranks, ranks, backend=backend, kwargs={"offset": 10}, timeout_s=120)
    total = sum(rank + 10.0 for rank in range(ranks))
    assert results == [(rank, ranks, backend, total) for rank in range(ranks)]


def test_ranks_are_pinned_and_know_nothing_of_other_launchers(monkeypatch):  # API-08
    for name in ("PMI_RANK", "OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "SLURM_PROCID", "COBRE_SHM_NAME"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("COBRE_COMM_BACKEND", "mpi")
    slices = cpu_slices(2)
    results = launch(launch_functions.surroundings, 2, timeout_s=120)
    for rank, (cpus, foreign, arguments, directory) in enumerate(results):
        assert cpus == (slices[rank] if slices else sorted(os.sched_getaffinity(0)))
        assert foreign == []
        assert b"/cobre_" not in arguments  # the segment's name is no argument
        assert directory == str(Path.cwd())
    free = launch(launch_functions.surroundings, 2, pin=False, timeout_s=120)
    assert free[0][0] == sorted(os.sched_getaffinity(0))


def test_slices_are_disjoint_and_use_every_cpu(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3, 4, 5, 8, 9})
    assert cpu_slices(2) == [[3, 4, 5], [8, 9]]
    assert cpu_slices(5) == [[3], [4], [5], [8], [9]]
    assert cpu_slices(6) is None


def test_scrubbing_keeps_what_does_not_matter():
    environment = {"COBRE_CACHE_DIR": "/x", "PATH": "/bin", "PMI_SIZE": "2", "COBRE_TCP_TOKEN": "s"}
    assert scrubbed(environment) == {"COBRE_CACHE_DIR": "/x", "PATH": "/bin"}


def test_large_results_and_progress_are_drained_meanwhile():  # API-06, API-08
    seen: list[tuple[int, int]] = []
    results = launch(
        launch_functions.large_result,
        2,
        args=(5_000_000,),
        on_progress=lambda rank, item: seen.append((rank, item[0])),
        timeout_s=120,
    )
    assert [len(result) for result in results] == [5_000_000] * 2
    assert all((result == rank).all() for rank, result in enumerate(results))
    for rank in range(2):
        assert [turn for who, turn in seen if who == rank] == list(range(50))
    assert len(seen) == 100


def test_a_machine_without_shared_memory_is_named_with_the_way_out(monkeypatch, tmp_path):
    monkeypatch.setattr("cobre.comm.backends._SEGMENT_DIRECTORY", str(tmp_path / "missing"))
    with pytest.raises(InitializationFailed, match="No such file") as caught:
        launch(launch_functions.add_ranks, 2, backend="shm")
    error = pickle.loads(pickle.dumps(caught.value))
    assert error.context["setting"] == error.setting == str(tmp_path / "missing")
    assert "tcp" in error.suggestion


def test_progress_outside_of_a_launch_does_nothing():
    progress("nobody hears this")


@pytest.mark.parametrize("backend", ["shm", "tcp"])
@pytest.mark.parametrize("who", [0, 2])
def test_an_exception_comes_with_its_rank(backend, who):  # TST-50 A
    with pytest.raises(WorkerError) as caught:
        launch(launch_functions.fail, 3, backend=backend, args=(who, "raise"), timeout_s=120)
    error = caught.value
    assert (error.rank, error.exit_code, error.kind) == (who, 1, "WorkerFailed")
    assert isinstance(error.inner, ValueError)
    assert str(error.inner) == "the plant is on fire"
    assert error.__cause__ is error.inner
    assert "launch_functions" in error.context["traceback"]
    again = pickle.loads(pickle.dumps(error))
    assert (again.rank, again.exit_code, str(again)) == (error.rank, error.exit_code, str(error))


@pytest.mark.parametrize("backend", ["shm", "tcp"])
@pytest.mark.parametrize("who", [0, 1])
def test_a_killed_rank_is_told_by_its_signal(backend, who):  # TST-50 B
    with pytest.raises(WorkerError) as caught:
        launch(launch_functions.fail, 2, backend=backend, args=(who, "kill"), timeout_s=120)
    assert (caught.value.rank, caught.value.exit_code, caught.value.inner) == (who, -signal.SIGKILL, None)


@pytest.mark.parametrize("transport", [ShmTransport, TcpTransport])
@pytest.mark.parametrize("who", [0, 1])
def test_a_rank_killed_before_it_joins_is_told_by_its_signal(transport, who, monkeypatch):
    # the others look for it much longer than this test may take
    configuration = transport.config
    monkeypatch.setattr(
        transport,
        "config",
        lambda self, rank: launch_functions.DiesWhenRead() if rank == who else configuration(self, rank),
    )
    backend = "shm" if transport is ShmTransport else "tcp"
    with pytest.raises(WorkerError) as caught:
        launch(launch_functions.add_ranks, 3, backend=backend, timeout_s=120)
    assert (caught.value.rank, caught.value.exit_code, caught.value.inner) == (who, -signal.SIGKILL, None)


@pytest.mark.parametrize(
    ("how", "code", "text"),
    [("exit", 7, "exit code 7"), ("silent exit", 0, "without a result"), ("system exit", 1, "SystemExit: 5")],
)
def test_a_rank_that_just_ends_has_failed(how, code, text):
    with pytest.raises(WorkerError, match=text) as caught:
        launch(launch_functions.fail, 2, args=(1, how), timeout_s=120)
    assert (caught.value.rank, caught.value.exit_code) == (1, code)


def test_an_exception_that_cannot_be_sent_is_told_as_text():  # API-05
    with pytest.raises(WorkerError, match="UnsendableError: cannot travel") as caught:
        launch(launch_functions.fail, 2, args=(0, "unpicklable"), timeout_s=120)
    assert (caught.value.rank, caught.value.inner) == (0, None)


def test_a_result_that_cannot_be_sent():
    with pytest.raises(WorkerError, match="the result, a function, cannot be sent"):
        launch(launch_functions.return_lambda, 1, timeout_s=120)


def test_the_time_is_limited():
    start = time.monotonic()
    with pytest.raises(WorkerError, match=r"after 4 s ranks 0, 1 had not ended") as caught:
        launch(launch_functions.never_end, 2, args=(True,), timeout_s=4)  # SIGTERM is not enough
    assert isinstance(caught.value.inner, TimeoutError)
    assert time.monotonic() - start < 60


def test_a_keyboard_interrupt_ends_all_ranks():
    # A shell starts jobs in the background with interrupts ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    pids: list[int] = []

    def interrupt(rank, pid):
        pids.append(pid)
        if len(pids) == 2:
            os.kill(os.getpid(), signal.SIGINT)

    try:
        with pytest.raises(KeyboardInterrupt):
            launch(launch_functions.never_end, 2, on_progress=interrupt, timeout_s=120)
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(pids) == 2
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


def test_launching_from_a_thread():
    results: list[object] = []
    thread = threading.Thread(target=lambda: results.extend(launch(launch_functions.add_ranks, 2)))
    thread.start()
    thread.join(120)
    assert len(results) == 2


def test_functions_that_cannot_be_sent_are_refused():
    def inner(comm):
        return comm.rank

    for function, arguments in (
        (lambda comm: None, ()),
        (inner, ()),
        (launch_functions.fail, (threading.Lock(),)),
    ):
        with pytest.raises(ValidationError, match="cannot be sent to another process") as caught:
            launch(function, 2, args=arguments)
        assert "top level of a module" in str(caught.value)


def test_wrong_arguments_are_refused():
    with pytest.raises(ValidationError, match="ranks=0"):
        launch(launch_functions.add_ranks, 0)
    with pytest.raises(ValidationError, match="timeout_s=-1"):
        launch(launch_functions.add_ranks, 1, timeout_s=-1)
    with pytest.raises(InvalidBackend):
        launch(launch_functions.add_ranks, 1, backend="pigeon")
    for backend in ("mpi", "local"):
        with pytest.raises(BackendNotAvailable, match="launcher cannot start"):
            launch(launch_functions.add_ranks, 1, backend=backend)


def test_ranks_are_never_forks_whatever_multiprocessing_is_set_to(monkeypatch):  # API-03, API-08, TST-50
    monkeypatch.setattr(launch_functions, "only_here", True)
    monkeypatch.setattr(multiprocessing, "get_start_method", lambda allow_none=False: "fork")
    assert launch(launch_functions.inherited, 2, timeout_s=120) == [False, False]


SCRIPT = """
import sys
from cobre.comm.launch import launch

def work(comm):
    return comm.rank * 2

{guard}
    print(launch(work, 2, timeout_s=120), flush=True)
"""


def run_script(path: Path, text: str) -> subprocess.CompletedProcess[str]:
    path.write_text(text)
    return subprocess.run(
        [sys.executable, str(path)], capture_output=True, text=True, timeout=200, check=False
    )


def test_a_function_of_the_main_script(tmp_path):
    done = run_script(tmp_path / "script.py", SCRIPT.format(guard='if __name__ == "__main__":'))
    assert done.stdout == "[0, 2]\n", done.stderr


def test_a_script_without_a_guard_does_not_start_ranks_for_ever(tmp_path):
    done = run_script(tmp_path / "script.py", SCRIPT.format(guard="if True:"))
    assert done.returncode != 0
    assert "put the call below 'if __name__" in done.stderr


ORPHANS = """
import sys
sys.path.insert(0, {here!r})
import launch_functions
from cobre.comm.launch import launch
seen = set()
def note(rank, pid):
    if pid not in seen:
        seen.add(pid)
        print(pid, flush=True)
launch(launch_functions.{function}, 2, on_progress=note)
"""


def running(pids: list[int]) -> list[int]:
    """Return those that have not ended; a process that nobody has reaped has."""
    return [pid for pid in pids if Path(f"/proc/{pid}/exe").exists()]


@pytest.mark.parametrize(
    ("function", "stopped", "number"),
    [
        ("never_end", (), signal.SIGKILL),
        ("never_end", (), signal.SIGTERM),
        ("keep_asking", ("parent",), signal.SIGKILL),  # dies with questions unread: the ranks see a reset
        ("never_end", ("ranks",), signal.SIGKILL),
    ],
)
def test_ranks_end_when_the_parent_is_killed(function, stopped, number):
    before = segments()
    parent = subprocess.Popen(
        [sys.executable, "-c", ORPHANS.format(here=str(HERE), function=function)],
        stdout=subprocess.PIPE,
        text=True,
    )
    pids: list[int] = []
    try:
        assert parent.stdout is not None
        pids = [int(parent.stdout.readline()) for _ in range(2)]
        if "ranks" in stopped:
            for pid in pids:
                os.kill(pid, signal.SIGSTOP)
        if "parent" in stopped:
            parent.send_signal(signal.SIGSTOP)
            time.sleep(0.3)
        parent.send_signal(number)
        parent.wait(30)
        deadline = time.monotonic() + 30
        while running(pids) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not running(pids)
        assert segments() <= before
    finally:
        parent.kill()
        parent.wait()
        for pid in running(pids):
            os.kill(pid, signal.SIGKILL)
        parent.stdout.close()


def test_a_start_that_is_killed_leaves_no_segment():
    before = segments()
    parent = subprocess.Popen(
        [sys.executable, "-c", ORPHANS.format(here=str(HERE), function="never_end")],
        stdout=subprocess.DEVNULL,
    )
    children: list[int] = []
    try:
        deadline = time.monotonic() + 60
        while len(children) < 2 and time.monotonic() < deadline:
            found = Path(f"/proc/{parent.pid}/task/{parent.pid}/children").read_text().split()
            # one that runs no program of its own yet cannot be bound to its parent yet
            children = [int(pid) for pid in found if "launched" in Path(f"/proc/{pid}/cmdline").read_text()]
        os.kill(children[1], signal.SIGSTOP)  # rank 0 waits for it
        time.sleep(0.5)
        parent.kill()
        parent.wait()
        while running(children) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not running(children)
        assert segments() <= before
    finally:
        parent.kill()
        parent.wait()


def test_a_fork_of_a_rank_reports_nothing():
    seen: list[object] = []
    results = launch(launch_functions.report_from_fork, 1, on_progress=lambda rank, item: seen.append(item))
    assert (results, seen) == ([0], ["the rank itself"])


def test_results_may_be_arrays():
    (result,) = launch(launch_functions.large_result, 1, args=(10,), timeout_s=120)
    assert isinstance(result, np.ndarray)
