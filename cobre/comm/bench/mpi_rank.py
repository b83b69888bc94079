"""One rank of an MPI measurement, started by the bench: ``mpiexec python -m cobre.comm.bench.mpi_rank``."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from cobre.comm.bench.measure import measure_communicator
from cobre.comm.bench.plan import Operation
from cobre.comm.mpi.communicator import MpiCommunicator


def main() -> None:
    """Measure both ways of calling MPI; rank 0 writes the figures."""
    parser = argparse.ArgumentParser(description="One rank of an MPI measurement; started by the bench.")
    parser.add_argument("--name", required=True)
    parser.add_argument("--operations", required=True)
    parser.add_argument("--repetitions", type=int, required=True)
    parser.add_argument("--output", type=Path, required=True)
    given = parser.parse_args()
    operations = [Operation(**operation) for operation in json.loads(given.operations)]
    with MpiCommunicator() as communicator:
        from mpi4py import MPI

        results = measure_communicator(communicator, operations, given.repetitions, given.name, MPI)
        if communicator.rank == 0:
            given.output.write_text(json.dumps([asdict(result) for result in results]))


if __name__ == "__main__":
    main()
