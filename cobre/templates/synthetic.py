"""Template ``synthetic``: a system of any size, drawn from a seed; for measurements and experiments.

All of it is feasible: deficit is unlimited at a price, spillage is free to take any water, and minimum
outflows may be broken at a price, so every stage can be operated from every storage and inflow.
"""

from __future__ import annotations

from typing import Any

from cobre.case.format import layout
from cobre.templates.parts import (
    Files,
    Json,
    bus,
    config,
    hydro,
    initial_storage,
    line,
    load_factors,
    month_hours,
    month_starts,
    penalties,
    production,
    seasonal_stats,
    stages,
    table,
    thermal,
)
from cobre.templates.synthetic_options import SIZES, SyntheticOptions
from cobre.templates.synthetic_system import (
    MONTHS,
    Plant,
    correlations,
    draw_coefficients,
    draw_lines,
    draw_loads,
    draw_past,
    draw_plants,
    draw_thermals,
    load_shape,
    planes,
    rounded,
)

TITLE = "Synthetic system"
SUMMARY = (
    "a system of any size drawn from a seed: rivers, plants, buses, months, blocks and openings as asked"
)
_ABOUT = """
A system drawn at random: {hydros} hydro plants on rivers with tributaries, {thermals} thermal plants and
{buses} buses, tied by lines; {stages} months with {blocks} load blocks and {openings} openings each. Inflows
have seasons; their noise is {noise}. {planes} of the hydro plants have a production bounded by planes in
storage and flow. On the mean, water covers some two thirds of the load.

The case is a function of its options alone. The same again:

    cobre init DIR --template synthetic {command}
"""
_KNOWN_BOUND = """
Training takes a second; the first run of cobre on a machine compiles its kernels before (a minute).
In its 50 iterations the lower bound of the optimal cost rises to {bound} million $.
"""
_UNKNOWN_BOUND = """
The first run of cobre on a machine compiles its kernels before (a minute). What training costs grows with
forward passes, openings, stages, and more than proportionally with the size of the system.
"""
_BOUND_OF_SMALL = "85.39"
_FIRST_MONTH = "2025-01-01"
_PAST_FIRST_MONTH = "2024-01-01"
_MONTH_NAMES = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_HIGHEST_LOAD, _LOWEST_LOAD = 1.25, 0.85
"""Load of the first and last block over the mean, before they are scaled to keep the mean."""


def about(options: SyntheticOptions) -> str:
    """Return the description of the case in the README."""
    noise = "white" if options.order == 0 else f"autoregressive of order {options.order}"
    noise += ", independent" if options.correlation == 0 else ", correlated in space"
    return _ABOUT.format(
        hydros=options.hydros,
        thermals=options.thermals,
        buses=options.buses,
        stages=options.stages,
        blocks=options.blocks,
        openings=options.openings,
        noise=noise,
        planes=f"{100 * options.fpha_share:g} %",
        command=options.command_line(),
    )


def numbers(options: SyntheticOptions) -> str:
    """Return the paragraph on training in the README."""
    return _KNOWN_BOUND.format(bound=_BOUND_OF_SMALL) if options == SIZES["small"] else _UNKNOWN_BOUND


def build(options: SyntheticOptions | None = None) -> Files:
    """Return the files of the case; by default the small one."""
    options = options or SIZES["small"]
    plants = draw_plants(options)
    loads = draw_loads(options, plants)
    shape = load_shape(options)
    files: Files = {
        layout.CONFIG: _config(options),
        layout.PENALTIES: penalties(
            [{"depth_mw": rounded(0.05 * sum(loads)), "cost": 800.0}, {"depth_mw": None, "cost": 4000.0}],
            exchange_cost=0.5,
        ),
        layout.STAGES: _stages(options),
        layout.INITIAL_CONDITIONS: _initial_conditions(options, plants),
        layout.BUSES: {"buses": [bus(b, f"Bus {b}") for b in range(options.buses)]},
        layout.LINES: {
            "lines": [
                line(number, f"Bus {source} - bus {target}", (source, target), (there, back))
                for number, (source, target, there, back) in enumerate(draw_lines(options, loads))
            ]
        },
        layout.HYDROS: {"hydros": [_hydro(number, plant) for number, plant in enumerate(plants)]},
        layout.PRODUCTION_MODELS: production(
            [
                {"model": "fpha", "fpha_config": {"source": "precomputed"}}
                if plant.planes
                else plant.productivity
                for plant in plants
            ]
        ),
        layout.THERMALS: {
            "thermals": [
                thermal(number, f"Thermal {number}", cost=plant.cost, max_mw=plant.max_mw, bus_id=plant.bus)
                for number, plant in enumerate(draw_thermals(options, loads))
            ]
        },
        layout.INFLOW_STATS: _inflow_stats(options, plants),
        layout.LOAD_STATS: seasonal_stats(
            "bus",
            "mw",
            [[rounded(load * shape[t % MONTHS]) for t in range(options.stages)] for load in loads],
        ),
    }
    if options.blocks > 1:
        files[layout.LOAD_FACTORS] = load_factors([_factors(options)] * options.buses, options.stages)
    if any(plant.planes for plant in plants):
        files |= _planes(options, plants)
    if options.order > 0:
        files[layout.INFLOW_AR] = _coefficients(options)
    if options.correlation > 0 and options.hydros > 1:
        files[layout.CORRELATION] = _correlation(options, plants)
    return files


def _config(options: SyntheticOptions) -> Json:
    content = config(options.forward_passes, options.iterations, inflow_method="truncation")
    content["training"]["tree_seed"] = options.seed
    return content


def _shares(options: SyntheticOptions) -> list[float]:
    """Return the share of a month that each block takes: growing, so that the peak is short."""
    weight = [1.0 + k for k in range(options.blocks)]
    return [w / sum(weight) for w in weight]


def _factors(options: SyntheticOptions) -> list[float]:
    """Return the load of the blocks over its mean, falling; their mean over the hours is 1."""
    step = (_HIGHEST_LOAD - _LOWEST_LOAD) / (options.blocks - 1)
    raw = [_HIGHEST_LOAD - step * k for k in range(options.blocks)]
    mean = sum(share * value for share, value in zip(_shares(options), raw, strict=True))
    return [rounded(value / mean) for value in raw]


def _needs_past(options: SyntheticOptions) -> bool:
    """Return whether the year before is described: for lags, and for seasons that a short study lacks."""
    return options.order > 0 or options.stages < MONTHS


def _stages(options: SyntheticOptions) -> Json:
    months = month_starts(_FIRST_MONTH, options.stages)
    shares = {f"block {k}": share for k, share in enumerate(_shares(options))}
    fields: dict[str, Any] = {}
    if options.order > 0:
        fields["state_variables"] = {"storage": True, "inflow_lags": True}
    content = stages(months, month_hours(months, shares), 0.08, num_openings=options.openings, **fields)
    content["season_definitions"] = {
        "cycle_type": "monthly",
        "seasons": [
            {"id": month, "label": name, "month_start": month + 1} for month, name in enumerate(_MONTH_NAMES)
        ],
    }
    if _needs_past(options):
        before = month_starts(_PAST_FIRST_MONTH, MONTHS)
        content["pre_study_stages"] = [
            {"id": month - MONTHS, "start_date": before[month], "end_date": before[month + 1]}
            for month in range(MONTHS)
        ]
    return content


def _initial_conditions(options: SyntheticOptions, plants: list[Plant]) -> Json:
    content = initial_storage([plant.initial_storage for plant in plants])
    if options.order > 0:
        before = month_starts(_PAST_FIRST_MONTH, MONTHS)
        content["recent_observations"] = [
            {
                "hydro_id": number,
                "start_date": before[MONTHS - 1 - lag],
                "end_date": before[MONTHS - lag],
                "value_m3s": values[lag],
            }
            for number, values in enumerate(draw_past(options, plants))
            for lag in reversed(range(options.order))
        ]
    return content


def _hydro(number: int, plant: Plant) -> Json:
    name = f"River {plant.river} plant {number}"
    most_mw = rounded(1.15 * plant.productivity * plant.max_turbined, 6)
    return hydro(
        number,
        name,
        (plant.min_storage, plant.max_storage),
        [(name, plant.bus, most_mw, plant.max_turbined)],
        downstream_id=plant.downstream,
        min_outflow_m3s=plant.min_outflow,
        model="fpha" if plant.planes else "constant_productivity",
    )


def _inflow_stats(options: SyntheticOptions, plants: list[Plant]) -> Any:
    first = -MONTHS if _needs_past(options) else 0
    rows = [
        (number, stage, plant.inflow[stage % MONTHS], plant.deviation[stage % MONTHS])
        for number, plant in enumerate(plants)
        for stage in range(first, options.stages)
    ]
    ids, stage_ids, means, deviations = zip(*rows, strict=True)
    return table(hydro_id=ids, stage_id=stage_ids, mean_m3s=means, std_m3s=deviations)


def _planes(options: SyntheticOptions, plants: list[Plant]) -> Files:
    bounded = [(number, plant) for number, plant in enumerate(plants) if plant.planes]
    rows = [(number, index, *plane) for number, plant in bounded for index, plane in enumerate(planes(plant))]
    ids, plane_ids, constants, per_hm3, per_m3s = zip(*rows, strict=True)
    by_stage = [(number, stage, plant) for number, plant in bounded for stage in range(options.stages)]
    return {
        layout.FPHA_PLANES: table(
            hydro_id=ids,
            plane_id=plane_ids,
            gamma_0=constants,
            gamma_v=per_hm3,
            gamma_q=per_m3s,
            gamma_s=[0.0] * len(rows),
        ),
        layout.ENERGY_PRODUCTIVITY: table(
            hydro_id=[number for number, _, _ in by_stage],
            stage_id=[stage for _, stage, _ in by_stage],
            equivalent_productivity_mw_per_m3s=[plant.productivity for _, _, plant in by_stage],
            reference_outflow_m3s=[None] * len(by_stage),
            specific_productivity_mw_per_m3s_per_m=[None] * len(by_stage),
        ),
    }


def _coefficients(options: SyntheticOptions) -> Any:
    rows = [
        (number, stage, lag + 1, value)
        for number, by_month in enumerate(draw_coefficients(options))
        for stage in range(options.stages)
        for lag, value in enumerate(by_month[stage % MONTHS])
    ]
    ids, stage_ids, lags, values = zip(*rows, strict=True)
    return table(hydro_id=ids, stage_id=stage_ids, lag_id=lags, coefficient=values).rename_columns(
        ["hydro_id", "stage_id", "lag", "coefficient"]
    )


def _correlation(options: SyntheticOptions, plants: list[Plant]) -> Json:
    group = {
        "name": "rivers",
        "entities": [{"type": "inflow", "id": number} for number in range(len(plants))],
        "matrix": correlations(options, plants),
    }
    return {"method": "spectral", "profiles": {"default": {"correlation_groups": [group]}}}
