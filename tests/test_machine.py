"""Limits of this machine and this process: refused by name before a library fails in its own way."""

from __future__ import annotations

import resource
import subprocess
import sys

import pytest
from builders.studies import cascade_study

import cobre
from cobre import machine
from cobre.comm.launch import launch
from cobre.comm.launch.command import run_command
from cobre.errors import CobreError, ValidationError


def test_several_workers_a_processor_are_allowed_and_absurd_numbers_are_not(monkeypatch):
    monkeypatch.setattr(machine, "usable_cpus", lambda: 2)
    assert machine.most_workers() == 256
    machine.check_workers(16, 16)
    machine.check_workers(None, None)
    for ranks, threads, field in ((257, 1, "ranks"), (1, 257, "threads"), (32, 16, "threads")):
        with pytest.raises(
            ValidationError, match="more than the 256 that are accepted on 2 processors"
        ) as caught:
            machine.check_workers(ranks, threads)
        assert [problem.context["field"] for problem in caught.value.problems] == [field]
    monkeypatch.setattr(machine, "usable_cpus", lambda: 128)
    machine.check_workers(32, 64)


@pytest.mark.parametrize(
    "start",
    [
        lambda: cobre.train(cascade_study(), threads=100_000),
        lambda: cobre.train(cascade_study(), ranks=100_000),
        lambda: launch(print, 100_000),
        lambda: run_command(["true"], 100_000),
    ],
)
def test_every_way_to_start_workers_has_the_limit(start):
    with pytest.raises(ValidationError, match=r"100000 (threads|ranks) are more than"):
        start()


@pytest.mark.parametrize("text", ["0", "-1", "x", "100000000", "9" * 5000])
def test_threads_numba_does_not_take_are_refused_before_it_is_loaded(monkeypatch, text):
    monkeypatch.setenv("NUMBA_NUM_THREADS", text)
    with pytest.raises(CobreError, match="NUMBA_NUM_THREADS must be a positive whole number") as caught:
        machine.check_process()
    assert caught.value.context["setting"] == "NUMBA_NUM_THREADS"
    with pytest.raises(CobreError, match="NUMBA_NUM_THREADS"):
        cobre.load_case("examples/random-inflow")


def test_training_without_a_compiler_is_refused(monkeypatch):
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    with pytest.raises(CobreError, match="NUMBA_DISABLE_JIT is set"):
        cobre.train(cascade_study())


def test_an_address_space_too_small_is_named():
    script = "import cobre.machine; cobre.machine.check_process(int(__import__('sys').argv[1]))"

    def check(kib: int, threads: int) -> str:
        return subprocess.run(
            [sys.executable, "-c", script, str(threads)],
            capture_output=True,
            text=True,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (kib << 10, kib << 10)),
        ).stderr

    assert "limited to 600000 KiB (ulimit -v)" in check(600_000, 1)
    assert check(3_000_000, 1) == ""
    assert "limited to 3000000 KiB (ulimit -v)" in check(3_000_000, 100)


def test_the_command_line_does_without_pandas():
    program = (
        "import sys; from cobre.cli import main; sys.argv = ['cobre', 'validate', 'examples/random-inflow']\n"
        "assert main() == 0; assert 'pyarrow' in sys.modules; assert 'pandas' not in sys.modules"
    )
    pytest.importorskip("pandas")
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=120)
