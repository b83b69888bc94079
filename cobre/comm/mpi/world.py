"""This process's part in an MPI job: start, identity, and an orderly end (MPI-01 to MPI-06).

mpi4py starts MPI when it is imported and ends it after the interpreter's exit handlers. Communicators and
windows have to be freed before that, so the world frees what is left when Python exits, or earlier when the
program ends MPI itself. A rank that fails with an uncaught exception ends the whole job: it would otherwise
wait in MPI's own end for peers that wait for it in a collective.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import sys
import weakref
from collections.abc import Iterable
from types import TracebackType
from typing import Any, ClassVar, Final, NoReturn, Protocol

import numpy as np
from numpy.typing import NDArray

from cobre.comm.contract import HostRanks, MpiInfo, Topology
from cobre.comm.environment import advertised_size, slurm_info
from cobre.comm.errors import InitializationFailed
from cobre.comm.launch.last_words import deliver_output
from cobre.comm.mpi.calls import FUNCTION_NAMES
from cobre.comm.mpi.scratch import make_scratch

_NAME_BYTES: Final = 256
_INTERRUPT_EXIT_CODE: Final = 130


class Member(Protocol):
    """What the world ends before MPI ends."""

    def leave_world(self) -> None:
        """Free everything of MPI; called on all ranks in the same order."""


class Freeable(Protocol):
    """A thing of MPI that all ranks free together."""

    def free(self) -> None:
        """Free it."""


class MpiWorld:
    """MPI in this process; one for all communicators. Get it from :meth:`get`.

    Attributes
    ----------
    MPI
        The module ``mpi4py.MPI``.
    world, node
        MPI's world, and the ranks of it that share memory with this one.
    scratch
        Memory for the elements that are folded; one for all communicators, as they are used in turn.
    topology
        Where the ranks run.
    """

    _instance: ClassVar[MpiWorld | None] = None

    def __init__(self) -> None:
        self._pid = os.getpid()
        self.MPI, self._started_here = _start()
        self.world = self.MPI.COMM_WORLD
        _check_size(self.world.size)
        self.node = self.world.Split_type(self.MPI.COMM_TYPE_SHARED, key=self.world.rank)
        self.scratch = make_scratch(self.MPI, self.world, self.node)
        self.topology = self._find_hosts()
        self.function_addresses = self._find_functions()
        self._members: list[weakref.ref[Any]] = []
        self._abandoned: list[Any] = []
        self._free_at_exit: list[Freeable] = []
        self._exit_code = 0
        self._ended = False
        self._guard = _UncaughtGuard(self)
        self._keyval = self.MPI.Comm.Create_keyval(delete_fn=self._before_finalize)
        self.MPI.COMM_SELF.Set_attr(self._keyval, True)
        atexit.register(self._at_exit)

    @classmethod
    def get(cls) -> MpiWorld:
        """Start MPI, if this has not been done, and return the world; collective the first time.

        Raises
        ------
        InitializationFailed
            When MPI does not start, has already ended, or its number of ranks is not the launcher's.
        """
        if cls._instance is None:
            cls._instance = cls()
        elif cls._instance.has_ended:
            raise InitializationFailed(
                "mpi",
                "MPI has ended in this process, or it is a forked child of a rank; MPI starts once only",
            )
        return cls._instance

    @property
    def has_ended(self) -> bool:
        """Whether MPI can no longer be called: it has ended, or this is a forked child, which is no rank."""
        return self._ended or os.getpid() != self._pid or bool(self.MPI.Is_finalized())

    @property
    def shares_memory(self) -> bool:
        """Whether all ranks run on one host."""
        return bool(self.node.size == self.world.size)

    def handle(self, thing: Any) -> int:
        """Return MPI's handle of a communicator, datatype or operation as a signed 64-bit number."""
        number = int(self.MPI._handleof(thing)) & 0xFFFF_FFFF_FFFF_FFFF
        return number - (1 << 64) if number >= 1 << 63 else number

    def join(self, member: Member) -> None:
        """Have a communicator freed before MPI ends, and the job ended when this rank fails."""
        self._members.append(weakref.ref(member))
        self._guard.install()

    def leave(self, member: Member) -> None:
        """Forget a communicator that has freed everything."""
        self._members = [known for known in self._members if known() not in (None, member)]
        if not self._members:
            self._guard.remove()

    def abandon(self, *things: Any) -> None:
        """Keep things of MPI that are never freed, because the other ranks might not join in it."""
        self._abandoned.extend(things)

    def free_at_exit(self, things: Iterable[Freeable]) -> None:
        """Free things when Python exits, and no array can be read any more; the same ones on all ranks."""
        self._free_at_exit.extend(things)

    def note_exit(self, exception: BaseException | None) -> None:
        """Remember that this rank is leaving with an exit code: the others must not wait for it."""
        if isinstance(exception, SystemExit) and exception.code not in (None, 0):
            self._exit_code = exception.code if isinstance(exception.code, int) else 1

    def abort(self, code: int) -> NoReturn:
        """End all ranks at once."""
        deliver_output()  # the launcher may end the job before it has read why
        self.world.Abort(code)
        os._exit(code)  # MPICH may return when the launcher is slow to end this process

    def _at_exit(self) -> None:
        if self._exit_code and not self.has_ended and self.world.size > 1:
            self.abort(self._exit_code)
        if self.has_ended:
            return
        for thing in self._free_at_exit:
            thing.free()
        self.MPI.COMM_SELF.Delete_attr(self._keyval)
        if self._started_here:
            self.MPI.Finalize()

    def _before_finalize(self, *arguments: Any) -> None:
        """Free everything; MPI calls this first when it ends."""
        if self._ended:
            return
        for reference in self._members:
            member = reference()
            if member is not None:
                member.leave_world()
        self._members.clear()
        self._guard.remove()
        self.node.Free()
        self._ended = True

    def _find_functions(self) -> NDArray[np.int64]:
        # a symbol is looked for in the extension and what it depends on: the very MPI that mpi4py uses
        library = ctypes.CDLL(self.MPI.__file__)
        addresses = [ctypes.cast(getattr(library, name), ctypes.c_void_p).value for name in FUNCTION_NAMES]
        return np.array(addresses, np.int64)

    def _find_hosts(self) -> Topology:
        mine = np.zeros(_NAME_BYTES, np.uint8)
        name = np.frombuffer(self.MPI.Get_processor_name().encode()[:_NAME_BYTES], np.uint8)
        mine[: len(name)] = name
        names = np.zeros((self.world.size, _NAME_BYTES), np.uint8)
        self.world.Allgather(mine, names)
        ranks: dict[str, list[int]] = {}
        for rank in range(self.world.size):
            ranks.setdefault(names[rank].tobytes().rstrip(b"\0").decode(errors="replace"), []).append(rank)
        hosts = tuple(HostRanks(host, tuple(members)) for host, members in ranks.items())
        return Topology("mpi", self.world.size, hosts, slurm_info(), self._find_mpi())

    def _find_mpi(self) -> MpiInfo:
        levels = {
            self.MPI.THREAD_FUNNELED: "funneled",
            self.MPI.THREAD_SERIALIZED: "serialized",
            self.MPI.THREAD_MULTIPLE: "multiple",
        }
        library = self.MPI.Get_library_version().strip("\0 \n").splitlines()[0]
        version, subversion = self.MPI.Get_version()
        return MpiInfo(
            " ".join(library.split(",")[0].replace("Version:", "").split()),
            f"{version}.{subversion}",
            levels.get(self.MPI.Query_thread(), "single"),
        )


class _UncaughtGuard:
    """Ends the whole job at an uncaught exception of this rank (as ``python -m mpi4py`` does)."""

    def __init__(self, world: MpiWorld) -> None:
        self._world = world
        self._previous: Any = None

    def install(self) -> None:
        if self._previous is None:
            self._previous = sys.excepthook
            sys.excepthook = self._hook

    def remove(self) -> None:
        if self._previous is not None and sys.excepthook == self._hook:
            sys.excepthook = self._previous
            self._previous = None

    def _hook(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        try:
            self._previous(kind, error, trace)
        finally:
            if not self._world.has_ended:
                self._world.abort(_INTERRUPT_EXIT_CODE if issubclass(kind, KeyboardInterrupt) else 1)


def _start() -> tuple[Any, bool]:
    """Import mpi4py.MPI, which starts MPI at the thread level of MPI-02; return whether it started here."""
    if "mpi4py.MPI" not in sys.modules:
        try:
            import mpi4py
        except ImportError as error:
            raise InitializationFailed("mpi", f"mpi4py cannot be imported: {error}") from error
        mpi4py.rc.thread_level = "funneled"
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:  # no MPI library, or one that does not start
        raise InitializationFailed("mpi", error) from error
    if MPI.Is_finalized():
        raise InitializationFailed("mpi", "MPI has ended in this process, and starts once only")
    start = not MPI.Is_initialized()  # mpi4py can be configured not to
    if start:
        MPI.Init_thread(MPI.THREAD_FUNNELED)
    if MPI.Query_thread() < MPI.THREAD_FUNNELED:
        raise InitializationFailed("mpi", "MPI was started without support for threads (MPI_THREAD_FUNNELED)")
    if not MPI.Is_thread_main():
        raise InitializationFailed("mpi", "only the thread that started MPI may use it")
    return MPI, start


def _check_size(size: int) -> None:
    """Refuse a world that is not the launcher's: N singletons would overwrite each other (MPI-06)."""
    advertised = advertised_size()
    if advertised is not None and advertised[0] != size:
        raise InitializationFailed(
            "mpi",
            f"the launcher started {advertised[0]} processes ({advertised[1]}), but this MPI sees {size}; "
            "it is another MPI than the launcher's, or the launcher does not start MPI (srun --mpi=...)",
        )
