"""How much work training is, in counts that no machine changes: LPs, collectives, bytes, kernels.

A change that raises a count makes every run slower or longer to start, whatever the clock says. Where it is
worth it, the number here changes with it.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from builders.paths import EXAMPLES, ROOT
from builders.studies import cascade_study

import cobre
from cobre.case import build
from cobre.comm.launch import launch
from cobre.comm.tcp.engine import DESCRIPTOR, LINK_TABLE, SEQUENCE
from cobre.comm.tcp.wire import HEADER_BYTES
from cobre.sddp import train
from cobre.sddp.kernel.buffers import LP_COUNTS
from cobre.sddp.lp_statistics import PHASES
from cobre.sddp.timing import RANK_COLUMNS
from cobre.templates import TEMPLATES

BYTES_RECEIVED = struct.Struct("=128xQ")
"""``tcpi_bytes_received`` of Linux's ``struct tcp_info``."""

ROOT_KERNELS = {
    "cobre.sddp.entry.iterate",
    "cobre.sddp.kernel.draws.draw_passes",
    "cobre.stochastic.noise.siphash.stage_seed",
    "cobre.stochastic.openings.fill_one_by_one",
    "cobre.stochastic.statistics.realise_rows",
}
"""What a training without upper bound loads; each is compiled on its own, with all that it calls."""


@pytest.mark.parametrize(
    ("template", "iterations", "lps", "simplex_iterations_per_lp"),
    [("four-region", 20, 6_300, 7.5), ("toy", 20, 1_980, 0.52)],
)
def test_lps_of_a_template_and_their_simplex_iterations(
    template: str, iterations: int, lps: int, simplex_iterations_per_lp: float
) -> None:
    result = train(build(TEMPLATES[template].build()), iterations=iterations)
    assert result.lp_solves <= lps
    steps = sum(record.simplex_iterations for record in result.history)
    assert steps / result.lp_solves <= simplex_iterations_per_lp
    assert result.lp_fall_backs == 0


def traffic_of_iterations(comm: Any, case: Any) -> list[tuple[int, int]]:
    """Return the collectives and received bytes of each iteration after the first, as this rank has them."""
    seen = []

    def look(_: object) -> None:
        state = comm.kernel_arguments[0]
        with socket.socket(fileno=os.dup(int(state[LINK_TABLE + DESCRIPTOR]))) as link:
            told = link.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, BYTES_RECEIVED.size)
        seen.append((int(state[SEQUENCE]), BYTES_RECEIVED.unpack(told)[0]))

    train(case, communicator=comm, threads=1, on_iteration=look)
    return [(after[0] - before[0], after[1] - before[1]) for before, after in pairwise(seen)]


@pytest.mark.skipif(sys.platform != "linux", reason="tcp needs Linux")
@pytest.mark.parametrize(("stages", "passes"), [(2, 2), (4, 6)])
def test_a_rank_receives_the_records_of_the_others_and_little_else(stages: int, passes: int) -> None:
    case = cascade_study(hydros=3, stages=stages, passes=passes, iterations=3)
    states = len(train(case, iterations=1).policy.components)
    _, traffic = launch(traffic_of_iterations, 2, backend="tcp", args=(case,), timeout_s=250, environment={})
    others = passes // 2
    words = {
        "passes": others * (1 + stages * (1 + states)),
        "cuts": (stages - 1) * others * (3 + states),
        "report": RANK_COLUMNS + len(PHASES) * stages * LP_COUNTS,
        "whether to stop": 2,
    }
    for collectives, received in traffic:
        assert collectives == 3 + (stages - 1)
        # Passes at the same trial point share a cut, so that there may be fewer.
        assert received <= 8 * sum(words.values()) + HEADER_BYTES * collectives


def test_training_loads_no_further_kernel(tmp_path: Path) -> None:
    program = (
        "import gc, json, re, cobre\n"
        "from numba.core.dispatcher import Dispatcher\n"
        f"editor = cobre.load_case({str(EXAMPLES / 'random-inflow')!r}).edit()\n"
        "editor['config.json']['upper_bound_evaluation'] = {'enabled': False}\n"
        "cobre.train(editor.build(), iterations=2)\n"
        "used = [d for d in gc.get_objects() if isinstance(d, Dispatcher) and d.signatures]\n"
        "names = {f'{d.py_func.__module__}.{d.py_func.__qualname__}' for d in used}\n"
        "names = {re.sub('_[0-9a-f]{16}$', '', name) for name in names}\n"
        "print(json.dumps([sorted(names), max(len(d.signatures) for d in used)]))\n"
    )
    train(cobre.load_case(EXAMPLES / "random-inflow"), iterations=1)  # compiled by now, if not before
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
        timeout=250,
    )
    names, most_signatures = json.loads(done.stdout)
    assert set(names) == ROOT_KERNELS
    assert most_signatures == 1
