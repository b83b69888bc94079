"""What a simulation writes: the tables of all entities, and files that hold them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cobre._lazy import lazy_names

if TYPE_CHECKING:
    from cobre.results.simulation.tables import SimulationTables
    from cobre.results.simulation.writer import SimulationWriter, remove_tables

__all__ = ["SimulationTables", "SimulationWriter", "remove_tables"]

# Lazy, because who reads results needs the columns alone, and making tables loads the compiler.
__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "SimulationTables": "cobre.results.simulation.tables:SimulationTables",
        "SimulationWriter": "cobre.results.simulation.writer:SimulationWriter",
        "remove_tables": "cobre.results.simulation.writer:remove_tables",
    },
)
