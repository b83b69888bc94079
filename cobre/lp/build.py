"""From a case and its opening tree to the stage LPs.

For stage t with blocks k of tau_k hours (H = sum of tau_k), zeta_k = 0.0036 tau_k (hm3 per m3/s):

    storage balance of hydro h (hm3)
        v'_h + sum_k zeta_k (q_h,k + s_h,k) - sum_{u upstream of h} sum_k zeta_k (q_u,k + s_u,k)
             - zeta sigma_h = v_h + zeta a_h(w)
    load balance of bus b in block k (MW)
        sum rho_h q_g,k + sum g_i,k + sum (f+ - f-)_in - sum (f+ - f-)_out + sum_j delta_j,k - e_k
            = D_b(w) phi_b,k

with v storage, q water turbined by a unit group (q_h the plant's sum), s spillage, sigma the inflow
slack, g thermal generation, f+ and f- line flows, delta deficit, e excess, a inflow, D load, phi its
block factor. Limits that may be violated at a price get a slack column; thermal and storage limits are
hard. A plant that starts below its storage minimum gets a priced slack on that minimum instead.
Flow costs are $/(m3/s.h): a flow of 1 m3/s for tau hours costs tau times the rate.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from cobre.case.model import Bus, Case, Hydro, Stage, StageData
from cobre.errors import CobreError
from cobre.lp.assembly import LpAssembly
from cobre.lp.template import StageTemplate
from cobre.stochastic import OpeningTree
from cobre.units import HM3_PER_M3S_HOUR

DEFAULT_COST_SCALE = 1024.0
"""$ per unit of objective. A power of two: scaling and unscaling are then exact."""

FUTURE_COST = "future_cost"

TerminalFloor = Callable[[NDArray[np.float64], NDArray[np.float64]], float]


def build_templates(
    case: Case, tree: OpeningTree, terminal_floor: TerminalFloor | None = None
) -> tuple[StageTemplate, ...]:
    """Build the LP of every stage.

    Parameters
    ----------
    case
        The study.
    tree
        Realisations of inflow and load by stage and opening.
    terminal_floor
        Where the state at the end is valued by cuts: a lower bound ($) of that value over the box of
        final states from the first argument to the second. ``None``: the end is worth nothing.

    Returns
    -------
    tuple of StageTemplate
        One for each node of the policy graph (on a chain: each stage), in their order. The future cost of
        each is bounded below by a valid bound on the cost of the stages after it (and fixed to zero in the
        last stage, unless there is a terminal floor).

    Raises
    ------
    CobreError
        When the cost of a stage has no lower bound, so that no valid bound on the future cost exists.
    """
    scale = case.training.cost_scale_factor or DEFAULT_COST_SCALE
    nodes = case.graph.nodes
    templates: dict[int, StageTemplate] = {}
    cheapest_future = 0.0
    for position in reversed(range(len(case.stages))):
        is_last = position == len(case.stages) - 1
        builder = _StageBuilder(case, position, scale)
        here = [place for place, node in enumerate(nodes) if node.stage == position]
        template = builder.build(tree, here[0])
        upper = 0.0 if is_last and terminal_floor is None else math.inf
        if is_last and terminal_floor is not None:
            template = _with_discount(template, case.stages[position].discount_factor)
            box = template.col_lower[template.state_col], template.col_upper[template.state_col]
            cheapest_future = terminal_floor(*box) / scale
        template = _with_theta_bounds(template, cheapest_future, upper)
        for place in here:
            templates[place] = replace(template, opening_rhs=builder.opening_rhs(tree, place))
        cheapest_stage = builder.lp.cheapest_cost()
        if not math.isfinite(cheapest_stage):
            raise CobreError(
                "SolverFailure",
                f"the cost of stage {template.stage_id} has no lower bound",
                {"stage": template.stage_id},
                "give every rewarded quantity an upper limit",
            )
        # This stage's whole cost to go, which the stage before it sees as its future cost.
        cheapest_future = cheapest_stage + template.discount * cheapest_future
    return tuple(templates[place] for place in range(len(nodes)))


def _with_discount(template: StageTemplate, discount: float) -> StageTemplate:
    cost = template.cost.copy()
    cost[template.theta_col] = discount
    return replace(template, cost=cost, discount=discount)


def _with_theta_bounds(template: StageTemplate, lower: float, upper: float) -> StageTemplate:
    col_lower, col_upper = template.col_lower.copy(), template.col_upper.copy()
    col_lower[template.theta_col] = lower
    col_upper[template.theta_col] = upper
    return replace(template, col_lower=col_lower, col_upper=col_upper)


class _StageBuilder:
    """Builds one stage; a method for each kind of entity."""

    def __init__(self, case: Case, position: int, scale: float) -> None:
        self.case = case
        self.position = position
        self.stage: Stage = case.stages[position]
        self.scale = scale
        self.data: StageData = case.stage_data[position]
        self.lp = LpAssembly()
        self.volume = [HM3_PER_M3S_HOUR * block.hours for block in self.stage.blocks]
        self.balance: dict[int, int] = {}
        self.load: dict[tuple[int, int], int] = {}

    def build(self, tree: OpeningTree, node: int) -> StageTemplate:
        """Assemble everything into a template (future cost still unbounded)."""
        lp, case = self.lp, self.case
        self._dynamic_rows()
        storage = [self._storage(place, hydro) for place, hydro in enumerate(case.hydros)]
        # Without cost until the stage's own cost has been bounded from its columns, see build_templates.
        theta = lp.column(FUTURE_COST, 0.0)
        first_group = 0
        for place, hydro in enumerate(case.hydros):
            self._hydro(place, hydro, first_group)
            first_group += len(hydro.unit_groups)
        self._thermals()
        self._lines()
        for place, bus in enumerate(case.buses):
            self._bus(place, bus)
        start, row, value = lp.matrix()
        cost = np.array(lp.cost)
        cost[theta] = self.stage.discount_factor if self.position < len(case.stages) - 1 else 1.0
        hydros = len(case.hydros)
        return StageTemplate(
            stage_id=self.stage.id,
            cost=cost,
            col_lower=np.array(lp.col_lower),
            col_upper=np.array(lp.col_upper),
            row_lower=np.array(lp.row_lower),
            row_upper=np.array(lp.row_upper),
            matrix_start=start,
            matrix_row=row,
            matrix_value=value,
            state_col=np.array(storage, np.int32),
            state_start=np.arange(hydros + 1, dtype=np.int32),
            state_row=np.array([self.balance[hydro.id] for hydro in case.hydros], np.int32),
            state_value=np.ones(hydros),
            theta_col=theta,
            opening_rhs=self.opening_rhs(tree, node),
            discount=float(cost[theta]),
            cost_scale=self.scale,
            col_names=tuple(lp.col_names),
            row_names=tuple(lp.row_names),
        )

    def _price(self, dollars: float) -> float:
        return dollars / self.scale

    def _dynamic_rows(self) -> None:
        # First, because the kernel writes their right-hand sides as one range.
        for hydro in self.case.hydros:
            self.balance[hydro.id] = self.lp.row(f"hydro_balance[{hydro.name}]", 0.0, 0.0)
        for bus in self.case.buses:
            for block in self.stage.blocks:
                name = f"bus_balance[{bus.name}, {block.name}]"
                self.load[bus.id, block.id] = self.lp.row(name, 0.0, 0.0)

    def opening_rhs(self, tree: OpeningTree, node: int) -> np.ndarray:
        """Return the right-hand sides of a node's openings."""
        first, last = tree.offset[node], tree.offset[node + 1]
        volume = sum(self.volume)
        water = volume * tree.inflow_m3s[first:last]
        factor = self.data.load_factor
        load = tree.load_mw[first:last, :, None] * factor[None, :, :]
        return np.ascontiguousarray(np.hstack([water, load.reshape(last - first, -1)]))

    def _storage(self, place: int, hydro: Hydro) -> int:
        name = f"hydro_storage_final[{hydro.name}]"
        least, most = float(self.data.storage_min_hm3[place]), float(self.data.storage_max_hm3[place])
        soft = hydro.initial_storage_hm3 < float(self.case.stage_data[0].storage_min_hm3[place])
        column = self.lp.column(name, 0.0, 0.0 if soft else least, most)
        self.lp.coefficient(self.balance[hydro.id], column, 1.0)
        if soft:
            slack = self.lp.column(
                f"hydro_storage_below[{hydro.name}]",
                self._price(self._cost("storage_violation_below", place)),
            )
            row = self.lp.row(f"hydro_storage_min[{hydro.name}]", least)
            self.lp.coefficient(row, column, 1.0)
            self.lp.coefficient(row, slack, 1.0)
        return column

    def _cost(self, name: str, place: int) -> float:
        return float(self.data.penalty(name)[place])

    def _hydro(self, place: int, hydro: Hydro, first_group: int) -> None:
        if self.case.training.inflow_method in ("penalty", "truncation_with_penalty"):
            price = self._price(self._cost("inflow_nonnegativity", place) * self.stage.hours)
            slack = self.lp.column(f"hydro_inflow_slack[{hydro.name}]", price)
            self.lp.coefficient(self.balance[hydro.id], slack, -sum(self.volume))
        for index, block in enumerate(self.stage.blocks):
            hours, where = block.hours, f"{hydro.name}, {block.name}"
            outflow = [
                self._unit_group(place, hydro, number, first_group + number, index)
                for number in range(len(hydro.unit_groups))
            ]
            outflow.append(
                self.lp.column(f"hydro_spillage[{where}]", self._price(self._cost("spillage", place) * hours))
            )
            for column in outflow:
                self.lp.coefficient(self.balance[hydro.id], column, self.volume[index])
                if hydro.downstream_id is not None:
                    self.lp.coefficient(self.balance[hydro.downstream_id], column, -self.volume[index])
            least = float(self.data.outflow_min_m3s[place, index])
            most = float(self.data.outflow_max_m3s[place, index])
            if least > 0.0:
                price = self._cost("outflow_violation_below", place) * hours
                self._limit(f"hydro_outflow_min[{where}]", outflow, 1.0, least, None, price)
            if math.isfinite(most):
                price = self._cost("outflow_violation_above", place) * hours
                self._limit(f"hydro_outflow_max[{where}]", outflow, 1.0, None, most, price)

    def _unit_group(self, place: int, hydro: Hydro, number: int, group: int, index: int) -> int:
        block, unit = self.stage.blocks[index], hydro.unit_groups[number]
        productivity = self.case.production[self.position][place].productivity_mw_per_m3s
        plant = f"{hydro.name}/{unit.name}" if len(hydro.unit_groups) > 1 else hydro.name
        where = f"{plant}, {block.name}"
        most = float(self.data.group_turbined_max_m3s[group, index])
        if productivity > 0.0:
            most = min(most, float(self.data.group_generation_max_mw[group, index]) / productivity)
        price = self._price(self._cost("turbined", place) * block.hours)
        column = self.lp.column(f"hydro_turbined[{where}]", price, 0.0, most)
        self.lp.coefficient(self.load[unit.bus_id, block.id], column, productivity)
        # The minima of the groups add up to at least the plant's, which therefore needs no row.
        least = float(self.data.group_turbined_min_m3s[group, index])
        if least > 0.0:
            penalty = self._cost("turbined_violation_below", place) * block.hours
            self._limit(f"hydro_turbined_min[{where}]", [column], 1.0, least, None, penalty)
        least = float(self.data.group_generation_min_mw[group, index])
        if least > 0.0:
            penalty = self._cost("generation_violation_below", place) * block.hours
            self._limit(f"hydro_generation_min[{where}]", [column], productivity, least, None, penalty)
        return column

    def _limit(
        self,
        name: str,
        columns: list[int],
        factor: float,
        lower: float | None,
        upper: float | None,
        penalty: float,
    ) -> None:
        """Add ``lower <= factor * sum(columns) <= upper`` with a slack at ``penalty`` $ a unit."""
        row = self.lp.row(name, -math.inf if lower is None else lower, math.inf if upper is None else upper)
        for column in columns:
            self.lp.coefficient(row, column, factor)
        kind, where = name.split("[", 1)
        slack = self.lp.column(f"{kind}_violation[{where}", self._price(penalty))
        self.lp.coefficient(row, slack, 1.0 if lower is not None else -1.0)

    def _thermals(self) -> None:
        for place, thermal in enumerate(self.case.thermals):
            for index, block in enumerate(self.stage.blocks):
                price = self._price(float(self.data.thermal_cost[place]) * block.hours)
                name = f"thermal_generation[{thermal.name}, {block.name}]"
                least, most = self.data.thermal_min_mw[place, index], self.data.thermal_max_mw[place, index]
                column = self.lp.column(name, price, float(least), float(most))
                self.lp.coefficient(self.load[thermal.bus_id, block.id], column, 1.0)

    def _lines(self) -> None:
        for place, line in enumerate(self.case.lines):
            for index, block in enumerate(self.stage.blocks):
                price = self._price(float(self.data.exchange_cost[place]) * block.hours)
                for direction, capacity, sign in (
                    ("direct", self.data.line_direct_mw, 1.0),
                    ("reverse", self.data.line_reverse_mw, -1.0),
                ):
                    name = f"line_{direction}[{line.name}, {block.name}]"
                    column = self.lp.column(name, price, 0.0, float(capacity[place, index]))
                    self.lp.coefficient(self.load[line.target_bus_id, block.id], column, sign)
                    self.lp.coefficient(self.load[line.source_bus_id, block.id], column, -sign)

    def _bus(self, place: int, bus: Bus) -> None:
        for block in self.stage.blocks:
            row = self.load[bus.id, block.id]
            for number, segment in enumerate(bus.deficit_segments, start=1):
                depth = math.inf if segment.depth_mw is None else segment.depth_mw
                price = self._price(segment.cost_per_mwh * block.hours)
                name = f"bus_deficit[{bus.name}, {number}, {block.name}]"
                self.lp.coefficient(row, self.lp.column(name, price, 0.0, depth), 1.0)
            price = self._price(float(self.data.excess_cost[place]) * block.hours)
            column = self.lp.column(f"bus_excess[{bus.name}, {block.name}]", price)
            self.lp.coefficient(row, column, -1.0)
