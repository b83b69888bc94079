"""Problems with published optima as cases, in which 1 m3/s over a stage is 1 hm3 and costs 1 $ a unit.

A stage lasts 1 / 0.0036 h, so a flow of 1 m3/s moves 1 hm3. Prices of the problems are $ for a unit of power
over a stage; divided by the hours of a stage they are $/MWh.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from cobre.case.format import layout
from cobre.templates.parts import (
    Files,
    Json,
    bus,
    config,
    entity,
    hydro,
    initial_storage,
    penalties,
    production,
    seasonal_stats,
    stages,
    table,
    thermal,
)

HOURS = 1.0 / 0.0036
LARGE = 1000.0

# Week by week: SDDP.jl 1.2.1, docs/src/tutorial/example_reservoir.csv.
WEEKLY_INFLOW = [3.0 - (digit == "2") for digit in "3232323232323232323332323232323232323233232323232333"]
WEEKLY_DEMAND = [
    *(7.0, 7.1, 7.2, 7.3, 7.4, 7.6, 7.8, 8.1, 8.3, 8.6, 8.9, 9.2, 9.5),
    *(9.8, 10.1, 10.4, 10.7, 10.9, 11.2, 11.4, 11.6, 11.7, 11.8, 11.9, 12.0, 12.0),
    *(12.0, 11.9, 11.8, 11.7, 11.6, 11.4, 11.2, 10.9, 10.7, 10.4, 10.1, 9.8, 9.5),
    *(9.2, 8.9, 8.6, 8.3, 8.1, 7.8, 7.6, 7.4, 7.3, 7.2, 7.1, 7.0, 7.0),
]
WEEKLY_COST = [
    *(10.2, 10.4, 10.6, 10.9, 11.2, 11.5, 11.9, 12.3, 12.7, 13.1, 13.6, 14.0, 14.5),
    *(14.9, 15.3, 15.8, 16.2, 16.6, 17.0, 17.4, 17.7, 18.0, 18.3, 18.5, 18.7, 18.9),
    *(19.0, 19.1, 19.2, 19.2, 19.2, 19.2, 19.1, 19.0, 18.9, 18.8, 18.6, 18.5, 18.4),
    *(18.2, 18.1, 17.9, 17.8, 17.7, 17.6, 17.5, 17.5, 17.5, 17.5, 17.6, 17.7, 17.8),
]


def openings_files(by_stage: Sequence[Sequence[Sequence[float]]], passes: int, iterations: int) -> Files:
    """Return config, statistics and noise that give each stage the openings (opening, plant) asked for.

    The mean and standard deviation of a plant at a stage are those of its openings, and the noise is
    (inflow - mean) / deviation. A plant whose openings agree has noise 0.
    """
    mean, deviation, rows = [], [], []
    for stage, openings in enumerate(by_stage):
        inflow = np.array(openings, np.float64)
        mean.append(inflow.mean(axis=0))
        deviation.append(inflow.std(axis=0))
        varies = deviation[-1] > 0
        noise = np.where(varies, (inflow - mean[-1]) / np.where(varies, deviation[-1], 1.0), 0.0)
        rows += [(stage, *place, float(value)) for place, value in np.ndenumerate(noise)]
    stage_ids, opening, plant, value = zip(*rows, strict=True)
    settings = config(passes, iterations)
    settings["training"]["scenario_source"] = {"openings": {"source": "file"}}
    return {
        layout.CONFIG: settings,
        layout.INFLOW_STATS: seasonal_stats(
            "hydro", "m3s", np.array(mean).T.tolist(), np.array(deviation).T.tolist()
        ),
        layout.NOISE_OPENINGS: pa.table(
            {
                "stage_id": pa.array(stage_ids, pa.int32()),
                "opening_index": pa.array(opening, pa.uint32()),
                "entity_index": pa.array(plant, pa.uint32()),
                "value": pa.array(value, pa.float64()),
            }
        ),
    }


def known_files(by_stage: Sequence[Sequence[float]], passes: int, iterations: int) -> Files:
    """Return config and statistics of inflows (stage, plant) that are known."""
    return {
        layout.CONFIG: config(passes, iterations),
        layout.INFLOW_STATS: seasonal_stats("hydro", "m3s", np.array(by_stage).T.tolist()),
    }


def calendar(openings: Sequence[int], **fields: Any) -> Json:
    """Return stages of a year each, whose hours do not follow from the dates."""
    dates = [f"{2001 + year}-01-01" for year in range(len(openings) + 1)]
    return stages(dates, {"all": HOURS}, num_openings=list(openings), **fields)


def prices(values: Sequence[float]) -> pa.Table:
    """Return the price ($ a unit) of thermal plant 0 by stage."""
    n = len(values)
    return table(
        thermal_id=[0] * n,
        stage_id=range(n),
        block_id=[None] * n,
        min_generation_mw=[None] * n,
        max_generation_mw=[None] * n,
        cost_per_mwh=[value / HOURS for value in values],
    )


def single_reservoir(
    inflow: Files,
    openings: Sequence[int],
    demand: Sequence[float],
    price: Sequence[float],
    storage: tuple[float, float],
    max_flow: float,
    max_thermal: float,
    **fields: Any,
) -> Files:
    """Return a case of one reservoir (initial, greatest storage), one thermal plant and one bus."""
    plant = hydro(0, "Dam", (0.0, storage[1]), [("Turbines", 0, max_flow, max_flow)], penalties=free_spill())
    return {
        **inflow,
        layout.PENALTIES: penalties([{"depth_mw": None, "cost": LARGE}]),
        layout.STAGES: calendar(openings, **fields),
        layout.INITIAL_CONDITIONS: initial_storage([storage[0]]),
        layout.BUSES: {"buses": [bus(0, "Bus")]},
        layout.LINES: {"lines": []},
        layout.HYDROS: {"hydros": [plant]},
        layout.PRODUCTION_MODELS: production([1.0]),
        layout.THERMALS: {"thermals": [thermal(0, "Thermal", cost=0.0, max_mw=max_thermal)]},
        layout.THERMAL_BOUNDS: prices(price),
        layout.LOAD_STATS: seasonal_stats("bus", "mw", [list(demand)]),
    }


def free_spill() -> Json:
    """Return penalties of a plant that may waste water for nothing."""
    return {"spillage_cost": 0.0, "diversion_cost": 0.0}


def three_weeks(**fields: Any) -> Files:
    """Return the three-week problem; ``fields`` are further keys of every stage."""
    inflow = openings_files([[[0.0], [50.0], [100.0]]] * 3, passes=4, iterations=20)
    return single_reservoir(
        inflow, [3] * 3, [150.0] * 3, [50.0, 100.0, 150.0], (200.0, 200.0), 150.0, 150.0, **fields
    )


def reservoir_year(random: bool) -> Files:
    """Return the 52-week reservoir, with inflows {-2, 0, +5} off the data at random or not."""
    if random:
        around = [-2.0] * 3 + [0.0] * 4 + [5.0] * 3
        inflow = openings_files(
            [[[week + change] for change in around] for week in WEEKLY_INFLOW], passes=4, iterations=100
        )
    else:
        inflow = known_files([[week] for week in WEEKLY_INFLOW], passes=1, iterations=40)
    openings = [10 if random else 1] * len(WEEKLY_INFLOW)
    return single_reservoir(inflow, openings, WEEKLY_DEMAND, WEEKLY_COST, (300.0, 320.0), 12.0, 12.0)


def fast_hydro_thermal() -> Files:
    """Return the hydro-thermal example of FAST."""
    inflow = openings_files([[[6.0]], [[2.0], [10.0]]], passes=2, iterations=10)
    return single_reservoir(inflow, [1, 2], [6.0, 6.0], [5.0, 5.0], (0.0, 8.0), 100.0, 6.0)


VALLEY_RAIN = [[0.0, 0.0], [20.0, 0.0], [50.0, 20.0]]
"""Rain on the upper and the lower reservoir, equally likely in the second and third stage."""
VALLEY_PRICES = [1.0, 2.0, 3.0]
VALLEY_CURVE = [(0.0, 1.1), (5.0, 1.0), (35.0, 0.5)]
"""Power <= constant + slope flow: the hull of (0, 0), (50, 55), (60, 65) and (70, 70)."""


def hydro_valley(random: bool) -> Files:
    """Return the hydro valley: two reservoirs in a chain that sell power.

    In the problem rain may be refused for nothing, but spilling costs 1000. So rain falls on two plants
    without storage or turbines (0 and 1), which pass it on to the reservoirs (2 and 3) or through a channel
    to the sea (4). The turbine curves are planes that do not depend on storage.
    """
    if random:
        rain = [[[up, low, 0.0, 0.0, 0.0] for up, low in VALLEY_RAIN[: 1 if t == 0 else 3]] for t in range(3)]
        inflow = openings_files(rain, passes=4, iterations=30)
    else:
        inflow = known_files([[0.0] * 5] * 3, passes=1, iterations=10)
    reservoirs = [
        hydro(
            number,
            f"Reservoir {number}",
            (0.0, 200.0),
            [("Turbines", 0, 70.0, 70.0)],
            downstream_id=below,
            model="fpha",
            penalties={"spillage_cost": LARGE / HOURS},
        )
        for number, below in ((2, 3), (3, None))
    ]
    planes = [(number, index, *line) for number in (2, 3) for index, line in enumerate(VALLEY_CURVE)]
    by_stage = [(number, stage) for number in (2, 3) for stage in range(3)]
    return {
        **inflow,
        layout.PENALTIES: penalties([{"depth_mw": None, "cost": LARGE}]),
        layout.STAGES: calendar([1, 3, 3] if random else [1, 1, 1]),
        layout.INITIAL_CONDITIONS: initial_storage([0.0, 0.0, 200.0, 200.0, 0.0]),
        layout.BUSES: {"buses": [bus(0, "Bus")]},
        layout.LINES: {"lines": []},
        layout.HYDROS: {"hydros": [_catchment(0, 2), _catchment(1, 3), *reservoirs, _without_storage(4)]},
        layout.PRODUCTION_MODELS: production(
            [0.0, 0.0, *[{"model": "fpha", "fpha_config": {"source": "precomputed"}}] * 2, 0.0]
        ),
        layout.FPHA_PLANES: table(
            hydro_id=[row[0] for row in planes],
            plane_id=[row[1] for row in planes],
            gamma_0=[row[2] for row in planes],
            gamma_v=[0.0] * len(planes),
            gamma_q=[row[3] for row in planes],
            gamma_s=[0.0] * len(planes),
        ),
        layout.ENERGY_PRODUCTIVITY: table(
            hydro_id=[number for number, _ in by_stage],
            stage_id=[stage for _, stage in by_stage],
            equivalent_productivity_mw_per_m3s=[1.0] * len(by_stage),
            reference_outflow_m3s=[None] * len(by_stage),
            specific_productivity_mw_per_m3s_per_m=[None] * len(by_stage),
        ),
        layout.THERMALS: {"thermals": []},
        layout.CONTRACTS: {
            "contracts": [
                entity(
                    0,
                    "Market",
                    bus_id=0,
                    type="export",
                    price_per_mwh=0.0,
                    limits={"min_mw": 0.0, "max_mw": 140.0},
                )
            ]
        },
        layout.CONTRACT_BOUNDS: table(
            contract_id=[0] * 3,
            stage_id=range(3),
            block_id=[None] * 3,
            min_mw=[None] * 3,
            max_mw=[None] * 3,
            price_per_mwh=[-price / HOURS for price in VALLEY_PRICES],
        ),
        layout.LOAD_STATS: seasonal_stats("bus", "mw", [[0.0] * 3]),
    }


def _without_storage(number: int, **fields: Any) -> Json:
    return hydro(
        number, f"Weir {number}", (0.0, 0.0), [("None", 0, 0.0, 0.0)], penalties=free_spill(), **fields
    )


def _catchment(number: int, reservoir: int) -> Json:
    channel = {"downstream_id": 4, "max_flow_m3s": LARGE}
    return _without_storage(number, downstream_id=reservoir, diversion=channel)
