"""LPs in core form for tests of the engine: builders, the reference by HiGHS, and a way to solve them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csc_matrix, csr_matrix

from cobre.lp.engines.own.core import (
    DUAL_VALUE,
    INFEASIBLE,
    LARGEST_KERNEL,
    OPTIMAL,
    UNBOUNDED,
    CoreStruct,
    CutStruct,
    SavedStruct,
    StoreStruct,
    WorkStruct,
    core_arrays,
    cut_columns,
    new_basis_store,
    new_saved_states,
    new_workspace,
)
from cobre.lp.engines.own.entry import FROM_STORE, INTO_STORE, engine_function
from cobre.lp.reduction.form import CUT_COST_AT_KINK, CUT_KINK, CUT_SLOPE
from cobre.native import HeldStruct

INF = np.inf
HIGHS_STATUS = {0: OPTIMAL, 2: INFEASIBLE, 3: UNBOUNDED}

Pieces = tuple[list[float], list[float]]
"""Kinks, and the slopes before, between and behind them: one more."""


@dataclass
class CoreProblem:
    """An LP in core form; field names as of the reduction."""

    matrix: Any
    pieces: list[Pieces]
    num_state_rows: int = 0
    theta_scale: float = 1.0
    row_start: Any = field(init=False)

    def __post_init__(self) -> None:
        dense = np.atleast_2d(np.asarray(self.matrix, float))
        self.num_rows, self.num_cols = dense.shape
        rows, cols = csr_matrix(dense), csc_matrix(dense)
        self.row_start, self.row_col, self.row_value = rows.indptr, rows.indices, rows.data
        self.col_start, self.col_row, self.col_value = cols.indptr, cols.indices, cols.data
        start, kink, slope, cost = [0], [], [], []
        for kinks, slopes in self.pieces:
            costs = [0.0] * len(kinks)
            if kinks:
                zero = int(np.argmin(np.abs(kinks)))
                near = slopes[zero] if np.isfinite(slopes[zero]) else slopes[zero + 1]
                costs[zero] = kinks[zero] * near if np.isfinite(near) else 0.0
                for i in range(zero + 1, len(kinks)):
                    costs[i] = costs[i - 1] + slopes[i] * (kinks[i] - kinks[i - 1])
                for i in range(zero - 1, -1, -1):
                    costs[i] = costs[i + 1] - slopes[i + 1] * (kinks[i + 1] - kinks[i])
            kink += [-INF, *kinks, INF]
            slope += [*slopes, INF]
            cost += [0.0, *costs, 0.0]
            start.append(len(kink))
        self.piece_start = np.array(start, np.int32)
        self.kink = np.array([*kink, *CUT_KINK])
        self.slope = np.array([*slope, *CUT_SLOPE])
        self.cost_at_kink = np.array([*cost, *CUT_COST_AT_KINK])
        self.dense = dense

    def solve_by_highs(self, rhs, slopes=None, constants=None):
        """Return status and value with every piece as a column and every cut as a row."""
        blocks, costs, bounds, offset = [], [], [], np.array(rhs, float)
        total = 0.0
        identity = np.eye(self.num_rows)
        future = []
        states = np.zeros((self.num_state_rows, 0))
        shift = np.zeros(self.num_state_rows)
        future_shift = 0.0
        for var in range(self.num_cols + self.num_rows):
            column = self.dense[:, var] if var < self.num_cols else identity[:, var - self.num_cols]
            first, last = self.piece_start[var], self.piece_start[var + 1] - 1
            if last == first + 1:
                segments = [(-INF, INF, self.slope[first])]
                base = 0.0
            else:
                base = self.kink[first + 1]
                total += self.cost_at_kink[first + 1]
                segments = []
                if self.slope[first] > -INF:
                    segments.append((-INF, 0.0, self.slope[first]))
                for place in range(first + 1, last):
                    if self.slope[place] < INF:
                        segments.append((0.0, self.kink[place + 1] - self.kink[place], self.slope[place]))
            offset -= column * base
            row = var - self.num_cols
            part = np.zeros((self.num_state_rows, len(segments)))
            if 0 <= row < self.num_state_rows:
                part[row] = 1.0
                shift[row] = base
            if var == 0:
                future_shift = base * self.theta_scale
            future += [self.theta_scale if var == 0 else 0.0] * len(segments)
            states = np.hstack([states, part])
            for low, high, slope in segments:
                blocks.append(column)
                costs.append(slope)
                bounds.append((low, high))
        options = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
        cut_rows, cut_rhs = None, None
        if slopes is not None and slopes.shape[1]:
            cut_rows = slopes.T @ states - np.array(future)
            cut_rhs = future_shift - constants - slopes.T @ shift
        if not blocks:
            feasible = np.abs(offset).max(initial=0.0) <= 1e-9
            return (OPTIMAL, total) if feasible else (INFEASIBLE, np.nan)
        found = linprog(
            costs,
            A_ub=cut_rows,
            b_ub=cut_rhs,
            A_eq=np.array(blocks).T if self.num_rows else None,
            b_eq=offset if self.num_rows else None,
            bounds=bounds,
            method="highs",
            options=options,
        )
        if found.status == 4 or (found.status in (2, 3)):
            found = linprog(
                costs,
                A_ub=cut_rows,
                b_ub=cut_rhs,
                A_eq=np.array(blocks).T if self.num_rows else None,
                b_eq=offset if self.num_rows else None,
                bounds=bounds,
                method="highs-ds",
                options={**options, "presolve": False},
            )
        value = found.fun + total if found.status == 0 else np.nan
        return HIGHS_STATUS.get(found.status, -1), value


class Solver:
    """A problem with the arrays of one worker."""

    largest_kernel = LARGEST_KERNEL
    """0 for sparse factors of all kernels."""

    def __init__(self, problem, slopes=None, num_slots=16, num_saved=4, num_keys=2):
        self.problem = problem
        self.core = core_arrays(problem)
        slopes = np.zeros((problem.num_state_rows, 0)) if slopes is None else np.asarray(slopes, float)
        self.cuts = cut_columns(slopes)
        self.work = new_workspace(
            problem.num_cols, problem.num_rows, num_slots, slopes.shape[1], self.largest_kernel
        )
        self.saved = new_saved_states(self.work, max(num_saved, 1))
        self.store = new_basis_store(self.work, num_keys)
        self.engine = engine_function()

    def solve(self, rhs, constants=None, key=0, stores=False, order=None, parent=None, keep=None):
        """Return statuses, values and prices; without an order one LP after the other."""
        rhs = np.atleast_2d(np.asarray(rhs, float))
        count = len(rhs)
        cuts = int(self.cuts.num_cuts[0])
        if constants is None:
            constants = np.zeros((count, cuts))
        constants = np.array(np.broadcast_to(np.atleast_2d(constants), (count, cuts)), order="C")
        none = np.full(count, -1, np.int32)
        order = np.arange(count, dtype=np.int32) if order is None else order
        parent = none if parent is None else parent
        keep = none if keep is None else keep
        status = np.zeros(count, np.int64)
        value = np.zeros(count)
        price = np.zeros((count, self.problem.num_rows))
        held = [
            HeldStruct(CoreStruct, self.core),
            HeldStruct(WorkStruct, self.work),
            HeldStruct(CutStruct, self.cuts),
            HeldStruct(SavedStruct, self.saved),
            HeldStruct(StoreStruct, self.store),
        ]
        for place, opening in enumerate(order):
            self.work.rhs[: self.problem.num_rows] = rhs[opening]
            self.work.cut_constant[:cuts] = constants[opening]
            start, end = (FROM_STORE if place == 0 else parent[place]), keep[place]
            if place == 0 and stores:
                assert end < 0, "a state is either stored or kept"
                end = INTO_STORE
            addresses = [part.address for part in held]
            status[opening] = self.engine.ctypes(*addresses, key, int(start), int(end))
            value[opening] = self.work.result[DUAL_VALUE]
            first = self.problem.num_cols
            price[opening] = self.work.price[first : first + self.problem.num_rows]
        return status, value, price


def bounded(low: float, high: float, cost: float) -> Pieces:
    """Return the pieces of a plain column."""
    kinks, slopes = [], [cost]
    if low > -INF:
        kinks, slopes = [low], [-INF, cost]
    if high < INF and high > low:
        kinks, slopes = [*kinks, high], [*slopes, INF]
    elif high == low:
        slopes = [-INF, INF]
    return kinks, slopes


def random_pieces(rng: np.random.Generator, scale: float = 1.0) -> Pieces:
    """Return a convex cost of one of many kinds, with numbers that often coincide."""
    kind = rng.integers(8)
    low, high = sorted(rng.integers(-4, 8, 2).astype(float) * scale)
    cost = float(rng.integers(-2, 6))
    if kind == 0:
        return bounded(low, high, cost)
    if kind == 1:
        return bounded(low, INF, cost)
    if kind == 2:
        return bounded(-INF, high, cost)
    if kind == 3:
        return bounded(low, low, cost)
    count = int(rng.integers(1, 5))
    kinks = np.unique(np.sort(rng.integers(-6, 10, count))).astype(float) * scale
    slopes = np.sort(rng.integers(-5, 9, len(kinks) + 1)).astype(float)
    slopes = slopes + np.arange(len(slopes)) * 0.25
    ends = rng.integers(4)
    result = slopes.tolist()
    if ends & 1:
        result[0] = -INF
    if ends & 2:
        result[-1] = INF
    return kinks.tolist(), result


def random_problem(rng: np.random.Generator, cols: int, rows: int, spread: float = 0.0) -> CoreProblem:
    """Return an LP with sparse small numbers, feasible or not; ``spread`` decades of bad scaling."""
    matrix = rng.integers(-3, 4, (rows, cols)) * (rng.random((rows, cols)) < 0.5)
    row_scale = 10.0 ** (spread * rng.random(rows))
    matrix = matrix * row_scale[:, None]
    pieces = [random_pieces(rng) for _ in range(cols)]
    for row in range(rows):
        kind = rng.integers(6)
        if kind == 0:
            pieces.append(([0.0], [-INF, INF]))
        elif kind == 1:
            pieces.append(bounded(-INF, INF, 0.0))
        else:
            pieces.append(random_pieces(rng, row_scale[row]))
    return CoreProblem(matrix, pieces)


def reservoir_problem(rng: np.random.Generator, plants: int, blocks: int) -> CoreProblem:
    """Return a stage LP: reservoirs in a cascade, releases and spillage by block, rows of load.

    Structural 0 is the future cost; the slack of row r < plants is the outgoing storage.
    """
    cols = 1 + 2 * plants * blocks
    rows = plants + blocks
    matrix = np.zeros((rows, cols))
    pieces: list[Pieces] = [bounded(0.0, INF, 1.0)]
    col = 1
    for block in range(blocks):
        for plant in range(plants):
            for spills in (False, True):
                matrix[plant, col] = 1.0
                if plant + 1 < plants and rng.random() < 0.7:
                    matrix[plant + 1, col] = -1.0
                if not spills:
                    matrix[plants + block, col] = float(np.round(rng.uniform(0.3, 1.2), 2))
                pieces.append(bounded(0.0, 40.0 if not spills else INF, 0.0 if not spills else 0.01))
                col += 1
    for _ in range(plants):
        pieces.append(bounded(0.0, float(rng.integers(80, 200)), 0.0))
    for _ in range(blocks):
        costs = np.sort(np.round(rng.uniform(10.0, 200.0, 5), 1))
        sizes = rng.integers(10, 60, 5).cumsum().astype(float)
        pieces.append(([0.0, *sizes], [-1.0, *costs, 1000.0]))
    return CoreProblem(matrix, pieces, num_state_rows=plants)


def badly_scaled_problem(rng: np.random.Generator) -> CoreProblem:
    """Return penalties of 1e5 beside costs of 1e-5, and columns that touch rows by 1e-8 .. 1e-4."""
    base = reservoir_problem(rng, 8, 2)
    empty = base.dense == 0.0
    empty[:, 0] = False
    small = 10.0 ** rng.uniform(-8.0, -4.0, empty.shape) * rng.choice([-1.0, 1.0], empty.shape)
    matrix = np.where(empty & (rng.random(empty.shape) < 0.5), small, base.dense)
    pieces = [base.pieces[0]]
    for kinks, slopes in base.pieces[1 : base.num_cols]:
        spills = slopes[-1] < INF
        pieces.append(bounded(0.0, INF, 10.0 ** rng.uniform(-5.0, -3.0)) if spills else (kinks, slopes))
    pieces += base.pieces[base.num_cols : -2]
    pieces += [(kinks, [slope * 1e2 for slope in slopes]) for kinks, slopes in base.pieces[-2:]]
    return CoreProblem(matrix, pieces, 8)


def agree(value, expected):
    """Return whether two optimal values are the same but for rounding."""
    return abs(value - expected) <= 1e-9 * (1.0 + abs(expected))


def study(seed, plants, blocks, cuts, openings=6):
    """Return a stage LP, right-hand sides, and the slopes and constants of cuts."""
    rng = np.random.default_rng(seed)
    problem = reservoir_problem(rng, plants, blocks)
    water = np.maximum(rng.uniform(50, 200, plants) + rng.normal(0, 30, (openings, plants)), 5.0)
    load = rng.uniform(50, 150 * blocks, blocks) + rng.normal(0, 5, (openings, blocks))
    slopes = -rng.uniform(0.0, 120.0, (plants, cuts)) * (rng.random((plants, cuts)) < 0.8)
    centre = rng.uniform(0.0, 150.0, (plants, cuts))
    constants = 8000.0 + 500.0 * rng.random(cuts) - (slopes * centre).sum(axis=0)
    return problem, np.hstack([water, load]), slopes, constants
