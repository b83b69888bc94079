"""The core form of a stage LP: the same optimal values from fewer rows and columns, and the way back.

    minimise    sum_v phi_v(x_v)
    subject to  A x + s = b

Variables are the structurals x (0 .. ``num_cols`` - 1, the future cost first) and the slacks s of the rows
behind them. Every phi_v is convex and piecewise linear, see :class:`cobre.lp.reduction.pieces.Pieces`; a
limit is a kink beyond which the slope is infinite. The slacks of the first ``num_state_rows`` rows are
outgoing state components, in units of their columns in the template.

The right-hand side is linear in the realised values u of the random entities and the incoming state x0. It is
extended by the values of columns that data alone determine (fixed columns; outgoing inflow memories are among
them):

    [b; fixed] = base + N u + S x0

A cut ``theta >= alpha + pi . x'`` is then a row over theta and, with x'_r = b_r - A_r x, the structurals;
what fixed components contribute is part of its right-hand side.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cobre.lp.reduction.sparse import totals
from cobre.lp.template import StageTemplate

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int32]


CUT_KINK = (-np.inf, 0.0, np.inf)
CUT_SLOPE = (-np.inf, 0.0, np.inf)
CUT_COST_AT_KINK = (0.0, 0.0, 0.0)
"""phi of the slack of a cut, which is at least 0 and costs nothing."""


@dataclass(frozen=True, eq=False)
class CoreForm:
    """A stage LP in core form, in the units of its template except for the future cost.

    Attributes
    ----------
    template
        What the form was made from.
    num_cols, num_rows
        Structurals; rows.
    num_state_rows
        Leading rows whose slacks are outgoing state components.
    num_fixed
        Columns of the template that data alone determine.
    row_start, row_col, row_value
        A by rows, sorted.
    col_start, col_row, col_value
        A by columns, sorted.
    piece_start, kink, slope, cost_at_kink
        phi of every variable; the last three have that of the slack of a cut behind them.
    theta_scale
        Future cost in units of the template, per unit of structural 0; a power of two.
    base
        Constant part of the extended right-hand side.
    noise_start, noise_row, noise_value
        N by random entity, over the extended right-hand side.
    state_start, state_row, state_value
        S by component of the incoming state, over the extended right-hand side.
    state_place
        Row of each component of the outgoing state, -1 for one that is fixed.
    fixed_place
        Place of each component among the fixed columns, -1 for one that is not fixed.
    dual_start, dual_row, dual_value
        By row of the template: which duals of the extended rows its dual is the sum of, with which weights.
    col_source, col_origin, col_least, col_most, col_offset, col_factor
        By column of the template: the value is ``(clip(z - origin, least, most) + offset) / factor`` for z
        the variable ``col_source``; fixed columns count behind the slacks.
    """

    template: StageTemplate
    num_cols: int
    num_rows: int
    num_state_rows: int
    num_fixed: int
    row_start: IntArray
    row_col: IntArray
    row_value: FloatArray
    col_start: IntArray
    col_row: IntArray
    col_value: FloatArray
    piece_start: IntArray
    kink: FloatArray
    slope: FloatArray
    cost_at_kink: FloatArray
    theta_scale: float
    base: FloatArray
    noise_start: IntArray
    noise_row: IntArray
    noise_value: FloatArray
    state_start: IntArray
    state_row: IntArray
    state_value: FloatArray
    state_place: IntArray
    fixed_place: IntArray
    dual_start: IntArray
    dual_row: IntArray
    dual_value: FloatArray
    col_source: IntArray
    col_origin: FloatArray
    col_least: FloatArray
    col_most: FloatArray
    col_offset: FloatArray
    col_factor: FloatArray

    def right_hand_side(self, realised: FloatArray, state: FloatArray) -> FloatArray:
        """Return [b; fixed] for realised values of the random entities at an incoming state (physical)."""
        weight = np.repeat(
            np.concatenate([realised, state]),
            np.concatenate([np.diff(self.noise_start), np.diff(self.state_start)]),
        )
        row = np.concatenate([self.noise_row, self.state_row])
        value = np.concatenate([self.noise_value, self.state_value])
        return self.base + totals(row, weight * value, len(self.base))

    def primal(
        self, core_x: FloatArray, core_slack: FloatArray, b: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the columns and row activities of the template.

        Parameters
        ----------
        core_x, core_slack
            Structurals and slacks.
        b
            The extended right-hand side they belong to.
        """
        variables = np.concatenate([core_x, core_slack, b[self.num_rows :]])
        moved = np.clip(variables[self.col_source] - self.col_origin, self.col_least, self.col_most)
        columns: FloatArray = (moved + self.col_offset) / self.col_factor
        template = self.template
        amounts = template.matrix_value * np.repeat(columns, np.diff(template.matrix_start))
        return columns, totals(template.matrix_row, amounts, template.num_rows)

    def extended_duals(self, core_y: FloatArray, state_price: FloatArray | None = None) -> FloatArray:
        """Return the slope of the optimal value in [b; fixed].

        N' and S' times it are the slopes in the random entities and in the incoming state.

        Parameters
        ----------
        core_y
            Duals of the core rows.
        state_price
            By component of the outgoing state: slopes of the cuts, in units of the template, times the duals
            of the cuts (as rows ``theta - pi . x' >= alpha`` with x' replaced). ``None`` without cuts.
        """
        worth = np.concatenate([core_y, np.zeros(self.num_fixed)])
        if state_price is not None:
            place = np.where(self.state_place >= 0, self.state_place, self.num_rows + self.fixed_place)
            worth += totals(place, state_price, len(worth))
        return worth

    def duals(self, core_y: FloatArray, state_price: FloatArray | None = None) -> FloatArray:
        """Return the duals of the template's rows; the parameters are those of :meth:`extended_duals`."""
        worth = self.extended_duals(core_y, state_price)
        row = np.repeat(np.arange(self.template.num_rows), np.diff(self.dual_start))
        return totals(row, self.dual_value * worth[self.dual_row], self.template.num_rows)
