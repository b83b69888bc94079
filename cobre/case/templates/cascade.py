"""Template ``cascade``: four plants on one river, with head, evaporation and travel time."""

from __future__ import annotations

from cobre.case import layout
from cobre.case.templates.parts import (
    Files,
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

TITLE = "Cascade"
SUMMARY = (
    "four hydro plants on a river: fitted head effect, evaporation, diversion, travel time; a year by month"
)
ABOUT = """
A river with four plants. *Springs* has a large reservoir whose head matters: its production function is
fitted to the level of the reservoir and the tailrace (`fpha`, source `computed`), and the sun takes its
share (evaporation). Water needs 60 hours from there to *Gorge*, which also may send some through a tunnel
straight to *Delta*. *Mill* is a small plant on the way; *Delta* feeds two buses. Twelve months with a
peak and an off-peak block, 6 openings a month.
"""
NUMBERS = """
Training takes a few seconds; the first run of cobre on a machine compiles its kernels before (a minute).
In its 25 iterations the lower bound of the optimal cost rises to 45.29 million $.
"""

_MEANS = (
    (210.0, 260.0, 240.0, 180.0, 130.0, 100.0, 85.0, 75.0, 80.0, 100.0, 130.0, 170.0),
    (60.0, 75.0, 70.0, 50.0, 35.0, 28.0, 24.0, 20.0, 22.0, 28.0, 36.0, 48.0),
    (12.0, 15.0, 14.0, 10.0, 7.0, 5.0, 4.0, 4.0, 4.0, 5.0, 7.0, 10.0),
    (40.0, 50.0, 45.0, 34.0, 24.0, 18.0, 16.0, 14.0, 15.0, 19.0, 25.0, 32.0),
)
_EVAPORATION_MM = [110.0, 95.0, 100.0, 90.0, 85.0, 80.0, 90.0, 110.0, 120.0, 130.0, 120.0, 115.0]


def build() -> Files:
    """Return the files of the case."""
    months = month_starts("2025-01-01", 12)
    loads = [520.0, 530.0, 525.0, 500.0, 490.0, 480.0, 485.0, 495.0, 500.0, 510.0, 515.0, 525.0]
    return {
        layout.CONFIG: config(forward_passes=4, iterations=25, inflow_method="truncation"),
        layout.PENALTIES: penalties([{"depth_mw": 60.0, "cost": 900.0}, {"depth_mw": None, "cost": 3500.0}]),
        layout.STAGES: stages(
            months,
            month_hours(months, {"peak": 0.25, "off-peak": 0.75}),
            annual_discount_rate=0.1,
            num_openings=6,
        ),
        layout.INITIAL_CONDITIONS: initial_storage(
            [1500.0, 300.0, 10.0, 80.0],
            past_defluences=[
                {"hydro_id": 0, "start_date": "2024-12-25", "end_date": "2025-01-01", "value_m3s": 160.0}
            ],
        ),
        layout.BUSES: {"buses": [bus(0, "Highlands"), bus(1, "Coast")]},
        layout.LINES: {
            "lines": [
                line(0, "Highlands-Coast", (0, 1), (200.0, 120.0), losses_percent=2.0, exchange_cost=0.5)
            ]
        },
        layout.HYDROS: {"hydros": _hydros()},
        layout.PRODUCTION_MODELS: production(
            [
                {
                    "model": "fpha",
                    "fpha_config": {"source": "computed", "max_planes_per_hydro": 8},
                },
                0.62,
                0.2,
                0.45,
            ]
        ),
        layout.GEOMETRY: table(
            hydro_id=[0] * 5,
            volume_hm3=[400.0, 1000.0, 1600.0, 2200.0, 2800.0],
            height_m=[512.0, 524.0, 533.0, 540.0, 546.0],
            area_km2=[38.0, 61.0, 79.0, 93.0, 106.0],
        ),
        layout.THERMALS: {
            "thermals": [
                thermal(0, "Coast gas", cost=70.0, max_mw=160.0, bus_id=1, min_mw=20.0),
                thermal(1, "Highlands oil", cost=150.0, max_mw=80.0, bus_id=0),
                thermal(2, "Coast diesel", cost=280.0, max_mw=60.0, bus_id=1),
            ]
        },
        layout.LOAD_FACTORS: load_factors([[1.15, 0.95], [1.2, 0.9333]], n_stages=12),
        layout.INFLOW_STATS: seasonal_stats(
            "hydro", "m3s", _MEANS, [[0.25 * value for value in row] for row in _MEANS]
        ),
        layout.LOAD_STATS: seasonal_stats(
            "bus",
            "mw",
            [[round(0.45 * value, 1) for value in loads], [round(0.55 * value, 1) for value in loads]],
        ),
    }


def _hydros() -> list[dict[str, object]]:
    return [
        hydro(
            0,
            "Springs",
            (400.0, 2800.0),
            [("Springs", 0, 220.0, 280.0)],
            downstream_id=1,
            min_outflow_m3s=25.0,
            model="fpha",
            travel_time_hours=60.0,
            specific_productivity_mw_per_m3s_per_m=0.0088,
            tailrace={"type": "polynomial", "coefficients": [440.0, 0.012, -4.0e-6]},
            hydraulic_losses={"type": "factor", "value": 0.02},
            efficiency={"type": "constant", "value": 0.92},
            evaporation={"coefficients_mm": _EVAPORATION_MM},
        ),
        hydro(
            1,
            "Gorge",
            (200.0, 480.0),
            [("Gorge", 0, 190.0, 310.0)],
            downstream_id=2,
            diversion={"downstream_id": 3, "max_flow_m3s": 40.0},
        ),
        hydro(2, "Mill", (10.0, 10.0), [("Mill", 0, 60.0, 300.0)], downstream_id=3),
        hydro(
            3,
            "Delta",
            (60.0, 120.0),
            [("Delta left bank", 0, 60.0, 140.0), ("Delta right bank", 1, 90.0, 210.0)],
            min_outflow_m3s=60.0,
        ),
    ]
