"""The tcp communicator keeps the contract, from Python and from nopython code, on 1 to 4 ranks (TST-00)."""

import pytest
from conformance_rows import Jobs, require_passed, rows

from cobre.comm.conformance import Check, Target


@pytest.mark.parametrize(("target", "size", "check", "face"), rows("tcp"))
def test_tcp(conformance_jobs: Jobs, target: Target, size: int, check: Check, face: int) -> None:
    require_passed(conformance_jobs.get(target, size).run(check, face))
