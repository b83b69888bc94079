"""Names of the communicator backends that are installed, known without importing any of them, nor NumPy."""

from __future__ import annotations

import functools
from importlib.metadata import entry_points
from typing import Final

from cobre._distribution import DISTRIBUTION

GROUP: Final = "cobre.communicators"
"""Group of the entry points by which distributions add backends."""

LOCAL: Final = "local"
_BUILT_IN: Final = {
    "mpi": "cobre.comm.backends:MpiBackend",
    "tcp": "cobre.comm.backends:TcpBackend",
    "shm": "cobre.comm.backends:ShmBackend",
    LOCAL: "cobre.comm.backends:LocalBackend",
}


@functools.cache
def claims() -> dict[str, tuple[tuple[str, str], ...]]:
    """Return who claims each name: pairs of distribution and ``module:attribute``; ``local`` is the last."""
    found = {name: [(DISTRIBUTION, value)] for name, value in _BUILT_IN.items()}
    for point in sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value)):
        distribution = "an unknown distribution" if point.dist is None else point.dist.name
        found.setdefault(point.name, []).append((distribution, point.value))
    last = found.pop(LOCAL)
    return {**{name: tuple(owners) for name, owners in found.items()}, LOCAL: tuple(last)}


def backend_names() -> tuple[str, ...]:
    """Return the names of all backends that are installed, usable or not."""
    return tuple(claims())
