"""The command line: ``cobre init``, ``validate``, ``train``, ``schema``, ``warmup`` and ``version``.

Standard output carries the results: text for people or JSON (``comm.md`` OUT-01). Errors and warnings for
people go to standard error. Exit codes are those of :class:`ExitCode` (ERR-09).
"""

from cobre import _distribution  # noqa: F401 (refuses files of another package cobre)
from cobre.cli.app import main
from cobre.cli.exit_codes import ExitCode

__all__ = ["ExitCode", "main"]
