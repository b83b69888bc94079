"""Ranks that are kept: one call after the other, what happens to them in between, and what is left."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import launch_functions
import pytest

from cobre.comm import BackendNotAvailable
from cobre.comm.backends import LocalBackend, ShmTransport
from cobre.comm.config import NONCE_BYTES
from cobre.comm.launch import RankPool
from cobre.errors import CobreError, OutputError, ValidationError, WorkerError

HERE = Path(__file__).parent
TIMEOUT_S = 120
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="shm and tcp need Linux")


def have_ended(pids) -> bool:
    """Wait until processes are gone; a zombie has ended."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        left = []
        for pid in pids:
            with suppress(FileNotFoundError):
                state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
                left += [pid] if state != "Z" else []
        if not left:
            return True
        time.sleep(0.02)
    return False


def wait_for(condition) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture(scope="module", params=["shm", "tcp"])
def pool(request):
    with RankPool(3, backend=request.param) as ranks:
        yield ranks
        pids = ranks.pids
    assert have_ended(pids)


@pytest.fixture(scope="module")
def pair():
    """A pool of two, for what does not depend on the backend."""
    with RankPool(2) as ranks:
        yield ranks


def sums(pool, offset=0):
    return [row[3] for row in pool.run(launch_functions.add_ranks, args=(offset,), timeout_s=TIMEOUT_S)]


def test_calls_run_on_the_same_processes_and_leave_no_descriptor(pool):
    pids = pool.pids
    for offset in range(4):
        results = pool.run(launch_functions.add_ranks, kwargs={"offset": offset}, timeout_s=TIMEOUT_S)
        assert results == [(rank, 3, pool.backend, 3.0 * offset + 3.0) for rank in range(3)]
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    first, second = (pool.run(launch_functions.process_facts, timeout_s=TIMEOUT_S) for _ in range(2))
    assert first == second
    assert tuple(facts[0] for facts in first) == pids == pool.pids
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208


@pytest.mark.parametrize("how", ["raise", "unpicklable", "system exit"])
def test_a_rank_that_raises_is_kept(pool, how):
    assert sums(pool) == [3.0] * 3
    pids = pool.pids
    with pytest.raises(WorkerError, match="rank 1 failed") as caught:
        pool.run(launch_functions.fail, args=(1, how), timeout_s=TIMEOUT_S)
    assert (caught.value.rank, caught.value.exit_code) == (1, None)
    assert isinstance(
        caught.value.inner, {"raise": ValueError, "system exit": SystemExit}.get(how, type(None))
    )
    assert sums(pool) == [3.0] * 3
    assert pool.pids == pids


@pytest.mark.parametrize(("how", "code"), [("kill", -signal.SIGKILL), ("silent exit", 0)])
def test_a_rank_that_ends_fails_its_call_and_is_replaced(pool, how, code):
    assert sums(pool) == [3.0] * 3
    pids = pool.pids
    with pytest.raises(WorkerError) as caught:
        pool.run(launch_functions.fail, args=(2, how), timeout_s=TIMEOUT_S)
    assert (caught.value.rank, caught.value.exit_code) == (2, code)
    assert sums(pool) == [3.0] * 3
    assert pool.pids[:2] == pids[:2]
    assert pool.pids[2] != pids[2]


def test_a_rank_killed_between_calls_fails_none(pool):
    assert sums(pool) == [3.0] * 3
    pids = pool.pids
    os.kill(pids[0], signal.SIGKILL)
    wait_for(lambda: pool.alive == 2)
    assert sums(pool) == [3.0] * 3
    assert pool.pids[1:] == pids[1:]


def test_a_rank_that_does_not_notice_a_failure_is_replaced(pair):
    assert sums(pair) == [1.0] * 2
    pids = pair.pids
    with pytest.raises(WorkerError, match="after 1 s") as caught:
        pair.run(launch_functions.never_end_from, args=(1,), timeout_s=1)
    assert isinstance(caught.value.inner, TimeoutError)
    assert have_ended(pids)
    assert sums(pair) == [1.0] * 2
    with pytest.raises(WorkerError, match="signal 9"):
        pair.run(launch_functions.add_ranks, args=(launch_functions.DiesWhenRead(),), timeout_s=TIMEOUT_S)
    assert sums(pair) == [1.0] * 2


def test_ranks_that_cannot_be_joined_are_all_replaced(pair, monkeypatch):
    assert sums(pair) == [1.0] * 2
    pids = pair.pids
    configuration = ShmTransport.config

    def of_another_job(self, rank):
        config = configuration(self, rank)
        return replace(config, nonce=b"x" * NONCE_BYTES) if rank == 1 else config

    with monkeypatch.context() as patch:
        patch.setattr(ShmTransport, "config", of_another_job)
        with pytest.raises(WorkerError, match="another job's"):
            sums(pair)
    assert sums(pair) == [1.0] * 2
    assert not set(pair.pids) & set(pids)


def test_directory_and_variables(pair, tmp_path, monkeypatch):
    monkeypatch.setenv("COBRE_TEST_VARIABLE", "too late")
    monkeypatch.chdir(tmp_path)
    (facts, _) = pair.run(launch_functions.process_facts, timeout_s=TIMEOUT_S)
    assert facts[2] == str(tmp_path)
    answers = pair.run(launch_functions.ask_until_yes, args=("COBRE_TEST_VARIABLE",), timeout_s=TIMEOUT_S)
    assert answers == [([False, False, False], None)] * 2


def test_an_interrupt_ends_what_runs_and_the_pool_goes_on(pair):
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    pids = []

    def interrupt(rank, pid):
        pids.append(pid)
        if len(pids) == 2:
            os.kill(os.getpid(), signal.SIGINT)

    try:
        with pytest.raises(KeyboardInterrupt):
            pair.run(launch_functions.never_end, on_progress=interrupt, timeout_s=TIMEOUT_S)
    finally:
        signal.signal(signal.SIGINT, before)
    assert have_ended(pids)
    assert sums(pair) == [1.0, 1.0]


def test_one_call_at_a_time(pair):
    refused = []

    def call_again(rank, number):
        with pytest.raises(CobreError) as caught:
            pair.run(launch_functions.add_ranks)
        refused.append(caught.value.kind)
        return True

    pair.run(launch_functions.ask_until_yes, args=("X",), on_progress=call_again, timeout_s=TIMEOUT_S)
    assert set(refused) == {"PoolInUse"}
    assert sums(pair) == [1.0, 1.0]


def test_a_pool_closed_during_a_call():
    pool = RankPool(2)
    pids = []

    def close_in_another_thread(rank, pid):
        pids.append(pid)
        if len(pids) == 2:
            closer = threading.Thread(target=pool.close)
            closer.start()
            closer.join()

    with pytest.raises(CobreError, match="has been closed") as caught:
        pool.run(launch_functions.never_end, on_progress=close_in_another_thread, timeout_s=TIMEOUT_S)
    assert caught.value.kind == "PoolClosed"
    assert have_ended(pids)
    assert (pool.alive, repr(pool)) == (0, "RankPool(ranks=2, backend='shm', closed)")


def test_a_closed_pool_says_so_and_keeps_its_logs():
    pool = RankPool(2)
    pool.run(launch_functions.say, args=("hello",), timeout_s=TIMEOUT_S)
    pids = pool.pids
    pool.close()
    pool.close()
    assert have_ended(pids)
    assert [pool.logs(rank) for rank in range(2)] == ["rank 0: hello\n", "rank 1: hello\n"]
    for use in (lambda: pool.run(launch_functions.add_ranks), pool.__enter__):
        with pytest.raises(CobreError, match="has been closed") as caught:
            use()
        assert caught.value.kind == "PoolClosed"
    with pytest.raises(IndexError, match="ranks are 0 to 1"):
        pool.logs(2)


def test_a_pool_that_nobody_refers_to_ends():
    pool = RankPool(2)
    pids = pool.pids
    del pool
    gc.collect()
    assert have_ended(pids)


def test_logs_by_rank_in_a_directory_and_with_an_error(tmp_path):
    for turn in ("first", "second"):
        with RankPool(2, log_dir=tmp_path / "logs") as pool:
            pool.run(launch_functions.say, args=(turn,), timeout_s=TIMEOUT_S)
            assert pool.logs(1) == f"rank 1: {turn}\n"
            with pytest.raises(WorkerError, match="signal 6") as caught:
                pool.run(launch_functions.say_and_crash, args=("the end",), timeout_s=TIMEOUT_S)
            log = caught.value.context["log"]
            assert log.startswith(f"rank 1: {turn}\nrank 1: the end\nFatal Python error: Aborted")
            assert "in say_and_crash" in log
    lines = [(tmp_path / "logs" / f"rank-{rank}.log").read_text().splitlines() for rank in range(2)]
    assert lines[0] == [f"rank 0: {text}" for text in ("first", "the end", "second", "the end")]
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="cannot be written"):
        RankPool(1, log_dir=tmp_path / "file" / "logs")


def test_each_process_is_prepared_once_and_one_that_cannot_be_is_named(tmp_path):
    obstacle = tmp_path / "obstacle"
    arguments = ("prepared", str(obstacle))
    with RankPool(2, initializer=launch_functions.prepare, initargs=arguments) as pool:
        for _ in range(2):
            facts = pool.run(launch_functions.process_facts, timeout_s=TIMEOUT_S)
            assert [prepared for _, prepared, *_ in facts] == [["prepared"], ["prepared"]]
        obstacle.touch()
        os.kill(pool.pids[1], signal.SIGKILL)
        wait_for(lambda: pool.alive == 1)
        with pytest.raises(WorkerError, match=r"rank 1 failed: ValueError: .*obstacle is there"):
            sums(pool)
        obstacle.unlink()
        with suppress(WorkerError):  # its replacement was started at once, maybe before that
            sums(pool)
        assert sums(pool) == [1.0, 1.0]


def test_ranks_outlive_the_thread_that_made_the_pool():
    made = []
    thread = threading.Thread(target=lambda: made.append(RankPool(2)))
    thread.start()
    thread.join()
    with made[0] as pool:
        pids = pool.pids
        results = []
        for _ in range(2):
            caller = threading.Thread(target=lambda: results.append(sums(pool)))
            caller.start()
            caller.join()
        assert results == [[1.0, 1.0]] * 2
        assert pool.pids == pids


def test_wrong_arguments_are_refused():
    for ranks in (0, True, "2"):
        with pytest.raises(ValidationError, match=f"RankPool: ranks={ranks!r}"):
            RankPool(ranks)
    with pytest.raises(BackendNotAvailable, match="launcher cannot start"):
        RankPool(2, backend="local")
    with pytest.raises(ValidationError, match=r"RankPool: .*cannot be sent to another process"):
        RankPool(2, initializer=lambda: None)
    with RankPool(1) as pool:
        with pytest.raises(ValidationError, match=r"RankPool\.run: timeout_s=0"):
            pool.run(launch_functions.add_ranks, timeout_s=0)
        with pytest.raises(ValidationError, match=r"RankPool\.run: .*cannot be sent to another process"):
            pool.run(lambda comm: None)


def test_a_backend_with_descriptors_has_to_say_where_they_go():
    with pytest.raises(NotImplementedError, match="'local' passes descriptors"):
        LocalBackend().with_descriptors(None, [3])


def run_script(path: Path, text: str) -> subprocess.CompletedProcess[str]:
    path.write_text(f"import sys\nsys.path.insert(0, {str(HERE)!r})\n{text}")
    return subprocess.run(
        [sys.executable, str(path)], capture_output=True, text=True, timeout=200, check=False
    )


def test_a_script_without_a_guard_may_use_a_pool_but_not_its_own_functions(tmp_path):
    done = run_script(
        tmp_path / "script.py",
        """
import launch_functions
from cobre.comm.launch import RankPool
from cobre.errors import WorkerError

def work(comm):
    return comm.rank

pool = RankPool(2)
print(pool.run(launch_functions.add_ranks, timeout_s=120)[0][3], *pool.pids, flush=True)
try:
    pool.run(work, timeout_s=120)
except WorkerError as error:
    print(error.inner.kind, error)
""",
    )
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    total, one, other = first.split()
    assert total == "1.0"
    assert second.startswith("IncompatibleSettings rank ")
    assert "put the call below 'if __name__" in second
    assert have_ended([int(one), int(other)])  # though nothing has closed the pool


def test_a_process_of_multiprocessing_that_imports_the_script_makes_no_pool(tmp_path):
    done = run_script(
        tmp_path / "script.py",
        """
import multiprocessing
from cobre.comm.launch import RankPool

pool = RankPool(1)
if __name__ == "__main__":
    child = multiprocessing.get_context("spawn").Process(target=print)
    child.start()
    child.join()
    print(child.exitcode)
""",
    )
    assert done.stdout == "1\n"
    assert "a process called RankPool while it imported the main module" in done.stderr
    assert "put the call below 'if __name__" in done.stderr


def test_a_fork_cannot_use_the_pool_or_end_it_but_make_its_own(tmp_path):
    done = run_script(
        tmp_path / "script.py",
        """
import os
import launch_functions
from cobre.comm.launch import RankPool
from cobre.errors import CobreError

pool = RankPool(1)
pids = pool.pids
child = os.fork()
if child == 0:
    try:
        pool.run(launch_functions.add_ranks, timeout_s=120)
    except CobreError as error:
        print(error.kind, error.suggestion, flush=True)
    pool.close()
    with RankPool(1) as own:
        print(own.run(launch_functions.add_ranks, timeout_s=120)[0][0], flush=True)
    del pool
    sys.exit(5)  # runs what is to be run at the end of a process
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), pool.pids == pids)
print(pool.run(launch_functions.add_ranks, timeout_s=120)[0][0], pool.pids == pids)
""",
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "IncompatibleSettings make a pool in each process that needs one",
        "0",
        "5 True",
        "0 True",
    ]


@pytest.mark.parametrize("function", ["add_ranks", "never_end"])
def test_no_rank_outlives_a_program_that_is_killed(function):
    program = f"""
import sys
sys.path.insert(0, {str(HERE)!r})
import launch_functions, time
from cobre.comm.launch import RankPool
pool = RankPool(2)
print(*pool.pids, flush=True)
pool.run(launch_functions.{function}, on_progress=lambda rank, pid: rank or print(flush=True))
print(flush=True)
time.sleep(60)
"""
    parent = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    try:
        pids = [int(pid) for pid in parent.stdout.readline().split()]
        assert len(pids) == 2
        assert parent.stdout.readline() == "\n"  # the ranks run, or wait for the next call
        parent.kill()
        parent.wait()
        assert have_ended(pids)
    finally:
        parent.kill()
        parent.wait()
        parent.stdout.close()
