"""Texts for clients: without paths of this machine, and JSON without numbers that JSON does not have."""

from __future__ import annotations

import datetime
import enum
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from cobre.errors import CobreError, Problem

_DESCRIPTOR: Final = re.compile(r"/proc/self/fd/\d+/?")
_MOST_PROBLEMS: Final = 200


class Hider:
    """Replaces paths of this machine in texts: those below the root become relative, others vanish.

    What begins with a slash but with no directory of this machine is left: it may be a JSON Pointer.
    """

    def __init__(self, root: Path) -> None:
        self._own = re.compile(rf"{re.escape(str(root))}(?:/|(?![\w.-]))")
        tops = "|".join(re.escape(entry.name) for entry in Path("/").iterdir())
        self._elsewhere = re.compile(rf"(?:(?<=[\s'\"(=:,\[])|^)/(?:{tops})(?:/[^\s'\"(),:;\]]*|(?![\w.-]))")

    def text(self, text: str) -> str:
        """Return a text without absolute paths.

        >>> hider = Hider(Path("/srv/plans"))
        >>> hider.text("/srv/plans/a/config.json is not like /etc/passwd (MW/(m3/s))")
        'a/config.json is not like <path> (MW/(m3/s))'
        """
        found = self._own.sub("", _DESCRIPTOR.sub("", encodable(text)))
        return self._elsewhere.sub("<path>", found)

    def value(self, value: Any) -> Any:
        """Return a JSON value whose texts hold no absolute paths."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {name: self.value(item) for name, item in value.items()}
        if isinstance(value, list):
            return [self.value(item) for item in value]
        return value

    def problem(self, problem: Problem) -> dict[str, Any]:
        """Return a problem for clients."""
        document: dict[str, Any] = self.value(plain(problem.as_dict()))
        return document

    def problems(self, error: CobreError) -> list[dict[str, Any]]:
        """Return what an error reports, at most 200 problems."""
        return [self.problem(problem) for problem in error.problems[:_MOST_PROBLEMS]]


def encodable(text: str) -> str:
    r"""Return a text that UTF-8 can hold: a name of a file may be none, and would end the connection.

    >>> print(encodable("a\udcff"))
    a\udcff
    """
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")


def plain(value: Any) -> Any:
    """Return a value as JSON has it: numbers that are not finite become null, dates texts."""
    if isinstance(value, enum.Enum):
        return plain(value.value)
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, str):
        return encodable(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {encodable(str(name)): plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in value]
    if isinstance(value, (datetime.date, datetime.datetime)):
        return value.isoformat()
    if hasattr(value, "tolist"):  # NumPy scalars and arrays
        return plain(value.tolist())
    return encodable(str(value))
