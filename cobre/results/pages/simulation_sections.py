"""What a report has of simulation: cost and risk, storage, generation, prices, deficit, inflow."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from cobre.distribution import DEFICIT_MWH
from cobre.results.hours import quantities
from cobre.results.pages.figures import (
    PALETTE,
    QUANTILES,
    Choice,
    Figure,
    FloatArray,
    axes,
    bars,
    dates,
    fan,
    fan_values,
    line,
    numbers,
)
from cobre.results.pages.page import Section, banner, card, table
from cobre.results.pages.run_data import RunData
from cobre.results.pages.simulated import Simulated
from cobre.results.pages.texts import cost_unit, energy, money, percent
from cobre.results.pages.training_sections import cost_parts

MOST_CHOICES = 250
"""Entries of a menu; the largest ones, where a study has more."""
MOST_ROWS = 400
"""Rows of a table."""
_SOURCES = (
    ("hydro", "hydros", "generation_mwh", "@blue"),
    ("thermal", "thermals", "generation_mwh", "@orange"),
    ("wind, solar and other", "non_controllables", "generation_mwh", "@green"),
    ("contracts (net)", "contracts", "energy_mwh", "@yellow"),
    ("deficit", "buses", "deficit_mwh", "@purple"),
)
_LINES = 8
_ALIKE = 1e-9
_SUMS = ("hydro_violation_cost",)
_NO_COMPONENTS = ("total_cost", "immediate_cost", "future_cost", *_SUMS)

_END_TEXT = (
    " Nothing values the water that is left as the study ends, so the last stages empty the reservoirs: plan "
    "with more stages, or with the cuts of a longer study (policy.boundary), before you rely on them."
)
FAN_TEXT = (
    "The dark band holds half of the scenarios, the light one 90 %; the solid line is the median, the "
    "dashed one the "
    "mean."
)


def cost_section(run: RunData, simulated: Simulated) -> Section:
    """Return expected cost by component and stage, and the cost of scenarios."""
    costs, violations = expected_costs(run)
    intro = (
        f"Cost of operation in {simulated.scenarios:,} scenarios, discounted to the beginning of the study."
    )
    terminal = simulated.mean(simulated.tables["scenario_summary"].cube("terminal_cost")["terminal_cost"])
    if terminal:
        intro += f" The value of the final state, {money(float(terminal))} expected, is not part of it."
    return Section(
        "costs", "Cost and risk", intro, [_distribution(simulated), *cost_parts(run, costs, violations)]
    )


def expected_costs(run: RunData) -> tuple[dict[str, FloatArray], set[str]]:
    """Return of each component the expected discounted cost by stage, $, and which ones are violations."""
    simulated = run.simulated
    assert simulated is not None
    found = simulated.tables["costs"].to_arrow()
    found = found.sort_by([("scenario_id", "ascending"), ("start_date", "ascending")])
    shape = (simulated.scenarios, len(simulated.stages))
    discount = found["discount_factor"].to_numpy().reshape(shape)
    names = [
        name
        for name in found.column_names
        if name.endswith(("_cost", "_credit")) and name not in _NO_COMPONENTS
    ]
    costs = {
        name.removesuffix("_cost"): simulated.mean(found[name].to_numpy().reshape(shape) * discount)
        for name in names
    }
    return costs, {name for name in costs if is_violation(name)}


def is_violation(component: str) -> bool:
    """Return whether a cost component is the price of a violation."""
    exact = ("deficit", "excess", "filling_target", "inflow_penalty")
    return component in exact or "violation" in component


def _distribution(simulated: Simulated) -> Figure:
    metrics = simulated.tables.metrics
    total = metrics.scenario_cost
    weights = np.ones(len(total)) if simulated.weights is None else simulated.weights
    count = int(np.clip(np.sqrt(len(total)) * 1.5, 8, 60))
    low, high = float(total.min()), float(total.max())
    if high - low <= _ALIKE * max(1.0, abs(high)):  # no more than rounding
        count, low, high = 1, low - 0.01 * abs(low) - 0.5, high + 0.01 * abs(high) + 0.5
    heights, edges = np.histogram(total, count, (low, high), weights=100.0 * weights / weights.sum())
    mean, tail = metrics.cost.mean, metrics.cost.cvar_95
    marks = ((mean, "mean", "@orange", "dash"), (tail, "mean of the dearest 5 %", "@purple", "dot"))
    size, unit = cost_unit(float(np.abs(total).max()))
    top = float(heights.max()) * 1.05
    traces = [
        bars(
            numbers((edges[:-1] + edges[1:]) / 2.0 / size, 6),
            heights,
            "scenarios",
            "@blue",
            width=float(edges[1] - edges[0]) / size or 1.0,
            hovertemplate=f"%{{x:.4~g}} {unit}: %{{y:.2f}} % of scenarios<extra></extra>",
        )
    ]
    traces += [
        line([value / size] * 2, [0.0, top], name, colour, line={"dash": dash}, hoverinfo="skip")
        for value, name, colour, dash in marks
    ]
    reading = (
        f"Expected cost {money(mean)}; the dearest 5 % of the scenarios cost {money(tail)} on average "
        "(CVaR 95 %). "
        "A long tail to the right is the price of dry years."
    )
    layout = axes(f"cost of a scenario, {unit}", "scenarios, %", hovermode="closest", bargap=0.02)
    return Figure("cost-distribution", "Distribution of cost", reading, traces, layout, 360)


def _end_is_valued(simulated: Simulated) -> bool:
    return bool(simulated.tables["scenario_summary"].cube("terminal_cost")["terminal_cost"].any())


def storage_section(simulated: Simulated) -> Section | None:
    """Return fans of stored energy and of the storage of each plant."""
    if not simulated.has("hydros"):
        return None
    layout = simulated.layout("hydros")
    x = _ends(simulated)
    first = simulated.column("hydros", "stored_energy_initial_mwh", "first")[:, :1].sum(axis=2) / 1e3
    last = simulated.column("hydros", "stored_energy_final_mwh", "last").sum(axis=2) / 1e3
    system = np.hstack([first, last])
    section = Section(
        "storage",
        "Reservoirs",
        "How the policy fills and empties reservoirs. Low bands at the end of the wet season mean a year "
        "that begins with little in reserve." + ("" if _end_is_valued(simulated) else _END_TEXT),
    )
    section.parts.append(
        Figure(
            "stored-energy",
            "Stored energy of the system",
            "Energy of all reservoirs above their minimum, through their whole cascades, at the end of "
            "stages. " + FAN_TEXT,
            fan(x, simulated.quantiles(system), simulated.mean(system)),
            axes(None, "stored energy, GWh", yaxis={"rangemode": "tozero"}),
            420,
        )
    )
    initial = simulated.column("hydros", "storage_initial_hm3", "first")[:, :1]
    storage = np.concatenate([initial, simulated.column("hydros", "storage_final_hm3", "last")], axis=1)
    size = storage.max(axis=(0, 1)) - storage.min(axis=(0, 1))
    moving = [at for at in np.argsort(-size, kind="stable").tolist() if size[at] > 0.0][:MOST_CHOICES]
    if moving:
        section.parts.append(
            entity_fan(
                simulated,
                "storage-plant",
                "Storage of a plant",
                x,
                entities(storage, layout.names, moving),
                "storage, hm³",
                "Storage at the end of stages, of plants whose storage changes, largest first. " + FAN_TEXT,
                group="hydro",
            )
        )
    return section


def _further_quantities(simulated: Simulated) -> list[tuple[str, str]]:
    """Return tables and energies in them of entities that have modules of their own."""
    known = {"hydro_bus_generation", "exchanges", "pumping_stations", *(kind for _, kind, _, _ in _SOURCES)}
    return [
        (name, quantity)
        for name, table in simulated.tables.items()
        if name not in known and table.entity_key is not None
        for quantity in quantities(table)
    ]


def generation_section(simulated: Simulated) -> Section:
    """Return expected generation by source against load, and fans of generation by plant."""
    hours = np.array([stage.hours for stage in simulated.stages])
    x = stage_starts(simulated)
    stack, totals, plants = [], [], []
    for name, kind, column, colour in _SOURCES:
        if not simulated.has(kind):
            continue
        values = simulated.column(kind, column) / hours[:, None]
        total = values.sum(axis=2)
        if not total.any():
            continue
        stack.append(bars(x, simulated.mean(total), name, colour, digits=6))
        if column == "generation_mwh":
            totals.append((f"All {name}", total))
            plants += entities(values, simulated.layout(kind).names, range(values.shape[2]))
    for kind, quantity in _further_quantities(simulated):
        values = simulated.column(kind, f"{quantity}_mwh") / hours[:, None]
        labels = [f"{name}: {quantity}" for name in simulated.layout(kind).names]
        plants += entities(values, labels, range(len(labels)))
    load = simulated.mean(simulated.column("buses", "load_mwh").sum(axis=2) / hours)
    stack.append(line(x, load, "load", "@dark", line={"width": 2.5, "shape": "linear"}, digits=6))
    section = Section(
        "generation", "Generation", "Who serves the load, and how much that depends on the inflow."
    )
    section.parts.append(
        Figure(
            "generation-mix",
            "Expected generation by source",
            "Mean over scenarios, as average power of a stage. What is between the bars and the load is lost "
            "on lines, pumped, stored, or generated in excess.",
            stack,
            axes("stage beginning", "power, MW average", barmode="relative"),
            420,
        )
    )
    mean = [float(values.mean()) for _, values in plants]
    order = [at for at in np.argsort(-np.array(mean), kind="stable").tolist() if mean[at] > 0.0]
    shown = [*totals, *(plants[at] for at in order)][:MOST_CHOICES]
    if shown:
        section.parts.append(
            entity_fan(
                simulated,
                "generation-plant",
                "Generation of a plant or a group",
                x,
                shown,
                "power, MW average",
                "Average power of a stage: sums first, then plants by expected energy. " + FAN_TEXT,
            )
        )
    if simulated.has("exchanges"):
        flow = simulated.column("exchanges", "net_flow_mwh") / hours[:, None]
        names = simulated.layout("exchanges").names
        order = np.argsort(-np.abs(flow).mean(axis=(0, 1)), kind="stable").tolist()[:MOST_CHOICES]
        section.parts.append(
            entity_fan(
                simulated,
                "exchange",
                "Flow on a line",
                x,
                entities(flow, names, order),
                "flow, MW average",
                "Net flow in the direction of the line, as average power of a stage; lines by mean size of "
                "flow. " + FAN_TEXT,
                choice_name="Line",
            )
        )
    return section


def price_section(simulated: Simulated) -> Section:
    """Return fans and duration curves of marginal cost by bus."""
    layout = simulated.layout("buses")
    x = stage_starts(simulated)
    price = simulated.column("buses", "spot_price", "mean")
    load = simulated.mean(simulated.column("buses", "load_mwh")).sum(axis=0)
    order = np.argsort(-load, kind="stable").tolist()[:MOST_CHOICES]
    section = Section(
        "prices",
        "Marginal cost",
        "What one more MWh would cost: the spot price of a market that follows the policy. Buses differ "
        "where lines "
        "are full.",
    )
    section.parts.append(
        entity_fan(
            simulated,
            "price-fan",
            "Marginal cost of a bus",
            x,
            entities(price, layout.names, order),
            "marginal cost, $/MWh",
            "Mean over the hours of a stage; buses by load. " + FAN_TEXT,
            choice_name="Bus",
        )
    )
    values, hours, entity = simulated.by_block("buses", "spot_price")
    weights = np.ones(len(values)) if simulated.weights is None else simulated.weights
    grid = np.concatenate([[0.0, 0.5, 1.0, 2.0], np.arange(4.0, 96.1, 2.0), [98.0, 99.0, 99.5, 100.0]])
    curves = []
    for at in order:
        rows = entity == at
        curves.append(duration_curve(values[:, rows].ravel(), np.outer(weights, hours[rows]).ravel(), grid))
    if len(order) <= _LINES:
        dashes = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot", "solid", "dash")
        traces = [
            line(numbers(grid), curve, layout.names[at], colour, line={"dash": dash})
            for at, curve, colour, dash in zip(order, curves, PALETTE, dashes, strict=False)
        ]
        choices: list[Choice] = []
    else:
        traces = [line(numbers(grid), curves[0], "marginal cost", "@blue")]
        choices = [
            Choice(layout.names[at], [{"y": numbers(curve)}]) for at, curve in zip(order, curves, strict=True)
        ]
    section.parts.append(
        Figure(
            "price-duration",
            "Duration curves of marginal cost",
            "How many percent of all hours, over all stages, blocks and scenarios, the marginal cost is at "
            "least so "
            "high. Steps are costs of plants at the margin; the left end shows scarcity.",
            traces,
            axes("share of hours, %", "marginal cost, $/MWh"),
            400,
            choices,
            "Bus",
        )
    )
    return section


def duration_curve(values: FloatArray, weights: FloatArray, grid: FloatArray) -> FloatArray:
    """Return the value that is reached or exceeded in so many percent of the weight."""
    order = np.argsort(-values, kind="stable")
    share = np.cumsum(weights[order]) / weights.sum() * 100.0
    at = np.minimum(np.searchsorted(share, grid - 1e-9), len(values) - 1)
    return np.asarray(values[order][at])


def deficit_section(simulated: Simulated) -> Section:
    """Return probability and expected energy of deficit by bus and stage."""
    deficit = simulated.column("buses", "deficit_mwh")
    load = simulated.mean(simulated.column("buses", "load_mwh"))
    layout, stages = simulated.layout("buses"), simulated.stages
    short = deficit > DEFICIT_MWH
    intro = (
        "Load that is not served. A deficit here is chosen by the policy because it is cheaper than what "
        "would avoid "
        "it, or because nothing can."
    )
    section = Section("deficit", "Deficit", intro)
    risk = float(simulated.mean(short.any(axis=(1, 2)).astype(float)))
    unserved = simulated.mean(deficit)
    if not short.any():
        limit = ""
        if simulated.weights is None:
            bound = 100.0 * (1.0 - 0.05 ** (1.0 / simulated.scenarios))
            limit = f"With 95 % confidence fewer than {percent(bound)} of scenarios like these have one."
        section.parts.append(
            banner(
                "good", f"No deficit in any of {simulated.scenarios:,} scenarios", [limit] if limit else []
            )
        )
    else:
        section.parts.append(
            banner(
                "warn",
                f"Deficit in {percent(100.0 * risk)} of the scenarios, {energy(float(unserved.sum()))} "
                "expected",
                [
                    "Probability that a scenario has any deficit, in whatever stage and bus; energy over "
                    "the study."
                ],
            )
        )
    columns = ["bus", "probability", "expected unserved energy, MWh", "of load", "most in a stage, MWh"]
    by_bus = [
        (
            layout.names[at],
            percent(100.0 * float(simulated.mean(short[:, :, at].any(axis=1).astype(float)))),
            f"{unserved[:, at].sum():,.1f}",
            percent(100.0 * unserved[:, at].sum() / load[:, at].sum()) if load[:, at].sum() > 0.0 else "–",
            f"{deficit[:, :, at].max():,.1f}",
        )
        for at in np.argsort(-unserved.sum(axis=0), kind="stable").tolist()
    ][:MOST_ROWS]
    section.parts.append(card("By bus", table(columns, by_bus, caption="Deficit by bus")))
    if not short.any():
        return section
    chance = 100.0 * simulated.mean(short.astype(float))
    found = [
        (stages[stage].start.isoformat(), layout.names[bus], stage, bus)
        for stage, bus in np.argwhere(chance > 0.0).tolist()
    ]
    rows = [
        (
            start,
            name,
            percent(float(chance[stage, bus])),
            f"{unserved[stage, bus]:,.1f}",
            percent(100.0 * unserved[stage, bus] / load[stage, bus]) if load[stage, bus] > 0.0 else "–",
            f"{deficit[:, stage, bus].max():,.1f}",
        )
        for start, name, stage, bus in found[:MOST_ROWS]
    ]
    more = f" (the first {MOST_ROWS} of {len(found)})" if len(found) > MOST_ROWS else ""
    columns = ["stage beginning", "bus", *columns[1:-1], "most in a scenario, MWh"]
    section.parts.append(
        Figure(
            "deficit-chance",
            "Probability of deficit by stage",
            "Share of the scenarios with a deficit at the bus in the stage.",
            [_heatmap(dates(stage.start for stage in stages), layout.names, chance, short)],
            {"yaxis": {"automargin": True, "type": "category"}, "hovermode": "closest"},
            140 + 26 * min(len(layout.names), 30),
        )
    )
    section.parts.append(
        card(f"By bus and stage{more}", table(columns, rows, texts=2, caption="Deficit by bus and stage"))
    )
    return section


def _heatmap(x: Sequence[str], names: Sequence[str], chance: FloatArray, short: Any) -> dict[str, Any]:
    shown = [at for at in range(len(names)) if short[:, :, at].any()][:30]
    return {
        "type": "heatmap",
        "x": list(x),
        "y": [names[at] for at in shown],
        "z": [numbers(chance[:, at], 4) for at in shown],
        "zmin": 0.0,
        "colorscale": [[0.0, "@scale-low"], [1.0, "@scale-high"]],
        "colorbar": {"title": {"text": "%"}, "thickness": 12, "outlinewidth": 0},
        "hovertemplate": "%{y}, %{x}: %{z} % of scenarios<extra></extra>",
    }


def inflow_section(simulated: Simulated) -> Section | None:
    """Return fans of natural inflow as the simulation drew it."""
    if not simulated.has("hydros"):
        return None
    x = stage_starts(simulated)
    inflow = simulated.column("hydros", "incremental_inflow_m3s", "mean")
    water = simulated.column("hydros", "incremental_inflow_energy_mw", "mean").sum(axis=2)
    names = simulated.layout("hydros").names
    order = [
        at for at in np.argsort(-inflow.mean(axis=(0, 1)), kind="stable").tolist() if inflow[:, :, at].any()
    ]
    section = Section("inflow", "Inflow", "The water that the scenarios bring.")
    section.parts.append(
        Figure(
            "inflow-energy",
            "Inflow energy of the system",
            "Natural inflow of all plants times the productivity of their cascades. " + FAN_TEXT,
            fan(x, simulated.quantiles(water), simulated.mean(water)),
            axes("stage beginning", "inflow energy, MW average", yaxis={"rangemode": "tozero"}),
            380,
        )
    )
    if order:
        section.parts.append(
            entity_fan(
                simulated,
                "inflow-plant",
                "Inflow of a plant",
                x,
                entities(inflow, names, order[:MOST_CHOICES]),
                "incremental inflow, m³/s",
                "Natural inflow between a plant and those above it; plants by mean inflow. " + FAN_TEXT,
                group="hydro",
            )
        )
    return section


def stage_starts(simulated: Simulated) -> list[str]:
    """Return the first day of each stage."""
    return dates(stage.start for stage in simulated.stages)


def _ends(simulated: Simulated) -> list[str]:
    """Return the dates of states: the first day of the study, and the end of each stage."""
    stages = simulated.stages
    return dates([stages[0].start, *(stage.end for stage in stages)])


def entity_fan(
    simulated: Simulated,
    key: str,
    title: str,
    x: Sequence[str],
    series: Sequence[tuple[str, FloatArray]],
    unit: str,
    reading: str,
    choice_name: str = "Plant",
    group: str | None = None,
) -> Figure:
    """Return a fan with a menu of entities: their names, and values by scenario and stage."""
    choices = [
        Choice(name, fan_values(simulated.quantiles(values), simulated.mean(values)))
        for name, values in series
    ]
    blank = np.zeros(0)
    # What choices replace is not there twice.
    traces = [
        {name: part for name, part in trace.items() if name != "y" or part == [None]}
        for trace in fan(x, [blank] * len(QUANTILES), blank)
    ]
    if len(choices) == 1:
        title = f"{title}: {choices[0].label}"
    layout = axes(None if "storage" in unit else "stage beginning", unit)
    return Figure(key, title, reading, traces, layout, 400, choices, choice_name, group)


def entities(values: FloatArray, names: Sequence[str], order: Iterable[int]) -> list[tuple[str, FloatArray]]:
    """Return names and values of entities in an order, of an array by scenario, stage and entity."""
    return [(names[at], values[:, :, at]) for at in order]
