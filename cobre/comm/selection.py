"""Which backend to use, and making its communicator (SEL-01 to SEL-08)."""

from __future__ import annotations

import enum
import importlib.util
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from cobre._distribution import install_hint
from cobre.comm import environment as variables
from cobre.comm.config import ShmConfig, TcpConfig
from cobre.comm.contract import Communicator
from cobre.comm.environment import BACKEND_VARIABLE
from cobre.comm.errors import BackendError, BackendNotAvailable, InvalidBackend, MissingConfiguration
from cobre.errors import Problem, ValidationError


class BackendKind(str, enum.Enum):
    """Names of backends; ``AUTO`` leaves the choice to the environment."""

    AUTO = "auto"
    MPI = "mpi"
    TCP = "tcp"
    SHM = "shm"
    LOCAL = "local"


KNOWN_BACKENDS: tuple[str, ...] = tuple(kind.value for kind in BackendKind if kind is not BackendKind.AUTO)


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
    """Return the backends that can be used here, in the order mpi, tcp, shm, local (SEL-07)."""
    return tuple(name for name in KNOWN_BACKENDS if _obstacle(name) is None)


def create_communicator(
    backend: str | BackendKind = "auto", config: TcpConfig | ShmConfig | None = None
) -> Communicator:
    """Make the communicator of this process.

    Parameters
    ----------
    backend
        ``"mpi"``, ``"tcp"``, ``"shm"`` or ``"local"``: used or refused, never replaced, whatever the
        environment says. ``"auto"``: what ``COBRE_COMM_BACKEND`` asks for; when that is unset, empty or
        ``auto`` itself, the first backend that fits the way this process was launched.
    config
        For tcp and shm: how the ranks find each other; it also says which backend ``"auto"`` means. The
        environment is then not looked at. Without it the backend's ``COBRE_*`` variables are read.

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
        name = _backend_of(config, name)
        selection = Selection(name, (), _not_available(name))
    else:
        selection = explain_selection(name)
    if selection.error is not None:
        raise selection.error
    return _make(selection.backend, config)


def explain_selection(
    backend: str | BackendKind = "auto", environment: Mapping[str, str] | None = None
) -> Selection:
    """Return which backend :func:`create_communicator` would use, and why; start nothing.

    Parameters
    ----------
    backend
        As for :func:`create_communicator`.
    environment
        The variables to look at, by default those of this process.
    """
    reasons: list[str] = []
    name = backend.value if isinstance(backend, BackendKind) else backend
    variable = BACKEND_VARIABLE if name == BackendKind.AUTO.value else None
    if variable:
        name = variables.requested_backend(environment)
        asked = f"asks for {name}" if name != BackendKind.AUTO.value else "leaves the choice to the launch"
        reasons.append(f"{BACKEND_VARIABLE} {asked}")
    else:
        reasons.append(f"the program asks for {name}")
    if name == BackendKind.AUTO.value:
        return _automatic(environment, reasons)
    if name not in KNOWN_BACKENDS:
        return Selection(str(name), tuple(reasons), InvalidBackend(str(name), KNOWN_BACKENDS, variable))
    error = _not_available(name) or _configuration_error(name, environment, automatic=False)
    return Selection(name, tuple(reasons), error)


def _automatic(environment: Mapping[str, str] | None, reasons: list[str]) -> Selection:
    """Walk down the chain of SEL-02; a launch of several processes never becomes that many local runs."""
    launch = variables.detect_mpi(environment)
    several: tuple[str, str] | None = (
        None  # what says that there are several, and which backend would join them
    )
    if launch is None:
        reasons.append("mpi: this process was not started by a launcher of MPI jobs")
        tasks = variables.slurm_step_size(environment)
        if tasks is not None and tasks > 1:
            several = (f"SLURM_STEP_NUM_TASKS={tasks}", "mpi")
            reasons.append(f"warning: srun started {tasks} tasks without MPI (--mpi=none?)")
    else:
        obstacle = _obstacle("mpi")
        if obstacle is None:
            reasons.append(f"mpi: launched as one of an MPI job ({launch.evidence})")
            return Selection("mpi", tuple(reasons))
        reasons.append(f"mpi: launched as one of an MPI job ({launch.evidence}), but {obstacle}")
        if launch.size != 1:
            several = (launch.evidence, "mpi")

    for name, trigger in (("tcp", variables.TCP_TRIGGER), ("shm", variables.SHM_TRIGGER)):
        if not variables.is_set(trigger, environment):
            reasons.append(f"{name}: {trigger} is not set")
            size = variables.transport_size(name, environment)
            if several is None and size is not None and size > 1:
                error = _configuration_error(name, environment, automatic=True)
                return Selection(name, tuple(reasons), error)
            continue
        obstacle = _obstacle(name)
        if obstacle is None:
            reasons.append(f"{name}: {trigger} is set")
            return Selection(name, tuple(reasons), _configuration_error(name, environment, automatic=True))
        reasons.append(f"{name}: {trigger} is set, but {obstacle}")
        several = several or (trigger, name)

    if several is not None:
        evidence, name = several
        return Selection(name, tuple(reasons), _independent_copies(evidence, name, launch is None))
    reasons.append("local: one process by itself")
    return Selection("local", tuple(reasons))


def _independent_copies(evidence: str, name: str, unlaunched: bool) -> BackendNotAvailable:
    obstacle = _obstacle(name)
    if obstacle is None:  # srun --mpi=none
        obstacle = "srun was told not to start MPI"
    remedy = "use srun --mpi=pmix or --mpi=pmi2, " if unlaunched and name == "mpi" else ""
    return BackendNotAvailable(
        name,
        available_backends(),
        message=f"{evidence} says that this process is one of several, but nothing joins them ({obstacle}): "
        "each would run the whole job",
        suggestion=f"{remedy}launch one process, or set {BACKEND_VARIABLE}=local for independent runs",
    )


def _obstacle(name: str) -> str | None:
    """Why a known backend cannot be used here, or ``None``."""
    if name == "mpi":
        if os.name != "posix":
            return "the mpi backend needs POSIX"
        # importing mpi4py.MPI would start MPI: only look whether it is there (SEL-07)
        if importlib.util.find_spec("mpi4py") is None:
            return f"mpi4py is not installed ({install_hint('mpi')})"
    if name in ("tcp", "shm") and sys.platform != "linux":
        return f"the {name} backend needs Linux"
    return None


def _not_available(name: str) -> BackendNotAvailable | None:
    obstacle = _obstacle(name)
    if obstacle is None:
        return None
    available = available_backends()
    text = f"the backend {name!r} is not available here: {obstacle}; available: {', '.join(available)}"
    return BackendNotAvailable(name, available, message=text)


def _configuration_error(
    name: str, environment: Mapping[str, str] | None, *, automatic: bool
) -> MissingConfiguration | ValidationError | None:
    try:
        if name == "tcp":
            variables.tcp_config(environment, automatic=automatic)
        elif name == "shm":
            variables.shm_config(environment)
    except (MissingConfiguration, ValidationError) as error:
        return error
    return None


def _backend_of(config: TcpConfig | ShmConfig, requested: str) -> str:
    name = "tcp" if isinstance(config, TcpConfig) else "shm"
    if requested not in (name, BackendKind.AUTO.value):
        if requested not in KNOWN_BACKENDS:
            raise InvalidBackend(str(requested), KNOWN_BACKENDS)
        problem = Problem(
            "IncompatibleSettings",
            f"the backend {requested!r} does not take a {type(config).__name__}",
            {"setting": "config", "requested_value": requested},
        )
        raise ValidationError([problem], "the arguments of create_communicator")
    return name


def _make(name: str, config: TcpConfig | ShmConfig | None) -> Communicator:
    # imported here: a program uses one backend, and each has kernels to declare
    if name == "mpi":
        from cobre.comm.mpi import MpiCommunicator

        return MpiCommunicator()
    if name == "tcp":
        from cobre.comm.tcp import TcpCommunicator

        return TcpCommunicator(config if isinstance(config, TcpConfig) else variables.tcp_config())
    if name == "shm":
        from cobre.comm.shm import ShmCommunicator

        return ShmCommunicator(config if isinstance(config, ShmConfig) else variables.shm_config())
    from cobre.comm.local import LocalCommunicator

    return LocalCommunicator()
