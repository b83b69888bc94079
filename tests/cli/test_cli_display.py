"""How things look: problems at any width, lines that do not flood, the live display, strict JSON."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import struct
import subprocess
import sys
import termios
from dataclasses import replace

import numpy as np
import pytest
from cli_helpers import copy_example, strict_json
from rich.console import Console

from cobre.cli.human import _PlainLines, passes_words
from cobre.cli.outcome import Outcome, json_text
from cobre.cli.problems import show_problems
from cobre.cli.views import progress_fields
from cobre.errors import Problem
from cobre.sddp.progress import IterationRecord

RECORD = IterationRecord(
    iteration=1,
    lower_bound=90.0,
    upper_bound=100.0,
    upper_bound_std=20.0,
    upper_bound_kind="statistical",
    forward_passes=4,
    cuts_added=3,
    cuts_active=3,
    lp_solves=10,
    lp_retries=0,
    simplex_iterations=20,
    forward_time_ms=1.0,
    backward_time_ms=2.0,
    communication_time_ms=0.0,
    iteration_time_ms=4.0,
    wall_time_ms=5.0,
)
PROBLEMS = [
    Problem(
        "InvalidValue",
        "A sentence that is rather longer than a narrow terminal is wide, ending in averyveryverylongword.",
        {"file": "system/thermals.json", "entity": "thermal 3", "field": "max_mw", "value": -5.0},
        "Give a number that is not negative.",
    ),
    Problem("ParseError", "Broken.", {"file": "config.json", "line": 3, "column": 9}),
    Problem("InvalidValue", "Null.", {"file": "system/thermals.json", "field": "cost", "value": None}),
]


def _render(width: int, terminal: bool) -> str:
    text = io.StringIO()
    console = Console(file=text, width=width, force_terminal=terminal, color_system=None, highlight=False)
    show_problems(console, PROBLEMS, "error")
    return text.getvalue()


@pytest.mark.parametrize("width", [20, 40, 200])
def test_problems_are_wrapped_but_never_cut(width):
    text = _render(width, terminal=True)
    assert max(len(line) for line in text.splitlines()) <= max(width, 24)
    joined = "".join(text.split())
    for problem in PROBLEMS:
        assert "".join(problem.message.split()) in joined
    assert "thermal3max_mw=-5.0" in joined
    assert "cost=null" in joined
    assert "line3,column9" in joined
    assert "…" not in text


def test_problems_are_grouped_by_file_and_unwrapped_in_logs():
    lines = _render(30, terminal=False).splitlines()
    titles = [line for line in lines if not line.startswith(" ")]
    assert titles == ["system/thermals.json (2 errors)", "config.json (1 error)"]
    assert f"    {PROBLEMS[0].message}" in lines
    assert f"    -> {PROBLEMS[0].suggestion}" in lines


def test_control_characters_do_not_reach_the_terminal():
    text = io.StringIO()
    hostile = Problem("InvalidValue", "name \x1b[2J\x07 [bold]x[/bold]", {"file": "a\x1b.json"})
    show_problems(Console(file=text, markup=False), [hostile], "error")
    assert "\x1b" not in text.getvalue()
    assert "\\x1b[2J" in text.getvalue()
    assert "[bold]x[/bold]" in text.getvalue()


def _iterations_shown(limit: int, stop_after: int) -> list[int]:
    text = io.StringIO()
    lines = _PlainLines(Console(file=text, width=200), limit)
    for iteration in range(1, stop_after + 1):
        lines.iteration(replace(RECORD, iteration=iteration))
    lines.stop()
    shown = [line for line in text.getvalue().splitlines() if line.startswith("iteration")]
    return [int(line.removeprefix("iteration").split("/")[0]) for line in shown]


def test_plain_lines_grow_apart_and_include_the_last():
    shown = _iterations_shown(10000, 10000)
    assert shown[:20] == list(range(1, 21))
    assert shown[-1] == 10000
    assert len(shown) < 120
    steps = np.diff(shown[:-1])
    assert (np.diff(steps) >= 0).all()


@pytest.mark.parametrize("stop_after", [1, 20, 23, 777])
def test_plain_lines_end_with_the_last_iteration_of_a_stopped_run(stop_after):
    shown = _iterations_shown(10000, stop_after)
    assert shown[-1] == stop_after
    assert len(set(shown)) == len(shown)


def test_progress_fields():
    fields = progress_fields(RECORD)
    assert fields["ci_95"] == pytest.approx(1.96 * 20.0 / 2.0)
    assert (fields["gap"], fields["gap_percent"]) == (None, None)  # of a sample
    alone = progress_fields(replace(RECORD, forward_passes=1, upper_bound_std=0.0))
    assert (alone["upper_bound_std"], alone["ci_95"]) == (None, None)


@pytest.mark.parametrize(
    ("changes", "words", "gap"),
    [
        ({}, "sample cost", None),
        ({"upper_bound_kind": "exact"}, "upper bound", 100.0 / 9.0),
        ({"upper_bound_kind": "exact", "risk_averse": True}, "mean cost", None),
        ({"deterministic_upper_bound": 99.0, "risk_averse": True}, "sample cost", 10.0),
        ({"upper_bound_kind": "exact", "lower_bound_kind": "estimate"}, "upper bound", None),
        ({"deterministic_upper_bound": float("inf")}, "sample cost", None),
    ],
)
def test_a_gap_is_one_of_two_proven_bounds(changes, words, gap):
    record = replace(RECORD, **changes)
    assert record.gap_percent == (None if gap is None else pytest.approx(gap))
    assert progress_fields(record)["gap"] == (None if gap is None else pytest.approx(gap / 100.0))
    assert passes_words(record) == words


def test_json_is_strict():
    document = {
        "a": float("nan"),
        "b": [float("inf"), np.float64(1.5), np.int32(2)],
        "c": np.arange(2),
        3: {1},
    }
    expected = {"a": None, "b": [None, 1.5, 2], "c": [0, 1], "3": [1]}
    assert strict_json(json_text(document)) == expected


def test_success_means_no_errors():
    outcome = Outcome("train")
    assert outcome.envelope()["success"] is True
    outcome.errors.append(PROBLEMS[0])
    assert outcome.envelope()["success"] is False


@pytest.mark.parametrize("columns", [100, 40])
def test_live_display_on_a_terminal(tmp_path, columns):
    case = copy_example(tmp_path)
    code, text = _in_terminal(columns, "train", str(case), "--iterations", "30")
    assert code == 0
    assert "loading kernels (or compiling them)..." in text
    assert "30/30" in text
    assert "lower bound" in text
    assert "\x1b[2K" in text  # redrawn in place
    assert "iteration  1/30" not in text
    assert "Training complete" in text


def _in_terminal(columns: int, *arguments: str) -> tuple[int, str]:
    """Run the command line in a pseudo-terminal."""
    drop = ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR")
    environment = {name: value for name, value in os.environ.items() if name not in drop}
    terminal, inside = pty.openpty()
    fcntl.ioctl(inside, termios.TIOCSWINSZ, struct.pack("HHHH", 30, columns, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-m", "cobre", *arguments],
        stdin=inside,
        stdout=inside,
        stderr=inside,
        env={**environment, "TERM": "xterm"},
        start_new_session=True,
    )
    os.close(inside)
    output = b""
    while True:
        try:
            chunk = os.read(terminal, 65536)
        except OSError:  # the other side is closed
            break
        if not chunk:
            break
        output += chunk
    os.close(terminal)
    return process.wait(), output.decode()
