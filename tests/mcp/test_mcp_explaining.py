"""Explanations against what is known otherwise: costs of the case, values of the policy, flows on lines."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp_helpers import copy_case, environment

import cobre
from cobre.errors import CobreError
from cobre.mcp.contract import Settings
from cobre.mcp.paths import Root
from cobre.mcp.tools.explain import (
    PriceArguments,
    PriceExplanation,
    WaterArguments,
    WaterExplanation,
    explain_price,
    explain_water_value,
)


@pytest.fixture(scope="module")
def settings(finished: Path) -> Settings:
    return Settings(Root.at(finished))


@pytest.fixture(scope="module")
def cascade(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """The example with two buses and a line between them, trained and simulated."""
    root = tmp_path_factory.mktemp("cascade")
    case = copy_case(root, "two-plant-cascade")
    options = ("--iterations", "10", "--scenarios", "4", "--output", str(case / "output"), "--quiet")
    subprocess.run(
        [sys.executable, "-m", "cobre", "run", str(case), *options],
        env=environment(),
        check=True,
        timeout=600,
    )
    return Settings(Root.at(root))


def price_of(settings: Settings, row: dict[str, Any]) -> PriceExplanation:
    arguments = {"bus": row["bus_id"], "stage": row["stage_id"], "scenario": row["scenario_id"]}
    return explain_price(settings, PriceArguments(output="plan/output", block=row["block_id"], **arguments))


def rows(settings: Settings, table: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (
        cobre.results.load(settings.root.path / "plan" / "output").simulation[table].to_arrow().to_pylist()
    )
    return found


def test_what_sets_a_price_is_found_in_every_stage_of_every_scenario(settings: Settings) -> None:
    document = json.loads((settings.root.path / "plan" / "system" / "thermals.json").read_text())
    costs = {plant["name"]: plant["cost_per_mwh"] for plant in document["thermals"]}
    kinds = set()
    for row in rows(settings, "buses"):
        found = price_of(settings, row)
        assert found.price == row["spot_price"]
        setting = [unit for unit in found.units if unit.sets_price]
        assert setting or found.deficit_mw > 0.0
        for unit in found.units:
            if unit.kind == "thermal":
                assert unit.marginal_cost == costs[unit.name]
                # Merit order: who costs less than the price runs, who costs more does not.
                if unit.marginal_cost < found.price * 0.999:
                    assert unit.position == "at its maximum"
                if unit.marginal_cost > found.price * 1.001:
                    assert unit.position == "at its minimum"
        for unit in setting:
            assert unit.marginal_cost == pytest.approx(found.price, rel=1e-4)
            assert any(unit.name in text for text in found.statements)
        kinds |= {unit.kind for unit in setting}
    assert kinds == {"thermal", "hydro"}


def test_lines_below_their_limits_connect_prices_and_no_others(cascade: Settings) -> None:
    congested = set()
    for row in rows(cascade, "buses"):
        found = price_of(cascade, row)
        for line in found.lines:
            congested.add(line.congested)
            assert line.congested == (abs(line.net_flow_mw) >= line.most_mw * (1.0 - 1e-6))
            both = {line.source, line.target} <= set(found.prices)
            assert both == (not line.congested and line.net_flow_mw != 0.0)
            if both:
                ends = (line.source, line.target) if line.net_flow_mw > 0.0 else (line.target, line.source)
                sent, received = (found.prices[end] for end in ends)
                assert received * (1.0 - line.loss) == pytest.approx(sent + line.cost, abs=1e-6)
    assert False in congested


def test_water_is_worth_what_the_policy_states(settings: Settings) -> None:
    policy = cobre.load_policy(settings.root.path / "plan" / "output")
    table = rows(settings, "hydros")
    last = max(row["stage_id"] for row in table)
    for row in table:
        found: WaterExplanation = explain_water_value(
            settings,
            WaterArguments(
                output="plan/output",
                hydro=row["hydro_name"],
                stage=row["stage_id"],
                scenario=row["scenario_id"],
            ),
        )
        same = [
            other
            for other in table
            if all(other[name] == row[name] for name in ("scenario_id", "stage_id", "block_id"))
        ]
        state = {other["hydro_name"]: other["storage_final_hm3"] for other in same}
        stage = [node.stage_id for node in policy.nodes].index(row["stage_id"])
        assert found.value_in_stage == pytest.approx(-row["water_value_per_hm3"])
        assert found.future_cost == pytest.approx(policy.evaluate(stage, state), rel=1e-9, abs=1e-6)
        assert found.matches_simulation is (None if row["stage_id"] == last else True)
        assert found.value_after_stage is not None
        values = {cut.water_value for cut in found.cuts if cut.below <= 1e-6 * (found.future_cost or 1.0)}
        assert not values or policy.water_value(stage, state)[row["hydro_name"]] in values
        assert [cut.below for cut in found.cuts] == sorted(cut.below for cut in found.cuts)
        assert found.unknown == []


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"stage": 99}, "NoRows"),
        ({"scenario": 99}, "NoRows"),
        ({"block": 9}, "NoRows"),
        ({"bus": "None"}, "UnknownEntity"),
        ({"case": "other"}, "OtherStudy"),
        ({"case": "none"}, "FileNotFound"),
    ],
)
def test_what_cannot_be_explained_is_refused(settings: Settings, change: dict[str, Any], kind: str) -> None:
    arguments = {"bus": "Valley", "stage": 3, **change}
    with pytest.raises(CobreError) as caught:
        explain_price(settings, PriceArguments(output="plan/output", **arguments))
    assert caught.value.kind == kind
