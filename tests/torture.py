"""Random systems with numbers far apart: costs, units of costs, sizes; and what training makes of them.

``python tests/torture.py FIRST LAST`` runs a range of seeds and prints what is above its optimum.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from builders.case_files import write_files
from builders.random_case import random_case_files
from builders.realisations import drawn_openings
from oracle import optimum

import cobre.case
import cobre.sddp
from cobre.errors import CobreError

ITERATIONS = 20
TOLERANCE = 1e-7
"""What a bound may lie on the wrong side of the optimum, relative to it."""


@dataclass(frozen=True)
class Verdict:
    """Of one system: its optimum and bounds, or the refusal."""

    optimum: float
    lower_bounds: tuple[float, ...]
    upper_bound: float
    refusal: CobreError | None = None

    @property
    def excess(self) -> float:
        """By how much the bounds are on the wrong side of the optimum, relative to it; negative if not."""
        if self.refusal is not None:
            return -np.inf
        size = abs(self.optimum) or 1.0
        return float(max(max(self.lower_bounds) - self.optimum, self.optimum - self.upper_bound) / size)


def write_torture_case(directory: Path, seed: int) -> Path:
    """Write the system of ``seed``: a random one whose costs and sizes are multiplied by powers of ten."""
    files = random_case_files(seed)
    rng = np.random.default_rng([seed, 1])
    widest = float(rng.choice([1.5, 3.0, 4.5, 6.0]))
    common = 10.0 ** rng.uniform(-5.0, 5.0)

    def factor() -> float:
        return float(common * 10.0 ** rng.uniform(-widest, widest) if rng.random() < 0.5 else common)

    for thermal in files["system/thermals.json"]["thermals"]:
        thermal["cost_per_mwh"] *= factor()
    for line in files["system/lines.json"]["lines"]:
        if "exchange_cost" in line:
            line["exchange_cost"] *= factor()
    for hydro in files["system/hydros.json"]["hydros"]:
        for name in hydro.get("penalties", {}):
            hydro["penalties"][name] *= factor()
    for name in files["penalties.json"]["hydro"]:
        files["penalties.json"]["hydro"][name] *= factor()
    segments = [files["penalties.json"]["bus"]["deficit_segments"]]
    buses = files["system/buses.json"]["buses"]
    segments += [bus["deficit_segments"] for bus in buses if "deficit_segments" in bus]
    for group in segments:
        deficit = max(factor(), common)
        for segment in group:
            segment["cost"] *= deficit
    training: dict[str, Any] = files["config.json"]["training"]
    training["stopping_rules"] = [{"type": "iteration_limit", "limit": ITERATIONS}]
    files["config.json"]["upper_bound_evaluation"] = {"enabled": True}
    if rng.random() < 0.5:
        files["config.json"]["modeling"]["cost_scale_factor"] = float(common * 10.0 ** rng.uniform(-6.0, 9.0))
    size = 10.0 ** float(rng.uniform(-4.0, 4.0)) if rng.random() < 0.5 else 1.0
    return write_files(directory, {name: _resized(content, size) for name, content in files.items()})


def _resized(content: Any, size: float) -> Any:
    """Multiply everything in MW, m3/s and hm3."""
    if isinstance(content, dict):
        return {
            key: value * size
            if key.endswith(("_mw", "_m3s", "_hm3")) and "_per_" not in key and isinstance(value, float)
            else _resized(value, size)
            for key, value in content.items()
        }
    if isinstance(content, list):
        return [_resized(item, size) for item in content]
    return content


def judge(path: Path) -> Verdict:
    """Train a system and solve its extensive form."""
    try:
        case = cobre.case.load(path)
        result = cobre.sddp.train(case)
    except CobreError as error:
        return Verdict(np.nan, (), np.nan, error)
    units = [10.0**power for power in range(-12, 13, 3)]
    best = optimum(path, drawn_openings(case), cost_units=units)
    bound = result.deterministic_bound
    return Verdict(
        best,
        tuple(record.lower_bound for record in result.history),
        np.inf if bound is None else bound.value,
    )


def main(first: int, last: int) -> None:
    """Print every verdict that is not right, and how many there were of each kind."""
    refused = wrong = 0
    gaps = []
    for seed in range(first, last):
        with tempfile.TemporaryDirectory() as directory:
            verdict = judge(write_torture_case(Path(directory), seed))
        if verdict.refusal is not None:
            refused += 1
            print(f"{seed}: refused: {verdict.refusal}"[:230])
            continue
        gaps.append((verdict.optimum - verdict.lower_bounds[-1]) / (abs(verdict.optimum) or 1.0))
        if verdict.excess > TOLERANCE:
            wrong += 1
            print(f"{seed}: WRONG by {verdict.excess:.3g}: {verdict}")
        elif gaps[-1] > 1e-4:
            print(f"{seed}: bound is {gaps[-1]:.3g} below the optimum {verdict.optimum:.6g}")
    print(f"{last - first} systems: {refused} refused, {wrong} wrong; median gap {np.median(gaps):.3g}")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
