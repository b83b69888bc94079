"""``cobre version`` and ``cobre warmup``."""

from __future__ import annotations

import importlib.metadata
import platform
from typing import TYPE_CHECKING, Any

from cobre._distribution import OTHER_DISTRIBUTION
from cobre._version import __version__
from cobre.cli.outcome import Outcome
from cobre.errors import Problem
from cobre.machine import check_process

if TYPE_CHECKING:
    from rich.console import Console

_LIBRARIES = ("numba", "llvmlite", "numpy", "highsbox", "highspy", "pyarrow", "pydantic", "mpi4py")


def version_command(outcome: Outcome) -> None:
    """Carry out ``cobre version``: versions as installed, without importing the libraries."""
    libraries = {name: _installed(name) for name in _LIBRARIES}
    data: dict[str, Any] = {
        "version": __version__,
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "platform": platform.platform(),
        "machine": platform.machine(),
        "libraries": libraries,
    }
    if _installed(OTHER_DISTRIBUTION) is not None:
        outcome.warnings.append(
            Problem(
                "OtherPackage",
                f"{OTHER_DISTRIBUTION} is installed too; it has a package cobre as well",
                {"distribution": OTHER_DISTRIBUTION},
                "give each an environment of its own: they overwrite files of each other",
            )
        )
    outcome.data = data
    outcome.show = lambda console: _show_version(console, data)


def _installed(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def _show_version(console: Console, data: dict[str, Any]) -> None:
    from cobre.cli.human import show_table

    rows = {"python": f"{data['python']} ({data['implementation']})", "platform": data["platform"]}
    rows |= {name: number or "not installed" for name, number in data["libraries"].items()}
    show_table(console, f"cobre {data['version']}", rows)


def warmup_command(outcome: Outcome, backend: str = "local") -> None:
    """Carry out ``cobre warmup``: compile the kernels into the cache, or find them there."""
    check_process()
    from cobre.sddp.warmup import warm_kernels

    report = warm_kernels(backend)
    data: dict[str, Any] = {
        "backend": backend,
        "cache_directory": str(report.cache_directory),
        "cache_hits": report.hits,
        "cache_misses": report.misses,
        "total_time_ms": round(report.seconds * 1e3, 3),
    }
    outcome.data = data
    outcome.show = lambda console: _show_warmup(console, data)


def _show_warmup(console: Console, data: dict[str, Any]) -> None:
    from cobre.cli.human import show_table

    rows = {
        "backend": data["backend"],
        "cache": data["cache_directory"],
        "loaded": str(data["cache_hits"]),
        "compiled": str(data["cache_misses"]),
        "time": f"{data['total_time_ms'] / 1e3:.2f} s",
    }
    show_table(console, "Kernels are ready", rows)
