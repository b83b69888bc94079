"""The files of a case: JSON objects and tables by path, on disk or in memory.

Loading reads a case through :class:`CaseDocuments`, which keeps what it has read. So a case holds its
sources, whatever happens to its directory later, and can be edited, saved and built without files.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from cobre.case.format import layout
from cobre.case.format.reader import decode_json, read_bytes
from cobre.case.problems import Reporter
from cobre.parquet_size import excessive_size

JsonObject = dict[str, Any]


@dataclass(frozen=True)
class OpenTable:
    """A table whose columns can be read: its Arrow schema, and the function that reads some of them."""

    schema: Any
    read: Callable[[list[str]], Any]


class CaseDocuments(Mapping[str, Any]):
    """The files of a case by path inside it (``system/hydros.json``), in the order of the format.

    A JSON file comes as a fresh Python object that may be changed, a Parquet file as a ``pyarrow.Table``.
    Files that are not part of the format are not among them. Nothing is decoded before it is asked for.

    Parameters
    ----------
    directory
        The case directory; paths inside the files are relative to it.
    contents
        The files of a case in memory: bytes as in a file, a JSON object, a ``pyarrow.Table`` or a mapping of
        columns; ``None`` means that the file is absent. Without ``contents`` the files are those in
        ``directory``, read when they are needed.
    """

    def __init__(self, directory: str | os.PathLike[str], contents: Mapping[str, Any] | None = None) -> None:
        self.directory = Path(directory)
        self._on_disk = contents is None
        self._contents: dict[str, Any] = {
            path: content for path, content in (contents or {}).items() if content is not None
        }

    # -- loading: every fault becomes a problem ---------------------------------------------------------

    def scan(self, reporter: Reporter) -> frozenset[str]:
        """Report files that are missing, unknown or retired, and return the paths of all that exist."""
        if self._on_disk:
            return layout.scan(self.directory, reporter)
        return layout.judge(frozenset(self._contents), frozenset(), reporter)

    def read_all(self, reporter: Reporter) -> None:
        """Read the files that have not been read yet, so that nothing depends on the directory any more."""
        if self._on_disk:
            for path in layout.KNOWN:
                if path not in self._contents and (self.directory / path).exists():
                    self._bytes(path, reporter)
            self._on_disk = False

    def read_json(self, path: str, reporter: Reporter) -> JsonObject | None:
        """Return the JSON object in a file, or ``None`` after reporting why there is none."""
        content = self._contents.get(path)
        if content is None:
            content = self._bytes(path, reporter)
        elif not isinstance(content, bytes):
            content = self._encode(path, content, reporter)
        return None if content is None else decode_json(content, path, reporter)

    def open_table(self, path: str, reporter: Reporter) -> OpenTable | None:
        """Return the table in a file, or ``None`` after reporting why there is none."""
        content = self._contents.get(path)
        if content is None:
            content = self._bytes(path, reporter)
            if content is None:
                return None
        try:
            return _open(content)
        except (pa.ArrowException, OSError, ValueError, TypeError) as error:
            report_unreadable(path, error, reporter)
            return None

    def _bytes(self, path: str, reporter: Reporter) -> bytes | None:
        data = read_bytes(self.directory, path, reporter)
        if data is not None:
            self._contents[path] = data
        return data

    def _encode(self, path: str, value: Any, reporter: Reporter) -> bytes | None:
        """Encode an object in memory; what is read back is what a saved file would hold."""
        try:
            data = encode_json(value)
        except (TypeError, ValueError, RecursionError) as error:
            reporter.error(
                "ParseError",
                f"{path} holds something that JSON cannot: {error}.",
                file=path,
                suggestion="Use dicts with text keys, lists, text, numbers, booleans and None only.",
            )
            return None
        self._contents[path] = data
        return data

    def raw(self, path: str) -> Any:
        """Return a file as it is held: bytes, or a document in memory."""
        return self._contents[path]

    # -- a mapping of decoded documents -----------------------------------------------------------------

    def __getitem__(self, path: str) -> Any:
        content = self._contents[path]
        if path.endswith(".parquet"):
            if isinstance(content, bytes):
                return _parquet(content).read()
            return content if isinstance(content, pa.Table) else pa.table(content)
        # Through text in any case: a copy that can be changed without changing this case.
        return json.loads(content if isinstance(content, bytes) else encode_json(content))

    def __iter__(self) -> Iterator[str]:
        return (path for path in layout.KNOWN if path in self._contents)

    def __len__(self) -> int:
        return sum(path in self._contents for path in layout.KNOWN)

    def __repr__(self) -> str:
        return f"CaseDocuments({str(self.directory)!r}: {len(self)} files)"


def encode_json(value: Any, indent: int | None = None) -> bytes:
    """Return a document as UTF-8 text; NumPy numbers and arrays, dates and paths become what JSON has.

    Raises
    ------
    TypeError, ValueError, RecursionError
        When the document holds what JSON cannot.
    """
    text = json.dumps(value, indent=indent, ensure_ascii=False, default=_plain)
    return text.encode("utf-8", "surrogatepass")


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return value.tolist()
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    raise TypeError(f"a value of type {type(value).__name__}")


def _parquet(content: bytes) -> Any:
    """Open a plausible Parquet file; from bytes, for pyarrow makes columns of folders named "name=value"."""
    file = pq.ParquetFile(pa.BufferReader(content))
    if reason := excessive_size(file.metadata, len(content)):
        raise ValueError(reason)
    return file


def _open(content: Any) -> OpenTable:
    if isinstance(content, bytes):
        file = _parquet(content)
        return OpenTable(file.schema_arrow, lambda columns: file.read(columns=columns))
    table = content if isinstance(content, pa.Table) else pa.table(content)
    return OpenTable(table.schema, table.select)


def report_unreadable(path: str, error: Exception, reporter: Reporter) -> None:
    """Report a table that cannot be read."""
    reporter.error(
        "ParseError",
        f"{path} cannot be read as Parquet: {str(error).splitlines()[0] if str(error) else repr(error)}.",
        file=path,
        suggestion="Write the file again, for example with pyarrow and compression='zstd'.",
    )
