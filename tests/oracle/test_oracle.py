"""The oracle itself against optima computed by hand."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest
from builders.case_files import (
    Files,
    Json,
    add_bus,
    add_plant,
    hydros_of,
    limits,
    line,
    plant,
    productivity,
    smallest,
    stages_of,
    write_files,
)
from builders.shared_cases import reference_bound, shared_cases

from oracle import Opening, optimum

HAND_DERIVED = {
    "d01-thermal-dispatch": Fraction(182500),
    "d02-single-hydro": Fraction(23635000, 9),
    "d03-two-hydro-cascade": Fraction(4171000, 3),
    "d04-transmission": Fraction(5263443883, 657),
    "d09-multi-deficit": Fraction(80738000),
    "d24-productivity-override": Fraction(23945000, 9),
}


@pytest.mark.parametrize("name", HAND_DERIVED)
def test_public_cases_with_a_derivation(name: str) -> None:
    derived = float(HAND_DERIVED[name])
    assert optimum(shared_cases() / name) == pytest.approx(derived, rel=1e-9)
    assert reference_bound(name) == pytest.approx(derived, rel=1e-9)


@pytest.mark.parametrize("name", ["scenarios/inflow_history.parquet", "system/windmills.json"])
def test_refuses_what_it_does_not_model(tmp_path: Path, name: str) -> None:
    path = write_files(tmp_path, {**smallest([10.0]), name: []})
    with pytest.raises(NotImplementedError, match=name):
        optimum(path)


def reservoir_case(inflow_m3s: list[float], loads_mw: list[float]) -> Files:
    """The smallest case with a reservoir of 360 hm3 (100 m3/s for a stage), empty at the start."""
    files = smallest(loads_mw, inflow_m3s)
    hydros_of(files)[0] = plant(0, 360.0)
    files["penalties.json"]["hydro"]["storage_violation_below_cost"] = 5000.0
    return files


def solve(directory: Path, files: Files, openings: dict[int, list[Opening]] | None = None) -> float:
    return optimum(write_files(directory, files), openings)


def test_water_is_carried_to_where_it_is_needed(tmp_path: Path) -> None:
    # 90 m3/s arrive in stage 0, 0 in stage 1; turbines take 50 in each, 10 more than arrive.
    case = reservoir_case([90.0, 0.0], [60.0, 60.0])
    assert solve(tmp_path, case) == pytest.approx((60 + 60 - 90) * 1000 * 100)


def test_spillage_and_full_reservoir(tmp_path: Path) -> None:
    # 200 arrive: 50 turbined, 100 stored (360 hm3), 50 spilled; stage 1 has 100, turbines 50, keeps 50.
    case = reservoir_case([200.0, 0.0], [50.0, 50.0])
    assert solve(tmp_path, case) == pytest.approx(50 * 1000 * 0.5)


def test_storage_above_the_maximum_is_released(tmp_path: Path) -> None:
    # 540 hm3 = 150 m3/s at the start: 50 turbined, 100 stored, none spilled.
    case = reservoir_case([0.0, 0.0], [60.0, 60.0])
    case["initial_conditions.json"]["storage"][0]["value_hm3"] = 540.0
    assert solve(tmp_path, case) == pytest.approx(20 * 1000 * 100)


def test_missing_initial_storage_is_the_minimum(tmp_path: Path) -> None:
    case = reservoir_case([10.0, 10.0], [60.0, 60.0])
    case["initial_conditions.json"]["storage"] = []
    hydros_of(case)[0]["reservoir"]["min_storage_hm3"] = 72.0
    assert solve(tmp_path, case) == pytest.approx(100 * 1000 * 100)


def test_storage_floor_is_priced_when_the_start_is_below_it(tmp_path: Path) -> None:
    # The floor is 36 hm3, the start 0. The 10 m3/s of stage 0 (36 hm3) are kept at no loss until stage 1,
    # which turbines all 20: a m3/s is worth 100,000 $ and holding its 3.6 hm3 would save only 18,000 $.
    case = reservoir_case([10.0, 10.0], [60.0, 60.0])
    hydros_of(case)[0]["reservoir"]["min_storage_hm3"] = 36.0
    assert solve(tmp_path, case) == pytest.approx(100 * 1000 * 100 + 36 * 5000)
    # At 30,000 $/hm3 the last 3.6 hm3 are worth 108,000 $ in store: the floor is kept.
    hydros_of(case)[0]["penalties"] = {"storage_violation_below_cost": 30000.0}
    assert solve(tmp_path, case) == pytest.approx(110 * 1000 * 100)


@pytest.mark.parametrize(
    ("change", "violation"),
    [
        ({"outflow": {"min_outflow_m3s": 30.0}}, 2 * 500 * 20),
        (
            {"unit_groups": [{"id": 0, "name": "u", "bus_id": 0, **limits(50, 50, least_m3s=25)}]},
            2 * 500 * 15,
        ),
        ({"unit_groups": [{"id": 0, "name": "u", "bus_id": 0, **limits(50, 50, least_mw=12)}]}, 2 * 500 * 2),
    ],
    ids=["outflow", "turbined", "generation"],
)
def test_minima_may_be_violated_at_a_price(tmp_path: Path, change: Json, violation: float) -> None:
    case = reservoir_case([10.0, 10.0], [60.0, 60.0])
    hydros_of(case)[0].update(change)
    assert solve(tmp_path, case) == pytest.approx(100 * 1000 * 100 + violation * 1000)


def test_maximum_outflow_may_be_violated_at_a_price(tmp_path: Path) -> None:
    # Run of river: all 70 m3/s must pass, 50 of them through the turbines, 30 above the limit.
    case = reservoir_case([70.0, 70.0], [60.0, 60.0])
    hydros_of(case)[0]["reservoir"]["max_storage_hm3"] = 0.0
    hydros_of(case)[0]["outflow"]["max_outflow_m3s"] = 40.0
    assert solve(tmp_path, case) == pytest.approx(2 * 1000 * (10 * 100 + 20 * 0.5 + 30 * 500))


def test_unit_groups_limit_power_and_flow_on_their_own_bus(tmp_path: Path) -> None:
    # Productivity 0.5: group a gives 8 MW (limit in MW), group b 10 MW (20 m3/s); no line between the buses.
    case = reservoir_case([50.0, 50.0], [60.0, 60.0])
    add_bus(case, 7, [30.0, 30.0])
    hydros_of(case)[0]["unit_groups"] = [
        {"id": 0, "name": "a", "bus_id": 0, **limits(8.0, 30.0)},
        {"id": 1, "name": "b", "bus_id": 7, **limits(25.0, 20.0)},
    ]
    case["system/hydro_production_models.json"]["production_models"] = [productivity(0, 0.5)]
    # 36 m3/s pass the turbines, so the surplus of 14 m3/s fills 2 * 50.4 hm3 of 360 and nothing spills.
    expected = 2 * 1000 * ((60 - 8) * 100 + (30 - 10) * 1000)
    assert solve(tmp_path, case) == pytest.approx(expected)


def test_cascade_passes_water_down(tmp_path: Path) -> None:
    # 10 m3/s pass the upper plant (1 MW per m3/s) and, with 5 more, the lower one (2 MW per m3/s).
    case = reservoir_case([10.0, 10.0], [60.0, 60.0])
    hydros_of(case)[0]["downstream_id"] = 3
    add_plant(case, plant(3, 360.0), [5.0, 5.0], value=2.0)
    assert solve(tmp_path, case) == pytest.approx(2 * 1000 * 100 * (60 - 10 - 30))


def test_line_and_blocks_and_excess(tmp_path: Path) -> None:
    # The far bus (load 10, then factor 3 in the second block) is fed by a line of 25 MW. The thermal must
    # give 40 MW: 30 of them are needed in block 0, 10 too many (excess is the last way out).
    case = reservoir_case([0.0, 0.0], [20.0, 20.0])
    for stage in stages_of(case):
        stage["blocks"] = [
            {"id": 1, "name": "high", "hours": 200.0},
            {"id": 0, "name": "low", "hours": 800.0},
        ]
    case["system/thermals.json"]["thermals"][0]["generation"]["min_mw"] = 40.0
    add_bus(case, 2, [10.0, 10.0])
    case["system/lines.json"]["lines"] = [
        line(0, 2, 0, 0.0, capacity={"direct_mw": 0.0, "reverse_mw": 25.0}, exchange_cost=2.0)
    ]
    case["scenarios/load_factors.json"] = {
        "load_factors": [
            {"bus_id": 2, "stage_id": t, "block_factors": [{"block_id": 1, "factor": 3.0}]} for t in (0, 1)
        ]
    }
    low = 40 * 100 + 10 * 2 + 10 * 1
    high = 45 * 100 + 25 * 2 + 5 * 1000
    assert solve(tmp_path, case) == pytest.approx(2 * (800 * low + 200 * high))


def test_discount_precedence(tmp_path: Path) -> None:
    # 1461 days are exactly four years. Stage 0 has its own rate, 1 the transition's, 2 the global one.
    case = reservoir_case([0.0] * 4, [1.0] * 4)
    graph = case["stages.json"]["policy_graph"]
    graph["annual_discount_rate"] = 0.1
    graph["transitions"] = [
        {"source_id": 0, "target_id": 1, "probability": 1.0, "annual_discount_rate_override": 9.0},
        {"source_id": 1, "target_id": 2, "probability": 1.0, "annual_discount_rate_override": 0.0},
        {"source_id": 2, "target_id": 3, "probability": 1.0},
    ]
    stages_of(case)[0]["annual_discount_rate_override"] = 0.25
    first = Fraction(4, 5) ** 4
    factors = [Fraction(1), first, first, first * Fraction(10, 11) ** 4]
    assert solve(tmp_path, case) == pytest.approx(float(100_000 * sum(factors)), rel=1e-12)


def test_inflow_slack(tmp_path: Path) -> None:
    # 5 m3/s are missing in stage 0: bought at 1000 $/(m3/s h); the slack buys no more than that.
    case = reservoir_case([-5.0, 10.0], [60.0, 60.0])
    with pytest.raises(ArithmeticError, match="infeasible"):
        solve(tmp_path, case)
    del case["config.json"]["modeling"]
    assert solve(tmp_path, case) == pytest.approx(1000 * (60 * 100 + 5 * 1000 + 50 * 100))


def test_decisions_do_not_look_ahead(tmp_path: Path) -> None:
    # 20 m3/s are in store. Stage 1 has load 10 or 90, thermal 60 MW: in the high case each MW of water saves
    # 1000 $/MWh up to 30 MW, in the low case 100 $ up to 10 MW. In stage 0 (load 20) a MW saves 100 $.
    # Storing all 20: 0.5 * (0 + (60 * 100 + 10 * 1000)) + 20 * 100 = 10,000 a 1000 h; storing 1 less saves
    # 100 now and costs 0.5 * 1000 later. A clairvoyant would use 10 now when the load will be low.
    case = reservoir_case([0.0, 0.0], [20.0, 50.0])
    case["initial_conditions.json"]["storage"][0]["value_hm3"] = 72.0
    case["system/thermals.json"]["thermals"][0]["generation"]["max_mw"] = 60.0
    low, high = (Opening({0: 0.0}, {0: load}) for load in (10.0, 90.0))
    value = solve(tmp_path, case, {1: [low, high]})
    assert value == pytest.approx(1000 * (20 * 100 + 0.5 * 0 + 0.5 * (60 * 100 + 10 * 1000)))
    known = [solve(tmp_path, case, {1: [opening]}) for opening in (low, high)]
    assert 0.5 * sum(known) == pytest.approx(value - 0.5 * 10 * 100 * 1000)


def test_first_stage_openings_branch_too(tmp_path: Path) -> None:
    # Two inflows in stage 0 and two in stage 1, water short everywhere: each is worth 100 $/MWh.
    case = reservoir_case([0.0, 0.0], [60.0, 60.0])
    openings = {
        0: [Opening({0: value}) for value in (5.0, 15.0)],
        1: [Opening({0: value}) for value in (0.0, 8.0)],
    }
    assert solve(tmp_path, case, openings) == pytest.approx(1000 * 100 * (120 - 10 - 4))


def test_unit_of_cost_does_not_change_the_optimum(tmp_path: Path) -> None:
    case = write_files(tmp_path, reservoir_case([90.0, 0.0], [60.0, 60.0]))
    for units in ([1e-6], [1e6], [1e-3, 1.0, 1e3]):
        assert optimum(case, cost_units=units) == pytest.approx(3e6)
