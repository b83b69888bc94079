"""Which backend to use, and making its communicator (SEL-01 to SEL-08)."""

from __future__ import annotations

import enum
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cobre._communicators import LOCAL, backend_names
from cobre.comm.contract import Communicator
from cobre.comm.environment import (
    BACKEND_VARIABLE,
    detect_mpi,
    requested_backend,
    slurm_step_size,
    transport_size,
)
from cobre.comm.errors import BackendError, BackendNotAvailable, MissingConfiguration
from cobre.comm.registry import Backend, find_backend, installed_backends, obstacle_of
from cobre.errors import Problem, ValidationError

AUTO = "auto"


class BackendKind(str, enum.Enum):
    """Names of the backends that come with the package; ``AUTO`` leaves the choice to the environment."""

    AUTO = "auto"
    MPI = "mpi"
    TCP = "tcp"
    SHM = "shm"
    LOCAL = "local"


@dataclass(frozen=True)
class Selection:
    """A backend and why it was chosen.

    Attributes
    ----------
    backend
        Its name.
    reasons
        One sentence for each step of the choice.
    error
        What :func:`create_communicator` raises instead of making one, or ``None``.
    """

    backend: str
    reasons: tuple[str, ...]
    error: BackendError | ValidationError | None = None


def available_backends() -> tuple[str, ...]:
    """Return the backends that can be used here: mpi, tcp, shm, then others, then local (SEL-07)."""
    return tuple(backend.name for backend in installed_backends() if backend.obstacle() is None)


def create_communicator(backend: str | BackendKind = AUTO, config: Any = None) -> Communicator:
    """Make the communicator of this process.

    Parameters
    ----------
    backend
        ``"mpi"``, ``"tcp"``, ``"shm"``, ``"local"`` or the name of one that another distribution has added:
        used or refused, never replaced, whatever the environment holds. ``"auto"``: what
        ``COBRE_COMM_BACKEND`` asks for; when that is unset, empty or ``auto`` itself, the first backend that
        fits the way this process was launched.
    config
        How the ranks find each other, for backends that take a configuration (``TcpConfig``, ``ShmConfig``);
        its class also decides which backend ``"auto"`` means. The environment is then ignored. Without
        it the backend's ``COBRE_*`` variables are read.

    Returns
    -------
    Communicator
        A context manager; close it at the end.

    Raises
    ------
    InvalidBackend
        When no backend has this name.
    BackendNotAvailable
        When the backend is known but not available; also when ``auto`` finds only ``local`` although this
        process was launched as one of several, each of which would run the whole job by itself.
    MissingConfiguration
        When variables that the backend needs are not set; names them all.
    ValidationError
        When they are set to something wrong, or ``config`` belongs to another backend.
    InitializationFailed
        When the backend is there and configured, but does not start.
    """
    name = backend.value if isinstance(backend, BackendKind) else backend
    if config is not None:
        chosen = _backend_of(config, name)
        selection = Selection(chosen.name, (), _not_available(chosen.name))
    else:
        selection = explain_selection(name)
    if selection.error is not None:
        raise selection.error
    chosen = find_backend(selection.backend)
    return chosen.create(chosen.configuration(os.environ) if config is None else config)


def explain_selection(
    backend: str | BackendKind = AUTO, environment: Mapping[str, str] | None = None
) -> Selection:
    """Return which backend :func:`create_communicator` would use, and why; start nothing.

    Parameters
    ----------
    backend
        As for :func:`create_communicator`.
    environment
        The variables to read, by default those of this process.
    """
    reasons: list[str] = []
    variables = os.environ if environment is None else environment
    name = backend.value if isinstance(backend, BackendKind) else backend
    variable = BACKEND_VARIABLE if name == AUTO else None
    if variable:
        name = requested_backend(variables)
        asked = f"asks for {name}" if name != AUTO else "leaves the choice to the launch"
        reasons.append(f"{BACKEND_VARIABLE} {asked}")
    else:
        reasons.append(f"the program asks for {name}")
    if name == AUTO:
        return _automatic(variables, reasons)
    try:
        chosen = find_backend(name, variable)
    except BackendError as refusal:
        return Selection(str(name), tuple(reasons), refusal)
    error = _not_available(name) or _configuration_error(chosen, variables, automatic=False)
    return Selection(name, tuple(reasons), error)


def _automatic(environment: Mapping[str, str], reasons: list[str]) -> Selection:
    """Walk down the chain of SEL-02; a launch of several processes never becomes that many local runs."""
    several: tuple[str, str] | None = None  # what shows that there are several, and who would join them
    tasks = slurm_step_size(environment)
    if tasks is not None and tasks > 1 and detect_mpi(environment) is None:
        several = (f"SLURM_STEP_NUM_TASKS={tasks}", "mpi")
        reasons.append(f"warning: srun started {tasks} tasks without MPI (--mpi=none?)")
    loaded = [backend for backend in installed_backends() if backend.name != LOCAL]
    for name in sorted({*backend_names()} - {LOCAL} - {backend.name for backend in loaded}):
        reasons.append(f"{name}: {obstacle_of(name)}")
        size = transport_size(name, environment)
        if several is None and size is not None and size > 1:
            several = (f"COBRE_{name.upper()}_SIZE={size}", name)
    for backend in loaded:
        member = backend.membership(environment)
        if member is None:
            reasons.append(f"{backend.name}: {backend.absence()}")
            continue
        obstacle = backend.obstacle()
        if obstacle is None:
            reasons.append(f"{backend.name}: {member.evidence}")
            error = _configuration_error(backend, environment, automatic=True)
            return Selection(backend.name, tuple(reasons), error)
        reasons.append(f"{backend.name}: {member.evidence}, but {obstacle}")
        if several is None and member.size != 1:
            several = (member.evidence, backend.name)
    if several is not None:
        evidence, name = several
        return Selection(name, tuple(reasons), _independent_copies(evidence, name))
    reasons.append(f"{LOCAL}: one process by itself")
    return Selection(LOCAL, tuple(reasons), _not_available(LOCAL))


def _independent_copies(evidence: str, name: str) -> BackendNotAvailable:
    obstacle, remedy = obstacle_of(name), ""
    if obstacle is None:  # srun --mpi=none
        obstacle = "srun was told not to start MPI"
        remedy = "use srun --mpi=pmix or --mpi=pmi2, "
    return BackendNotAvailable(
        name,
        available_backends(),
        message=f"this process is one of several ({evidence}), but nothing joins them ({obstacle}): "
        "each would run the whole job",
        suggestion=f"{remedy}launch one process, or set {BACKEND_VARIABLE}=local for independent runs",
    )


def _not_available(name: str) -> BackendNotAvailable | None:
    obstacle = obstacle_of(name)
    if obstacle is None:
        return None
    available = available_backends()
    text = f"the backend {name!r} is not available here: {obstacle}; available: {', '.join(available)}"
    return BackendNotAvailable(name, available, message=text)


def _configuration_error(
    backend: Backend, environment: Mapping[str, str], *, automatic: bool
) -> MissingConfiguration | ValidationError | None:
    try:
        backend.configuration(environment, automatic=automatic)
    except (MissingConfiguration, ValidationError) as error:
        return error
    return None


def _backend_of(config: Any, requested: str) -> Backend:
    """Return the backend that a configuration is for; a named one has to take it."""
    candidates = installed_backends() if requested == AUTO else (find_backend(requested),)
    for backend in candidates:
        if backend.config_type is not None and isinstance(config, backend.config_type):
            return backend
    who = "no installed backend takes" if requested == AUTO else f"the backend {requested!r} does not take"
    problem = Problem(
        "IncompatibleSettings",
        f"{who} a {type(config).__name__}",
        {"setting": "config", "requested_value": requested, "available_backends": list(backend_names())},
    )
    raise ValidationError([problem], "the arguments of create_communicator")
