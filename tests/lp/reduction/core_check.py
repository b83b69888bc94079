"""Solves a stage LP as its template and in core form, and compares everything that comes back."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np

from cobre.lp import StageTemplate
from cobre.lp.highs import HighsModel
from cobre.lp.reach import reach_of
from cobre.lp.reduction import CoreForm, core_form


@dataclass(frozen=True)
class Cuts:
    """Cuts ``theta >= intercept + slope . x'`` in units of the LP."""

    intercept: np.ndarray
    slope: np.ndarray


def no_cuts(template: StageTemplate) -> Cuts:
    return Cuts(np.zeros(0), np.zeros((0, template.num_states)))


def random_cuts(template: StageTemplate, random: np.random.Generator, count: int) -> Cuts:
    """Return cuts whose slopes are of the size of the prices, most of them negative."""
    priced = np.abs(template.cost[template.cost != 0.0])
    price = float(np.median(priced)) / max(template.num_states, 1)
    slope = price * random.normal(-1.0, 1.0, (count, template.num_states))
    slope[random.random(slope.shape) < 0.3] = 0.0
    floor = template.col_lower[template.theta_col]
    return Cuts(floor + price * random.uniform(0.0, 500.0, count), slope)


def random_state(template: StageTemplate, random: np.random.Generator) -> np.ndarray:
    reach = reach_of(template)
    return reach.state_least + random.random(template.num_states) * (reach.state_most - reach.state_least)


def arrays_of(lower, upper, cost, row_lower, row_upper, start, row, value) -> SimpleNamespace:
    """Return an LP as ``HighsModel`` takes it."""
    return SimpleNamespace(
        stage_id=0,
        num_cols=len(cost),
        num_rows=len(row_lower),
        cost=np.ascontiguousarray(cost, np.float64),
        col_lower=np.ascontiguousarray(lower, np.float64),
        col_upper=np.ascontiguousarray(upper, np.float64),
        row_lower=np.ascontiguousarray(row_lower, np.float64),
        row_upper=np.ascontiguousarray(row_upper, np.float64),
        matrix_start=np.ascontiguousarray(start, np.int32),
        matrix_row=np.ascontiguousarray(row, np.int32),
        matrix_value=np.ascontiguousarray(value, np.float64),
    )


def segments(form: CoreForm):
    """Return anchor and cost of each variable, and its segments as (variable, lower, upper, price)."""
    size = form.num_cols + form.num_rows
    anchor, constant, parts = np.zeros(size), 0.0, []
    for v in range(size):
        begin, end = form.piece_start[v], form.piece_start[v + 1] - 1
        kink, slope = form.kink[begin : end + 1], form.slope[begin : end + 1]
        assert np.isneginf(kink[0])
        assert np.isposinf(kink[-1])
        assert (np.diff(kink[1:-1]) > 0.0).all()
        assert (np.diff(slope[:-1]) > 0.0).all() or (len(kink) == 3 and slope[0] == slope[1])
        if end - begin == 1:
            parts.append((v, -np.inf, np.inf, slope[0]))
            continue
        anchor[v] = kink[1]
        constant += form.cost_at_kink[begin + 1]
        steps = form.cost_at_kink[begin + 2 : end] - form.cost_at_kink[begin + 1 : end - 1]
        np.testing.assert_allclose(
            steps,
            np.diff(kink[1:-1]) * slope[1:-2],
            rtol=1e-9,
            atol=1e-9 * np.abs(form.cost_at_kink[begin + 1 : end]).max(),
        )
        if np.isfinite(slope[0]):
            parts.append((v, -np.inf, 0.0, slope[0]))
        parts += [(v, 0.0, kink[p + 1] - kink[p], slope[p]) for p in range(1, end - begin - 1)]
        if np.isfinite(slope[end - begin - 1]):
            parts.append((v, 0.0, np.inf, slope[end - begin - 1]))
    return anchor, constant, parts


def solve_core(form: CoreForm, b: np.ndarray, cuts: Cuts):
    """Return status, value, structurals, slacks, duals of rows and cuts, from HiGHS."""
    anchor, constant, parts = segments(form)
    rows, columns = form.num_rows, form.num_cols
    dense_start, dense_row, dense_value = [0], [], []
    for v, *_ in parts:
        if v < columns:
            entries = slice(form.col_start[v], form.col_start[v + 1])
            dense_row += list(form.col_row[entries])
            dense_value += list(form.col_value[entries])
        else:
            dense_row.append(v - columns)
            dense_value.append(1.0)
        dense_start.append(len(dense_row))
    structural = np.repeat(np.arange(columns), np.diff(form.col_start))
    rest = b[:rows] - anchor[columns:]
    np.subtract.at(rest, form.col_row, form.col_value * anchor[structural])
    variable, lower, upper, price = (np.array(values) for values in zip(*parts, strict=True))
    lp = arrays_of(lower, upper, price, rest, rest, dense_start, dense_row, dense_value)
    states = form.state_place >= 0
    with HighsModel(lp) as model:
        for alpha, slope in zip(cuts.intercept, cuts.slope, strict=True):
            # theta - pi . (b - A x) >= alpha + pi . fixed, with theta in its own unit.
            by_row = np.zeros(rows)
            by_row[form.state_place[states]] = slope[states]
            weights = np.zeros(columns)
            np.add.at(weights, structural, form.col_value * by_row[form.col_row])
            weights[0] += form.theta_scale
            limit = alpha + by_row @ b[:rows] + slope[~states] @ b[rows + form.fixed_place[~states]]
            own = weights[np.minimum(variable, columns - 1)] * (variable < columns)
            used = np.flatnonzero(np.abs(own) > 1e-12)
            model.add_row(float(limit - weights @ anchor[:columns]), used.astype(np.int32), own[used])
        status = model.solve()
        amounts, _, duals = model._solution(len(parts), rows + len(cuts.intercept))
        x = anchor + np.bincount(variable, weights=amounts, minlength=len(anchor))
        return status, model.objective() + constant, x[:columns], x[columns:], duals[:rows], duals[rows:]


def solve_template(template: StageTemplate, rhs: np.ndarray, cuts: Cuts):
    """Return status and value."""
    with HighsModel(template) as model:
        model.set_row_bounds(0, rhs, rhs)
        for alpha, slope in zip(cuts.intercept, cuts.slope, strict=True):
            weights = np.zeros(template.num_cols)
            np.subtract.at(weights, template.state_col, slope)
            weights[template.theta_col] += 1.0
            used = np.flatnonzero(np.abs(weights) > 1e-12)
            model.add_row(float(alpha), used.astype(np.int32), weights[used])
        return model.solve(), model.objective()


def assert_same(
    template: StageTemplate, form: CoreForm, noise: np.ndarray, state: np.ndarray, cuts: Cuts
) -> str:
    """Compare value, recovered point and recovered duals; return the status, which is the same."""
    rhs = template.rhs_at(noise, state)
    status, value = solve_template(template, rhs, cuts)
    b = form.right_hand_side(template._realised(noise, state), state)
    found, core_value, x, slack, y, cut_duals = solve_core(form, b, cuts)
    assert (found == "optimal") == (status == "optimal"), (found, status)
    if status != "optimal":
        return status
    columns, activity = form.primal(x, slack, b)
    worth = np.abs(template.cost * columns).sum()
    close = 1e-9 * max(worth, abs(value), 1.0)
    assert abs(core_value - value) <= close

    size = 1.0 + np.abs(columns).max()
    row_lower, row_upper = template.row_lower.copy(), template.row_upper.copy()
    row_lower[: len(rhs)] = row_upper[: len(rhs)] = rhs
    assert (columns >= template.col_lower - 1e-9 * size).all()
    assert (columns <= template.col_upper + 1e-9 * size).all()
    assert (activity >= row_lower - 1e-7 * (1.0 + 1e-3 * size)).all()
    assert (activity <= row_upper + 1e-7 * (1.0 + 1e-3 * size)).all()
    assert abs(template.cost @ columns - value) <= close

    state_price = cut_duals @ cuts.slope
    duals = form.duals(y, state_price)
    extended = form.extended_duals(y, state_price)
    for name in ("noise", "state"):
        slopes = []
        for lp, prices in ((template, duals), (form, extended)):
            start, row, weight = (getattr(lp, f"{name}_{part}") for part in ("start", "row", "value"))
            line = np.repeat(np.arange(len(start) - 1), np.diff(start))
            slopes.append(np.bincount(line, weights=weight * prices[row], minlength=len(start)))
        np.testing.assert_allclose(*slopes, rtol=1e-9, atol=1e-9 * (1.0 + np.abs(extended).max(initial=0.0)))
    per_column = duals[template.matrix_row] * template.matrix_value
    of = np.repeat(np.arange(template.num_cols), np.diff(template.matrix_start))
    reduced = template.cost - np.bincount(of, weights=per_column, minlength=template.num_cols)
    np.add.at(reduced, template.state_col, state_price)
    reduced[template.theta_col] -= cut_duals.sum()
    magnitude = np.abs(template.cost) + np.bincount(
        of, weights=np.abs(per_column), minlength=template.num_cols
    )
    # The bound of weak duality; where there is no limit, a dual is as good as 0.
    bound = cut_duals @ cuts.intercept
    for dual, low, high, rounding in (
        (duals, row_lower, row_upper, 1e-12 * np.abs(duals).max()),
        (reduced, template.col_lower, template.col_upper, 1e-12 * magnitude),
    ):
        end = np.where(dual > 0.0, low, high)
        limited = np.isfinite(end)
        assert (np.abs(dual) <= 1e-9 + rounding)[~limited].all(), "a dual of the wrong sign"
        bound += dual[limited] @ end[limited]
    assert abs(bound - value) <= 10.0 * close, (bound, value, close)
    return status


def check(template: StageTemplate, random: np.random.Generator, most_fill: float) -> tuple[CoreForm, int]:
    """Compare at random states and openings, without cuts and with some; return how many had an optimum."""
    form = core_form(template, most_fill)
    optimal = 0
    for cut_count in (0, 3):
        noise = template.opening_values[random.integers(template.num_openings)]
        cuts = random_cuts(template, random, cut_count)
        optimal += assert_same(template, form, noise, random_state(template, random), cuts) == "optimal"
    return form, optimal
