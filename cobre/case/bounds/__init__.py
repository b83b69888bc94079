"""Limits and costs by stage and block: the Parquet files of ``constraints/`` to arrays.

Every file is read into :class:`~cobre.case.bounds.rows.BoundRows`, checked cell by cell; limits and costs
then lay the rows over the values of the entities, all stages at once.
"""

from cobre.case.bounds.axes import EntityAxis, StageAxis, stage_axis
from cobre.case.bounds.limits import Grids, resolve_limits
from cobre.case.bounds.rows import BoundRows
from cobre.case.bounds.tables import BoundTables, read_bounds

__all__ = [
    "BoundRows",
    "BoundTables",
    "EntityAxis",
    "Grids",
    "StageAxis",
    "read_bounds",
    "resolve_limits",
    "stage_axis",
]
