"""The unit of costs: no cost is lost in it, and what has no unit is refused by name."""

import numpy as np
import pytest
from builders.small_studies import HOURS, plant, small_study
from builders.studies import with_training

from cobre.case.model import Thermal
from cobre.errors import ValidationError
from cobre.lp import build_templates, measure_stages
from cobre.lp.cost_unit import LARGEST_GIVEN_COST, LEAST_COST, LEAST_GIVEN_COST, WIDEST_COSTS
from cobre.stochastic import build_opening_tree


def study(cheap: float, dear: float):
    """Thermal costs of two plants, $/MWh; excess and deficit cost no more and no less."""
    return small_study(
        hours=((HOURS,),) * 2,
        hydros=[plant(initial_storage_hm3=10.0)],
        thermals=[Thermal(0, "cheap", 0), Thermal(1, "dear", 0)],
        load=10.0,
        data={"thermal_cost": [cheap, dear], "excess_cost": 1.0},
    )


def templates_of(case):
    return build_templates(case, build_opening_tree(case))


def costs_of(template):
    costs = np.abs(np.delete(template.cost, template.theta_col))
    return costs[costs > 0.0]


@pytest.mark.parametrize(("cheap", "dear"), [(1.0, 100.0), (1e-4, 1e4), (1e-7, 1e6), (1e-9, 1.0)])
def test_smallest_cost_stays_above_the_tolerance(cheap, dear):
    (first, *_) = templates_of(study(cheap, dear))
    costs = costs_of(first)
    assert np.frexp(first.cost_scale)[0] == 0.5
    assert costs.min() >= LEAST_COST
    assert costs.max() <= LEAST_COST * WIDEST_COSTS * 2.0


@pytest.mark.parametrize(
    ("cheap", "dear", "culprit", "build"),
    [
        (1.0, 1e15, "dear", templates_of),
        (1e-14, 100.0, "cheap", templates_of),
        (1.0, 1e15, "dear", measure_stages),
    ],
)
def test_costs_too_far_apart_are_refused_by_name(cheap, dear, culprit, build):
    with pytest.raises(ValidationError, match="too far apart") as refusal:
        build(study(cheap, dear))
    context = refusal.value.context
    assert f"thermal_generation[{culprit}" in context["entity"]
    assert context["field"] == "cost_per_mwh"
    assert context["value"] == (dear if culprit == "dear" else cheap) * HOURS
    assert culprit in refusal.value.message


@pytest.mark.parametrize(("factor", "name"), [(1e15, "zero"), (1e-12, "infinity")])
def test_given_unit_that_loses_costs_is_refused(factor, name):
    case = with_training(study(1.0, 100.0), cost_scale_factor=factor)
    with pytest.raises(ValidationError, match="cost_scale_factor") as refusal:
        templates_of(case)
    assert name in refusal.value.message
    assert refusal.value.context["cost_scale_factor"] == factor
    assert refusal.value.context["file"] == "config.json"
    assert {"entity", "field", "value"} <= set(refusal.value.context)


def test_any_other_given_unit_is_taken():
    costs = np.concatenate([costs_of(part) * part.cost_scale for part in templates_of(study(1.0, 100.0))])
    for factor in (costs.max() / LARGEST_GIVEN_COST * 1.01, 1.0, costs.min() / LEAST_GIVEN_COST * 0.99):
        (first, *_) = templates_of(with_training(study(1.0, 100.0), cost_scale_factor=factor))
        assert first.cost_scale == factor
