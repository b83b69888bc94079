"""Features of thermal plants, network, sources, contracts, batteries, constraints and the policy graph."""

from __future__ import annotations

from typing import Any

from builders.case_files import (
    INFLOW,
    LOAD,
    START,
    Feature,
    Files,
    Json,
    add_battery,
    add_bus,
    add_plant,
    hydros_of,
    inflow_row,
    line,
    load_row,
    plant,
    set_blocks,
    set_load_factors,
    smallest,
    stages_of,
    thermal,
)
from oracle import Cut

STAGE = 100.0 * 1000.0
"""Cost of 1 MW of the thermal plant for a stage."""


def source(number: int, most_mw: float, bus_id: int = 0, **more: Any) -> Json:
    """A non-controllable source."""
    return {
        "id": number,
        "name": f"source {number}",
        "operational_start_date": START,
        "bus_id": bus_id,
        "max_generation_mw": most_mw,
        **more,
    }


def contract(number: int, kind: str, price: float, most_mw: float, **more: Any) -> Json:
    """A contract at bus 0."""
    return {
        "id": number,
        "name": f"contract {number}",
        "operational_start_date": START,
        "bus_id": 0,
        "type": kind,
        "price_per_mwh": price,
        "limits": {"min_mw": 0.0, "max_mw": most_mw},
        **more,
    }


def line_losses() -> Feature:
    """9 MW at the far end of a line that loses 10 % take 10; one direct, one reverse stage of flow."""
    files = smallest([50.0, 50.0])
    add_bus(files, 1, [9.0, 9.0])
    files["system/lines.json"]["lines"] = [line(0, 1, 0, 20.0, losses_percent=10.0)]
    return Feature(files, 2 * (60 * STAGE + 10 * 1 * 1000))


def lines_by_block() -> Feature:
    """20 MW at bus 1. Stage 0: 20 over the line at 1 $. Stage 1: exchange at 3 $, 5 MW in block 1."""
    files = smallest([50.0, 50.0])
    set_blocks(files, [400.0, 600.0])
    add_bus(files, 1, [20.0, 20.0])
    files["system/lines.json"]["lines"] = [line(0, 0, 1, 30.0), line(1, 0, 1, 30.0, exit_stage_id=0)]
    files["constraints/line_bounds.parquet"] = [
        {"line_id": 0, "stage_id": 1, "block_id": 1, "direct_mw": 5.0},
        {"line_id": 0, "stage_id": 1, "reverse_mw": 1.0},
    ]
    files["constraints/penalty_overrides_line.parquet"] = [
        {"line_id": 0, "stage_id": 1, "exchange_cost": 3.0}
    ]
    hand = 1000 * (7000 + 20) + 400 * (7000 + 60) + 600 * (5500 + 15 + 15 * 1000)
    return Feature(files, hand)


def thermal_bounds() -> Feature:
    """By block: at most 40 MW in block 0, at least 70 in block 1 of stage 0; 80 $ in stage 1; entry later."""
    files = smallest([60.0, 60.0])
    set_blocks(files, [400.0, 600.0])
    files["system/thermals.json"]["thermals"].append(thermal(1, 90.0, 15.0, entry_stage_id=1))
    files["constraints/thermal_bounds.parquet"] = [
        {"thermal_id": 0, "stage_id": 0, "block_id": 0, "max_generation_mw": 40.0},
        {"thermal_id": 0, "stage_id": 0, "block_id": 1, "min_generation_mw": 70.0},
        {"thermal_id": 0, "stage_id": 1, "max_generation_mw": 50.0, "cost_per_mwh": 80.0},
    ]
    files["constraints/penalty_overrides_bus.parquet"] = [{"bus_id": 0, "stage_id": 0, "excess_cost": 4.0}]
    first = 400 * (40 * 100 + 20 * 1000) + 600 * (70 * 100 + 10 * 4)
    return Feature(files, first + 1000 * (50 * 80 + 10 * 90))


def contracts() -> Feature:
    """10 MW bought at 40 $, 5 sold for 150 (thermal 100); stage 1: sold for 50, at least 2 MW."""
    files = smallest([60.0, 60.0])
    files["system/energy_contracts.json"] = {
        "contracts": [contract(0, "import", 40.0, 10.0), contract(1, "export", -150.0, 5.0)]
    }
    files["constraints/contract_bounds.parquet"] = [
        {"contract_id": 1, "stage_id": 1, "min_mw": 2.0, "price_per_mwh": -120.0},
        {"contract_id": 1, "stage_id": 1, "block_id": 0, "price_per_mwh": -50.0},
    ]
    return Feature(files, 1000 * (400 + 5500 - 750) + 1000 * (400 + 5200 - 100))


def battery() -> Feature:
    """10 of 110 MW are missing in stage 1. The store may hold 9000 MWh and must hold 1000; 2000 are in it.

    Of the 8000 MWh taken out 6400 arrive (6.4 MW); 7000 stored need 7000 / 0.9 from the bus. Moving a MWh
    costs 1 $ and 2 $.
    """
    files = smallest([60.0, 110.0])
    add_battery(
        files,
        max_charge_mw=20.0,
        max_discharge_mw=8.0,
        min_energy_mwh=1000.0,
        max_energy_mwh=9000.0,
        initial_energy_mwh=2000.0,
        charge_efficiency=0.9,
        discharge_efficiency=0.8,
        charge_cost_per_mwh=1.0,
        discharge_cost_per_mwh=2.0,
    )
    charged = 7000 / 0.9
    return Feature(files, 60 * STAGE + 101 * charged + 100 * STAGE + 3600 * 1000 + 6400 * 2)


def battery_by_block() -> Feature:
    """10 of 60 MW are missing in the first 400 h of each stage, before the store can be charged.

    Blocks follow each other. In the 600 h after them 1.5 MW are charged at most in stage 0, which makes 900
    MWh; another battery has energy, but enters service after the study.
    """
    files = smallest([60.0, 60.0])
    set_blocks(files, [400.0, 600.0], "chronological")
    files["constraints/thermal_bounds.parquet"] = [
        {"thermal_id": 0, "stage_id": t, "block_id": 0, "max_generation_mw": 50.0} for t in (0, 1)
    ]
    keys = {"max_charge_mw": 10.0, "max_discharge_mw": 10.0, "max_energy_mwh": 1200.0}
    add_battery(files, initial_energy_mwh=0.0, **keys)
    add_battery(files, initial_energy_mwh=1200.0, entry_stage_id=9, **keys)
    files["constraints/battery_bounds.parquet"] = [
        {"battery_id": 0, "stage_id": 0, "block_id": 1, "max_charge_mw": 1.5}
    ]
    short = 50 * 100 * 400
    hand = 2 * short + (4000 + 3100) * 1000 + 600 * 100 * (61.5 + 60)
    return Feature(files, hand)


def battery_under_noise() -> Feature:
    """Energy is kept for stages that may be dear: the extensive form is the judge."""
    files = smallest([60.0, 90.0, 100.0], [10.0, 10.0, 10.0])
    files[LOAD] = [{**row, "std_mw": 15.0} for row in files[LOAD]]
    for stage in stages_of(files):
        stage["num_openings"] = 3
    keys = {"max_discharge_mw": 20.0, "max_energy_mwh": 12000.0, "initial_energy_mwh": 3000.0}
    add_battery(files, max_charge_mw=15.0, charge_efficiency=0.9, **keys)
    return Feature(files, drawn=True)


def negative_future_cost() -> Feature:
    """Selling what one has: nothing is to pay, and the future cost is below zero.

    20 m3/s arrive in stage 0; a MWh sells for 30 $ in stage 0 and 50 in stages 1 and 2 (15 MW at most):
    15 in each of them are 30 of the 40 that arrive by stage 1, the other 10 are sold in stage 0.
    """
    files = smallest([0.0, 0.0, 0.0], [20.0, 20.0, 0.0])
    hydros_of(files)[0]["reservoir"]["max_storage_hm3"] = 360.0
    files["system/energy_contracts.json"] = {"contracts": [contract(0, "export", -50.0, 15.0)]}
    files["constraints/contract_bounds.parquet"] = [{"contract_id": 0, "stage_id": 0, "price_per_mwh": -30.0}]
    return Feature(files, -1000.0 * (10 * 30 + 15 * 50 + 15 * 50))


def non_controllable_sources() -> Feature:
    """Source 0: half of 40 MW (statistics), factor 1.5 in block 1. Source 1: 12 MW of a row, not curtailable.

    At bus 5 the load is 10, so 2 MW of source 1 are excess in stage 0; without a row it gives 30 in stage 1.
    Source 2 serves from stage 1 and has no rows of statistics there: none.
    """
    files = smallest([60.0, 60.0])
    set_blocks(files, [400.0, 600.0])
    add_bus(files, 5, [10.0, 10.0])
    files["system/non_controllable_sources.json"] = {
        "non_controllable_sources": [
            source(0, 40.0, curtailment_cost=2.0),
            source(1, 30.0, 5, allow_curtailment=False),
            source(2, 10.0, entry_stage_id=1),
        ]
    }
    files["scenarios/non_controllable_stats.parquet"] = [
        {"ncs_id": 0, "stage_id": 0, "mean": 0.5, "std": 0.0},
        {"ncs_id": 0, "stage_id": 1, "mean": 0.5, "std": 0.0},
        {"ncs_id": 2, "stage_id": 0, "mean": 1.0, "std": 0.0},
    ]
    files["scenarios/non_controllable_factors.json"] = {
        "non_controllable_factors": [
            {"ncs_id": 0, "stage_id": 0, "block_factors": [{"block_id": 1, "factor": 1.5}]}
        ]
    }
    files["constraints/ncs_bounds.parquet"] = [{"ncs_id": 1, "stage_id": 0, "available_generation_mw": 12.0}]
    files["constraints/penalty_overrides_ncs.parquet"] = [
        {"ncs_id": 0, "stage_id": 1, "curtailment_cost": 3.0}
    ]
    first = 400 * (40 * 100 - 2 * 20) + 600 * (30 * 100 - 2 * 30) + 1000 * (2 * 1 - 0.01 * 12)
    second = 1000 * (40 * 100 - 3 * 20) + 1000 * (20 * 1 - 0.01 * 30)
    return Feature(files, first + second)


def curtailment() -> Feature:
    """80 MW of wind meet 60 MW of load: 20 are curtailed, as the reward of 0.01 $ is below the excess cost.

    Without a load of its own nothing else can take them.
    """
    files = smallest([60.0, 60.0])
    files["system/non_controllable_sources.json"] = {"non_controllable_sources": [source(3, 80.0)]}
    return Feature(files, -2 * 1000 * 60 * 0.01)


def wind_is_paid() -> Feature:
    """A reward of 100 $ for every MWh of 50 MW: the future cost is negative."""
    files = smallest([60.0, 60.0])
    wind = source(0, 50.0, curtailment_cost=100.0)
    files["system/non_controllable_sources.json"] = {"non_controllable_sources": [wind]}
    return Feature(files, 2 * 1000 * (10 * 100 - 50 * 100))


def anticipated() -> Feature:
    """Plant 1 (20 $, 30 MW) is committed a stage ahead; 10 MW were committed for stage 0.

    For the stage after the study (500 h at 7 $) at least 5 MW must be taken.
    """
    files = smallest([60.0] * 3)
    files["system/thermals.json"]["thermals"].append(
        thermal(1, 20.0, 30.0, anticipated_config={"lead_stages": 1})
    )
    files["initial_conditions.json"]["past_anticipated_commitments"] = [
        {"thermal_id": 1, "start_date": "2024-01-01", "end_date": "2028-01-01", "value_mw": 10.0}
    ]
    files["post_study_stages.json"] = _post_study(1, "2036-01-01", [(500.0, 7.0)])
    return Feature(files, (50 + 30 + 30) * STAGE + 2 * 30 * 20 * 1000 + 5 * 7 * 500)


def _post_study(thermal_id: int, start: str, stages: list[tuple[float, float]]) -> Json:
    return {
        "stages": [{"start_date": start, "duration_hours": hours} for hours, _ in stages],
        "thermal_bounds": [
            {
                "thermal_id": thermal_id,
                "post_study_stage_index": index,
                "cost_per_mwh": cost,
                "min_mw": 5.0,
                "max_mw": 10.0,
            }
            for index, (_, cost) in enumerate(stages)
        ],
    }


def anticipated_in_blocks() -> Feature:
    """The mean over the blocks is the commitment; the load is 90 MW in block 0 and 30 in block 1.

    Plant 1 costs 110 $, plant 0 only 100 $ but it has 50 MW: the 40 MW that block 0 lacks (400 h) are 16,000
    MWh, and 16 MW of commitment provide them with nothing in block 1. In stage 0 10 MW are committed: 25 MW
    in block 0, 15 are missing (at 1000 $). A lead of 45 days reaches into the stage before.
    """
    files = smallest([60.0] * 3)
    set_blocks(files, [400.0, 600.0])
    set_load_factors(files, [1.5, 0.5])
    for t, (start, end) in enumerate(
        (("2024-01-01", "2024-03-01"), ("2024-03-01", "2024-05-01"), ("2024-05-01", "2024-07-01"))
    ):
        stages_of(files)[t].update(start_date=start, end_date=end)
    plants = files["system/thermals.json"]["thermals"]
    plants[0]["generation"]["max_mw"] = 50.0
    plants.append(thermal(1, 110.0, 60.0, anticipated_config={"lead_time_hours": 1080.0}))
    files["initial_conditions.json"]["past_anticipated_commitments"] = [
        {"thermal_id": 1, "start_date": "2024-01-01", "end_date": "2024-03-01", "value_mw": 10.0}
    ]
    first = 400 * (50 * 100 + 15 * 1000) + 600 * 30 * 100
    later = 400 * 50 * 100 + 600 * 30 * 100 + 16 * 1000 * 110
    return Feature(files, first + 2 * later)


def anticipated_under_uncertainty() -> Feature:
    """Commitments under an inflow that is not known yet; two stages ahead, with noise."""
    files = smallest([60.0, 70.0, 80.0], [20.0, 20.0, 20.0])
    hydros_of(files)[0]["reservoir"]["max_storage_hm3"] = 90.0
    files[INFLOW] = [inflow_row(0, t, 20.0, 0.0 if t == 0 else 12.0) for t in range(3)]
    files["config.json"]["modeling"]["inflow_non_negativity"]["method"] = "truncation"
    for stage in stages_of(files)[1:]:
        stage["num_openings"] = 3
    files["system/thermals.json"]["thermals"].append(
        thermal(1, 60.0, 30.0, anticipated_config={"lead_stages": 2})
    )
    files["system/thermals.json"]["thermals"][0]["generation"]["max_mw"] = 35.0
    files["initial_conditions.json"]["past_anticipated_commitments"] = [
        {"thermal_id": 1, "start_date": "2024-01-01", "end_date": "2028-01-01", "value_mw": 10.0},
        {"thermal_id": 1, "start_date": "2028-01-01", "end_date": "2032-01-01", "value_mw": 20.0},
    ]
    return Feature(files, drawn=True)


def travel_under_uncertainty() -> Feature:
    """Water under way, chronological blocks and noise on inflow, load and wind."""
    files = smallest([90.0] * 3, [20.0] * 3)
    set_blocks(files, [400.0, 600.0], "chronological")
    set_load_factors(files, [1.2, 0.9])
    files["config.json"]["modeling"]["inflow_non_negativity"]["method"] = "truncation_with_penalty"
    hydros_of(files)[0].update(downstream_id=1, travel_time_hours=1320.0)
    hydros_of(files)[0]["reservoir"]["max_storage_hm3"] = 120.0
    add_plant(files, plant(1, 60.0))
    files[INFLOW] = [inflow_row(h, t, 18.0, 9.0 if t else 0.0) for h in (0, 1) for t in range(3)]
    files[LOAD] = [load_row(0, t, 90.0, 8.0 if t else 0.0) for t in range(3)]
    files["system/non_controllable_sources.json"] = {"non_controllable_sources": [source(4, 20.0)]}
    files["scenarios/non_controllable_stats.parquet"] = [
        {"ncs_id": 4, "stage_id": t, "mean": 0.5, "std": 0.3 if t else 0.0} for t in range(3)
    ]
    files["system/thermals.json"]["thermals"][0]["generation"]["max_mw"] = 50.0
    for stage in stages_of(files)[1:]:
        stage["num_openings"] = 3
    files["initial_conditions.json"]["past_defluences"] = [
        {"hydro_id": 0, "start_date": "2023-11-07", "end_date": "2024-01-01", "value_m3s": 15.0}
    ]
    files["config.json"]["training"]["stopping_rules"] = [{"type": "iteration_limit", "limit": 60}]
    return Feature(files, drawn=True)


def _generic(files: Files, constraints: list[Json], bounds: list[Json], **more: Any) -> None:
    files["constraints/generic_constraints.json"] = {"constraints": constraints, **more}
    files["constraints/generic_constraint_bounds.parquet"] = bounds


def _constraint(number: int, expression: str, penalty: float | None = None) -> Json:
    slack: Json = {"enabled": penalty is not None}
    if penalty is not None:
        slack["penalty"] = penalty
    return {"id": number, "name": f"constraint {number}", "expression": expression, "slack": slack}


def generic_cap() -> Feature:
    """Thermal 0 at most 30 MW in block 1 (600 h); thermal 1 (200 $) gives the rest. In stage 1 soft at 40 $.

    The row adds 5 to the 25 of the expression. Breaking it costs less than what thermal 1 costs more (100 $).
    """
    files = smallest([60.0, 60.0])
    set_blocks(files, [400.0, 600.0])
    files["system/thermals.json"]["thermals"].append(thermal(1, 200.0))
    _generic(
        files,
        [_constraint(0, "thermal_generation(0) <= 25"), _constraint(3, "thermal_generation(0)", 40.0)],
        [
            {"constraint_id": 0, "stage_id": 0, "block_id": 1, "bound_upper": 5.0},
            {"constraint_id": 3, "stage_id": 1, "block_id": None, "bound_upper": 30.0},
        ],
    )
    hand = 400 * 6000 + 600 * (30 * 100 + 30 * 200) + 1000 * (6000 + 30 * 40)
    return Feature(files, hand)


def generic_expressions() -> Feature:
    """Named expressions, nested, and parameters of every given kind.

    Thermal 1 costs 200 $ and is used only because of the row. With x + y = 60 (x thermal 0, y thermal 1):
    @limit is 1.5 in stage 0 and 0.5 in stage 1, @sum = hydro_generation + @half * y, hydro gives 0.
    The row is 2 x - 2 @limit y + @half y <= @low + @season with @half 0.5, @low 50 and 20 by block,
    @season 10 in both stages. Stage 0: 2 x - 2.5 y <= 60, 30: y = 60 / 4.5, 90 / 4.5. Stage 1:
    2 x - 0.5 y <= 60, 30: y = 24, 36.
    """
    files = smallest([60.0, 60.0])
    set_blocks(files, [400.0, 600.0])
    for t, month in enumerate(("01", "02")):
        stages_of(files)[t].update(start_date=f"2023-{month}-01", end_date=f"2023-{month}-28", season_id=0)
    files["system/thermals.json"]["thermals"].append(thermal(1, 200.0))
    files["stages.json"]["season_definitions"] = {
        "cycle_type": "custom",
        "seasons": [
            {"id": 0, "label": "all", "month_start": 1, "day_start": 1, "month_end": 12, "day_end": 31}
        ],
    }
    _generic(
        files,
        [
            _constraint(
                0,
                "2 * (thermal_generation(0) - @limit * thermal_generation(1)) + @sum <= @low + 1.0 * @season",
            )
        ],
        [{"constraint_id": 0, "stage_id": t} for t in (0, 1)],
        expressions=[
            {"name": "sum", "expression": "hydro_generation(0) + @part"},
            {"name": "part", "expression": "@half * thermal_generation(1)"},
        ],
    )
    low = [[t, k, value] for t in (0, 1) for k, value in ((0, 50.0), (1, 20.0))]
    files["constraints/generic_parameters.json"] = {
        "scalar_parameters": [
            {"id": 0, "name": "half", "kind": "constant", "value": 0.5},
            {"id": 1, "name": "limit", "kind": "per_stage", "values": [[0, 1.5], [1, 0.5]]},
            {"id": 2, "name": "season", "kind": "seasonal", "values": [[0, 10.0]]},
            {"id": 3, "name": "low", "kind": "per_stage_block", "block_values": low},
        ]
    }
    dear = 400 * (60 / 4.5 + 60 / 2.5) + 600 * (90 / 4.5 + 90 / 2.5)
    return Feature(files, 2 * 60 * STAGE + 100 * dear)


def generic_storage() -> Feature:
    """At least 18 hm3 (5 m3/s) must be in store after stage 0, half of the maximum; 7.2 more after stage 1.

    Stage 0 has 20 m3/s, stage 1 nothing: 20 - 2 are turbined in all. A soft row (2000 $/hm3 h) bans spilling.
    """
    files = smallest([60.0, 60.0], [20.0, 0.0])
    hydros_of(files)[0]["reservoir"]["max_storage_hm3"] = 36.0
    _generic(
        files,
        [
            _constraint(0, "hydro_storage(0) >= 0.5 * @most"),
            _constraint(1, "hydro_storage_final(0) - 0.0 * hydro_storage_initial(0)"),
            _constraint(2, "hydro_spillage(0) + hydro_useful_volume_final(0)", 2000.0),
        ],
        [
            {"constraint_id": 0, "stage_id": 0},
            {"constraint_id": 1, "stage_id": 1, "bound_lower": 7.2, "bound_upper": 40.0},
            {"constraint_id": 2, "stage_id": 0, "bound_upper": 50.0},
        ],
    )
    spec = {"tag": "max_storage", "hydro_id": 0}
    files["constraints/generic_parameters.json"] = {
        "scalar_parameters": [{"id": 0, "name": "most", "kind": "computed", "computed_spec": spec}]
    }
    return Feature(files, (120 - 18) * STAGE)


def discount() -> Feature:
    """Rates of the stage (0), the transition (1) and of all (2); 1461 days are four years."""
    files = smallest([1.0] * 4)
    graph = files["stages.json"]["policy_graph"]
    graph["annual_discount_rate"] = 0.1
    graph["transitions"] = [
        {"source_id": 0, "target_id": 1, "probability": 1.0, "annual_discount_rate_override": 9.0},
        {"source_id": 1, "target_id": 2, "probability": 1.0, "annual_discount_rate_override": 0.0},
        {"source_id": 2, "target_id": 3, "probability": 1.0},
    ]
    stages_of(files)[0]["annual_discount_rate_override"] = 0.25
    first = 0.8**4
    return Feature(files, STAGE * (1 + first + first + first * (10 / 11) ** 4))


def node_graph() -> Feature:
    """20 m3/s are in store. Stage 1 is wet (40 m3/s) or dry (0) with 0.25 : 0.75, and stage 2 follows it.

    Thermal power is 45 MW and the load 60, so 15 MW of water are worth 1000 $, more of it 100 $. In stage 0
    there is no inflow: 15 are used and 5 kept. The load of dry nodes is 63 MW. The extensive form
    tells the rest.
    """
    files = smallest([60.0] * 3)
    hydros_of(files)[0]["reservoir"]["max_storage_hm3"] = 360.0
    files["initial_conditions.json"]["storage"][0]["value_hm3"] = 72.0
    files["system/thermals.json"]["thermals"][0]["generation"]["max_mw"] = 45.0
    _make_graph(files)
    return Feature(files)


def _make_graph(files: Files, load: bool = False) -> None:
    """Turn a three-stage chain into a wet-dry graph with external inflow of hydro 0."""
    nodes = [(0, 0, 0), (1, 1, 0), (2, 1, 1), (3, 2, 0), (4, 2, 1)]
    moves = [(0, 1, 0.25), (0, 2, 0.75), (1, 3, 0.5), (1, 4, 0.5), (2, 3, 0.125), (2, 4, 0.875)]
    files["stages.json"]["policy_graph"].update(
        nodes=[{"id": n, "stage_id": t, "scenario_id": scenario} for n, t, scenario in nodes],
        transitions=[{"source_id": a, "target_id": b, "probability": p} for a, b, p in moves],
    )
    for stage in stages_of(files):
        del stage["num_openings"]
    files["config.json"]["training"].update(
        selection={"method": "enumerated"},
        scenario_source={"seed": 1, "inflow": {"scheme": "external"}, "load": {"scheme": "external"}},
    )
    inflow = {0: [0.0], 1: [40.0, 0.0], 2: [30.0, 5.0]}
    names = ("stage_id", "scenario_id")
    files["scenarios/external_inflow_scenarios.parquet"] = [
        {**dict(zip(names, (t, w), strict=True)), "hydro_id": 0, "value_m3s": value}
        for t, values in inflow.items()
        for w, value in enumerate(values)
    ]
    files["scenarios/external_load_scenarios.parquet"] = [
        {**dict(zip(names, (t, w), strict=True)), "bus_id": 0, "value_mw": 60.0 + 3.0 * w}
        for t, values in inflow.items()
        for w, _ in enumerate(values)
    ]


def cvar_on_a_graph() -> Feature:
    """As the graph before, averse to risk: 0.4 of CVaR of the worst 30 % in stage 0, all of it in stage 1."""
    feature = node_graph()
    stages = stages_of(feature.files)
    stages[0]["risk_measure"] = {"cvar": {"alpha": 0.3, "lambda": 0.4}}
    stages[1]["risk_measure"] = {"cvar": {"alpha": 0.5, "lambda": 1.0}}
    return Feature(feature.files)


def boundary_cuts() -> Feature:
    """What is left is worth 110 $ per MWh of a m3/s up to 5 m3/s (18 hm3), then 10 $; thermal power is 100 $.

    10 m3/s arrive in each stage; 5 are kept at the end, where the future costs nothing.
    """
    files = smallest([60.0, 60.0], [10.0, 10.0])
    hydros_of(files)[0]["reservoir"]["max_storage_hm3"] = 360.0
    steep, flat = 110_000 / 3.6, 10_000 / 3.6
    cuts = (Cut(steep * 18, {0: -steep}), Cut(flat * 18, {0: -flat}))
    return Feature(files, (120 - 15) * STAGE, boundary=cuts)


def boundary_cuts_discounted() -> Feature:
    """As before at 10 % a year, four years a stage: what is kept is worth less than now, so nothing is.

    Both stages turbine 10 m3/s; the second and then the end (550,000 $) are discounted. That 1 m3/s is worth
    100,000 $ in stage 1 and 110,000 / 1.1^4 after it; in stage 0 more than both.
    """
    feature = boundary_cuts()
    feature.files["stages.json"]["policy_graph"]["annual_discount_rate"] = 0.1
    factor = 1.1**-4
    hand = 50 * STAGE * (1 + factor) + factor**2 * 550_000
    return Feature(feature.files, hand, boundary=feature.boundary)
