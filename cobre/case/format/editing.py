"""Changing a case in memory: its documents as plain Python objects, and a new case from them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from cobre.case.format import layout
from cobre.case.format.documents import encode_json
from cobre.case.problems import suggest_name

if TYPE_CHECKING:
    from cobre.case.model import Case


class CaseEditor(MutableMapping[str, Any]):
    """The documents of a case, by path inside its directory, to be changed at will.

    JSON files are dicts that can be changed in place; Parquet files are ``pyarrow.Table`` objects, which are
    replaced. Files can be added and removed. The case itself does not change; :meth:`build` gives a new one.

    >>> from cobre.case import load
    >>> editor = load("examples/random-inflow").edit()
    >>> editor["system/thermals.json"]["thermals"][0]["cost_per_mwh"] = 30.0
    >>> float(editor.build().stage_data[0].thermal_cost[0])
    30.0
    """

    def __init__(self, case: Case) -> None:
        if case.documents is None:
            raise ValueError(f"{case!r} was made without documents, so there is nothing to edit")
        self._directory = case.path
        self._source = case.documents
        self._paths = set(case.documents)
        self._changed: dict[str, Any] = {}

    def __getitem__(self, path: str) -> Any:
        """Return a document: a dict that is part of the case under construction, or a table."""
        if path not in self._paths:
            raise KeyError(_absent(path, self._paths))
        if path not in self._changed:
            self._changed[path] = self._source[path]
        return self._changed[path]

    def __setitem__(self, path: str, document: Any) -> None:
        """Put a document in its place: a dict of JSON; a ``pyarrow.Table`` or a mapping of columns."""
        if path not in layout.KNOWN:
            raise KeyError(
                f"{path!r} is not a file of the format. {suggest_name(path, layout.KNOWN, 'one of')}"
            )
        if path.endswith(".parquet"):
            document = _table(path, document)
        elif not isinstance(document, dict):
            raise TypeError(f"{path} must be a dict, not {type(document).__name__}")
        self._paths.add(path)
        self._changed[path] = document

    def __delitem__(self, path: str) -> None:
        """Leave a file out of the case."""
        if path not in self._paths:
            raise KeyError(_absent(path, self._paths))
        self._paths.discard(path)
        self._changed.pop(path, None)

    def __iter__(self) -> Iterator[str]:
        return (path for path in layout.KNOWN if path in self._paths)

    def __len__(self) -> int:
        return len(self._paths)

    def __contains__(self, path: object) -> bool:
        return path in self._paths

    def __repr__(self) -> str:
        return f"CaseEditor({self._directory.name!r}: {len(self)} files)"

    def table(self, path: str) -> pa.Table:
        """Return the table in a Parquet file."""
        document = self[path]
        if not isinstance(document, pa.Table):
            raise TypeError(f"{path} is not a table")
        return document

    def set_table(self, path: str, table: pa.Table | Mapping[str, Any]) -> None:
        """Put a table (or a mapping of columns) in the place of a Parquet file; adds the file if needed."""
        if not path.endswith(".parquet"):
            raise TypeError(f"{path} is not a table")
        self[path] = table

    def build(self, directory: str | os.PathLike[str] | None = None) -> Case:
        """Validate all documents and return the case they make.

        Parameters
        ----------
        directory
            The new case's path, if it shall not be that of the case it comes from. Nothing is written.

        Raises
        ------
        cobre.errors.ValidationError
            With every problem of every document; see its ``problems``.
        """
        from cobre.case.loader import build

        contents = {
            path: self._frozen(path) if path in self._changed else self._source.raw(path) for path in self
        }
        return build(contents, self._directory if directory is None else directory)

    def _frozen(self, path: str) -> Any:
        """Return a document so that changing it later does not change the cases made from it."""
        document = self._changed[path]
        if isinstance(document, pa.Table):
            return document
        try:
            return encode_json(document)
        except (TypeError, ValueError, RecursionError):
            return document  # the loader reports what is wrong with it


def _absent(path: str, present: set[str]) -> str:
    return f"the case has no file {path!r}. {suggest_name(path, present, 'one of')}"


def _table(path: str, content: Any) -> pa.Table:
    if isinstance(content, pa.Table):
        return content
    if not isinstance(content, Mapping):
        raise TypeError(
            f"{path} must be a pyarrow.Table or a mapping of columns, not {type(content).__name__}"
        )
    try:
        return pa.table(dict(content))
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise ValueError(f"the columns given for {path} make no table: {error}") from error
