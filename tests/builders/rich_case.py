"""A case with everything in it: a file of each kind that bears on the stage problems."""

from __future__ import annotations

from builders.case_files import (
    INFLOW,
    LOAD,
    START,
    Files,
    Json,
    add_bus,
    add_plant,
    hydros_of,
    inflow_row,
    limits,
    line,
    load_row,
    plant,
    productivity,
    set_load_factors,
    smallest,
    stages_of,
    thermal,
)

MONTHS = (("2023-01-01", "2023-02-01"), ("2023-02-01", "2023-03-01"), ("2023-03-01", "2023-04-01"))


def rich_files() -> Files:
    """Three months, four buses, five hydro plants, noise on inflow, load and wind from stage 1 on."""
    files = smallest([120.0] * 3, [25.0, 15.0, 10.0])
    files["config.json"]["training"].update(
        tree_seed=11,
        selection={"method": "sampled", "forward_passes": 4},
        stopping_rules=[{"type": "iteration_limit", "limit": 80}],
    )
    files["config.json"]["modeling"]["inflow_non_negativity"]["method"] = "truncation_with_penalty"
    _add_time(files)
    _add_system(files)
    _add_hydros(files)
    _add_scenarios(files)
    _add_constraints(files)
    _add_generic(files)
    return files


def _add_time(files: Files) -> None:
    for t, (stage, (start, end)) in enumerate(zip(stages_of(files), MONTHS, strict=True)):
        stage.update(start_date=start, end_date=end, season_id=t, num_openings=1 if t == 0 else 2)
        stage["blocks"] = [
            {"id": 0, "name": "peak", "hours": 200.0},
            {"id": 1, "name": "base", "hours": 500.0},
        ]
        stage["block_mode"] = "parallel" if t == 2 else "chronological"
    stages_of(files)[1]["annual_discount_rate_override"] = 0.2
    files["stages.json"]["policy_graph"]["annual_discount_rate"] = 0.1
    files["stages.json"]["season_definitions"] = {
        "cycle_type": "monthly",
        "seasons": [{"id": m, "label": f"month {m + 1}", "month_start": m + 1} for m in (0, 1, 2, 11)],
    }
    files["post_study_stages.json"] = {
        "stages": [{"start_date": "2023-04-01", "duration_hours": 720.0}],
        "thermal_bounds": [
            {
                "thermal_id": 2,
                "post_study_stage_index": 0,
                "cost_per_mwh": 15.0,
                "min_mw": 1.0,
                "max_mw": 9.0,
            }
        ],
    }


def _add_system(files: Files) -> None:
    add_bus(files, 1, [60.0] * 3)
    add_bus(files, 2, [25.0] * 3)
    add_bus(files, 3, [3.0] * 3)
    files["system/buses.json"]["buses"][1]["deficit_segments"] = [
        {"depth_mw": 4.0, "cost": 700.0},
        {"depth_mw": None, "cost": 1500.0},
    ]
    files["system/lines.json"]["lines"] = [
        line(0, 0, 1, 40.0, losses_percent=4.0, exchange_cost=0.5),
        line(1, 2, 1, 25.0, losses_percent=7.5),
        line(2, 0, 2, 15.0, entry_stage_id=1),
    ]
    files["system/thermals.json"]["thermals"] = [
        thermal(0, 90.0, 60.0),
        thermal(1, 140.0, 45.0, bus_id=1, exit_stage_id=2),
        thermal(2, 55.0, 20.0, bus_id=2, anticipated_config={"lead_stages": 1}),
    ]
    since = {"operational_start_date": START}
    files["system/non_controllable_sources.json"] = {
        "non_controllable_sources": [
            {
                "id": 0,
                "name": "wind",
                **since,
                "bus_id": 0,
                "max_generation_mw": 30.0,
                "curtailment_cost": 0.8,
            },
            {
                "id": 1,
                "name": "sun",
                **since,
                "bus_id": 2,
                "max_generation_mw": 12.0,
                "allow_curtailment": False,
            },
            # More than its lonely bus can use.
            {
                "id": 2,
                "name": "mill",
                **since,
                "bus_id": 3,
                "max_generation_mw": 5.0,
                "allow_curtailment": False,
            },
        ]
    }
    files["system/pumping_stations.json"] = {
        "pumping_stations": [
            {
                "id": 0,
                "name": "pump",
                **since,
                "bus_id": 1,
                "source_hydro_id": 1,
                "destination_hydro_id": 2,
                "consumption_mw_per_m3s": 0.4,
                "flow": {"min_m3s": 0.0, "max_m3s": 6.0},
            }
        ]
    }
    files["system/energy_contracts.json"] = {
        "contracts": [
            _contract(0, "import", 1, 120.0, 1.0, 8.0),
            _contract(1, "export", 0, -60.0, 0.0, 5.0),
        ]
    }
    files["system/batteries.json"] = {
        "batteries": [
            {
                "id": 3,
                "name": "battery",
                **since,
                "bus_id": 1,
                "max_charge_mw": 3.0,
                "max_discharge_mw": 4.0,
                "min_energy_mwh": 50.0,
                "max_energy_mwh": 900.0,
                "initial_energy_mwh": 200.0,
                "charge_efficiency": 0.95,
                "discharge_efficiency": 0.9,
                "charge_cost_per_mwh": 0.5,
                "discharge_cost_per_mwh": 0.25,
            }
        ]
    }


def _contract(number: int, kind: str, bus_id: int, price: float, least: float, most: float) -> Json:
    return {
        "id": number,
        "name": f"contract {number}",
        "operational_start_date": START,
        "bus_id": bus_id,
        "type": kind,
        "price_per_mwh": price,
        "limits": {"min_mw": least, "max_mw": most},
    }


def _add_hydros(files: Files) -> None:
    upper = hydros_of(files)[0]
    upper.update(downstream_id=1, travel_time_hours=120.0)
    upper["reservoir"] = {"min_storage_hm3": 10.0, "max_storage_hm3": 200.0}
    upper["outflow"] = {"min_outflow_m3s": 4.0, "max_outflow_m3s": 70.0}
    upper["evaporation"] = {"coefficients_mm": [110.0, 90.0, 70.0, *[50.0] * 9]}
    add_plant(files, plant(1, 120.0, 5.0, downstream_id=3), [6.0, 4.0, 3.0], 0.9)
    hydros_of(files)[1]["diversion"] = {"downstream_id": 2, "max_flow_m3s": 8.0}
    hydros_of(files)[1]["unit_groups"] = [
        {"id": 0, "name": "left", "bus_id": 0, **limits(20.0, 25.0, least_m3s=1.0)},
        {"id": 1, "name": "right", "bus_id": 1, **limits(22.0, 25.0)},
    ]
    add_plant(files, plant(2, 90.0), [8.0, 6.0, 5.0])
    hydros_of(files)[2]["generation"]["model"] = "fpha"
    add_plant(files, plant(3, 60.0, 9.0, entry_stage_id=2), [2.0, 2.0, 2.0])
    hydros_of(files)[3]["filling"] = {"start_stage_id": 1, "filling_min_rate_m3s": 4.0}
    hydros_of(files)[3]["penalties"] = {"filling_target_violation_cost": 9000.0}
    filling = [{"hydro_id": 3, "value_hm3": 0.0}]
    storage = [(0, 90.0), (1, 40.0), (2, 45.0), (4, 30.0)]
    add_plant(files, plant(4, 100.0), [9.0, 7.0, 5.0], 0.6)
    hydros_of(files)[4]["generation"]["model"] = "linearized_head"
    hydros_of(files)[4]["tailrace"] = {"type": "polynomial", "coefficients": [4.0, 0.02]}
    hydros_of(files)[4]["unit_groups"][0]["bus_id"] = 2
    hydros_of(files)[2]["unit_groups"][0]["bus_id"] = 1
    files["initial_conditions.json"] = {
        "storage": [{"hydro_id": h, "value_hm3": value} for h, value in storage],
        "filling_storage": filling,
        "past_defluences": [
            {"hydro_id": 0, "start_date": "2022-12-20", "end_date": "2023-01-01", "value_m3s": 12.0}
        ],
        "past_anticipated_commitments": [
            {"thermal_id": 2, "start_date": "2023-01-01", "end_date": "2023-02-01", "value_mw": 7.0}
        ],
    }
    models = files["system/hydro_production_models.json"]["production_models"]
    models[2] = productivity(2, None, "fpha")
    models[2]["stage_ranges"][0]["fpha_config"] = {"source": "precomputed"}
    models[4] = productivity(4, 0.6, "linearized_head")
    files["system/hydro_geometry.parquet"] = [
        {"hydro_id": h, "volume_hm3": v, "height_m": 20.0 + 0.1 * v, "area_km2": 1.0 + 0.03 * v}
        for h in (0, 4)
        for v in (0.0, 100.0, 200.0)
    ]
    planes = [(0, 1.0, 0.02, 0.85, -0.01, 0.9), (1, 6.0, 0.01, 0.6, -0.02, None)]
    names = ("plane_id", "gamma_0", "gamma_v", "gamma_q", "gamma_s", "kappa")
    files["system/fpha_hyperplanes.parquet"] = [
        {"hydro_id": 2, **dict(zip(names, row, strict=True))} for row in planes
    ]
    files["system/hydro_energy_productivity.parquet"] = [
        {
            "hydro_id": 2,
            "stage_id": t,
            "equivalent_productivity_mw_per_m3s": 0.8,
            "reference_outflow_m3s": 20.0,
            "specific_productivity_mw_per_m3s_per_m": None,
        }
        for t in range(3)
    ]
    files["system/tailrace_curves.parquet"] = [
        {
            "hydro_id": 4,
            "family_id": 0,
            "segment_id": 0,
            "downstream_reference_level_m": 0.0,
            "outflow_min_m3s": 0.0,
            "outflow_max_m3s": 200.0,
            **{f"coefficient_{power}": value for power, value in enumerate((5.0, 0.03, 0.0, 0.0, 0.0))},
        }
    ]


def _add_scenarios(files: Files) -> None:
    for row in files[INFLOW]:
        row["std_m3s"] = 0.0 if row["stage_id"] == 0 else 0.6 * row["mean_m3s"]
    files[INFLOW] += [inflow_row(0, -1, 20.0, 3.0)]
    files["stages.json"]["pre_study_stages"] = [
        {"id": -1, "start_date": "2022-12-01", "end_date": "2023-01-01"}
    ]
    files[LOAD] = [row for row in files[LOAD] if row["bus_id"] != 1]
    files[LOAD] += [load_row(1, t, 60.0, 0.0 if t == 0 else 6.0) for t in range(3)]
    set_load_factors(files, [1.25, 0.95], 1)
    files["scenarios/non_controllable_stats.parquet"] = [
        {"ncs_id": 0, "stage_id": t, "mean": 0.4, "std": 0.0 if t == 0 else 0.3} for t in range(3)
    ]
    files["scenarios/non_controllable_factors.json"] = {
        "non_controllable_factors": [
            {"ncs_id": 1, "stage_id": t, "block_factors": [{"block_id": 0, "factor": 1.1}]} for t in (0, 2)
        ]
    }


def _add_constraints(files: Files) -> None:
    files["constraints/thermal_bounds.parquet"] = [
        {"thermal_id": 0, "stage_id": 1, "block_id": 0, "max_generation_mw": 50.0, "min_generation_mw": 5.0},
        {"thermal_id": 0, "stage_id": 2, "cost_per_mwh": 95.0},
        {"thermal_id": 2, "stage_id": 2, "min_generation_mw": 3.0, "max_generation_mw": 18.0},
    ]
    files["constraints/hydro_bounds.parquet"] = [
        {"hydro_id": 0, "stage_id": 1, "max_storage_hm3": 150.0, "min_storage_hm3": 20.0},
        {"hydro_id": 0, "stage_id": 1, "water_withdrawal_m3s": 3.0},
        {"hydro_id": 1, "stage_id": 2, "water_withdrawal_m3s": -1.5},
        {"hydro_id": 1, "stage_id": 0, "block_id": 1, "max_turbined_m3s": 30.0, "min_diversion_m3s": 1.0},
        {"hydro_id": 2, "stage_id": 1, "block_id": 0, "min_generation_mw": 25.0, "max_outflow_m3s": 30.0},
        {"hydro_id": 3, "stage_id": 1, "filling_min_rate_m3s": 5.0},
    ]
    files["constraints/hydro_unit_group_bounds.parquet"] = [
        {"hydro_id": 1, "hydro_unit_group_id": 0, "stage_id": 1, "block_id": 0, "max_generation_mw": 9.0},
        {"hydro_id": 1, "hydro_unit_group_id": 1, "stage_id": 2, "min_turbined_m3s": 2.0},
    ]
    files["constraints/line_bounds.parquet"] = [
        {"line_id": 0, "stage_id": 1, "block_id": 0, "direct_mw": 12.0, "reverse_mw": 5.0}
    ]
    files["constraints/pumping_bounds.parquet"] = [
        {"pumping_station_id": 0, "stage_id": 2, "min_m3s": 1.0, "max_m3s": 3.0}
    ]
    files["constraints/contract_bounds.parquet"] = [
        {"contract_id": 0, "stage_id": 2, "block_id": 0, "max_mw": 10.0, "price_per_mwh": 130.0}
    ]
    files["constraints/battery_bounds.parquet"] = [
        {"battery_id": 3, "stage_id": 1, "block_id": 0, "max_charge_mw": 0.02},
        *({"battery_id": 3, "stage_id": stage, "max_discharge_mw": 0.01} for stage in range(3)),
    ]
    files["constraints/ncs_bounds.parquet"] = [
        {"ncs_id": 1, "stage_id": t, "available_generation_mw": 5.0 + t} for t in range(3)
    ]
    files["constraints/penalty_overrides_bus.parquet"] = [{"bus_id": 3, "stage_id": 1, "excess_cost": 8.0}]
    files["constraints/penalty_overrides_line.parquet"] = [
        {"line_id": 1, "stage_id": 0, "exchange_cost": 1.75}
    ]
    files["constraints/penalty_overrides_hydro.parquet"] = [
        {"hydro_id": 0, "stage_id": 1, "spillage_cost": 0.9, "water_withdrawal_violation_cost": 80.0},
        {"hydro_id": 2, "stage_id": 1, "generation_violation_below_cost": 75.0},
        {"hydro_id": 1, "stage_id": 2, "turbined_cost": 0.2},
    ]
    files["constraints/penalty_overrides_ncs.parquet"] = [
        {"ncs_id": 0, "stage_id": 2, "curtailment_cost": 1.2}
    ]


def _add_generic(files: Files) -> None:
    soft: Json = {"enabled": True, "penalty": 30.0}
    rows = [
        # (expression, slack, stages, lower, upper)
        ("thermal_generation(0) + @share * thermal_generation(1)", soft, (0, 1), None, 55.0),
        (
            "hydro_generation(1, bus=1) + 0.5 * hydro_turbined(2) >= 12 - 1.0 * @step",
            soft,
            (1, 2),
            None,
            None,
        ),
        ("@storage - 2 * hydro_storage(4) <= 200", soft, (1,), 20.0, None),
        ("line_exchange(0) - line_reverse(1) + line_direct(2)", soft, (2,), -5.0, 30.0),
        ("bus_deficit(1) + bus_excess(0) + non_controllable_curtailment(0)", soft, (0, 2), None, 3.0),
        ("pumping_flow(0) + 2 * pumping_power(0) - hydro_diversion(1)", soft, (1,), 1.0, None),
        ("contract_import(0) + contract_export(1) + non_controllable_generation(1)", soft, (0,), 14.0, None),
        ("anticipated_decision(2)", soft, (0, 1), 6.0, 16.0),
        ("hydro_inflow(0) + hydro_withdrawal(0) + 3 * hydro_evaporation(0, 1)", soft, (1,), 22.0, None),
        ("hydro_outflow(0, 0) - hydro_outflow(0, 1) + hydro_spillage(2, 0)", soft, (1,), -3.0, 3.0),
        (
            "hydro_useful_volume_final(1) - hydro_storage_initial(1)",
            {"enabled": False},
            (0,),
            None,
            30.0,
        ),
    ]
    files["constraints/generic_constraints.json"] = {
        "constraints": [
            {"id": number, "name": f"rule {number}", "expression": expression, "slack": slack}
            for number, (expression, slack, *_) in enumerate(rows)
        ],
        "expressions": [
            {"name": "storage", "expression": "hydro_storage_final(0) + @half * hydro_storage_final(1)"}
        ],
    }
    files["constraints/generic_constraint_bounds.parquet"] = [
        {"constraint_id": number, "stage_id": t, "block_id": None, "bound_lower": low, "bound_upper": high}
        for number, (_, _, stages, low, high) in enumerate(rows)
        for t in stages
    ]
    files["constraints/generic_parameters.json"] = {
        "scalar_parameters": [
            {"id": 0, "name": "share", "kind": "constant", "value": 0.75},
            {"id": 1, "name": "step", "kind": "per_stage", "values": [[0, 1.0], [1, 2.0], [2, 4.0]]},
            {"id": 2, "name": "half", "kind": "seasonal", "values": [[0, 0.4], [1, 0.5], [2, 0.6]]},
        ]
    }
