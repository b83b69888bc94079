"""Finite ranges of everything in a stage LP: wide enough for every solution."""

import numpy as np
from builders.studies import cascade_study

from cobre.lp import build_templates, scale_templates
from cobre.lp.highs import HighsModel
from cobre.lp.reach import reach_of
from cobre.stochastic import build_opening_tree


def test_reach_holds_every_solution_and_keeps_limits():
    case = cascade_study(hydros=5, thermals=6, stages=3, openings=6, seed=3)
    templates = scale_templates(build_templates(case, build_opening_tree(case)), beyond=0.0)[0]
    random = np.random.default_rng(5)
    for template in templates:
        reach = reach_of(template)
        others = np.arange(template.num_cols) != template.theta_col
        for own, found in ((template.col_lower, reach.col_lower), (template.col_upper, reach.col_upper)):
            assert np.isfinite(found[others]).all()
            limited = np.isfinite(own)
            np.testing.assert_array_equal(found[limited], own[limited])
        assert np.isfinite(reach.row_lower).all()
        assert np.isfinite(reach.row_upper).all()
        assert (reach.state_least <= reach.state_most).all()
        with HighsModel(template) as model:
            for opening in range(template.num_openings):
                # Full reservoirs and empty ones: spillage and deficit.
                state = random.choice([0.0, 1.0], template.num_states) * reach.state_most
                rhs = template.rhs(opening, state)
                model.set_row_bounds(0, rhs, rhs)
                assert model.solve() == "optimal"
                values = model.column_values(template.num_cols, template.num_rows)[others]
                assert (values >= reach.col_lower[others] - 1e-6).all()
                assert (values <= reach.col_upper[others] + 1e-6).all()
                activity = model.row_activity(template.num_cols, template.num_rows)
                static = activity[template.num_dynamic_rows :]
                assert (static >= reach.row_lower - 1e-6).all()
                assert (static <= reach.row_upper + 1e-6).all()
