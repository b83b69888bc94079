"""Tables of a simulation as arrays by scenario, stage and entity, a column at a time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from cobre.distribution import expectation, quantiles
from cobre.results.hours import Hours, block_hours
from cobre.results.pages.figures import QUANTILES, FloatArray
from cobre.results.pages.run_data import corrupted

if TYPE_CHECKING:
    from cobre.results.pages.run_data import RunData

Reduction = Literal["sum", "mean", "first", "last"]


@dataclass(frozen=True, eq=False)
class Layout:
    """The rows of a scenario in a table: all scenarios have the same.

    Attributes
    ----------
    order
        The rows by (stage, entity, block).
    starts
        Where, in that order, each (stage, entity) begins.
    block_hours
        Hours of the block of each row, in that order.
    """

    ids: NDArray[np.int64]
    names: tuple[str, ...]
    order: NDArray[np.int64]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    block_hours: FloatArray
    rows: int


class Simulated:
    """The simulation of an output directory; arrays have the shape [scenario, stage, entity]."""

    def __init__(self, run: RunData) -> None:
        self.tables = run.results.simulation
        self.stages = run.stages
        self._layouts: dict[str, Layout] = {}

    @property
    def scenarios(self) -> int:
        """How many there are."""
        return len(self.tables.scenarios)

    @property
    def weights(self) -> FloatArray | None:
        """Probability of each scenario; ``None`` where all have the same."""
        return self.tables.probability

    def has(self, table: str) -> bool:
        """Return whether the study has such entities."""
        return table in self.tables

    def column(self, table: str, name: str, reduction: Reduction = "sum") -> FloatArray:
        """Return a column: over the blocks of a stage its sum, mean by hours, first or last one."""
        layout = self.layout(table)
        parts = []
        for path in self._paths(table):
            values = _values(path, name).reshape(-1, layout.rows)[:, layout.order]
            if reduction == "first":
                found = values[:, layout.starts]
            elif reduction == "last":
                found = values[:, layout.ends - 1]
            elif reduction == "sum":
                found = np.add.reduceat(values, layout.starts, axis=1)
            else:
                hours = np.add.reduceat(layout.block_hours, layout.starts)
                found = np.add.reduceat(values * layout.block_hours, layout.starts, axis=1) / hours
            parts.append(found)
        return np.concatenate(parts).reshape(self.scenarios, len(self.stages), len(layout.ids))

    def by_block(self, table: str, name: str) -> tuple[FloatArray, FloatArray, NDArray[np.int64]]:
        """Return a column by [scenario, row], and of rows the hours and the position of their entity."""
        layout = self.layout(table)
        values = [
            _values(path, name).reshape(-1, layout.rows)[:, layout.order] for path in self._paths(table)
        ]
        lengths = layout.ends - layout.starts
        entity = np.repeat(np.tile(np.arange(len(layout.ids)), len(self.stages)), lengths)
        return np.concatenate(values), layout.block_hours, entity

    def layout(self, table: str) -> Layout:
        """Return ids and names of the entities, and the rows of a scenario."""
        if table not in self._layouts:
            self._layouts[table] = self._read_layout(table)
        return self._layouts[table]

    def _paths(self, table: str) -> list[Path]:
        paths = sorted(self.tables[table].path.glob("part-*.parquet"))
        if not paths:
            raise corrupted(self.tables[table].path, "it holds no part")
        return paths

    def _read_layout(self, table: str) -> Layout:
        key = self.tables[table].entity_key
        assert key is not None, f"{table} is no table of entities"
        name = key.removesuffix("_id") + "_name"
        path = self._paths(table)[0]
        found = _read(path, ["scenario_id", "stage_id", "block_id", key, name])
        scenario = found["scenario_id"].to_numpy()
        rows = int((scenario == scenario[0]).sum())
        if rows * len(np.unique(scenario)) != len(scenario):
            raise corrupted(path, "its scenarios have different numbers of rows")
        found = found.slice(0, rows)
        position = {stage.id: at for at, stage in enumerate(self.stages)}
        stage = np.array([position[value] for value in found["stage_id"].to_pylist()])
        block = found["block_id"].to_numpy()
        entity_ids = found[key].to_numpy()
        ids, first, entity = np.unique(entity_ids, return_index=True, return_inverse=True)
        order = np.lexsort((block, entity, stage))
        place = (stage * len(ids) + entity)[order]
        starts = np.flatnonzero(np.diff(place, prepend=-1))
        if len(starts) != len(ids) * len(self.stages):
            raise corrupted(path, "an entity lacks rows of a stage")
        names = found[name].to_pylist()
        blocks = [len(np.unique(block[stage == at])) for at in range(len(self.stages))]
        hours = [self._hours_of(at, number, blocks[at]) for at, number in zip(stage, block, strict=True)]
        return Layout(
            ids=ids.astype(np.int64),
            names=tuple(str(names[at]) for at in first.tolist()),
            order=order,
            starts=starts,
            ends=np.append(starts[1:], rows),
            block_hours=np.array(hours)[order],
            rows=rows,
        )

    @cached_property
    def _hours(self) -> Hours:
        """Hours of each block; equal ones where no table shows them."""
        return block_hours(self.tables)

    def _hours_of(self, stage: int, block: int, blocks: int) -> float:
        found = self._hours.get((self.stages[stage].id, block))
        return self.stages[stage].hours / blocks if found is None else found

    def mean(self, values: FloatArray) -> FloatArray:
        """Return the expected value over scenarios, the first axis."""
        return expectation(values, self.weights)

    def quantiles(self, values: FloatArray) -> FloatArray:
        """Return :data:`QUANTILES` over scenarios, [quantile, ...]."""
        return quantiles(values, QUANTILES, self.weights)


def _read(path: Path, columns: list[str]) -> pa.Table:
    try:
        return pq.read_table(path, columns=columns)
    except (OSError, pa.ArrowException) as error:
        raise corrupted(path, error) from error


def _values(path: Path, name: str) -> NDArray[Any]:
    found = _read(path, [name])
    if name not in found.column_names:
        raise corrupted(path, f"it has no column {name}")
    return np.asarray(found[name].to_numpy(), np.float64)
