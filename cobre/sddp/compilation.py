"""Compiling on two processors: another process compiles the LP engine while this one compiles the rest.

Numba compiles on one thread. What the other process has compiled is on disk when it ends, and loaded from
there; where there is no second processor, or the other process fails, this one compiles everything itself.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from typing import Final

import numba

from cobre.comm.launch.processes import bind_to_parent
from cobre.lp.engines.own.entry import ENGINE_TAG
from cobre.machine import usable_cpus
from cobre.native.guard import ready_marker

_PROGRAM: Final = "from cobre.lp.engines.own.entry import engine_function; engine_function()"


@contextlib.contextmanager
def compiling_engine_ahead(wanted: bool = True) -> Iterator[None]:
    """Have the LP engine compiled by another process while the block runs, unless it is compiled already.

    The process has ended when the block is left.

    Parameters
    ----------
    wanted
        Whether this process is the one to start it: of several that start together, one is enough.
    """
    if not wanted or numba.config.DISABLE_JIT or usable_cpus() < 2 or ready_marker(ENGINE_TAG).exists():
        yield
        return
    process = subprocess.Popen(
        [sys.executable, "-c", _PROGRAM],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=partial(bind_to_parent, os.getpid(), signal.SIGKILL),
    )
    try:
        yield
    except BaseException:
        process.kill()
        raise
    finally:
        process.wait()
