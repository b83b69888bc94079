"""Latency and bandwidth of the backends of this machine: ``python -m cobre.comm bench``.

All times are taken in nopython code, on rank 0, call after call; those of mpi4py in a Python loop, on the
same buffers and in turns with MPI from nopython code. A figure is the median of the medians of several
repetitions.
"""

from cobre.comm.bench.plan import OPERATIONS, Operation, Result
from cobre.comm.bench.run import run_bench
from cobre.comm.bench.tables import as_json, as_text

__all__ = ["OPERATIONS", "Operation", "Result", "as_json", "as_text", "run_bench"]
