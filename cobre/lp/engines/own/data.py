"""What stands around the core form of a node: right-hand sides from data, recovery, and the archive of cuts.

The archive has the slopes of all cuts of a node by (block, row, cut in the block): first the components that
are slacks of state rows, in their order, then those that are fixed by the data of the opening. What is fixed
by the incoming state alone adds to the constant of a cut once for a trial point, straight from its record.

What an opening's draws add to the components that they fix is the same at every trial point, unless an inflow
is truncated. So the archive has a row for each opening, too: what its draws add to the constants of cuts. It
has none where openings are more than the components, whose rows then do as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from cobre.lp.arrays import F64_1D, I32_1D
from cobre.lp.engines.own.core import U32_1D, FloatArray
from cobre.lp.reach import reach_of
from cobre.lp.reduction.form import CoreForm
from cobre.native import array_struct


class FormArrays(NamedTuple):
    """The data of a node's core form; see :class:`cobre.lp.reduction.form.CoreForm`.

    ``extended`` rows are those of the core and, behind them, the fixed columns. Row r of the archive is
    ``archive_component[r]`` of the state and is found at ``archive_row[r]`` of the extended rows; those
    behind the state rows are fixed by the opening. ``carried_*`` are the components fixed by the incoming
    state alone.
    ``unit`` is by component: units of the LP in one unit of the component, over the cost of one unit.
    """

    num_extended: int
    base: F64_1D
    noise_start: I32_1D
    noise_row: U32_1D
    noise_value: F64_1D
    state_start: I32_1D
    state_row: U32_1D
    state_value: F64_1D
    archive_component: U32_1D
    archive_row: U32_1D
    carried_component: U32_1D
    carried_row: U32_1D
    unit: F64_1D
    col_source: U32_1D
    col_origin: F64_1D
    col_least: F64_1D
    col_most: F64_1D
    col_offset: F64_1D
    col_factor: F64_1D


FormStruct = array_struct(FormArrays)


def form_arrays(form: CoreForm) -> FormArrays:
    """Return the data of a core form."""
    template = form.template
    place = np.where(form.state_place >= 0, form.state_place, form.num_rows + form.fixed_place)
    drawn = np.zeros(len(form.base), np.bool_)
    drawn[form.noise_row] = True
    by_state = (form.state_place < 0) & ~drawn[place]
    kept = np.flatnonzero(~by_state)
    kept = kept[np.lexsort((place[kept], form.state_place[kept] < 0))]
    carried = np.flatnonzero(by_state)
    return FormArrays(
        num_extended=len(form.base),
        base=form.base,
        noise_start=form.noise_start,
        noise_row=form.noise_row.astype(np.uint32),
        noise_value=form.noise_value,
        state_start=form.state_start,
        state_row=form.state_row.astype(np.uint32),
        state_value=form.state_value,
        archive_component=kept.astype(np.uint32),
        archive_row=place[kept].astype(np.uint32),
        carried_component=carried.astype(np.uint32),
        carried_row=place[carried].astype(np.uint32),
        unit=template.col_scale[template.state_col] / template.cost_scale,
        col_source=form.col_source.astype(np.uint32),
        col_origin=form.col_origin,
        col_least=form.col_least,
        col_most=form.col_most,
        col_offset=form.col_offset,
        col_factor=form.col_factor,
    )


def drawn_components(form: FormArrays, num_state_rows: int, openings: FloatArray) -> FloatArray:
    """Return what openings add to the components that draws fix, by (opening, archive row behind the states).

    Without rows where the archive keeps nothing of it.
    """
    rows = form.archive_row[num_state_rows:]
    if not 0 < len(openings) <= len(rows):
        return np.zeros((0, 0))
    effect = np.zeros((form.num_extended, len(openings)))
    entity = np.repeat(np.arange(len(form.noise_start) - 1), np.diff(form.noise_start))
    np.add.at(effect, form.noise_row, form.noise_value[:, np.newaxis] * openings.T[entity])
    return np.ascontiguousarray(effect[rows].T)


def core_reach(forms: Sequence[CoreForm]) -> tuple[FloatArray, FloatArray]:
    """Return how far the variables of core forms that share their arrays can go, by variable: least, most.

    The upper end of the future cost depends on cuts and is left unknown (NaN).
    """
    low = np.full(forms[0].num_cols + forms[0].num_rows, np.inf)
    high = -low
    for form in forms:
        template, reach = form.template, reach_of(form.template)
        count = form.num_cols + form.num_rows
        ends = np.zeros((2, count + form.num_fixed))
        moves = (form.col_least != 0.0) | (form.col_most != 0.0)
        limits = np.stack([reach.col_lower, reach.col_upper])[:, moves] * form.col_factor[moves]
        limits.sort(axis=0)
        for end, limit in zip(ends, limits, strict=True):
            np.add.at(end, form.col_source[moves], limit)
        carried = form.state_place >= 0
        place = form.num_cols + form.state_place[carried]
        scale = template.col_scale[template.state_col[carried]]
        ends[0, place] = np.minimum(ends[0, place], reach.state_least[carried] / scale)
        ends[1, place] = np.maximum(ends[1, place], reach.state_most[carried] / scale)
        activity = np.zeros(template.num_rows)
        activity[template.num_dynamic_rows :] = np.maximum(np.abs(reach.row_lower), np.abs(reach.row_upper))
        extent = np.zeros(len(form.base))
        size = np.repeat(activity, np.diff(form.dual_start)) * np.abs(form.dual_value)
        np.add.at(extent, form.dual_row, size)
        ends[0, form.num_cols : count] -= extent[: form.num_rows]
        ends[1, form.num_cols : count] += extent[: form.num_rows]
        low, high = np.minimum(low, ends[0, :count]), np.maximum(high, ends[1, :count])
    high[0] = np.nan
    return low, high
