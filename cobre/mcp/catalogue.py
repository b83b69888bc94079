"""All tools by name, and how one is carried out in whatever process does it."""

from __future__ import annotations

import contextlib
import os
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final

from cobre.errors import CobreError
from cobre.mcp.contract import Arguments, Settings, Tool
from cobre.mcp.texts import plain
from cobre.mcp.tools import case, editing, explain, jobs, policy, results

TOOLS: Final[dict[str, Tool]] = {
    tool.name: tool for module in (case, editing, jobs, results, policy, explain) for tool in module.TOOLS
}
"""In the order in which clients see them."""


@dataclass(frozen=True)
class Outcome:
    """What became of a call.

    Attributes
    ----------
    headline
        The answer, or the error, in a sentence.
    content
        The answer as JSON; ``None`` where it failed.
    problems
        Why it failed.
    log
        For whoever runs the server.
    """

    headline: str
    content: dict[str, Any] | None
    problems: list[dict[str, Any]] = field(default_factory=list)
    log: str = ""


def find_tool(name: str) -> Tool | None:
    """Return a tool by its name, also as it is in the protocol's older texts.

    >>> find_tool("cobre/query-results").name
    'cobre_query_results'
    """
    return TOOLS.get(name.replace("/", "_").replace("-", "_"))


def carry_out(name: str, settings: Settings, arguments: Arguments) -> Outcome:
    """Do what a tool does; never raises what a client could cause."""
    tool = TOOLS[name]
    try:
        answer = tool.work(settings, arguments)
        return Outcome(answer.headline(), plain(answer.model_dump(mode="json", by_alias=True)))
    except CobreError as error:
        problems = settings.hider.problems(error)
        return Outcome(settings.hider.text(str(error)), None, problems)
    except MemoryError:
        return failure("OutOfMemory", "there is not enough memory for this")
    except Exception:
        found = failure("InternalError", f"{name} failed: a fault of cobre; the server's log has the details")
        return replace(found, log=traceback.format_exc())


def carry_out_apart(name: str, settings: Settings, arguments: Arguments) -> Outcome:
    """Do what a tool does in a process of its own, which talks to the server by its standard output."""
    with _silenced():
        return carry_out(name, settings, arguments)


def failure(kind: str, message: str, suggestion: str | None = None) -> Outcome:
    """Return the outcome of a call that failed."""
    problem: dict[str, Any] = {"kind": kind, "message": message, "context": {}, "suggestion": suggestion}
    return Outcome(f"{message} ({suggestion})" if suggestion else message, None, [problem])


@contextlib.contextmanager
def _silenced() -> Iterator[None]:
    """Keep what libraries print out of the protocol, and out of a standard error that nobody reads."""
    saved = os.dup(1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        for descriptor in (1, 2):
            os.dup2(nowhere, descriptor)
        yield
    finally:
        os.dup2(saved, 1)
        os.close(saved)
        os.close(nowhere)
