"""Entries into the iteration kernel, one for each backend, in a module of its own.

An entry takes the communicator's ``kernel_arguments``, then the study as a tuple of named tuples of arrays,
and makes the backend's jitclass inside: a jitclass in a cached signature would cost every process seconds of
compilation. Only the module of the backend at hand is imported.
"""

from __future__ import annotations

import importlib
from typing import Any

from cobre.errors import CobreError
from cobre.sddp.kernel.phases import bind_phases

ENTRY_BACKENDS = ("local", "shm", "tcp", "mpi")
"""Backends that training runs on."""


def entry_of(backend: str) -> Any:
    """Return the cached nopython function that runs an iteration on a backend; compile what it calls by name.

    Raises
    ------
    CobreError
        Kind ``IncompatibleSettings`` when there is none.
    """
    if backend not in ENTRY_BACKENDS:
        raise CobreError(
            "IncompatibleSettings",
            f"training has no entry for the communicator {backend!r}",
            {"setting": "backend", "requested_value": backend, "available_backends": list(ENTRY_BACKENDS)},
        )
    bind_phases()
    return getattr(importlib.import_module(f"cobre.sddp.entries.{backend}"), f"iterate_{backend}")
