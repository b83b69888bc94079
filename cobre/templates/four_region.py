"""Template ``four-region``: regions with their own rivers, tied by lines, with wind and CVaR."""

from __future__ import annotations

from typing import Any

from cobre.case.format import layout
from cobre.templates.parts import (
    Files,
    Json,
    bus,
    config,
    entity,
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

TITLE = "Four regions"
SUMMARY = "four regions and a hub: reservoirs, wind, lines with losses, contracts, a generic constraint, CVaR"
ABOUT = """
Four regions, each with a river whose large reservoir lies above a run-of-river plant, and thermal plants;
*East* has wind farms with uncertain availability. Lines with losses meet at *Hub*, which has no load.
*South* may buy from and sell to a neighbour. A generic constraint keeps what *Centre* takes from the
lines below a share of what it burns itself plus a constant, and in the wet season a line is down for
maintenance (`constraints/line_bounds.parquet`). The cost of later stages is weighed by 60 % expectation
and 40 % CVaR of the worst quarter. Twelve months, three blocks, 6 openings a month.
"""
NUMBERS = """
Training takes some seconds; the first run of cobre on a machine compiles its kernels before (a minute).
In its 20 iterations the lower bound of the optimal cost rises to 916.1 million $.
At the end the optimum lies at most 1.3 % above it, by the deterministic upper bound. Under a risk measure the
mean cost of the forward passes, the sample cost, cannot be compared with it.
"""

_REGIONS = ("North", "East", "Centre", "South")
_CENTRE, _SOUTH, _HUB = 2, 3, 4
_BLOCKS = {"peak": 0.125, "day": 0.5, "night": 0.375}
_WET = (1.7, 1.8, 1.6, 1.3, 0.9, 0.7, 0.55, 0.45, 0.45, 0.6, 0.8, 1.15)
_SOUTHERN = (0.8, 0.7, 0.7, 0.8, 1.0, 1.2, 1.3, 1.2, 1.3, 1.3, 0.9, 0.8)
_WIND = (0.35, 0.3, 0.28, 0.3, 0.36, 0.42, 0.5, 0.55, 0.55, 0.5, 0.45, 0.4)

# By region: reservoir (hm3), its turbines (m3/s), MW per m3/s of the dam and of the plant below, and their
# mean inflows (m3/s).
_RIVERS = (
    ((2000.0, 9000.0), 900.0, 0.55, 0.3, 560.0, 120.0),
    ((1500.0, 8000.0), 700.0, 0.6, 0.25, 380.0, 60.0),
    ((6000.0, 30000.0), 2400.0, 0.7, 0.4, 1500.0, 500.0),
    ((1000.0, 4500.0), 1100.0, 0.8, 0.35, 640.0, 200.0),
)
_LOAD_MW = (520.0, 850.0, 3300.0, 1150.0)
# By region: cost ($/MWh) and capacity (MW) of its thermal plants.
_THERMALS = (
    ((85.0, 150.0), (190.0, 120.0)),
    ((75.0, 220.0), (160.0, 250.0)),
    ((35.0, 500.0), (65.0, 700.0), (110.0, 600.0), (220.0, 400.0)),
    ((55.0, 300.0), (120.0, 250.0)),
)


def build() -> Files:
    """Return the files of the case."""
    months = month_starts("2025-01-01", 12)
    risk: Json = {"cvar": {"alpha": 0.25, "lambda": 0.4}}
    means = _inflows()
    loads = [[mean * (1.0 + 0.04 * _WET[t] / 1.8) for t in range(12)] for mean in _LOAD_MW]
    return {
        layout.CONFIG: config(forward_passes=4, iterations=20, inflow_method="truncation"),
        layout.PENALTIES: penalties(
            [
                {"depth_mw": 100.0, "cost": 700.0},
                {"depth_mw": 200.0, "cost": 1500.0},
                {"depth_mw": None, "cost": 4000.0},
            ],
            exchange_cost=0.5,
        ),
        layout.STAGES: stages(months, month_hours(months, _BLOCKS), 0.1, num_openings=6, risk_measure=risk),
        layout.INITIAL_CONDITIONS: initial_storage(
            [value for (low, high), *_ in _RIVERS for value in (low + 0.45 * (high - low), 50.0)]
        ),
        layout.BUSES: {"buses": [bus(b, name) for b, name in enumerate((*_REGIONS, "Hub"))]},
        layout.LINES: {
            "lines": [
                line(0, "North-Hub", (0, _HUB), (500.0, 300.0), losses_percent=3.0),
                line(1, "East-Hub", (1, _HUB), (400.0, 400.0), losses_percent=2.5),
                line(2, "Hub-Centre", (_HUB, _CENTRE), (900.0, 700.0), losses_percent=2.0),
                line(3, "Centre-South", (_CENTRE, _SOUTH), (600.0, 800.0), losses_percent=1.5),
            ]
        },
        layout.HYDROS: {"hydros": _hydros()},
        layout.PRODUCTION_MODELS: production([rate for river in _RIVERS for rate in river[2:4]]),
        layout.THERMALS: {"thermals": _thermals()},
        layout.NON_CONTROLLABLES: {
            "non_controllable_sources": [
                entity(0, "East wind A", bus_id=1, max_generation_mw=400.0),
                entity(1, "East wind B", bus_id=1, max_generation_mw=250.0, curtailment_cost=0.02),
            ]
        },
        layout.CONTRACTS: {
            "contracts": [
                _contract(0, "Purchase", "import", 140.0),
                _contract(1, "Sale", "export", -18.0),
            ]
        },
        layout.LOAD_FACTORS: load_factors([[1.2, 1.05, 0.8667]] * 4, n_stages=12),
        layout.INFLOW_STATS: seasonal_stats(
            "hydro", "m3s", means, [[0.3 * value for value in row] for row in means]
        ),
        layout.LOAD_STATS: seasonal_stats("bus", "mw", [*loads, [0.0] * 12]),
        layout.NCS_STATS: seasonal_stats("ncs", "", [_WIND, _WIND], [[0.08] * 12, [0.1] * 12]),
        layout.LINE_BOUNDS: table(
            line_id=[2, 2],
            stage_id=[3, 4],
            block_id=[None, None],
            direct_mw=[450.0, 450.0],
            reverse_mw=[350.0, 350.0],
        ),
        **_import_limit(),
    }


def _inflows() -> list[list[float]]:
    shapes = (_WET, _WET, _WET, _SOUTHERN)
    return [
        [round(mean * factor, 1) for factor in shape]
        for shape, river in zip(shapes, _RIVERS, strict=True)
        for mean in river[4:6]
    ]


def _hydros() -> list[Json]:
    plants = []
    for region, (storage, turbines, upper_rate, lower_rate, *_) in enumerate(_RIVERS):
        name = _REGIONS[region]
        upper, lower = 2 * region, 2 * region + 1
        plants += [
            hydro(
                upper,
                f"{name} dam",
                storage,
                [(f"{name} dam", region, upper_rate * turbines, turbines)],
                downstream_id=lower,
                min_outflow_m3s=0.1 * turbines,
            ),
            hydro(
                lower,
                f"{name} run-of-river",
                (50.0, 50.0),
                [(f"{name} run-of-river", region, lower_rate * 1.3 * turbines, 1.3 * turbines)],
            ),
        ]
    return plants


def _thermals() -> list[Json]:
    plants = [(region, *plant) for region, plants in enumerate(_THERMALS) for plant in plants]
    return [
        thermal(number, f"{_REGIONS[region]} {cost:.0f}", cost=cost, max_mw=max_mw, bus_id=region)
        for number, (region, cost, max_mw) in enumerate(plants)
    ]


def _contract(number: int, name: str, kind: str, price: float) -> dict[str, Any]:
    return entity(
        number,
        name,
        bus_id=_SOUTH,
        type=kind,
        price_per_mwh=price,
        limits={"min_mw": 0.0, "max_mw": 150.0},
    )


def _import_limit() -> Files:
    """Limit what Centre takes from its lines to 900 MW plus half of what its thermal plants generate."""
    plants = [plant["id"] for plant in _thermals() if plant["bus_id"] == _CENTRE]
    own = " - ".join(f"@own_share * thermal_generation({number})" for number in plants)
    return {
        layout.GENERIC_CONSTRAINTS: {
            "constraints": [
                {
                    "id": 0,
                    "name": "Centre import",
                    "description": "Inertia: imports of Centre against what spins there.",
                    "expression": f"@centre_import - {own} <= 900",
                    "slack": {"enabled": True, "penalty": 300.0},
                }
            ],
            "expressions": [
                {"name": "centre_import", "expression": "line_exchange(2) - line_exchange(3)"},
            ],
        },
        layout.GENERIC_PARAMETERS: {
            "scalar_parameters": [{"id": 0, "name": "own_share", "kind": "constant", "value": 0.5}]
        },
        layout.GENERIC_BOUNDS: table(
            constraint_id=[0] * 12,
            stage_id=list(range(12)),
            block_id=[None] * 12,
            bound_lower=[None] * 12,
            bound_upper=[0.0] * 12,
        ),
    }
