"""Generic constraints at one node."""

from __future__ import annotations

from oracle.expression import Linear, Variable, read_expression
from oracle.files import Json, RawFiles
from oracle.limits import hydro_limit
from oracle.node import Node
from oracle.openings import inflow
from oracle.production import productivity
from oracle.water import status, storage_at

OF_THE_STAGE = {
    "hydro_storage",
    "hydro_storage_initial",
    "hydro_storage_final",
    "hydro_useful_volume_initial",
    "hydro_useful_volume_final",
    "hydro_withdrawal",
    "hydro_evaporation",
    "hydro_inflow",
    "anticipated_decision",
}
"""Variables that, without a block, speak of the whole stage."""

BY_BLOCK = {
    "hydro_spillage": "spilt",
    "hydro_diversion": "diverted",
    "thermal_generation": "thermal",
    "line_direct": "direct",
    "line_reverse": "reverse",
    "bus_excess": "excess",
    "pumping_flow": "pumped",
    "contract_import": "contract",
    "contract_export": "contract",
    "non_controllable_generation": "ncs",
    "non_controllable_curtailment": "curtailed",
}

Parts = tuple[list[tuple[int, float]], float]


def add_generic(node: Node) -> None:
    """Add the rows that are active at the node's stage."""
    document = node.files.json("constraints/generic_constraints.json", {"constraints": []})
    by_id = {constraint["id"]: constraint for constraint in document["constraints"]}
    for bound in node.files.rows("constraints/generic_constraint_bounds.parquet"):
        if bound["stage_id"] == node.stage_id:
            _add_constraint(node, document, by_id[bound["constraint_id"]], bound)


def _add_constraint(node: Node, document: Json, constraint: Json, bound: Json) -> None:
    block = bound.get("block_id")
    if block is not None:
        _add_row(node, document, constraint, bound, block)
        return
    left, _ = _read(node, document, constraint["expression"], 0)
    if all(variable.name in OF_THE_STAGE for _, variable in left.terms):
        _add_row(node, document, constraint, bound, None)
    else:
        for k in node.blocks:
            _add_row(node, document, constraint, bound, k)


def _add_row(node: Node, document: Json, constraint: Json, bound: Json, block: int | None) -> None:
    left, relation = _read(node, document, constraint["expression"], block)
    lower, upper = bound.get("bound_lower"), bound.get("bound_upper")
    if relation in (">=", "=="):
        lower = (lower or 0.0) - left.constant
    if relation in ("<=", "=="):
        upper = (upper or 0.0) - left.constant
    terms: list[tuple[int, float]] = []
    given = 0.0
    for factor, variable in left.terms:
        parts, constant = _resolve(node, variable, block)
        terms += [(column, factor * value) for column, value in parts]
        given += factor * constant
    limits = {
        "lower": -float("inf") if lower is None else lower - given,
        "upper": float("inf") if upper is None else upper - given,
    }
    slack = constraint["slack"]
    if slack["enabled"]:
        hours = node.total_hours if block is None else node.hours[block]
        key = ("generic", constraint["id"], block, bound.get("block_id"))
        node.soft(key, terms, slack["penalty"] * hours, **limits)
    else:
        node.lp.row(terms, **limits)


def _read(node: Node, document: Json, text: str, block: int | None) -> tuple[Linear, str | None]:
    named = {entry["name"]: entry["expression"] for entry in document.get("expressions") or []}

    def lookup(name: str) -> float | Linear:
        if name in named:
            return read_expression(named[name], lookup)[0]
        return _parameter(node, name, block)

    return read_expression(text, lookup)


def _parameter(node: Node, name: str, block: int | None) -> float:
    files = node.files
    parameters = files.json("constraints/generic_parameters.json")["scalar_parameters"]
    parameter = next(one for one in parameters if one["name"] == name)
    kind = parameter["kind"]
    if kind == "computed":
        return _computed(files, parameter["computed_spec"], node.position)
    if kind == "constant":
        return float(parameter["value"])
    if kind == "per_stage_block":
        rows = parameter["block_values"]
        return float({(stage, number): value for stage, number, value in rows}[node.stage_id, block])
    key = node.stage_id if kind == "per_stage" else files.season(node.position)
    return float(next(value for number, value in parameter["values"] if number == key))


def _computed(files: RawFiles, spec: Json, position: int) -> float:
    plant = next(hydro for hydro in files.hydros if hydro["id"] == spec["hydro_id"])
    tag, stage_id = spec["tag"], files.stages[position]["id"]
    if tag in ("min_storage", "max_storage"):
        return hydro_limit(files, plant, stage_id, f"{tag}_hm3")
    if tag == "equivalent_productivity":
        return productivity(files, plant, position)
    if tag == "accumulated_productivity":
        own = productivity(files, plant, position)
        below = plant.get("downstream_id")
        if below is None:
            return own
        return own + _computed(files, {"tag": tag, "hydro_id": below}, position)
    raise NotImplementedError(tag)


def _resolve(node: Node, variable: Variable, row_block: int | None) -> Parts:
    """Columns with coefficients, and a constant; what a node does not have counts 0."""
    name, number = variable.name, variable.entity
    if name in OF_THE_STAGE:
        return _of_the_stage(node, variable)
    k = row_block if variable.block is None else variable.block
    assert k is not None
    if name in BY_BLOCK:
        column = node.columns.get((BY_BLOCK[name], number, k))
        return ([] if column is None else [(column, 1.0)]), 0.0
    if name == "line_exchange":
        return [(node.columns["direct", number, k], 1.0), (node.columns["reverse", number, k], -1.0)], 0.0
    if name == "pumping_power":
        station = next(one for one in node.files.pumping_stations if one["id"] == number)
        return [(node.columns["pumped", number, k], station["consumption_mw_per_m3s"])], 0.0
    if name == "bus_deficit":
        found = [
            column
            for key, column in node.columns.items()
            if isinstance(key, tuple) and key[:3] == ("deficit", number, k)
        ]
        return [(column, 1.0) for column in found], 0.0
    plant = next(hydro for hydro in node.files.hydros if hydro["id"] == number)
    groups = [g["id"] for g in plant["unit_groups"] if variable.bus is None or g["bus_id"] == variable.bus]
    if status(node.files, plant, node.position) != "operating":
        groups = []
    if name == "hydro_generation":
        return [node.generation[number, group, k] for group in groups], 0.0
    parts = [(node.columns["turbined", number, group, k], 1.0) for group in groups]
    if name == "hydro_outflow" and ("spilt", number, k) in node.columns:
        parts.append((node.columns["spilt", number, k], 1.0))
    return parts, 0.0


def _of_the_stage(node: Node, variable: Variable) -> Parts:
    name, number = variable.name, variable.entity
    if name == "anticipated_decision":
        decisions = [
            column
            for key, column in node.columns.items()
            if isinstance(key, tuple) and key[:2] == ("decision", number)
        ]
        return [(column, 1.0) for column in decisions], 0.0
    plant = next(hydro for hydro in node.files.hydros if hydro["id"] == number)
    if name == "hydro_inflow":
        return [], inflow(node.files, number, node.stage_id, node.opening)
    if name == "hydro_withdrawal":
        less, more = (node.columns.get((f"withdrawn {way}", number)) for way in ("less", "more"))
        scheduled = hydro_limit(node.files, plant, node.stage_id, "water_withdrawal_m3s")
        parts = [] if less is None or more is None else [(less, -1.0), (more, 1.0)]
        return parts, scheduled
    if name == "hydro_evaporation":
        if variable.block is not None:
            return [(node.columns["evaporated", number, node.period(variable.block)], 1.0)], 0.0
        return [
            (node.columns["evaporated", number, p], length / node.total_hours)
            for p, length in enumerate(node.period_hours)
        ], 0.0
    first = name.endswith("_initial")
    boundary = 0 if first else len(node.periods)
    if variable.block is not None:
        boundary = variable.block if first else variable.block + 1
    terms, constant = storage_at(node, plant, boundary)
    if "useful" in name:
        constant -= hydro_limit(node.files, plant, node.stage_id, "min_storage_hm3")
    return terms, constant
