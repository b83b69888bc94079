"""The tcp communicator keeps the contract, from Python and from nopython code, on 1 to 4 ranks (TST-00)."""

import pytest
from conformance_reports import require_passed, rows

from cobre.comm.conformance import Check, Target


@pytest.mark.parametrize(("target", "ranks", "check", "face"), rows("tcp"))
def test_tcp(target: Target, ranks: int, check: Check, face: int) -> None:
    require_passed(target, ranks, check, face)
