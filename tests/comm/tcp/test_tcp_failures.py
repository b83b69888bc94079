"""What the other ranks of a tcp job see when one is killed, stopped, slow, late, or out of step."""

from __future__ import annotations

import errno
import os
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


@pytest.mark.parametrize("victim", [0, 1, 2])
def test_a_rank_killed_while_the_others_wait_is_named(victim):  # COM-43, TCP-11
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
comm = connect(heartbeat_s=0.3, silence_s=2.0)
comm.barrier()
say("up")
input()
started = time.monotonic()
found = outcome(comm.close)
say(f"{time.monotonic() - started:.1f} {found}")
say(outcome(comm.close))
say(outcome(comm.barrier))
assert threading.active_count() == 1
"""


def _require_close_failed(said: list[str], story: str) -> None:
    _, failure, again, after = said
    seconds, found = failure.split(" ", 1)
    assert found == f"CollectiveFailed: close: {story}"
    assert float(seconds) < NOTICED_S
    assert again == "ok"
    assert after.startswith("InvalidCommunicator")


@pytest.mark.parametrize(
    ("victim", "number", "story"),
    [
        (0, signal.SIGKILL, "the process of rank 0 has ended"),
        (1, signal.SIGKILL, "the process of rank 1 has ended"),
        (2, signal.SIGKILL, "the process of rank 2 has ended"),
        (0, signal.SIGSTOP, "rank 0 gives no sign of life"),
        (2, signal.SIGSTOP, "rank 2 gives no sign of life"),
    ],
)
def test_the_others_are_told_when_they_close(victim, number, story):  # TST-60
    with TcpJob(3, CLOSING) as job:
        job.start().wait_for("up")
        job.kill(victim, number)
        others = _others(3, victim)
        job.go(*others)
        for said in job.finish(*others, within_s=30).values():
            _require_close_failed(said, story)


@pytest.mark.parametrize("victim", [0, 1, 2])
def test_a_rank_killed_while_it_closes_is_named(victim):  # TST-60
    with TcpJob(3, CLOSING) as job:
        job.start().wait_for("up")
        job.go(victim)
        time.sleep(0.5)  # most likely it waits for the others by now; the outcome is the same if not
        job.kill(victim)
        job.processes[victim].wait(30)
        others = _others(3, victim)
        job.go(*others)
        for said in job.finish(*others, within_s=30).values():
            _require_close_failed(said, f"the process of rank {victim} has ended")


CLOSING_LATE = """
comm = connect(timeout_s=2.0)
comm.barrier()
say("up")
if rank == job["config_victim"]:
    input()
say(outcome(comm.close))
"""


@pytest.mark.parametrize("victim", [0, 2])
def test_a_close_does_not_wait_for_ever(victim):
    with TcpJob(3, _victim(CLOSING_LATE, victim)) as job:
        job.start().wait_for("up")
        others = _others(3, victim)
        for said in job.finish(*others, within_s=60).values():
            assert said[1].startswith(f"CollectiveFailed: close: rank {victim} did not come within 2")
        job.go(victim)
        assert job.finish(victim)[victim][1].startswith("CollectiveFailed: close: rank ")


CLOSING_INTERRUPTED = """
comm = connect()
comm.barrier()
say("up")
if rank != job["config_victim"]:
    input()
say(outcome(comm.close))
assert threading.active_count() == 1
"""


@pytest.mark.parametrize("victim", [0, 1])
def test_a_close_can_be_interrupted(victim):
    with TcpJob(3, _victim(CLOSING_INTERRUPTED, victim)) as job:
        job.start().wait_for("up")
        time.sleep(0.3)  # most likely waiting in close by now
        job.kill(victim, signal.SIGINT)
        job.wait_for("KeyboardInterrupt", victim)
        job.go(*_others(3, victim))
        said = job.finish()
        for rank in _others(3, victim):
            assert said[rank][1] == f"CollectiveFailed: close: rank {victim} gave up"


STARTING = """
say("here")
say(outcome(connect))
"""


@pytest.mark.parametrize("victim", [0, 1, 2])
def test_a_rank_killed_during_the_start_is_named(victim):  # TST-60
    # rank 3 never comes, so that the others wait for it
    with TcpJob(4, STARTING) as job:
        job.start(0, 1, 2).wait_for("here")
        job.wait_joined(connections=4)
        job.kill(victim)
        others = _others(3, victim)
        for said in job.finish(*others, within_s=30).values():
            assert said[-1].startswith("RankLost: ")  # InitializationFailed and CollectiveFailed at once
            assert f"rank {victim} " in said[-1]
            assert "ended or broke off during the start" in said[-1]


HALF_JOINED = """
from cobre.comm.tcp.handshake import Channel
from cobre.comm.tcp.rendezvous import Worker
dial = Worker._dial

def dial_late(self, channel, *joined):
    if channel == Channel.CONTROL:
        say("half")
        input()
    return dial(self, channel, *joined)

if rank == 2:
    Worker._dial = dial_late
"""


@pytest.mark.parametrize("victim", [0, 1])
def test_a_rank_that_is_joining_hears_of_a_death_too(victim):
    with TcpJob(3, HALF_JOINED + STARTING) as job:
        job.start().wait_for("half", 2)
        job.wait_joined(connections=3)
        job.kill(victim)
        if victim != 0:
            job.finish(0, within_s=30)
        job.go(2)
        said = job.finish(2, within_s=30)[2][-1]
        assert said.startswith("RankLost: ")
        assert f"rank {victim} " in said


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


CUT_OFF = (
    PACED
    + """
if rank == 1:  # its system drops what comes on the data connection; heartbeats go on
    import ctypes, socket, struct
    drop_all = ctypes.create_string_buffer(struct.pack("HBBI", 0x06, 0, 0, 0))
    program = struct.pack("HL", 1, ctypes.addressof(drop_all))
    comm._transport._links[0].data.setsockopt(socket.SOL_SOCKET, 26, program)  # SO_ATTACH_FILTER
said = "ok"
while said == "ok":
    said = outcome(comm.barrier)
say(said)
"""
)


def test_a_data_connection_that_loses_everything_is_found():  # TCP-11: its peer gives heartbeats
    with TcpJob(3, CUT_OFF) as job:
        job.start().wait_for("up")
        job.go()
        broken = [f"CollectiveFailed: barrier: the connection to rank {r} failed" for r in (0, 1)]
        for said in job.finish(within_s=30).values():
            assert said[1] in [f"{story}: {os.strerror(errno.ETIMEDOUT)}" for story in broken]


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


FAILING = """
with connect() as comm:
    comm.barrier()
    if rank == 1:
        say(outcome(lambda: exec("raise RuntimeError")))
        raise SystemExit(0)
    say(outcome(comm.barrier))
"""


def test_a_rank_that_leaves_by_an_exception_is_named():
    with TcpJob(3, FAILING) as job:
        said = job.start().finish()
        for rank in (0, 2):
            assert said[rank][0] == "CollectiveFailed: barrier: rank 1 gave up"


LEAVING = """
comm = connect()
comm.barrier()
say("up")
if rank == job["config_victim"]:
    say(outcome(comm.close))
else:
    say(outcome(lambda: eval(job["call"])))
"""


@pytest.mark.parametrize(
    "call",
    [
        "comm.barrier()",
        "comm.allgatherv(np.zeros(10**6), np.zeros(3 * 10**6), [10**6] * 3, offsets([10**6] * 3))",
    ],
    ids=["barrier", "large gather"],
)
@pytest.mark.parametrize("victim", [0, 1])
def test_a_rank_that_closes_early_is_named(victim, call):
    with TcpJob(3, f"job['call'] = {call!r}\n" + _victim(LEAVING, victim)) as job:
        said = job.start().finish()
        name = call.partition("(")[0].removeprefix("comm.")
        for rank in _others(3, victim):
            assert said[rank][1] == f"CollectiveFailed: {name}: rank {victim} has closed its communicator"
        assert said[victim][1].startswith("CollectiveFailed: close: this rank called close, rank ")
        assert said[victim][1].endswith(f" called {name}")


GONE = """
comm = connect()
comm.barrier()
say("up")
if rank != 1:
    input()
    say(outcome(comm.close))
"""


def test_a_rank_that_ends_without_closing_is_not_missed():
    with TcpJob(3, GONE) as job:
        job.start().wait_for("up")
        job.finish(1)
        job.go(0, 2)
        for said in job.finish(0, 2).values():
            assert said[1] == "ok"


LAST = """
with connect() as comm:
    buf = np.full(300_000, float(rank))
    comm.broadcast(buf, 0)
    if rank == 2:
        time.sleep(0.5)  # the others wait for it to close
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
