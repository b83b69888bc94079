"""Every variant of ERR-01 and ERR-02: its fields, its record, its way through a pickle."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from cobre.comm import (
    AllocationFailed,
    BackendError,
    BackendNotAvailable,
    CollectiveFailed,
    CommError,
    InitializationFailed,
    InvalidBackend,
    InvalidBufferSize,
    InvalidCommunicator,
    InvalidRoot,
    MissingConfiguration,
    RankLost,
)
from cobre.comm import status as codes
from cobre.comm.status import error_from_status
from cobre.errors import CobreError

COMM = [
    (CollectiveFailed("barrier", -1, "peer is gone"), {"operation": "barrier", "mpi_error_code": -1}),
    (InvalidBufferSize("allreduce", 4, 3), {"operation": "allreduce", "expected": 4, "actual": 3}),
    (InvalidRoot(5, 2), {"root": 5, "size": 2}),
    (InvalidCommunicator(), {}),
    (AllocationFailed(1 << 40, "no room"), {"requested_bytes": 1 << 40}),
]
BACKEND = [
    (BackendNotAvailable("mpi", ["local"]), {"requested": "mpi", "available": ("local",)}),
    (InvalidBackend("MPI", ["mpi", "local"]), {"requested": "MPI", "available": ("mpi", "local")}),
    (MissingConfiguration("tcp", ["A", "B"]), {"backend": "tcp", "missing_vars": ("A", "B")}),
    (InitializationFailed("shm", OSError("exists"), 17), {"backend": "shm", "source": "exists"}),
]
LOST = (
    RankLost("tcp", 2, "has ended"),
    {"backend": "tcp", "rank": 2, "source": "rank 2 has ended", "operation": "init", "mpi_error_code": 0},
)


@pytest.mark.parametrize(("error", "fields"), [*COMM, *BACKEND, LOST], ids=lambda value: type(value).__name__)
def test_fields_and_pickle(error, fields):
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    for one in (error, copy):
        assert {name: getattr(one, name) for name in fields} == fields
        assert (one.kind, one.message, one.context, one.suggestion) == (
            error.kind,
            error.message,
            error.context,
            error.suggestion,
        )
    assert isinstance(error, CobreError)


def test_a_rank_lost_at_the_start_is_a_failure_of_both_kinds():
    error = LOST[0]
    assert isinstance(error, InitializationFailed)
    assert isinstance(error, CollectiveFailed)
    assert error.kind == "MpiError"
    assert error.context == {
        "operation": "init", "backend": "tcp", "error_code": 0, "detail": "rank 2 has ended", "rank": 2,
    }  # fmt: skip
    assert str(error) == "the backend 'tcp' did not start: rank 2 has ended"


@pytest.mark.parametrize("error", [error for error, _ in COMM], ids=lambda error: type(error).__name__)
def test_comm_errors_are_of_one_kind(error):
    assert isinstance(error, CommError)
    assert error.kind == "MpiError"


@pytest.mark.parametrize("error", [error for error, _ in BACKEND], ids=lambda error: type(error).__name__)
def test_backend_errors_have_the_context_of_err_08(error):
    assert isinstance(error, BackendError)
    if isinstance(error, InitializationFailed):
        assert error.kind == "MpiError"
        assert error.context == {
            "operation": "init", "backend": "shm", "error_code": 17, "detail": "exists",
        }  # fmt: skip
    else:
        assert error.kind == "IncompatibleSettings"
        assert set(error.context) == {
            "setting", "requested_value", "available_backends", "build_features", "missing_variables",
        }  # fmt: skip


def test_all_missing_variables_are_listed():
    error = MissingConfiguration("tcp", ["A", "B"])
    assert error.context["missing_variables"] == ["A", "B"]
    assert "A, B" in str(error)


@pytest.mark.parametrize(
    ("status", "detail", "expected"),
    [
        (codes.INVALID_BUFFER_SIZE, [1, 4, 3, codes.LENGTHS_DIFFER], InvalidBufferSize("allreduce", 4, 3)),
        (codes.INVALID_ROOT, [2, 5, 2, 0], InvalidRoot(5, 2)),
        (codes.INVALID_COMMUNICATOR, [3, 0, 0, 0], InvalidCommunicator()),
        (codes.COLLECTIVE_FAILED, [3, 16, 0, 0], CollectiveFailed("barrier", 16, "")),
        (codes.ALLOCATION_FAILED, [0, 800, 0, 0], AllocationFailed(800, "")),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
)
def test_status_becomes_the_exception(status, detail, expected):
    error = error_from_status(status, np.array(detail, np.int64))
    assert type(error) is type(expected)
    for field in set(expected._fields) - {"message"}:
        assert getattr(error, field) == getattr(expected, field)


def test_every_reason_has_a_message():
    reasons = [getattr(codes, name) for name in dir(codes) if isinstance(getattr(codes, name), np.int64)]
    sizes = [r for r in reasons if codes.COUNTS_LENGTH <= r <= codes.EMPTY_BUFFER]
    sizes += [codes.COUNT_LIMIT, codes.TRANSPORT_REFUSED]
    assert set(codes._SIZE_REASONS) == {int(r) for r in sizes}


def test_success_is_no_error():
    with pytest.raises(ValueError, match="no failure status"):
        error_from_status(codes.OK, codes.new_detail())
