"""The local communicator keeps the contract, from Python and from nopython code."""

import pytest

from cobre.comm.conformance import CHECKS, Check, Face, checks_for, faces
from cobre.comm.local import LocalCommunicator


@pytest.mark.parametrize("face", [0, 1], ids=["python", "nopython"])
@pytest.mark.parametrize("check", checks_for(1), ids=lambda check: check.id)
def test_local(check: Check, face: int) -> None:
    with LocalCommunicator() as communicator:
        check(faces(communicator)[face])


def test_checks_have_unique_ids_and_requirements() -> None:
    assert len({check.name for check in CHECKS}) == len(CHECKS)
    assert all(check.requirements for check in CHECKS)


class _Lossy:
    """A faulty communicator: its collectives do nothing and accept anything."""

    rank, size = 0, 1

    def allgatherv(self, *arguments: object) -> None: ...

    def allreduce(self, *arguments: object) -> None: ...

    def broadcast(self, *arguments: object) -> None: ...

    def barrier(self) -> None: ...

    def close(self) -> None: ...


# a broadcast to nobody, a barrier with nobody and an empty gather may do nothing at all
_VACUOUS_AT_ONE_RANK = {
    "allgatherv_empty_send",
    "barrier_repeated",
    "broadcast_data_integrity",
    "broadcast_dtypes",
    "broadcast_root0",
    "broadcast_root_last",
    "rank_in_range",
}


@pytest.mark.parametrize(
    "check",
    [check for check in checks_for(1) if check.name not in _VACUOUS_AT_ONE_RANK],
    ids=lambda check: check.name,
)
def test_a_faulty_communicator_is_found_out(check: Check) -> None:
    lossy: Face = _Lossy()
    with pytest.raises(AssertionError):
        check(lossy)
