"""What forward passes are paid for, component by component, against the extensive form."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import power_features
import pytest
import water_features
from builders.case_files import Builder, write_files
from builders.rich_case import rich_files
from oracle import costs_by_kind

import cobre.case
import cobre.sddp
from cobre.lp import build_templates
from cobre.lp.cost_components import COMPONENTS, component_names, cost_map
from cobre.stochastic import build_opening_tree

COMPONENT_OF = {
    "thermal": "thermal",
    "decision": "anticipated_thermal",
    "contract": "contract",
    "deficit": "deficit",
    "excess": "excess",
    "floor violated": "storage_violation",
    "filling rate violated": "filling_target",
    "filling target violated": "filling_target",
    "min outflow violated": "outflow_violation_below",
    "max outflow violated": "outflow_violation_above",
    "turbined violated": "turbined_violation",
    "generation violated": "generation_violation",
    "evaporated less": "evaporation_violation",
    "evaporated more": "evaporation_violation",
    "withdrawn less": "withdrawal_violation",
    "withdrawn more": "withdrawal_violation",
    "inflow slack": "inflow_penalty",
    "generic violated": "generic_violation",
    "spilt": "spillage",
    "turbined": "turbined",
    "diverted": "diversion",
    "direct": "exchange",
    "reverse": "exchange",
    "ncs": "non_controllable_credit",
}
"""Components by the kinds of the extensive form."""

PAYING: tuple[Builder, ...] = (
    water_features.limits_violated,
    water_features.diversion,
    water_features.evaporation_of_nothing,
    water_features.filling_too_slow,
    water_features.inflow_slack,
    water_features.withdrawal_violated,
    water_features.withdrawal_violated_and_more_missing,
    power_features.anticipated_in_blocks,
    power_features.contracts,
    power_features.discount,
    power_features.generic_cap,
    power_features.lines_by_block,
    power_features.node_graph,
    power_features.non_controllable_sources,
)
"""Features whose optimum is paid for in one way only, and all components among them."""


@pytest.mark.parametrize("build", PAYING, ids=lambda build: build.__name__)
def test_components_equal_those_of_the_extensive_form(tmp_path: Path, build: Builder) -> None:
    feature = build()
    path = write_files(tmp_path, feature.files)
    expected = dict.fromkeys(component_names(), 0.0)
    for kind, cost in costs_by_kind(path, feature.openings).items():
        if cost:
            expected[COMPONENT_OF[kind]] += cost
    result = cobre.sddp.train(cobre.case.load(path))
    costs = result.costs
    assert costs is not None
    assert costs.iteration == result.iterations
    assert costs.total == pytest.approx(result.upper_bound, rel=1e-12)
    rounding = 1e-9 * sum(map(abs, expected.values()))
    for name, cost in expected.items():
        found = costs.components.get(name, 0.0)
        assert found == pytest.approx(cost, rel=1e-8, abs=rounding)
        assert sum(costs.entities_of(name).values()) == pytest.approx(found, rel=1e-12, abs=rounding)
        assert sum(costs.stages_of(name).values()) == pytest.approx(found, rel=1e-12, abs=rounding)


def test_limits_that_are_violated_are_named(tmp_path: Path) -> None:
    case = cobre.case.load(write_files(tmp_path, water_features.limits_violated().files))
    result = cobre.sddp.train(case, iterations=2)
    (warning,) = (problem for problem in result.warnings if problem.kind == "ViolationsDominate")
    first = result.history[0].costs
    assert first is not None
    (early,) = first.first_stage_warnings()
    assert early.message.startswith(
        f"{13.16e6 / 17.2e6:.1%} of the cost of stage 0 in iteration 1 is paid for"
    )
    assert "generation_violation" in early.message
    assert "hydro 0" in early.message
    # 5.0e6 for 10 MW of generation, 2.5e6 for each 5 m3/s, 2.16e6 for the floor, 1.0e6 for 2 m3/s of outflow.
    paid = 4.0e6 + 5.0e6 + 2 * 2.5e6 + 2.16e6 + 1.0e6 + 4.0e4
    assert warning.message.startswith(
        f"{13.16e6 / paid:.1%} of the cost of the forward passes of iteration 2"
    )
    assert f"generation_violation {5.0e6 / paid:.1%} (hydro 0 100%; stages 0 50%, 1 50%)" in warning.message
    assert "first iteration" in (first.warnings()[0].suggestion or "")
    assert "first iteration" not in (warning.suggestion or "")


def test_every_priced_column_belongs_to_a_component(tmp_path: Path) -> None:
    case = cobre.case.load(write_files(tmp_path, rich_files()))
    templates = build_templates(case, build_opening_tree(case))
    costs = cost_map(templates)
    for node, template in enumerate(templates):
        columns = costs.column[costs.start[node] : costs.start[node + 1]]
        priced = np.flatnonzero(template.cost)
        assert sorted(columns) == [column for column in priced if column != template.theta_col]
    kinds = [kind for part in COMPONENTS for kind in part.kinds]
    assert len(set(kinds)) == len(kinds)
    assert COMPONENTS[-1].name == "future"
