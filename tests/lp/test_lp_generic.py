"""Rows of generic constraints: what each variable stands for, and what a violation costs."""

from dataclasses import replace

import numpy as np
import pytest
from builders.small_studies import DEFICIT, HOURS, planes, plant, small_study, solve, template_of

from cobre.case.model import (
    AnticipatedDelivery,
    Contract,
    Diversion,
    EvaporationModel,
    GenericRow,
    GenericTerm,
    HydroStatus,
    Line,
    NonControllable,
    PumpingStation,
    Thermal,
    UnitGroup,
)

INF = float("inf")
QUARTER = HOURS / 4.0


def term(kind, entity=0, block=None, coefficient=1.0, bus=None):
    return GenericTerm(coefficient, kind, entity, block, bus)


def row(*terms, lower=-INF, upper=INF, block=None, penalty=None, name="rule", number=0):
    return GenericRow(number, name, 0, block, terms, lower, upper, penalty)


def rich_study(*rows, mode="parallel"):
    """One of everything: two blocks, two buses, a plant with two groups that diverts to another one."""
    groups = (UnitGroup(0, "left", 0), UnitGroup(1, "right", 1))
    commitment = AnticipatedDelivery(1, 0, None, 0.0, 50.0, 2.0, HOURS)
    return small_study(
        hours=((3 * QUARTER, QUARTER), (3 * QUARTER, QUARTER)),
        mode=mode,
        buses=2,
        lines=(Line(0, "line", 0, 1),),
        hydros=[plant(0, unit_groups=groups, diversion=Diversion(1), initial_storage_hm3=30.0), plant(1)],
        thermals=[Thermal(0, "gas", 0, (commitment,)), Thermal(1, "coal", 1)],
        non_controllables=(NonControllable(0, "wind", 0, 9.0),),
        pumping_stations=(PumpingStation(0, "pump", 0, 1, 0, 0.5),),
        contracts=(Contract(0, "buy", 0, "import"), Contract(1, "sell", 1, "export")),
        load=50.0,
        inflow=[[7.0, 5.0]] * 2,
        production=((planes([0.0, 0.01, 0.9, 0.0]), planes([0.0, 0.0, 0.8, 0.0])),) * 2,
        evaporation=((EvaporationModel(0.1, 0.01, 50.0), None),) * 2,
        generic=(rows, ()),
        data={
            "withdrawal_m3s": [4.0, 0.0],
            "storage_min_hm3": [20.0, 0.0],
            "diversion_max_m3s": [10.0, 0.0],
            "thermal_cost": [1.0, 10.0],
            "pumping_max_m3s": 10.0,
            "contract_max_mw": 10.0,
            "contract_price": [20.0, -1.0],
            "ncs_available_mw": 9.0,
            "line_direct_mw": 20.0,
            "line_reverse_mw": 20.0,
            "penalties": {
                "spillage": 0.01,
                "water_withdrawal_violation_neg": 1e4,
                "water_withdrawal_violation_pos": 1e4,
                "evaporation_violation_pos": 1e4,
                "evaporation_violation_neg": 1e4,
                "storage_violation_below": 1e6,
            },
        },
    )


def coefficients(case):
    """Coefficients of the only generic row by column name, and its limits."""
    template = template_of(case)
    (place,) = template.index.rows["generic"].ids
    found = {}
    for column, name in enumerate(template.col_names):
        for entry in range(template.matrix_start[column], template.matrix_start[column + 1]):
            if template.matrix_row[entry] == place:
                found[name] = float(template.matrix_value[entry])
    return found, float(template.row_lower[place]), float(template.row_upper[place])


@pytest.mark.parametrize(
    ("terms", "expected"),
    [
        ([term("hydro_storage")], {"hydro_storage_final[plant 0]": 1.0}),
        ([term("hydro_storage_final")], {"hydro_storage_final[plant 0]": 1.0}),
        ([term("hydro_storage_initial", 1)], {"hydro_storage_initial[plant 1]": 1.0}),
        (
            [term("hydro_turbined", block=1)],
            {"hydro_turbined[plant 0/left, b1]": 1.0, "hydro_turbined[plant 0/right, b1]": 1.0},
        ),
        ([term("hydro_turbined", block=1, bus=1)], {"hydro_turbined[plant 0/right, b1]": 1.0}),
        ([term("hydro_generation", block=0, bus=0)], {"hydro_generation[plant 0/left, b0]": 1.0}),
        ([term("hydro_spillage", block=0, coefficient=-2.0)], {"hydro_spillage[plant 0, b0]": -2.0}),
        ([term("hydro_diversion", block=1)], {"hydro_diversion[plant 0, b1]": 1.0}),
        (
            [term("hydro_outflow", 1, block=1)],
            {"hydro_turbined[plant 1, b1]": 1.0, "hydro_spillage[plant 1, b1]": 1.0},
        ),
        ([term("hydro_evaporation", block=1)], {"hydro_evaporation[plant 0]": 1.0}),
        (
            [term("hydro_inflow"), term("hydro_inflow", 1, coefficient=3.0)],
            {"hydro_inflow[plant 0]": 1.0, "hydro_inflow[plant 1]": 3.0},
        ),
        ([term("thermal_generation", 1, block=1)], {"thermal_generation[coal, b1]": 1.0}),
        ([term("anticipated_decision")], {"anticipated_decision[gas, 1]": 1.0}),
        ([term("line_direct", block=0)], {"line_direct[line, b0]": 1.0}),
        ([term("line_reverse", block=0)], {"line_reverse[line, b0]": 1.0}),
        (
            [term("line_exchange", block=0, coefficient=2.0)],
            {"line_direct[line, b0]": 2.0, "line_reverse[line, b0]": -2.0},
        ),
        ([term("bus_deficit", 1, block=0)], {"bus_deficit[bus 1, 1, b0]": 1.0}),
        ([term("bus_excess", 1, block=0)], {"bus_excess[bus 1, b0]": 1.0}),
        ([term("pumping_flow", block=0)], {"pumping_flow[pump, b0]": 1.0}),
        ([term("pumping_power", block=0)], {"pumping_flow[pump, b0]": 0.5}),
        ([term("contract_import", 0, block=0)], {"contract_power[buy, b0]": 1.0}),
        ([term("contract_export", 1, block=0)], {"contract_power[sell, b0]": 1.0}),
        ([term("non_controllable_generation", block=0)], {"non_controllable_generation[wind, b0]": 1.0}),
        ([term("non_controllable_curtailment", block=0)], {"non_controllable_curtailment[wind, b0]": 1.0}),
        (
            [term("thermal_generation", 1)],
            {"thermal_generation[coal, b0]": 1.0, "thermal_generation[coal, b1]": 1.0},
        ),
        (
            [
                term("thermal_generation", 1, block=0),
                term("thermal_generation", 1, block=0, coefficient=-1.0),
            ],
            {},
        ),
    ],
)
def test_variables(terms, expected):
    found, lower, upper = coefficients(rich_study(row(*terms, lower=1.0, upper=8.0)))
    assert found == expected
    assert (lower, upper) == (1.0, 8.0)


def test_productivity_enters_generation():
    case = rich_study(row(term("hydro_generation", 1, block=0), upper=1.0))
    case = replace(
        case,
        production=tuple(
            (stage[0], replace(stage[1], kind="constant_productivity")) for stage in case.production
        ),
    )
    case = replace(
        case, production=tuple((a, replace(b, productivity_mw_per_m3s=0.7)) for a, b in case.production)
    )
    assert coefficients(case)[0] == {"hydro_turbined[plant 1, b0]": 0.7}


def test_constants_move_to_the_limits():
    # Useful volume is v - 20, the withdrawal 4 - below + above.
    useful = row(term("hydro_useful_volume_final", coefficient=2.0), lower=1.0, upper=9.0)
    found, lower, upper = coefficients(rich_study(useful))
    assert (found, lower, upper) == ({"hydro_storage_final[plant 0]": 2.0}, 41.0, 49.0)
    found, lower, _ = coefficients(rich_study(row(term("hydro_useful_volume_initial"), lower=1.0)))
    assert (found, lower) == ({"hydro_storage_initial[plant 0]": 1.0}, 21.0)
    found, lower, _ = coefficients(rich_study(row(term("hydro_withdrawal"), lower=3.0)))
    assert found == {"hydro_withdrawal_below[plant 0]": -1.0, "hydro_withdrawal_above[plant 0]": 1.0}
    assert lower == -1.0


def test_boundaries_of_blocks_in_order():
    for kind, block, column in (
        ("hydro_storage_initial", 0, "hydro_storage_initial[plant 0]"),
        ("hydro_storage_initial", 1, "hydro_storage_block[plant 0, b0]"),
        ("hydro_storage_final", 0, "hydro_storage_block[plant 0, b0]"),
        ("hydro_storage_final", 1, "hydro_storage_final[plant 0]"),
        ("hydro_evaporation", 1, "hydro_evaporation[plant 0, b1]"),
    ):
        case = rich_study(row(term(kind, block=block), upper=1.0), mode="chronological")
        assert coefficients(case)[0] == {column: 1.0}
    mean = coefficients(rich_study(row(term("hydro_evaporation"), upper=1.0), mode="chronological"))[0]
    assert mean == {"hydro_evaporation[plant 0, b0]": 0.75, "hydro_evaporation[plant 0, b1]": 0.25}


def test_what_is_out_of_service_counts_nothing():
    case = rich_study(row(term("hydro_turbined", block=0), term("hydro_spillage", 1, block=0), upper=1.0))
    out = np.array([HydroStatus.OUT, HydroStatus.OPERATING], np.int8)
    case = replace(case, stage_data=tuple(replace(data, hydro_status=out) for data in case.stage_data))
    assert coefficients(case)[0] == {"hydro_spillage[plant 1, b0]": 1.0}


@pytest.mark.parametrize(
    ("limits", "cost"),
    [
        ({"upper": 12.0}, 8.0 * DEFICIT),  # hard: the rest of 20 MW is missing
        ({"upper": 12.0, "penalty": 300.0}, 8.0 * 300.0 + 20.0 * 10.0),
        ({"lower": 26.0, "penalty": 300.0}, 20.0 * 10.0 + 6.0 * 17.0),  # excess at 7, generation at 10
        ({"lower": 26.0, "penalty": 16.0}, 20.0 * 10.0 + 6.0 * 16.0),
        ({"lower": 18.0, "upper": 18.0, "penalty": 300.0}, 20.0 * 10.0 + 2.0 * 300.0),
    ],
)
def test_violations_cost_their_hours(limits, cost):
    case = small_study(
        thermals=[Thermal(0, "coal", 0)],
        load=20.0,
        data={"thermal_cost": 10.0, "excess_cost": 7.0},
        generic=((row(term("thermal_generation", block=0), block=0, **limits),),),
    )
    expected = cost + (12.0 * 10.0 if "penalty" not in limits else 0.0)
    assert solve(case)[0] == pytest.approx(expected * HOURS)


def test_rows_of_blocks_and_stages_are_told_apart_in_names_and_hours():
    rows = (
        row(term("thermal_generation", 1, block=0), upper=1.0, block=0, penalty=5.0),
        row(term("thermal_generation", 1, block=1), upper=1.0, block=1, penalty=5.0),
        row(term("hydro_storage"), lower=1.0, penalty=5.0),
        row(term("hydro_storage", 1), lower=1.0, number=4),
    )
    template = template_of(rich_study(*rows))
    names = [name for name in template.row_names if name.startswith("generic")]
    assert names == ["generic[rule, b0]", "generic[rule, b1]", "generic[rule #0.2]", "generic[rule #4.3]"]
    slacks = {
        name: template.cost[column] * template.cost_scale
        for column, name in enumerate(template.col_names)
        if name.startswith("generic_")
    }
    assert slacks == {
        "generic_above[rule, b0]": pytest.approx(5.0 * 3 * QUARTER),
        "generic_above[rule, b1]": pytest.approx(5.0 * QUARTER),
        "generic_below[rule #0.2]": pytest.approx(5.0 * HOURS),
    }
