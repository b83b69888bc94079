"""How often this process opens files, as the interpreter reports it."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_counters: list[Counter[Path]] = []


def _note(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open" and _counters and isinstance(arguments[0], (str, Path)):
        _counters[-1][Path(arguments[0])] += 1


@contextmanager
def counted_opens() -> Iterator[Counter[Path]]:
    """Count the opens of each path inside the block; hooks cannot be removed, so there is one for good."""
    if not hasattr(sys, "_cobre_tests_count_opens"):
        sys.addaudithook(_note)
        sys._cobre_tests_count_opens = True  # type: ignore[attr-defined]
    _counters.append(Counter())
    try:
        yield _counters[-1]
    finally:
        _counters.pop()
