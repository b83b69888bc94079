"""Standard output that survives a reader who went away."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Iterator
from typing import Any, TextIO


class PipeSafeStream:
    """A text stream whose writes are dropped from the first one that fails.

    ``cobre train CASE | head`` must neither end in a traceback nor lose a training that has run for hours:
    the work goes on and its results are written.

    Attributes
    ----------
    error
        Why writing failed, unless the reader just went away.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._broken = False
        self.error: OSError | None = None

    def write(self, text: str) -> int:
        """Write, unless an earlier write has failed."""
        if not self._broken:
            try:
                self._stream.write(text)
            except OSError as error:
                self._give_up(error)
        return len(text)

    def flush(self) -> None:
        """Flush, unless an earlier write has failed."""
        if not self._broken:
            try:
                self._stream.flush()
            except OSError as error:
                self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        self._broken = True
        self.error = None if isinstance(error, BrokenPipeError) else error
        # The interpreter flushes the stream once more when it ends: let that go nowhere.
        with contextlib.suppress(OSError, io.UnsupportedOperation):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextlib.contextmanager
def safe_streams() -> Iterator[PipeSafeStream]:
    """Make standard output and error survive failed writes and text they cannot encode, for the block.

    Yields
    ------
    PipeSafeStream
        Standard output; complete, or with its error, once it has been flushed.
    """
    saved = sys.stdout, sys.stderr
    with contextlib.ExitStack() as opened:
        safe = [PipeSafeStream(_open(stream, opened)) for stream in saved]
        sys.stdout, sys.stderr = safe
        try:
            yield safe[0]
        finally:
            for stream in safe:
                stream.flush()
            sys.stdout, sys.stderr = saved


def _open(stream: TextIO | None, opened: contextlib.ExitStack) -> TextIO:
    if stream is None:  # the process was started with a closed descriptor
        return opened.enter_context(open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")
    return stream
