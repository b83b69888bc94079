"""Gathers with counts, gaps and orders of regions that hypothesis makes up, against NumPy (COM-11)."""

from __future__ import annotations

import pytest
from conformance_rows import require_passed, targets
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cobre.comm import SUPPORTED_DTYPES
from cobre.comm.conformance import ConformanceJob

GATHERS = "cobre.comm.conformance.gathers"
PLACES = [(target, 3 if 3 in target.sizes else 1) for target in targets("local", "shm", "tcp", "mpi")]
PROFILE = settings(
    max_examples=60,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(place, id=place[0].name, marks=pytest.mark.xdist_group(f"random-{place[0].name}"))
        for place in PLACES
    ],
)
def job(request):
    """Ranks that stay for all examples."""
    with ConformanceJob(*request.param) as ranks:
        yield ranks


@st.composite
def layouts(draw, size):
    """Counts, displacements and the extent of an allgatherv: any order of regions, any gaps."""
    counts = draw(st.lists(st.integers(0, 300), min_size=size, max_size=size))
    gaps = draw(st.lists(st.integers(0, 7), min_size=size + 1, max_size=size + 1))
    displs = [0] * size
    end = 0
    for rank, gap in zip(draw(st.permutations(range(size))), gaps, strict=False):
        displs[rank] = end + gap
        end = displs[rank] + counts[rank]
    return counts, displs, end + gaps[size]


@PROFILE
@given(data=st.data())
def test_allgatherv_is_what_numpy_makes_of_the_contract(job, data):
    counts, displs, extent = data.draw(layouts(job.size), label="counts, displs, extent")
    dtype = data.draw(st.sampled_from([dtype.name for dtype in SUPPORTED_DTYPES]), label="dtype")
    arguments = {"counts": counts, "displs": displs, "extent": extent, "dtype": dtype}
    seed = data.draw(st.integers(0, 2**32 - 1), label="seed")
    face = data.draw(st.integers(0, 1), label="face")
    require_passed(job.call(f"{GATHERS}:gather_example", face, seed=seed, **arguments))


@PROFILE
@given(data=st.data())
def test_one_element_too_few_is_refused_on_every_rank(job, data):
    counts, displs, _ = data.draw(layouts(job.size), label="counts, displs, extent")
    if max(d + c for d, c in zip(displs, counts, strict=True)) == 0:
        return  # nothing can be too short
    arguments = {"counts": counts, "displs": displs, "dtype": "float64"}
    outcomes = job.call(f"{GATHERS}:gather_too_little", data.draw(st.integers(0, 1)), **arguments)
    require_passed(outcomes)
    assert {outcome.value for outcome in outcomes} == {"InvalidBufferSize"}
