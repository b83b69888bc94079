"""Property tests of allgatherv's arguments: what is accepted is copied, what is not is refused untouched."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cobre.comm import InvalidBufferSize
from cobre.comm.checks import check_allgatherv
from cobre.comm.local import LocalCommunicator
from cobre.comm.status import INVALID_BUFFER_SIZE, OK, new_detail

without_deadline = settings(deadline=None)  # the first example compiles

small = st.integers(0, 20)
any_int64 = st.integers(-(2**63), 2**63 - 1)


def gather(count, displacement, length):
    send, recv = np.arange(float(count)) + 1.0, np.full(length, -1.0)
    with LocalCommunicator() as communicator:
        communicator.allgatherv(send, recv, [count], [displacement])
    return send, recv


@without_deadline
@given(small, small, small)
def test_gaps_are_untouched(count, before, after):  # COM-12
    send, recv = gather(count, before, before + count + after)
    assert recv.tolist() == [-1.0] * before + send.tolist() + [-1.0] * after


@without_deadline
@given(st.integers(1, 20), small, st.data())
def test_a_receive_buffer_that_is_too_small_is_refused(count, before, data):  # COM-10
    length = data.draw(st.integers(0, before + count - 1))
    with pytest.raises(InvalidBufferSize) as caught:
        gather(count, before, length)
    assert (caught.value.expected, caught.value.actual) == (before + count, length)


@without_deadline
@given(st.integers(0, 20), st.integers(-(2**63), -1))
def test_negative_displacements_are_refused(count, displacement):
    with pytest.raises(InvalidBufferSize, match="displacement is negative"):
        gather(count, displacement, 50)


def regions_fit(length, counts, displs):
    """The contract in plain words: whole regions inside the buffer, no element in two of them."""
    taken = np.zeros(length, int)
    for count, start in zip(counts, displs, strict=True):
        if count < 0 or start < 0 or start + count > length:
            return False
        taken[start : start + count] += 1
    return bool((taken <= 1).all())


@without_deadline
@given(
    st.lists(st.tuples(st.integers(-2, 6), st.integers(-2, 12)), min_size=1, max_size=5),
    st.integers(0, 16),
    st.data(),
)
def test_check_agrees_with_the_contract_for_any_number_of_ranks(regions, length, data):
    counts = np.array([count for count, _ in regions], np.int64)
    displs = np.array([start for _, start in regions], np.int64)
    rank = data.draw(st.integers(0, len(regions) - 1))
    send = np.zeros(max(counts[rank], 0))
    status = check_allgatherv(rank, len(regions), send, np.zeros(length), counts, displs, new_detail())
    assert (status == OK) == regions_fit(length, counts, displs)
    assert status in (OK, INVALID_BUFFER_SIZE)


@without_deadline
@given(any_int64, any_int64)
def test_sums_beyond_int64_do_not_slip_through(count, displacement):
    counts, displs = np.array([0, count], np.int64), np.array([0, displacement], np.int64)
    status = check_allgatherv(0, 2, np.zeros(0), np.zeros(8), counts, displs, new_detail())
    assert (status == OK) == regions_fit(8, [0, count], [0, displacement])
