import numpy as np
from builders.studies import cascade_study, dry_study

from cobre.lp import build_templates, diagnose
from cobre.lp.highs import HighsModel
from cobre.stochastic import build_opening_tree


def test_rows_that_cannot_hold_are_named_and_the_model_is_written(tmp_path):
    case = dry_study()
    template = build_templates(case, build_opening_tree(case))[1]
    path = tmp_path / "new folder" / "failed.mps"
    report = diagnose(
        template, np.zeros(0), np.zeros((0, 1)), np.array([100.0]), template.opening_values[0], path
    )
    assert report.status == "infeasible"
    assert [violation.row for violation in report.violations] == ["hydro_balance[plant 0]"]
    # 100 hm3 less 500 m3/s for a month of 720 h leaves -1196 hm3; the floor is at 10.
    missing = 0.0036 * 720.0 * 500.0 - 100.0 + 10.0
    assert abs(report.violations[0].amount - missing) < 1e-6
    text = path.read_text()
    assert "hydro_balance[plant_0]" in text
    assert [file.name for file in path.parent.iterdir()] == ["failed.mps"]


def test_cuts_are_part_of_the_model(tmp_path):
    case = cascade_study(hydros=1, stages=2)
    template = build_templates(case, build_opening_tree(case))[0]
    intercepts, slopes = np.array([5.0e5, 2.0e5]), np.array([[-100.0], [0.0]])
    report = diagnose(
        template, intercepts, slopes, np.array([200.0]), template.opening_values[0], tmp_path / "lp.mps"
    )
    assert report.status == "optimal"
    assert report.violations == ()
    assert "cut[1]" in (tmp_path / "lp.mps").read_text()


def test_an_unwritable_file_does_not_hide_the_diagnosis(tmp_path):
    case = dry_study()
    template = build_templates(case, build_opening_tree(case))[1]
    (tmp_path / "file").write_text("in the way")
    target = tmp_path / "file" / "lp.mps"
    report = diagnose(
        template, np.zeros(0), np.zeros((0, 1)), np.array([100.0]), template.opening_values[0], target
    )
    assert report.model_file is None
    assert report.trouble
    assert report.violations


def test_what_fails_while_an_lp_is_explained_is_part_of_the_diagnosis(tmp_path):
    case = dry_study()
    template = build_templates(case, build_opening_tree(case))[1]
    report = diagnose(
        template,
        np.zeros(0),
        np.zeros((0, 1)),
        np.array([np.nan]),
        template.opening_values[0],
        tmp_path / "lp",
    )
    assert (report.status, report.violations, report.model_file) == (None, (), None)
    assert report.trouble


def test_a_model_is_freed_once():
    case = cascade_study()
    model = HighsModel(build_templates(case, build_opening_tree(case))[0])
    model.close()
    model.close()
