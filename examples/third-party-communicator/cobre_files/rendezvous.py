"""How ranks come together in the directory, know of each other's end, and leave it.

A rank's place is the file ``rank.<r>``, on which its process holds a lock. The system frees the lock when the
process ends, however that happens, so nobody has to ask who is alive.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import socket
import stat
import time
from pathlib import Path

import numpy as np

from cobre.comm.errors import InitializationFailed, RankLost
from cobre.comm.status import PEER_FAILED
from cobre_files.backend import FilesConfig
from cobre_files.layout import HEADER_WORDS

_LOOK_AGAIN_S = 0.01
_HOST_BYTES = 255
_OWN_FILES = re.compile(r"(rank|new|[01])\.\d+|start\.\d+\.\d+|abort")


class Place:
    """One rank's place in the directory, from joining to leaving.

    Raises
    ------
    InitializationFailed
        When the directory cannot be used, the place is taken, or a rank does not come.
    RankLost
        When a rank that has joined ends before all are there.
    """

    def __init__(self, config: FilesConfig) -> None:
        self.directory = Path(config.directory).absolute()
        self._rank, self._size = config.rank, config.size
        self._own = -1
        self._peers: dict[int, int] = {}
        try:
            self._take_place()
            self._await_others(config.connect_timeout_s)
            self.hosts = [self._host_of(r) for r in range(self._size)]
        except OSError as error:
            self.leave()
            place = str(self.directory)
            raise InitializationFailed("files", error, error.errno or 0, setting=place) from error
        except BaseException:
            self.leave()
            raise

    @property
    def locks(self) -> list[int]:
        """Descriptors of the other ranks' files, by rank; -1 for this rank."""
        return [self._peers.get(r, -1) for r in range(self._size)]

    def tell(self, reason: int, rank: int) -> None:
        """Leave word for the others why the job is over, unless another has done so."""
        words = np.zeros(HEADER_WORDS, np.int64)
        words[:2] = reason, rank
        new = self.directory / f"new.{self._rank}"
        with contextlib.suppress(OSError):  # they notice that this process has left
            new.write_bytes(words.tobytes())
            try:
                os.link(new, self.directory / "abort")
            finally:
                new.unlink()

    def leave(self) -> None:
        """Give the place back; whoever finds no other rank there removes the directory. Harmless twice."""
        peers, own = self._peers, self._own
        self._peers, self._own = {}, -1
        if own >= 0:
            os.close(own)
        alone = own >= 0 and all(_is_free(lock) for lock in peers.values())
        for lock in peers.values():
            os.close(lock)
        if alone:
            self._remove()

    def drop(self) -> None:
        """In a forked child: close what it has inherited, without a word to anybody."""
        for lock in (self._own, *self._peers.values()):
            if lock >= 0:
                os.close(lock)
        self._peers, self._own = {}, -1

    def _take_place(self) -> None:
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = self.directory.stat()
        if status.st_uid != os.geteuid() or status.st_mode & 0o077:
            mode = f"{stat.S_IMODE(status.st_mode):04o}"
            text = f"{self.directory} is not this user's alone (mode {mode}); use 0700"
            raise InitializationFailed("files", text, setting=str(self.directory))
        start = self.directory / f"start.{self._rank}.{os.getpid()}"
        self._own = os.open(start, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._own, fcntl.LOCK_EX)  # before the others can see the file
            os.write(self._own, socket.gethostname().encode()[:_HOST_BYTES])
            os.link(start, self.directory / f"rank.{self._rank}")
        except FileExistsError:
            os.close(self._own)
            self._own = -1
            text = f"{self.directory} has a rank {self._rank} already: of this job, or left by another"
            raise InitializationFailed("files", text, setting=str(self.directory)) from None
        finally:
            start.unlink(missing_ok=True)

    def _await_others(self, patience_s: float) -> None:
        deadline = time.monotonic() + patience_s
        while True:
            missing = []
            for r in range(self._size):
                if r != self._rank and r not in self._peers:
                    try:
                        self._peers[r] = os.open(self.directory / f"rank.{r}", os.O_RDONLY | os.O_CLOEXEC)
                    except FileNotFoundError:
                        missing.append(r)
            if not missing:
                return
            lost = [r for r, lock in self._peers.items() if _is_free(lock)]
            culprit = self._culprit()  # after the look at the locks: who gives up says why before it leaves
            if lost or culprit is not None:
                culprit = lost[0] if culprit is None else culprit
                self.tell(int(PEER_FAILED), culprit)
                raise RankLost("files", culprit, "ended while the ranks were joining")
            if time.monotonic() > deadline:
                names = ", ".join(map(str, missing))
                self.tell(int(PEER_FAILED), missing[0])
                raise InitializationFailed("files", f"rank {names} did not join within {patience_s:g} s")
            time.sleep(_LOOK_AGAIN_S)

    def _culprit(self) -> int | None:
        try:
            words = np.frombuffer((self.directory / "abort").read_bytes(), np.int64)
        except FileNotFoundError:
            return None
        return int(words[1])

    def _host_of(self, rank: int) -> str:
        return os.pread(self._peers.get(rank, self._own), _HOST_BYTES, 0).decode()

    def _remove(self) -> None:
        """Remove what ranks have made, and the directory if nothing else is in it."""
        with contextlib.suppress(OSError):  # another rank that leaves removes the same
            for path in list(self.directory.iterdir()):
                if _OWN_FILES.fullmatch(path.name):
                    path.unlink(missing_ok=True)
            self.directory.rmdir()


def _is_free(lock: int) -> bool:
    """Whether nobody holds the lock behind a descriptor of another rank's file."""
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    fcntl.flock(lock, fcntl.LOCK_UN)
    return True
