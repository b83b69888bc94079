"""Ranks of the shm backend that are killed, stopped, interrupted or give up; nothing may hang or be left."""

from __future__ import annotations

import os
import signal
import time

import pytest
from rank_jobs import ShmJob

SOON_S = 30.0  # includes the end of the interpreter, which a busy machine delays
"""Within this time after a kill the other ranks know (issue's demand)."""

LOOPING = """
comm = connect()
send, recv = np.zeros(job["count"]), np.zeros(job["count"] * size)
counts, displs = [job["count"]] * size, offsets([job["count"]] * size)
def loop():
    while True:
        comm.allgatherv(send, recv, counts, displs)
comm.barrier()
comm.allgatherv(send, recv, counts, displs)
say("looping")
said = outcome(loop)
say(said)
say(outcome(comm.barrier).split(":")[0])
comm.close()
"""


@pytest.mark.parametrize("victim", [0, 1, 2])
@pytest.mark.parametrize("count", [1, 4000, 50_000], ids=["line", "slot", "direct"])
def test_killed_inside_a_collective(victim, count):  # TST-60
    with ShmJob(3, f"job['count'] = {count}\n" + LOOPING) as job:
        job.start().wait_for("looping")
        job.kill(victim)
        others = [r for r in range(3) if r != victim]
        for lines in job.finish(*others, within_s=SOON_S).values():
            assert lines[1].startswith("CollectiveFailed: allgatherv: "), lines
            assert f"rank {victim} has ended" in lines[1], lines
            assert lines[2] == "InvalidCommunicator"  # COM-43
        assert job.leftovers() == []


STARTING = """
def start():
    connect()
say("starting")
said = outcome(start)
say(said)
"""


@pytest.mark.parametrize("victim", [0, 1, 2])
def test_killed_at_start_up(victim):  # TST-60
    with ShmJob(4, STARTING) as job:
        job.start(0, 1, 2).wait_registered(0, 1, 2)  # rank 3 never comes
        job.kill(victim)
        others = [r for r in range(3) if r != victim]
        for lines in job.finish(*others, within_s=SOON_S).values():
            # which is both an InitializationFailed and a CollectiveFailed
            assert lines[1].startswith("RankLost: "), lines
            assert f"rank {victim} has ended" in lines[1], lines
        assert job.leftovers() == []


UNREGISTERED = """
import cobre.comm.shm.join as shm_join
register = shm_join._register

def die_first(*arguments):
    input()
    os.kill(os.getpid(), signal.SIGKILL)

if rank == 0:
    shm_join._register = die_first
else:
    shm_join._register = lambda *arguments: (say("opened"), input(), register(*arguments))
"""


def test_rank_0_killed_before_it_has_registered():
    # the others have found the segment that it has made, in which nobody is registered
    with ShmJob(3, UNREGISTERED + STARTING) as job:
        job.start().wait_for("opened", 1, 2)
        job.go(0)
        job.processes[0].wait(SOON_S)
        job.go(1, 2)
        for lines in job.finish(1, 2, within_s=SOON_S).values():
            assert lines[-1].startswith("RankLost: "), lines
            assert "rank 0 has ended" in lines[-1], lines
        assert job.leftovers() == []


CLOSING = """
comm = connect()
comm.barrier()
say("joined")
if rank == job["victim"]:
    input()
say("closing")
said = outcome(comm.close)
say(said)
say(outcome(comm.close))
"""


@pytest.mark.parametrize("victim", [0, 1, 2])
def test_killed_before_it_closes(victim):  # TST-60
    with ShmJob(3, f"job['victim'] = {victim}\n" + CLOSING) as job:
        others = [r for r in range(3) if r != victim]
        job.start().wait_for("joined", victim)
        job.wait_for("closing", *others)
        job.kill(victim)
        for lines in job.finish(*others, within_s=SOON_S).values():
            assert lines[2].startswith("CollectiveFailed: close: "), lines
            assert f"rank {victim} has ended" in lines[2], lines
            assert lines[3] == "ok"  # closing again is harmless
        assert job.leftovers() == []


WAITING_TO_CLOSE = """
comm = connect()
comm.barrier()
say("joined")
if rank != 1:
    input()
say("closing")
said = outcome(comm.close)
say(said)
"""


@pytest.mark.parametrize("delay_s", [0.0, 0.5], ids=["on its way", "waiting"])
def test_killed_while_it_closes(delay_s):  # TST-60
    with ShmJob(3, WAITING_TO_CLOSE) as job:
        job.start().wait_for("closing", 1)
        job.wait_for("joined")
        time.sleep(delay_s)
        job.kill(1)
        job.processes[1].wait(SOON_S)
        job.go(0, 2)
        for lines in job.finish(0, 2, within_s=SOON_S).values():
            assert lines[2].startswith("CollectiveFailed: close: "), lines
            assert "rank 1 has ended" in lines[2], lines


def test_exit_without_closing():
    body = """
comm = connect()
comm.barrier()
if rank == 1:
    say("leaving")
    sys.stdout.flush()
    sys.exit(0)
said = outcome(comm.barrier)
say(said)
"""
    with ShmJob(2, body) as job:
        lines = job.start().finish()[0]
        assert lines == ["CollectiveFailed: barrier: the process of rank 1 has ended"]


def test_an_exception_releases_the_others_at_once():
    body = """
def work():
    with connect() as comm:
        comm.barrier()
        if rank == 1:
            raise KeyError("mine")
        comm.barrier()
began = time.monotonic()
said = outcome(work)
say(said)
if rank == 1:
    input()  # alive, so that only its word tells the others
"""
    with ShmJob(3, body) as job:
        job.start()
        for lines in job.finish(0, 2).values():
            assert lines == ["CollectiveFailed: barrier: rank 1 gave up"]
        job.go(1)
        assert job.finish(1)[1] == ["KeyError: 'mine'"]


def test_a_stopped_rank_is_met_by_the_deadline():
    body = """
comm = connect(timeout_s=2.0)
comm.barrier()
say("joined")
if rank == 1:
    input()
said = outcome(comm.barrier)
say(said)
"""
    with ShmJob(2, body) as job:
        job.start().wait_for("joined")
        job.kill(1, signal.SIGSTOP)
        lines = job.finish(0)[0]
        assert lines[1].startswith("CollectiveFailed: barrier: rank 1 did not come within 2"), lines


def test_a_rank_that_never_comes():
    with ShmJob(3, "say(outcome(connect))", connect_timeout_s=1.5) as job:
        lines = job.start(0, 1).finish()
        assert "rank 2 did not join within 1.5 s" in lines[0][0] + lines[1][0]
        assert all(line[0].startswith(("InitializationFailed", "RankLost")) for line in lines.values())
        assert job.leftovers() == []


def test_a_segment_that_never_comes():
    with ShmJob(2, "say(outcome(connect))", connect_timeout_s=1.0) as job:
        (line,) = job.start(1).finish()[1]
        assert line.startswith("InitializationFailed: ")
        assert "rank 0 did not make the segment" in line


def test_interrupted_by_the_keyboard():
    body = """
import signal

def once(number, frame):  # further signals of the test come too late
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise KeyboardInterrupt

comm = connect()
comm.barrier()
signal.signal(signal.SIGINT, once)
say("waiting")
if rank == 1:
    input()
said = outcome(comm.barrier)
say(said)
say(outcome(comm.barrier).split(":")[0])
comm.close()
"""
    with ShmJob(2, body) as job:
        job.start().wait_for("waiting")
        deadline = time.monotonic() + 20
        while len(job.lines[0]) == 1 and time.monotonic() < deadline:  # until it waits inside the barrier
            time.sleep(0.2)
            job.kill(0, signal.SIGINT)
        assert job.finish(0)[0] == ["waiting", "KeyboardInterrupt: ", "InvalidCommunicator"]
        job.go(1)
        said = job.finish(1)[1][1]
        assert said == "CollectiveFailed: barrier: rank 0 was interrupted by a signal"


def test_a_handler_that_does_not_raise_does_not_disturb():
    body = """
comm = connect()
handled = []
signal.signal(signal.SIGUSR1, lambda number, frame: (handled.append(number), say("handled")))
comm.barrier()
say("waiting")
if rank == 1:
    input()
comm.barrier()
comm.close()
say(len(handled) > 0)
"""
    with ShmJob(2, body) as job:
        job.start().wait_for("waiting")
        deadline = time.monotonic() + 20
        while "handled" not in job.lines[0] and time.monotonic() < deadline:
            job.kill(0, signal.SIGUSR1)
            time.sleep(0.1)
        job.go(1)
        lines = job.finish()
        assert lines[0][-1] == "True"
        assert lines[1] == ["waiting", "False"]


def test_abort_ends_all_ranks():  # COM-02
    body = """
comm = connect()
comm.barrier()
say("joined")
input()
if rank == 1:
    comm.abort(7)
time.sleep(60)
"""
    with ShmJob(3, body) as job:
        job.start().wait_for("joined")
        job.go()
        codes = [job.processes[r].wait(20) for r in range(3)]
        assert codes == [-signal.SIGTERM, 7, -signal.SIGTERM]


def test_two_processes_with_one_rank():
    with ShmJob(3, STARTING, connect_timeout_s=20.0) as job:
        job.start(0, 1).wait_registered(0, 1)
        second = job.spawn(1)
        try:
            output, _ = second.communicate(timeout=40)
        finally:
            second.kill()
        assert "another process is rank 1 already" in output


def test_a_zombie_has_ended():
    # the parent of the killed rank does not collect it before the others have noticed
    with ShmJob(2, "job['count'] = 1\n" + LOOPING) as job:
        job.start().wait_for("looping")
        os.kill(job.processes[1].pid, signal.SIGKILL)
        lines = job.finish(0, within_s=SOON_S)[0]
        assert "the process of rank 1 has ended" in lines[1]


# Kernels before 5.3, sandboxes that forbid it, and builds of Python that do not know it.
WITHOUT_PIDFD = {
    "no system call": "os.pidfd_open = lambda *_: (_ for _ in ()).throw(OSError(errno.ENOSYS, 'not there'))",
    "forbidden": "os.pidfd_open = lambda *_: (_ for _ in ()).throw(OSError(errno.EPERM, 'not allowed'))",
    "no function": "del os.pidfd_open",
}


@pytest.mark.parametrize("how", WITHOUT_PIDFD)
@pytest.mark.parametrize("victim", [0, 2])
def test_a_death_is_seen_without_pidfds(victim, how):  # 10.7
    body = f"import errno\n{WITHOUT_PIDFD[how]}\njob['count'] = 1\n" + LOOPING
    with ShmJob(3, body) as job:
        job.start().wait_for("looping")
        job.kill(victim)
        others = [r for r in range(3) if r != victim]
        for lines in job.finish(*others, within_s=SOON_S).values():
            assert f"rank {victim} has ended" in lines[1], lines
        assert job.leftovers() == []


@pytest.mark.parametrize("body", [STARTING, "job['victim'] = 1\n" + CLOSING], ids=["start", "close"])
def test_a_death_at_either_end_is_seen_without_pidfds(body):
    with ShmJob(3, "del os.pidfd_open\n" + body) as job:
        if "closing" in body:
            job.start().wait_for("closing", 0, 2)
            job.wait_for("joined", 1)
            others = (0, 2)
        else:
            job.start(0, 1).wait_registered(0, 1)
            others = (0,)
        job.kill(1)
        for lines in job.finish(*others, within_s=SOON_S).values():
            assert any("rank 1 has ended" in line for line in lines), lines
        assert job.leftovers() == []


def test_abort_ends_all_ranks_without_pidfds():  # COM-02
    body = """
del os.pidfd_open
comm = connect()
comm.barrier()
say("joined")
input()
if rank == 1:
    comm.abort(7)
time.sleep(60)
"""
    with ShmJob(3, body) as job:
        job.start().wait_for("joined")
        job.go()
        codes = [job.processes[r].wait(20) for r in range(3)]
        assert codes == [-signal.SIGTERM, 7, -signal.SIGTERM]
