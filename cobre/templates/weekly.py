"""Template ``weekly``: four weeks in chronological blocks, then two months, with pumped storage."""

from __future__ import annotations

from cobre.case.format import layout
from cobre.templates.parts import (
    Files,
    bus,
    config,
    entity,
    hydro,
    initial_storage,
    line,
    month_hours,
    penalties,
    production,
    seasonal_stats,
    stages,
    table,
    thermal,
)

TITLE = "Weekly"
SUMMARY = (
    "four weeks in chronological blocks, then two months: pumped storage, solar, LNG ordered weeks ahead"
)
ABOUT = """
Short-term operation that looks ahead. Four weekly stages whose blocks follow each other in time (working
days and the weekend, each with night, day and evening), then two monthly stages with parallel blocks. A
pumping station lifts water from *Lower lake* back to *Upper lake* when the sun makes power cheap. The LNG
plant must be ordered two weeks ahead: what it delivers in the first two weeks was decided before the
study (`initial_conditions.json`), and what is ordered for the time after the study needs
`post_study_stages.json`. First week known, then 5 openings a stage.
"""
NUMBERS = """
Training takes a few seconds; the first run of cobre on a machine compiles its kernels before (a minute).
In its 25 iterations the lower bound of the optimal cost rises to 14.43 million $.
"""

_DATES = ["2025-09-01", "2025-09-08", "2025-09-15", "2025-09-22", "2025-09-29", "2025-11-01", "2025-12-01"]
_WEEK = {
    "workday night": 40.0,
    "workday day": 50.0,
    "workday evening": 30.0,
    "weekend night": 16.0,
    "weekend day": 20.0,
    "weekend evening": 12.0,
}
_MONTH = {"night": 1 / 3, "day": 5 / 12, "evening": 1 / 4}
_LOAD = ([0.75, 1.1, 1.3, 0.7, 0.95, 1.15], [0.74, 1.06, 1.25])
_SUN = ([0.01, 2.2, 0.2, 0.01, 2.2, 0.2], [0.01, 2.2, 0.2])
_WEEKS, _STAGES = 4, 6


def build() -> Files:
    """Return the files of the case."""
    months = month_hours(_DATES[_WEEKS:], _MONTH)
    horizon = stages(_DATES, [_WEEK] * _WEEKS + months, 0.08, num_openings=[1, 5, 5, 5, 5, 5])
    for stage in horizon["stages"][:_WEEKS]:
        stage["block_mode"] = "chronological"
    commitments = [
        {"thermal_id": 2, "start_date": _DATES[t], "end_date": _DATES[t + 1], "value_mw": 60.0}
        for t in range(2)
    ]
    return {
        layout.CONFIG: config(forward_passes=4, iterations=25, inflow_method="truncation"),
        layout.PENALTIES: penalties([{"depth_mw": 30.0, "cost": 600.0}, {"depth_mw": None, "cost": 3000.0}]),
        layout.STAGES: horizon,
        layout.INITIAL_CONDITIONS: initial_storage([240.0, 14.0], past_anticipated_commitments=commitments),
        layout.POST_STUDY: {
            "stages": [{"start_date": "2025-12-01", "duration_hours": 744.0}],
            "thermal_bounds": [
                {
                    "thermal_id": 2,
                    "post_study_stage_index": 0,
                    "cost_per_mwh": 62.0,
                    "min_mw": 0.0,
                    "max_mw": 150.0,
                }
            ],
        },
        layout.BUSES: {"buses": [bus(0, "City"), bus(1, "Mountains")]},
        layout.LINES: {"lines": [line(0, "Mountains-City", (1, 0), (260.0, 180.0), losses_percent=2.0)]},
        layout.HYDROS: {
            "hydros": [
                hydro(0, "Upper lake", (60.0, 420.0), [("Upper lake", 1, 200.0, 110.0)], downstream_id=1),
                hydro(1, "Lower lake", (4.0, 26.0), [("Lower lake", 1, 50.0, 130.0)], min_outflow_m3s=12.0),
            ]
        },
        layout.PRODUCTION_MODELS: production([1.8, 0.38]),
        layout.PUMPING_STATIONS: {
            "pumping_stations": [
                entity(
                    0,
                    "Lift",
                    bus_id=1,
                    source_hydro_id=1,
                    destination_hydro_id=0,
                    consumption_mw_per_m3s=2.3,
                    flow={"min_m3s": 0.0, "max_m3s": 40.0},
                )
            ]
        },
        layout.THERMALS: {
            "thermals": [
                thermal(0, "City coal", cost=48.0, max_mw=120.0, min_mw=40.0),
                thermal(1, "City turbine", cost=170.0, max_mw=100.0),
                thermal(
                    2, "City LNG", cost=62.0, max_mw=150.0, anticipated_config={"lead_time_hours": 336.0}
                ),
            ]
        },
        layout.NON_CONTROLLABLES: {
            "non_controllable_sources": [entity(0, "City solar", bus_id=0, max_generation_mw=220.0)]
        },
        layout.LOAD_FACTORS: {"load_factors": _factors("bus_id", (0, 1), _LOAD)},
        layout.NCS_FACTORS: {"non_controllable_factors": _factors("ncs_id", (0,), _SUN)},
        layout.INFLOW_STATS: seasonal_stats(
            "hydro",
            "m3s",
            [[42.0, 44.0, 47.0, 50.0, 58.0, 64.0], [9.0, 9.5, 10.0, 11.0, 13.0, 14.0]],
            [[0.0, 8.0, 9.0, 10.0, 12.0, 14.0], [0.0, 2.0, 2.0, 2.5, 3.0, 3.5]],
        ),
        layout.LOAD_STATS: seasonal_stats(
            "bus", "mw", [[300.0, 302.0, 300.0, 296.0, 290.0, 295.0], [60.0, 60.0, 61.0, 61.0, 62.0, 64.0]]
        ),
        layout.NCS_STATS: seasonal_stats(
            "ncs", "", [[0.2, 0.2, 0.21, 0.21, 0.22, 0.24]], [[0.0, 0.03, 0.03, 0.03, 0.02, 0.02]]
        ),
        layout.THERMAL_BOUNDS: table(
            thermal_id=[0],
            stage_id=[1],
            block_id=[None],
            min_generation_mw=[0.0],
            max_generation_mw=[60.0],
            cost_per_mwh=[None],
        ),
    }


def _factors(
    key: str, ids: tuple[int, ...], shapes: tuple[list[float], list[float]]
) -> list[dict[str, object]]:
    """Return factors by block: the first shape in the weeks, the second in the months."""
    return [
        {
            key: number,
            "stage_id": t,
            "block_factors": [
                {"block_id": k, "factor": factor} for k, factor in enumerate(shapes[0 if t < _WEEKS else 1])
            ],
        }
        for number in ids
        for t in range(_STAGES)
    ]
