"""Features of rivers, reservoirs and hydro plants."""

from __future__ import annotations

from builders.case_files import (
    Feature,
    add_bus,
    add_plant,
    hydros_of,
    limits,
    plant,
    productivity,
    set_blocks,
    set_load_factors,
    smallest,
    stages_of,
)

STAGE = 100.0 * 1000.0
"""Cost of 1 MW of the thermal plant for a stage."""


def travel_time() -> Feature:
    """40 m3/s pass plant 0 and reach plant 1 after 240 of 1000 h: 76 % in the same stage, 24 % in the next.

    20 m3/s were released in the 10 days before: 4.8 m3/s of stage 0. Plant 1 gives 30.4 + 4.8, then 40 MW.
    """
    files = smallest([100.0, 100.0], [40.0, 40.0])
    hydros_of(files)[0].update(downstream_id=1, travel_time_hours=240.0)
    add_plant(files, plant(1))
    files["initial_conditions.json"]["past_defluences"] = [
        {"hydro_id": 0, "start_date": "2023-12-22", "end_date": "2024-01-01", "value_m3s": 20.0}
    ]
    return Feature(files, (100 - 40 - 35.2 + 100 - 40 - 40) * STAGE)


def travel_over_several_stages() -> Feature:
    """1200 h: of a stage's release 80 % arrives one stage later, 20 % two stages later.

    10 m3/s were released in the 50 days before. Plant 1 gives 10; 2 + 32; 32 + 8 MW.
    """
    files = smallest([100.0] * 3, [40.0] * 3)
    hydros_of(files)[0].update(downstream_id=1, travel_time_hours=1200.0)
    add_plant(files, plant(1))
    files["initial_conditions.json"]["past_defluences"] = [
        {"hydro_id": 0, "start_date": "2023-11-12", "end_date": "2023-12-12", "value_m3s": 10.0},
        {"hydro_id": 0, "start_date": "2023-12-12", "end_date": "2024-01-01", "value_m3s": 10.0},
    ]
    return Feature(files, (3 * 60 - 10 - 34 - 40) * STAGE)


def travel_in_chronological_blocks() -> Feature:
    """Blocks of 400 and 600 h, 240 h of travel, 40 m3/s all the time, 20 m3/s before the study.

    What block 0 releases arrives in hours 240 to 640: 16 m3/s of block 0, 16 of block 1; of block 1 360 h
    arrive in time (24 m3/s), 240 h evenly over the next stage (9.6). The past gives 4.8 over stage 0.
    """
    files = smallest([100.0, 100.0], [40.0, 40.0])
    set_blocks(files, [400.0, 600.0], "chronological")
    hydros_of(files)[0].update(downstream_id=1, travel_time_hours=240.0)
    add_plant(files, plant(1))
    files["initial_conditions.json"]["past_defluences"] = [
        {"hydro_id": 0, "start_date": "2023-12-22", "end_date": "2024-01-01", "value_m3s": 20.0}
    ]
    below = 400 * (16 + 4.8) + 600 * (40 + 4.8) + 400 * (16 + 9.6) + 600 * (40 + 9.6)
    return Feature(files, 100 * (2 * 1000 * 60 - below))


def fpha_planes() -> Feature:
    """Storage is held at 100 hm3. Planes: 0.2 * 10 + 0.01 v + 0.9 q - 0.1 s (all stages), and q.

    Stage 0: q = 40 gives min(3 + 36, 40) = 39 MW. Stage 1: 60 m3/s arrive, 50 turbined, 10 spilt:
    min(3 + 45 - 1, 50) = 47 MW. Stage 2 has a plane of its own, 0.5 q: 20 MW.
    """
    files = smallest([60.0] * 3, [40.0, 60.0, 40.0])
    hydro = hydros_of(files)[0]
    hydro["reservoir"] = {"min_storage_hm3": 100.0, "max_storage_hm3": 100.0}
    hydro["generation"]["model"] = "fpha"
    files["initial_conditions.json"]["storage"][0]["value_hm3"] = 100.0
    model = productivity(0, None, "fpha")
    model["stage_ranges"][0]["fpha_config"] = {"source": "precomputed"}
    files["system/hydro_production_models.json"] = {"production_models": [model]}
    names = ("plane_id", "stage_id", "kappa", "gamma_0", "gamma_v", "gamma_q", "gamma_s")
    rows = [
        (0, None, 0.2, 10.0, 0.01, 0.9, -0.1),
        (1, None, None, 0.0, 0.0, 1.0, 0.0),
        (0, 2, None, 0.0, 0.0, 0.5, 0.0),
    ]
    files["system/fpha_hyperplanes.parquet"] = [
        {"hydro_id": 0, **dict(zip(names, row, strict=True))} for row in rows
    ]
    files["system/hydro_energy_productivity.parquet"] = [
        {
            "hydro_id": 0,
            "stage_id": t,
            "equivalent_productivity_mw_per_m3s": 0.9,
            "reference_outflow_m3s": None,
            "specific_productivity_mw_per_m3s_per_m": None,
        }
        for t in range(3)
    ]
    return Feature(files, (21 + 13 + 40) * STAGE + 10 * 0.5 * 1000)


def _geometry(hydro_id: int = 0) -> list[dict[str, float]]:
    points = [(0.0, 50.0, 2.0), (100.0, 60.0, 6.0), (360.0, 75.0, 9.0)]
    return [
        {"hydro_id": hydro_id, "volume_hm3": v, "height_m": height, "area_km2": area}
        for v, height, area in points
    ]


def fpha_fitted() -> Feature:
    """Planes fitted to geometry, tailrace, losses and efficiency; chronological blocks of unlike load."""
    files = smallest([70.0] * 3, [45.0, 20.0, 5.0])
    set_blocks(files, [300.0, 700.0], "chronological")
    set_load_factors(files, [1.4, 0.9])
    hydro = hydros_of(files)[0]
    hydro["reservoir"]["max_storage_hm3"] = 360.0
    hydro["generation"]["model"] = "fpha"
    hydro["tailrace"] = {"type": "polynomial", "coefficients": [5.0, 0.05]}
    hydro["hydraulic_losses"] = {"type": "factor", "value": 0.03}
    hydro["efficiency"] = {"type": "constant", "value": 0.92}
    hydro["specific_productivity_mw_per_m3s_per_m"] = 0.009
    files["initial_conditions.json"]["storage"][0]["value_hm3"] = 150.0
    model = productivity(0, None, "fpha")
    model["stage_ranges"][0]["fpha_config"] = {"source": "computed"}
    files["system/hydro_production_models.json"] = {"production_models": [model]}
    files["system/hydro_geometry.parquet"] = _geometry()
    return Feature(files, fitted=True)


def linearised_head() -> Feature:
    """Productivity that rises with the mean storage, in parallel blocks."""
    files = smallest([70.0] * 3, [45.0, 20.0, 5.0])
    hydro = hydros_of(files)[0]
    hydro["reservoir"]["max_storage_hm3"] = 360.0
    hydro["generation"]["model"] = "linearized_head"
    hydro["tailrace"] = {"type": "polynomial", "coefficients": [5.0, 0.05]}
    hydro["specific_productivity_mw_per_m3s_per_m"] = 0.009
    files["initial_conditions.json"]["storage"][0]["value_hm3"] = 150.0
    files["system/hydro_production_models.json"] = {
        "production_models": [productivity(0, 0.5, "linearized_head")]
    }
    files["system/hydro_geometry.parquet"] = _geometry()
    return Feature(files, fitted=True)


def seasonal_productivity() -> Feature:
    """Productivity 0.5 in January, else that of ``hydro_energy_productivity.parquet`` would be asked for."""
    files = smallest([60.0, 60.0], [20.0, 20.0])
    stages_of(files)[1].update(start_date="2028-02-01", end_date="2028-03-01")
    stages_of(files)[0].update(start_date="2028-01-01", end_date="2028-02-01")
    files["stages.json"]["season_definitions"] = {
        "cycle_type": "monthly",
        "seasons": [{"id": m, "label": f"month {m}", "month_start": m + 1} for m in (0, 1)],
    }
    seasons = [
        {"season_id": m, "model": "constant_productivity", "productivity_mw_per_m3s": 0.5 + m} for m in (0, 1)
    ]
    files["system/hydro_production_models.json"]["production_models"] = [
        {
            "hydro_id": 0,
            "selection_mode": "seasonal",
            "default_model": "constant_productivity",
            "seasons": seasons,
        }
    ]
    return Feature(files, (60 - 10 + 60 - 30) * STAGE)


def evaporation() -> Feature:
    """10 km2 at any storage, 36 mm in January, 18 in February 2023: 100/744 and 50/672 m3/s.

    Stage 0 has 15 days of each month; stage 1 is in February.
    """
    files = smallest([60.0, 60.0], [10.0, 10.0])
    stages_of(files)[0].update(start_date="2023-01-17", end_date="2023-02-16")
    stages_of(files)[1].update(start_date="2023-02-16", end_date="2023-02-26")
    hydro = hydros_of(files)[0]
    hydro["reservoir"]["max_storage_hm3"] = 100.0
    hydro["evaporation"] = {"coefficients_mm": [36.0, 18.0, *[0.0] * 10]}
    files["system/hydro_geometry.parquet"] = [
        {"hydro_id": 0, "volume_hm3": 0.0, "height_m": 10.0, "area_km2": 10.0}
    ]
    lost = 0.5 * (100 / 744 + 50 / 672) + 50 / 672
    return Feature(files, (100 + lost) * STAGE)


def evaporation_in_blocks() -> Feature:
    """Area that grows with storage, reference volumes by month, chronological blocks, a dry year."""
    files = smallest([60.0] * 3, [30.0, 2.0, 0.0])
    set_blocks(files, [300.0, 700.0], "chronological")
    for t, month in enumerate(("01", "02", "03")):
        stages_of(files)[t].update(start_date=f"2023-{month}-01", end_date=f"2023-{month}-28")
    hydro = hydros_of(files)[0]
    hydro["reservoir"]["max_storage_hm3"] = 360.0
    hydro["evaporation"] = {
        "coefficients_mm": [120.0, 150.0, 90.0, *[0.0] * 9],
        "reference_volumes_hm3": [80.0, 120.0, 100.0, *[150.0] * 9],
    }
    files["initial_conditions.json"]["storage"][0]["value_hm3"] = 50.0
    files["system/hydro_geometry.parquet"] = _geometry()
    return Feature(files)


def evaporation_of_nothing() -> Feature:
    """An empty reservoir of falling area: the line would evaporate water that is not there.

    At the reference of 100 hm3 the area is 6 km2 and grows by 0.04 km2/hm3 below it (by 3/260 above): at
    100 hm3 the segment above counts, k0 + kv v = c (6 + 3/260 (v - 100)) / (3.6 H). The plant is run of river
    with nothing to lose: each m3/s of evaporation must be missing at 400 $ (a stage row) for less.
    """
    files = smallest([60.0, 60.0], [0.0, 0.0])
    for t, month in enumerate(("01", "02")):
        stages_of(files)[t].update(start_date=f"2023-{month}-01", end_date=f"2023-{month}-28")
    hydro = hydros_of(files)[0]
    hydro["evaporation"] = {
        "coefficients_mm": [120.0, 120.0, *[0.0] * 10],
        "reference_volumes_hm3": [100.0] * 12,
    }
    files["system/hydro_geometry.parquet"] = _geometry()
    files["constraints/penalty_overrides_hydro.parquet"] = [
        {"hydro_id": 0, "stage_id": 0, "evaporation_violation_neg_cost": 400.0}
    ]
    rates = [120 * (6 - 300 / 260) / (3.6 * 24 * days) for days in (31, 28)]
    return Feature(files, 120 * STAGE + 1000 * (400 * rates[0] + 500 * rates[1]))


def withdrawal() -> Feature:
    """5 m3/s are withdrawn in stage 0, 3 come back in stage 1."""
    files = smallest([60.0, 60.0], [10.0, 10.0])
    files["constraints/hydro_bounds.parquet"] = [
        {"hydro_id": 0, "stage_id": 0, "water_withdrawal_m3s": 5.0},
        {"hydro_id": 0, "stage_id": 1, "water_withdrawal_m3s": -3.0},
    ]
    return Feature(files, (60 - 5 + 60 - 13) * STAGE)


def withdrawal_violated() -> Feature:
    """15 m3/s are asked of 10: 5 are missing, at 500 $ and (a stage row) 120 $; power is worth 100 $."""
    files = smallest([60.0, 60.0], [10.0, 10.0])
    files["constraints/hydro_bounds.parquet"] = [
        {"hydro_id": 0, "stage_id": t, "water_withdrawal_m3s": 15.0} for t in (0, 1)
    ]
    files["constraints/penalty_overrides_hydro.parquet"] = [
        {"hydro_id": 0, "stage_id": 1, "water_withdrawal_violation_neg_cost": 120.0}
    ]
    return Feature(files, 2 * 60 * STAGE + 5 * 500 * 1000 + 5 * 120 * 1000)


def withdrawal_violated_and_more_missing() -> Feature:
    """-5 m3/s of inflow and 15 m3/s to withdraw: 15 are not withdrawn at 500 $, the other 5 bought at 800 $.

    No more than all of the withdrawal can be left out, though that would be cheaper.
    """
    files = smallest([60.0, 60.0], [-5.0, -5.0])
    files["config.json"]["modeling"]["inflow_non_negativity"]["method"] = "penalty"
    files["penalties.json"]["hydro"]["inflow_nonnegativity_cost"] = 800.0
    files["constraints/hydro_bounds.parquet"] = [
        {"hydro_id": 0, "stage_id": t, "water_withdrawal_m3s": 15.0} for t in (0, 1)
    ]
    return Feature(files, 2 * (60 * STAGE + 1000 * (15 * 500 + 5 * 800)))


def two_sided_costs() -> Feature:
    """The cost of the two sides: global side 700, plant (both) 300, stage (both) 200, stage side 150.

    Withdrawal of 15 with 10 m3/s of inflow; the plant's 300 beats the global side.
    """
    files = smallest([60.0] * 3, [10.0] * 3)
    files["penalties.json"]["hydro"]["water_withdrawal_violation_neg_cost"] = 700.0
    hydros_of(files)[0]["penalties"] = {"water_withdrawal_violation_cost": 300.0}
    files["constraints/hydro_bounds.parquet"] = [
        {"hydro_id": 0, "stage_id": t, "water_withdrawal_m3s": 15.0} for t in range(3)
    ]
    both, side = "water_withdrawal_violation_cost", "water_withdrawal_violation_neg_cost"
    files["constraints/penalty_overrides_hydro.parquet"] = [
        {"hydro_id": 0, "stage_id": 1, both: 200.0},
        {"hydro_id": 0, "stage_id": 2, both: 200.0, side: 150.0},
    ]
    return Feature(files, 180 * STAGE + 5 * 1000 * (300 + 200 + 150))


def diversion() -> Feature:
    """60 m3/s at plant 0 (1 MW per m3/s); its channel leads 20 to plant 1 (2 MW per m3/s, 50 MW).

    Stage 0: 20 diverted, 40 turbined: 40 + 40 MW. Stage 1 (5 at most): 50 turbined, 5 diverted, 5 spilt.
    Stage 2 (at least 18 in a channel that holds 18): 18, 42. The load is 100 MW.
    """
    files = smallest([100.0] * 3, [60.0] * 3)
    hydros_of(files)[0]["diversion"] = {"downstream_id": 1, "max_flow_m3s": 20.0}
    add_plant(files, plant(1), value=2.0)
    files["constraints/hydro_bounds.parquet"] = [
        {"hydro_id": 0, "stage_id": 1, "max_diversion_m3s": 5.0},
        {"hydro_id": 0, "stage_id": 2, "min_diversion_m3s": 18.0, "max_diversion_m3s": 18.0},
    ]
    thermal = (100 - 80) + (100 - 60) + (100 - 78)
    return Feature(files, thermal * STAGE + 1000 * (20 * 0.25 + 5 * 0.25 + 5 * 0.5 + 18 * 0.25))


def filling() -> Feature:
    """The dam of plant 0 (54 hm3 = 15 m3/s) fills in stages 0 and 1 and serves from stage 2, floor 36 hm3.

    20 arrive, 15 are kept, 5 spilt to plant 1, which makes 5 MW of them. In stage 2 15 pass both plants.
    """
    files = smallest([60.0] * 3, [10.0] * 3)
    dam = plant(0, 54.0, 36.0, downstream_id=1, entry_stage_id=2)
    dam["filling"] = {"start_stage_id": 0, "filling_min_rate_m3s": 5.0}
    files["system/hydros.json"]["hydros"] = [dam]
    files["initial_conditions.json"] = {
        "storage": [],
        "filling_storage": [{"hydro_id": 0, "value_hm3": 0.0}],
    }
    add_plant(files, plant(1))
    return Feature(files, (180 - 5 - 30) * STAGE + 5 * 0.5 * 1000)


def filling_too_slow() -> Feature:
    """As before with 4 m3/s: 1 short of the rate in both stages, 7.2 hm3 short of the target at the end.

    In stage 2 4 + 8 are there, 10 stay (the floor costs 216,000 $ per m3/s, two plants make 200,000 of it).
    """
    feature = filling()
    for row in feature.files["scenarios/inflow_seasonal_stats.parquet"]:
        row["mean_m3s"] = 4.0 if row["hydro_id"] == 0 else 0.0
    short = (3.6 + 3.6 + 7.2) * 50000
    return Feature(feature.files, (180 - 4) * STAGE + short)


def pumping() -> Feature:
    """10 m3/s are pumped from plant 0 (1 MW per m3/s) to plant 1 (3 MW per m3/s) for 0.5 MW each.

    Stage 0: 20 + 30 - 5 MW. Stage 1 allows 4 m3/s in block 0 and 10 in block 1: 26 + 12 - 2, as before.
    """
    files = smallest([100.0, 100.0], [30.0, 30.0])
    set_blocks(files, [400.0, 600.0])
    add_plant(files, plant(1), value=3.0)
    files["system/pumping_stations.json"] = {
        "pumping_stations": [
            {
                "id": 0,
                "name": "pump",
                "operational_start_date": "2000-01-01",
                "bus_id": 0,
                "source_hydro_id": 0,
                "destination_hydro_id": 1,
                "consumption_mw_per_m3s": 0.5,
                "flow": {"min_m3s": 0.0, "max_m3s": 10.0},
            }
        ]
    }
    files["constraints/pumping_bounds.parquet"] = [
        {"pumping_station_id": 0, "stage_id": 1, "block_id": 0, "max_m3s": 4.0}
    ]
    return Feature(files, 100 * (55 * 1000 + 64 * 400 + 55 * 600))


def unit_groups() -> Feature:
    """Two groups on two buses that no line joins; productivity 0.5.

    Bus 0 gets 8 MW (16 m3/s), bus 7 10 MW (20 m3/s), of 50 m3/s. In stage 1 group 1 is held to 6 MW in the
    first block (200 h); in the second its 10 MW stand. 14 m3/s are spilt, in stage 1 22 for 200 h.
    """
    files = smallest([60.0, 60.0], [50.0, 50.0])
    set_blocks(files, [200.0, 800.0])
    add_bus(files, 7, [30.0, 30.0])
    hydros_of(files)[0]["unit_groups"] = [
        {"id": 0, "name": "a", "bus_id": 0, **limits(8.0, 30.0)},
        {"id": 1, "name": "b", "bus_id": 7, **limits(25.0, 20.0)},
    ]
    files["system/hydro_production_models.json"]["production_models"] = [productivity(0, 0.5)]
    files["constraints/hydro_unit_group_bounds.parquet"] = [
        {"hydro_id": 0, "hydro_unit_group_id": 1, "stage_id": 1, "block_id": 0, "max_generation_mw": 6.0}
    ]
    hand = 2 * 52 * STAGE + 1000 * 1000 * 20 + 1000 * (800 * 20 + 200 * 24)
    return Feature(files, hand + 0.5 * (1000 * 14 + 200 * 22 + 800 * 14))


def hydro_bounds_by_block() -> Feature:
    """Every limit of a plant that may differ by block, with reservoir, in two stages."""
    files = smallest([60.0, 60.0], [30.0, 5.0])
    set_blocks(files, [400.0, 600.0])
    hydros_of(files)[0]["reservoir"]["max_storage_hm3"] = 360.0
    names = (
        "block_id",
        "min_turbined_m3s",
        "max_turbined_m3s",
        "min_outflow_m3s",
        "max_outflow_m3s",
        "min_generation_mw",
        "max_generation_mw",
    )
    rows = [
        (None, 1.0, 40.0, 2.0, 48.0, 3.0, 35.0),
        (0, 10.0, 45.0, 25.0, None, 28.0, None),
        (1, None, 12.0, None, 11.0, None, 10.0),
    ]
    files["constraints/hydro_bounds.parquet"] = [
        {"hydro_id": 0, "stage_id": t, **dict(zip(names, row, strict=True))} for t in (0, 1) for row in rows
    ] + [
        {"hydro_id": 0, "stage_id": 0, "min_storage_hm3": 18.0},
        {"hydro_id": 0, "stage_id": 0, "max_storage_hm3": 54.0},
    ]
    files["initial_conditions.json"]["storage"][0]["value_hm3"] = 20.0
    return Feature(files)


def storage_floor() -> Feature:
    """The floor of 36 hm3 is above the start: 10 m3/s arrive, 8 are missing at the start (7.2 hm3 there).

    Stage 0 keeps all (43.2 hm3 = 12 m3/s); 7.2 hm3 above the floor and 10 m3/s are turbined in stage 1.
    """
    files = smallest([60.0, 60.0], [10.0, 10.0])
    hydros_of(files)[0]["reservoir"] = {"min_storage_hm3": 36.0, "max_storage_hm3": 360.0}
    files["initial_conditions.json"]["storage"][0]["value_hm3"] = 7.2
    return Feature(files, (120 - 12) * STAGE)


def plant_out_of_service() -> Feature:
    """Plant 0 serves in stage 1 only: before and after, its inflow of 20 m3/s runs on to plant 1.

    Its 36 hm3 (10 m3/s) can be used in stage 1 alone.
    """
    files = smallest([100.0] * 3, [20.0] * 3)
    hydros_of(files)[0].update(downstream_id=1, entry_stage_id=1, exit_stage_id=2)
    hydros_of(files)[0]["reservoir"]["max_storage_hm3"] = 36.0
    files["initial_conditions.json"]["storage"][0]["value_hm3"] = 36.0
    add_plant(files, plant(1))
    return Feature(files, (100 - 20 + 100 - 60 + 100 - 20) * STAGE)


def chronological_blocks() -> Feature:
    """Water of the second block cannot serve the first: 12 m3/s all the time, blocks of 500 h, 90 and 30 MW.

    Of thermal power there are 70 MW. Stage 0: 8 MW are missing; its second block keeps 8 for stage 1.
    """
    files = smallest([60.0, 60.0], [12.0, 12.0])
    set_blocks(files, [500.0, 500.0], "chronological")
    set_load_factors(files, [1.5, 0.5])
    hydros_of(files)[0]["reservoir"]["max_storage_hm3"] = 360.0
    files["system/thermals.json"]["thermals"][0]["generation"]["max_mw"] = 70.0
    return Feature(files, 500 * (7000 + 8000 + 2600 + 7000 + 1800))


def inflow_slack() -> Feature:
    """-5 m3/s of inflow must be bought, at the price of the stage row (800 $), as there is no water."""
    files = smallest([60.0, 60.0], [-5.0, 10.0])
    files["config.json"]["modeling"]["inflow_non_negativity"]["method"] = "penalty"
    files["constraints/penalty_overrides_hydro.parquet"] = [
        {"hydro_id": 0, "stage_id": 0, "inflow_nonnegativity_cost": 800.0}
    ]
    return Feature(files, 110 * STAGE + 5 * 800 * 1000)


def limits_violated() -> Feature:
    """10 m3/s where 12 must flow, 15 be turbined and 20 MW be made; 5 at most where 10 come; an empty floor.

    The plants turbine all they have, at 2 $ a m3/s and hour. The floor of plant 1 is 36 hm3 above its start.
    """
    files = smallest([60.0, 60.0], [10.0, 10.0])
    files["penalties.json"]["hydro"]["turbined_cost"] = 2.0
    least = limits(least_mw=20.0, least_m3s=15.0)
    hydros_of(files)[0].update(outflow={"min_outflow_m3s": 12.0})
    hydros_of(files)[0]["generation"].update(least)
    hydros_of(files)[0]["unit_groups"][0].update(least)
    add_plant(files, plant(1, 360.0, 36.0))
    add_plant(files, plant(2, outflow={"min_outflow_m3s": 0.0, "max_outflow_m3s": 5.0}), [10.0, 10.0])
    violations = 500 * 1000 * (2 + 5 + 10 + 5) + 36 * 60000
    return Feature(files, 2 * (40 * STAGE + violations + 20 * 2 * 1000))
