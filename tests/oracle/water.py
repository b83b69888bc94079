"""Everything wet: reservoirs, plants, channels, pumps, and water under way between plants."""

from __future__ import annotations

from oracle.files import Json, RawFiles, in_service
from oracle.limits import group_limit, hydro_cost, hydro_limit
from oracle.node import Node
from oracle.openings import inflow
from oracle.production import evaporation, planes_of, productivity
from oracle.time_axis import (
    HM3_PER_M3S_HOUR,
    past_arrivals_hm3,
    release_interval,
    share,
    stage_start,
)


def status(files: RawFiles, plant: Json, position: int) -> str:
    """``operating``, ``out`` (no dam stands, or it is out of use) or ``filling``."""
    stage = files.stages[position]
    if in_service(plant, stage):
        return "operating"
    filling = plant.get("filling")
    if filling and filling["start_stage_id"] <= stage["id"] < plant["entry_stage_id"]:
        return "filling"
    return "out"


def initial_storage(files: RawFiles, plant: Json) -> float:
    """Storage (hm3) at the start; a reservoir that is not listed is at its floor, or empty before filling."""
    rows = files.initial["storage"] + files.initial["filling_storage"]
    for row in rows:
        if row["hydro_id"] == plant["id"]:
            return float(row["value_hm3"])
    return 0.0 if plant.get("filling") else float(plant["reservoir"]["min_storage_hm3"])


def add_water(node: Node) -> None:
    """Add all of it."""
    for plant in node.files.hydros:
        _add_storage(node, plant)
    for plant in node.files.hydros:
        state = status(node.files, plant, node.position)
        if state == "out":
            for p in node.periods:
                node.add(("bypass", plant["id"], p), lower=-float("inf"))
        else:
            _add_flows(node, plant, state)
            _add_uses(node, plant)
            if state == "filling":
                _add_filling(node, plant)
        _add_inflow(node, plant, state)
    for station in node.files.pumping_stations:
        _add_pump(node, station)
    for plant in node.files.hydros:
        _add_arrivals(node, plant)
    for plant in node.files.hydros:
        _add_balances(node, plant)


def storage_at(node: Node, plant: Json, boundary: int) -> tuple[list[tuple[int, float]], float]:
    """Storage at a boundary between periods (0: start of the stage) as terms and a constant."""
    if boundary > 0:
        return [(node.columns["storage", plant["id"], boundary], 1.0)], 0.0
    if node.parent is None:
        return [], initial_storage(node.files, plant)
    return storage_at(node.parent, plant, len(node.parent.periods))


def _mean_storage(node: Node, plant: Json, period: int) -> tuple[list[tuple[int, float]], float]:
    before, after = storage_at(node, plant, period), storage_at(node, plant, period + 1)
    return [(column, 0.5) for column, _ in before[0] + after[0]], 0.5 * (before[1] + after[1])


def _floor_is_soft(files: RawFiles, plant: Json) -> bool:
    """Whether the plant may come to its first stage of service below its floor."""
    states = [status(files, plant, position) for position in range(len(files.stages))]
    if "filling" in states:
        return True
    first = states.index("operating") if "operating" in states else 0
    least = hydro_limit(files, plant, files.stages[first]["id"], "min_storage_hm3")
    return initial_storage(files, plant) < least


def _add_storage(node: Node, plant: Json) -> None:
    files, number = node.files, plant["id"]
    state = status(files, plant, node.position)
    least = hydro_limit(files, plant, node.stage_id, "min_storage_hm3")
    most = hydro_limit(files, plant, node.stage_id, "max_storage_hm3")
    soft = _floor_is_soft(files, plant)
    for boundary in range(1, len(node.periods) + 1):
        name = ("storage", number, boundary)
        if state == "out":
            column = node.add(name)
            terms, constant = storage_at(node, plant, boundary - 1)
            node.lp.equal([(column, 1.0)] + [(other, -value) for other, value in terms], constant)
        elif state == "filling" or soft:
            column = node.add(name, upper=most)
            if state == "operating":
                price = hydro_cost(files, plant, node.stage_id, "storage_violation_below")
                node.soft(("floor", number, boundary), [(column, 1.0)], price, lower=least)
        else:
            node.add(name, upper=most, lower=least)


def _add_flows(node: Node, plant: Json, state: str) -> None:
    number, files = plant["id"], node.files
    spilling, diverting = (
        hydro_cost(files, plant, node.stage_id, name) for name in ("spillage", "diversion")
    )
    for k in node.blocks:
        spilt = node.add(("spilt", number, k), spilling * node.hours[k])
        outflow = [(spilt, 1.0)]
        if plant.get("diversion"):
            least, most = (
                hydro_limit(files, plant, node.stage_id, f"{end}_diversion_m3s", k) for end in ("min", "max")
            )
            diverted = node.add(("diverted", number, k), diverting * node.hours[k], most, least)
            outflow.append((diverted, 1.0))
            target = (plant["diversion"]["downstream_id"], node.period(k))
            node.water[target].append((diverted, node.volume(k)))
        if state == "operating":
            outflow += _add_turbines(node, plant, k, spilt)
        node.water[number, node.period(k)] += [(column, -node.volume(k)) for column, _ in outflow]
        least, most = (
            hydro_limit(files, plant, node.stage_id, f"{end}_outflow_m3s", k) for end in ("min", "max")
        )
        if least > 0:
            price = hydro_cost(files, plant, node.stage_id, "outflow_violation_below") * node.hours[k]
            node.soft(("min outflow", number, k), outflow, price, lower=least)
        if most < float("inf"):
            price = hydro_cost(files, plant, node.stage_id, "outflow_violation_above") * node.hours[k]
            node.soft(("max outflow", number, k), outflow, price, upper=most)


def _add_turbines(node: Node, plant: Json, k: int, spilt: int) -> list[tuple[int, float]]:
    """Unit groups of a plant in a block; returns their flows."""
    number, files, stage_id = plant["id"], node.files, node.stage_id
    planes = planes_of(files, plant, node.position, node.fitted)
    rho = productivity(files, plant, node.position)
    cost = hydro_cost(files, plant, stage_id, "turbined") * node.hours[k]

    def of_group(group: Json, name: str) -> float:
        return group_limit(files, plant, group, stage_id, name, k)

    def of_plant(name: str) -> float:
        return hydro_limit(files, plant, stage_id, name, k)

    groups = plant["unit_groups"]
    flows: list[tuple[int, float]] = []
    powers: list[tuple[int, float]] = []
    most_flow = min(
        sum(of_group(group, "max_turbined_m3s") for group in groups), of_plant("max_turbined_m3s")
    )
    for group in groups:
        flow = node.add(("turbined", number, group["id"], k), cost, of_group(group, "max_turbined_m3s"))
        flows.append((flow, 1.0))
        if planes:
            most = of_group(group, "max_generation_mw") if most_flow > 0 else 0.0
            power = (node.add(("generation", number, group["id"], k), upper=most), 1.0)
        else:
            power = (flow, rho)
            node.lp.row([power], upper=of_group(group, "max_generation_mw"))
        powers.append(power)
        node.power[group["bus_id"], k].append(power)
        node.generation[number, group["id"], k] = power
    node.lp.row(flows, upper=of_plant("max_turbined_m3s"))
    node.lp.row(powers, upper=of_plant("max_generation_mw"))
    if most_flow > 0:
        mean, constant = _mean_storage(node, plant, node.period(k))
        for p0, pv, pq, ps in planes:
            below = [(column, -pq) for column, _ in flows] + [(column, -pv * value) for column, value in mean]
            node.lp.row([*powers, *below, (spilt, -ps)], upper=p0 + pv * constant)
    _add_minimum(node, plant, k, flows, "turbined", "m3s")
    _add_minimum(node, plant, k, powers, "generation", "mw")
    return flows


def _add_minimum(
    node: Node, plant: Json, k: int, terms: list[tuple[int, float]], quantity: str, unit: str
) -> None:
    """Minima of unit groups, and of the plant where it asks for more than they do together."""
    number, name = plant["id"], f"min_{quantity}_{unit}"
    price = hydro_cost(node.files, plant, node.stage_id, f"{quantity}_violation_below") * node.hours[k]
    wanted = [group_limit(node.files, plant, group, node.stage_id, name, k) for group in plant["unit_groups"]]
    together = hydro_limit(node.files, plant, node.stage_id, name, k)
    if len(wanted) == 1:
        wanted = [max(wanted[0], together)]
    for group, least, term in zip(plant["unit_groups"], wanted, terms, strict=True):
        if least > 0:
            node.soft((quantity, number, group["id"], k), [term], price, lower=least)
    if together > sum(wanted) * (1 + 1e-12):
        node.soft((quantity, number, k), terms, price, lower=together)


def _add_uses(node: Node, plant: Json) -> None:
    """Slack of inflow, withdrawal and evaporation."""
    number, files = plant["id"], node.files
    hours = node.total_hours

    def cost(name: str) -> float:
        return hydro_cost(files, plant, node.stage_id, name)

    method = ((files.config.get("modeling") or {}).get("inflow_non_negativity") or {}).get(
        "method", "penalty"
    )
    uses = []
    if method in ("penalty", "truncation_with_penalty"):
        uses.append((node.add(("inflow slack", number), cost("inflow_nonnegativity") * hours), 1.0))
    withdrawn = hydro_limit(files, plant, node.stage_id, "water_withdrawal_m3s")
    if withdrawn > 0:
        less = node.add(
            ("withdrawn less", number), cost("water_withdrawal_violation_neg") * hours, upper=withdrawn
        )
        more = node.add(("withdrawn more", number), cost("water_withdrawal_violation_pos") * hours)
        uses += [(less, 1.0), (more, -1.0)]
    for p, length in enumerate(node.period_hours):
        volume = HM3_PER_M3S_HOUR * length
        node.water[number, p] += [(column, sign * volume) for column, sign in uses]
        node.constant_water[number, p] -= volume * withdrawn
    model = evaporation(files, plant, node.position)
    if model is None:
        return
    intercept, slope = model
    ends = [
        intercept + slope * hydro_limit(files, plant, node.stage_id, f"{end}_storage_hm3")
        for end in ("min", "max")
    ]
    least, most = 2.0 * min(0.0, *ends), 2.0 * max(0.0, *ends)
    for p, length in enumerate(node.period_hours):
        flow = node.add(("evaporated", number, p), lower=least, upper=most)
        less = node.add(("evaporated less", number, p), cost("evaporation_violation_neg") * length)
        more = node.add(("evaporated more", number, p), cost("evaporation_violation_pos") * length)
        mean, constant = _mean_storage(node, plant, p)
        by_storage = [(column, -slope * value) for column, value in mean]
        node.lp.equal([(flow, 1.0), (less, 1.0), (more, -1.0), *by_storage], intercept + slope * constant)
        node.water[number, p].append((flow, -HM3_PER_M3S_HOUR * length))


def _add_filling(node: Node, plant: Json) -> None:
    number, files = plant["id"], node.files
    price = hydro_cost(files, plant, node.stage_id, "filling_target_violation")
    rate = hydro_limit(files, plant, node.stage_id, "filling_min_rate_m3s")
    final = [(node.columns["storage", number, len(node.periods)], 1.0)]
    if rate > 0:
        terms, constant = storage_at(node, plant, 0)
        kept = final + [(column, -value) for column, value in terms]
        least = HM3_PER_M3S_HOUR * node.total_hours * rate + constant
        node.soft(("filling rate", number), kept, price, lower=least)
    following = node.position + 1
    if following < len(files.stages) and status(files, plant, following) == "operating":
        target = hydro_limit(files, plant, files.stages[following]["id"], "min_storage_hm3")
        node.soft(("filling target", number), final, price, lower=target)


def _add_inflow(node: Node, plant: Json, state: str) -> None:
    number = plant["id"]
    natural = inflow(node.files, number, node.stage_id, node.opening)
    for p, length in enumerate(node.period_hours):
        node.constant_water[number, p] += HM3_PER_M3S_HOUR * length * natural
        if state == "out":
            node.water[number, p].append((node.columns["bypass", number, p], -HM3_PER_M3S_HOUR * length))


def _add_pump(node: Node, station: Json) -> None:
    keys = {"pumping_station_id": station["id"], "stage_id": node.stage_id}
    table, own, serves = (
        "constraints/pumping_bounds.parquet",
        station["flow"],
        in_service(station, node.stage),
    )
    for k in node.blocks:
        least, most = (
            node.files.cell(table, keys, f"{end}_m3s", k, own[f"{end}_m3s"]) for end in ("min", "max")
        )
        flow = node.add(("pumped", station["id"], k), 0.0, most if serves else 0.0, least if serves else 0.0)
        node.water[station["source_hydro_id"], node.period(k)].append((flow, -node.volume(k)))
        node.water[station["destination_hydro_id"], node.period(k)].append((flow, node.volume(k)))
        node.power[station["bus_id"], k].append((flow, -station["consumption_mw_per_m3s"]))


def _releases(node: Node, plant: Json) -> list[tuple[int, float, tuple[float, float], int]]:
    """What a plant lets go downstream in a node: column, hm3 per unit, time interval, period."""
    number, found = plant["id"], []
    for k in node.blocks:
        interval = release_interval(node.files, node.position, k)
        names = [("spilt", number, k)] + [
            ("turbined", number, group["id"], k) for group in plant["unit_groups"]
        ]
        for name in names:
            if name in node.columns:
                found.append((node.columns[name], node.volume(k), interval, node.period(k)))
    for p, length in enumerate(node.period_hours):
        if ("bypass", number, p) in node.columns:
            interval = release_interval(node.files, node.position, p)
            found.append((node.columns["bypass", number, p], HM3_PER_M3S_HOUR * length, interval, p))
    return found


def _add_arrivals(node: Node, plant: Json) -> None:
    """Lead the water of a plant, released now or earlier, to the plant below."""
    below, travel = plant.get("downstream_id"), plant.get("travel_time_hours") or 0.0
    if below is None:
        return
    if travel == 0.0:
        for column, volume, _, period in _releases(node, plant):
            node.water[below, period].append((column, volume))
        return
    start = stage_start(node.files, node.position)
    edges = [start]
    for length in node.period_hours:
        edges.append(edges[-1] + length)
    for earlier in node.line():
        for column, volume, (begin, end), _ in _releases(earlier, plant):
            moved = (begin + travel, end + travel)
            for p in node.periods:
                if earlier is node:
                    part = share(moved, (edges[p], edges[p + 1]))
                else:
                    part = share(moved, (edges[0], edges[-1])) * node.period_hours[p] / node.total_hours
                if part > 1e-12:
                    node.water[below, p].append((column, volume * part))
    past = past_arrivals_hm3(node.files, plant, node.position)
    for p in node.periods:
        node.constant_water[below, p] += past * node.period_hours[p] / node.total_hours


def _add_balances(node: Node, plant: Json) -> None:
    number = plant["id"]
    standing = status(node.files, plant, node.position) != "out"
    for p in node.periods:
        terms = [(column, -value) for column, value in node.water[number, p]]
        constant = node.constant_water[number, p]
        if standing:
            before, given = storage_at(node, plant, p)
            terms += storage_at(node, plant, p + 1)[0] + [(column, -value) for column, value in before]
            constant += given
        node.lp.equal(terms, constant)
