"""The mpi communicator keeps the contract on each MPI implementation that is installed (TST-00)."""

import pytest
from conformance_rows import Jobs, require_passed, rows

from cobre.comm.conformance import Check, Target


@pytest.mark.parametrize(("target", "size", "check", "face"), rows("mpi"))
def test_mpi(conformance_jobs: Jobs, target: Target, size: int, check: Check, face: int) -> None:
    require_passed(conformance_jobs.get(target, size).run(check, face))
