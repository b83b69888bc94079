"""What public cases are paid for, component by component, as the simulation of cobre-rs reports it."""

from __future__ import annotations

import pytest
from builders.shared_cases import shared_cases

import cobre.case
import cobre.sddp


@pytest.mark.parametrize(
    ("name", "components"),
    [
        ("d04-transmission", {"deficit": 3_650_000.0 + 4_361_111.111111115, "exchange": 2 * 109.5}),
        ("d09-multi-deficit", {"thermal": 2 * 219_000.0, "deficit": 2 * 40_150_000.0}),
        # cobre-rs reports the cost of curtailment, 0 here; its objective has the credit, 2 x 36.5 $.
        ("d15-non-controllable-source", {"thermal": 2 * 219_000.0, "non_controllable_credit": -2 * 36.5}),
        (
            "d20-operational-violations",
            {
                "deficit": 41_022_222.22222221 + 36_500_000.0,
                "outflow_violation_below": 59_111_111.11111108 + 36_500_000.0,
                "turbined_violation": 22_611_111.11111105,
            },
        ),
        # The second stage is discounted.
        ("d25-discount-rate", {"thermal": 1_095_000.0 + 0.9904275227202862 * 1_531_111.111111111}),
    ],
)
def test_costs_are_those_that_the_simulation_of_cobre_rs_reports(
    name: str, components: dict[str, float]
) -> None:
    result = cobre.sddp.train(cobre.case.load(shared_cases() / name))
    assert result.costs is not None
    rounding = 1e-9 * result.costs.total
    found = {part: cost for part, cost in result.costs.components.items() if abs(cost) > rounding}
    assert found == pytest.approx(components, rel=1e-9)
