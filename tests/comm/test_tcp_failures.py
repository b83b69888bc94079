"""What the other ranks of a tcp job see when one is killed, stopped, slow, late, or out of step."""

from __future__ import annotations

import signal
import time

import pytest
from rank_jobs import TcpJob

NOTICED_S = 5.0
"""Within this time the others must know that a rank is gone."""

WAITING = """
comm = connect()
comm.barrier()
say("up")
input()
if rank != job["config_victim"]:
    started = time.monotonic()
    found = outcome(comm.barrier)
    say(f"{time.monotonic() - started:.1f} {found}")
    say(outcome(comm.barrier))
    comm.close()
    assert threading.active_count() == 1
else:
    time.sleep(300)
"""


def _victim(body: str, victim: int) -> str:
    return f"job['config_victim'] = {victim}\n" + body


def _others(size: int, victim: int) -> list[int]:
    return [rank for rank in range(size) if rank != victim]


def test_a_rank_killed_while_the_others_wait_is_named():  # COM-43, TCP-11
    victim = 1  # the others in the conformance suite
    with TcpJob(3, _victim(WAITING, victim)) as job:
        job.start().wait_for("up")
        others = _others(3, victim)
        job.go(*others)
        job.go(victim)
        job.kill(victim)
        began = time.monotonic()
        said = job.finish(*others, within_s=30)
        assert time.monotonic() - began < NOTICED_S + 10  # with the time to end a process on a busy machine
        for rank in others:
            _, failure, after = said[rank]
            seconds, story = failure.split(" ", 1)
            assert story == f"CollectiveFailed: barrier: the process of rank {victim} has ended"
            assert float(seconds) < NOTICED_S
            assert after.startswith("InvalidCommunicator")


INSIDE = """
comm = connect()
n = 200_000
arguments = np.zeros(n), np.zeros(n * size), np.full(size, n), np.arange(size) * n
comm.allgatherv(*arguments)
say("up")

def gather_for_ever():
    while True:
        comm.allgatherv(*arguments)

say(outcome(gather_for_ever))
comm.close()
"""


@pytest.mark.parametrize("victim", [0, 2])
def test_a_rank_killed_in_the_middle_of_gathers_is_named(victim):
    with TcpJob(3, INSIDE) as job:
        job.start().wait_for("up")
        time.sleep(0.3)  # somewhere in the middle, wherever that is
        job.kill(victim)
        others = _others(3, victim)
        for said in job.finish(*others, within_s=30).values():
            assert said[1] == f"CollectiveFailed: allgatherv: the process of rank {victim} has ended"


CLOSING = """
comm = connect()
comm.barrier()
say("up")
input()
started = time.monotonic()
comm.close()
say(f"{time.monotonic() - started:.1f}")
"""


def test_the_others_close_though_rank_0_is_stopped():  # the conformance suite kills each rank
    with TcpJob(3, CLOSING) as job:
        job.start().wait_for("up")
        job.kill(0, signal.SIGSTOP)
        job.go(1, 2)
        for said in job.finish(1, 2, within_s=30).values():
            assert float(said[1]) < NOTICED_S


STARTING = """
say("here")
say(outcome(connect))
"""


@pytest.mark.parametrize("victim", [0, 1])
def test_a_rank_killed_during_the_start_is_named(victim):
    # rank 2 never comes, so that ranks 0 and 1 wait for it
    with TcpJob(3, STARTING) as job:
        job.start(0, 1).wait_for("here")
        job.wait_joined(connections=2)
        job.kill(victim)
        other = 1 - victim
        said = job.finish(other, within_s=30)[other][-1]
        assert said.startswith("InitializationFailed")
        assert f"rank {victim}" in said
        assert "ended or broke off during the start" in said


def test_missing_ranks_are_named_to_all():
    with TcpJob(4, STARTING, connect_timeout_s=3.0) as job:
        job.start(0, 1)
        for rank, said in job.finish(within_s=60).items():
            assert said[-1].startswith("InitializationFailed"), (rank, said)
            assert "had not joined: 2, 3" in said[-1], (rank, said)


def test_a_worker_without_coordinator_gives_up_in_time():  # TCP-05
    with TcpJob(2, STARTING, connect_timeout_s=1.0) as job:
        job.listener.close()
        said = job.start(1).finish(within_s=60)[1][-1]
        assert said.startswith("InitializationFailed")
        assert "could not be joined within 1 s" in said


PACED = """
comm = connect(heartbeat_s=0.3, silence_s=2.0)
comm.barrier()
say("up")
input()
"""

STOPPED = (
    PACED
    + """
say(outcome(comm.barrier))
"""
)


@pytest.mark.parametrize("victim", [0, 2])
def test_a_stopped_rank_is_taken_for_dead(victim):  # TCP-11, 10.7
    with TcpJob(3, STOPPED) as job:
        job.start().wait_for("up")
        job.kill(victim, signal.SIGSTOP)
        others = _others(3, victim)
        job.go(*others)
        for said in job.finish(*others, within_s=30).values():
            assert said[1] == f"CollectiveFailed: barrier: rank {victim} gives no sign of life"
        job.kill(victim, signal.SIGCONT)
        job.go(victim)
        assert job.finish(victim, within_s=30)[victim][1].startswith("CollectiveFailed: barrier: ")


BUSY = (
    PACED
    + """
if rank == size - 1:  # busy for longer than the limit of silence, holding the GIL all the time
    import ctypes
    ctypes.PyDLL(None).usleep(4_500_000)
say(outcome(comm.barrier))
comm.close()
"""
)


def test_a_busy_rank_is_waited_for():  # 10.7
    with TcpJob(3, BUSY) as job:
        job.start().wait_for("up")
        job.go()
        assert {said[1] for said in job.finish().values()} == {"ok"}


LATE = """
comm = connect(timeout_s=2.0)
comm.barrier()
say("up")
if rank == job["config_victim"]:
    input()
else:
    started = time.monotonic()
    say(outcome(comm.barrier), round(time.monotonic() - started))
say(outcome(comm.barrier))
"""


@pytest.mark.parametrize("victim", [0, 1])
def test_a_collective_does_not_wait_for_ever(victim):  # the row tcp_barrier_timeout
    with TcpJob(3, _victim(LATE, victim)) as job:
        job.start().wait_for("up")
        others = _others(3, victim)
        job.wait_for("InvalidCommunicator", *others)
        for rank in others:
            story = job.lines[rank][1]
            assert story.startswith(f"CollectiveFailed: barrier: rank {victim} did not come within 2")
        job.go(victim)
        failure = job.finish(victim)[victim][1]
        assert failure.startswith(("CollectiveFailed", "InvalidCommunicator"))


LEAVING = """
comm = connect()
comm.barrier()
with comm:
    if rank == 1:
        raise SystemExit(0)
    say(outcome(comm.barrier))
"""

CLOSING_EARLY = """
comm = connect()
comm.barrier()
if rank == 1:
    comm.close()
else:
    say(outcome(comm.barrier))
"""


@pytest.mark.parametrize(
    ("body", "what"),
    [(LEAVING, "gave up"), (CLOSING_EARLY, "has closed its communicator")],
    ids=["by an exception", "by closing"],
)
def test_a_rank_that_leaves_early_is_named(body, what):
    with TcpJob(3, body) as job:
        said = job.start().finish()
        story = f"CollectiveFailed: barrier: rank 1 {what}"
        assert said == {0: [story], 1: [], 2: [story]}


LAST = """
with connect() as comm:
    buf = np.full(300_000, float(rank))
    comm.broadcast(buf, 0)
    if rank == 2:
        time.sleep(0.5)  # the others are gone by now
    assert (buf == 0).all()
say("done")
"""


def test_ranks_may_close_at_different_times():
    with TcpJob(3, LAST) as job:
        assert job.start().finish() == {r: ["done"] for r in range(3)}


ABORTING = """
comm = connect()
comm.barrier()
say("up")
if rank == job["config_victim"]:
    input()
    comm.abort(42)
elif rank == 2:
    comm.barrier()  # waits in nopython code
else:
    while True:
        pass
"""


@pytest.mark.parametrize("victim", [0, 1])
def test_abort_ends_all_ranks_with_its_code(victim):  # COM-02
    with TcpJob(3, _victim(ABORTING, victim)) as job:
        job.start().wait_for("up")
        job.go(victim)
        for process in job.processes.values():
            assert process.wait(30) == 42


INTERRUPTED = """
comm = connect()
comm.barrier()
say("up")
if rank == job["config_victim"] or rank == 2:
    say(outcome(comm.barrier))
else:
    input()
    say(outcome(comm.barrier))
comm.close()
"""


@pytest.mark.parametrize("victim", [0, 1])
def test_an_interrupt_ends_the_wait_and_is_told(victim):
    with TcpJob(3, _victim(INTERRUPTED, victim)) as job:
        job.start().wait_for("up")
        time.sleep(0.3)  # most likely asleep in the barrier by now; the outcome is the same if not
        job.kill(victim, signal.SIGINT)
        job.wait_for("KeyboardInterrupt", victim)
        job.wait_for(f"CollectiveFailed: barrier: rank {victim} was interrupted by a signal", 2)
        job.go(1 - victim)
        said = job.finish()
        assert said[1 - victim][1].startswith("CollectiveFailed: barrier: rank ")
