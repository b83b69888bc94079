"""The code of plotly as pages carry it: compressed, unpacked by the browser."""

from __future__ import annotations

import base64
import gzip
from functools import lru_cache
from importlib import resources
from pathlib import Path

from cobre._distribution import install_hint
from cobre.errors import CobreError


class ReportExtraError(CobreError):
    """Plotly is not installed, so that there are no plots."""


def packed(text: str | bytes) -> str:
    """Return a text compressed by gzip, in base64; the same for the same text."""
    content = text.encode() if isinstance(text, str) else text
    return base64.b64encode(gzip.compress(content, 9, mtime=0)).decode("ascii")


def plotly_code(page: str) -> str:
    """Return plotly.js, packed.

    The package of plotly has the full code only, 4.8 MB, of which 2.0 MB are left.

    Raises
    ------
    ReportExtraError
        When plotly is not installed, so that ``page`` cannot be made.
    """
    try:
        script = resources.files("plotly").joinpath("package_data").joinpath("plotly.min.js")
        return _packed_file(Path(str(script)))
    except (ImportError, OSError, TypeError) as error:
        raise ReportExtraError(
            "ReportExtraMissing",
            f"{page} is not written, since plotly is not installed",
            {"file": page, "missing": "plotly"},
            f"install it with: {install_hint('report')}",
        ) from error


@lru_cache(maxsize=1)
def _packed_file(file: Path) -> str:
    return packed(file.read_bytes())
