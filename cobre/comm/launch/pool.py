"""Ranks that are kept: processes of this machine that carry out one call after the other.

Every call gets a new communicator, so that nothing of an earlier one, or of a failure in it, is left; what
takes long, starting Python and loading compiled kernels, is done once. A rank that has ended, or does not end
after a failure of another, is replaced.
"""

from __future__ import annotations

import contextlib
import functools
import os
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, Final

from cobre.comm.descriptors import require_descriptors
from cobre.comm.errors import InitializationFailed
from cobre.comm.launch import processes
from cobre.comm.launch.calls import Call, check_arguments, check_not_importing, make_call
from cobre.comm.launch.launched import Task
from cobre.comm.launch.launching import DESCRIPTORS_OF_A_RANK
from cobre.comm.launch.rank_process import OnProgress, RankProcess
from cobre.comm.launch.watching import settle, watch
from cobre.comm.registry import Transport, make_transport
from cobre.durable import output_errors
from cobre.errors import CobreError, WorkerError

if TYPE_CHECKING:
    from typing_extensions import Self

_DESCRIPTORS_OF_A_LOG: Final = 1
_LONGEST_TAIL: Final = 4000
_OUTPUT_AT_ONCE: Final = {"PYTHONUNBUFFERED": "1", "PYTHONFAULTHANDLER": "1"}
"""So that logs have everything, also of a rank that crashes."""


class RankPool:
    """Processes that are kept, each one rank of a new communicator in every call of :meth:`run`.

    A context manager that ends them. They end with this process too, however it ends, and when nothing
    refers to the pool any more. One call at a time; any thread may make it. A forked child cannot use the
    pool, but make one of its own.

    Parameters
    ----------
    ranks
        Number of processes.
    backend
        ``"shm"``, ``"tcp"`` (on the loopback interface), or another that has a transport.
    pin
        Give each rank CPUs of its own, if there are at least as many CPUs as ranks.
    environment
        Variables that the processes get besides this one's, as these are now.
    log_dir
        Directory where the output of each rank is appended to ``rank-N.log``; by default it is kept in files
        without a name, for :meth:`logs` only.
    initializer, initargs
        Called by each process, replacements too, before its first call; meanwhile the constructor returns.

    Raises
    ------
    ValidationError
        When an argument is wrong.
    BackendNotAvailable
        When the backend's ranks cannot be started from here.
    CobreError
        Kind ``IncompatibleSettings`` when a process makes a pool while it imports the main module of its
        parent: a script that other processes import needs ``if __name__ == "__main__":`` around it.
    """

    def __init__(
        self,
        ranks: int,
        *,
        backend: str = "shm",
        pin: bool = True,
        environment: Mapping[str, str] | None = None,
        log_dir: str | os.PathLike[str] | None = None,
        initializer: Callable[..., object] | None = None,
        initargs: Sequence[Any] = (),
    ) -> None:
        name = type(self).__name__
        check_arguments(name, ranks=ranks)
        check_not_importing(name)
        start = make_call(initializer or _nothing, tuple(initargs), {}, name)
        make_transport(backend, ranks).close()  # refuses a backend that cannot be used, now and not later
        needed = (DESCRIPTORS_OF_A_RANK + _DESCRIPTORS_OF_A_LOG) * ranks
        require_descriptors(backend, needed, f"a pool of {ranks} ranks")
        self._backend = backend
        variables = {**processes.scrubbed(os.environ), **_OUTPUT_AT_ONCE, **(environment or {})}
        slices = processes.cpu_slices(ranks) if pin else None
        cpus = [None if slices is None else tuple(slices[rank]) for rank in range(ranks)]
        logs = _open_logs(ranks, None if log_dir is None else Path(log_dir).absolute())
        self._members = _Members(start, variables, cpus, logs)
        self._finalizer = weakref.finalize(self, self._members.free)
        self._busy = threading.Lock()
        self._members.fill()

    @property
    def ranks(self) -> int:
        """Number of ranks."""
        return len(self._members.cpus)

    @property
    def backend(self) -> str:
        """How they communicate."""
        return self._backend

    @property
    def alive(self) -> int:
        """How many of the processes run at this moment; one that has ended is replaced by the next call."""
        return len(self.pids)

    @property
    def pids(self) -> tuple[int, ...]:
        """Numbers of the processes that run, in the order of ranks."""
        present = [rank.process for rank in self._members.ranks if rank is not None]
        return tuple(process.pid for process in present if process.poll() is None)

    @property
    def closed(self) -> bool:
        """Whether the pool has been closed."""
        return self._members.closed

    def logs(self, rank: int) -> str:
        """Return what a rank, and those that it replaced, have printed so far; also of a closed pool."""
        if not 0 <= rank < self.ranks:
            raise IndexError(f"there is no rank {rank}: ranks are 0 to {self.ranks - 1}")
        return self._members.logs[rank].text()

    def run(
        self,
        function: Callable[..., Any],
        *,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        timeout_s: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> list[Any]:
        """Run ``function(communicator, *args, **kwargs)`` on all ranks and return their results.

        The ranks have the working directory, search path and arguments of this process as they are now, and
        its environment as it was when the pool was made.

        Parameters
        ----------
        function, args, kwargs, on_progress
            As for :func:`cobre.comm.launch.launch`.
        timeout_s
            Give up after so many seconds; those that the processes take to start do not count.

        Returns
        -------
        list
            What the function returned, by rank.

        Raises
        ------
        WorkerError
            When a rank raises, ends, or the time is over; describes the first failure. A rank that has ended,
            or has not come back a second later, is replaced; all are when they could not be joined.
            ``context["log"]`` is the end of its log.
        BaseException
            What ``on_progress`` raises, and Ctrl-C, at once; ranks that are under way then are replaced.
        ValidationError
            When an argument is wrong, or cannot be sent to another process.
        CobreError
            Kind ``PoolInUse`` during another call, ``PoolClosed`` after :meth:`close`, also when that was
            called meanwhile, and ``IncompatibleSettings`` in a forked child.
        """
        self._require_open()
        name = f"{type(self).__name__}.run"
        check_arguments(name, timeout_s=timeout_s)
        call = make_call(function, tuple(args), dict(kwargs or {}), name)
        with self._one_call():
            self._make_ready()
            with make_transport(self._backend, self.ranks) as transport:
                return self._carry_out(call, transport, timeout_s, on_progress)

    def require_usable(self) -> None:
        """Refuse a pool that could not carry out a call now.

        Raises
        ------
        CobreError
            Kind ``PoolInUse``, ``PoolClosed`` or, in a forked child, ``IncompatibleSettings``.
        """
        self._require_open()
        if self._busy.locked():
            raise _in_use()

    def close(self) -> None:
        """End all processes; a call under way fails. Harmless when called again."""
        if os.getpid() != self._members.pid:
            return
        self._members.close()
        if self._busy.acquire(blocking=False):  # else the call under way does the rest
            self._members.disconnect()
            self._busy.release()

    def __enter__(self) -> Self:
        self._require_open()
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self.closed else f"alive={self.alive}"
        return f"{type(self).__name__}(ranks={self.ranks}, backend={self.backend!r}, {state})"

    def _require_open(self) -> None:
        here, home = os.getpid(), self._members.pid
        if here != home:
            raise CobreError(
                "IncompatibleSettings",
                f"the pool belongs to process {home}; this is process {here}, a fork of it",
                {"setting": "pool", "value": home},
                "make a pool in each process that needs one",
            )
        if self.closed:
            raise CobreError("PoolClosed", "the pool has been closed", {}, "make a new one")

    @contextlib.contextmanager
    def _one_call(self) -> Iterator[None]:
        """Refuse a second call meanwhile; afterwards replace what is of no more use."""
        if not self._busy.acquire(blocking=False):
            raise _in_use()
        members = self._members
        try:
            yield
        except BaseException as error:
            # Ranks that cannot be joined any more may be of two versions of the package, one installed since.
            apart = isinstance(error, WorkerError) and isinstance(error.inner, InitializationFailed)
            members.drop(members.present() if apart else members.unfit())
            with contextlib.suppress(OSError):  # the next call tries again, and reports it
                members.fill()
            raise
        finally:
            if members.closed:
                members.disconnect()
            self._busy.release()

    def _make_ready(self) -> None:
        """Replace ranks that have ended since the last call, and wait for those that start."""
        members = self._members
        members.drop([rank for rank in members.unfit() if rank.number not in members.starting or rank.ended])
        members.fill()
        starting = [rank for rank in members.present() if rank.number in members.starting]
        failure = watch(starting)
        if failure is not None:
            self._raise(failure)
        members.starting.clear()

    def _carry_out(
        self, call: Call, transport: Transport, timeout_s: float | None, on_progress: OnProgress | None
    ) -> list[Any]:
        ranks = self._members.present()
        if len(ranks) < self.ranks:  # closed meanwhile
            self._require_open()
        for rank, cpus in zip(ranks, self._members.cpus, strict=True):
            config = transport.config(rank.number)
            task = Task(call.preparation, cpus, transport.backend, config, call.body, last=False)
            rank.give(task, transport.descriptors(rank.number))
        transport.started()
        failure = watch(ranks, on_progress, timeout_s=timeout_s)
        if failure is not None:
            settle(ranks)
            self._raise(failure)
        return [rank.value() for rank in ranks]

    def _raise(self, failure: WorkerError) -> None:
        if self.closed:
            self._require_open()
        log = self.logs(failure.rank)[-_LONGEST_TAIL:]
        if log:
            failure.context["log"] = log
        raise failure from failure.inner


def _in_use() -> CobreError:
    return CobreError(
        "PoolInUse",
        "the pool is in use: it carries out one call at a time",
        {"setting": "pool"},
        "wait for the other call, or make a pool for each of those that run at the same time",
    )


def _nothing() -> None:
    """What a process does at first where there is nothing to do."""


class _Log:
    """What the processes of one rank print, one after the other."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file
        self._start = os.fstat(file.fileno()).st_size

    def text(self) -> str:
        """Return everything."""
        size = os.fstat(self.file.fileno()).st_size - self._start
        return os.pread(self.file.fileno(), max(size, 0), self._start).decode(errors="replace")


def _open_logs(ranks: int, directory: Path | None) -> list[_Log]:
    if directory is None:
        return [_Log(tempfile.TemporaryFile(buffering=0)) for _ in range(ranks)]
    with output_errors(directory):
        directory.mkdir(parents=True, exist_ok=True)
        return [_Log((directory / f"rank-{rank}.log").open("a+b", buffering=0)) for rank in range(ranks)]


class _Members:
    """The processes of a pool, and their logs; knows nothing of the pool, so that this can be collected.

    Attributes
    ----------
    pid
        Of the process that they belong to.
    ranks
        By rank; ``None`` where none could be started, and in a closed pool.
    starting
        Ranks that have yet to report that they are ready for a first call.
    """

    def __init__(
        self,
        start: Call,
        variables: Mapping[str, str],
        cpus: Sequence[tuple[int, ...] | None],
        logs: Sequence[_Log],
    ) -> None:
        self.pid = os.getpid()
        self.closed = False
        self.cpus, self.logs = cpus, logs
        self.ranks: list[RankProcess | None] = [None] * len(cpus)
        self.starting: set[int] = set()
        self._start, self._variables = start, variables
        self._lock = threading.Lock()

    def present(self) -> list[RankProcess]:
        """Return the ranks that have a process."""
        return [rank for rank in self.ranks if rank is not None]

    def unfit(self) -> list[RankProcess]:
        """Return the ranks that have ended, have not come back from their task, or did not start well."""
        for rank in self.present():
            if rank.process.poll() is not None:
                rank.look(None)
        return [
            rank
            for rank in self.present()
            if not rank.reported or rank.ended or (rank.error and rank.number in self.starting)
        ]

    def drop(self, ranks: Iterable[RankProcess]) -> None:
        """End the processes of these ranks."""
        ranks = list(ranks)
        processes.end_processes([rank.process for rank in ranks])
        for rank in ranks:
            rank.connection.close()
            self.ranks[rank.number] = None

    def fill(self) -> None:
        """Start a process for every rank that has none, unless the pool is closed."""
        for number, rank in enumerate(self.ranks):
            if rank is None:
                processes.lasting_thread.call(functools.partial(self._start_rank, number))

    def _start_rank(self, number: int) -> None:
        with self._lock:
            if self.closed:
                return
            rank = RankProcess(number, self._variables, output=self.logs[number].file.fileno())
            self.ranks[number] = rank
            self.starting.add(number)
        call = self._start
        rank.give(Task(call.preparation, self.cpus[number], None, None, call.body, last=False))

    def close(self) -> None:
        """End all processes, and start none any more."""
        with self._lock:
            self.closed = True
        processes.end_processes([rank.process for rank in self.present()])

    def disconnect(self) -> None:
        """Close the pipes of a closed pool, once no call uses them."""
        self.drop(self.present())

    def free(self) -> None:
        """End all processes and close everything; does nothing in a forked child."""
        if os.getpid() == self.pid:
            self.close()
            self.disconnect()
            for log in self.logs:
                log.file.close()
