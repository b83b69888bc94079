"""The entry into the iteration kernel, for any communicator.

An entry takes the communicator's ``kernel_arguments``, then the addresses of the study's structs, and makes
the communicator's jitclass inside: a jitclass in a cached signature would cost every process seconds of
compilation. It is compiled, and kept on disk, for each jitclass, also for one of another package.
"""

# Kernels are typed by Numba when they are compiled, not by annotations.
# mypy: disallow-untyped-calls=False
from __future__ import annotations

from typing import Any

from cobre.comm.contract import Communicator
from cobre.native import function_over
from cobre.sddp.kernel.iteration import iterate as _iterate
from cobre.sddp.kernel.phases import bind_phases

Kernel: Any = None
"""Stands for the jitclass of the communicator."""


def iterate(arguments: Any, study: Any, iteration: Any) -> Any:
    """Run one iteration; see :func:`cobre.sddp.kernel.iteration.iterate`."""
    return _iterate(Kernel(*arguments), study, iteration)


def entry_of(communicator: Communicator) -> Any:
    """Return the cached nopython function that runs an iteration on a communicator, ready to be compiled.

    Raises
    ------
    CobreError
        Kind ``IncompatibleSettings`` when the communicator's kernel is no stable jitclass.
    """
    bind_phases()
    return function_over(iterate, communicator.kernel_class)
