"""Every feature of the stage LP, on studies small enough to be solved by hand.

With ``HOURS`` hours 1 m3/s carries 1 hm3; an hour's price of 1 $/MWh is then ``HOURS`` $ per MW.
"""

from dataclasses import replace

import numpy as np
import pytest
from builders.small_studies import DEFICIT, HOURS, planes, plant, small_study, solve, template_of

from cobre.case.model import (
    AnticipatedDelivery,
    Contract,
    Diversion,
    EvaporationModel,
    Filling,
    HydroStatus,
    Line,
    NonControllable,
    PumpingStation,
    Thermal,
    UnitGroup,
)
from cobre.case.model.stage_data import HYDRO_PENALTIES
from cobre.errors import CobreError
from cobre.lp import StateLayout, build_templates
from cobre.sddp import train
from cobre.stochastic import build_opening_tree

THERMAL = (Thermal(0, "thermal", 0),)
ROUND = pytest.approx


def status(*values: HydroStatus) -> np.ndarray:
    return np.array(values, np.int8)


# Network


@pytest.mark.parametrize("reverse", [False, True])
def test_line_loses_a_share_of_what_is_sent(reverse):
    # 90 MW arrive of 100 MW sent with 10 % loss.
    ends = (1, 0) if reverse else (0, 1)
    case = small_study(
        buses=2,
        lines=(Line(0, "line", *ends, loss=0.1),),
        thermals=THERMAL,
        load=[0.0, 90.0],
        data={
            "thermal_cost": 10.0,
            "thermal_max_mw": 200.0,
            "line_direct_mw": 500.0,
            "line_reverse_mw": 500.0,
            "exchange_cost": 1.0,
        },
    )
    cost, value = solve(case)
    sent = value["line_reverse[line, b0]" if reverse else "line_direct[line, b0]"]
    assert sent == ROUND(100.0)
    assert cost == ROUND((100.0 * 10.0 + 100.0 * 1.0) * HOURS)


def test_deficit_segments_belong_to_their_bus():
    case = small_study(buses=2, load=[10.0, 10.0])
    short = replace(
        case.buses[0], deficit_segments=(replace(case.buses[0].deficit_segments[0], depth_mw=4.0),) * 2
    )
    names = template_of(replace(case, buses=(short, case.buses[1]))).col_names
    assert [name for name in names if name.startswith("bus_deficit")] == [
        "bus_deficit[bus 0, 1, b0]",
        "bus_deficit[bus 0, 2, b0]",
        "bus_deficit[bus 1, 1, b0]",
    ]


# Turbines and unit groups


def two_groups(**changes):
    groups = (UnitGroup(0, "left", 0), UnitGroup(1, "right", 1))
    data = {
        "group_turbined_max_m3s": [30.0, 40.0],
        "group_generation_max_mw": [100.0, 100.0],
        "turbined_max_m3s": 50.0,
        "penalties": {"turbined_violation_below": 7.0, "generation_violation_below": 9.0},
    }
    return small_study(
        buses=2,
        hydros=[plant(unit_groups=groups, initial_storage_hm3=500.0)],
        load=[60.0, 25.0],
        data=data | changes,
    )


def test_groups_feed_their_buses_within_the_limit_of_the_plant():
    # 50 m3/s in all: 30 at the left bus and 20 at the right one, or 25 and 25; 35 MW are missing either way.
    cost, value = solve(two_groups())
    left, right = (value[f"hydro_turbined[plant 0/{side}, b0]"] for side in ("left", "right"))
    assert left + right == ROUND(50.0)
    assert left <= 30.0 + 1e-9
    assert right <= 25.0 + 1e-9
    assert cost == ROUND(35.0 * DEFICIT * HOURS)
    wide = template_of(two_groups(turbined_max_m3s=70.0))
    assert not [name for name in wide.row_names if name.startswith("hydro_plant")]


def test_limit_of_generation_of_the_plant_binds_the_flow():
    case = two_groups(turbined_max_m3s=70.0, generation_max_mw=44.0)
    template = template_of(case)
    row = template.index.row("hydro_plant_turbined_max[plant 0, b0]")
    assert template.row_upper[row] == 44.0
    assert solve(case)[0] == ROUND((85.0 - 44.0) * DEFICIT * HOURS)


def test_minimum_of_the_plant_beyond_the_groups_has_a_slack():
    # The groups ask for 3 + 4, the plant for 12; the reservoir has 10 only, so that 2 are missing.
    case = two_groups(group_turbined_min_m3s=[3.0, 4.0], turbined_min_m3s=12.0, storage_min_hm3=490.0)
    case = replace(case, scenarios=replace(case.scenarios, load_mean_mw=np.zeros((1, 2))))
    cost, value = solve(case)
    assert value["hydro_plant_turbined_min_violation[plant 0, b0]"] == ROUND(2.0)
    assert cost == ROUND(2.0 * 7.0 * HOURS)


def test_single_group_takes_the_tighter_limits_of_group_and_plant():
    case = small_study(
        hydros=[plant(initial_storage_hm3=5.0)],
        load=60.0,
        data={
            "turbined_max_m3s": 40.0,
            "group_turbined_min_m3s": 6.0,
            "turbined_min_m3s": 8.0,
            "penalties": {"turbined_violation_below": 7.0},
        },
    )
    cost, value = solve(case)
    assert value["hydro_turbined_min_violation[plant 0, b0]"] == ROUND(3.0)
    assert cost == ROUND((55.0 * DEFICIT + 3.0 * 7.0) * HOURS)


# Production planes


def test_generation_is_below_every_plane_at_the_mean_storage():
    # v = v' = 100: 0.01 * 100 + 0.5 * 20 = 11 MW, and 0.02 * 100 + 0.4 * 20 = 10 MW, which is less.
    case = small_study(
        hydros=[plant(initial_storage_hm3=100.0)],
        load=50.0,
        inflow=20.0,
        data={"storage_min_hm3": 100.0},
        production=((planes([0.0, 0.01, 0.5, -0.1], [0.0, 0.02, 0.4, 0.0]),),),
    )
    cost, value = solve(case)
    assert value["hydro_generation[plant 0, b0]"] == ROUND(10.0)
    assert cost == ROUND(40.0 * DEFICIT * HOURS)
    # One hm3 more at the start and the end: 0.02 MW more. Turned into flow instead: 0.4 + 0.01 MW.
    assert solve(case, state=[101.0])[0] == ROUND((40.0 - 0.41) * DEFICIT * HOURS)


def test_planes_bind_the_sum_of_the_groups():
    groups = (UnitGroup(0, "left", 0), UnitGroup(1, "right", 1))
    case = small_study(
        buses=2,
        hydros=[plant(unit_groups=groups, initial_storage_hm3=30.0)],
        load=[10.0, 10.0],
        data={"generation_max_mw": 14.0},
        production=((planes([0.0, 0.0, 0.5, 0.0]),),),
    )
    cost, value = solve(case)
    left, right = (value[f"hydro_generation[plant 0/{side}, b0]"] for side in ("left", "right"))
    assert left + right == ROUND(14.0)
    assert cost == ROUND(6.0 * DEFICIT * HOURS)


def test_spillage_is_free_of_planes_without_turbines():
    case = small_study(
        hydros=[plant(initial_storage_hm3=50.0)],
        data={"turbined_max_m3s": 0.0, "storage_max_hm3": 20.0},
        production=((planes([0.0, 0.0, 1.0, -0.1]),),),
    )
    _, value = solve(case)
    assert value["hydro_spillage[plant 0, b0]"] == ROUND(30.0)


# Water


def test_blocks_in_order_cannot_use_later_water():
    # 10 m3/s flow in through two blocks; load only in the first one. In order 10 MW are served, else 20.
    half = HOURS / 2.0
    values = {"load_factor": np.array([[1.0, 0.0]]), "storage_max_hm3": 50.0}
    for mode, served in (("parallel", 20.0), ("chronological", 10.0)):
        case = small_study(
            hours=((half, half),), mode=mode, hydros=[plant()], load=30.0, inflow=10.0, data=values
        )
        cost, value = solve(case)
        assert value["hydro_turbined[plant 0, b0]"] == ROUND(served)
        assert cost == ROUND((30.0 - served) * DEFICIT * half)
    assert value["hydro_storage_block[plant 0, b0]"] == ROUND(0.0)
    assert value["hydro_storage_final[plant 0]"] == ROUND(5.0)


def test_storage_limits_hold_between_blocks():
    half = HOURS / 2.0
    case = small_study(
        hours=((half, half),),
        mode="chronological",
        hydros=[plant(initial_storage_hm3=10.0)],
        load=60.0,
        inflow=10.0,
        data={"load_factor": np.array([[0.0, 1.0]]), "storage_max_hm3": 12.0},
    )
    # 10 + 5 hm3 do not fit in 12; the second block then has 12 + 5 hm3 in half the hours: 34 m3/s.
    cost, value = solve(case)
    assert value["hydro_storage_block[plant 0, b0]"] == ROUND(12.0)
    assert value["hydro_turbined[plant 0, b1]"] == ROUND(34.0)
    assert cost == ROUND(26.0 * DEFICIT * half)


def test_evaporation_takes_water_at_the_mean_storage():
    # Storage is held at 100: 1 + 0.01 * 100 = 2 of 10 m3/s evaporate.
    case = small_study(
        hydros=[plant(initial_storage_hm3=100.0)],
        load=50.0,
        inflow=10.0,
        data={
            "storage_min_hm3": 100.0,
            "storage_max_hm3": 100.0,
            "penalties": {"evaporation_violation_pos": 1e5, "evaporation_violation_neg": 1e5},
        },
        evaporation=((EvaporationModel(1.0, 0.01, 100.0),),),
    )
    cost, value = solve(case)
    assert value["hydro_evaporation[plant 0]"] == ROUND(2.0)
    assert cost == ROUND(42.0 * DEFICIT * HOURS)
    template = template_of(case)
    assert template.col_upper[template.index.column("hydro_evaporation[plant 0]")] == ROUND(4.0)
    # A cheap violation is used instead: all 2 m3/s stay.
    cheap = replace(case.stage_data[0], hydro_penalty=np.full((1, len(HYDRO_PENALTIES)), 3.0))
    cost, value = solve(replace(case, stage_data=(cheap,)))
    assert value["hydro_evaporation_below[plant 0]"] == ROUND(2.0)
    assert cost == ROUND((40.0 * DEFICIT + 2.0 * 3.0 + 10.0 * 3.0) * HOURS)


def test_net_rain_enters_the_reservoir():
    # Storage is held at 100: 1 + 0.01 * 100 = 2 m3/s more rain than evaporates join an inflow of 10.
    case = small_study(
        hydros=[plant(initial_storage_hm3=100.0)],
        load=50.0,
        inflow=10.0,
        data={
            "storage_min_hm3": 100.0,
            "storage_max_hm3": 100.0,
            "penalties": {"evaporation_violation_pos": 1e5, "evaporation_violation_neg": 1e5},
        },
        evaporation=((EvaporationModel(-1.0, -0.01, 100.0),),),
    )
    cost, value = solve(case)
    assert value["hydro_evaporation[plant 0]"] == ROUND(-2.0)
    assert value["hydro_turbined[plant 0, b0]"] == ROUND(12.0)
    assert cost == ROUND(38.0 * DEFICIT * HOURS)
    # Rain is not invented without end, however cheap the violation.
    cheap = replace(case.stage_data[0], hydro_penalty=np.full((1, len(HYDRO_PENALTIES)), 3.0))
    cost, value = solve(replace(case, stage_data=(cheap,)))
    assert value["hydro_evaporation[plant 0]"] == ROUND(-4.0)


@pytest.mark.parametrize(
    ("intercept", "slope", "limits"), [(2.0, -0.05, (-6.0, 4.0)), (-2.0, 0.05, (-4.0, 6.0))]
)
def test_evaporation_may_take_its_value_at_either_end_of_storage(intercept, slope, limits):
    case = small_study(
        hydros=[plant()],
        data={"storage_max_hm3": 100.0},
        evaporation=((EvaporationModel(intercept, slope, 50.0),),),
    )
    template = template_of(case)
    column = template.index.column("hydro_evaporation[plant 0]")
    assert (template.col_lower[column], template.col_upper[column]) == (ROUND(limits[0]), ROUND(limits[1]))


def test_evaporation_by_block_uses_its_own_mean():
    half = HOURS / 2.0
    case = small_study(
        hours=((half, half),),
        mode="chronological",
        hydros=[plant(initial_storage_hm3=100.0)],
        inflow=0.0,
        data={
            "turbined_max_m3s": 0.0,
            "penalties": {
                "evaporation_violation_pos": 1e3,
                "evaporation_violation_neg": 1e3,
                "spillage": 1e3,
            },
        },
        evaporation=((EvaporationModel(0.0, 0.1, 100.0),),),
    )
    # v1 = v0 - 0.5 * 0.1 * (v0 + v1) / 2, so that each block keeps 0.975 / 1.025 of the water.
    _, value = solve(case)
    share = 0.975 / 1.025
    assert value["hydro_storage_block[plant 0, b0]"] == ROUND(100.0 * share)
    assert value["hydro_storage_final[plant 0]"] == ROUND(100.0 * share**2)


@pytest.mark.parametrize(
    ("withdrawal", "inflow", "turbined", "missing"),
    [(4.0, 10.0, 6.0, 0.0), (4.0, 3.0, 0.0, 1.0), (-4.0, 1.0, 5.0, 0.0)],
)
def test_withdrawal_both_ways(withdrawal, inflow, turbined, missing):
    case = small_study(
        hydros=[plant()],
        load=20.0,
        inflow=inflow,
        data={
            "withdrawal_m3s": withdrawal,
            "penalties": {"water_withdrawal_violation_neg": 2000.0, "water_withdrawal_violation_pos": 2000.0},
        },
    )
    cost, value = solve(case)
    assert value["hydro_turbined[plant 0, b0]"] == ROUND(turbined, abs=1e-9)
    assert cost == ROUND(((20.0 - turbined) * DEFICIT + missing * 2000.0) * HOURS)
    assert ("hydro_withdrawal_below[plant 0]" in value) == (withdrawal > 0.0)


def test_diversion_reaches_the_end_of_the_channel():
    # The upper plant has no turbine; 3 of 5 m3/s may take the channel, the rest is lost downstream.
    plants = [plant(0, diversion=Diversion(1), initial_storage_hm3=5.0), plant(1)]
    case = small_study(
        hydros=plants,
        load=20.0,
        data={
            "turbined_max_m3s": [0.0, 100.0],
            "diversion_min_m3s": [1.0, 0.0],
            "diversion_max_m3s": [3.0, 0.0],
            "penalties": {"diversion": 0.5},
        },
    )
    cost, value = solve(case)
    assert value["hydro_diversion[plant 0, b0]"] == ROUND(3.0)
    assert cost == ROUND((17.0 * DEFICIT + 3.0 * 0.5) * HOURS)
    assert "hydro_diversion[plant 1, b0]" not in value


def test_outflow_limits_count_diversion():
    plants = [plant(0, diversion=Diversion(1), initial_storage_hm3=5.0), plant(1)]
    case = small_study(
        hydros=plants,
        data={
            "turbined_max_m3s": [0.0, 0.0],
            "diversion_max_m3s": [3.0, 0.0],
            "outflow_min_m3s": [9.0, 0.0],
            "penalties": {"diversion": 0.5, "spillage": 0.5, "outflow_violation_below": 40.0},
        },
    )
    cost, value = solve(case)
    assert value["hydro_outflow_min_violation[plant 0, b0]"] == ROUND(4.0)
    assert cost == ROUND((5.0 * 0.5 + 4.0 * 40.0) * HOURS)


def test_pumping_moves_water_for_power():
    # 0.25 MW lift 1 m3/s to a plant that makes 1 MW of it: all 8 hm3 are pumped, 6 MW are won.
    case = small_study(
        hydros=[plant(0, initial_storage_hm3=8.0), plant(1)],
        load=20.0,
        data={"turbined_max_m3s": [0.0, 100.0], "pumping_max_m3s": 100.0},
        pumping_stations=(PumpingStation(0, "pump", 0, 0, 1, 0.25),),
    )
    cost, value = solve(case)
    assert value["pumping_flow[pump, b0]"] == ROUND(8.0)
    assert cost == ROUND(14.0 * DEFICIT * HOURS)


def test_plant_out_of_service_keeps_its_storage_and_passes_inflow_on():
    plants = [plant(0, downstream_id=1, initial_storage_hm3=50.0), plant(1)]
    case = small_study(
        hydros=plants,
        load=20.0,
        inflow=[[7.0, 2.0]],
        data={"hydro_status": status(HydroStatus.OUT, HydroStatus.OPERATING), "outflow_min_m3s": [9.0, 0.0]},
    )
    cost, value = solve(case)
    assert value["hydro_storage_final[plant 0]"] == ROUND(50.0)
    assert value["hydro_turbined[plant 1, b0]"] == ROUND(9.0)
    assert cost == ROUND(11.0 * DEFICIT * HOURS)
    assert "hydro_turbined[plant 0, b0]" not in value


def filling_study(inflow, rate=3.0):
    filling, serving = status(HydroStatus.FILLING), status(HydroStatus.OPERATING)
    common = {
        "storage_min_hm3": 10.0,
        "filling_min_rate_m3s": rate,
        "penalties": {"filling_target_violation": 50.0, "storage_violation_below": 80.0, "spillage": 0.01},
    }
    return small_study(
        hours=((HOURS,),) * 3,
        hydros=[plant(filling=Filling(0), initial_storage_hm3=1.0)],
        load=20.0,
        inflow=[[inflow]] * 3,
        data=[{"hydro_status": s} | common for s in (filling, filling, serving)],
    )


def test_filling_keeps_the_rate_and_reaches_the_floor():
    # Too little water: 2 of 3 m3/s in the first stage; 3 + 2 = 5 of 10 hm3 at the end of the second one.
    case = filling_study(inflow=2.0)
    cost, value = solve(case, 0)
    assert value["hydro_filling_rate_violation[plant 0]"] == ROUND(1.0)
    assert value["hydro_storage_final[plant 0]"] == ROUND(3.0)
    assert cost == ROUND(20.0 * DEFICIT * HOURS + 1.0 * 50.0)
    cost, value = solve(case, 1, [3.0])
    assert value["hydro_filling_target_violation[plant 0]"] == ROUND(5.0)
    assert cost == ROUND(20.0 * DEFICIT * HOURS + (1.0 + 5.0) * 50.0)
    # In service: from 5 hm3 the floor of 10 costs 80 $/hm3, and power is worth more.
    cost, value = solve(case, 2, [5.0])
    assert value["hydro_turbined[plant 0, b0]"] == ROUND(7.0)
    assert value["hydro_storage_below[plant 0]"] == ROUND(10.0)
    assert cost == ROUND(13.0 * DEFICIT * HOURS + 10.0 * 80.0)


def test_filling_dam_may_spill_but_not_turbine():
    case = filling_study(inflow=5.0)
    _, value = solve(case, 0, [998.0])
    assert value["hydro_spillage[plant 0, b0]"] == ROUND(3.0)
    assert "hydro_turbined[plant 0, b0]" not in value


# Time of travel


def travelling_study(**changes):
    """Release of the upper plant is under way for half a stage."""
    upper = {"downstream_id": 1, "travel_time_hours": HOURS / 2.0, "initial_storage_hm3": 40.0}
    plants = [plant(0, **(upper | changes)), plant(1)]
    return small_study(
        hours=((HOURS,),) * 3,
        hydros=plants,
        thermals=THERMAL,
        load=30.0,
        data={
            "turbined_max_m3s": [100.0, 100.0],
            "storage_max_hm3": [1000.0, 0.0],
            "thermal_cost": 10.0,
            "penalties": {"spillage": 0.01},
        },
    )


def test_release_is_split_over_the_stages_it_reaches():
    case = travelling_study(past_outflow_hm3=(6.0, 2.0))
    layout = StateLayout(case)
    assert layout.names == (
        "hydro_storage[plant 0]",
        "hydro_storage[plant 1]",
        "hydro_in_transit[plant 0, 1]",
        "hydro_in_transit[plant 0, 2]",
    )
    assert layout.initial.tolist() == [40.0, 0.0, 6.0, 2.0]
    template = template_of(case)
    column = template.index.column("hydro_turbined[plant 0, b0]")
    first, last = template.matrix_start[column], template.matrix_start[column + 1]
    rows = {
        template.row_names[row]: value
        for row, value in zip(template.matrix_row[first:last], template.matrix_value[first:last], strict=True)
    }
    assert rows == {
        "hydro_balance[plant 0]": ROUND(1.0),
        "hydro_balance[plant 1]": ROUND(-0.5),
        "hydro_transit[plant 0, 1]": ROUND(-0.5),
        "bus_balance[bus 0, b0]": 1.0,
    }
    # Arrivals of the first stage, and what moves up by one stage.
    rhs = template.rhs(0, layout.initial)
    assert rhs[template.index.row("hydro_balance[plant 1]")] == 6.0
    assert rhs[template.index.row("hydro_transit[plant 0, 1]")] == 2.0
    last_stage = template_of(case, 2)
    ends = [last_stage.index.column(f"hydro_in_transit[plant 0, {j}]") for j in (1, 2)]
    assert last_stage.col_upper[ends].tolist() == [0.0, 0.0]


def test_travel_over_several_stages_of_unequal_length():
    # Released in 10 h, under way 25 h: hours 25..35 of a study of 10, 20 and 30 h: half each later stage.
    case = small_study(
        hours=((10.0,), (20.0,), (30.0,)),
        hydros=[plant(0, downstream_id=1, travel_time_hours=25.0), plant(1)],
    )
    layout = StateLayout(case)
    assert layout.transit_depth.tolist() == [2, 0]
    template = template_of(case)
    column = template.index.column("hydro_spillage[plant 0, b0]")
    first, last = template.matrix_start[column], template.matrix_start[column + 1]
    rows = {
        template.row_names[row]: value
        for row, value in zip(template.matrix_row[first:last], template.matrix_value[first:last], strict=True)
    }
    assert rows == {
        "hydro_balance[plant 0]": ROUND(0.036),
        "hydro_transit[plant 0, 1]": ROUND(-0.018),
        "hydro_transit[plant 0, 2]": ROUND(-0.018),
    }


def test_travel_between_blocks_in_order():
    half = HOURS / 2.0
    case = small_study(
        hours=((half, half), (half, half)),
        mode="chronological",
        hydros=[plant(0, downstream_id=1, travel_time_hours=half / 2.0), plant(1)],
    )
    template = template_of(case)
    got = {}
    for block in ("b0", "b1"):
        column = template.index.column(f"hydro_spillage[plant 0, {block}]")
        span = slice(template.matrix_start[column], template.matrix_start[column + 1])
        got[block] = {
            template.row_names[row]: value
            for row, value in zip(template.matrix_row[span], template.matrix_value[span], strict=True)
        }
    assert got["b0"] == {
        "hydro_balance[plant 0, b0]": ROUND(0.5),
        "hydro_balance[plant 1, b0]": ROUND(-0.25),
        "hydro_balance[plant 1, b1]": ROUND(-0.25),
    }
    assert got["b1"] == {
        "hydro_balance[plant 0, b1]": ROUND(0.5),
        "hydro_balance[plant 1, b1]": ROUND(-0.25),
        "hydro_transit[plant 0, 1]": ROUND(-0.25),
    }


def test_training_with_water_under_way():
    # 40 hm3 above a plant below of equal productivity without reservoir: 1 hm3 gives 1 MW above and, half
    # at once and half a stage later, 1 MW below. Load is 30 MW in three stages. In the last stage half of
    # the release is lost, so 1 hm3 gives 1.5 MW there and 2 MW before. All load of the first two stages can
    # be met with less than 40 hm3, and the rest goes to the last stage; see the sums below.
    result = train(travelling_study(), backend="local")
    # r1, r2, r3 releases: generation 1.5 r1, 1.5 r2 + 0.5 r1, 1.5 r3 + 0.5 r2 with r1 + r2 + r3 = 40.
    # The total is 1.5 * 40 + 0.5 (r1 + r2), at most when r3 is least: r1 = 20, r2 = 40/3 fill the load of two
    # stages, r3 = 20/3 gives 10 + 20/3 MW in the third one.
    served = 30.0 + 30.0 + 10.0 + 20.0 / 3.0
    assert result.lower_bound == ROUND((90.0 - served) * 10.0 * HOURS, rel=1e-9)
    assert result.upper_bound == ROUND(result.lower_bound, rel=1e-9)


# Thermal plants committed ahead


def committed_study():
    """Delivered one stage after the decision; the first delivery was decided before the study."""
    deliveries = tuple(
        AnticipatedDelivery(t, t - 1, 12.0 if t == 0 else None, 5.0, 40.0, 10.0, HOURS) for t in range(3)
    )
    return small_study(
        hours=((HOURS * 0.75, HOURS * 0.25),) * 2,
        thermals=[Thermal(0, "gas", 0, deliveries)],
        load=[[20.0], [30.0]],
        data={"thermal_min_mw": 0.0, "thermal_max_mw": 40.0, "thermal_cost": 10.0},
    )


def test_commitment_is_delivered_on_average_and_paid_when_decided():
    case = committed_study()
    layout = StateLayout(case)
    assert layout.names == ("thermal_commitment[gas, 1]",)
    assert layout.initial.tolist() == [12.0]
    # 12 MW on average: 8 MW are missing. Without cuts the next delivery is decided at its minimum, and the
    # future costs at least the minimum of the last one.
    cost, value = solve(case)
    mean = 0.75 * value["thermal_generation[gas, b0]"] + 0.25 * value["thermal_generation[gas, b1]"]
    assert mean == ROUND(12.0)
    assert cost == ROUND((8.0 * DEFICIT + 5.0 * 10.0 + 5.0 * 10.0) * HOURS)


def test_training_decides_commitments():
    # Stage 0: 8 MW missing, 30 MW ordered for stage 1; there 5 MW are ordered for after the study.
    result = train(committed_study(), backend="local")
    expected = (8.0 * DEFICIT + 30.0 * 10.0 + 5.0 * 10.0) * HOURS
    assert result.lower_bound == ROUND(expected, rel=1e-9)
    assert result.upper_bound == ROUND(expected, rel=1e-9)
    assert result.policy.state_names == ("thermal_commitment[gas, 1]",)


def test_commitments_two_stages_ahead_are_carried():
    deliveries = tuple(
        AnticipatedDelivery(t, max(t - 2, -1), (6.0, 8.0, None)[t], 0.0, 40.0, 10.0, HOURS) for t in range(3)
    )
    case = small_study(
        hours=((HOURS,),) * 3,
        thermals=[Thermal(0, "gas", 0, deliveries)],
        load=20.0,
        data={"thermal_max_mw": 40.0},
    )
    assert StateLayout(case).initial.tolist() == [6.0, 8.0]
    names = template_of(case).col_names
    assert {"anticipated_carried[gas, 1]", "anticipated_decision[gas, 2]"} <= set(names)
    assert {"anticipated_carried[gas, 1]", "anticipated_idle[gas, 2]"} <= set(template_of(case, 1).col_names)
    result = train(case, backend="local")
    assert result.lower_bound == ROUND(((14.0 + 12.0) * DEFICIT + 20.0 * 10.0) * HOURS, rel=1e-9)


# Contracts and sources


def test_contracts_buy_and_sell():
    contracts = (Contract(0, "buy", 0, "import"), Contract(1, "sell", 0, "export"))
    case = small_study(
        thermals=THERMAL,
        load=20.0,
        contracts=contracts,
        data={
            "thermal_cost": 10.0,
            "contract_min_mw": [2.0, 0.0],
            "contract_max_mw": [8.0, 30.0],
            "contract_price": [15.0, -12.0],
        },
    )
    # At least 2 MW are bought at 15; 18 + 30 MW are made at 10 and 30 MW sold at 12.
    cost, value = solve(case)
    assert value["contract_power[sell, b0]"] == ROUND(30.0)
    assert cost == ROUND((2.0 * 15.0 + 48.0 * 10.0 - 30.0 * 12.0) * HOURS)


def test_rewards_bound_the_future_cost_from_below():
    contract = Contract(0, "sell", 0, "export")
    values = {"contract_max_mw": 30.0, "contract_price": -12.0}
    case = small_study(hours=((HOURS,),) * 2, contracts=(contract,), data=values)
    first = template_of(case)
    floor = first.col_lower[first.theta_col] * first.cost_scale
    assert floor == ROUND(-30.0 * 12.0 * HOURS)
    endless = small_study(
        hours=((HOURS,),) * 2, contracts=(contract,), data=values | {"contract_max_mw": np.inf}
    )
    with pytest.raises(CobreError, match="no lower bound") as caught:
        template_of(endless)
    assert caught.value.context["columns"] == ["contract_power[sell, b0]"]


@pytest.mark.parametrize(("curtails", "generated", "excess"), [(True, 20.0, 0.0), (False, 24.0, 4.0)])
def test_sources_are_curtailed_only_if_they_may(curtails, generated, excess):
    # 30 MW at 80 % of the block: 24 MW for 20 MW of load. Excess costs 5, curtailment 3 $/MWh.
    case = small_study(
        load=20.0,
        non_controllables=(NonControllable(0, "wind", 0, 30.0, curtails),),
        data={
            "ncs_available_mw": 30.0,
            "ncs_factor": 0.8,
            "curtailment_cost": 3.0,
            "excess_cost": 5.0,
        },
    )
    cost, value = solve(case)
    assert value["non_controllable_generation[wind, b0]"] == ROUND(generated)
    assert value["bus_excess[bus 0, b0]"] == ROUND(excess, abs=1e-9)
    assert cost == ROUND((-3.0 * generated + 5.0 * excess) * HOURS)


def test_availability_follows_the_noise():
    case = small_study(
        non_controllables=(NonControllable(0, "wind", 0, 30.0), NonControllable(1, "sun", 0, 10.0)),
        data={"ncs_available_mw": [0.0, 6.0]},
        scenario={
            "ncs_mean": np.array([[0.5, 0.0]]),
            "ncs_std": np.array([[0.4, 0.0]]),
            "ncs_has_stats": np.array([True, False]),
        },
    )
    case = replace(case, stages=(replace(case.stages[0], num_openings=40),))
    tree = build_opening_tree(case)
    template = build_templates(case, tree)[0]
    rows = [template.index.row(f"non_controllable_available[{name}, b0]") for name in ("wind", "sun")]
    share = np.clip(0.5 + 0.4 * tree.noise[:, 0], 0.0, 1.0)
    assert (share == 1.0).any()
    np.testing.assert_allclose(template.opening_rhs[:, rows[0]], 30.0 * share)
    np.testing.assert_array_equal(template.opening_rhs[:, rows[1]], 6.0)
    column = template.index.column("non_controllable_generation[wind, b0]")
    assert template.col_upper[column] == 30.0 * share.max()


def test_source_out_of_service_is_absent():
    case = small_study(
        non_controllables=(NonControllable(0, "wind", 0, 30.0),),
        data={"ncs_available_mw": 0.0, "ncs_in_service": np.array([False])},
    )
    assert not [name for name in template_of(case).col_names if name.startswith("non_controllable")]
