"""Everything electric: thermal plants, lines, buses, non-controllable sources, contracts, batteries."""

from __future__ import annotations

from oracle.files import Json, first_given, in_service
from oracle.node import Node
from oracle.openings import available, load
from oracle.time_axis import deliveries


def add_network(node: Node) -> None:
    """Add all of it but the load balances."""
    for thermal in node.files.thermals:
        _add_thermal(node, thermal)
    for line in node.files.lines:
        _add_line(node, line)
    for bus in node.files.buses:
        _add_bus(node, bus)
    for source in node.files.non_controllable_sources:
        _add_source(node, source)
    for contract in node.files.contracts:
        _add_contract(node, contract)
    for battery in node.files.batteries:
        _add_battery(node, battery)


def add_load_balances(node: Node) -> None:
    """What is fed into a bus equals its load."""
    for (bus_id, block), terms in node.power.items():
        node.lp.equal(terms, load(node.files, bus_id, node.stage_id, block, node.opening))


def _thermal_limits(node: Node, thermal: Json, position: int, block: int | None) -> tuple[float, float]:
    stage = node.files.stages[position]
    if not in_service(thermal, stage):
        return 0.0, 0.0
    keys = {"thermal_id": thermal["id"], "stage_id": stage["id"]}
    table, own = "constraints/thermal_bounds.parquet", thermal["generation"]
    least = node.files.cell(table, keys, "min_generation_mw", block, own["min_mw"])
    return least, node.files.cell(table, keys, "max_generation_mw", block, own["max_mw"])


def _thermal_cost(node: Node, thermal: Json, position: int) -> float:
    keys = {"thermal_id": thermal["id"], "stage_id": node.files.stages[position]["id"]}
    table = "constraints/thermal_bounds.parquet"
    return float(node.files.cell(table, keys, "cost_per_mwh", default=thermal["cost_per_mwh"]))


def _add_thermal(node: Node, thermal: Json) -> None:
    ahead = thermal.get("anticipated_config")
    cost = 0.0 if ahead else _thermal_cost(node, thermal, node.position)
    for k in node.blocks:
        least, most = _thermal_limits(node, thermal, node.position, k)
        column = node.add(("thermal", thermal["id"], k), cost * node.hours[k], most, least)
        node.power[thermal["bus_id"], k].append((column, 1.0))
    if ahead:
        _add_commitments(node, thermal)


def _add_commitments(node: Node, thermal: Json) -> None:
    number, study = thermal["id"], len(node.files.stages)
    for delivery in deliveries(node.files, thermal):
        if delivery.decision == node.position:
            if delivery.position < study:
                least, most = _thermal_limits(node, thermal, delivery.position, None)
                price = _thermal_cost(node, thermal, delivery.position)
            else:
                keys = (number, delivery.position - study)
                bound = next(
                    bound
                    for bound in node.files.post_study["thermal_bounds"]
                    if (bound["thermal_id"], bound["post_study_stage_index"]) == keys
                )
                least, most, price = bound["min_mw"], bound["max_mw"], bound["cost_per_mwh"]
            node.add(("decision", number, delivery.position), price * delivery.hours, most, least)
        if delivery.position == node.position:
            mean = [
                (node.columns["thermal", number, k], node.hours[k] / node.total_hours) for k in node.blocks
            ]
            if delivery.decision is None:
                node.lp.equal(mean, delivery.committed_mw)
            else:
                decided = node.at(delivery.decision).columns["decision", number, delivery.position]
                node.lp.equal([*mean, (decided, -1.0)], 0.0)


def _add_line(node: Node, line: Json) -> None:
    serves = in_service(line, node.stage)
    keys = {"line_id": line["id"], "stage_id": node.stage_id}
    files = node.files
    cost = first_given(
        [
            files.cell("constraints/penalty_overrides_line.parquet", keys, "exchange_cost"),
            line.get("exchange_cost"),
            files.penalties["line"]["exchange_cost"],
        ]
    )
    arrives = 1.0 - (line.get("losses_percent") or 0.0) / 100.0
    ends = (line["source_bus_id"], line["target_bus_id"])
    for way, (sender, receiver) in (("direct", ends), ("reverse", ends[::-1])):
        for k in node.blocks:
            most = files.cell(
                "constraints/line_bounds.parquet", keys, f"{way}_mw", k, line["capacity"][f"{way}_mw"]
            )
            column = node.add((way, line["id"], k), cost * node.hours[k], most if serves else 0.0)
            node.power[sender, k].append((column, -1.0))
            node.power[receiver, k].append((column, arrives))


def _add_bus(node: Node, bus: Json) -> None:
    keys = {"bus_id": bus["id"], "stage_id": node.stage_id}
    everywhere = node.files.penalties["bus"]
    excess = node.files.cell(
        "constraints/penalty_overrides_bus.parquet", keys, "excess_cost", default=everywhere["excess_cost"]
    )
    for k in node.blocks:
        for j, segment in enumerate(bus.get("deficit_segments") or everywhere["deficit_segments"]):
            depth = segment.get("depth_mw")
            most = float("inf") if depth is None else depth
            column = node.add(("deficit", bus["id"], k, j), segment["cost"] * node.hours[k], most)
            node.power[bus["id"], k].append((column, 1.0))
        column = node.add(("excess", bus["id"], k), excess * node.hours[k])
        node.power[bus["id"], k].append((column, -1.0))


def _add_source(node: Node, source: Json) -> None:
    keys = {"ncs_id": source["id"], "stage_id": node.stage_id}
    files, number = node.files, source["id"]
    reward = first_given(
        [
            files.cell("constraints/penalty_overrides_ncs.parquet", keys, "curtailment_cost"),
            source.get("curtailment_cost"),
            files.penalties["non_controllable_source"]["curtailment_cost"],
        ]
    )
    serves = in_service(source, node.stage)
    curtails = source.get("allow_curtailment", True)
    for k in node.blocks:
        offered = available(files, number, source["max_generation_mw"], node.stage_id, k, node.opening)
        generated = node.add(("ncs", number, k), -reward * node.hours[k])
        curtailed = node.add(("curtailed", number, k), upper=float("inf") if curtails else 0.0)
        node.lp.equal([(generated, 1.0), (curtailed, 1.0)], offered if serves else 0.0)
        node.power[source["bus_id"], k].append((generated, 1.0))


def _add_contract(node: Node, contract: Json) -> None:
    keys = {"contract_id": contract["id"], "stage_id": node.stage_id}
    sign = {"import": 1.0, "export": -1.0}[contract["type"]]

    def value(column: str, block: int, default: float) -> float:
        table = "constraints/contract_bounds.parquet"
        return float(node.files.cell(table, keys, column, block, default))

    serves = in_service(contract, node.stage)
    for k in node.blocks:
        least = value("min_mw", k, contract["limits"]["min_mw"]) if serves else 0.0
        most = value("max_mw", k, contract["limits"]["max_mw"]) if serves else 0.0
        price = value("price_per_mwh", k, contract["price_per_mwh"])
        column = node.add(("contract", contract["id"], k), price * node.hours[k], most, least)
        node.power[contract["bus_id"], k].append((column, sign))


def _add_battery(node: Node, battery: Json) -> None:
    """Energy at the end of each period is that at its start, and what is charged and discharged in it."""
    number, keys = battery["id"], {"battery_id": battery["id"], "stage_id": node.stage_id}
    serves = in_service(battery, node.stage)
    flows: dict[int, list[tuple[int, float]]] = {period: [] for period in node.periods}
    gains = {
        "charge": battery.get("charge_efficiency", 1.0),
        "discharge": -1.0 / battery.get("discharge_efficiency", 1.0),
    }
    for way, gain in gains.items():
        for k in node.blocks:
            column = f"max_{way}_mw"
            most = node.files.cell("constraints/battery_bounds.parquet", keys, column, k, battery[column])
            cost = battery.get(f"{way}_cost_per_mwh", 0.0) * node.hours[k]
            flow = node.add((way, number, k), cost, most if serves else 0.0)
            node.power[battery["bus_id"], k].append((flow, -1.0 if way == "charge" else 1.0))
            flows[node.period(k)].append((flow, -gain * node.hours[k]))
    before = None
    if node.parent is not None:
        before = node.parent.columns["energy", number, node.parent.periods[-1]]
    for period in node.periods:
        after = node.add(
            ("energy", number, period), 0.0, battery["max_energy_mwh"], battery.get("min_energy_mwh", 0.0)
        )
        start = [] if before is None else [(before, -1.0)]
        node.lp.equal(
            [(after, 1.0), *start, *flows[period]], battery["initial_energy_mwh"] if before is None else 0.0
        )
        before = after
