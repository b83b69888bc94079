"""The iteration on the local communicator."""

# Kernels are typed by Numba when they are compiled, not by annotations.
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False
from __future__ import annotations

from numba import njit

from cobre.comm.local import LocalKernel
from cobre.sddp.kernel.iteration import iterate_study


@njit(cache=True, nogil=True)
def iterate_local(detail, study, iteration):
    """One iteration on this communicator; see :func:`cobre.sddp.kernel.iteration.iterate`."""
    return iterate_study(LocalKernel(detail), study, iteration)
