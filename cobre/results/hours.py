"""Hours of blocks, which tables hold as energies over powers only."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

if TYPE_CHECKING:
    from cobre.results.reading.run import Simulation
    from cobre.results.reading.table import Table

Hours = dict[tuple[int, int], float]
"""By ids of stage and block."""


def block_hours(simulation: Simulation) -> Hours:
    """Return hours of blocks: of each the largest power in the first table that has any, and its energy."""
    power: Hours = {}
    energy: Hours = {}
    for name in sorted(simulation, key=lambda name: name != "buses"):  # load is nearly everywhere
        for quantity in quantities(simulation[name]):
            _take_largest(simulation[name], quantity, power, energy)
        if power and min(power.values()) > 0.0:
            break
    return {place: energy[place] / largest for place, largest in power.items() if largest > 0.0}


def quantities(table: Table) -> tuple[str, ...]:
    """Return what a table by stage and block holds both as a power (``_mw``) and as an energy (``_mwh``)."""
    columns = table.columns
    if not {"stage_id", "block_id"} <= set(columns):
        return ()
    powers = [name.removesuffix("_mw") for name in columns if name.endswith("_mw")]
    return tuple(name for name in powers if f"{name}_mwh" in columns and not name.startswith("stored"))


def _take_largest(table: Table, quantity: str, power: Hours, energy: Hours) -> None:
    for batch in table.batches(["stage_id", "block_id", f"{quantity}_mw", f"{quantity}_mwh"]):
        if not len(batch):
            continue
        stage, block = _ids(batch.column(0)), _ids(batch.column(1))
        powers, energies = (np.abs(batch.column(place).to_numpy()) for place in (2, 3))
        order = np.lexsort((-powers, block, stage))
        new = (np.diff(stage[order]) != 0) | (np.diff(block[order]) != 0)
        for row in order[np.concatenate([[True], new])]:  # the largest of each block
            place = int(stage[row]), int(block[row])
            if powers[row] > power.get(place, -1.0):
                power[place], energy[place] = float(powers[row]), float(energies[row])


def _ids(column: pa.Array) -> NDArray[np.int64]:
    found: NDArray[np.int64] = column.fill_null(-1).to_numpy(zero_copy_only=False)
    return found
