"""One nopython function, given each backend's kernel, gives the same bytes (COM-12, COM-21, TST-20)."""

from __future__ import annotations

import pytest
from conformance_reports import report, targets

from cobre.comm.conformance import Target

TARGETS = targets("shm", "tcp", "mpi")


def digests(target: Target, ranks: int) -> dict[str, str]:
    row = report(target, ranks).row("same_function")
    assert row.passed, row.fault
    first = row.outcomes[0].value
    assert all(outcome.value == first for outcome in row.outcomes), "ranks hold different bytes"
    assert set(first) == {"gather", "sum", "min", "max", "broadcast"}
    return first


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_all_backends_give_the_same_bytes(ranks: int) -> None:
    everybody = targets("local", "shm", "tcp", "mpi") if ranks == 1 else TARGETS
    results = {target.name: digests(target, ranks) for target in everybody}
    assert len(results) >= 2, "nothing to compare with"
    reference = results[everybody[0].name]
    assert all(result == reference for result in results.values()), results


def test_the_digests_depend_on_the_number_of_ranks() -> None:
    target = TARGETS[0]
    assert len({str(digests(target, ranks)) for ranks in (2, 3, 4)}) == 3
