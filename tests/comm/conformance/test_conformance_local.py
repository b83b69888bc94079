"""The local communicator keeps the contract, and the suite finds out one that does not."""

from __future__ import annotations

import pytest
from conformance_rows import Jobs, require_passed, rows

from cobre.comm.conformance import CHECKS, Check, Face, Target, checks_for
from cobre.comm.conformance.catalogue import Case


@pytest.mark.parametrize(("target", "size", "check", "face"), rows("local"))
def test_local(conformance_jobs: Jobs, target: Target, size: int, check: Check, face: int) -> None:
    require_passed(conformance_jobs.get(target, size).run(check, face))


def test_checks_have_unique_ids_and_requirements() -> None:
    assert len({check.name for check in CHECKS}) == len(CHECKS)
    assert all(check.requirements for check in CHECKS)


# comm.md section 8, with the names that stand for several backends there
TABLE = {
    "allgatherv": "heterogeneous identity_size1 empty_send single_element large_payload recv_too_small",
    "allreduce": "sum min max identity_size1 single_element buffer_mismatch",
    "broadcast": "root0 root_last data_integrity invalid_root",
    "barrier": "write_before_read_after repeated timeout",
    "shared_region": "lifecycle is_leader drop excessive_size",
}
SINGLES = {
    "rank_in_range",
    "size_consistent",
    "rank_unique",
    "collective_sequence",
    "split_local_rank_size",
    "closed_communicator",
}


def test_every_row_of_the_table_is_there() -> None:
    rows = {f"{group}_{name}" for group, names in TABLE.items() for name in names.split()} | SINGLES
    assert rows <= {check.name for check in CHECKS}


class _Lossy:
    """A faulty communicator: its collectives do nothing and accept anything."""

    rank, size, backend, is_leader = 0, 1, "lossy", False

    def allgatherv(self, *arguments: object) -> None: ...

    def allreduce(self, *arguments: object) -> None: ...

    def broadcast(self, *arguments: object) -> None: ...

    def barrier(self) -> None: ...

    def gather_shared(self, *arguments: object) -> None: ...

    def close(self) -> None: ...


# a broadcast to nobody, a barrier with nobody and an empty gather may do nothing at all
_VACUOUS_AT_ONE_RANK = {
    "allgatherv_empty_send",
    "barrier_repeated",
    "barrier_write_before_read_after",
    "broadcast_data_integrity",
    "broadcast_empty",
    "broadcast_root0",
    "broadcast_root_last",
    "rank_in_range",
} | {check.name for check in CHECKS if check.name.startswith("broadcast_dtype_")}


@pytest.mark.parametrize(
    "check",
    [check for check in checks_for(1) if check.both_faces and check.name not in _VACUOUS_AT_ONE_RANK],
    ids=lambda check: check.name,
)
def test_a_faulty_communicator_is_found_out(check: Check) -> None:
    lossy: Face = _Lossy()
    with pytest.raises((AssertionError, AttributeError)):
        check(Case(lossy, lossy))
