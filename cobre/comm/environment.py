"""Everything that communicators read from the environment.

``COBRE_COMM_BACKEND``, ``COBRE_TCP_*`` and ``COBRE_SHM_*`` (SEL-01, SEL-04) are ours; what Slurm and the
launchers of MPI jobs set is only read.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from cobre.comm.config import (
    DEFAULT_HEARTBEAT_S,
    DEFAULT_PORT,
    DEFAULT_SHM_CONNECT_S,
    DEFAULT_SILENCE_S,
    DEFAULT_TCP_CONNECT_S,
    DEFAULT_TIMEOUT_S,
    NONCE_BYTES,
    ShmConfig,
    TcpConfig,
)
from cobre.comm.contract import SlurmInfo
from cobre.comm.errors import MissingConfiguration
from cobre.errors import Problem, ValidationError

BACKEND_VARIABLE: Final = "COBRE_COMM_BACKEND"
TCP_TRIGGER: Final = "COBRE_TCP_COORDINATOR"
SHM_TRIGGER: Final = "COBRE_SHM_NAME"

# Steps with these numbers and above are no srun: the shell of salloc, the body of a batch script, "extern".
_FIRST_SPECIAL_STEP: Final = 0xFFFFFFF0
_LONGEST_NUMBER: Final = 18
_LONGEST_TOKEN: Final = 4096


@dataclass(frozen=True)
class MpiLaunch:
    """This process as its MPI launcher describes it in the environment.

    Attributes
    ----------
    launcher
        ``"openmpi"``, ``"pmi"`` (MPICH, Intel MPI, srun with pmi2) or ``"pmix"`` (srun with pmix).
    rank
        This process's rank.
    size
        Number of processes, ``None`` if the launcher does not state it.
    evidence
        The variables that were read, as ``NAME=value``.
    """

    launcher: str
    rank: int
    size: int | None
    evidence: str


def requested_backend(environment: Mapping[str, str] | None = None) -> str:
    """Return the backend that the environment asks for; ``"auto"`` when it is silent or empty (SEL-01)."""
    return _environment(environment).get(BACKEND_VARIABLE, "") or "auto"


def detect_mpi(environment: Mapping[str, str] | None = None) -> MpiLaunch | None:
    """Return the MPI launch that this process belongs to, or ``None``; imports nothing (SEL-03).

    One variable alone proves nothing: ``SLURM_PROCID`` is also set in salloc shells and batch scripts.
    """
    variables = _environment(environment)
    for launcher, rank_name, size_name in (
        ("openmpi", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
        ("pmi", "PMI_RANK", "PMI_SIZE"),
    ):
        rank, size = number(variables, rank_name), number(variables, size_name)
        if rank is not None and size:
            return MpiLaunch(launcher, rank, size, f"{rank_name}={rank}, {size_name}={size}")
    rank = number(variables, "PMIX_RANK")
    if rank is not None and variables.get("PMIX_NAMESPACE"):
        size = slurm_step_size(variables)
        evidence = f"PMIX_RANK={rank}" + ("" if size is None else f", SLURM_STEP_NUM_TASKS={size}")
        return MpiLaunch("pmix", rank, size, evidence)
    return None


def slurm_step_size(environment: Mapping[str, str] | None = None) -> int | None:
    """Return how many tasks the srun step of this process has, or ``None`` outside of one."""
    variables = _environment(environment)
    step = number(variables, "SLURM_STEP_ID")
    if step is not None and step >= _FIRST_SPECIAL_STEP:
        return None
    return number(variables, "SLURM_STEP_NUM_TASKS") or None


def advertised_size(environment: Mapping[str, str] | None = None) -> tuple[int, str] | None:
    """Return the number of processes that the launcher states, and the variables that state it."""
    launch = detect_mpi(environment)
    if launch is not None:
        return None if launch.size is None else (launch.size, launch.evidence)
    tasks = slurm_step_size(environment)
    return None if tasks is None else (tasks, f"SLURM_STEP_NUM_TASKS={tasks}")


def is_set(name: str, environment: Mapping[str, str] | None = None) -> bool:
    """Whether a variable is there and not empty."""
    return bool(_environment(environment).get(name))


def transport_size(backend: str, environment: Mapping[str, str] | None = None) -> int | None:
    """Return the number of ranks that the variables of a backend state, or ``None``."""
    return number(_environment(environment), f"COBRE_{backend.upper()}_SIZE")


def slurm_info(environment: Mapping[str, str] | None = None) -> SlurmInfo | None:
    """Return the Slurm job that this process belongs to, or ``None``."""
    variables = _environment(environment)
    job_id = variables.get("SLURM_JOB_ID")
    if not job_id:
        return None
    return SlurmInfo(job_id, variables.get("SLURM_JOB_NODELIST"), number(variables, "SLURM_CPUS_PER_TASK"))


def number(variables: Mapping[str, str], name: str) -> int | None:
    """Return a variable's value if that is a number, else ``None``."""
    text = variables.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _LONGEST_NUMBER else None


def tcp_config(environment: Mapping[str, str] | None = None, *, automatic: bool = False) -> TcpConfig:
    """Return the configuration of the tcp backend that the environment gives (SEL-04).

    Parameters
    ----------
    environment
        The variables, by default those of this process.
    automatic
        Whether tcp was chosen by itself. Then every rank needs a coordinator; otherwise rank 0, which does
        not dial, can do without (SEL-05).

    Raises
    ------
    MissingConfiguration
        Names every variable that is missing.
    ValidationError
        Names every variable with a wrong value.
    """
    reader = _Reader(_environment(environment), "tcp", "COBRE_TCP_")
    names = ["RANK", "SIZE"]
    if automatic or not reader.says("RANK", "0"):
        names.insert(0, "COORDINATOR")
    if not reader.says("SIZE", "1") and reader.text("TOKEN_FILE") is None:
        names.append("TOKEN")
    reader.require(names)
    host, port = reader.endpoint()
    bind_addr = reader.text("BIND_ADDR") or "127.0.0.1"
    config = reader.build(
        TcpConfig,
        {
            "coordinator": ("COORDINATOR", host or bind_addr),
            "rank": ("RANK", reader.whole("RANK")),
            "size": ("SIZE", reader.whole("SIZE")),
            "port": ("PORT", port),
            "bind_addr": ("BIND_ADDR", bind_addr),
            "connect_timeout_s": reader.connect_timeout(DEFAULT_TCP_CONNECT_S),
            "timeout_s": reader.timeout(),
            "token": ("TOKEN", reader.token()),
            "listener_fd": ("LISTENER_FD", reader.whole("LISTENER_FD")),
            "heartbeat_s": reader.heartbeat(),
            "silence_s": reader.silence(),
        },
    )
    assert isinstance(config, TcpConfig)
    return config


def shm_config(environment: Mapping[str, str] | None = None) -> ShmConfig:
    """Return the configuration of the shm backend that the environment gives (SEL-04).

    Raises
    ------
    MissingConfiguration
        Names every variable that is missing.
    ValidationError
        Names every variable with a wrong value.
    """
    reader = _Reader(_environment(environment), "shm", "COBRE_SHM_")
    reader.require(["NAME", "RANK", "SIZE"])
    config = reader.build(
        ShmConfig,
        {
            "name": ("NAME", reader.text("NAME")),
            "rank": ("RANK", reader.whole("RANK")),
            "size": ("SIZE", reader.whole("SIZE")),
            "connect_timeout_s": reader.connect_timeout(DEFAULT_SHM_CONNECT_S),
            "timeout_s": reader.timeout(),
            "nonce": ("NONCE", reader.nonce()),
            "segment": ("SEGMENT", reader.text("SEGMENT")),
        },
    )
    assert isinstance(config, ShmConfig)
    return config


def launch_timeouts(
    backend: str, connect_timeout_s: float, environment: Mapping[str, str] | None = None
) -> tuple[float, float]:
    """Return the timeouts of launched ranks for finding each other and for a collective, in seconds.

    Parameters
    ----------
    backend
        ``"shm"`` or ``"tcp"``.
    connect_timeout_s
        Time to find each other when the environment does not set it.
    environment
        Default this process's.

    Raises
    ------
    ValidationError
        When a variable is no number.
    """
    reader = _Reader(_environment(environment), backend, f"COBRE_{backend.upper()}_")
    seconds = reader.connect_timeout(connect_timeout_s)[1], reader.timeout()[1]
    reader.done()
    return seconds


def launch_pace(environment: Mapping[str, str] | None = None) -> tuple[float, float]:
    """Return heartbeat and silence of launched tcp ranks, in seconds (see :class:`TcpConfig`).

    Raises
    ------
    ValidationError
        When a variable is no number.
    """
    reader = _Reader(_environment(environment), "tcp", "COBRE_TCP_")
    pace = reader.heartbeat()[1], reader.silence()[1]
    reader.done()
    return pace


class _Reader:
    """Reads the variables of one backend; collects what is wrong with them. Secrets stay out of messages."""

    def __init__(self, variables: Mapping[str, str], backend: str, prefix: str) -> None:
        self._variables = variables
        self._backend = backend
        self._prefix = prefix
        self._problems: list[Problem] = []

    def text(self, name: str) -> str | None:
        return self._variables.get(self._prefix + name) or None

    def says(self, name: str, value: str) -> bool:
        return self.text(name) == value

    def require(self, names: Sequence[str]) -> None:
        missing = [self._prefix + name for name in names if self.text(name) is None]
        if missing:
            raise MissingConfiguration(self._backend, missing)

    def wrong(self, kind: str, name: str, fault: str, value: str | None) -> None:
        variable = self._prefix + name
        shown = "" if value is None else f"={value}"
        context = {"setting": variable} if value is None else {"setting": variable, "value": value}
        self._problems.append(Problem(kind, f"{variable}{shown} {fault}", context))

    def whole(self, name: str) -> int | None:
        text = self.text(name)
        value = number(self._variables, self._prefix + name)
        if text is not None and value is None:
            self.wrong("TypeMismatch", name, "is no whole number", text)
        return value

    def seconds(self, name: str, default: float, unit: float = 1.0) -> float:
        text = self.text(name)
        if text is None:
            return default
        try:
            return float(text) * unit
        except ValueError:
            self.wrong("TypeMismatch", name, "is no number", text)
            return default

    def connect_timeout(self, default_s: float) -> tuple[str, float]:
        """How long ranks look for each other: the variable's name, and the seconds."""
        return "CONNECT_TIMEOUT_MS", self.seconds("CONNECT_TIMEOUT_MS", default_s, 1e-3)

    def timeout(self) -> tuple[str, float]:
        """How long a collective waits: the variable's name, and the seconds."""
        return "TIMEOUT_SECS", self.seconds("TIMEOUT_SECS", DEFAULT_TIMEOUT_S)

    def heartbeat(self) -> tuple[str, float]:
        """How often a rank gives a sign of life: the variable's name, and the seconds."""
        return "HEARTBEAT_SECS", self.seconds("HEARTBEAT_SECS", DEFAULT_HEARTBEAT_S)

    def silence(self) -> tuple[str, float]:
        """After how long a silent rank is taken for dead: the variable's name, and the seconds."""
        return "SILENCE_SECS", self.seconds("SILENCE_SECS", DEFAULT_SILENCE_S)

    def endpoint(self) -> tuple[str | None, int]:
        """Host and port of the coordinator, which may be given as ``host:port`` or ``[address]:port``."""
        text = self.text("COORDINATOR")
        port = self.whole("PORT")
        host, digits = _split_endpoint(text) if text is not None else (None, "")
        if not digits:
            return host, DEFAULT_PORT if port is None else port
        own_port = number({"": digits}, "")
        if own_port is None:
            self.wrong("TypeMismatch", "COORDINATOR", "has a port that is no number", text)
        elif port is not None and port != own_port:
            self.wrong(
                "IncompatibleSettings", "COORDINATOR", f"disagrees with {self._prefix}PORT={port}", text
            )
        return host, DEFAULT_PORT if own_port is None else own_port

    def token(self) -> bytes | None:
        token, path = self.text("TOKEN"), self.text("TOKEN_FILE")
        if token is not None and path is not None:
            self.wrong("IncompatibleSettings", "TOKEN", f"and {self._prefix}TOKEN_FILE are both set", None)
        if token is not None:
            return token.encode()
        if path is None:
            return None
        try:
            return read_token(path)
        except OSError as error:
            self.wrong("MissingFile", "TOKEN_FILE", f"cannot be read: {error.strerror}", path)
        except ValueError as error:
            self.wrong("IncompatibleSettings", "TOKEN_FILE", str(error), path)
        return None

    def nonce(self) -> bytes | None:
        text = self.text("NONCE")
        try:
            nonce = bytes.fromhex(text or "")
        except ValueError:
            nonce = b""
        if text is not None and len(nonce) != NONCE_BYTES:
            self.wrong("SchemaViolation", "NONCE", f"needs {2 * NONCE_BYTES} hexadecimal digits", None)
        return nonce or None

    def build(self, kind: type, fields: Mapping[str, tuple[str, Any]]) -> Any:
        """Make the configuration, or raise with what is wrong in the words of the environment."""
        if not self._problems:
            try:
                return kind(**{field: value for field, (_, value) in fields.items()})
            except ValidationError as error:
                variables = {field: self._prefix + name for field, (name, _) in fields.items()}
                self._problems.extend(_in_terms_of(variables, problem) for problem in error.problems)
        raise ValidationError(self._problems, "the environment")

    def done(self) -> None:
        """Raise when something was wrong."""
        if self._problems:
            raise ValidationError(self._problems, "the environment")


def _in_terms_of(variables: Mapping[str, str], problem: Problem) -> Problem:
    setting = problem.context["setting"]
    return Problem(
        problem.kind,
        f"{variables[setting]}: {problem.message}",
        {**problem.context, "setting": variables[setting]},
        problem.suggestion,
    )


def _split_endpoint(text: str) -> tuple[str, str]:
    if text.startswith("[") and "]" in text:
        host, _, rest = text[1:].partition("]")
        return host, rest.removeprefix(":")
    if text.count(":") == 1:
        host, _, digits = text.partition(":")
        return host, digits
    return text, ""


def read_token(path: str) -> bytes:
    """Read a secret; the file is opened first and checked then, so that it cannot be exchanged in between.

    Raises
    ------
    OSError, ValueError
        When it cannot be read, holds no token, or is not the user's alone.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise ValueError("is no regular file")
        if status.st_uid != os.geteuid():
            raise ValueError("belongs to another user")
        if status.st_mode & 0o077:
            raise ValueError(f"has mode {stat.S_IMODE(status.st_mode):04o}: not yours alone; use 0600")
        token = os.read(descriptor, _LONGEST_TOKEN + 1).strip()
    finally:
        os.close(descriptor)
    if not 0 < len(token) <= _LONGEST_TOKEN:
        raise ValueError(f"holds no token of 1 to {_LONGEST_TOKEN} bytes")
    return token


def _environment(environment: Mapping[str, str] | None) -> Mapping[str, str]:
    return os.environ if environment is None else environment
