"""Running on ranks that this process has started, as new processes of this machine (API-02 to API-08)."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any

from cobre.comm.contract import Communicator
from cobre.comm.errors import CollectiveFailed
from cobre.comm.launch import ask
from cobre.errors import WorkerError
from cobre.sddp.ranks.losses import AFTER_A_LOSS
from cobre.stop_signals import watched_signals

if TYPE_CHECKING:
    from cobre.sddp.plan import TrainingPlan
    from cobre.sddp.progress import TrainingResult
    from cobre.sddp.ranks.placement import Processes
    from cobre.sddp.training import OnIteration


def train_on_ranks(
    plan: TrainingPlan, processes: Processes, on_iteration: OnIteration | None = None
) -> TrainingResult:
    """Train a case in several processes and return the result of rank 0.

    The case is sent to them as it is in memory, so that it may have been edited since it was loaded.

    Parameters
    ----------
    on_iteration
        Called in this process; the ranks wait for what it returns, and stop if that is true.

    Raises
    ------
    WorkerError
        When a rank fails; ``inner`` is what it raised.
    """
    if plan.storage.opened is not None:  # of no use to the ranks, which get the plan without it
        plan.storage.opened.release()
    result: TrainingResult = run_on_ranks(_train_rank, processes, plan, on_iteration, AFTER_A_LOSS)
    return result


def run_on_ranks(
    function: Callable[[Communicator, Any], Any],
    processes: Processes,
    plan: Any,
    callback: Callable[[Any], object] | None,
    after_a_loss: str,
) -> Any:
    """Call ``function(communicator, plan)`` on all ranks and return the result of rank 0.

    Parameters
    ----------
    callback
        Called in this process with what rank 0 reports at each boundary (:class:`StopRequest`); a true return
        value stops all ranks there, and so do an error, which is raised when they have stopped, and Ctrl-C.
    after_a_loss
        What to do when a rank is lost, for the message.

    Raises
    ------
    WorkerError
        When a rank fails.
    """
    try:
        with _Boundaries(callback) as boundaries:
            return processes.call(function, (plan,), lambda rank, item: boundaries.ask(item))[0]
    except WorkerError as error:
        killed = error.exit_code is not None and error.exit_code < 0
        if killed or isinstance(error.inner, CollectiveFailed):
            error.suggestion = after_a_loss
        raise


class _Boundaries:
    """What happens in the process that has started a run where its ranks could stop.

    Nothing is lost of what the ranks have done: when the caller's function fails, or the user presses Ctrl-C,
    they stop at a boundary, and the error is raised afterwards. A second Ctrl-C does not wait for that.
    """

    def __init__(self, callback: Callable[[Any], object] | None) -> None:
        self._callback = callback
        self._error: Exception | None = None
        self._interrupted = False
        self._handler: Any = None

    def ask(self, item: Any) -> bool:
        """Return whether the ranks shall stop."""
        asked = False
        if self._callback is not None and self._error is None:
            try:
                asked = bool(self._callback(item))
            except Exception as error:
                self._error = error
        return asked or self._interrupted or self._error is not None

    def __enter__(self) -> _Boundaries:
        # one that somebody else has set, such as the command line's, or asyncio's, does what it does
        if (
            threading.current_thread() is threading.main_thread()
            and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        ):
            self._handler = signal.signal(signal.SIGINT, self._interrupt)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._handler is not None:
            signal.signal(signal.SIGINT, self._handler)
        if kind is None and self._interrupted:
            raise KeyboardInterrupt
        if kind is None and self._error is not None:
            raise self._error

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        if self._interrupted:
            raise KeyboardInterrupt
        self._interrupted = True


class StopRequest:
    """What may ask a rank to stop at its next boundary: the process that has started it, or a signal to it.

    A second signal ends it. Entered while the rank runs.
    """

    def __init__(self, comm: Communicator) -> None:
        self._rank = comm.rank
        self._came = False
        self._handlers: dict[int, Any] = {}

    def asked(self, item: Any) -> bool:
        """Return whether this rank is asked to stop; rank 0 reports ``item``, for which the others wait."""
        return (self._rank == 0 and ask(item)) or self._came

    def __enter__(self) -> StopRequest:
        self._handlers = {number: signal.signal(number, self._note) for number in watched_signals()}
        return self

    def __exit__(self, *exception: object) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._came = True
        for other in self._handlers:
            signal.signal(other, signal.SIG_DFL)


def _train_rank(comm: Communicator, plan: TrainingPlan) -> TrainingResult | None:
    from cobre.sddp.training import train_together

    with StopRequest(comm) as stop:
        result = train_together(plan, comm, stop.asked)
    return result if comm.rank == 0 else None
