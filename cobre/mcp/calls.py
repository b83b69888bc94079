"""Carries tools out: in processes that can be ended, with limits of time, and jobs followed with progress."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final

import anyio
import anyio.to_process
import anyio.to_thread
from pydantic import ValidationError

from cobre.errors import CobreError
from cobre.mcp.catalogue import Outcome, carry_out, carry_out_apart, failure
from cobre.mcp.contract import Arguments, Settings, Tool
from cobre.mcp.jobs.store import JobStore
from cobre.mcp.texts import plain
from cobre.mcp.tools.jobs import job_answer

Report = Callable[[float, "float | None", str], Awaitable[None]]
"""Reports progress: how far, of how much (``None`` = unknown), and in words."""

_POLL_S: Final = 0.2
_MOST_FAULTS: Final = 20


class Calls:
    """Carries tools out, a limited number of them at a time.

    Attributes
    ----------
    settings
        Of the server.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._turns = anyio.CapacityLimiter(settings.workers)
        # Waiting for a turn does not count as time of a call, so the pool itself has no limit.
        self._processes = anyio.CapacityLimiter(math.inf)

    async def call(self, tool: Tool, given: dict[str, Any], report: Report) -> Outcome:
        """Check the arguments of a call, carry it out, and follow the job that it is about."""
        try:
            arguments = tool.arguments.model_validate(given)
        except ValidationError as error:
            return _invalid(tool, error)
        try:
            if tool.writes:
                self.settings.require_write(tool.title.lower())
        except CobreError as error:
            return Outcome(str(error), None, self.settings.hider.problems(error))
        outcome = await self._carry_out(tool, arguments)
        if outcome.log:
            print(outcome.log, file=sys.stderr, flush=True)
        wait_s = getattr(arguments, "wait_s", 0.0)
        if tool.follows and outcome.content is not None and wait_s > 0.0:
            return await self._follow(outcome.content["job"], wait_s, report)
        return outcome

    async def _carry_out(self, tool: Tool, arguments: Arguments) -> Outcome:
        if tool.place == "thread":
            return await anyio.to_thread.run_sync(carry_out, tool.name, self.settings, arguments)
        async with self._turns:
            try:
                with anyio.fail_after(tool.timeout_s):
                    return await anyio.to_process.run_sync(
                        carry_out_apart,
                        tool.name,
                        self.settings,
                        arguments,
                        cancellable=True,
                        limiter=self._processes,
                    )
            except TimeoutError:
                return failure(
                    "Timeout",
                    f"{tool.name} took more than {tool.timeout_s:g} s and was ended",
                    "ask for less",
                )
            except anyio.BrokenWorkerProcess as error:
                print(f"cobre mcp: {tool.name}: {error!r}", file=sys.stderr)
                return failure(
                    "WorkerLost", f"the process that carried out {tool.name} ended", "often a lack of memory"
                )

    async def _follow(self, job: str, wait_s: float, report: Report) -> Outcome:
        """Wait for the end of a job, and report its progress; what is reported grows with every report."""
        store = JobStore(self.settings)
        deadline = time.monotonic() + wait_s
        reported = 0
        while True:
            state = await anyio.to_thread.run_sync(store.state, job)
            if state.progress.done > reported:
                reported = state.progress.done
                await report(reported, state.progress.total, state.progress.message())
            if state.ended or time.monotonic() >= deadline:
                answer = job_answer(self.settings, state)
                return Outcome(answer.headline(), plain(answer.model_dump(mode="json")))
            await anyio.sleep(min(_POLL_S, max(0.0, deadline - time.monotonic())))


def _invalid(tool: Tool, error: ValidationError) -> Outcome:
    """Return the outcome of arguments that do not fit, each fault with its place."""
    problems = []
    for fault in error.errors(include_url=False, include_context=False)[:_MOST_FAULTS]:
        place = ".".join(str(part)[:80] for part in fault["loc"])
        known = ", ".join(tool.input_schema.get("properties", {}))
        extra = fault["type"] == "extra_forbidden"
        problems.append(
            {
                "kind": "InvalidArgument",
                "message": f"{place}: {fault['msg']}" if place else str(fault["msg"]),
                "context": {"argument": place},
                "suggestion": f"{tool.name} takes: {known}" if extra else None,
            }
        )
    listed = "; ".join(str(problem["message"]) for problem in problems[:3])
    return Outcome(f"the arguments of {tool.name} do not fit: {listed}", None, problems)
