"""The whole determinism matrix, too long for every run: five cases, all layouts, twice each.

``python tests/sddp/ranks/determinism_matrix.py [--iterations N] [--cases N] [--repeat N]`` prints a table and
ends with 1 when with either LP engine any policy, bound or stop iteration differs from that of one rank
with one thread.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from itertools import product
from pathlib import Path

from cobre.comm.mpi.launchers import find_mpi_launchers
from cobre.results import read_convergence
from cobre.sddp.ranks.cpus import rank_environment

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
CASES = ("random-inflow", "two-plant-cascade", "pumped-storage", "head-effect", "ordered-ahead")
OWN_LAYOUTS = (
    ("local", 1, 1),
    ("local", 1, 2),
    ("local", 1, 4),
    ("shm", 2, 1),
    ("shm", 3, 1),
    ("shm", 4, 1),
    ("shm", 2, 2),
    ("tcp", 2, 1),
    ("tcp", 4, 1),
)
LP_ENGINES = ("own", "highs")
MPI_LAYOUTS = ((2, 1), (3, 1), (4, 2))
COLUMNS = ["iteration", "lower_bound", "upper_bound", "upper_bound_std", "lp_solves"]


def outcome_of(command, environment, output):
    """Run a training; return its policy's digest, bounds and how it stopped."""
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")
    data = json.loads(done.stdout[done.stdout.index("{") :])["data"]
    bounds = read_convergence(output).select(COLUMNS).to_pydict()
    return data["policy_sha256"], bounds, data["iterations"], data["termination_reason"]


def layouts(case, iterations, lp_engine, output):
    """Give name, command and environment of every layout."""
    arguments = ["train", str(case), "--iterations", str(iterations), "--output", str(output)]
    arguments += ["--output-format", "json", "--lp-engine", lp_engine]
    for backend, ranks, threads in OWN_LAYOUTS:
        options = ["--threads", str(threads)]
        if ranks > 1:
            options += ["--ranks", str(ranks), "--backend", backend]
        yield (
            f"{backend} {ranks}x{threads}",
            [sys.executable, "-m", "cobre", *arguments, *options],
            os.environ,
        )
    for launcher in find_mpi_launchers():
        for ranks, threads in MPI_LAYOUTS:
            program = [sys.executable, "-m", "cobre.sddp", *arguments, "--threads", str(threads)]
            environment = {**launcher.environment(), **rank_environment(threads)}
            yield f"{launcher.name} {ranks}x{threads}", launcher.command(ranks, program), environment


def main():
    """Run the matrix."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--iterations", type=int, default=10)
    parser.add_argument("--cases", type=int, default=len(CASES), help="how many of the cases")
    parser.add_argument("--repeat", type=int, default=2)
    options = parser.parse_args()
    different = 0
    for name, lp_engine in product(CASES[: options.cases], LP_ENGINES):
        reference = None
        with tempfile.TemporaryDirectory() as folder:
            output = Path(folder)
            for layout, command, environment in layouts(
                EXAMPLES / name, options.iterations, lp_engine, output
            ):
                for _ in range(options.repeat):
                    found = outcome_of(command, environment, output)
                    reference = reference or found
                    same = found == reference
                    different += not same
                    verdict = "same" if same else "DIFFERENT"
                    print(f"{name:20} {lp_engine:5} {layout:14} {found[0][:12]} {verdict}", flush=True)
    print("all the same" if different == 0 else f"{different} differ")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
