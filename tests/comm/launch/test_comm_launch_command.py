"""Copies of a command as ranks: output, signals, exit codes, what is left behind."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from leftovers import marked_processes

from cobre.comm.backends import ShmTransport
from cobre.comm.launch import run_command
from cobre.errors import ValidationError

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="shm and tcp need Linux")

PYTHON = sys.executable
SUM = """
import numpy as np
from cobre.comm import ReduceOp, create_communicator
with create_communicator() as comm:
    total = np.zeros(1)
    comm.allreduce(np.array([comm.rank + 1.0]), total, ReduceOp.SUM)
    print(comm.backend, comm.rank, comm.size, int(total[0]))
"""


@pytest.fixture(autouse=True)
def _no_segments_are_left(monkeypatch):
    names = []
    make = ShmTransport.__init__

    def make_and_note(self, *arguments):
        make(self, *arguments)
        names.append(self.name)

    monkeypatch.setattr(ShmTransport, "__init__", make_and_note)
    yield
    assert not [path for name in names for path in Path("/dev/shm").glob(f"{name[1:]}*")]


def run(code: str, ranks: int, **options: object) -> tuple[int, str, str]:
    out, err = io.BytesIO(), io.BytesIO()
    status = run_command([PYTHON, "-c", code], ranks, stdout=out, stderr=err, **options)
    return status, out.getvalue().decode(), err.getvalue().decode()


@pytest.mark.parametrize("backend", ["shm", "tcp"])
def test_ranks_find_each_other_by_the_environment(backend):
    status, out, err = run(SUM, 3, backend=backend)
    assert status == 0, err
    assert sorted(out.splitlines()) == [f"{backend} {rank} 3 6" for rank in range(3)]


def test_lines_stay_whole_and_carry_their_rank():
    code = (
        "import os, sys\n"
        "for k in range(200): print('x' * 50 + str(k))\n"
        "print('to stderr', file=sys.stderr)\n"
        "sys.stdout.write('unfinished ' + os.environ['COBRE_SHM_RANK'])"
    )
    status, out, err = run(code, 2, prefix=True)
    assert status == 0
    for rank in range(2):
        mine = [line for line in out.splitlines() if line.startswith(f"[{rank}] ")]
        wanted = [f"[{rank}] {'x' * 50}{k}" for k in range(200)] + [f"[{rank}] unfinished {rank}"]
        assert mine == wanted
    assert len(out.splitlines()) == 402
    assert sorted(err.splitlines()) == ["[0] to stderr", "[1] to stderr"]


FAIL = """
import os, signal, sys, time
if os.environ['COBRE_SHM_RANK'] == '1':
    {action}
time.sleep(100)
"""


@pytest.mark.parametrize(
    ("action", "code"), [("sys.exit(9)", 9), ("os.kill(os.getpid(), signal.SIGKILL)", 128 + signal.SIGKILL)]
)
def test_the_first_failure_ends_all(action, code):
    start = time.monotonic()
    status, _, _ = run(FAIL.format(action=action), 3)
    assert status == code
    assert time.monotonic() - start < 60


LAUNCH = "import sys; from cobre.comm.launch import run_command; sys.exit(run_command(sys.argv[1:], 2))"
WAIT = """
import signal, sys, time
def stop(number, frame):
    print('got', number, flush=True)
    sys.exit({code})
signal.signal(signal.SIGINT, stop)
signal.signal(signal.SIGTERM, stop)
print('ready', flush=True)
time.sleep(100)
"""


def start_waiting(code: int = 0) -> subprocess.Popen[str]:
    launcher = subprocess.Popen(
        [PYTHON, "-c", LAUNCH, PYTHON, "-c", WAIT.format(code=code)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert launcher.stdout is not None
    assert [launcher.stdout.readline() for _ in range(2)] == ["ready\n", "ready\n"]
    return launcher


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_are_passed_on(number):
    launcher = start_waiting()
    try:
        launcher.send_signal(number)
        out, _ = launcher.communicate(timeout=60)
        assert out == f"got {int(number)}\n" * 2
        assert launcher.returncode == 128 + number
    finally:
        launcher.kill()
        launcher.wait()


def test_ranks_die_with_a_killed_launcher():
    launcher = start_waiting()
    try:
        ranks = [
            int(pid)
            for task in Path(f"/proc/{launcher.pid}/task").iterdir()
            for pid in (task / "children").read_text().split()
        ]
        assert len(ranks) == 3  # and what ends processes that the launcher leaves behind
        launcher.kill()
        launcher.wait(30)
        deadline = time.monotonic() + 30
        while any(Path(f"/proc/{pid}/exe").exists() for pid in ranks) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not any(Path(f"/proc/{pid}/exe").exists() for pid in ranks)
    finally:
        launcher.kill()
        launcher.wait()


@pytest.mark.parametrize("stopped", [False, True])
def test_ranks_behind_wrappers_die_with_a_killed_launcher(stopped):
    code = "import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(100)"
    wrapped = ["/bin/sh", "-c", '/bin/sh -c \'"$0" "$@"; exit 1\' "$0" "$@"; exit 1', PYTHON, "-c", code]
    launcher = subprocess.Popen(
        [PYTHON, "-c", LAUNCH, *wrapped],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "JOB_OF_THIS_TEST": str(os.getpid())},
    )
    others: list[int] = []
    try:
        assert launcher.stdout is not None
        for _ in range(2):
            launcher.stdout.readline()
        found = marked_processes(f"JOB_OF_THIS_TEST={os.getpid()}")
        others = [pid for pid in found if pid != launcher.pid]
        assert len(others) == 7  # two ranks, two wrappers for each, and what ends them all
        for pid in others if stopped else ():
            os.kill(pid, signal.SIGSTOP)
        launcher.kill()
        launcher.wait(30)
        deadline = time.monotonic() + 30
        while any(Path(f"/proc/{pid}/exe").exists() for pid in others) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not any(Path(f"/proc/{pid}/exe").exists() for pid in others)
    finally:
        launcher.kill()
        launcher.wait()
        launcher.stdout.close()


def test_secrets_are_no_arguments():
    code = "import os; print(os.environ['COBRE_TCP_TOKEN'] in open('/proc/self/cmdline').read())"
    assert run(code, 1, backend="tcp")[1] == "False\n"


def test_the_listening_socket_goes_to_rank_0_alone():
    code = (
        "import os\n"
        "fd = os.environ.get('COBRE_TCP_LISTENER_FD')\n"
        "print(os.environ['COBRE_TCP_RANK'], fd is not None and os.readlink(f'/proc/self/fd/{fd}')[:6])"
    )
    assert sorted(run(code, 2, backend="tcp")[1].splitlines()) == ["0 socket", "1 False"]


def test_wrong_arguments_are_refused():
    with pytest.raises(ValidationError, match="no command"):
        run_command([], 2)
    with pytest.raises(ValidationError, match="no program 'surely-not-there'"):
        run_command(["surely-not-there"], 2)
    with pytest.raises(ValidationError, match="ranks=0"):
        run_command([PYTHON], 0)


def main(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [PYTHON, "-m", "cobre.comm", *arguments],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
        stdin=subprocess.DEVNULL,
    )


def test_the_command_line_launches():
    done = main("launch", "-n", "2", "--prefix", "--", PYTHON, "-c", "import sys; print('hi'); sys.exit(3)")
    assert done.returncode == 3
    assert set(done.stdout.splitlines()) <= {"[0] hi", "[1] hi"}


def test_the_command_line_tells_what_auto_would_choose():
    done = main("info")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("auto would choose: local\n")
    assert "numba " in done.stdout


@pytest.mark.parametrize(
    "arguments", [(), ("launch",), ("launch", "-n", "0", "--", "x"), ("bench", "--ranks", "x")]
)
def test_wrong_command_lines_have_exit_code_1(arguments):  # ERR-09
    done = main(*arguments)
    assert done.returncode == 1
    assert "usage:" in done.stderr


@pytest.mark.usefixtures("only_cleaner_of_segments")
def test_abandoned_segments_are_removed_and_no_others():  # SHM-05
    abandoned = Path(f"/dev/shm/cobre_abandoned_{os.getpid()}")
    stranger = Path(f"/dev/shm/not_cobre_{os.getpid()}")
    abandoned.touch(0o600)  # a crash right after the creation leaves an empty one
    stranger.touch(0o600)
    try:
        done = main("clean-shm")
        assert done.returncode == 0, done.stderr
        assert f"removed {abandoned.name}" in done.stdout
        assert not abandoned.exists()
        assert stranger.exists()
    finally:
        abandoned.unlink(missing_ok=True)
        stranger.unlink()


def test_errors_are_told_in_one_line():
    done = main("launch", "-n", "2", "--", "surely-not-there")
    assert done.returncode == 4
    assert done.stderr == "error: launch: there is no program 'surely-not-there' (check the name and PATH)\n"
