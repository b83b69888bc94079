"""The energy balance of a case: numbers derived by hand, and warnings of what cannot be meant."""

import datetime

import numpy as np
import pyarrow as pa
import pytest
from builders.paths import EXAMPLES
from builders.shared_cases import shared_cases, shared_system

import cobre.case
from cobre.case.balance import EnergyBalance, balance_warnings, energy_balance
from cobre.errors import Problem
from cobre.stochastic.par import inflow_model
from cobre.templates import TEMPLATES

LOADS = "scenarios/load_seasonal_stats.parquet"


def balance_of(case: cobre.case.Case) -> EnergyBalance:
    return energy_balance(case, inflow_model(case).mean_m3s)


def doubts(case: cobre.case.Case) -> list[Problem]:
    """What the checks of this package warn of, whatever else is odd."""
    fields = ("blocks", "start_date", "cost_per_mwh", "price_per_mwh")
    loading = [problem for problem in case.warnings if problem.context.get("field") in fields]
    return [*loading, *balance_warnings(balance_of(case), len(case.stages))]


def four_region() -> cobre.case.format.editing.CaseEditor:
    return cobre.case.build(TEMPLATES["four-region"].build(), "four-region").edit()


def scaled(table: pa.Table, name: str, factor: float) -> pa.Table:
    values = table.column(name).to_numpy() * factor
    return table.set_column(table.column_names.index(name), name, pa.array(values))


def test_numbers_by_hand() -> None:
    """Two plants in a river, 0.8 and 0.6 MW per m3/s: water of the upper one passes both."""
    case = cobre.case.load(EXAMPLES / "two-plant-cascade")
    balance = balance_of(case)
    upper, lower = (models.productivity_mw_per_m3s for models in case.production[0])
    inflow = case.scenarios.inflow_mean_m3s
    hours = np.array([stage.hours for stage in case.stages])
    power = inflow[:, 0] * (upper + lower) + inflow[:, 1] * lower
    np.testing.assert_allclose(balance.mean_inflow_energy_mw, (power * hours).sum() / hours.sum())
    load = case.scenarios.load_mean_mw.sum(axis=1)
    np.testing.assert_allclose(balance.mean_load_mw, (load * hours).sum() / hours.sum())
    first = case.stage_data[0]
    volume = first.storage_max_hm3 - first.storage_min_hm3
    # 1 hm3 is 1e6 m3; 3600 m3 carry 1 m3/s for an hour.
    stored = (volume[0] * (upper + lower) + volume[1] * lower) * 1e6 / 3600.0
    np.testing.assert_allclose(balance.stored_energy_mwh, stored)
    np.testing.assert_allclose(balance.storage_days, stored / 24.0 / balance.mean_load_mw)
    assert (balance.load_mw, balance.capacity_mw) == (298.0, 290.0)
    assert balance.capacity_by_kind == {"thermal": 180.0, "hydro": 110.0}


CERTAIN_DEFICITS = {"thermal-merit-order": "130 MW", "two-plant-cascade": "8 MW", "secure-import": "50 MW"}
"""Examples whose README derives a deficit, and the most of it."""


def test_no_false_alarms() -> None:
    found = {}
    for path in sorted(EXAMPLES.iterdir()):
        if (path / "config.json").exists():
            found[path.name] = doubts(cobre.case.load(path))
    for name, template in TEMPLATES.items():
        if name != "synthetic":
            found[name] = doubts(cobre.case.build(template.build(), name))
    assert len(found) > 10
    alarms = {name: [problem.message for problem in problems] for name, problems in found.items() if problems}
    assert set(alarms) == set(CERTAIN_DEFICITS)
    for name, text in CERTAIN_DEFICITS.items():
        assert len(alarms[name]) == 1
        assert f"at least {text} are not served" in alarms[name][0]


def test_shared_cases_warn_of_deficits_and_overlaps_alone() -> None:
    """d04, d09 and d20 cannot serve their load; stage 4 of d28 lies inside stage 5, and nothing has a "
    "load."""
    found = {}
    for path in sorted(shared_cases().iterdir()):
        if (path / "config.json").exists():
            found[path.name] = [problem.message for problem in doubts(cobre.case.load(path))]
    alarms = {name: texts for name, texts in found.items() if texts}
    assert set(alarms) == {
        *("d04-transmission", "d09-multi-deficit", "d20-operational-violations"),
        "d28-decomp-weekly-monthly",
    }
    assert "5 MW are not served" in alarms["d04-transmission"][0]
    assert any("8 days before stage 4 ends" in text for text in alarms["d28-decomp-weekly-monthly"])


def test_the_national_system_is_plausible() -> None:
    case = cobre.case.load(shared_system("brazil-2018"))
    assert doubts(case) == []
    balance = balance_of(case)
    # 92 GW at the peak, some 196 TWh in full reservoirs: the published figures of 2018 are of this size.
    assert 9.0e4 < balance.peak_load_mw < 9.5e4
    assert 1.8e8 < balance.stored_energy_mwh < 2.2e8
    assert 90.0 < (balance.storage_days or 0.0) < 120.0


def test_load_times_1000() -> None:
    editor = four_region()
    editor.set_table(LOADS, scaled(editor.table(LOADS), "mean_mw", 1000.0))
    (found,) = doubts(editor.build())
    assert "Load is above all capacity at 12 of 12 stages (0-11)" in found.message
    assert "7.26336e+06 MW against 10,092 MW (thermal 3,490, hydro 5,802" in found.message


def test_load_over_1000() -> None:
    editor = four_region()
    editor.set_table(LOADS, scaled(editor.table(LOADS), "mean_mw", 0.001))
    texts = [problem.message for problem in doubts(editor.build())]
    assert any("times the peak load" in text for text in texts)
    assert any("times the energy of the load" in text for text in texts)
    assert any("days of load" in text for text in texts)


def test_a_plant_above_the_cost_of_deficit() -> None:
    editor = four_region()
    plant = editor["system/thermals.json"]["thermals"][0]
    plant["cost_per_mwh"] = 4000.5
    (found,) = doubts(editor.build())
    assert found.context["entity"] == f"thermal {plant['id']} ({plant['name']})"
    assert "costs up to 4,000.5 $/MWh, but leaving load unserved costs at most 4,000 $/MWh" in found.message
    plant["cost_per_mwh"] = 3999.0
    assert doubts(editor.build()) == []


@pytest.mark.parametrize(
    ("days", "text"),
    [
        (9, "no stage has the 9 days between stage 5, which ends on {end}, and stage 6"),
        (-1, "stage 6 starts on {start}, 1 day before stage 5 ends"),
    ],
)
def test_holes_and_overlaps(days: int, text: str) -> None:
    """Stage 5 ends earlier, or later, than stage 6 begins; its hours are those of its days."""
    editor = four_region()
    stage, after = editor["stages.json"]["stages"][5:7]
    moved = datetime.date.fromisoformat(stage["end_date"]) - datetime.timedelta(days=days)
    whole = (moved - datetime.date.fromisoformat(stage["start_date"])).days
    hours = sum(block["hours"] for block in stage["blocks"])
    stage["end_date"] = moved.isoformat()
    for block in stage["blocks"]:
        block["hours"] *= 24.0 * whole / hours
    (found,) = doubts(editor.build())
    assert text.format(end=moved, start=after["start_date"]) in found.message


def test_1058_hours_in_january() -> None:
    editor = four_region()
    stage = editor["stages.json"]["stages"][0]
    assert stage["start_date"].endswith("-01-01")
    stage["blocks"][0]["hours"] += 1058.0 - sum(block["hours"] for block in stage["blocks"])
    (found,) = doubts(editor.build())
    assert "the blocks of stage 0 have 1,058 hours, but its 31 days" in found.message
    assert "have 744 (+42.2 %)" in found.message


def test_months_of_730_hours_are_usual() -> None:
    editor = four_region()
    for stage in editor["stages.json"]["stages"]:
        hours = sum(block["hours"] for block in stage["blocks"])
        for block in stage["blocks"]:
            block["hours"] *= 730.0 / hours
    assert doubts(editor.build()) == []
