"""Random LPs by the own engine and by HiGHS: ``python stress_own.py [LPS] [FIRST_SEED]``.

A seed makes a system, its right-hand sides and, for most, cuts; the LPs are solved along the tree of their
openings, from a basis stored at another right-hand side, by the explicit inverse or by sparse factors. Ends
with 1 when a status or a value is wrong; what the engine gives up is counted.
"""

from __future__ import annotations

import sys
from collections import Counter

import numpy as np
from core_problems import Solver, badly_scaled_problem, random_problem, study

from cobre.lp.engines.own import core
from cobre.lp.engines.own.core import GAVE_UP, OPTIMAL, UNBOUNDED
from cobre.lp.opening_order import opening_order

OPENINGS = 10
COUNTED = {"clean-ups": core.CLEAN_UPS, "cold starts": core.COLD_STARTS, "failed checks": core.CHECKS_FAILED}


def system_of(rng):
    """Return kind, problem, right-hand sides, slopes and constants of cuts, and the relative tolerance.

    The reference is off by its tolerance of values times a penalty where penalties are large.
    """
    kind = rng.choice(["random", "stage", "large stage", "badly scaled"], p=[0.3, 0.4, 0.1, 0.2])
    none = np.zeros(0)
    if kind == "random":
        rows = int(rng.integers(0, 12))
        problem = random_problem(rng, int(rng.integers(1, 14)), rows, float(rng.choice([0.0, 2.0, 4.0])))
        rhs = rng.integers(-5, 12, (OPENINGS, rows)).astype(float)
        return kind, problem, rhs, np.zeros((0, 0)), none, 1e-9
    if kind == "badly scaled":
        problem = badly_scaled_problem(rng)
        water = np.maximum(rng.uniform(50, 200, 8) + rng.normal(0, 30, (OPENINGS, 8)), 5.0)
        rhs = np.hstack([water, rng.uniform(100, 300, (OPENINGS, 2))])
        return kind, problem, rhs, np.zeros((8, 0)), none, 1e-8
    plants, blocks = (int(rng.integers(2, 12)), 3) if kind == "stage" else (int(rng.integers(12, 40)), 4)
    problem, rhs, slopes, constants = study(
        int(rng.integers(2**32)), plants, int(rng.integers(1, blocks + 1)), int(rng.integers(1, 80)), OPENINGS
    )
    return kind, problem, rhs, slopes, constants + rng.uniform(0.0, 4000.0) * plants, 1e-9


def main(lps: int, first_seed: int) -> int:
    """Solve at least this many LPs; return the exit code."""
    counts: Counter[str] = Counter()
    seed = first_seed
    while counts["LPs"] < lps:
        rng = np.random.default_rng(seed)
        kind, problem, rhs, slopes, constants, tolerance = system_of(rng)
        Solver.largest_kernel = int(rng.choice([0, core.LARGEST_KERNEL]))
        found = opening_order(rhs)
        solver = Solver(problem, slopes, num_slots=32, num_saved=max(found.num_kept, 1))
        root = int(rng.integers(len(rhs)))
        solver.solve(rhs[root : root + 1] * rng.uniform(0.9, 1.1), constants, stores=True)
        tree = {"order": found.order[root], "parent": found.parent[root], "keep": found.keep[root]}
        status, value, _ = solver.solve(rhs, constants, **tree)
        for place, b in enumerate(rhs):
            expected, cost = problem.solve_by_highs(b, slopes, constants)
            wrong = status[place] != expected
            if not wrong and expected == OPTIMAL:
                wrong = not abs(value[place] - cost) <= tolerance * (1.0 + abs(cost))
            if status[place] == GAVE_UP:
                counts[f"given up, {kind}, {'unbounded' if expected == UNBOUNDED else 'bounded'}"] += 1
            elif wrong:
                counts["wrong"] += 1
                print(
                    f"seed {seed} ({kind}), opening {place}: status {status[place]} not {expected}, "
                    f"value {value[place]!r} not {cost!r}",
                    flush=True,
                )
            counts["LPs"] += 1
            counts[f"LPs, {kind}"] += 1
        for name, counter in COUNTED.items():
            counts[name] += int(solver.work.counters[counter])
        seed += 1
    for name in sorted(counts):
        print(f"{name}: {counts[name]}")
    print(f"seeds {first_seed} .. {seed - 1}")
    return 1 if counts["wrong"] else 0


if __name__ == "__main__":
    arguments = [int(argument) for argument in sys.argv[1:]]
    sys.exit(main(*(arguments + [100_000, 1_000_000][len(arguments) :])))
