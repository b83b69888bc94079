import pytest
from core_problems import Solver


@pytest.fixture(scope="module", autouse=True, params=[Solver.largest_kernel, 0], ids=["inverse", "factors"])
def representation(request):
    """Run every test with the explicit inverse and with sparse factors of the kernel."""
    usual = Solver.largest_kernel
    Solver.largest_kernel = request.param
    yield
    Solver.largest_kernel = usual
