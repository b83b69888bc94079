"""The site: ``python -m sphinx -W --keep-going -b html docs site``, with the extra ``docs``."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from sphinx.application import Sphinx

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

# Notebooks run in directories of their own, with this environment's commands, the examples and their setup.
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
os.environ["PYTHONPATH"] = os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
os.environ["COBRE_EXAMPLES"] = str(HERE.parent / "examples")

import generated_pages  # noqa: E402 (a module beside this one)

import cobre  # noqa: E402

project = "cobre"
author = "the authors of cobre"
version = release = cobre.__version__

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.mathjax"]
exclude_patterns = ["README.md"]

myst_enable_extensions = ["dollarmath", "amsmath", "deflist", "colon_fence"]
myst_heading_anchors = 4

nb_execution_mode = "force"
nb_execution_in_temp = True
nb_execution_timeout = 300
nb_execution_show_tb = True
nb_merge_streams = True

napoleon_use_rtype = False
autodoc_member_order = "bysource"
autodoc_typehints = "description"

html_theme = "furo"
html_title = f"cobre {version}"
html_show_sphinx = False
html_copy_source = False


def setup(app: Sphinx) -> None:
    """Write the pages that code describes before sources are looked for, and what plots need after all."""
    generated_pages.write(HERE / "reference")
    app.connect("build-finished", _copy_plotly)


def _copy_plotly(app: Sphinx, failure: Exception | None) -> None:
    if failure is None and app.builder.format == "html":
        from plotly.offline import get_plotlyjs

        (Path(app.outdir) / "_static" / "plotly.min.js").write_text(get_plotlyjs(), encoding="utf-8")
