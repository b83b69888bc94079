"""The arrays that kernels see: stage LPs, cut pool, LP workspaces and the store of starting bases.

Kernels never see models. Every group of arrays is a NamedTuple, which crosses the border to nopython code as
it is and keeps compiled entries cacheable; inside, entries make a struct of it (``LpStruct`` ...), which is
passed on as one pointer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Annotated, Any, NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from cobre.lp.cost_components import CostMap, cost_map
from cobre.lp.reach import reach_of
from cobre.lp.template import StageTemplate
from cobre.native import array_struct

I8_2D = Annotated[NDArray[np.int8], types.int8[:, ::1]]
I8_3D = Annotated[NDArray[np.int8], types.int8[:, :, ::1]]
B8_2D = Annotated[NDArray[np.bool_], types.boolean[:, ::1]]
I32_1D = Annotated[NDArray[np.int32], types.int32[::1]]
I32_2D = Annotated[NDArray[np.int32], types.int32[:, ::1]]
I32_3D = Annotated[NDArray[np.int32], types.int32[:, :, ::1]]
I64_1D = Annotated[NDArray[np.int64], types.int64[::1]]
I64_2D = Annotated[NDArray[np.int64], types.int64[:, ::1]]
F64_1D = Annotated[NDArray[np.float64], types.float64[::1]]
F64_2D = Annotated[NDArray[np.float64], types.float64[:, ::1]]
F64_3D = Annotated[NDArray[np.float64], types.float64[:, :, ::1]]
Handles = Annotated[NDArray[np.intp], types.intp[:, ::1]]

# Columns of LpWorkspace.counters; padded to one cache line per worker.
LP_SOLVES = 0
LP_RETRIES = 1
SIMPLEX_ITERATIONS = 2
LP_FALLBACKS = 3
LP_SOLVES_OWN = 4
_COUNTERS = 8

# Fields of a cut record, 24 + 8n bytes as float64 so that every field is aligned (TRN-04):
# u32 slot, u32 iteration | u32 forward pass, u32 zero | f64 intercept | f64 slopes.
CUT_INTERCEPT = 2
CUT_SLOPES = 3

# Values of LpArrays.truncated besides 0.
TRUNCATED = 1
TRUNCATED_WITH_VALID_CUTS = 2


_CUT_ENTRIES = 1 << 16
"""Coefficients of cuts that are copied for one call of HiGHS: 0.8 MB for each worker."""

ROUNDING = 32.0 * float(np.finfo(np.float64).eps)
"""Share of a sum of magnitudes that rounding in it, and in the solver behind it, may reach."""

FAR_APART = 1.0e7
"""Ratio of costs from which rounding at the largest counts beside the smallest."""


class LpArrays(NamedTuple):
    """What is fixed of all LPs; T nodes, n state components, E random entities, the first H of them plants.

    Read-only for kernels; see :mod:`cobre.lp.template` for what the parts mean. ``model`` is which of a
    worker's HiGHS objects holds the LP of a node. Matrices are by columns, their entries from
    ``matrix_offset[t]`` on and their starts, counted from there, from ``col_offset[t] + t`` on; limits of
    rows are from ``limit_offset[t]`` on. ``fixed_rhs`` from ``rhs_offset[t]`` is the part of the right-hand
    sides that never changes; ``state_row``/``state_value`` from ``state_start[t, j]`` to ``state_start[t, j +
    1]`` is what component j adds to it, ``noise_row``/ ``noise_value`` the same for entity j.
    ``opening_value[value_offset[t] + o * E + e]`` are the values of opening o. The inflow of plant h also has
    the part ``psi_component``/``psi_value`` from ``psi_start[t, h]`` on, which lies between ``past_lower``
    and ``past_upper``. An outgoing component is ``state_scale`` times its column's value; ``state_lower`` and
    ``state_upper`` are limits of the component. ``col_least``/``col_most`` from ``col_offset[t]``,
    ``row_least``/``row_most`` (of rows behind the dynamic ones) from ``row_offset[t]`` and
    ``state_least``/``state_most`` are the reach, see :mod:`cobre.lp.reach`; ``rounding`` is the share of a
    sum of magnitudes that bounds are lowered by. ``cost_*`` from ``cost_start[t]`` to ``cost_start[t + 1]``
    is what columns cost and whom, see :class:`cobre.lp.cost_components.CostMap`.
    """

    model: I64_1D
    num_cols: I64_1D
    num_rows: I64_1D
    matrix_offset: I64_1D
    matrix_start: I32_1D
    matrix_row: I32_1D
    matrix_value: F64_1D
    cost: F64_1D
    col_lower: F64_1D
    col_upper: F64_1D
    limit_offset: I64_1D
    row_lower: F64_1D
    row_upper: F64_1D
    num_dynamic: I64_1D
    num_openings: I64_1D
    rhs_offset: I64_1D
    fixed_rhs: F64_1D
    noise_start: I64_2D
    noise_row: I32_1D
    noise_value: F64_1D
    value_offset: I64_1D
    opening_value: F64_1D
    psi_start: I64_2D
    psi_component: I32_1D
    psi_value: F64_1D
    truncated: I8_2D
    past_lower: F64_2D
    past_upper: F64_2D
    state_start: I64_2D
    state_row: I32_1D
    state_value: F64_1D
    state_col: I32_2D
    state_scale: F64_2D
    state_lower: F64_2D
    state_upper: F64_2D
    state_least: F64_2D
    state_most: F64_2D
    col_offset: I64_1D
    col_least: F64_1D
    col_most: F64_1D
    row_offset: I64_1D
    row_least: F64_1D
    row_most: F64_1D
    cost_start: I64_1D
    cost_col: I32_1D
    cost_value: F64_1D
    cost_component: I32_1D
    cost_payer: I32_1D
    theta_col: I64_1D
    discount: F64_1D
    cost_scale: float
    rounding: float


class CutPool(NamedTuple):
    """Cuts on the future cost of each node, in $: ``theta >= intercept + slope . state``.

    Attributes
    ----------
    record
        Cut records by (node, slot, field), float64[N, C, 3 + n]; ``CUT_INTERCEPT``, and the slopes from
        ``CUT_SLOPES`` on. Cuts that were loaded have no header.
    num_cuts
        Slots that are filled, int64[N]; cuts are in the order of (iteration, forward pass).
    iteration, forward_pass
        Where each cut comes from, int32[N, C]; iterations count from 1, those of other policies are 0.
    active
        Whether a cut belongs to the LP of its node, bool[N, C]; true for slots not filled yet.
    version
        int64[N]; to be raised by whoever changes ``active`` of filled slots or the numbers below.
    first_loaded
        int64[N]: active slots from here on are always in the LP.
    first_candidate
        int64[N]: active slots from here to ``first_loaded`` enter the LP where they are violated.
    added_per_round
        Most of these that enter at once.
    violation_tolerance
        Violation from which they enter, $.
    shared
        1 where the ranks of a host share ``record``, else 0.
    """

    record: F64_3D
    num_cuts: I64_1D
    iteration: I32_2D
    forward_pass: I32_2D
    active: B8_2D
    version: I64_1D
    first_loaded: I64_1D
    first_candidate: I64_1D
    added_per_round: int
    violation_tolerance: float
    shared: int

    @property
    def intercept(self) -> NDArray[np.float64]:
        """Intercepts by (node, slot), a view."""
        return self.record[:, :, CUT_INTERCEPT]

    @property
    def slope(self) -> NDArray[np.float64]:
        """Slopes by (node, slot, component), a view."""
        return self.record[:, :, CUT_SLOPES:]


class LpWorkspace(NamedTuple):
    """One row for each worker: HiGHS objects, scratch arrays, counters.

    An object of a worker has ``loaded`` the LP of a node (-1: none) with ``cut_rows`` cuts, in the slots
    ``row_cut``; ``base_rows`` of them came from slots below ``synced`` at the pool's ``version``, the others
    were violated at the last trial point.
    """

    handle: Handles
    loaded: I64_2D
    synced: I64_2D
    version: I64_2D
    cut_rows: I64_2D
    base_rows: I64_2D
    row_cut: I32_3D
    violated_cut: I32_2D
    violation: F64_2D
    rhs: F64_2D
    inflow: F64_2D
    objective: F64_1D
    col_value: F64_2D
    col_dual: F64_2D
    row_value: F64_2D
    row_dual: F64_2D
    col_status: I32_2D
    row_status: I32_2D
    cut_start: I32_2D
    cut_index: I32_2D
    cut_value: F64_2D
    cut_lower: F64_2D
    cut_upper: F64_2D
    counters: I64_2D


class BasisStore(NamedTuple):
    """Starting bases by (own forward pass, stage); ``num_rows`` is 0 where none is stored yet.

    The status of a cut's row is kept at (rows without cuts + its slot), basic where it was not in the LP, so
    that a basis outlives the choice of cuts.
    """

    num_rows: I64_2D
    col_status: I8_3D
    row_status: I8_3D


LpStruct = array_struct(LpArrays)
PoolStruct = array_struct(CutPool)
WorkspaceStruct = array_struct(LpWorkspace)
BasisStruct = array_struct(BasisStore)


def lp_arrays(
    templates: Sequence[StageTemplate],
    model: NDArray[np.int64] | None = None,
    costs: CostMap | None = None,
    keep: Callable[[NDArray[Any]], NDArray[Any]] = lambda array: array,
) -> LpArrays:
    """Flatten the templates of all nodes.

    Parameters
    ----------
    model
        As in :class:`LpArrays`; an object for each node unless given.
    costs
        What columns cost, where it is at hand.
    keep
        Returns a copy, kept elsewhere, of the large parts that only LPs solved by HiGHS read.
    """
    reach = [reach_of(template) for template in templates]
    costs = cost_map(templates) if costs is None else costs

    def kept(parts: Iterable[NDArray[Any]]) -> NDArray[Any]:
        return keep(np.concatenate(list(parts)))

    return LpArrays(
        model=np.arange(len(templates), dtype=np.int64) if model is None else model,
        num_cols=np.array([template.num_cols for template in templates], np.int64),
        num_rows=np.array([template.num_rows for template in templates], np.int64),
        matrix_offset=np.concatenate([[0], np.cumsum([len(template.matrix_row) for template in templates])]),
        matrix_start=kept(template.matrix_start for template in templates),
        matrix_row=kept(template.matrix_row for template in templates),
        matrix_value=kept(template.matrix_value for template in templates),
        cost=kept(template.cost for template in templates),
        col_lower=kept(template.col_lower for template in templates),
        col_upper=kept(template.col_upper for template in templates),
        limit_offset=_offsets([template.num_rows for template in templates]),
        row_lower=kept(template.row_lower for template in templates),
        row_upper=kept(template.row_upper for template in templates),
        num_dynamic=np.array([template.num_dynamic_rows for template in templates], np.int64),
        num_openings=np.array([template.num_openings for template in templates], np.int64),
        rhs_offset=_offsets([template.num_dynamic_rows for template in templates]),
        fixed_rhs=np.concatenate([template.fixed_rhs for template in templates]),
        noise_start=_starts([template.noise_start for template in templates]),
        noise_row=np.concatenate([template.noise_row for template in templates]),
        noise_value=np.concatenate([template.noise_value for template in templates]),
        value_offset=_offsets([template.opening_values.size for template in templates]),
        opening_value=np.concatenate([template.opening_values.ravel() for template in templates]),
        psi_start=_starts([template.psi_start for template in templates]),
        psi_component=np.concatenate([template.psi_component for template in templates]),
        psi_value=np.concatenate([template.psi_value for template in templates]),
        truncated=np.stack([_truncation(template) for template in templates]),
        past_lower=np.stack([template.past_lower for template in templates]),
        past_upper=np.stack([template.past_upper for template in templates]),
        state_start=_starts([template.state_start for template in templates]),
        state_row=np.concatenate([template.state_row for template in templates]),
        state_value=np.concatenate([template.state_value for template in templates]),
        state_col=np.stack([template.state_col for template in templates]),
        state_scale=np.stack([template.col_scale[template.state_col] for template in templates]),
        state_lower=np.stack(
            [(template.col_lower * template.col_scale)[template.state_col] for template in templates]
        ),
        state_upper=np.stack(
            [(template.col_upper * template.col_scale)[template.state_col] for template in templates]
        ),
        state_least=np.stack([part.state_least for part in reach]),
        state_most=np.stack([part.state_most for part in reach]),
        col_offset=_offsets([template.num_cols for template in templates]),
        col_least=kept(part.col_lower for part in reach),
        col_most=kept(part.col_upper for part in reach),
        row_offset=_offsets([len(part.row_lower) for part in reach]),
        row_least=kept(part.row_lower for part in reach),
        row_most=kept(part.row_upper for part in reach),
        cost_start=costs.start,
        cost_col=costs.column,
        cost_value=costs.value,
        cost_component=costs.component,
        cost_payer=costs.payer,
        theta_col=np.array([template.theta_col for template in templates], np.int64),
        discount=np.array([template.discount for template in templates]),
        cost_scale=float(templates[0].cost_scale),
        rounding=_rounding(templates),
    )


def in_arrays(templates: Sequence[StageTemplate], arrays: LpArrays) -> tuple[StageTemplate, ...]:
    """Return the templates that ``arrays`` were made from, with views of these in place of their own."""
    offsets = {
        "matrix_start": arrays.col_offset + np.arange(len(templates)),
        **dict.fromkeys(("matrix_row", "matrix_value"), arrays.matrix_offset),
        **dict.fromkeys(("cost", "col_lower", "col_upper"), arrays.col_offset),
        **dict.fromkeys(("row_lower", "row_upper"), arrays.limit_offset),
        "fixed_rhs": arrays.rhs_offset,
    }

    def viewed(node: int, template: StageTemplate) -> StageTemplate:
        views: dict[str, Any] = {
            name: getattr(arrays, name)[first[node] :][: len(getattr(template, name))]
            for name, first in offsets.items()
        }
        values = arrays.opening_value[arrays.value_offset[node] :][: template.opening_values.size]
        views["opening_values"] = values.reshape(template.opening_values.shape)
        return replace(template, **views)

    return tuple(viewed(node, template) for node, template in enumerate(templates))


def _rounding(templates: Sequence[StageTemplate]) -> float:
    """Return the share of sums that rounding may take, 0 where it is worth nothing beside the least cost."""
    costs = [np.delete(template.cost / template.col_scale, template.theta_col) for template in templates]
    sizes = np.abs(np.concatenate(costs))
    sizes = sizes[sizes > 0.0]
    wide = len(sizes) > 0 and sizes.max() > FAR_APART * sizes.min()
    return ROUNDING if wide else 0.0


def _truncation(template: StageTemplate) -> NDArray[np.int8]:
    kind = TRUNCATED_WITH_VALID_CUTS if template.valid_truncation else TRUNCATED
    return np.where(template.truncated, kind, 0).astype(np.int8)


def _offsets(sizes: Sequence[int]) -> NDArray[np.int64]:
    """Return where each part begins when parts of these sizes follow each other."""
    return np.concatenate([[0], np.cumsum(sizes)])[:-1].astype(np.int64)


def _starts(parts: Sequence[NDArray[np.int32]]) -> NDArray[np.int64]:
    """Return the starts of sparse columns of all nodes, counted in the entries of all nodes."""
    first = _offsets([int(part[-1]) for part in parts])
    return np.stack([offset + part.astype(np.int64) for offset, part in zip(first, parts, strict=True)])


def cut_pool(
    nodes: int, capacity: int, states: int, added_per_round: int = 1, violation_tolerance: float = 0.0
) -> CutPool:
    """Allocate an empty pool with room for ``capacity`` cuts at each node; all of them go into the LPs."""
    return CutPool(
        record=np.zeros((nodes, capacity, CUT_SLOPES + states)),
        num_cuts=np.zeros(nodes, np.int64),
        iteration=np.zeros((nodes, capacity), np.int32),
        forward_pass=np.zeros((nodes, capacity), np.int32),
        active=np.ones((nodes, capacity), np.bool_),
        version=np.zeros(nodes, np.int64),
        first_loaded=np.zeros(nodes, np.int64),
        first_candidate=np.zeros(nodes, np.int64),
        added_per_round=min(added_per_round, max(capacity, 1)),
        violation_tolerance=violation_tolerance,
        shared=0,
    )


def lp_workspace(
    arrays: LpArrays,
    handles: NDArray[np.intp],
    capacity: int,
    added_per_round: int = 1,
    cut_entries: int = _CUT_ENTRIES,
) -> LpWorkspace:
    """Allocate workspaces for the workers of ``handles`` (worker, model).

    Parameters
    ----------
    capacity
        Most cuts a stage can hold.
    added_per_round
        As in the pool.
    cut_entries
        Most coefficients of cuts that HiGHS gets in one call, if that is at least one cut.
    """
    workers = handles.shape[0]
    states = arrays.state_col.shape[1]
    cols = int(arrays.num_cols.max())
    rows = int(arrays.num_rows.max()) + capacity
    # An LP that is loaded anew takes all its cuts: many at once, since each call moves the whole matrix.
    batch = max(min(capacity, cut_entries // (states + 1)), 1)
    return LpWorkspace(
        handle=handles,
        loaded=np.full(handles.shape, -1, np.int64),
        synced=np.zeros(handles.shape, np.int64),
        version=np.zeros(handles.shape, np.int64),
        cut_rows=np.zeros(handles.shape, np.int64),
        base_rows=np.zeros(handles.shape, np.int64),
        row_cut=np.zeros((*handles.shape, capacity), np.int32),
        violated_cut=np.zeros((workers, added_per_round), np.int32),
        violation=np.zeros((workers, added_per_round)),
        rhs=np.zeros((workers, int(arrays.num_dynamic.max()))),
        inflow=np.zeros((workers, arrays.truncated.shape[1])),
        objective=np.zeros(workers),
        col_value=np.zeros((workers, cols)),
        col_dual=np.zeros((workers, cols)),
        row_value=np.zeros((workers, rows)),
        row_dual=np.zeros((workers, rows)),
        col_status=np.zeros((workers, cols), np.int32),
        row_status=np.zeros((workers, rows), np.int32),
        cut_start=np.zeros((workers, batch), np.int32),
        cut_index=np.zeros((workers, batch * (states + 1)), np.int32),
        cut_value=np.zeros((workers, batch * (states + 1))),
        cut_lower=np.zeros((workers, batch)),
        cut_upper=np.full((workers, batch), np.inf),
        counters=np.zeros((workers, _COUNTERS), np.int64),
    )


def basis_store(arrays: LpArrays, passes: int, capacity: int) -> BasisStore:
    """Allocate an empty store for ``passes`` forward passes."""
    stages = len(arrays.num_cols)
    rows = int(arrays.num_rows.max()) + capacity
    return BasisStore(
        num_rows=np.zeros((passes, stages), np.int64),
        col_status=np.zeros((passes, stages, int(arrays.num_cols.max())), np.int8),
        row_status=np.zeros((passes, stages, rows), np.int8),
    )
