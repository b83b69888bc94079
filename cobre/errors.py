"""One exception hierarchy: every error has a kind, a message, a place and a suggestion.

An exception that reaches the user is a :class:`CobreError`. Where one operation may find many faults
at once (loading a case), the exception carries one :class:`Problem` for each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Problem:
    """One fault: what kind, what is wrong, where, and what to do about it.

    Attributes
    ----------
    kind
        A stable name for programs to test, such as ``InvalidReference``.
    message
        One sentence for people.
    context
        Where: for a case ``file``, ``entity``, ``field`` and ``value`` as far as they apply.
    suggestion
        What to do, or ``None`` where there is no useful suggestion.

    >>> Problem("OutOfRange", "the cost is negative", {"entity": "thermal 2", "value": -1.0}).as_dict()
    ... # doctest: +NORMALIZE_WHITESPACE
    {'kind': 'OutOfRange', 'message': 'the cost is negative',
     'context': {'entity': 'thermal 2', 'value': -1.0}, 'suggestion': None}
    """

    kind: str
    message: str
    context: Mapping[str, Any] = field(default_factory=dict)
    suggestion: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON form of the error record (kind, message, context, suggestion)."""
        return {
            "kind": self.kind,
            "message": self.message,
            "context": dict(self.context),
            "suggestion": self.suggestion,
        }


class CobreError(Exception):
    """Base of all errors of cobre.

    Attributes
    ----------
    on_all_ranks
        Whether the ranks of a job have agreed to raise it together; all then report the same.
    """

    on_all_ranks: bool = False

    def __init__(
        self,
        kind: str,
        message: str,
        context: Mapping[str, Any] | None = None,
        suggestion: str | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.context = dict(context or {})
        self.suggestion = suggestion

    @property
    def problems(self) -> tuple[Problem, ...]:
        """The faults behind this error; one unless a subclass overrides it."""
        return (Problem(self.kind, self.message, self.context, self.suggestion),)

    def __str__(self) -> str:
        return f"{self.message} ({self.suggestion})" if self.suggestion else self.message

    def __reduce__(self) -> tuple[Any, ...]:
        # By its fields: the constructors of subclasses take other arguments than the message.
        return _rebuild_error, (type(self), self.args, dict(self.__dict__))


def _rebuild_error(kind: type[CobreError], arguments: tuple[Any, ...], fields: dict[str, Any]) -> CobreError:
    error = kind.__new__(kind, *arguments)
    error.args = arguments
    error.__dict__.update(fields)
    return error


class ValidationError(CobreError, ValueError):
    """A case (or an argument) is wrong; carries every fault that was found.

    >>> faults = [Problem("OutOfRange", "a is negative"), Problem("OutOfRange", "b is negative")]
    >>> error = ValidationError(faults, source="stages.json")
    >>> print(error)
    2 problems in stages.json; first: a is negative
    >>> [problem.message for problem in error.problems]
    ['a is negative', 'b is negative']
    """

    def __init__(self, problems: Sequence[Problem], source: str = "case") -> None:
        if not problems:
            raise ValueError("a ValidationError needs at least one problem")
        first = problems[0]
        count = len(problems)
        message = first.message if count == 1 else f"{count} problems in {source}; first: {first.message}"
        super().__init__(first.kind, message, first.context, first.suggestion)
        self._problems = tuple(problems)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """All faults, in the order they were found."""
        return self._problems


class SolverError(CobreError, RuntimeError):
    """A stage LP could not be solved."""

    def __init__(
        self,
        message: str,
        *,
        stage: int,
        iteration: int,
        scenario: int,
        opening: int,
        solver_status: str,
        context: Mapping[str, Any] | None = None,
        suggestion: str | None = None,
    ) -> None:
        place = {
            "stage": stage,
            "iteration": iteration,
            "scenario": scenario,
            "opening": opening,
            "solver_status": solver_status,
        }
        super().__init__("SolverFailure", message, {**place, **(context or {})}, suggestion)
        self.stage = stage
        self.iteration = iteration
        self.scenario = scenario
        self.opening = opening
        self.solver_status = solver_status


class WorkerError(CobreError, RuntimeError):
    """One of several processes that work together failed; the others were ended (ERR-10).

    Attributes
    ----------
    rank : int
        The process that failed first.
    exit_code : int or None
        How it ended: its exit code, minus the number of the signal that ended it, or ``None`` when it was
        still running and had to be ended.
    inner : BaseException or None
        What it raised, if it raised and that could be sent.

    >>> print(WorkerError(1, -9))
    rank 1 was ended by signal 9
    """

    def __init__(
        self,
        rank: int,
        exit_code: int | None,
        inner: BaseException | None = None,
        *,
        message: str | None = None,
        traceback: str | None = None,
    ) -> None:
        context: dict[str, Any] = {"rank": rank, "exit_code": exit_code}
        if traceback is not None:
            context["traceback"] = traceback
        super().__init__("WorkerFailed", message or _worker_message(rank, exit_code, inner), context)
        self.rank = rank
        self.exit_code = exit_code
        self.inner = inner

    def __reduce__(self) -> tuple[Any, ...]:
        arguments = (self.rank, self.exit_code, self.inner, self.message, self.context.get("traceback"))
        return _rebuild_worker_error, arguments


def _worker_message(rank: int, exit_code: int | None, inner: BaseException | None) -> str:
    if inner is not None:
        return f"rank {rank} failed: {type(inner).__name__}: {inner}"
    if exit_code is None:
        return f"rank {rank} failed"
    if exit_code < 0:
        return f"rank {rank} was ended by signal {-exit_code}"
    return f"rank {rank} ended with exit code {exit_code}"


def _rebuild_worker_error(
    rank: int, exit_code: int | None, inner: BaseException | None, message: str, traceback: str | None
) -> WorkerError:
    return WorkerError(rank, exit_code, inner, message=message, traceback=traceback)


class OutputError(CobreError, OSError):
    """A result could not be written or read.

    Attributes
    ----------
    result
        The result of the training that could not be written; ``None`` where there is none.
    """

    result: Any = None
