"""From a stage template to its core form, by exact rules; what no rule applies to stays as it is.

1. A row without limits is left out.
2. An equation of one free column without cost determines the column: both move into the right-hand side.
3. An outgoing state is the slack of an equation that contains it and no other state; in other rows the
   equation replaces it. A state without such an equation, or one that would fill the matrix too much, gets a
   row ``x' - column = 0`` and keeps its column.
4. A column in one row, unless its slack is a state, becomes part of the cost of the row's slack.
5. Parallel columns become one.
6. A column whose value follows from its limits and that costs nothing there moves into the right-hand side.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cobre.lp.reduction.form import CUT_COST_AT_KINK, CUT_KINK, CUT_SLOPE, CoreForm
from cobre.lp.reduction.pieces import Members, end_slopes, merge
from cobre.lp.reduction.sparse import Compressed, compressed, totals
from cobre.lp.shared_arrays import SharedArrays
from cobre.lp.template import StageTemplate

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int32]
PlaceArray = NDArray[np.int64]
Mask = NDArray[np.bool_]

_SAFE_PIVOT = 2.0**-10
"""Share of an equation's largest coefficient that a state must have for the equation to replace it."""

NONE = -1


@dataclass(frozen=True, eq=False)
class _Lp:
    """The entries of a template that count: those of rows with a limit."""

    by_col: Compressed
    by_row: Compressed
    equation: Mask
    free_row: Mask
    rhs: FloatArray
    """Constant right-hand side of equations, 0 for other rows."""


@dataclass(frozen=True, eq=False)
class _Rows:
    """Where the rows of the template are in the core form, and what replaces columns.

    ``place`` is the core row of a template row and ``pivot`` what it is divided by. ``fixed_*`` are columns
    with the equation and coefficient that determine them. ``state_place`` and ``own_row`` are the core row of
    a state component and the template row it was made from.
    """

    num_rows: int
    num_state_rows: int
    place: PlaceArray
    pivot: FloatArray
    fixed_col: PlaceArray
    fixed_row: PlaceArray
    fixed_value: FloatArray
    state_place: PlaceArray
    own_row: PlaceArray


@dataclass(frozen=True, eq=False)
class _Columns:
    """What becomes of the columns that are neither fixed nor states with a row of their own.

    ``constant`` are left out at ``constant_value``; ``single`` go to the slack of their row; ``kept`` are
    structurals ``variable`` with ``factor`` units of the structural in one unit of the column, ``leading``
    the first column of each structural.
    """

    constant: PlaceArray
    constant_value: FloatArray
    single: PlaceArray
    kept: PlaceArray
    variable: PlaceArray
    factor: FloatArray
    leading: PlaceArray


def core_forms(templates: Sequence[StageTemplate], most_fill: float = math.inf) -> tuple[CoreForm, ...]:
    """Return the core form of each LP; equal arrays are shared, all of LPs that differ in openings only."""
    known: dict[bytes, CoreForm] = {}
    shared = SharedArrays()
    forms = []
    for template in templates:
        key = _content(template)
        if key not in known:
            form = core_form(template, most_fill)
            arrays: dict[str, Any] = {
                name: shared.one_of(part) for name, part in vars(form).items() if isinstance(part, np.ndarray)
            }
            known[key] = replace(form, **arrays)
        forms.append(replace(known[key], template=template))
    return tuple(forms)


_CONTENT = (
    *("cost", "col_lower", "col_upper", "row_lower", "row_upper", "fixed_rhs"),
    *("matrix_start", "matrix_row", "matrix_value", "state_col", "state_start", "state_row", "state_value"),
    *("noise_start", "noise_row", "noise_value"),
)


def _content(template: StageTemplate) -> bytes:
    """Return a digest of everything that a core form depends on."""
    digest = hashlib.blake2b(digest_size=16)
    for array in (getattr(template, name) for name in _CONTENT):
        digest.update(f"{array.shape}{array.dtype}".encode())
        digest.update(np.ascontiguousarray(array).data)
    digest.update(f"{template.theta_col}".encode())
    return digest.digest()


def core_form(template: StageTemplate, most_fill: float = math.inf) -> CoreForm:
    """Return the core form of a stage LP without cuts.

    Parameters
    ----------
    template
        The LP; the limits of no row or column cross.
    most_fill
        Most entries that replacing a state in the rows beside its own may add to the matrix: a state above it
        keeps its column.
    """
    lp = _live_entries(template)
    rows = _rows_of(template, lp, most_fill)
    matrix, duals = _substituted(template, lp, rows)
    columns = _columns_of(template, rows, matrix)
    theta = template.theta_col
    theta_scale = _theta_scale(template, matrix)
    num_cols = 1 + len(columns.leading)
    members, source, factor = _members(template, lp, rows, columns, matrix, theta_scale)
    pieces, split = merge(members, num_cols + rows.num_rows)

    core = matrix.take(np.concatenate([[theta], columns.leading]))
    core.value[: core.start[1]] *= theta_scale
    by_row = core.transposed(rows.num_rows)
    base = totals(duals.place, duals.value * lp.rhs[duals.line], rows.num_rows + len(rows.fixed_col))
    entries, owner = matrix.entries_of(columns.constant)
    base -= totals(matrix.place[entries], matrix.value[entries] * columns.constant_value[owner], len(base))
    noise, state = _right_hand_sides(template, duals, len(base))

    num = template.num_cols
    col_source, col_factor = np.zeros(num, np.int32), np.ones(num)
    origin, least, most, offset = np.zeros(num), np.zeros(num), np.zeros(num), np.zeros(num)
    has_column = source >= 0
    of = source[has_column]
    col_source[of], col_factor[of] = members.group[has_column], factor[has_column]
    for array, values in zip((origin, least, most, offset), split, strict=True):
        array[of] = values[has_column]
    col_source[rows.fixed_col] = num_cols + rows.num_rows + np.arange(len(rows.fixed_col))
    least[rows.fixed_col], most[rows.fixed_col] = -np.inf, np.inf
    offset[columns.constant] = columns.constant_value
    fixed_place = np.full(num, NONE, np.int32)
    fixed_place[rows.fixed_col] = np.arange(len(rows.fixed_col))
    return CoreForm(
        template=template,
        num_cols=num_cols,
        num_rows=rows.num_rows,
        num_state_rows=rows.num_state_rows,
        num_fixed=len(rows.fixed_col),
        row_start=by_row.start,
        row_col=by_row.place,
        row_value=by_row.value,
        col_start=core.start,
        col_row=core.place,
        col_value=core.value,
        piece_start=pieces.start,
        kink=np.append(pieces.kink, CUT_KINK),
        slope=np.append(pieces.slope, CUT_SLOPE),
        cost_at_kink=np.append(pieces.cost, CUT_COST_AT_KINK),
        theta_scale=theta_scale,
        base=base,
        noise_start=noise.start,
        noise_row=noise.place,
        noise_value=noise.value,
        state_start=state.start,
        state_row=state.place,
        state_value=state.value,
        state_place=rows.state_place.astype(np.int32),
        fixed_place=fixed_place[template.state_col],
        dual_start=duals.start,
        dual_row=duals.place,
        dual_value=duals.value,
        col_source=col_source,
        col_origin=origin,
        col_least=least,
        col_most=most,
        col_offset=offset,
        col_factor=col_factor,
    )


def _live_entries(template: StageTemplate) -> _Lp:
    """Rule 1; the limits of dynamic rows in the template are not theirs."""
    dynamic = np.arange(template.num_rows) < template.num_dynamic_rows
    free_row = np.isneginf(template.row_lower) & np.isposinf(template.row_upper) & ~dynamic
    equation = (template.row_lower == template.row_upper) | dynamic
    rhs = np.where(equation, template.row_lower, 0.0)
    rhs[: template.num_dynamic_rows] = template.fixed_rhs
    whole = Compressed(template.matrix_start, template.matrix_row, template.matrix_value)
    live = (whole.value != 0.0) & ~free_row[whole.place]
    by_col = compressed(
        whole.line[live],
        whole.place[live].astype(np.int64),
        whole.value[live],
        template.num_cols,
        template.num_rows,
    )
    return _Lp(by_col, by_col.transposed(template.num_rows), equation, free_row, rhs)


def _rows_of(template: StageTemplate, lp: _Lp, most_fill: float) -> _Rows:
    """Rules 2 and 3."""
    theta = template.theta_col
    rows = np.flatnonzero(lp.equation & (lp.by_row.count == 1))
    entry = lp.by_row.start[rows]
    free = np.isneginf(template.col_lower) & np.isposinf(template.col_upper) & (template.cost == 0.0)
    free[theta] = False
    chosen = free[lp.by_row.place[entry]]
    rows, entry = rows[chosen], entry[chosen]
    fixed_col, first = np.unique(lp.by_row.place[entry], return_index=True)
    fixed_row, fixed_value = rows[first], lp.by_row.value[entry[first]]
    fixing = np.zeros(template.num_rows, np.bool_)
    fixing[fixed_row] = True

    is_fixed = np.zeros(template.num_cols, np.bool_)
    is_fixed[fixed_col] = True
    carried = ~is_fixed[template.state_col]
    state_place = np.full(template.num_states, NONE, np.int64)
    state_place[carried] = np.arange(carried.sum())
    own_row, own_value = _own_rows(template, lp, carried, fixing, most_fill)
    place = np.full(template.num_rows, NONE, np.int64)
    owned = own_row >= 0
    place[own_row[owned]] = state_place[owned]
    pivot = np.ones(template.num_rows)
    pivot[own_row[owned]] = own_value[owned]
    others = np.flatnonzero((place < 0) & ~fixing & ~lp.free_row)
    num_state_rows = int(carried.sum())
    place[others] = num_state_rows + np.arange(len(others))
    return _Rows(
        num_rows=num_state_rows + len(others),
        num_state_rows=num_state_rows,
        place=place,
        pivot=pivot,
        fixed_col=fixed_col.astype(np.int64),
        fixed_row=fixed_row,
        fixed_value=fixed_value,
        state_place=state_place,
        own_row=own_row,
    )


def _own_rows(
    template: StageTemplate, lp: _Lp, carried: Mask, fixing: Mask, most_fill: float
) -> tuple[PlaceArray, FloatArray]:
    """Return the equation that each state component becomes the slack of, and its coefficient there."""
    by_col = lp.by_col
    is_state = np.zeros(template.num_cols, np.bool_)
    is_state[template.state_col[carried]] = True
    states_in_row = np.bincount(by_col.place[is_state[by_col.line]], minlength=template.num_rows)
    largest = np.zeros(template.num_rows)
    np.maximum.at(largest, by_col.place, np.abs(by_col.value))
    named = np.bincount(template.state_col, minlength=template.num_cols)[template.state_col]
    candidates = np.flatnonzero(carried & (named == 1) & (template.state_col != template.theta_col))
    entries, owner = by_col.entries_of(template.state_col[candidates].astype(np.int64))
    row, value = by_col.place[entries], by_col.value[entries]
    usable = lp.equation[row] & ~fixing[row] & (states_in_row[row] == 1)
    usable &= np.abs(value) >= _SAFE_PIVOT * largest[row]
    rows_beside = by_col.count[template.state_col[candidates]][owner] - 1
    usable &= rows_beside * (lp.by_row.count[row] - 1) <= most_fill
    first_owner, first = np.unique(owner[usable], return_index=True)
    own_row = np.full(template.num_states, NONE, np.int64)
    own_value = np.ones(template.num_states)
    own_row[candidates[first_owner]] = row[usable][first]
    own_value[candidates[first_owner]] = value[usable][first]
    return own_row, own_value


def _substituted(template: StageTemplate, lp: _Lp, rows: _Rows) -> tuple[Compressed, Compressed]:
    """Return the core rows over the template's columns, and the weights of template rows in extended rows.

    Columns that became slacks are empty, those that are fixed are still there.
    """
    by_col, by_row = lp.by_col, lp.by_row
    own_row = np.full(template.num_cols, NONE, np.int64)
    owned = rows.own_row >= 0
    own_row[template.state_col[owned]] = rows.own_row[owned]
    line, row = by_col.line, by_col.place
    stays = (own_row[line] < 0) & (rows.place[row] >= 0)
    replaced = np.flatnonzero((own_row[line] >= 0) & (own_row[line] != row))
    equation = own_row[line[replaced]]
    ratio = by_col.value[replaced] / rows.pivot[equation]
    target = rows.place[row[replaced]]
    entries, owner = by_row.entries_of(equation)
    other = by_row.place[entries] != line[replaced][owner]
    entries, owner = entries[other], owner[other]
    copied = np.flatnonzero((rows.state_place >= 0) & ~owned)
    matrix = compressed(
        np.concatenate([line[stays], by_row.place[entries], template.state_col[copied]]),
        np.concatenate([rows.place[row[stays]], target[owner], rows.state_place[copied]]),
        np.concatenate(
            [
                by_col.value[stays] / rows.pivot[row[stays]],
                -ratio[owner] * by_row.value[entries],
                np.full(len(copied), -1.0),
            ]
        ),
        template.num_cols,
        rows.num_rows,
    )
    kept = np.flatnonzero(rows.place >= 0)
    through, owner = matrix.entries_of(rows.fixed_col)
    num_fixed = len(rows.fixed_col)
    weights = compressed(
        np.concatenate([kept, equation, rows.fixed_row, rows.fixed_row[owner]]),
        np.concatenate(
            [rows.place[kept], target, rows.num_rows + np.arange(num_fixed), matrix.place[through]]
        ),
        np.concatenate(
            [
                1.0 / rows.pivot[kept],
                -ratio,
                1.0 / rows.fixed_value,
                -matrix.value[through] / rows.fixed_value[owner],
            ]
        ),
        template.num_rows,
        rows.num_rows + num_fixed,
    )
    return matrix, weights


def _columns_of(template: StageTemplate, rows: _Rows, matrix: Compressed) -> _Columns:
    """Rules 4 to 6."""
    cost, lower, upper = template.cost, template.col_lower, template.col_upper
    rest = np.ones(template.num_cols, np.bool_)
    rest[template.theta_col] = False
    rest[rows.fixed_col] = False
    rest[template.state_col[rows.own_row >= 0]] = False
    count = matrix.count
    best = np.where(cost > 0.0, lower, np.where(cost < 0.0, upper, np.clip(0.0, lower, upper)))
    known = ((lower == upper) | (count == 0)) & np.isfinite(best)
    constant = rest & known & (cost * np.where(known, best, 0.0) == 0.0)
    rest &= ~constant
    only_row = np.zeros(template.num_cols, np.int64)
    filled = np.flatnonzero(count > 0)
    only_row[filled] = matrix.place[matrix.start[filled]]
    single = np.flatnonzero(rest & (count == 1) & (only_row >= rows.num_state_rows))
    ends = end_slopes(
        _in_units(template, single, matrix.value[matrix.start[single]], only_row[single]), rows.num_rows
    )
    single = single[(ends[0] <= ends[1])[only_row[single]]]
    rest[single] = False
    kept = np.flatnonzero(rest)
    first_value = np.ones(len(kept))
    some = count[kept] > 0
    first_value[some] = matrix.value[matrix.start[kept[some]]]
    same_as = _parallel(matrix, kept)
    factor = first_value / first_value[same_as]
    ends = end_slopes(_in_units(template, kept, factor, same_as), len(kept))
    same_as = np.where((ends[0] <= ends[1])[same_as], same_as, np.arange(len(kept)))
    factor = first_value / first_value[same_as]
    leading, variable = np.unique(same_as, return_inverse=True)
    return _Columns(
        constant=np.flatnonzero(constant),
        constant_value=best[constant],
        single=single,
        kept=kept,
        variable=1 + variable.ravel(),
        factor=factor,
        leading=kept[leading],
    )


def _in_units(template: StageTemplate, columns: PlaceArray, factor: FloatArray, group: PlaceArray) -> Members:
    """Return columns as members of groups, in units of which ``factor`` make one unit of the column."""
    ends = factor * template.col_lower[columns], factor * template.col_upper[columns]
    return Members(group, np.minimum(*ends), np.maximum(*ends), template.cost[columns] / factor)


def _parallel(matrix: Compressed, columns: PlaceArray) -> PlaceArray:
    """Return for each column the position of the first that it is a multiple of; empty ones stand alone."""
    found = np.arange(len(columns))
    own = matrix.take(columns)
    rows, ratios = own.place.tobytes(), (own.value / own.value[own.start[:-1][own.line]]).tobytes()
    ends = own.start.tolist()
    first: dict[bytes, int] = {}
    for position, (begin, end) in enumerate(pairwise(ends)):
        if begin < end:
            found[position] = first.setdefault(
                rows[4 * begin : 4 * end] + ratios[8 * begin : 8 * end], position
            )
    return found


def _members(
    template: StageTemplate,
    lp: _Lp,
    rows: _Rows,
    columns: _Columns,
    matrix: Compressed,
    theta_scale: float,
) -> tuple[Members, PlaceArray, FloatArray]:
    """Return what the costs of variables are made of, and the column (or none) and factor of each member."""
    theta = np.array([template.theta_col])
    first_slack = 1 + len(columns.leading)
    owned = np.flatnonzero(rows.own_row >= 0)
    state = template.state_col[owned].astype(np.int64)
    copied = np.flatnonzero((rows.state_place >= 0) & (rows.own_row < 0))
    row = np.flatnonzero(rows.place >= rows.num_state_rows)
    entry = matrix.start[columns.single]
    blank = np.full(len(copied), np.inf)
    slack_lower = np.where(lp.equation[row], 0.0, -template.row_upper[row])
    slack_upper = np.where(lp.equation[row], 0.0, -template.row_lower[row])
    unit = np.ones(len(state))
    parts = (
        _in_units(template, theta, np.array([1.0 / theta_scale]), np.zeros(1, np.int64)),
        _in_units(template, columns.kept, columns.factor, columns.variable),
        _in_units(template, state, unit, first_slack + rows.state_place[owned]),
        Members(first_slack + rows.state_place[copied], -blank, blank, np.zeros(len(copied))),
        Members(first_slack + rows.place[row], slack_lower, slack_upper, np.zeros(len(row))),
        _in_units(
            template, columns.single, matrix.value[entry], first_slack + matrix.place[entry].astype(np.int64)
        ),
    )
    nothing = np.full(len(copied) + len(row), NONE)
    source = np.concatenate([theta, columns.kept, state, nothing, columns.single])
    factor = np.concatenate(
        [[1.0 / theta_scale], columns.factor, unit, np.ones(len(nothing)), matrix.value[entry]]
    )
    return Members(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True))), source, factor


def _theta_scale(template: StageTemplate, matrix: Compressed) -> float:
    """Return the power of two next to the median price, so that the rows of cuts are well scaled."""
    priced = (template.cost != 0.0) & (matrix.count > 0)
    priced[template.theta_col] = False
    columns = np.flatnonzero(priced)
    if not len(columns):
        return 1.0
    price = np.abs(template.cost[columns] / matrix.value[matrix.start[columns]])
    return float(2.0 ** np.round(np.log2(np.median(price))))


def _right_hand_sides(
    template: StageTemplate, duals: Compressed, extended: int
) -> tuple[Compressed, Compressed]:
    """Return N and S over the extended rows."""
    entities, states = len(template.noise_start) - 1, template.num_states
    count = np.concatenate([np.diff(template.noise_start), np.diff(template.state_start)])
    line = np.repeat(np.arange(entities + states), count)
    row = np.concatenate([template.noise_row, template.state_row]).astype(np.int64)
    value = np.concatenate([template.noise_value, template.state_value])
    entries, owner = duals.entries_of(row)
    both = compressed(
        line[owner],
        duals.place[entries].astype(np.int64),
        duals.value[entries] * value[owner],
        entities + states,
        extended,
    )
    middle = both.start[entities]
    noise = Compressed(both.start[: entities + 1].copy(), both.place[:middle], both.value[:middle])
    return noise, Compressed(both.start[entities:] - middle, both.place[middle:], both.value[middle:])
