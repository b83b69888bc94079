"""Rows of one scenario, stage and block of a simulation."""

from __future__ import annotations

from typing import Any, Final

from cobre.errors import CobreError
from cobre.results.reading import Simulation

Row = dict[str, Any]
RELATIVE: Final = 1e-6
"""Share of a limit within which a value is at it."""


def rows_of(simulation: Simulation, table: str, **rows: Any) -> list[Row]:
    """Return rows of a table; none where the simulation does not have it."""
    if table not in simulation:
        return []
    found: list[Row] = simulation[table].to_arrow(**rows).to_pylist()
    return found


def require_rows(rows: list[Row], what: str, context: dict[str, Any]) -> list[Row]:
    """Return rows, and refuse to go on without any.

    Raises
    ------
    CobreError
        Kind ``NoRows``.
    """
    if not rows:
        listed = ", ".join(f"{name} {value}" for name, value in context.items())
        raise CobreError(
            "NoRows",
            f"the simulation has no {what} of {listed}",
            context,
            "cobre_list_scenarios and cobre_query_results show which there are",
        )
    return rows


def at(value: float, limit: float) -> bool:
    """Return whether a value is at a limit."""
    return abs(value - limit) <= RELATIVE * max(1.0, abs(limit))
