"""Running a study from a coroutine: in a thread of its own, with callbacks in the event loop's."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import inspect
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import wait
from typing import Any, Final, TypeVar

T = TypeVar("T")

_LOOK_AGAIN_S: Final = 0.5


async def call_in_thread(
    function: Callable[..., T], arguments: Mapping[str, Any], boundary: str, *callbacks: str
) -> T:
    """Call a method of a study in a new thread, and wait until it has ended, however this coroutine ends.

    A thread of its own, and none of the loop's executor: that has a few, and a run may take hours.

    Parameters
    ----------
    function, arguments
        What to call.
    boundary
        The argument that is called where the run could stop, and stops it by a true return value. It also
        stops when this coroutine is cancelled, the loop is closed, or the program ends.
    callbacks
        Other arguments that are functions. All of them are called in the thread of the loop, and may be
        coroutine functions; the run waits for them.

    Raises
    ------
    asyncio.CancelledError
        When this coroutine was cancelled, after the run has ended. An error of the run is its cause.
    """
    run = _Run(asyncio.get_running_loop())
    given = {name: arguments[name] for name in (boundary, *callbacks) if arguments.get(name) is not None}
    wrapped = {name: functools.partial(run.ask, value) for name, value in given.items() if callable(value)}
    options = {**arguments, **wrapped}
    if boundary not in given or callable(given[boundary]):
        options[boundary] = functools.partial(run.stops, given.get(boundary))
    work = functools.partial(function, **options)
    thread = threading.Thread(target=run.carry_out, args=(contextvars.copy_context(), work), name="cobre-run")
    thread.start()
    try:
        await asyncio.shield(run.ended)
    except asyncio.CancelledError as cancelled:
        run.stopping = True
        await run.end()
        error = run.ended.exception()
        if error is not None:
            raise cancelled from error
        raise
    finally:
        run.stopping = True  # also where nobody waits any more
        if run.ended.done():
            thread.join()
    result: T = run.ended.result()
    return result


class _Run:
    """One run, as its thread and the loop see it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.ended: asyncio.Future[Any] = loop.create_future()
        self.stopping = False

    # In the thread of the loop.

    async def end(self) -> None:
        """Wait for the end of the run; being cancelled again changes nothing."""
        while not self.ended.done():
            try:
                await asyncio.wait([self.ended])
            except asyncio.CancelledError:
                continue

    def _settle(self, result: Any, error: BaseException | None) -> None:
        if error is None:
            self.ended.set_result(result)
        else:
            self.ended.set_exception(error)

    # In the thread of the run.

    def carry_out(self, context: contextvars.Context, work: Callable[[], Any]) -> None:
        """Do the work, and hand its result or error to the loop."""
        result, error = None, None
        try:
            result = context.run(work)
        except BaseException as raised:
            error = raised
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self.loop.call_soon_threadsafe(self._settle, result, error)

    def stops(self, callback: Callable[[Any], object] | None, item: Any) -> bool:
        """Return whether the run shall stop where it is."""
        if not self._must_stop() and callback is not None and self.ask(callback, item):
            return True
        return self._must_stop()

    def ask(self, callback: Callable[[Any], object], item: Any) -> object:
        """Call a function in the thread of the loop, unless the run must stop; return what it returns."""
        if self._must_stop():
            return None
        answer = asyncio.run_coroutine_threadsafe(_answer(callback, item), self.loop)
        while not wait([answer], _LOOK_AGAIN_S).done:
            if self._must_stop():
                answer.cancel()
                return None
        return answer.result()

    def _must_stop(self) -> bool:
        return self.stopping or self.loop.is_closed() or not threading.main_thread().is_alive()


async def _answer(callback: Callable[[Any], object], item: Any) -> object:
    answer = callback(item)
    return await answer if inspect.isawaitable(answer) else answer
