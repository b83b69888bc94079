"""Training on ranks, and what of its result must be the same on all of them; also a program for MPI ranks."""

from __future__ import annotations

import json
import sys
from itertools import pairwise

from builders.studies import cascade_study, dry_and_wet, with_training

from cobre.comm import create_communicator
from cobre.comm.tcp.engine import SEQUENCE
from cobre.sddp import train
from cobre.sddp.ranks.agreement import study_digest


def small_cases():
    """Degenerate LPs with more passes than ranks, fewer, and a single pass; stages with two nodes."""
    return (
        cascade_study(hydros=5, thermals=6, passes=7, iterations=4, seed=1),
        cascade_study(hydros=3, passes=2, iterations=3, seed=2),
        cascade_study(hydros=2, passes=1, iterations=2, seed=3),
        with_training(dry_and_wet(), forward_passes=5, iteration_limit=4),
    )


def identity(result):
    """Everything that may depend on nothing but the case, in a form that JSON keeps."""
    return {
        "sha256": result.policy_sha256,
        "bounds": [
            [record.lower_bound.hex(), record.upper_bound.hex(), record.upper_bound_std.hex()]
            for record in result.history
        ],
        "iterations": result.iterations,
        "reason": result.termination_reason,
        "lp_solves": [record.lp_solves for record in result.history],
        "costs": study_digest(result.cost_breakdowns),
    }


def train_cases(comm, cases, threads, lp_engine=None):
    """Train one case after the other; for ``launch``."""
    results = [train(case, communicator=comm, threads=threads, lp_engine=lp_engine) for case in cases]
    return [identity(result) for result in results], [len(result.workers) for result in results]


def collectives_of_iterations(comm, cases):
    """Return for each case the collectives before the end of its first iteration, then of each further one.

    They are counted by the communicator itself: tcp numbers its frames by them.
    """
    counts = []
    for case in cases:
        seen = [int(comm.kernel_arguments[0][SEQUENCE])]
        train(
            case,
            communicator=comm,
            threads=1,
            on_iteration=lambda record, seen=seen: seen.append(int(comm.kernel_arguments[0][SEQUENCE])),
        )
        counts.append([after - before for before, after in pairwise(seen)])
    return counts


def train_different_cases(comm):
    """Let the last rank have another study than the others."""
    passes = 3 if comm.rank + 1 < comm.size else 4
    train(cascade_study(passes=passes, iterations=1), communicator=comm)


def main():
    """Print what rank 0 of an MPI job gets; all ranks get the same."""
    with create_communicator("mpi") as comm:
        identities, _ = train_cases(comm, small_cases(), int(sys.argv[1]))
        print(json.dumps([comm.rank, identities]), flush=True)


if __name__ == "__main__":
    main()
