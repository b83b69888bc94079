"""The whole scenario tree as one LP: the judge of what training converges to.

A node of stage ``t`` is a path of openings ``(w_0, ..., w_t)``; it has its own copy of every decision of
the stage, so that decisions can't look ahead. With ``D_t`` the discount factor, ``N_t`` the number of nodes::

    min  sum_t D_t / N_t * sum_{n in stage t} c_t . x_n
    s.t. A_t x_n - S x_{parent(n)} {=, <=} b_{t, w_t(n)},   lower_t <= x_n <= upper_t

``S`` picks the storages. All nodes of a stage share ``A_t``, so the LP is put together by Kronecker
products. The formulation is written from the model's equations, apart from the package's stage templates.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from raw_case import Json, RawCase, read_raw_case
from scipy import sparse
from scipy.optimize import linprog

Array = NDArray[np.float64]
Openings = Sequence[tuple[Array, Array]]
"""For each stage the realised inflow (opening, hydro) in m3/s and load (opening, bus) in MW."""

HM3_PER_M3S_HOUR = 0.0036
INFINITY = float("inf")


class StageModel:
    """Columns and rows of one node of a stage.

    Rows are equalities or ``<=``. A right-hand side is a constant, plus (rows with a noise term) a
    multiple of one component of the noise vector ``[inflow of hydros | load of buses]``.
    """

    def __init__(self) -> None:
        self.column: dict[Hashable, int] = {}
        self.cost: list[float] = []
        self.bounds: list[tuple[float, float]] = []
        self.eq = _Rows()
        self.ub = _Rows()

    def add(self, name: Hashable, cost: float = 0.0, upper: float = INFINITY, lower: float = 0.0) -> None:
        """Add a column ``lower <= x <= upper`` with a cost in $ per unit."""
        assert name not in self.column
        self.column[name] = len(self.cost)
        self.cost.append(cost)
        self.bounds.append((lower, upper))


class _Rows:
    def __init__(self) -> None:
        self.triplets: list[tuple[int, int, float]] = []
        self.constant: list[float] = []
        self.noise: list[tuple[int, float]] = []
        self.incoming: list[int] = []
        """For each row the hydro whose incoming storage it holds with coefficient -1, or -1."""

    def add(
        self,
        terms: list[tuple[int, float]],
        constant: float = 0.0,
        noise: tuple[int, float] = (0, 0.0),
        incoming: int = -1,
    ) -> None:
        row = len(self.constant)
        self.triplets += [(row, column, value) for column, value in terms]
        self.constant.append(constant)
        self.noise.append(noise)
        self.incoming.append(incoming)

    def matrix(self, n_columns: int) -> sparse.csr_array:
        rows, columns, values = zip(*self.triplets, strict=True) if self.triplets else ((), (), ())
        return sparse.coo_array((values, (rows, columns)), shape=(len(self.constant), n_columns)).tocsr()


def solve_extensive_form(
    case_dir: Path, openings: Openings | None = None, cost_units: Sequence[float] = (1.0,)
) -> float:
    """Optimal expected cost ($) over the tree spanned by ``openings``.

    Parameters
    ----------
    case_dir
        A case directory that uses only what :mod:`raw_case` reads.
    openings
        For each stage (ascending id) the realised ``(inflow[opening, hydro], load[opening, bus])``, equally
        likely, already truncated where the case asks for it; hydros and buses by ascending id. ``None``:
        one opening a stage, at the means.
    cost_units
        $ in one unit of objective; the LP is solved in each, and the cheapest solution counts. Where costs
        are far apart the solver's tolerances hide some of them in any one unit.
    """
    case = read_raw_case(Path(case_dir))
    if openings is None:
        openings = [(case.inflow_mean[t : t + 1], case.load_mean[t : t + 1]) for t in range(len(case.stages))]
    assert len(openings) == len(case.stages)

    costs: list[Array] = []
    bounds: list[tuple[float, float]] = []
    grid: dict[str, list[list[sparse.csr_array | None]]] = {"eq": [], "ub": []}
    rhs: dict[str, list[Array]] = {"eq": [], "ub": []}
    n_stages = len(case.stages)
    n_parents, parent_columns = 1, 0
    for t, (inflow, load) in enumerate(openings):
        model = build_stage(case, t)
        n_openings, n_columns = len(inflow), len(model.cost)
        n_nodes = n_parents * n_openings
        costs.append(np.tile(np.array(model.cost) * (case.discount[t] / n_nodes), n_nodes))
        bounds += model.bounds * n_nodes
        noise = np.hstack([inflow, load])
        for kind, rows in (("eq", model.eq), ("ub", model.ub)):
            blocks: list[sparse.csr_array | None] = [None] * n_stages
            blocks[t] = sparse.kron(sparse.eye_array(n_nodes), rows.matrix(n_columns), format="csr")
            value = _right_hand_side(rows, noise)
            if t == 0:
                value += np.array([case.initial_hm3[h] if h >= 0 else 0.0 for h in rows.incoming])
            else:
                child_of = sparse.kron(sparse.eye_array(n_parents), np.ones((n_openings, 1)))
                blocks[t - 1] = sparse.kron(child_of, _incoming(rows, parent_columns), format="csr")
            grid[kind].append(blocks)
            rhs[kind].append(np.tile(value, (n_parents, 1)).ravel())
        n_parents, parent_columns = n_nodes, n_columns

    cost, found = np.concatenate(costs), []
    for unit in cost_units:
        solution = linprog(
            cost / unit,
            A_ub=sparse.block_array(grid["ub"], format="csr"),
            b_ub=np.concatenate(rhs["ub"]),
            A_eq=sparse.block_array(grid["eq"], format="csr"),
            b_eq=np.concatenate(rhs["eq"]),
            bounds=np.array(bounds),
            method="highs",
            options={"primal_feasibility_tolerance": 1e-9, "dual_feasibility_tolerance": 1e-9},
        )
        if solution.status == 0:
            found.append(float(solution.fun) * unit)
    if not found:
        raise ArithmeticError(f"extensive form of {case_dir}: {solution.message}")
    return min(found)


def _right_hand_side(rows: _Rows, noise: Array) -> Array:
    """Values by (opening, row)."""
    component = np.array([index for index, _ in rows.noise], dtype=np.intp)
    factor = np.array([value for _, value in rows.noise])
    if noise.shape[1] == 0:
        return np.tile(np.array(rows.constant), (len(noise), 1))
    value: Array = np.array(rows.constant) + noise[:, component] * factor
    return value


def _incoming(rows: _Rows, parent_columns: int) -> sparse.csr_array:
    """Coefficients of the parent's columns: storages are a stage's first columns, in order of hydros."""
    linked = [(row, hydro) for row, hydro in enumerate(rows.incoming) if hydro >= 0]
    row_index, column_index = zip(*linked, strict=True) if linked else ((), ())
    shape = (len(rows.incoming), parent_columns)
    return sparse.coo_array((np.full(len(linked), -1.0), (row_index, column_index)), shape=shape).tocsr()


def build_stage(case: RawCase, t: int) -> StageModel:
    """One node of stage ``t``."""
    model = StageModel()
    power: dict[tuple[int, int], list[tuple[int, float]]] = {}
    for k in range(len(case.stages[t]["blocks"])):
        for bus in case.buses:
            power[bus["id"], k] = []
    _add_hydros(case, t, model, power)
    _add_network(case, t, model, power)

    n_hydros = len(case.hydros)
    stage = case.stages[t]
    for b, bus in enumerate(case.buses):
        for k, block in enumerate(stage["blocks"]):
            factor = case.load_factor.get((stage["id"], bus["id"], block["id"]), 1.0)
            model.eq.add(power[bus["id"], k], noise=(n_hydros + b, factor))
    return model


def _add_hydros(
    case: RawCase, t: int, model: StageModel, power: dict[tuple[int, int], list[tuple[int, float]]]
) -> None:
    hours = [block["hours"] for block in case.stages[t]["blocks"]]
    stage_hm3 = HM3_PER_M3S_HOUR * sum(hours)
    column = model.column
    for h, hydro in enumerate(case.hydros):
        low, high = hydro["reservoir"]["min_storage_hm3"], hydro["reservoir"]["max_storage_hm3"]
        model.add(("storage", h), upper=high, lower=0.0 if case.initial_hm3[h] < low else low)
    # The water that leaves plant h, as terms in hm3 of the stage.
    release: list[list[tuple[int, float]]] = []
    for h, hydro in enumerate(case.hydros):
        penalty = {
            **case.penalties["hydro"],
            **{k: v for k, v in (hydro.get("penalties") or {}).items() if v is not None},
        }
        low = hydro["reservoir"]["min_storage_hm3"]
        if case.initial_hm3[h] < low:
            model.add(("storage below", h), cost=penalty["storage_violation_below_cost"])
            model.ub.add([(column["storage", h], -1.0), (column["storage below", h], -1.0)], -low)
        leaving: list[tuple[int, float]] = []
        for k, tau in enumerate(hours):
            _add_plant_block(h, hydro, float(case.productivity[t, h]), penalty, k, tau, model, power)
            flows = [column["turbined", h, group["id"], k] for group in hydro["unit_groups"]]
            flows.append(column["spill", h, k])
            leaving += [(flow, HM3_PER_M3S_HOUR * tau) for flow in flows]
        release.append(leaving)
        if case.inflow_method in {"penalty", "truncation_with_penalty"}:
            cost = penalty.get("inflow_nonnegativity_cost", 1000.0)
            model.add(("inflow slack", h), cost=cost * sum(hours))
    for h, hydro in enumerate(case.hydros):
        terms = [(column["storage", h], 1.0), *release[h]]
        for u, upstream in enumerate(case.hydros):
            if upstream.get("downstream_id") == hydro["id"]:
                terms += [(flow, -volume) for flow, volume in release[u]]
        if ("inflow slack", h) in column:
            terms.append((column["inflow slack", h], -stage_hm3))
        model.eq.add(terms, noise=(h, stage_hm3), incoming=h)


def _add_plant_block(
    h: int,
    hydro: Json,
    rho: float,
    penalty: Json,
    k: int,
    tau: float,
    model: StageModel,
    power: dict[tuple[int, int], list[tuple[int, float]]],
) -> None:
    """Turbines, spillway and flow limits of one plant in one block."""
    column, plant = model.column, hydro["generation"]
    turbines: list[tuple[int, float]] = []
    for group in hydro["unit_groups"]:
        g = group["id"]
        model.add(("turbined", h, g, k), penalty["turbined_cost"] * tau, group["max_turbined_m3s"])
        q = column["turbined", h, g, k]
        turbines.append((q, 1.0))
        power[group["bus_id"], k].append((q, rho))
        model.ub.add([(q, rho)], group["max_generation_mw"])
        if group["min_turbined_m3s"] > 0:
            model.add(("turbined below", h, g, k), penalty["turbined_violation_below_cost"] * tau)
            slack = column["turbined below", h, g, k]
            model.ub.add([(q, -1.0), (slack, -1.0)], -group["min_turbined_m3s"])
        if group["min_generation_mw"] > 0:
            model.add(("generation below", h, g, k), penalty["generation_violation_below_cost"] * tau)
            slack = column["generation below", h, g, k]
            model.ub.add([(q, -rho), (slack, -1.0)], -group["min_generation_mw"])
    model.ub.add(turbines, plant["max_turbined_m3s"])
    model.ub.add([(q, rho) for q, _ in turbines], plant["max_generation_mw"])

    model.add(("spill", h, k), penalty["spillage_cost"] * tau)
    outflow = [*turbines, (column["spill", h, k], 1.0)]
    if hydro["outflow"]["min_outflow_m3s"] > 0:
        model.add(("outflow below", h, k), penalty["outflow_violation_below_cost"] * tau)
        terms = [(flow, -1.0) for flow, _ in outflow]
        model.ub.add([*terms, (column["outflow below", h, k], -1.0)], -hydro["outflow"]["min_outflow_m3s"])
    if hydro["outflow"].get("max_outflow_m3s") is not None:
        model.add(("outflow above", h, k), penalty["outflow_violation_above_cost"] * tau)
        model.ub.add([*outflow, (column["outflow above", h, k], -1.0)], hydro["outflow"]["max_outflow_m3s"])


def _add_network(
    case: RawCase, t: int, model: StageModel, power: dict[tuple[int, int], list[tuple[int, float]]]
) -> None:
    """Thermal plants, lines, deficit and excess."""
    column = model.column
    for k, block in enumerate(case.stages[t]["blocks"]):
        tau = block["hours"]
        for plant in case.thermals:
            name = ("thermal", plant["id"], k)
            limits = plant["generation"]
            model.add(name, plant["cost_per_mwh"] * tau, limits["max_mw"], limits["min_mw"])
            power[plant["bus_id"], k].append((column[name], 1.0))
        for line in case.lines:
            cost = line.get("exchange_cost")
            cost = case.penalties["line"]["exchange_cost"] if cost is None else cost
            source, target = line["source_bus_id"], line["target_bus_id"]
            for way, start, end in (("direct", source, target), ("reverse", target, source)):
                name = (way, line["id"], k)
                model.add(name, cost * tau, line["capacity"][f"{way}_mw"])
                power[start, k].append((column[name], -1.0))
                power[end, k].append((column[name], 1.0))
        for bus in case.buses:
            segments = bus.get("deficit_segments") or case.penalties["bus"]["deficit_segments"]
            for j, segment in enumerate(segments):
                depth = segment.get("depth_mw")
                model.add(
                    ("deficit", bus["id"], j, k), segment["cost"] * tau, INFINITY if depth is None else depth
                )
                power[bus["id"], k].append((column["deficit", bus["id"], j, k], 1.0))
            model.add(("excess", bus["id"], k), case.penalties["bus"]["excess_cost"] * tau)
            power[bus["id"], k].append((column["excess", bus["id"], k], -1.0))
