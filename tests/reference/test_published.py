"""Published optima: each problem solved by its own formulation, and trained as a case.

Sources, all in the documentation of SDDP.jl (https://sddp.dev):

* Three weeks (tutorial "An introduction to SDDP.jl"): storage 0-200 from 200, inflow 0, 50 or 100, turbines
  to 150, thermal power at 50, 100 and 150 $, demand 150 a week. Optimum 8333.3333. With nested risk
  measures ``lambda E + (1 - lambda) AVaR_beta``, also over the first week's inflow: 11458.3333 for lambda and
  beta 1/2, 13750 for lambda 1/2 and beta 1/3, 17500 for the worst case.
* 52-week reservoir (tutorial "Example: deterministic to stochastic", data of release 1.2.1): storage 0-320
  from 300, turbines to 12, demand and price by week. Optimum 682.91 with the inflow of the data, 285.157951
  where it is lower by 2, the same, or higher by 5 with probabilities 0.3, 0.4, 0.3 (here ten openings).
* Hydro-thermal example of the FAST toolbox (Cambier): 2 stages, storage 0-8 from 0, inflow 6, then 2 or 10,
  demand 6, thermal power at 5. Optimum 10.
* Hydro valley (example "Hydro valleys"): two reservoirs of 200 in a chain, full at the start, concave
  turbine curves, power sold at 1, 2 and 3, spilling at 1000 a unit. Profit 835 without rain, 838.3333 with
  rain of (0, 0), (20, 0) or (50, 20) in the second and third stage.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from builders.published_cases import (
    VALLEY_CURVE,
    VALLEY_PRICES,
    VALLEY_RAIN,
    WEEKLY_COST,
    WEEKLY_DEMAND,
    WEEKLY_INFLOW,
    fast_hydro_thermal,
    hydro_valley,
    reservoir_year,
    three_weeks,
)
from numpy.typing import NDArray
from scipy.optimize import linprog

import cobre
import cobre.case

WEEKS = [0.0, 50.0, 100.0]
Array = NDArray[np.float64]
Risk = Callable[[Array], Array]
"""Certainty equivalent of costs (opening, storage), by storage."""


# -- formulations apart from the package ----------------------------------------------------------------


class Tree:
    """Columns and rows of an LP over a scenario tree."""

    def __init__(self) -> None:
        self.cost: list[float] = []
        self.bounds: list[tuple[float, float | None]] = []
        self.equal: list[tuple[dict[int, float], float]] = []
        self.at_most: list[tuple[dict[int, float], float]] = []

    def column(self, upper: float | None, cost: float = 0.0) -> int:
        self.cost.append(cost)
        self.bounds.append((0.0, upper))
        return len(self.cost) - 1

    def solve(self) -> float:
        def dense(rows: list[tuple[dict[int, float], float]]) -> tuple[Array | None, list[float] | None]:
            if not rows:
                return None, None
            matrix = np.zeros((len(rows), len(self.cost)))
            for row, (terms, _) in enumerate(rows):
                matrix[row, list(terms)] = list(terms.values())
            return matrix, [value for _, value in rows]

        solution = linprog(self.cost, *dense(self.at_most), *dense(self.equal), self.bounds)
        assert solution.status == 0
        return float(solution.fun)


def reservoir_tree(
    inflow: Sequence[Sequence[float]],
    demand: Sequence[float],
    price: Sequence[float],
    storage: tuple[float, float],
    max_flow: float,
) -> float:
    """Optimal expected cost of one reservoir and thermal power, the whole tree as one LP."""
    tree = Tree()
    parents: list[tuple[int | None, float]] = [(None, 1.0)]
    for t, openings in enumerate(inflow):
        nodes: list[tuple[int | None, float]] = []
        for parent, probability in parents:
            for water in openings:
                share = probability / len(openings)
                left, flow = tree.column(storage[1]), tree.column(max_flow)
                spill, power = tree.column(None), tree.column(None, price[t] * share)
                balance = {left: 1.0, flow: 1.0, spill: 1.0}
                if parent is not None:
                    balance[parent] = -1.0
                tree.equal.append((balance, water + (storage[0] if parent is None else 0.0)))
                tree.at_most.append(({flow: -1.0, power: -1.0}, -demand[t]))
                nodes.append((left, share))
        parents = nodes
    return tree.solve()


def reservoir_recursion(
    inflow: Sequence[Sequence[float]],
    demand: Sequence[float],
    price: Sequence[float],
    storage: tuple[float, float],
    max_flow: float,
    unit: float,
    risk: Risk,
) -> list[Array]:
    """Cost of all stages from each one on, by the storage it starts with, in steps of ``unit``.

    All data are multiples of ``unit``, so the value functions bend only there and the result is exact; under
    a risk measure too, because less inflow always costs more, so that outcomes never change their order.
    """
    top = round(storage[1] / unit)
    value = np.zeros(top + 1)
    values = [value]
    for t in reversed(range(len(inflow))):
        wanted = round(demand[t] / unit)
        cost = []
        for water in inflow[t]:
            available = np.arange(top + 1) + round(water / unit)
            best = np.full(top + 1, np.inf)
            for flow in range(min(wanted, round(max_flow / unit)) + 1):
                left = available - flow
                total = price[t] * unit * (wanted - flow) + value[np.clip(left, 0, top)]
                best = np.where(left >= 0, np.minimum(best, total), best)
            cost.append(best)
        value = risk(np.array(cost))
        values.insert(0, value)
    return values


def expectation(cost: Array) -> Array:
    return np.asarray(cost.mean(axis=0))


def mean_and_tail(weight: float, tail: float) -> Risk:
    """Return ``(1 - weight) E + weight AVaR_tail`` over equally likely openings."""

    def measure(cost: Array) -> Array:
        worst_first = -np.sort(-cost, axis=0)
        edges = np.minimum(np.arange(len(cost) + 1) / len(cost), tail)
        shares = np.array([high - low for low, high in pairwise(edges)]) / tail
        return np.asarray((1.0 - weight) * cost.mean(axis=0) + weight * (shares @ worst_first))

    return measure


def valley_tree(random: bool) -> float:
    """Greatest expected profit of the hydro valley, the whole tree as one LP."""
    tree = Tree()
    parents: list[tuple[list[int], float]] = [([], 1.0)]
    for price, t in zip(VALLEY_PRICES, range(3), strict=True):
        openings = VALLEY_RAIN if random and t > 0 else VALLEY_RAIN[:1]
        nodes = []
        for parent, probability in parents:
            for rain in openings:
                share = probability / len(openings)
                released: dict[int, float] = {}
                left = []
                for number in range(2):
                    storage, flow = tree.column(200.0), tree.column(70.0)
                    spill, power = tree.column(None, 1000.0 * share), tree.column(None, -price * share)
                    taken = tree.column(rain[number])
                    balance = {storage: 1.0, flow: 1.0, spill: 1.0, taken: -1.0, **released}
                    if parent:
                        balance[parent[number]] = -1.0
                    tree.equal.append((balance, 0.0 if parent else 200.0))
                    for constant, slope in VALLEY_CURVE:
                        tree.at_most.append(({power: 1.0, flow: -slope}, constant))
                    released = {flow: -1.0, spill: -1.0}
                    left.append(storage)
                nodes.append((left, share))
        parents = nodes
    return -tree.solve()


def trained(files: dict[str, Any]) -> cobre.TrainingResult:
    return cobre.train(cobre.case.build(files))


# -- what was published ------------------------------------------------------------------------------------

YEAR = (WEEKLY_DEMAND, WEEKLY_COST, (300.0, 320.0), 12.0)
THREE = ([150.0] * 3, [50.0, 100.0, 150.0], (200.0, 200.0), 150.0)


def year_values() -> list[Array]:
    around = [-2.0] * 3 + [0.0] * 4 + [5.0] * 3
    openings = [[week + change for change in around] for week in WEEKLY_INFLOW]
    return reservoir_recursion(openings, *YEAR, 0.1, expectation)


def test_three_weeks_formulation() -> None:
    assert reservoir_tree([WEEKS] * 3, *THREE) == pytest.approx(25000.0 / 3.0, rel=1e-9)
    values = reservoir_recursion([WEEKS] * 3, *THREE, 50.0, expectation)
    assert values[0][4] == pytest.approx(25000.0 / 3.0)


def test_three_weeks() -> None:
    result = trained(three_weeks())
    assert result.lower_bound == pytest.approx(25000.0 / 3.0, rel=1e-9)


RISKS = [(0.5, 0.5, 11458.3333), (0.5, 1.0 / 3.0, 13750.0), (1.0, 1.0 / 3.0, 17500.0)]


@pytest.mark.parametrize(("weight", "tail", "optimum"), RISKS)
def test_three_weeks_with_risk_formulation(weight: float, tail: float, optimum: float) -> None:
    risk = mean_and_tail(weight, tail)
    values = reservoir_recursion([WEEKS] * 3, *THREE, 50.0, risk)
    assert values[0][4] == pytest.approx(optimum, rel=1e-8)


@pytest.mark.parametrize(("weight", "tail", "optimum"), RISKS)
def test_three_weeks_with_risk(weight: float, tail: float, optimum: float) -> None:
    result = trained(three_weeks(risk_measure={"cvar": {"alpha": tail, "lambda": weight}}))
    assert result.lower_bound == pytest.approx(optimum, rel=1e-8)


def test_reservoir_year_formulation() -> None:
    known = [[week] for week in WEEKLY_INFLOW]
    assert reservoir_tree(known, *YEAR) == pytest.approx(682.91, rel=1e-9)
    assert reservoir_recursion(known, *YEAR, 0.1, expectation)[0][3000] == pytest.approx(682.91, rel=1e-9)
    assert year_values()[0][3000] == pytest.approx(285.157951, abs=5e-7)


def test_reservoir_year_with_known_inflow() -> None:
    assert trained(reservoir_year(random=False)).lower_bound == pytest.approx(682.91, rel=1e-8)


def test_reservoir_year() -> None:
    """The bound comes near from below (its value functions have thousands of facets), and no cut is wrong."""
    result = trained(reservoir_year(random=True))
    assert 0.99 * 285.157951 < result.lower_bound < 285.157951
    values = year_values()
    storage = np.arange(3201) / 10.0
    policy = result.policy
    cuts = zip(policy.intercepts[:-1], policy.slopes[:-1], values[1:-1], strict=True)
    for intercepts, slopes, value in cuts:
        assert 100 < len(intercepts) <= 400  # passes that come to the same storage share a cut
        below = intercepts[:, None] + slopes[:, :1] * storage
        assert (below <= value + 1e-7).all()


def test_fast_hydro_thermal_formulation() -> None:
    optimum = reservoir_tree([[6.0], [2.0, 10.0]], [6.0, 6.0], [5.0, 5.0], (0.0, 8.0), 100.0)
    assert optimum == pytest.approx(10.0, rel=1e-9)


def test_fast_hydro_thermal() -> None:
    assert trained(fast_hydro_thermal()).lower_bound == pytest.approx(10.0, rel=1e-9)


@pytest.mark.parametrize(("random", "profit"), [(False, 835.0), (True, 2515.0 / 3.0)])
def test_hydro_valley_formulation(random: bool, profit: float) -> None:
    assert valley_tree(random) == pytest.approx(profit, rel=1e-9)


@pytest.mark.parametrize(("random", "profit"), [(False, 835.0), (True, 2515.0 / 3.0)])
def test_hydro_valley(random: bool, profit: float) -> None:
    assert trained(hydro_valley(random)).lower_bound == pytest.approx(-profit, rel=1e-8)
