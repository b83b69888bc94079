"""Sizes and ranges without solving: the same as those of the LPs that training builds."""

import dataclasses

import numpy as np
import pytest
from builders.studies import cascade_study

from cobre.case.model import Case
from cobre.errors import CobreError
from cobre.lp import build_templates, measure_stages, scale_templates
from cobre.stochastic import build_opening_tree


def test_the_same_as_of_training() -> None:
    case = cascade_study(hydros=5, stages=3)
    _, trained = scale_templates(build_templates(case, build_opening_tree(case)))
    assert measure_stages(case) == trained


def test_large_studies_are_measured_at_some_stages() -> None:
    case = cascade_study(stages=9)
    whole = measure_stages(case)
    size = whole.stages[0].num_nonzeros
    assert [stage.stage_id for stage in measure_stages(case, 3 * size).stages] == [0, 4, 8]
    assert [stage.stage_id for stage in measure_stages(case, 1).stages] == [0, 8]
    assert len(whole.stages) == 9


def test_unlimited_reward_is_refused() -> None:
    case: Case = cascade_study(stages=2)
    data = case.stage_data[1]
    free = dataclasses.replace(
        data,
        thermal_cost=np.full_like(data.thermal_cost, -1.0),
        thermal_max_mw=np.full_like(data.thermal_max_mw, np.inf),
    )
    with pytest.raises(CobreError, match="stage 1 has no lower bound"):
        measure_stages(dataclasses.replace(case, stage_data=(case.stage_data[0], free)))
