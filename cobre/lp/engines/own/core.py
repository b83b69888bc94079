"""Arrays of the engine: the LP in core form, one worker's workspace, saved states, stored bases, cuts.

The core form is

    min  sum_v phi_v(x_v)     subject to   A x + s = b,

with structurals v = 0 .. n - 1 (the future cost first), the slack s_i of row i as variable n + i, and the
slack of the cut in slot j of the working set as variable n + m + j, whose row stands behind the m rows of
the core. phi_v is convex, piecewise linear: entries ``piece_start[v] .. piece_start[v + 1] - 1`` of ``kink``
are ``-inf, k_1 .. k_p, inf``, and ``slope[e]`` is that of the segment from ``kink[e]`` to ``kink[e + 1]``.
A bound is a kink with an infinite slope behind it.

Every variable has a *place*. A nonbasic one lies at kink ``place``, and its price (row price y_i for a slack,
A_v'y for a structural) between the slopes before and behind. A basic one lies in the segment ``place``, and
its price is the slope there; or, from the slack basis on, at kink ``place`` with price 0 (``low == high``).
A nonbasic variable at a place whose kink is infinite is *artificial*: no kink suits its price, and it is
held at a large value until it enters the basis (``value`` 0 where the price is the slope of a free variable).

The basis matrix is [[K, 0], [T, I]] with the *kernel* K = active rows (those with a nonbasic slack) x basic
structurals. Only the inverse of K is kept, transposed: ``inverse[r, c]`` belongs to active row r and basic
structural c, so that the products of every iteration run along rows of memory. Large LPs keep sparse factors
instead, see :mod:`sparse_factor`.

Floating point operations have one fixed order: results do not depend on what a processor can do at once.
"""

# Kernels are typed by Numba when they are compiled, not by annotations.
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False
from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from cobre.lp.arrays import F64_1D, F64_2D, F64_3D, I8_2D, I32_1D, I32_2D, I64_1D
from cobre.native import array_struct, engine_kernel

FloatArray = NDArray[np.float64]

U32_1D = Annotated[NDArray[np.uint32], types.uint32[::1]]
"""Indices that are looked up in inner loops; Numba takes negative signed ones for places from the end."""

U64_1D = Annotated[NDArray[np.uint64], types.uint64[::1]]

INFINITY = float("inf")

# Statuses of a solve.
OPTIMAL = 0
INFEASIBLE = 1
UNBOUNDED = 2
GAVE_UP = 3

# Why an attempt ended without a result; the last one is left in ``sizes[REASON]``.
WORKING_SET_FULL = 12
PIVOT_LIMIT = 13
SINGULAR = 14
PRICES_OUTSIDE = 15
PIVOT_DISAGREES = 17
NO_PROOF = 18
CHECK_FAILED = 19
STALLED = 20

# Entries of Workspace.sizes.
KERNEL = 0
SLOTS = 1
AWAKE = 2
REASON = 3
UPDATES = 4
OUTSIDE = 5
ROW_ENTRIES = 6
COLUMN_ENTRIES = 7
SLACK_ENTRIES = 8
FACTORED = 9
EXCHANGES = 10
NUM_SIZES = 16

# Entries of Workspace.counters.
SOLVES = 0
ITERATIONS = 1
PIVOTS = 2
PASSED_KINKS = 3
REFACTORISATIONS = 4
COLD_STARTS = 5
GIVEN_UP = 6
CUTS_ADDED = 7
SCANS = 8
CHECKS_FAILED = 9
CLEAN_UPS = 10
NUM_COUNTERS = 16

# Entries of Workspace.limits.
MOST_ITERATIONS = 0
MOST_REFACTORISATIONS = 1
FAILING_CHECKS = 2
FAILING_PIVOTS = 3
LARGEST_INVERSE = 4
NUM_LIMITS = 5

# Entries of Workspace.result.
DUAL_VALUE = 0
PRIMAL_VALUE = 1
MAGNITUDE = 2
FUTURE_REACH = 3
NUM_RESULTS = 4

FEASIBILITY = 1.0e-9
"""What a basic variable may lie outside its segment by."""

ARTIFICIAL_VALUE = 1.0e7
"""Where a variable waits that no kink suits."""

CUT_BLOCK = 32
"""Cuts in a block of :class:`CutColumns` where states have many components."""

LARGEST_CUT_BLOCK = 256
"""The same where they have few: products run over long vectors."""

LARGEST_KERNEL = 700
"""LPs with more rows and columns have sparse factors of the kernel, others its explicit inverse."""

_MOST_EXCHANGES = 64
"""After which the basis is factorised anew."""

_FACTOR_ENTRIES = 24
"""Room in sparse factors, for every row and column of the LP."""


class CoreArrays(NamedTuple):
    """An LP in core form, read-only for kernels.

    Rows of outgoing states come first: the slack of row r < ``num_state_rows`` is a component of the outgoing
    state. The future cost is ``theta_scale`` times structural 0. Behind the pieces of the m slacks are those
    of a cut's slack, the same for all. ``reach_low`` and ``reach_high`` are how far a variable can go at any
    data, also where it has no limit.
    """

    num_cols: int
    num_rows: int
    num_state_rows: int
    row_start: U32_1D
    row_col: U32_1D
    row_value: F64_1D
    col_start: U32_1D
    col_row: U32_1D
    col_value: F64_1D
    piece_start: I32_1D
    kink: F64_1D
    slope: F64_1D
    cost_at_kink: F64_1D
    reach_low: F64_1D
    reach_high: F64_1D
    theta_scale: float


class CutColumns(NamedTuple):
    """Cuts of a node: ``theta >= constant + slope . state``, in units of the LP.

    ``slope`` is by (block of cuts, state row, cut in the block), so that products run over the cuts of a
    block and memory grows by blocks; there may be further rows behind those of the state. The constants,
    which may depend on the opening, are those of ``Workspace.cut_constant``. A constant of ``-inf`` switches
    a cut off. ``drawn`` and the last rows of ``slope`` are for constants, see
    :mod:`cobre.lp.engines.own.data`.
    """

    slope: F64_3D
    num_cuts: I64_1D
    drawn: F64_2D


class Workspace(NamedTuple):
    """What one worker changes while it solves; sized for the largest LP.

    By variable: ``value``, ``price``, ``place``, limits of the price of a nonbasic one (``price_low``,
    ``price_high``) and of the value of a basic one (``low``, ``high``), else infinite; ``weight``, by
    which the distance of a basic one from its segment is judged. ``kernel_of_col`` and ``kernel_of_row``
    are places in the kernel or -1; ``kernel_col`` and ``kernel_row`` are the inverse maps. ``rhs`` is b, by
    the caller for the rows of the core; ``cut_constant`` by the caller for all cuts of the pool. By slot of
    the working set: the cut, its row in the core and the factor on it, whether it is awake (priced and kept
    up to date), and how many saved states have it active. ``result`` has the values of the last LP, the sum
    of the magnitudes they are made of, and, by the caller, how large structural 0 can become (NaN: not
    known).

    Sparse vectors are dense arrays, 0 outside a list of the entries that may differ from 0, whose length is
    in ``sizes``: ``tableau_row`` by variable (``row_var``), ``column`` by place of a structural in the kernel
    (``column_place``) and ``slack_column`` by row (``slack_row``). ``outside`` lists all variables that may
    lie outside their segment, those with ``is_outside``. From ``position_of`` to ``solution_bits`` are the
    sparse factors and the vector that is solved for, ``part_*`` what is left of the kernel while it is
    factorised, ``first_with``, ``next_alike`` and ``last_alike`` its rows by number of entries. The rest is
    scratch.
    """

    sizes: I64_1D
    counters: I64_1D
    limits: I64_1D
    result: F64_1D
    rhs: F64_1D
    value: F64_1D
    price: F64_1D
    place: I32_1D
    price_low: F64_1D
    price_high: F64_1D
    low: F64_1D
    high: F64_1D
    weight: F64_1D
    kernel_of_col: I32_1D
    kernel_of_row: I32_1D
    kernel_col: U32_1D
    kernel_row: U32_1D
    inverse: F64_2D
    slot_cut: I32_1D
    slot_scale: F64_1D
    slot_pins: I32_1D
    slot_awake: I32_1D
    slot_factored: I32_1D
    awake: I32_1D
    cut_row: F64_2D
    cut_constant: F64_1D
    violation: F64_1D
    block_violation: F64_1D
    outside: U32_1D
    is_outside: I32_1D
    tableau_row: F64_1D
    row_var: U32_1D
    listed: I32_1D
    column: F64_1D
    column_place: U32_1D
    kernel_residual: F64_1D
    kernel_step: F64_1D
    slack_column: F64_1D
    slack_row: U32_1D
    col_scratch: F64_1D
    col_scale: F64_1D
    candidate: I32_1D
    candidate_step: F64_1D
    candidate_place: I32_1D
    position_of: I32_1D
    position_of_row: U32_1D
    factored_at: I32_1D
    basic_at: U32_1D
    row_at: U32_1D
    pivot_row: I32_1D
    pivot_col: I32_1D
    pivot: F64_1D
    lower_start: U32_1D
    lower_at: U32_1D
    lower_value: F64_1D
    lower_row_start: U32_1D
    lower_row_at: U32_1D
    lower_row_value: F64_1D
    upper_start: U32_1D
    upper_at: U32_1D
    upper_value: F64_1D
    upper_row_start: U32_1D
    upper_row_at: U32_1D
    upper_row_value: F64_1D
    tail_start: U32_1D
    tail_at: U32_1D
    tail_value: F64_1D
    exchange_start: U32_1D
    exchange_at: U32_1D
    exchange_value: F64_1D
    exchange_of: U32_1D
    exchanged: U32_1D
    exchange_pivot: F64_1D
    exchange_sum: F64_1D
    chain_first: I32_1D
    chain_next: I32_1D
    solution: F64_1D
    solution_at: U32_1D
    solution_bits: U64_1D
    part_col: U32_1D
    part_value: F64_1D
    part_row: U32_1D
    part_begin: I32_1D
    part_entries: I32_1D
    part_col_begin: I32_1D
    part_col_entries: I32_1D
    part_col_room: I32_1D
    part_change: F64_1D
    part_end: I32_1D
    first_with: I32_1D
    next_alike: I32_1D
    last_alike: I32_1D


class SavedStates(NamedTuple):
    """States of the solver by place of storage: all that the next LP of a branch starts from."""

    kernel: I64_1D
    updates: I64_1D
    value: F64_2D
    price: F64_2D
    place: I32_2D
    price_low: F64_2D
    price_high: F64_2D
    low: F64_2D
    high: F64_2D
    weight: F64_2D
    kernel_col: I32_2D
    kernel_row: I32_2D
    inverse: F64_3D


class BasisStore(NamedTuple):
    """Optimal bases by key; ``place`` is that within the variable's pieces, ``kind`` one of the below."""

    known: I64_1D
    place: I32_2D
    kind: I8_2D
    num_cuts: I64_1D
    cut: I32_2D


NONBASIC = 0
IN_SEGMENT = 1
AT_KINK = 2

CoreStruct = array_struct(CoreArrays)
CutStruct = array_struct(CutColumns)
WorkStruct = array_struct(Workspace)
SavedStruct = array_struct(SavedStates)
StoreStruct = array_struct(BasisStore)


def core_arrays(form: Any, reach: tuple[FloatArray, FloatArray] | None = None) -> CoreArrays:
    """Return the arrays of a core form (see the contract of ``CoreArrays``), its own ones where they fit.

    Parameters
    ----------
    reach
        ``reach_low`` and ``reach_high``; unknown unless given, which is for values that no cut is made of.
    """
    if reach is None:
        unknown = np.full(int(form.num_cols) + int(form.num_rows), np.nan)
        reach = (unknown, unknown)
    return CoreArrays(
        num_cols=int(form.num_cols),
        num_rows=int(form.num_rows),
        num_state_rows=int(form.num_state_rows),
        row_start=np.ascontiguousarray(form.row_start, np.int32).view(np.uint32),
        row_col=np.ascontiguousarray(form.row_col, np.int32).view(np.uint32),
        row_value=np.ascontiguousarray(form.row_value, np.float64),
        col_start=np.ascontiguousarray(form.col_start, np.int32).view(np.uint32),
        col_row=np.ascontiguousarray(form.col_row, np.int32).view(np.uint32),
        col_value=np.ascontiguousarray(form.col_value, np.float64),
        piece_start=np.append(form.piece_start, np.int32(len(form.kink))),
        kink=form.kink,
        slope=form.slope,
        cost_at_kink=form.cost_at_kink,
        reach_low=reach[0],
        reach_high=reach[1],
        theta_scale=float(form.theta_scale),
    )


def cut_columns(slopes: FloatArray, width: int = CUT_BLOCK) -> CutColumns:
    """Return cuts whose slopes are given by (state row, cut)."""
    rows, cuts = slopes.shape
    blocks = max(-(-cuts // width), 1)
    padded = np.zeros((rows, blocks * width))
    padded[:, :cuts] = slopes
    by_block = padded.reshape(rows, blocks, width).transpose(1, 0, 2)
    return CutColumns(np.ascontiguousarray(by_block), np.array([cuts], np.int64), np.zeros((0, 0)))


def new_workspace(
    num_cols: int, num_rows: int, num_slots: int, num_cuts: int, largest_kernel: int = LARGEST_KERNEL
) -> Workspace:
    """Return a workspace for LPs up to these sizes; ``num_cuts`` is that of the largest pool."""
    rows = num_rows + num_slots
    variables = num_cols + rows
    kernel = max(1, min(num_cols, rows))
    stride = (kernel + 7) // 8 * 8
    inverted = max(1, min(kernel, largest_kernel + num_slots))
    inverted_stride = (inverted + 7) // 8 * 8
    positions = kernel + 64 + rows
    steps = kernel + 1
    room = _FACTOR_ENTRIES * (num_cols + rows)

    def ints(size: int) -> Any:
        return np.zeros(size, np.int32)

    def indices(size: int) -> Any:
        return np.zeros(size, np.uint32)

    limits = np.zeros(NUM_LIMITS, np.int64)
    limits[MOST_ITERATIONS] = 200 + 20 * (num_cols + num_rows)
    limits[MOST_REFACTORISATIONS] = 3
    limits[LARGEST_INVERSE] = largest_kernel
    return Workspace(
        sizes=np.zeros(NUM_SIZES, np.int64),
        counters=np.zeros(NUM_COUNTERS, np.int64),
        limits=limits,
        result=np.full(NUM_RESULTS, np.nan),
        rhs=np.zeros(rows),
        value=np.zeros(variables),
        price=np.zeros(variables),
        place=ints(variables),
        price_low=np.zeros(variables),
        price_high=np.zeros(variables),
        low=np.zeros(variables),
        high=np.zeros(variables),
        weight=np.ones(variables),
        kernel_of_col=ints(num_cols),
        kernel_of_row=ints(rows),
        kernel_col=indices(kernel),
        kernel_row=indices(kernel),
        inverse=np.zeros((inverted, inverted_stride)),
        slot_cut=ints(num_slots),
        slot_scale=np.ones(num_slots),
        slot_pins=ints(num_slots),
        slot_awake=ints(num_slots),
        slot_factored=ints(num_slots),
        awake=ints(num_slots),
        cut_row=np.zeros((num_slots, num_cols)),
        cut_constant=np.zeros(num_cuts),
        violation=np.zeros(num_cuts),
        block_violation=np.zeros(num_cuts // CUT_BLOCK + 1),
        outside=indices(variables),
        is_outside=ints(variables),
        tableau_row=np.zeros(variables),
        row_var=indices(variables + 1),
        listed=ints(variables),
        column=np.zeros(stride),
        column_place=indices(stride),
        kernel_residual=np.zeros(stride),
        kernel_step=np.zeros(stride),
        slack_column=np.zeros(rows),
        slack_row=indices(rows + 1),
        col_scratch=np.zeros(num_cols),
        col_scale=np.zeros(num_cols),
        candidate=ints(variables + 1),
        candidate_step=np.zeros(variables + 1),
        candidate_place=ints(variables + 1),
        position_of=ints(variables),
        position_of_row=indices(rows),
        factored_at=ints(num_cols),
        basic_at=indices(positions),
        row_at=indices(steps),
        pivot_row=ints(steps),
        pivot_col=ints(steps),
        pivot=np.zeros(steps),
        lower_start=indices(steps),
        lower_at=indices(room),
        lower_value=np.zeros(room),
        lower_row_start=indices(steps),
        lower_row_at=indices(room),
        lower_row_value=np.zeros(room),
        upper_start=indices(steps),
        upper_at=indices(room),
        upper_value=np.zeros(room),
        upper_row_start=indices(steps),
        upper_row_at=indices(room),
        upper_row_value=np.zeros(room),
        tail_start=indices(steps),
        tail_at=indices(room),
        tail_value=np.zeros(room),
        exchange_start=indices(_MOST_EXCHANGES + 1),
        exchange_at=indices(room),
        exchange_value=np.zeros(room),
        exchange_of=indices(room),
        exchanged=indices(_MOST_EXCHANGES),
        exchange_pivot=np.zeros(_MOST_EXCHANGES),
        exchange_sum=np.zeros(_MOST_EXCHANGES),
        chain_first=ints(positions),
        chain_next=ints(room),
        solution=np.zeros(positions),
        solution_at=indices(positions),
        solution_bits=np.zeros(positions // 64 + 1, np.uint64),
        part_col=indices(room),
        part_value=np.zeros(room),
        part_row=indices(room),
        part_begin=ints(steps),
        part_entries=ints(steps),
        part_col_begin=ints(steps),
        part_col_entries=ints(steps),
        part_col_room=ints(steps),
        part_change=np.zeros(steps),
        part_end=ints(2),
        first_with=ints(steps),
        next_alike=ints(steps),
        last_alike=ints(steps),
    )


def new_saved_states(work: Workspace, num_states: int) -> SavedStates:
    """Return room for states of a workspace."""
    variables = len(work.value)

    def floats() -> Any:
        return np.zeros((num_states, variables))

    return SavedStates(
        kernel=np.zeros(num_states, np.int64),
        updates=np.zeros(num_states, np.int64),
        value=floats(),
        price=floats(),
        place=np.zeros((num_states, variables), np.int32),
        price_low=floats(),
        price_high=floats(),
        low=floats(),
        high=floats(),
        weight=floats(),
        kernel_col=np.zeros((num_states, len(work.kernel_col)), np.int32),
        kernel_row=np.zeros((num_states, len(work.kernel_row)), np.int32),
        inverse=np.zeros((num_states, *work.inverse.shape)),
    )


def new_basis_store(work: Workspace, num_keys: int) -> BasisStore:
    """Return an empty store of bases of a workspace's LPs."""
    variables = len(work.kernel_of_col) + len(work.kernel_of_row) - len(work.slot_cut)
    return BasisStore(
        known=np.zeros(num_keys, np.int64),
        place=np.zeros((num_keys, variables), np.int32),
        kind=np.zeros((num_keys, variables), np.int8),
        num_cuts=np.zeros(num_keys, np.int64),
        cut=np.zeros((num_keys, len(work.slot_cut)), np.int32),
    )


@engine_kernel
def has_sparse_factors(core, work):
    """Return whether the LP is too large for the explicit inverse; a rule of its size alone."""
    return min(core.num_cols, core.num_rows) > work.limits[LARGEST_INVERSE]


@engine_kernel
def put_at_kink(core, work, var, place):
    """Make a variable nonbasic at a finite kink; its price stays."""
    work.place[var] = place
    work.value[var] = core.kink[place]
    work.price_low[var] = core.slope[place - 1]
    work.price_high[var] = core.slope[place]
    work.low[var] = -INFINITY
    work.high[var] = INFINITY


@engine_kernel
def put_in_segment(core, work, var, place):
    """Make a variable basic in a segment, at the price of that segment; its value stays."""
    work.place[var] = place
    work.price[var] = core.slope[place]
    work.price_low[var] = -INFINITY
    work.price_high[var] = INFINITY
    work.low[var] = core.kink[place]
    work.high[var] = core.kink[place + 1]


@engine_kernel
def put_basic_at_kink(core, work, var, place):
    """Make a variable basic in a segment of no width, at price 0."""
    work.place[var] = place
    work.price[var] = 0.0
    work.price_low[var] = -INFINITY
    work.price_high[var] = INFINITY
    work.low[var] = core.kink[place]
    work.high[var] = core.kink[place]


@engine_kernel
def put_where_price_suits(core, work, var):
    """Make a structural nonbasic at the kink that suits its price, or artificial where there is none."""
    first = core.piece_start[var]
    last = core.piece_start[var + 1] - 1
    price = work.price[var]
    place = first + 1
    while place < last and core.slope[place] < price:
        place += 1
    if place < last and core.slope[place - 1] <= price:
        put_at_kink(core, work, var, place)
        return
    work.low[var] = -INFINITY
    work.high[var] = INFINITY
    if core.slope[last - 1] <= price:
        work.place[var] = last
        work.price_low[var] = core.slope[last - 1]
        free = last == first + 1 and core.slope[first] == price
        work.price_high[var] = price if free else INFINITY
        work.value[var] = 0.0 if free else ARTIFICIAL_VALUE
    else:
        work.place[var] = first
        work.price_low[var] = -INFINITY
        work.price_high[var] = core.slope[first]
        work.value[var] = -ARTIFICIAL_VALUE
