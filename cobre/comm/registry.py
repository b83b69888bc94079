"""What a backend is, and which ones are installed.

A backend is described by one object, a :class:`Backend`: what it is called, whether it can be used here, how
a process detects that it is a rank of such a job, how its communicator is made, and how its ranks are
started. Selection, launchers, training, warm-up, bench and conformance suite use backends only through it.

Those that come with the package are in :mod:`cobre.comm.backends`. Another distribution adds its own by an
entry point of the group ``cobre.communicators``, whose name is that of the backend::

    [project.entry-points."cobre.communicators"]
    ring = "fast_ring.backend:RingBackend"

Names are known without importing anything. The module of a description is imported when a backend is asked
for by name or backends are listed, so it should be light: import Numba and the transport in ``create``. One
that cannot be imported, or a name that two distributions claim, is reported where it is asked for, and
does not affect the others.
"""

from __future__ import annotations

import functools
import importlib
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

from cobre._communicators import LOCAL, backend_names, claims
from cobre.comm.environment import is_set, launch_timeouts, transport_size
from cobre.comm.errors import BackendNotAvailable, InvalidBackend

if TYPE_CHECKING:
    from typing_extensions import Self

    from cobre.comm.contract import Communicator

_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,30}")
# "auto" and "all" choose among backends; variables that are no backend's begin with the others.
_RESERVED: Final = frozenset(("auto", "all", "cache", "comm", "debug", "highs", "launcher", "num", "test"))

_CONNECT_TIMEOUT_S: Final = 300.0
"""Time for launched ranks to find each other: long, since the launcher detects those that end before."""


@dataclass(frozen=True)
class Traits:
    """What a backend is able to do beyond the common contract.

    Attributes
    ----------
    shares_regions
        Ranks of one host see the same shared region (SHR-05).
    detects_silence
        A collective fails when a rank does not arrive within the communicator's timeout.
    detects_divergence
        A collective fails on all ranks when they call different ones (COM-42).
    detects_death
        A collective fails, and names the rank, when a rank's process has ended. Where it does not, a rank of
        ``cobre train`` that fails alone ends all others by ``abort``.
    folds_in_rank_order
        Sums are strict left folds over ranks, at least of a few thousand bytes (COM-21).
    """

    shares_regions: bool = False
    detects_silence: bool = False
    detects_divergence: bool = False
    detects_death: bool = False
    folds_in_rank_order: bool = False


@dataclass(frozen=True)
class Membership:
    """What in the environment shows that this process is a rank of a job.

    Attributes
    ----------
    evidence
        The variables that show it, for a message.
    size
        Number of ranks, ``None`` when it is not known.
    """

    evidence: str
    size: int | None


@dataclass(frozen=True)
class Seat:
    """One rank's place when the conformance suite makes a communicator.

    Attributes
    ----------
    rank, size
        This process's rank, and how many there are.
    session
        A word that is the same on all ranks and new for every communicator.
    timeout_s
        How long a collective of this communicator may wait.
    publish
        Called once by every rank, or by none: returns to all of them what rank 0 has put in.
    """

    rank: int
    size: int
    session: str
    timeout_s: float
    publish: Callable[[Any], Any]


class Transport(ABC):
    """What the ranks of one job need to find each other, made by the process that starts them.

    A context manager that frees it. Names and secrets are fresh for every job (10.6). They reach the ranks
    through a pipe or their environment, never through arguments, which every user of the machine can read.

    Parameters
    ----------
    size
        Number of ranks.
    timeout_s
        How long a collective may wait for a rank that is alive; ``None`` for what
        ``COBRE_<NAME>_TIMEOUT_SECS`` of this process holds, or the default.
    """

    backend: ClassVar[str]

    def __init__(self, size: int, timeout_s: float | None = None) -> None:
        self.size = size
        self.connect_timeout_s, default_s = launch_timeouts(self.backend, _CONNECT_TIMEOUT_S)
        self.timeout_s = default_s if timeout_s is None else timeout_s

    @abstractmethod
    def config(self, rank: int) -> Any:
        """Return a rank's configuration, for :meth:`Backend.create`; it is pickled."""

    @abstractmethod
    def environment(self, rank: int) -> dict[str, str]:
        """Return the variables from which a rank makes the same configuration.

        ``COBRE_COMM_BACKEND``, and others that begin with ``COBRE_<NAME>_``.
        """

    def descriptors(self, rank: int) -> tuple[int, ...]:
        """Return the descriptors that a rank has to inherit."""
        return ()

    def started(self) -> None:  # noqa: B027  (most transports have nothing to do)
        """Free what only the ranks need, once they have it."""

    @abstractmethod
    def close(self) -> None:
        """Free everything."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


class Backend(ABC):
    """The description of a backend.

    Attributes
    ----------
    name
        That of the entry point: a lower-case letter, then letters, digits or ``_``. Environment variables of
        the backend begin with ``COBRE_<NAME>_``; launchers keep them from the ranks of other jobs.
    description
        What it joins, in one line.
    config_type
        The class of its configurations, ``None`` when it takes none.
    transport
        The :class:`Transport` by which launchers start its ranks, ``None`` when they cannot.
    how_to_start
        What to do where ``transport`` is ``None``.
    traits
        What its communicators are able to do.
    sizes
        Numbers of ranks that the conformance suite is run for.
    priority
        Backends are looked at in this order when one is chosen by the environment: mpi 10, tcp 20, shm 30.
    trigger
        The variable that shows that this process is a rank; ``COBRE_<NAME>_SIZE`` unless it is set.
    """

    name: ClassVar[str]
    description: ClassVar[str]
    config_type: ClassVar[type | None] = None
    transport: ClassVar[Callable[..., Transport] | None] = None
    how_to_start: ClassVar[str] = ""
    traits: ClassVar[Traits] = Traits()
    sizes: ClassVar[tuple[int, ...]] = (1, 2, 3, 4)
    priority: ClassVar[int] = 50
    trigger: ClassVar[str] = ""

    def obstacle(self) -> str | None:
        """Return why the backend cannot be used here, ``None`` when it can; starts nothing."""
        return None

    def membership(self, environment: Mapping[str, str]) -> Membership | None:
        """Return what shows that this process is a rank of a job of this backend, or ``None``."""
        size = transport_size(self.name, environment)
        trigger = self._trigger()
        if is_set(trigger, environment):
            return Membership(f"{trigger} is set", size)
        if size is not None and size > 1:
            return Membership(f"COBRE_{self.name.upper()}_SIZE={size}", size)
        return None

    def absence(self) -> str:
        """Return why :meth:`membership` found nothing, for an explanation of the choice."""
        return f"{self._trigger()} is not set"

    def configuration(self, environment: Mapping[str, str], *, automatic: bool = False) -> Any:
        """Return the configuration that the environment gives; ``None`` for a backend that takes none.

        Parameters
        ----------
        environment
            The variables.
        automatic
            Whether the backend was chosen by the environment, and not by name.

        Raises
        ------
        MissingConfiguration
            Names every variable that is missing.
        ValidationError
            When variables are wrong.
        """
        return None

    @abstractmethod
    def create(self, config: Any) -> Communicator:
        """Make this rank's communicator; collective over all ranks."""

    def with_descriptors(self, config: Any, descriptors: Sequence[int]) -> Any:
        """Return a configuration that names the transport's descriptors as they are called in this process.

        A rank that is kept for several jobs gets them by message, so that their numbers are others than where
        the configuration was made. For backends whose :meth:`Transport.descriptors` are not empty.

        Parameters
        ----------
        descriptors
            In the order of :meth:`Transport.descriptors`; the communicator's to close.
        """
        raise NotImplementedError(
            f"the backend {self.name!r} passes descriptors to its ranks, but defines no with_descriptors"
        )

    def join(self, seat: Seat) -> Communicator:
        """Make the communicator of a seat, for the conformance suite."""
        return self.create(None)

    def leftovers(self, session: str) -> list[str]:
        """Return what communicators of a seat's session have left behind on this machine."""
        return []

    def _trigger(self) -> str:
        return self.trigger or f"COBRE_{self.name.upper()}_SIZE"


def find_backend(name: str, variable: str | None = None) -> Backend:
    """Return the description of a backend.

    Parameters
    ----------
    name
        Its name.
    variable
        The environment variable that asks for it, for the message.

    Raises
    ------
    InvalidBackend
        When no backend has this name; lists those that are installed.
    BackendNotAvailable
        When the name is claimed twice or reserved, or the description cannot be loaded.
    """
    if name not in claims():
        raise InvalidBackend(str(name), backend_names(), variable)
    return _load(name)


def installed_backends() -> tuple[Backend, ...]:
    """Return all descriptions that can be loaded, in the order in which one is chosen, ``local`` last."""
    found = []
    for name in backend_names():
        try:
            found.append(_load(name))
        except BackendNotAvailable:
            continue
    return tuple(sorted(found, key=lambda backend: (backend.name == LOCAL, backend.priority, backend.name)))


def obstacle_of(name: str) -> str | None:
    """Return why an installed backend cannot be used here, or ``None``."""
    try:
        return find_backend(name).obstacle()
    except BackendNotAvailable as error:
        return error.message


def launchable_backends() -> tuple[str, ...]:
    """Return the backends whose ranks can be started from here."""
    return tuple(b.name for b in installed_backends() if b.transport is not None and b.obstacle() is None)


def make_transport(name: str, size: int, timeout_s: float | None = None) -> Transport:
    """Make what the ranks of a job need.

    Raises
    ------
    InvalidBackend
        When no backend has this name.
    BackendNotAvailable
        When the backend's ranks cannot be started by this launcher, or not on this platform.
    """
    backend = find_backend(name)
    obstacle = backend.obstacle()
    if backend.transport is None or obstacle is not None:
        usable = launchable_backends()
        reason = "" if obstacle is None else f": {obstacle}"
        suggestion = f"choose one of: {', '.join(usable)}" if usable else "run one process, on 'local'"
        raise BackendNotAvailable(
            name,
            usable,
            message=f"the launcher cannot start ranks of the backend {name!r}{reason}",
            suggestion=backend.how_to_start or suggestion,
        )
    return backend.transport(size, timeout_s)


def variable_prefixes() -> tuple[str, ...]:
    """Return how the environment variables of installed backends begin."""
    return tuple(f"COBRE_{name.upper()}_" for name in backend_names() if _fault_of(name) is None)


def _load(name: str) -> Backend:
    owners = claims()[name]
    fault, remedy = _fault_of(name), "rename the entry point"
    if len(owners) > 1:
        listed = ", ".join(f"{distribution} ({value})" for distribution, value in owners)
        fault = f"{len(owners)} distributions claim this name: {listed}"
        remedy = "uninstall all but one of them"
    if fault is None:
        (distribution, value) = owners[0]
        try:
            return _described(name, value)
        except Exception as error:  # a module of others, which may raise anything
            fault = f"{value} of {distribution} cannot be loaded: {type(error).__name__}: {error}"
            remedy = f"repair or uninstall {distribution}"
    others = [other for other, found in claims().items() if other != name and len(found) == 1]
    raise BackendNotAvailable(
        name, others, message=f"the backend {name!r} is not available here: {fault}", suggestion=remedy
    )


@functools.cache
def _described(name: str, value: str) -> Backend:
    module, _, attribute = value.partition(":")
    described: Any = importlib.import_module(module)
    for part in attribute.split("."):
        described = getattr(described, part)
    backend = described() if isinstance(described, type) else described
    if not isinstance(backend, Backend):
        raise TypeError(f"it is a {type(backend).__name__}, not a cobre.comm.registry.Backend")
    if backend.name != name:
        raise ValueError(f"it is named {backend.name!r}, the entry point {name!r}")
    return backend


def _fault_of(name: str) -> str | None:
    if name in _RESERVED:
        return f"the name {name!r} is reserved"
    if not _NAME.fullmatch(name):
        return "a name is a lower-case letter, then letters, digits or '_'"
    return None
