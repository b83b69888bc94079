"""A stage LP as arrays: what is fixed at build time, and where state, noise and cuts enter.

For stage t with incoming state x, opening w and outgoing state x' the LP is

    minimise    cost . y + discount * theta
    subject to  A y = b + N u + S x             (the first ``num_dynamic_rows`` rows)
                row_lower <= A y <= row_upper   (the others)
                theta - pi_c . x' >= alpha_c    (cuts c, added behind the template's rows)
                col_lower <= y <= col_upper

with x' the columns ``state_col``. u are the realised values of the random entities: inflow, load and
availability. Load and availability are those of the opening. The inflow of plant h is

    u_h = e_h(w) + psi_h . x,   raised to 0 where the study truncates negative inflows,

with e_h the opening's value and psi_h the weights of past inflows, which are part of the state. S and N
are stored by state component and by entity, so that the slope of the optimal value in x is S' times the duals
of the dynamic rows, and in u N' times them.

A scaled template (:mod:`cobre.lp.scaling`) holds R A C, R b, C cost and so on, with the diagonal matrices R
of ``row_scale`` and C of ``col_scale``: a column's physical value is ``col_scale`` times the LP's, a row's
physical dual ``row_scale`` times the LP's. The state stays physical.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from cobre.lp.index import LpIndex

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int32]


@dataclass(frozen=True)
class StageTemplate:
    """The LP of one stage without state, noise and cuts.

    Attributes
    ----------
    stage_id
        Declared id of the stage.
    cost, col_lower, col_upper
        Columns; ``cost`` is in $ divided by ``cost_scale``.
    row_lower, row_upper
        Rows; the first ``num_dynamic_rows`` are equations whose right-hand side the kernel writes.
    matrix_start, matrix_row, matrix_value
        The matrix by columns (CSC).
    state_col
        Column of each outgoing state component.
    state_start, state_row, state_value
        S by state component (CSC over the dynamic rows).
    theta_col
        Column of the future cost, in $ divided by ``cost_scale``.
    fixed_rhs
        b.
    noise_start, noise_row, noise_value
        N by entity (CSC over the dynamic rows): inflows by plant, loads by bus, availabilities by source.
    opening_values
        float64 (opening, entity): e, load and availability of each opening.
    psi_start, psi_component, psi_value
        psi by plant: the components of the state its inflow follows from, and their weights.
    truncated
        bool by plant: whether a negative inflow becomes 0.
    valid_truncation
        Whether cuts stay below the cost where that binds; see :func:`cobre.lp.engine.state_slope`.
    past_lower, past_upper
        Bounds of psi_h . x by plant over all states that the openings of earlier stages lead to.
    discount
        Factor on the future cost in the objective.
    cost_scale
        $ per unit of objective.
    index
        Kinds, names and places of columns and rows.
    col_scale, row_scale
        Physical units in one unit of each column; factor by which each row is multiplied.
    state_least, state_most
        Between which values each outgoing component lies over everything that the openings lead to
        (physical); the limits of its column unless given.
    """

    stage_id: int
    cost: FloatArray
    col_lower: FloatArray
    col_upper: FloatArray
    row_lower: FloatArray
    row_upper: FloatArray
    matrix_start: IntArray
    matrix_row: IntArray
    matrix_value: FloatArray
    state_col: IntArray
    state_start: IntArray
    state_row: IntArray
    state_value: FloatArray
    theta_col: int
    fixed_rhs: FloatArray
    noise_start: IntArray
    noise_row: IntArray
    noise_value: FloatArray
    opening_values: FloatArray
    psi_start: IntArray
    psi_component: IntArray
    psi_value: FloatArray
    truncated: NDArray[np.bool_]
    valid_truncation: bool
    past_lower: FloatArray
    past_upper: FloatArray
    discount: float
    cost_scale: float
    index: LpIndex
    col_scale: FloatArray = field(default_factory=lambda: np.ones(0))
    row_scale: FloatArray = field(default_factory=lambda: np.ones(0))
    state_least: FloatArray = field(default_factory=lambda: np.zeros(0))
    state_most: FloatArray = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        if not len(self.col_scale):
            object.__setattr__(self, "col_scale", np.ones(self.num_cols))
        if not len(self.row_scale):
            object.__setattr__(self, "row_scale", np.ones(self.num_rows))
        for name, limit in (("state_least", self.col_lower), ("state_most", self.col_upper)):
            if not len(getattr(self, name)):
                object.__setattr__(self, name, (limit * self.col_scale)[self.state_col])

    @property
    def col_names(self) -> tuple[str, ...]:
        """Name of every column."""
        return self.index.col_names

    @property
    def row_names(self) -> tuple[str, ...]:
        """Name of every row without cuts."""
        return self.index.row_names

    @property
    def num_cols(self) -> int:
        """Number of columns."""
        return len(self.cost)

    @property
    def num_rows(self) -> int:
        """Number of rows without cuts."""
        return len(self.row_lower)

    @property
    def num_dynamic_rows(self) -> int:
        """Number of leading rows whose right-hand side depends on state and opening."""
        return len(self.fixed_rhs)

    @property
    def num_openings(self) -> int:
        """Number of openings."""
        return len(self.opening_values)

    @property
    def num_states(self) -> int:
        """Number of state components."""
        return len(self.state_col)

    @property
    def opening_rhs(self) -> FloatArray:
        """Right-hand sides without the state's part and before truncation, by (opening, dynamic row)."""
        return np.stack([self._right_hand_side(values) for values in self.opening_values])

    def realised(self, opening: int, state: FloatArray) -> FloatArray:
        """Return the values of the random entities in ``opening`` at the incoming ``state``."""
        return self._realised(self.opening_values[opening], state)

    def _realised(self, noise: FloatArray, state: FloatArray) -> FloatArray:
        values: FloatArray = noise.copy()
        hydro = np.repeat(np.arange(len(self.truncated)), np.diff(self.psi_start))
        np.add.at(values, hydro, self.psi_value * state[self.psi_component])
        inflows = values[: len(self.truncated)]
        inflows[self.truncated & (inflows < 0.0)] = 0.0
        return values

    def rhs(self, opening: int, state: FloatArray) -> FloatArray:
        """Return the right-hand side of the dynamic rows at ``state`` and ``opening``."""
        return self.rhs_at(self.opening_values[opening], state)

    def rhs_at(self, noise: FloatArray, state: FloatArray) -> FloatArray:
        """Return the right-hand side of the dynamic rows at ``state``, for values like an opening's."""
        rhs = self._right_hand_side(self._realised(noise, state))
        np.add.at(rhs, self.state_row, self.state_value * np.repeat(state, np.diff(self.state_start)))
        return rhs

    def _right_hand_side(self, values: FloatArray) -> FloatArray:
        rhs: FloatArray = self.fixed_rhs.copy()
        weights = self.noise_value * np.repeat(values, np.diff(self.noise_start))
        np.add.at(rhs, self.noise_row, weights)
        return rhs
