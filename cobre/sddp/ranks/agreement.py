"""How ranks agree outside of the kernels: numbers from all, errors of one, and the same study everywhere.

Nothing that comes from another rank is unpickled: errors travel as JSON, and texts have a longest length.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cobre.comm import CommError, Communicator
from cobre.errors import CobreError, OutputError, Problem, SolverError, ValidationError

_LONGEST_TEXT_BYTES = 1 << 20
_WORD_BYTES = 8
_LONGEST_SHORT_MESSAGE = 1000
_LARGEST_PART_BYTES = 1 << 28
_PLACE = ("stage", "iteration", "scenario", "opening", "solver_status")


def gather_rows(comm: Communicator, row: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the equally long rows of all ranks, float64[ranks, columns]; collective."""
    return np.stack(gather_parts(comm, row, np.full(comm.size, len(row), np.int64)))


def gather_parts(
    comm: Communicator, part: NDArray[np.float64], lengths: NDArray[np.int64]
) -> list[NDArray[np.float64]]:
    """Return the parts of all ranks; collective. ``lengths`` is the same on all ranks.

    A single rank calls no communicator here and below: compiling the call would cost seconds.
    """
    if comm.size == 1:
        return [part]
    ends = np.cumsum(lengths)
    received = np.zeros(int(ends[-1]))
    comm.allgatherv(part, received, lengths, ends - lengths)
    return np.split(received, ends[:-1])


def gather_bytes(
    comm: Communicator, part: NDArray[np.uint8], lengths: NDArray[np.int64]
) -> list[NDArray[np.uint8]]:
    """Return the bytes of all ranks; collective. ``lengths`` is the same on all ranks.

    They travel as float64 words: each element type would be compiled for each communicator.
    """
    words = -(-lengths // _WORD_BYTES)
    own = np.zeros(int(words[comm.rank]) * _WORD_BYTES, np.uint8)
    own[: len(part)] = part
    received = gather_parts(comm, own.view(np.float64), words)
    return [words.view(np.uint8)[:length] for words, length in zip(received, lengths, strict=True)]


def largest(comm: Communicator, value: int) -> int:
    """Return the largest of the ranks' numbers; collective."""
    return int(gather_rows(comm, np.array([value], np.float64)).max())


def gather_texts(comm: Communicator, text: str) -> list[str]:
    """Return the texts of all ranks, cut where they are too long; collective."""
    mine = np.frombuffer(text.encode()[:_LONGEST_TEXT_BYTES], np.uint8)
    lengths = gather_rows(comm, np.array([len(mine)], np.float64))[:, 0]
    if not ((lengths >= 0) & (lengths <= _LONGEST_TEXT_BYTES)).all():
        raise CobreError("MpiError", f"a rank announced a text of {lengths.max():.0f} bytes")
    parts = gather_bytes(comm, mine, lengths.astype(np.int64))
    return [part.tobytes().decode(errors="replace") for part in parts]


def text_of_root(comm: Communicator, text: str) -> str:
    """Return the text of rank 0; collective."""
    return gather_texts(comm, text if comm.rank == 0 else "")[0]


def files_of_root(comm: Communicator, files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the files, by name, of rank 0; collective."""
    if comm.size == 1:
        return dict(files)
    sizes: dict[str, int] = json.loads(text_of_root(comm, json.dumps({n: len(c) for n, c in files.items()})))
    return {name: _bytes_of_root(comm, files.get(name, b""), size) for name, size in sizes.items()}


def _bytes_of_root(comm: Communicator, content: bytes, size: int) -> bytes:
    received = np.empty(size, np.uint8)
    counts, starts = np.zeros(comm.size, np.int64), np.zeros(comm.size, np.int64)
    for start in range(0, size, _LARGEST_PART_BYTES):
        part = received[start : start + _LARGEST_PART_BYTES]
        counts[0] = starts[1:] = len(part)
        own = bytearray(content[start : start + len(part)]) if comm.rank == 0 else bytearray()
        comm.allgatherv(np.frombuffer(own, np.uint8), part, counts, starts)
    return received.tobytes()


@contextmanager
def failing_together(comm: Communicator) -> Iterator[None]:
    """Let an error of cobre in the block be raised on all ranks; the block is the same on all of them.

    The error of the lowest rank counts. A failure of the communication itself is raised as it is: the
    other ranks can no longer be reached.
    """
    error: CobreError | None = None
    try:
        yield
    except CommError:
        raise
    except CobreError as caught:
        error = caught
    raise_together(comm, error)


def raise_together(comm: Communicator, error: CobreError | None) -> None:
    """Raise the error of one rank, if any, on all ranks; collective.

    Where there are several ranks, its :attr:`~cobre.errors.CobreError.on_all_ranks` is true, and all ranks
    raise it with the same content, so that it does not matter whose report comes first.
    """
    if comm.size == 1:
        if error is not None:
            raise error
        return
    if largest(comm, error is not None) == 0:
        return
    texts = gather_texts(comm, "" if error is None else _error_text(error))
    rank, text = next((rank, text) for rank, text in enumerate(texts) if text)
    raised = error if error is not None and rank == comm.rank else _error_of(text)
    if not isinstance(raised, (ValidationError, SolverError)):  # those are about the study, not about a rank
        raised.context["rank"] = rank
    raised.on_all_ranks = True
    raise raised


def _error_text(error: CobreError) -> str:
    document = {
        "type": type(error).__name__,
        "problems": [problem.as_dict() for problem in error.problems],
    }
    text = json.dumps(document, default=str)
    if len(text.encode()) > _LONGEST_TEXT_BYTES:  # what was cut could not be read
        short = Problem(error.kind, error.message[:_LONGEST_SHORT_MESSAGE])
        text = json.dumps({"type": "CobreError", "problems": [short.as_dict()]})
    return text


def _error_of(text: str) -> CobreError:
    """Rebuild another rank's error."""
    document: Mapping[str, Any] = json.loads(text)
    problems = [Problem(**problem) for problem in document["problems"]]
    first = problems[0]
    if document["type"] == "ValidationError":
        return ValidationError(problems)
    if document["type"] == "SolverError":
        place = {name: first.context[name] for name in _PLACE}
        return SolverError(first.message, context=first.context, suggestion=first.suggestion, **place)
    kind = OutputError if document["type"] == "OutputError" else CobreError
    return kind(first.kind, first.message, first.context, first.suggestion)


def require_same_study(comm: Communicator, *parts: Any) -> None:
    """Check that all ranks have the same numbers before they compute with them; collective.

    Raises
    ------
    CobreError
        Kind ``IncompatibleSettings``, on all ranks, naming the first rank that differs from rank 0.
    """
    if comm.size == 1:
        return
    digests = gather_texts(comm, study_digest(*parts))
    different = [rank for rank, digest in enumerate(digests) if digest != digests[0]]
    if different:
        error = CobreError(
            "IncompatibleSettings",
            f"rank {different[0]} has built another study than rank 0",
            {"ranks": different},
            "give all ranks the same files of the case, the same options, and the same versions of cobre",
        )
        error.on_all_ranks = True
        raise error


def study_digest(*parts: Any) -> str:
    """Return SHA-256 over arrays, numbers and texts, also inside tuples and dataclasses."""
    digest = hashlib.sha256()
    for part in parts:
        _feed(digest, part)
    return digest.hexdigest()


def _feed(digest: Any, part: Any) -> None:
    if isinstance(part, np.ndarray):
        digest.update(f"{part.dtype.str}{part.shape}".encode())
        digest.update(np.ascontiguousarray(part).tobytes())
    elif dataclasses.is_dataclass(part):
        for item in dataclasses.fields(part):
            _feed(digest, getattr(part, item.name))
    elif isinstance(part, (tuple, list)):
        digest.update(f"({len(part)}".encode())
        for item in part:
            _feed(digest, item)
    elif part is None or isinstance(part, (bool, int, float, str, np.generic)):
        digest.update(f"{part!r};".encode())
