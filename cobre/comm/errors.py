"""Errors of communicators (ERR-01) and of the choice of a backend (ERR-02).

All are :class:`~cobre.errors.CobreError`; kinds and contexts follow ERR-08. They can be pickled, since
one process often reports the error of another.
"""

# ruff: noqa: N818  (the names are those of the communication specification)

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from cobre.errors import CobreError


def _rebuild(cls: type[CobreError], fields: dict[str, Any]) -> CobreError:
    return cls(**fields)


class CommError(CobreError, RuntimeError):
    """A communicator's operation failed; ``kind`` is ``MpiError`` on every backend."""

    _fields: ClassVar[tuple[str, ...]] = ()

    def __init__(self, message: str, context: Mapping[str, Any], suggestion: str | None = None) -> None:
        super().__init__("MpiError", message, context, suggestion)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), {name: getattr(self, name) for name in self._fields})


class CollectiveFailed(CommError):
    """A collective broke down under way; the communicator cannot be used any more.

    Attributes
    ----------
    operation : str
    mpi_error_code : int
        0 for tcp and shm, -1 where MPI gave no code.
    """

    _fields = ("message", "mpi_error_code", "operation")

    def __init__(self, operation: str, mpi_error_code: int, message: str) -> None:
        super().__init__(message, {"operation": operation, "error_code": mpi_error_code, "detail": message})
        self.operation = operation
        self.mpi_error_code = mpi_error_code


class InvalidBufferSize(CommError, ValueError):
    """A buffer, or the counts and displacements that describe it, do not fit the operation.

    Attributes
    ----------
    operation : str
    expected, actual : int
        Number of elements, unless the message names another quantity.
    """

    _fields = ("actual", "expected", "message", "operation")

    def __init__(self, operation: str, expected: int, actual: int, *, message: str | None = None) -> None:
        text = message or f"{operation}: a buffer has {actual} elements instead of {expected}"
        super().__init__(text, {"operation": operation, "expected": expected, "actual": actual})
        self.operation = operation
        self.expected = expected
        self.actual = actual


class InvalidRoot(CommError, ValueError):
    """The root of a broadcast is no rank of the communicator.

    Attributes
    ----------
    root, size : int
    """

    _fields = ("root", "size")

    def __init__(self, root: int, size: int) -> None:
        ranks = "only rank 0 exists" if size == 1 else f"ranks are 0 to {size - 1}"
        super().__init__(
            f"broadcast: root {root} does not exist; {ranks}",
            {"operation": "broadcast", "root": root, "size": size},
        )
        self.root = root
        self.size = size


class InvalidCommunicator(CommError):
    """The communicator is closed, broken, in use by another thread, or that of another process."""

    _fields = ("message", "suggestion")

    def __init__(self, message: str | None = None, suggestion: str | None = None) -> None:
        super().__init__(
            message or "the communicator is closed, or an earlier collective failed on it",
            {},
            suggestion or "create a new communicator",
        )


def communicator_in_use() -> InvalidCommunicator:
    """Return the error for a call while another one is under way (COM-41)."""
    return InvalidCommunicator(
        "the communicator is in use: another thread of this process, or a signal handler, called it while a "
        "collective was under way",
        "call collectives from one thread at a time",
    )


def communicator_of_another_process(pid: int, here: int) -> InvalidCommunicator:
    """Return the error for a call in a child process that was made by fork."""
    return InvalidCommunicator(
        f"the communicator belongs to process {pid}; this is process {here}, a fork of it, which is no rank",
        "use it in the process that created it, and start others without fork "
        "(cobre.comm.launch, or multiprocessing's 'spawn')",
    )


class AllocationFailed(CommError, MemoryError):
    """Memory for a collective or a shared region could not be allocated.

    Attributes
    ----------
    requested_bytes : int
    """

    _fields = ("message", "requested_bytes")

    def __init__(self, requested_bytes: int, message: str) -> None:
        super().__init__(message, {"requested_bytes": requested_bytes, "detail": message})
        self.requested_bytes = requested_bytes


class BackendError(CobreError):
    """No communicator could be made for the backend that was asked for."""

    _fields: ClassVar[tuple[str, ...]] = ()

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), {name: getattr(self, name) for name in self._fields})


def _setting_context(
    requested: str, available: Sequence[str], missing_variables: Sequence[str] = ()
) -> dict[str, Any]:
    return {
        "setting": "backend",
        "requested_value": requested,
        "available_backends": list(available),
        "build_features": list(available),
        "missing_variables": list(missing_variables),
    }


class BackendNotAvailable(BackendError):
    """The backend is known, but cannot be used in this installation.

    Attributes
    ----------
    requested : str
    available : tuple of str
        The backends that can be used.
    """

    _fields = ("available", "message", "requested", "suggestion")

    def __init__(
        self,
        requested: str,
        available: Sequence[str],
        *,
        message: str | None = None,
        suggestion: str | None = None,
    ) -> None:
        names = ", ".join(available)
        super().__init__(
            "IncompatibleSettings",
            message or f"the backend {requested!r} is not available here; available: {names}",
            _setting_context(requested, available),
            suggestion or f"choose one of: {names}",
        )
        self.requested = requested
        self.available = tuple(available)


class InvalidBackend(BackendError):
    """No backend has this name.

    Attributes
    ----------
    requested : str
    available : tuple of str
        All names that are known, whether they can be used here or not.
    variable : str or None
        The environment variable that holds the name.
    """

    _fields = ("available", "requested", "variable")

    def __init__(self, requested: str, available: Sequence[str], variable: str | None = None) -> None:
        asked = f" that {variable} asks for" if variable else ""
        super().__init__(
            "IncompatibleSettings",
            f"there is no backend {requested!r}{asked}; known: {', '.join(available)}",
            _setting_context(requested, available),
            "names are lower case; 'auto' chooses one",
        )
        self.requested = requested
        self.available = tuple(available)
        self.variable = variable


class MissingConfiguration(BackendError):
    """Variables that the backend needs are not set; names them all.

    Attributes
    ----------
    backend : str
    missing_vars : tuple of str
    """

    _fields = ("backend", "missing_vars")

    def __init__(self, backend: str, missing_vars: Sequence[str]) -> None:
        super().__init__(
            "IncompatibleSettings",
            f"the backend {backend!r} needs {', '.join(missing_vars)}",
            _setting_context(backend, (), missing_vars),
            "set the missing environment variables, or give a configuration in the program",
        )
        self.backend = backend
        self.missing_vars = tuple(missing_vars)


class InitializationFailed(BackendError):
    """The backend is there and configured, but did not start.

    Attributes
    ----------
    backend : str
    source : str
        What went wrong below, as text.
    setting : str or None
        What is configured wrongly on this machine, where that is the reason.
    """

    _fields: ClassVar[tuple[str, ...]] = ("backend", "error_code", "source", "setting", "suggestion")

    def __init__(
        self,
        backend: str,
        source: BaseException | str,
        error_code: int = 0,
        *,
        setting: str | None = None,
        suggestion: str | None = None,
    ) -> None:
        detail = str(source)
        context = {"operation": "init", "backend": backend, "error_code": error_code, "detail": detail}
        if setting is not None:
            context["setting"] = setting
        message = f"the backend {backend!r} did not start: {detail}"
        super().__init__("MpiError", message, context, suggestion)
        self.backend = backend
        self.source = detail
        self.error_code = error_code
        self.setting = setting


class RankLost(InitializationFailed, CollectiveFailed):
    """A rank ended, or gave up, while the ranks were joining; the start is a collective that broke down.

    Attributes
    ----------
    rank : int
        The rank that is to blame.
    """

    _fields = ("backend", "rank", "story")

    def __init__(self, backend: str, rank: int, story: str) -> None:
        detail = f"rank {rank} {story}"
        context = {"operation": "init", "backend": backend, "error_code": 0, "detail": detail, "rank": rank}
        # not by way of the two bases, whose arguments differ
        CobreError.__init__(self, "MpiError", f"the backend {backend!r} did not start: {detail}", context)
        self.backend = backend
        self.rank = rank
        self.story = story
        self.source = detail
        self.operation = "init"
        self.setting = None
        self.error_code = self.mpi_error_code = 0
