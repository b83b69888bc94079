"""How objects show themselves in notebooks, and tables as data frames of other libraries."""

from __future__ import annotations

import html
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cobre.errors import CobreError

if TYPE_CHECKING:
    import pyarrow


def html_table(title: str, rows: Mapping[str, str]) -> str:
    """Return a title and its table as HTML, with everything in it escaped.

    >>> html_table("Case", {"stages": "4 < 5"})
    '<table><caption>Case</caption><tr><th>stages</th><td>4 &lt; 5</td></tr></table>'
    """
    body = "".join(
        f"<tr><th>{html.escape(name)}</th><td>{html.escape(value)}</td></tr>" for name, value in rows.items()
    )
    return f"<table><caption>{html.escape(title)}</caption>{body}</table>"


def to_pandas(table: pyarrow.Table) -> Any:
    """Return an Arrow table as a ``pandas.DataFrame``.

    Raises
    ------
    CobreError
        Kind ``ExtraMissing`` when pandas is not installed.
    """
    try:
        import pandas  # type: ignore[import-untyped,import-not-found,unused-ignore]  # noqa: F401
    except ImportError as error:
        raise _missing("pandas", error) from error
    return table.to_pandas()


def to_polars(table: pyarrow.Table) -> Any:
    """Return an Arrow table as a ``polars.DataFrame``.

    Raises
    ------
    CobreError
        Kind ``ExtraMissing`` when polars is not installed.
    """
    try:
        import polars  # type: ignore[import-not-found,unused-ignore]
    except ImportError as error:
        raise _missing("polars", error) from error
    return polars.from_arrow(table)


def _missing(name: str, error: ImportError) -> CobreError:
    return CobreError(
        "ExtraMissing",
        f"a data frame of {name} was asked for, but {name} is not installed",
        {"missing": error.name or name},
        f"pip install {name}, or take the Arrow table (to_arrow)",
    )
