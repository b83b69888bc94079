"""What a call sends to ranks, checked: the function with its arguments, and what they need to read it."""

from __future__ import annotations

import multiprocessing
import pickle
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cobre.comm.launch import launched
from cobre.errors import CobreError, Problem, ValidationError
from cobre.machine import most_workers, too_many


@dataclass(frozen=True)
class Call:
    """A function with its arguments, pickled, and what ``multiprocessing.spawn.prepare`` takes before."""

    body: bytes
    preparation: dict[str, Any]


def make_call(function: Any, arguments: tuple[Any, ...], keywords: dict[str, Any], caller: str) -> Call:
    """Return the call, for other processes.

    Parameters
    ----------
    caller
        Who is to be named in a message.

    Raises
    ------
    ValidationError
        When it cannot be sent.
    """
    body = _pickled(function, arguments, keywords, caller)
    return Call(body, _preparation(needs_main=b"__main__" in body))


def check_arguments(caller: str, *, ranks: Any = 1, timeout_s: Any = None) -> None:
    """Refuse a number of ranks, or a limit of time, that makes no sense.

    Raises
    ------
    ValidationError
        Naming each of them.
    """
    problems = []
    if isinstance(ranks, bool) or not isinstance(ranks, int) or ranks < 1:
        text = f"{caller}: ranks={ranks!r} is no positive integer"
        problems.append(Problem("OutOfRange", text, {"argument": "ranks"}))
    elif ranks > most_workers():
        problems.append(too_many("ranks", ranks))
    if timeout_s is not None and not timeout_s > 0:
        text = f"{caller}: timeout_s={timeout_s!r} is not positive"
        problems.append(Problem("OutOfRange", text, {"argument": "timeout_s"}))
    if problems:
        raise ValidationError(problems, f"the arguments of {caller}")


def check_not_importing(caller: str) -> None:
    """Refuse to start processes while this one, itself started from Python, imports its main module.

    Raises
    ------
    CobreError
        Kind ``IncompatibleSettings``.
    """
    # as multiprocessing itself marks its children until they have imported it
    if launched.preparing or getattr(multiprocessing.current_process(), "_inheriting", False):
        raise CobreError(
            "IncompatibleSettings",
            f"a process called {caller} while it imported the main module of the one that had started it: "
            "processes would start processes without end",
            {"setting": "main module"},
            "put the call below 'if __name__ == \"__main__\":'",
        )


def _pickled(function: Any, arguments: tuple[Any, ...], keywords: dict[str, Any], caller: str) -> bytes:
    name = getattr(function, "__qualname__", type(function).__name__)
    main = sys.modules.get("__main__")
    if getattr(function, "__module__", None) == "__main__" and _main_location(main) is None:
        fault = "is defined in an interactive session, which other processes cannot import"
    else:
        try:
            return pickle.dumps((function, arguments, keywords))
        except Exception as error:  # pickling runs the objects' own code, which may raise anything
            fault = f"or its arguments cannot be sent to another process: {error}"
    problem = Problem(
        "TypeMismatch",
        f"{caller}: {name} {fault}",
        {"argument": "function"},
        "give a function from the top level of a module (no lambda, no function inside another), "
        "and arguments that can be pickled",
    )
    raise ValidationError([problem], f"the arguments of {caller}")


def _preparation(*, needs_main: bool) -> dict[str, Any]:
    """Return what ``multiprocessing.spawn.prepare`` takes.

    Its own ``get_preparation_data`` would fix the program's start method as a side effect, and import the
    main module even where nothing that is sent comes from there.
    """
    main = _main_location(sys.modules.get("__main__")) if needs_main else None
    return {
        "sys_path": [str(Path.cwd()) if entry == "" else entry for entry in sys.path],
        "sys_argv": sys.argv,
        "dir": str(Path.cwd()),
        **({} if main is None else {main[0]: main[1]}),
    }


def _main_location(main: Any) -> tuple[str, str] | None:
    name = getattr(getattr(main, "__spec__", None), "name", None)
    if name is not None:
        return "init_main_from_name", name
    file = getattr(main, "__file__", None)
    if file is None or not Path(file).exists():
        return None
    return "init_main_from_path", str(Path(file).resolve())
