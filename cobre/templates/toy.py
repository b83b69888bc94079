"""Template ``toy``: one reservoir, two thermal plants, half a year."""

from __future__ import annotations

from cobre.case.format import layout
from cobre.templates.parts import (
    Files,
    bus,
    config,
    hydro,
    initial_storage,
    month_hours,
    month_starts,
    penalties,
    production,
    seasonal_stats,
    stages,
    thermal,
)

TITLE = "Toy"
SUMMARY = "one reservoir and two thermal plants on one bus, six months, uncertain inflow"
ABOUT = """
The smallest case with a decision worth making: one reservoir of 600 hm3, a coal and a gas plant, one bus,
six months into the dry season. Inflow has 5 openings a month. Water used today saves coal now; water kept
saves gas later, if the inflow stays low.
"""
NUMBERS = """
Training takes about a second; the first run of cobre on a machine compiles its kernels before (a minute).
In its 30 iterations the lower bound of the optimal cost rises to 16.66 million $.
"""


def build() -> Files:
    """Return the files of the case."""
    months = month_starts("2025-05-01", 6)
    return {
        layout.CONFIG: config(forward_passes=4, iterations=30, inflow_method="truncation"),
        layout.PENALTIES: penalties([{"depth_mw": None, "cost": 2500.0}]),
        layout.STAGES: stages(months, month_hours(months, {"month": 1.0}), 0.08, num_openings=5),
        layout.INITIAL_CONDITIONS: initial_storage([350.0]),
        layout.BUSES: {"buses": [bus(0, "Town")]},
        layout.LINES: {"lines": []},
        layout.HYDROS: {"hydros": [hydro(0, "Lake", (100.0, 600.0), [("Lake", 0, 120.0, 160.0)])]},
        layout.PRODUCTION_MODELS: production([0.75]),
        layout.THERMALS: {
            "thermals": [
                thermal(0, "Coal", cost=45.0, max_mw=60.0, min_mw=10.0),
                thermal(1, "Gas", cost=110.0, max_mw=60.0),
            ]
        },
        layout.INFLOW_STATS: seasonal_stats(
            "hydro", "m3s", [[110.0, 85.0, 70.0, 55.0, 50.0, 60.0]], [[30.0, 25.0, 20.0, 16.0, 15.0, 20.0]]
        ),
        layout.LOAD_STATS: seasonal_stats("bus", "mw", [[130.0, 135.0, 140.0, 140.0, 135.0, 130.0]]),
    }
