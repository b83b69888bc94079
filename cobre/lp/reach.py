"""How far the columns and rows of a stage LP can move: finite limits also where the LP has none.

A dual of the wrong sign, as small as the solver's tolerance allows, is worth its size times the range of what
it belongs to (:mod:`cobre.lp.dual_bound`). Where a column has no limit of its own, its range is what the rest
of its equations can take up: spillage all the water of its plant, deficit all the load of its bus. That is
taken ``MARGIN`` times, because the water of a plant may be that of a long cascade. Rows without a limit have
the range of what is in them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cobre.lp.template import StageTemplate

FloatArray = NDArray[np.float64]

MARGIN = 64.0


@dataclass(frozen=True, eq=False)
class Reach:
    """Finite limits in the units of the LP, except for the future cost; those of the state are physical.

    Attributes
    ----------
    col_lower, col_upper
        By column; the future cost keeps its own limits.
    row_lower, row_upper
        By row behind the dynamic ones.
    state_least, state_most
        By component of the outgoing state.
    """

    col_lower: FloatArray
    col_upper: FloatArray
    row_lower: FloatArray
    row_upper: FloatArray
    state_least: FloatArray
    state_most: FloatArray


def reach_of(template: StageTemplate) -> Reach:
    """Return the reach of everything in a stage LP, scaled or not."""
    dynamic = template.num_dynamic_rows
    column = np.repeat(np.arange(template.num_cols), np.diff(template.matrix_start))
    row, size = template.matrix_row, np.abs(template.matrix_value)
    known = _largest_finite(template.col_lower, template.col_upper)
    state = template.state_col
    scale = template.col_scale[state]
    known[state] = np.maximum(
        known[state], _largest_finite(template.state_least / scale, template.state_most / scale)
    )
    constant = np.concatenate(
        [
            _right_hand_sides(template, known[state] * scale),
            _largest_finite(template.row_lower, template.row_upper)[dynamic:],
        ]
    )
    taken = constant + np.bincount(row, weights=size * known[column], minlength=template.num_rows)
    room = MARGIN * _room(template, column, row, taken[row] / size)
    room = np.maximum(np.where(room > 0.0, room, MARGIN), known)
    lower = np.where(np.isfinite(template.col_lower), template.col_lower, -room)
    upper = np.where(np.isfinite(template.col_upper), template.col_upper, room)
    theta = template.theta_col
    lower[theta], upper[theta] = template.col_lower[theta], template.col_upper[theta]
    extent = np.maximum(np.abs(lower), np.abs(upper))
    extent[theta] = 0.0
    span = np.bincount(row, weights=size * extent[column], minlength=template.num_rows)
    row_lower = np.where(np.isfinite(template.row_lower), template.row_lower, -span)
    row_upper = np.where(np.isfinite(template.row_upper), template.row_upper, span)
    return Reach(
        col_lower=lower,
        col_upper=upper,
        row_lower=row_lower[dynamic:],
        row_upper=row_upper[dynamic:],
        state_least=np.where(np.isfinite(template.state_least), template.state_least, lower[state] * scale),
        state_most=np.where(np.isfinite(template.state_most), template.state_most, upper[state] * scale),
    )


def largest_right_hand_sides(template: StageTemplate) -> FloatArray:
    """Return the largest magnitude of each dynamic row's right-hand side over openings, without the state."""
    return _right_hand_sides(template, np.zeros(template.num_states))


def _right_hand_sides(template: StageTemplate, state: FloatArray) -> FloatArray:
    """Return bounds of the magnitudes of the dynamic right-hand sides, for states up to ``state``."""
    noise = np.abs(template.opening_values).max(axis=0, initial=0.0)
    total: FloatArray = np.abs(template.fixed_rhs)
    values = np.abs(template.noise_value) * np.repeat(noise, np.diff(template.noise_start))
    np.add.at(total, template.noise_row, values)
    values = np.abs(template.state_value) * np.repeat(state, np.diff(template.state_start))
    np.add.at(total, template.state_row, values)
    return total


def _room(
    template: StageTemplate, column: NDArray[np.int64], row: NDArray[np.int32], share: FloatArray
) -> FloatArray:
    """Return what the equations of each column leave to it; other rows count where it is in no equation."""
    equation = row < template.num_dynamic_rows
    least = np.full(template.num_cols, np.inf)
    np.minimum.at(least, column[equation], share[equation])
    most = np.zeros(template.num_cols)
    np.maximum.at(most, column, share)
    room: FloatArray = np.where(np.isfinite(least), least, most)
    return room


def _largest_finite(lower: FloatArray, upper: FloatArray) -> FloatArray:
    """Return the larger magnitude of two limits; infinite ones count as 0."""
    sizes = [np.where(np.isfinite(limit), np.abs(limit), 0.0) for limit in (lower, upper)]
    larger: FloatArray = np.maximum(*sizes)
    return larger
