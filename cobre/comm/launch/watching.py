"""Waiting for ranks that have been given a task: until all have carried it out, or one has failed."""

from __future__ import annotations

import math
import selectors
import time
from collections.abc import Sequence
from typing import Final

from cobre.comm.errors import CollectiveFailed, InvalidCommunicator
from cobre.comm.launch.processes import exit_watches
from cobre.comm.launch.rank_process import OnProgress, RankProcess
from cobre.errors import WorkerError

# A rank may report the death of a peer before the launcher sees it; wait this long for the cause.
_CAUSE_SECONDS: Final = 1.0
_POLL_SECONDS: Final = 0.1


def watch(
    ranks: Sequence[RankProcess], on_progress: OnProgress | None = None, *, timeout_s: float | None = None
) -> WorkerError | None:
    """Wait until all ranks are done with their tasks, or one has failed; return the failure.

    Of several failures it is one that is no consequence of another's, if there is one. Other ranks may not
    be done then.

    Raises
    ------
    WorkerError
        When the time is over.
    """
    deadline = math.inf if timeout_s is None else time.monotonic() + timeout_s
    hopeless = math.inf
    with _Watches(ranks) as watches:
        while not all(rank.done for rank in ranks) and _cause(ranks) is None:
            now = time.monotonic()
            if now >= hopeless:
                break
            if now >= deadline:
                raise _too_late(ranks, timeout_s)
            watches.look(min(deadline, hopeless) - now, on_progress)
            if math.isinf(hopeless) and any(rank.error for rank in ranks):
                hopeless = time.monotonic() + _CAUSE_SECONDS
    return _cause(ranks) or next((rank.error for rank in ranks if rank.error is not None), None)


def settle(ranks: Sequence[RankProcess]) -> None:
    """Wait, after a failure, for ranks that fail of it in their turn; no longer than they need as a rule."""
    deadline = time.monotonic() + _CAUSE_SECONDS
    with _Watches(ranks) as watches:
        while not all(rank.done for rank in ranks) and (left := deadline - time.monotonic()) > 0.0:
            watches.look(left, None)


class _Watches:
    """What becomes readable when a rank sends something or ends."""

    def __init__(self, ranks: Sequence[RankProcess]) -> None:
        self._ranks = ranks
        # The number of one that has been waited for may be another process's; its pipe is at its end.
        self._running = [rank for rank in ranks if rank.process.returncode is None]
        self._exits = exit_watches([rank.process for rank in self._running])
        self._selector = selectors.DefaultSelector()

    def __enter__(self) -> _Watches:
        descriptors = self._exits.__enter__()
        self._all_seen = len(descriptors) == len(self._running)
        for descriptor, place in descriptors.items():
            self._selector.register(descriptor, selectors.EVENT_READ, self._running[place])
        for rank in self._ranks:
            self._selector.register(rank.connection, selectors.EVENT_READ, rank)
            self._forget(rank)
        return self

    def __exit__(self, *exception: object) -> None:
        self._selector.close()
        self._exits.__exit__(None, None, None)

    def look(self, patience_s: float, on_progress: OnProgress | None) -> None:
        """Wait until something happens, at most so long, and take note of it."""
        patience_s = patience_s if self._all_seen else min(patience_s, _POLL_SECONDS)
        self._selector.select(None if math.isinf(patience_s) else patience_s)
        for rank in self._ranks:
            rank.look(on_progress)
            self._forget(rank)

    def _forget(self, rank: RankProcess) -> None:
        """Stop polling a descriptor at its end of file: it would be ready forever."""
        for key in list(self._selector.get_map().values()):
            if key.data is rank and (rank.ended or (rank.silent and key.fileobj is rank.connection)):
                self._selector.unregister(key.fileobj)


def _cause(ranks: Sequence[RankProcess]) -> WorkerError | None:
    """Return a failure whose kind is not a consequence of another rank's failure."""
    for rank in ranks:
        if rank.error is not None and not isinstance(
            rank.error.inner, (CollectiveFailed, InvalidCommunicator)
        ):
            return rank.error
    return None


def _too_late(ranks: Sequence[RankProcess], timeout_s: float | None) -> WorkerError:
    running = [rank.number for rank in ranks if not rank.done]
    names = ", ".join(map(str, running))
    text = f"after {timeout_s} s {'rank' if len(running) == 1 else 'ranks'} {names} had not ended"
    return WorkerError(running[0], None, TimeoutError(text), message=text)
