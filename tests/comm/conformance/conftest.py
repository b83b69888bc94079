"""Ranks that tests of the conformance suite share."""

import pytest
from conformance_rows import Jobs


@pytest.fixture(scope="session")
def conformance_jobs():
    jobs = Jobs()
    yield jobs
    jobs.close()
