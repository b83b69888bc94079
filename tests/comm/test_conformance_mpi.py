"""The mpi communicator keeps the contract on each MPI implementation that is installed (TST-00)."""

import pytest
from conformance_reports import require_passed, rows

from cobre.comm.conformance import Check, Target


@pytest.mark.parametrize(("target", "ranks", "check", "face"), rows("mpi"))
def test_mpi(target: Target, ranks: int, check: Check, face: int) -> None:
    require_passed(target, ranks, check, face)
