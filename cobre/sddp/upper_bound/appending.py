"""Stage LPs with columns and rows behind those of the template."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cobre.lp import StageTemplate

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Entries:
    """Coefficients ``value`` at (``row``, ``column``)."""

    row: IntArray
    column: IntArray
    value: FloatArray


def appended(
    template: StageTemplate,
    entries: Entries,
    *,
    cost: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    row_lower: FloatArray,
    row_upper: FloatArray,
) -> StageTemplate:
    """Return the LP with more columns (``cost``, ``lower``, ``upper``) and rows behind its own.

    Parameters
    ----------
    entries
        All new coefficients, those of old columns in new rows included; at most one for each cell.
    """
    columns = template.num_cols + len(cost)
    column = np.concatenate(
        [np.repeat(np.arange(template.num_cols), np.diff(template.matrix_start)), entries.column]
    )
    row = np.concatenate([template.matrix_row, entries.row])
    value = np.concatenate([template.matrix_value, entries.value])
    kept = value != 0.0
    row, column, value = row[kept], column[kept], value[kept]
    order = np.lexsort((row, column))
    start = np.zeros(columns + 1, np.int32)
    start[1:] = np.cumsum(np.bincount(column, minlength=columns))
    return replace(
        template,
        cost=np.concatenate([template.cost, cost]),
        col_lower=np.concatenate([template.col_lower, lower]),
        col_upper=np.concatenate([template.col_upper, upper]),
        row_lower=np.concatenate([template.row_lower, row_lower]),
        row_upper=np.concatenate([template.row_upper, row_upper]),
        matrix_start=start,
        matrix_row=row[order].astype(np.int32),
        matrix_value=np.ascontiguousarray(value[order]),
        col_scale=np.concatenate([template.col_scale, np.ones(len(cost))]),
        row_scale=np.concatenate([template.row_scale, np.ones(len(row_lower))]),
    )


def state_matrix(template: StageTemplate) -> FloatArray:
    """Return what each component of the incoming state adds to the dynamic rows, as (row, component).

    That is S, and N psi for past inflows; no inflow is truncated.
    """
    dense = np.zeros((template.num_dynamic_rows, template.num_states))
    component = np.repeat(np.arange(template.num_states), np.diff(template.state_start))
    dense[template.state_row, component] = template.state_value
    hydro = np.repeat(np.arange(len(template.psi_start) - 1), np.diff(template.psi_start))
    for entry, plant in enumerate(hydro):
        part = slice(template.noise_start[plant], template.noise_start[plant + 1])
        added = template.psi_value[entry] * template.noise_value[part]
        dense[template.noise_row[part], template.psi_component[entry]] += added
    return dense
