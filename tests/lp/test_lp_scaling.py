"""Scaling by powers of two: the same LPs to the last digit, in better numbers."""

from dataclasses import replace

import numpy as np
import pytest
from builders.small_studies import HOURS, planes, plant, small_study
from builders.studies import cascade_study, with_training

from cobre.case.model import Thermal
from cobre.lp import build_templates, scale_templates
from cobre.lp.highs import HighsModel
from cobre.lp.scaling import BAD_RATIO
from cobre.stochastic import build_opening_tree


def templates_of(case):
    return build_templates(case, build_opening_tree(case))


def test_scales_are_powers_of_two_and_undo_exactly():
    templates = templates_of(cascade_study())
    for plain, scaled in zip(templates, scale_templates(templates, beyond=0.0)[0], strict=True):
        for scale in (scaled.col_scale, scaled.row_scale):
            assert (np.frexp(scale)[0] == 0.5).all()
        assert scaled.col_scale[scaled.theta_col] == 1.0
        column = np.repeat(np.arange(plain.num_cols), np.diff(plain.matrix_start))
        undone = scaled.matrix_value / scaled.row_scale[scaled.matrix_row] / scaled.col_scale[column]
        np.testing.assert_array_equal(undone, plain.matrix_value)
        np.testing.assert_array_equal(scaled.cost / scaled.col_scale, plain.cost)
        np.testing.assert_array_equal(scaled.col_upper * scaled.col_scale, plain.col_upper)
        np.testing.assert_array_equal(
            scaled.opening_rhs / scaled.row_scale[: scaled.num_dynamic_rows], plain.opening_rhs
        )


def test_optimum_is_the_same():
    templates = templates_of(cascade_study(openings=4))
    answers = []
    for group in (templates, scale_templates(templates, beyond=0.0)[0]):
        for template in group:
            with HighsModel(template) as model:
                rhs = template.rhs(1, np.linspace(50.0, 300.0, 4))
                model.set_row_bounds(0, rhs, rhs)
                assert model.solve() == "optimal"
                answers.append(model.objective())
    np.testing.assert_allclose(answers[: len(templates)], answers[len(templates) :], rtol=1e-12)


def test_report_tells_ranges_before_and_after():
    templates = templates_of(cascade_study(hydros=6))
    _, report = scale_templates(templates, beyond=0.0)
    assert report.cost_scale == templates[0].cost_scale
    assert [stage.stage_id for stage in report.stages] == [0, 1, 2, 3]
    stage, template = report.stages[0], templates[0]
    assert (stage.num_cols, stage.num_rows) == (template.num_cols, template.num_rows)
    assert stage.num_nonzeros == len(template.matrix_value)
    magnitudes = np.abs(template.matrix_value)
    assert (stage.matrix_before.least, stage.matrix_before.most) == (magnitudes.min(), magnitudes.max())
    assert stage.matrix_after.ratio <= stage.matrix_before.ratio
    # The dearest thing is the last deficit segment, the cheapest spillage or excess of 0.01 a unit.
    assert stage.objective_before.most == pytest.approx(3000.0 * 360.0)
    assert stage.objective_before.least == pytest.approx(0.01 * 360.0)
    assert stage.col_scale.count == template.num_cols
    assert report.warnings == ()
    entry = report.as_dict()["stages"][0]
    assert entry["dimensions"] == {
        "num_cols": template.num_cols,
        "num_rows": template.num_rows,
        "num_nz": len(template.matrix_value),
    }
    assert entry["pre_scaling"]["matrix_coeff_range"] == [magnitudes.min(), magnitudes.max()]
    assert entry["post_scaling"]["objective_ratio"] == stage.objective_after.ratio
    assert entry["row_scale"]["count"] == template.num_rows
    # Coefficients so close together are left alone.
    same, unscaled = scale_templates(templates)
    assert same == templates
    assert unscaled.stages[0].matrix_after == unscaled.stages[0].matrix_before


def test_wide_range_is_narrowed():
    # Planes in MW per hm3 of a huge reservoir beside flows in m3/s.
    case = small_study(
        hours=((HOURS,),) * 2,
        hydros=[plant(initial_storage_hm3=10.0)],
        production=((planes([0.0, 1e-8, 0.9, -0.05]),),) * 2,
    )
    _, report = scale_templates(templates_of(case))
    assert report.stages[0].matrix_before.ratio > 1e8
    assert report.stages[0].matrix_after.ratio < 1e5


def test_bad_range_is_told():
    case = small_study(
        hours=((HOURS,),) * 2,
        hydros=[plant(initial_storage_hm3=10.0)],
        thermals=[Thermal(0, "a", 0), Thermal(1, "b", 0)],
        load=10.0,
        data={"thermal_cost": [1e-6, 1e6], "excess_cost": 1.0},
    )
    _, report = scale_templates(templates_of(case))
    assert len(report.warnings) == 2
    assert report.warnings[0].startswith("stage 0: coefficients of the objective range over")
    assert report.stages[0].objective_after.ratio > BAD_RATIO


def test_cost_scale_is_a_power_of_two_amid_the_costs():
    (first, *_) = templates_of(cascade_study())
    costs = np.abs(first.cost[(first.cost != 0.0) & (np.arange(first.num_cols) != first.theta_col)])
    assert np.frexp(first.cost_scale)[0] == 0.5
    assert np.sqrt(costs.min() * costs.max()) == pytest.approx(1.0, rel=0.5)
    (given, *_) = templates_of(with_training(cascade_study(), cost_scale_factor=1000.0))
    assert given.cost_scale == 1000.0


def test_order_of_entities_does_not_matter_to_scales():
    case = cascade_study(thermals=5, buses=1)
    turned = tuple(replace(thermal, id=9 - thermal.id) for thermal in reversed(case.thermals))
    data = tuple(replace(d, thermal_cost=d.thermal_cost[::-1].copy()) for d in case.stage_data)
    other = replace(case, thermals=turned, stage_data=data)
    pair = []
    for study in (case, other):
        (scaled, *_), _ = scale_templates(templates_of(study), beyond=0.0)
        pair.append(dict(zip(scaled.col_names, scaled.col_scale.tolist(), strict=True)))
    assert pair[0] == pair[1]
