"""Size and scaling of the stage LPs of a study, without solving anything and without its opening tree."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cobre.case.model import Case
from cobre.lp.build import cheapest_cost, stage_template
from cobre.lp.cost_unit import Cost, choose_cost_scale, cost_ends
from cobre.lp.scaling import Range, ScalingReport, StageScaling, scale_templates
from cobre.lp.stage import build_stage
from cobre.lp.state import StateLayout
from cobre.lp.topology import topology_of

MOST_NONZEROS = 10_000_000
"""Coefficients of all LPs that are built at most, unless two stages have more."""


def measure_stages(case: Case, most_nonzeros: int = MOST_NONZEROS) -> ScalingReport:
    """Build the LP of every stage, or of some that are spread evenly where the study is very large.

    Openings change right-hand sides only, so the report is that of training, except that costs are put in
    the unit of the stages that were built.

    Raises
    ------
    CobreError
        When the cost of a stage has no lower bound, or a number cannot be represented (``ValidationError``).
    """
    topology = topology_of(case)
    layout = StateLayout(case, topology)
    ends: list[Cost] = []
    measured: list[StageScaling] = []
    positions = [0]
    for number, position in enumerate(positions):
        stage, available = case.stages[position], case.stage_data[position].ncs_available_mw
        with np.errstate(over="ignore", invalid="ignore"):  # absurd costs become infinite, hence refused
            lp, state_columns = build_stage(case, topology, layout, position, available)
            cheapest_cost(stage, lp)
        if number == 0:
            positions += _others(len(case.stages), most_nonzeros // max(1, len(lp.matrix_value)))
        ends += cost_ends(stage, lp)
        template = stage_template(stage, lp, state_columns, 1.0, 0.0, ends=True)
        measured += scale_templates([template])[1].stages
    scale = choose_cost_scale(ends, case.training.cost_scale_factor)
    return ScalingReport(scale, tuple(_in_unit(stage, scale) for stage in measured))


def _others(stages: int, most: int) -> list[int]:
    """Return the positions of the stages after the first, the last among them; at most ``most - 1``."""
    count = min(stages, max(2, most))
    return sorted(set(np.linspace(0, stages - 1, count).round().astype(int).tolist()) - {0})


def _in_unit(stage: StageScaling, scale: float) -> StageScaling:
    after = stage.objective_after
    return replace(stage, objective_after=Range(after.least / scale, after.most / scale))
