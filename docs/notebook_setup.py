"""What the notebooks of the site import in a hidden cell: whole outputs of commands, figures on the page."""

from __future__ import annotations

import os
import subprocess
from typing import Any

import plotly.io
from IPython import get_ipython
from plotly.io.base_renderers import MimetypeRenderer


class OnPage(MimetypeRenderer):
    """Figures as HTML that uses the plotly of the page."""

    def to_mimebundle(self, fig_dict: dict[str, Any]) -> dict[str, str]:
        """Return the figure as HTML."""
        html = plotly.io.to_html(fig_dict, include_plotlyjs=False, full_html=False, default_height="380px")
        return {"text/html": html}


def bash(line: str, cell: str) -> None:
    """Run commands and print what they print, at once: ``%%bash`` itself breaks lines between its reads."""
    plain = {**os.environ, "NO_COLOR": "1", "TERM": "dumb", "COLUMNS": "110"}
    for name in ("FORCE_COLOR", "CLICOLOR_FORCE"):
        plain.pop(name, None)
    command = ["bash", "-euo", "pipefail", "-c", cell]
    finished = subprocess.run(command, capture_output=True, text=True, env=plain)
    print(finished.stdout, end="")
    if finished.returncode:
        raise RuntimeError(f"exit code {finished.returncode}: {finished.stderr}")


plotly.io.renderers["page"] = OnPage()
plotly.io.renderers.default = "page"
get_ipython().register_magic_function(bash, "cell")
