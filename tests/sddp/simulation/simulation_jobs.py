"""Simulations to run as ranks of a job: what they find, and the bytes that they write."""

from __future__ import annotations

import hashlib
import json
import sys
from dataclasses import replace
from pathlib import Path

from builders.studies import cascade_study, dry_and_wet

from cobre.case.model import Case, SimulationOptions
from cobre.comm import create_communicator
from cobre.sddp import SimulationResult, simulate

SCENARIOS = 150  # more than a block


def studies() -> list[Case]:
    """A degenerate chain with blocks of many scenarios, and a graph."""
    return [
        with_simulation(cascade_study(hydros=3, stages=3, iterations=3, passes=2), num_scenarios=SCENARIOS),
        with_simulation(replace(dry_and_wet(), training=replace(dry_and_wet().training, iteration_limit=4))),
    ]


def with_simulation(case: Case, **options: object) -> Case:
    """Return the case with other options of simulation; 40 scenarios unless given."""
    return replace(case, simulation=SimulationOptions(**{"num_scenarios": 40, **options}))


def identity(result: SimulationResult) -> list[object]:
    """Everything that must not depend on ranks and threads: numbers, and the bytes of all files but those of
    the solver (times) and the description (hosts)."""
    found: list[object] = [result.as_dict(), result.scenario_cost.tolist()]
    if result.output is not None:
        found.append(file_digests(result.output))
    return json.loads(json.dumps(found))


def file_digests(output: Path) -> dict[str, str]:
    """SHA-256 of every table of a simulation."""
    place = output / "simulation"
    return {
        str(path.relative_to(place)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(place.rglob("*.parquet"))
        if path.parent.name != "solver"
    }


def simulate_all(comm, policies, threads, directory):
    """Simulate all studies on this rank."""
    return [
        identity(
            simulate(case, policy, communicator=comm, threads=threads, output=Path(directory) / str(number))
        )
        for number, (case, policy) in enumerate(zip(studies(), policies, strict=True))
    ]


def main():
    """Write down what each rank of an MPI job gets, for policies in directories."""
    directory, threads = Path(sys.argv[1]), int(sys.argv[2])
    policies = [directory / f"policy-{number}" for number in range(len(studies()))]
    with create_communicator("mpi") as comm:
        found = simulate_all(comm, policies, threads, directory / f"mpi-{comm.size}")
        (directory / f"mpi-{comm.size}-rank-{comm.rank}.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main()
