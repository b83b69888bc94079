"""What makes a table: the contract, and what tables of entities by block have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cobre.results.columns import TableSpec
from cobre.results.simulation.frame import StageFrame, StageValues, Study

Columns = Mapping[str, NDArray[Any]]

NO_ID = -(2**31)
"""Stands for a missing id in a column of ids; NaN does in one of numbers."""


@dataclass(frozen=True)
class Maker:
    """How a table with rows by stage is made.

    Attributes
    ----------
    present
        Whether a study has the table.
    keys
        The columns of a stage that are the same in all scenarios, each (rows,); of a column of names the
        positions in ``names``. Scenario, stage, node and date are added to them.
    values
        The other columns of a stage, each (S, ...) with as many values a scenario as there are rows.
    names
        For each column of names all that may occur.
    """

    spec: TableSpec
    present: Callable[[Study], bool]
    keys: Callable[[StageFrame], Columns]
    values: Callable[[StageFrame, StageValues], Columns]
    names: Mapping[str, Callable[[Study], Sequence[str]]] = field(default_factory=dict)


def entity_keys(frame: StageFrame, column: str, entities: Sequence[Any]) -> dict[str, NDArray[Any]]:
    """Return the keys of a table by entity and block: ids, names and blocks."""
    place = np.repeat(np.arange(len(entities), dtype=np.int32), frame.blocks)
    ids = np.array([entity.id for entity in entities], np.int32)
    return {
        "block_id": np.tile(frame.block_id, len(entities)),
        f"{column}_id": ids[place],
        f"{column}_name": place,
    }


def names_of(attribute: str) -> Callable[[Study], Sequence[str]]:
    """Return the function that gives the names of the entities of a collection."""

    def names(study: Study) -> Sequence[str]:
        entities = getattr(study.case, attribute, None) or study.case.extensions.get(attribute, ())
        return [entity.name for entity in entities]

    return names
