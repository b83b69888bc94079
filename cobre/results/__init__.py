"""Results on disk: what training writes (Parquet, JSON, a policy directory), reading it back; uncertainty."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cobre._lazy import lazy_names

if TYPE_CHECKING:
    from cobre.results.comparison import Comparison, compare
    from cobre.results.pages.run_page import report
    from cobre.results.reading import Results, Table, load, read_convergence, read_metadata
    from cobre.results.stochastic import write_stochastic
    from cobre.results.training import write_training

__all__ = [
    "Comparison",
    "Results",
    "Table",
    "compare",
    "load",
    "read_convergence",
    "read_metadata",
    "report",
    "write_stochastic",
    "write_training",
]

# Lazy, because reading results needs pyarrow alone, and writing them a study.
__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "Comparison": "cobre.results.comparison:Comparison",
        "Results": "cobre.results.reading:Results",
        "Table": "cobre.results.reading:Table",
        "compare": "cobre.results.comparison:compare",
        "load": "cobre.results.reading:load",
        "read_convergence": "cobre.results.reading:read_convergence",
        "read_metadata": "cobre.results.reading:read_metadata",
        "report": "cobre.results.pages.run_page:report",
        "write_stochastic": "cobre.results.stochastic:write_stochastic",
        "write_training": "cobre.results.training:write_training",
    },
)
