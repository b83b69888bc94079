"""Studies in a loop: changed data, the same kernels."""

import sys

import pytest
from builders.paths import EXAMPLES
from numba.core import event

import cobre
import cobre.case
from cobre.sddp.effort import estimate_effort
from cobre.templates import TEMPLATES

CASE = EXAMPLES / "random-inflow"


def test_a_second_study_compiles_nothing_and_loads_nothing() -> None:
    """Fuel dearer from study to study, then fewer openings and passes: costs rise, kernels stay."""
    study = cobre.Study(CASE)
    bounds = [study.train(iterations=6).lower_bound]
    editor = study.case.edit()
    with event.install_recorder("numba:compile") as compiled:
        for factor in (1.1, 1.3):
            for plant in cobre.load_case(CASE).edit()["system/thermals.json"]["thermals"]:
                place = editor["system/thermals.json"]["thermals"][plant["id"]]
                place["cost_per_mwh"] = factor * plant["cost_per_mwh"]
            bounds.append(cobre.Study(editor.build()).train(iterations=6).lower_bound)
        # Other sizes are other numbers in the same kernels.
        for stage in editor["stages.json"]["stages"]:
            stage["num_openings"] = 3
        editor["config.json"]["training"]["selection"] = {"method": "sampled", "forward_passes": 2}
        cobre.train(editor.build(), iterations=2)
    assert compiled.buffer == []
    assert bounds == sorted(bounds)
    assert len(set(bounds)) == 3


def test_planned_lps_are_those_that_training_solves() -> None:
    case = cobre.case.build(TEMPLATES["four-region"].build(), "four-region")
    result = cobre.train(case, iterations=6)
    effort = estimate_effort(case, len(result.policy.components), rows=[44])
    # Passes that end a stage in the same state, as some of the first do, share its LPs.
    assert max(record.lp_solves for record in result.history) == effort.lps_per_iteration
    assert effort.training_lps == case.training.iteration_limit * effort.lps_per_iteration
    assert effort.training_seconds is not None
    assert estimate_effort(case, 2, rows=None).training_seconds is None


def test_larger_lps_take_longer() -> None:
    """At the sizes that were measured, with few cuts, the estimate is what was measured."""
    editor = cobre.load_case(CASE).edit()
    editor["config.json"]["training"]["stopping_rules"] = [{"type": "iteration_limit", "limit": 1}]
    few = editor.build()
    sizes = (44, 327, 1590, 5000)
    times = [estimate_effort(few, 2, rows=[rows]).microseconds_per_lp or 0.0 for rows in sizes]
    assert times == sorted(times)
    assert abs(times[1] / 160.0 - 1.0) < 0.01
    assert times[3] > 3.0 * times[2]


def test_history_is_a_sequence_and_a_table() -> None:
    result = cobre.train(CASE, iterations=3)
    history = result.history
    assert [record.iteration for record in history] == [1, 2, 3]
    assert isinstance(history, tuple)
    table = history.to_arrow()
    assert table.column("lower_bound").to_pylist() == [record.lower_bound for record in history]
    assert table.column("gap_percent").to_pylist() == [record.gap_percent for record in history]
    assert len(repr(history)) < 300 > len(repr(history[0]))
    assert len(repr(result)) < 300
    assert "<caption>3 iterations</caption>" in history._repr_html_()
    assert result.policy_sha256 in result._repr_html_()
    assert "2 hydros" in cobre.Study(CASE)._repr_html_() == cobre.Study(CASE)._repr_html_()


def test_frames_of_absent_libraries_are_named(monkeypatch) -> None:
    history = cobre.train(CASE, iterations=1).history
    table = history.to_arrow()  # pyarrow itself looks for pandas
    monkeypatch.setattr(type(history), "to_arrow", lambda self: table)
    for name, convert in (("pandas", history.to_pandas), ("polars", history.to_polars)):
        monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(cobre.CobreError, match=f"pip install {name}"):
            convert()
