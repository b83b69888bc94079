"""Why a price is what it is.

At an optimum of the stage LP, a unit strictly between its limits has a marginal cost that is the price of its
bus, and a line strictly between its limits makes the prices at its ends the same up to its loss and cost. So
the buses that such lines connect form a price area, and the units of the area that are between their limits
set its price; where there is none, deficit, excess or limits do.

One more MWh of a hydro plant with constant productivity rho (MW per m3/s) takes 0.0036 / rho hm3, worth the
dual of its own water balance less that of the plant below, which receives the water.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from cobre.case.model import Case, StageData
from cobre.errors import CobreError
from cobre.mcp.explaining.tables import Row, at, require_rows, rows_of
from cobre.results.reading import Simulation

_HM3_PER_M3S_HOUR: Final = 3600.0 / 1.0e6
_SAME_PRICE: Final = 1e-4
"""Relative difference up to which a marginal cost is the price: duals have the tolerance of the solver."""
_OUT_OF_SERVICE: Final = 0


@dataclass(frozen=True)
class _Place:
    """Where and when: the case at a stage and block, and the rows of a scenario there."""

    simulation: Simulation
    case: Case
    position: int
    block_place: int
    chosen: dict[str, int]

    @property
    def data(self) -> StageData:
        return self.case.stage_data[self.position]

    def rows(self, table: str) -> list[Row]:
        return rows_of(self.simulation, table, **self.chosen)


def explain(
    simulation: Simulation, case: Case, *, bus: str | int, scenario: int, stage: int, block: int | None
) -> dict[str, Any]:
    """Return what is known about a price, see :class:`cobre.mcp.tools.explain.PriceExplanation`."""
    context: dict[str, Any] = {
        "scenario": scenario,
        "stage": stage,
        **({} if block is None else {"block": block}),
    }
    own = simulation["buses"].to_arrow(entity=bus, **context).to_pylist()
    row = max(require_rows(own, f"bus {bus!r}", context), key=lambda item: float(item["spot_price"]))
    place = _place(simulation, case, scenario, stage, int(row["block_id"]))
    buses = {int(item["bus_id"]): item for item in place.rows("buses")}
    links = list(_links(place))
    area = _area(int(row["bus_id"]), links)
    units = [unit for unit in _units(place, buses) if unit["bus_id"] in area]
    lines = [link for link in links if area & {link["source_id"], link["target_id"]}]
    statements = list(_statements(place, buses, area, units, lines))
    named = {int(item["bus_id"]): str(item["bus_name"]) for item in buses.values()}
    return {
        "bus": str(row["bus_name"]),
        "scenario_id": scenario,
        "stage_id": stage,
        "block_id": int(row["block_id"]),
        "price": float(row["spot_price"]),
        "prices": {named[number]: float(buses[number]["spot_price"]) for number in sorted(area)},
        "deficit_mw": float(row["deficit_mw"]),
        "excess_mw": max(0.0, float(row["excess_mw"])),
        "units": [_shown(unit, named) for unit in units],
        "lines": [_shown_line(link, named) for link in lines],
        "statements": statements,
        "unknown": list(_unknown(place, units)),
    }


def _place(simulation: Simulation, case: Case, scenario: int, stage: int, block: int) -> _Place:
    positions = [place for place, item in enumerate(case.stages) if item.id == stage]
    blocks = [item.id for item in case.stages[positions[0]].blocks] if positions else []
    if block not in blocks:
        raise CobreError(
            "OtherStudy",
            f"the case has no stage {stage} with a block {block}: the results are of another study",
            {"stage": stage, "block": block},
            "give the case that was simulated",
        )
    chosen = {"scenario": scenario, "stage": stage, "block": block}
    return _Place(simulation, case, positions[0], blocks.index(block), chosen)


# -- lines


def _links(place: _Place) -> Iterator[dict[str, Any]]:
    """Yield every line with its flow, and whether it connects the prices at its ends."""
    rows = {int(row["line_id"]): row for row in place.rows("exchanges")}
    for number, line in enumerate(place.case.lines):
        row = rows.get(line.id)
        if row is None:
            continue
        direct, reverse = float(row["direct_flow_mw"]), float(row["reverse_flow_mw"])
        forward = direct >= reverse
        limits = place.data.line_direct_mw if forward else place.data.line_reverse_mw
        most, flow = float(limits[number, place.block_place]), max(direct, reverse)
        cost = float(place.data.exchange_cost[number])
        full = at(flow, most)
        yield {
            "id": line.id,
            "name": line.name,
            "source_id": line.source_bus_id,
            "target_id": line.target_bus_id,
            "net_flow_mw": direct - reverse,
            "most_mw": most,
            "cost": cost,
            "loss": line.loss,
            "congested": full,
            # An idle line that costs something lets prices differ by that much.
            "connects": not full and most > 0.0 and (flow > 0.0 or cost == line.loss == 0.0),
        }


def _area(bus: int, links: list[dict[str, Any]]) -> set[int]:
    """Return the buses that lines below their limits connect with a bus."""
    area, grown = {bus}, True
    while grown:
        joined = {
            end
            for link in links
            if link["connects"] and area & {link["source_id"], link["target_id"]}
            for end in (link["source_id"], link["target_id"])
        }
        grown = not joined <= area
        area |= joined
    return area


# -- units


def _units(place: _Place, buses: dict[int, Row]) -> Iterator[dict[str, Any]]:
    """Yield thermal plants, hydro plants by bus, sources and contracts."""
    for unit in (*_thermals(place), *_hydros(place), *_sources(place), *_contracts(place)):
        price = float(buses[unit["bus_id"]]["spot_price"])
        cost = unit["marginal_cost"]
        same = cost is not None and abs(cost - price) <= _SAME_PRICE * max(1.0, abs(price))
        yield {**unit, "sets_price": unit["position"] == "between its limits" and same}


def _thermals(place: _Place) -> Iterator[dict[str, Any]]:
    rows = {int(row["thermal_id"]): row for row in place.rows("thermals")}
    data, block = place.data, place.block_place
    for number, plant in enumerate(place.case.thermals):
        row = rows.get(plant.id)
        if row is None:
            continue
        least, most = float(data.thermal_min_mw[number, block]), float(data.thermal_max_mw[number, block])
        power = float(row["generation_mw"])
        position = "committed ahead" if row["is_anticipated"] else _position(row, power, least, most)
        cost = None if row["is_anticipated"] else float(data.thermal_cost[number])
        yield _unit("thermal", plant, plant.bus_id, power, least, most, position, cost)


def _hydros(place: _Place) -> Iterator[dict[str, Any]]:
    rows = {int(row["hydro_id"]): row for row in place.rows("hydros")}
    generated = {
        (int(row["hydro_id"]), int(row["bus_id"])): float(row["generation_mw"])
        for row in place.rows("hydro_bus_generation")
    }
    data, block = place.data, place.block_place
    for number, plant in enumerate(place.case.hydros):
        row = rows.get(plant.id)
        if row is None:
            continue
        flow = float(row["turbined_m3s"])
        least = float(data.turbined_min_m3s[number, block])
        most = float(data.turbined_max_m3s[number, block])
        position = _position(row, flow, least, most)
        if position == "between its limits" and int(row["operative_state_code"]) == 3:
            position = "at its maximum"  # of its generation, or of its unit groups
        cost = _water_cost(place, number, rows)
        for bus in sorted({group.bus_id for group in plant.unit_groups}):
            power = generated.get((plant.id, bus), 0.0)
            yield _unit("hydro", plant, bus, power, None, None, position, cost)


def _water_cost(place: _Place, number: int, rows: dict[int, Row]) -> float | None:
    """Return what the water for one more MWh is worth elsewhere, $/MWh; ``None`` if that is unknown."""
    plant, model = place.case.hydros[number], place.case.production[place.position][number]
    below = plant.downstream_id
    if model.kind != "constant_productivity" or model.productivity_mw_per_m3s <= 0.0:
        return None
    if below is not None and (plant.travel_time_hours > 0.0 or below not in rows):
        return None
    if place.case.stages[place.position].block_mode == "chronological":
        return None
    own = -float(rows[plant.id]["water_value_per_hm3"])
    kept = 0.0 if below is None else -float(rows[below]["water_value_per_hm3"])
    flow_cost = float(place.data.penalty("turbined")[number])
    return (_HM3_PER_M3S_HOUR * (own - kept) + flow_cost) / model.productivity_mw_per_m3s


def _sources(place: _Place) -> Iterator[dict[str, Any]]:
    rows = {int(row["non_controllable_id"]): row for row in place.rows("non_controllables")}
    for number, source in enumerate(place.case.non_controllables):
        row = rows.get(source.id)
        if row is None:
            continue
        power, most = float(row["generation_mw"]), float(row["available_mw"])
        position = _position(row, power, 0.0, most)
        cost = -float(place.data.curtailment_cost[number])
        yield _unit("non-controllable source", source, source.bus_id, power, 0.0, most, position, cost)


def _contracts(place: _Place) -> Iterator[dict[str, Any]]:
    rows = {int(row["contract_id"]): row for row in place.rows("contracts")}
    data, block = place.data, place.block_place
    for number, contract in enumerate(place.case.contracts):
        row = rows.get(contract.id)
        if row is None:
            continue
        power = abs(float(row["power_mw"]))
        least, most = float(data.contract_min_mw[number, block]), float(data.contract_max_mw[number, block])
        price = abs(float(data.contract_price[number, block]))
        position = _position(row, power, least, most)
        kind = f"{contract.kind} contract"
        yield _unit(kind, contract, contract.bus_id, power, least, most, position, price)


def _unit(
    kind: str,
    entity: Any,
    bus: int,
    power: float,
    least: float | None,
    most: float | None,
    position: str,
    cost: float | None,
) -> dict[str, Any]:
    return {
        "kind": kind,
        "id": entity.id,
        "name": entity.name,
        "bus_id": bus,
        "power_mw": power,
        "least_mw": least,
        "most_mw": most,
        "position": position,
        "marginal_cost": cost,
    }


def _position(row: Row, value: float, least: float, most: float) -> str:
    if int(row.get("operative_state_code", 2)) == _OUT_OF_SERVICE:
        return "out of service"
    if at(value, most):
        return "at its minimum and maximum" if at(value, least) else "at its maximum"
    if value < least:
        return "below its minimum"
    return "at its minimum" if at(value, least) else "between its limits"


# -- in words


def _statements(
    place: _Place,
    buses: dict[int, Row],
    area: set[int],
    units: list[dict[str, Any]],
    lines: list[dict[str, Any]],
) -> Iterator[str]:
    short = [number for number in sorted(area) if float(buses[number]["deficit_mw"]) > 0.0]
    for number in short:
        yield _deficit(place, number, buses[number])
    setters = [unit for unit in units if unit["sets_price"]]
    for unit in setters:
        what = "cost" if unit["kind"] == "thermal" else "value"
        source = "its water" if unit["kind"] == "hydro" else "one more MWh of it"
        yield (
            f"{unit['name']} ({unit['kind']}) is between its limits, and the {what} of {source} is the "
            f"price: {unit['marginal_cost']:.6g} $/MWh."
        )
    for number in sorted(area):
        if float(buses[number]["excess_mw"]) > 0.0:
            name, power = buses[number]["bus_name"], float(buses[number]["excess_mw"])
            yield f"{name} has {power:.6g} MW more than its load takes, so the price is at or below zero."
    for unit in units:
        if unit["position"] == "between its limits" and not unit["sets_price"]:
            cost = unit["marginal_cost"]
            why = "not known" if cost is None else f"{cost:.6g} $/MWh"
            yield f"{unit['name']} ({unit['kind']}) is between its limits too; its marginal cost is {why}."
    for link in lines:
        if link["congested"] and link["most_mw"] > 0.0:
            limit = f"{link['most_mw']:.6g} MW"
            yield f"The line {link['name']} is at its limit of {limit}: prices at its ends may differ."
    if not short and not setters:
        yield (
            "No unit of the price area is between its limits with a marginal cost that is the price: it "
            "lies between the costs of units at their maximum and of units at their minimum, or other rows "
            "of the LP set it."
        )


def _deficit(place: _Place, bus: int, row: Row) -> str:
    """Return which step of deficit is used last."""
    segments = next(item.deficit_segments for item in place.case.buses if item.id == bus)
    left = float(row["deficit_mw"])
    cost = segments[-1].cost_per_mwh
    for segment in segments:
        if segment.depth_mw is None or left <= segment.depth_mw:
            cost = segment.cost_per_mwh
            break
        left -= segment.depth_mw
    return (
        f"{float(row['deficit_mw']):.6g} MW of the load of {row['bus_name']} are not served; "
        f"the last of them cost {cost:.6g} $/MWh."
    )


def _unknown(place: _Place, units: list[dict[str, Any]]) -> Iterator[str]:
    if place.case.generic[place.position]:
        yield "Generic constraints of the stage: their part in the price is not in the tables."
    for kind in place.case.extensions:
        yield f"{kind}: their marginal costs are not computed."
    if place.case.pumping_stations:
        yield "pumping_stations: their marginal costs are not computed."
    unclear = [unit["name"] for unit in units if unit["kind"] == "hydro" and unit["marginal_cost"] is None]
    if unclear:
        yield (
            f"Marginal cost of {', '.join(dict.fromkeys(unclear[:10]))}: it depends on planes, travel time "
            "or chronological blocks."
        )


def _shown(unit: dict[str, Any], named: dict[int, str]) -> dict[str, Any]:
    return {**{name: value for name, value in unit.items() if name != "bus_id"}, "bus": named[unit["bus_id"]]}


def _shown_line(link: dict[str, Any], named: dict[int, str]) -> dict[str, Any]:
    kept = {
        name: link[name] for name in ("id", "name", "net_flow_mw", "most_mw", "cost", "loss", "congested")
    }
    ends = {end: named.get(link[f"{end}_id"], str(link[f"{end}_id"])) for end in ("source", "target")}
    return {**kept, **ends}
