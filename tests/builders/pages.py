"""What is in a page: the data of its figures, its texts without its code."""

from __future__ import annotations

import base64
import gzip
import json
import re
from typing import Any

_SCRIPT = re.compile(r"<script type='application/octet-stream' id='(\w+)'>([^<]*)</script>")


def packed_parts(text: str) -> dict[str, str]:
    """Return what the page unpacks: ``data`` and ``plotly``; nothing in a page without figures."""
    return {
        name: gzip.decompress(base64.b64decode(content)).decode() for name, content in _SCRIPT.findall(text)
    }


def figures(text: str) -> dict[str, Any]:
    """Return the data of the figures of a page by the id of their place."""
    parts = packed_parts(text)
    return json.loads(parts["data"]) if parts else {}


def visible(text: str) -> str:
    """Return the page without packed parts, style and script."""
    return re.sub(r"<(script|style)\b.*?</\1>", "", text, flags=re.DOTALL)


def shown(figure: dict[str, Any], label: str | None = None) -> list[dict[str, Any]]:
    """Return the traces of a figure when a choice of its menu is made."""
    if label is None:
        return figure["traces"]
    [choice] = [choice for choice in figure["choices"] if choice["label"] == label]
    return [{**trace, **part} for trace, part in zip(figure["traces"], choice["traces"], strict=True)]
