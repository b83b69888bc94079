"""Ctrl-C: stops between iterations with what there is, and leaves nothing half-written."""

from __future__ import annotations

import signal
import subprocess
import sys

from cli_helpers import check_envelope, copy_example, snapshot, start, strict_json

from cobre.cli.signals import Interrupts, Terminated
from cobre.results import read_convergence, read_metadata

MANY = 20000


def _read_until(process: subprocess.Popen[str], beginning: str) -> list[str]:
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line)
        if line.startswith(beginning):
            return lines
    raise AssertionError(f"no line begins with {beginning}: {lines}, {process.communicate()}")


def _read_rest(process: subprocess.Popen[str]) -> tuple[str, str]:
    """Read to the end; ``communicate`` would lose what the stream has read ahead."""
    assert process.stdout is not None
    assert process.stderr is not None
    rest = process.stdout.read(), process.stderr.read()
    process.wait()
    return rest


def test_during_training(tmp_path):
    case = copy_example(tmp_path)
    process = start("train", case, "--iterations", MANY, "--output-format", "json-lines")
    lines = _read_until(process, '{"type": "progress"')
    process.send_signal(signal.SIGINT)
    rest, stderr = _read_rest(process)
    assert process.returncode == 130
    assert "Traceback" not in stderr
    parsed = [strict_json(line) for line in (*lines, *rest.splitlines())]
    assert [line["type"] for line in parsed[-2:]] == ["terminated", "result"]
    assert {line["type"] for line in parsed[1:-2]} == {"progress"}
    assert parsed[-2]["reason"] == "graceful_shutdown"
    envelope = parsed[-1]
    del envelope["type"]
    check_envelope(envelope, "train", 130)
    assert [problem["kind"] for problem in envelope["errors"]] == ["Interrupted"]
    done = envelope["data"]["iterations"]
    assert 1 <= done < MANY
    assert done == len(parsed) - 3
    metadata = read_metadata(case / "output")
    assert metadata["status"] == "partial"
    assert metadata["iterations"]["completed"] == done
    assert read_convergence(case / "output").num_rows == done
    assert not (case / "output" / "training" / "_SUCCESS").exists()
    assert not [name for name in snapshot(case / "output") if name.endswith(".tmp")]


def test_during_training_for_people(tmp_path):
    case = copy_example(tmp_path)
    process = start("train", case, "--iterations", MANY)
    _read_until(process, "iteration ")
    process.send_signal(signal.SIGINT)
    out, err = _read_rest(process)
    assert process.returncode == 130
    assert "Training partial" in out
    assert "stopping at the end of this iteration" in err
    assert "interrupted: after" in err
    assert "Traceback" not in err


def test_during_start_up(tmp_path):
    case = copy_example(tmp_path)
    before = snapshot(tmp_path)
    process = start("train", case, "--output-format", "json-lines", "--iterations", MANY)
    lines = _read_until(process, '{"type": "started"')
    process.send_signal(signal.SIGINT)
    rest, stderr = _read_rest(process)
    assert process.returncode == 130
    assert "Traceback" not in stderr
    parsed = [strict_json(line) for line in (*lines, *rest.splitlines())]
    assert [line["type"] for line in parsed] == ["started", "terminated", "result"]
    assert parsed[1]["reason"] == "interrupted"
    assert parsed[-1]["errors"][0]["kind"] == "Interrupted"
    assert snapshot(tmp_path) == before


# The main thread sits in C code that lets other threads run but no signal handler; "ready" is printed by
# another thread, once the main thread's processor time shows that it is there.
BUSY = """
import hashlib, os, sys, threading, time
from cobre.cli.signals import Interrupts

clock = time.pthread_getcpuclockid(threading.main_thread().ident)
before = time.clock_gettime(clock)

def tell():
    while time.clock_gettime(clock) < before + 0.2:
        time.sleep(0.01)
    print("ready", flush=True)

def abort():
    print("aborted", flush=True)
    os._exit(130)

with Interrupts(lambda: print("requested", flush=True), abort):
    threading.Thread(target=tell, daemon=True).start()
    hashlib.pbkdf2_hmac("sha256", b"x", b"y", 2_000_000_000)
"""


def test_the_second_signal_ends_a_process_that_is_busy_in_compiled_code():
    process = subprocess.Popen([sys.executable, "-c", BUSY], stdout=subprocess.PIPE, text=True)
    _read_until(process, "ready")
    process.send_signal(signal.SIGINT)
    _read_until(process, "requested")
    process.send_signal(signal.SIGINT)
    assert process.stdout is not None
    assert process.stdout.read() == "aborted\n"
    assert process.wait() == 130


def test_signals_before_and_after_there_is_something_to_save():
    def never() -> None:
        raise AssertionError("not asked for")

    handler, wakeup = signal.getsignal(signal.SIGINT), signal.set_wakeup_fd(-1)
    signal.set_wakeup_fd(wakeup)
    raised = 0
    for saving in (False, True):
        with Interrupts(lambda: None, never) as interrupts:
            interrupts.saving = saving
            try:
                signal.raise_signal(signal.SIGINT)
            except KeyboardInterrupt:
                raised += 1
            assert interrupts.requested
        assert raised == 1
    with Interrupts(lambda: None, never) as interrupts:
        interrupts.saving = True
        signal.raise_signal(signal.SIGINT)
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            raised += 1
    assert raised == 2
    with Interrupts(lambda: None, never) as interrupts:
        try:
            signal.raise_signal(signal.SIGTERM)
        except Terminated:
            raised += 1
        assert (interrupts.requested, interrupts.interrupted) == (True, False)
    assert raised == 3
    assert signal.getsignal(signal.SIGINT) is handler
    assert signal.set_wakeup_fd(wakeup) == wakeup
