"""Training with each LP engine: the same optimum, what was used on record, resuming with the other one."""

import itertools

import numpy as np
import pytest
from builders.paths import EXAMPLES
from builders.studies import cascade_study

from cobre.errors import ValidationError
from cobre.lp.engines import choice
from cobre.policy import LpEngines, latest_checkpoint, read_checkpoint, read_policy_directory
from cobre.sddp import train
from cobre.sddp.plan import CHECKPOINTS

NAMES = sorted(path.parent.name for path in EXAMPLES.glob("*/config.json"))


@pytest.mark.parametrize("name", NAMES)
def test_both_engines_find_the_same_optimum(name):
    own, highs = (train(EXAMPLES / name, lp_engine=engine) for engine in ("own", "highs"))
    assert own.lp_engine == LpEngines("own", "own")
    assert highs.lp_engine == LpEngines("highs", "highs")
    assert own.lower_bound == pytest.approx(highs.lower_bound, rel=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_first_iterations_of_examples_agree(name):
    own, highs = (train(EXAMPLES / name, lp_engine=engine, iterations=1) for engine in ("own", "highs"))
    assert own.lower_bound == pytest.approx(highs.lower_bound, rel=1e-9)
    assert own.upper_bound == pytest.approx(highs.upper_bound, rel=1e-9)


def test_cuts_agree_where_lps_have_one_solution():
    case = cascade_study(hydros=2, passes=3, iterations=1, stages=5)
    own, highs = (train(case, lp_engine=engine) for engine in ("own", "highs"))
    assert own.lower_bound == pytest.approx(highs.lower_bound, rel=1e-9)
    assert own.upper_bound == pytest.approx(highs.upper_bound, rel=1e-9)
    for one, other in zip(own.policy.intercepts, highs.policy.intercepts, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9)


def test_both_engines_converge_where_lps_have_several_solutions():
    case = cascade_study(hydros=3, passes=3, iterations=100, stages=5)
    own, highs = (train(case, lp_engine=engine) for engine in ("own", "highs"))
    assert own.history[0].lower_bound != pytest.approx(highs.history[0].lower_bound, rel=1e-3)
    assert own.lower_bound == pytest.approx(highs.lower_bound, rel=1e-9)


def test_an_unknown_engine_is_refused():
    with pytest.raises(ValidationError, match="lp_engine must be one of auto, highs, own, not 'simplex'"):
        train(EXAMPLES / NAMES[0], lp_engine="simplex")


def test_the_engine_is_on_record(tmp_path):
    case = cascade_study(iterations=2)
    result = train(case, output=tmp_path)
    assert result.lp_engine == result.policy.lp_engine == LpEngines("auto", "own")
    assert read_policy_directory(tmp_path / "policy").lp_engine == LpEngines("auto", "own")


def test_both_engines_in_one_study_go_on_bit_for_bit(tmp_path, monkeypatch):
    case = cascade_study(hydros=3, passes=3, iterations=6, stages=4)
    turns = itertools.cycle([True, False])
    monkeypatch.setattr(choice, "prefers_own", lambda form: next(turns))
    whole = train(case)
    assert whole.lp_engine == LpEngines("auto", "both")
    train(case, iterations=3, output=tmp_path)
    data = read_checkpoint(latest_checkpoint(tmp_path / CHECKPOINTS).path)
    assert data.extra_arrays["lp_engine_own"].tolist() == [1, 0, 1, 0]
    assert set(data.bases.node) == {1, 3}
    assert set(data.extra_arrays["own_basis_node"]) == {0, 2}
    resumed = train(case, output=tmp_path, resume=True)
    assert resumed.policy_sha256 == whole.policy_sha256
    assert resumed.warnings == ()


@pytest.mark.parametrize(("first", "then"), [("highs", "own"), ("own", "highs")])
def test_going_on_with_another_engine_says_so(tmp_path, first, then):
    case = cascade_study(hydros=3, passes=3, iterations=6, stages=4)
    train(case, iterations=3, output=tmp_path, lp_engine=first)
    resumed = train(case, output=tmp_path, resume=True, lp_engine=then)
    assert [problem.kind for problem in resumed.warnings] == ["NotBitForBit"]
    assert "another LP engine" in resumed.warnings[0].message
    assert resumed.lp_engine == LpEngines(then, "both")


def test_a_resumed_run_goes_on_with_its_engine(tmp_path):
    case = cascade_study(hydros=3, passes=3, iterations=6, stages=4)
    train(case, iterations=3, output=tmp_path, lp_engine="highs")
    resumed = train(case, output=tmp_path, resume=True)
    assert resumed.lp_engine == LpEngines("highs", "highs")
    assert resumed.warnings == ()
    assert resumed.policy_sha256 == train(case, lp_engine="highs").policy_sha256
