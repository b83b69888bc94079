"""The scenario tree and the optimum over it.

A tree node is a way through the policy graph with one opening for each stage. With the expectation its costs
weigh probability times discount. With risk measures (CVaR of stage t over the outcomes that follow it; that
of the first stage also over its own openings) the value of a node is a column of its own::

    Z_n = c_n x_n + d_t R_n,    R_n = (1 - w) sum_m p_m Z_m + w (xi_n + sum_m p_m y_m / tail),
    y_m >= Z_m - xi_n,  y_m >= 0,    m the nodes that follow n
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from oracle.files import Json, RawFiles
from oracle.generic import add_generic
from oracle.lp import Lp, Terms
from oracle.network import add_load_balances, add_network
from oracle.node import Node
from oracle.openings import Opening
from oracle.production import Planes
from oracle.water import add_water, storage_at

Openings = Mapping[int, Sequence[Opening]]
"""Equally likely openings by stage id; a stage that is not listed has one, at the means."""


@dataclass(frozen=True)
class Cut:
    """Value of the final state, at least ``intercept + sum of coefficient * final storage`` ($).

    Coefficients ($/hm3) are by hydro id.
    """

    intercept: float
    storage: dict[int, float]


def optimum(
    case_dir: Path,
    openings: Openings | None = None,
    *,
    planes: Planes | None = None,
    boundary: Sequence[Cut] = (),
    cost_units: Sequence[float] = (1.0,),
) -> float:
    """Optimal (risk-adjusted) cost in $ over the whole tree.

    Parameters
    ----------
    case_dir
        A valid case directory.
    openings
        Realised, already truncated values; see :data:`Openings`.
    planes
        Planes of production models that are fitted to geometry.
    boundary
        Cuts that value what is left at the end, at the moment the last stage ends (so that the discount of
        the last stage applies to them); without cuts it is worth nothing.
    cost_units
        $ in one unit of the objective; see :meth:`oracle.lp.Lp.minimum`.
    """
    tree = _Tree(RawFiles(Path(case_dir)), openings or {}, planes or {}, boundary)
    return tree.solve(cost_units)


def costs_by_kind(case_dir: Path, openings: Openings | None = None) -> dict[str, float]:
    """Costs ($, with probability and discount) at the optimum of a risk-neutral case, by kind of decision.

    A kind is the first part of a column's name; of a slack it is that of its row's, with "violated".
    """
    tree = _Tree(RawFiles(Path(case_dir)), openings or {}, {}, ())
    tree.solve()
    found: dict[str, float] = {}
    for node in tree.nodes:
        for name, column in node.columns.items():
            kind = f"{name[1][0]} violated" if name[0] in ("below", "above") else name[0]
            found[kind] = found.get(kind, 0.0) + tree.lp.cost[column] * tree.lp.values[column]
    return found


class _Tree:
    def __init__(self, files: RawFiles, openings: Openings, planes: Planes, boundary: Sequence[Cut]) -> None:
        self.files, self.openings, self.planes, self.boundary = files, openings, planes, boundary
        self.lp = Lp()
        self.nodes: list[Node] = []
        self.risks = [_risk(stage) for stage in files.stages]
        self.averse = any(weight > 0 for weight, _ in self.risks)

    def solve(self, cost_units: Sequence[float] = (1.0,)) -> float:
        graph = self.files.horizon["policy_graph"]
        first = self.files.stages[0]["id"]
        roots = [node["id"] for node in graph.get("nodes") or [] if node["stage_id"] == first] or [first]
        assert len(roots) == 1, "a study starts at one node"
        values = self._grow(None, 0, [(roots[0], 1.0)], 1.0)
        if self.averse:
            for column, weight in self._measure(0, values):
                self.lp.cost[column] += weight
        return self.lp.minimum(cost_units)

    def _grow(
        self, parent: Node | None, position: int, choices: list[tuple[int, float]], weight: float
    ) -> list[tuple[int, float]]:
        """Add the nodes of a stage that follow a node; return their value columns with probabilities."""
        values = []
        for graph_node, chance in choices:
            openings = self._openings(graph_node, position)
            for opening in openings:
                likely = chance / len(openings)
                here = 0.0 if self.averse else weight * likely
                node = Node(self.files, self.lp, position, opening, here, parent, self.planes)
                self.nodes.append(node)
                add_network(node)
                add_water(node)
                add_generic(node)
                add_load_balances(node)
                values.append((self._close(node, graph_node, weight * likely), likely))
        return values

    def _close(self, node: Node, graph_node: int, weight: float) -> int:
        """Add what follows a node; return the column of its value (-1 where it has none)."""
        factor = self.files.discount(node.position)
        if node.position + 1 < len(self.files.stages):
            following = self._grow(
                node, node.position + 1, self._successors(graph_node, node), weight * factor
            )
            later: Terms = self._measure(node.position, following) if self.averse else []
        else:
            later = self._add_boundary(node, 0.0 if self.averse else weight * factor)
        if not self.averse:
            return -1
        value = self.lp.column(lower=-float("inf"))
        costs = [(column, -cost) for column, cost in node.cost]
        self.lp.equal([(value, 1.0), *costs, *((column, -factor * part) for column, part in later)], 0.0)
        return value

    def _add_boundary(self, node: Node, weight: float) -> Terms:
        if not self.boundary:
            return []
        theta = self.lp.column(weight, lower=-float("inf"))
        for cut in self.boundary:
            terms: Terms = [(theta, 1.0)]
            for plant in self.files.hydros:
                final = storage_at(node, plant, len(node.periods))[0]
                terms += [(column, -cut.storage.get(plant["id"], 0.0)) for column, _ in final]
            self.lp.row(terms, lower=cut.intercept)
        return [(theta, 1.0)]

    def _measure(self, position: int, outcomes: list[tuple[int, float]]) -> Terms:
        """Risk-adjusted mean of values as terms."""
        weight, tail = self.risks[position]
        terms = [(value, (1.0 - weight) * likely) for value, likely in outcomes]
        if weight > 0:
            threshold = self.lp.column(lower=-float("inf"))
            terms.append((threshold, weight))
            for value, likely in outcomes:
                beyond = self.lp.column()
                self.lp.row([(beyond, 1.0), (value, -1.0), (threshold, 1.0)], lower=0.0)
                terms.append((beyond, weight * likely / tail))
        return terms

    def _successors(self, graph_node: int, node: Node) -> list[tuple[int, float]]:
        graph = self.files.horizon["policy_graph"]
        if not graph.get("nodes"):
            return [(self.files.stages[node.position + 1]["id"], 1.0)]
        return [
            (transition["target_id"], transition["probability"])
            for transition in graph["transitions"]
            if transition["source_id"] == graph_node
        ]

    def _openings(self, graph_node: int, position: int) -> list[Opening]:
        """Openings of a node: its scenario of the external libraries, or those of the stage."""
        stage_id = self.files.stages[position]["id"]
        nodes = self.files.horizon["policy_graph"].get("nodes") or []
        scenario = next((node.get("scenario_id") for node in nodes if node["id"] == graph_node), None)
        if scenario is not None:
            return [self._external(stage_id, scenario)]
        return list(self.openings.get(stage_id, [Opening()]))

    def _external(self, stage_id: int, scenario: int) -> Opening:
        schemes = (self.files.config["training"].get("scenario_source")) or {}

        def values(kind: str, id_key: str, column: str) -> dict[int, float]:
            if (schemes.get(kind) or {}).get("scheme") != "external":
                return {}
            rows = self.files.rows(f"scenarios/external_{kind}_scenarios.parquet")
            here = [row for row in rows if (row["stage_id"], row["scenario_id"]) == (stage_id, scenario)]
            return {row[id_key]: row[column] for row in here}

        return Opening(
            values("inflow", "hydro_id", "value_m3s"),
            values("load", "bus_id", "value_mw"),
            values("ncs", "ncs_id", "availability_factor"),
        )


def _risk(stage: Json) -> tuple[float, float]:
    """Weight and tail of a stage's risk measure."""
    measure = stage.get("risk_measure") or "expectation"
    if measure == "expectation":
        return 0.0, 1.0
    return float(measure["cvar"]["lambda"]), float(measure["cvar"]["alpha"])
