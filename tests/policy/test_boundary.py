"""Choosing a pool of another policy and finding our states in it."""

import datetime
import shutil
from dataclasses import replace

import numpy as np
import pytest
from builders.studies import cascade_study
from policy_records import END, make_manifest, make_pool
from stored import policy, storage

from cobre.case.model import Hydro, PolicyOptions, PostStudyStage
from cobre.errors import CobreError, ValidationError
from cobre.policy import StateEntry, write_policy_directory
from cobre.policy.boundary import BoundaryCuts, boundary_cuts, future_cost_floor
from cobre.policy.foreign import PolicyDirectory, SlotKind, StateSlot, state_slots
from cobre.policy.foreign.encode import encode_manifest, encode_pool
from cobre.policy.foreign.slots import identified_slots
from cobre.policy.matching import ComponentMap

DATE = datetime.date(2024, 3, 1)


@pytest.fixture
def directory(tmp_path):
    """Pool 0 values DATE, pool 1 END (three storages, plant 9 without weight)."""
    path = tmp_path / "policy"
    (path / "cuts").mkdir(parents=True)
    (path / "manifest.bin").write_bytes(encode_manifest(make_manifest()))
    slots = tuple(StateSlot(SlotKind.STORAGE, number) for number in (2, 0, 1, 9))
    slopes = make_pool().slopes.copy()
    slopes[:, 3] = 0.0
    for number, date in enumerate((DATE, END)):
        pool = make_pool(pool_id=number, slots=slots, priced_date=date, slopes=slopes * (number + 1))
        (path / "cuts" / f"00{number}.bin").write_bytes(encode_pool(pool))
    return path


def study(directory, end=END, strict=False, hydros=3):
    case = cascade_study(hydros=hydros, stages=2)
    last = replace(case.stages[-1], end_date=end)
    return replace(case, stages=(*case.stages[:-1], last), policy=PolicyOptions(directory, strict))


def cuts_of(case):
    return boundary_cuts(case, [("storage", hydro.id, 0) for hydro in case.hydros])


def find_slots(ours, pool):
    return ComponentMap.of(identified_slots(ours), identified_slots(pool)).place.tolist()


def rewrite(directory, number, **changes):
    pool = PolicyDirectory(directory).pool(number)
    (directory / "cuts" / f"00{number}.bin").write_bytes(encode_pool(replace(pool, **changes)))


def test_no_boundary():
    assert cuts_of(cascade_study()) is None


def test_active_cuts_of_the_pool_of_the_last_day_in_our_order(directory):
    cuts = cuts_of(study(directory))
    assert cuts.warnings == ()
    np.testing.assert_array_equal(cuts.intercepts, [1.0e6, -2.5])
    # Plants 0, 1, 2 are the pool's columns 1, 2, 0; the pool of END has doubled slopes.
    np.testing.assert_array_equal(cuts.slopes, [[0.0, 0.0, -3.0], [0.0, 0.0, -0.2]])
    np.testing.assert_array_equal(cuts_of(study(directory, end=DATE)).slopes[:, 2], [-1.5, -0.1])


def test_another_date_lists_those_that_are_there(directory):
    with pytest.raises(ValidationError, match="2024-03-01, 2024-03-31") as caught:
        cuts_of(study(directory, end=datetime.date(2024, 5, 1)))
    assert caught.value.context["field"] == "policy.boundary"


def test_two_pools_of_one_date_are_ambiguous(directory):
    rewrite(directory, 0, priced_date=END)
    with pytest.raises(ValidationError, match="pools 0, 1"):
        cuts_of(study(directory))


def test_a_pool_without_active_cuts_says_nothing(directory):
    rewrite(directory, 1, active=np.zeros(3, np.bool_))
    with pytest.raises(ValidationError, match="no active cuts"):
        cuts_of(study(directory))


def test_a_state_that_the_policy_lacks_is_worth_nothing_and_told(directory):
    case = study(directory, hydros=4)
    cuts = cuts_of(case)
    (warning,) = cuts.warnings
    assert "storage of hydro 3" in warning.message
    assert not cuts.slopes[:, 3].any()
    strict = replace(case, policy=PolicyOptions(directory, True))
    with pytest.raises(ValidationError) as caught:
        cuts_of(strict)
    assert {problem.context["entity"] for problem in caught.value.problems} == {
        "storage of hydro 3",
        "storage of hydro 9",
    }


def test_a_state_that_the_study_lacks_is_an_error_if_it_weighs(directory):
    with pytest.raises(ValidationError, match=r"storage of hydro 2.*not zero"):
        cuts_of(study(directory, hydros=2))
    # Plant 1 has no weight in any active cut.
    assert cuts_of(study(directory)).warnings == ()


@pytest.mark.parametrize("kind", [SlotKind.INFLOW_LAG, 17])
def test_other_kinds_of_state_are_an_error_if_they_weigh(directory, kind):
    pool = PolicyDirectory(directory).pool(1)
    rewrite(directory, 1, slots=(*pool.slots[:3], StateSlot(kind, 0, 1)))
    assert cuts_of(study(directory)).warnings == ()
    slopes = pool.slopes.copy()
    slopes[0, 3] = 1e-9
    rewrite(directory, 1, slopes=slopes)
    with pytest.raises(ValidationError, match="does not have"):
        cuts_of(study(directory))


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (lambda path: shutil.rmtree(path), "policy is no directory"),
        (lambda path: (path / "cuts" / "000.bin").unlink(), "2 pools"),
        (lambda path: (path / "cuts" / "000.bin").rename(path / "cuts" / "7.bin"), "000.bin does not exist"),
        (lambda path: (path / "cuts" / "001.bin").write_bytes(b""), "001.bin is damaged"),
        (lambda path: shutil.copy(path / "cuts" / "001.bin", path / "manifest.bin"), "manifest.bin is"),
        (lambda path: rewrite(path, 1, pool_id=0), "holds pool 0"),
    ],
)
def test_a_directory_that_is_not_whole_is_refused(directory, harm, message):
    harm(directory)
    with pytest.raises(ValidationError, match=message) as caught:
        cuts_of(study(directory))
    assert caught.value.suggestion
    assert caught.value.context["file"]


def test_floor_is_the_best_of_the_lowest_corners():
    cuts = BoundaryCuts(np.array([10.0, 3.0]), np.array([[-1.0, 2.0], [0.0, -0.5]]))
    # 10 - 8 + 2 = 4 against 3 - 0.5 * 4 = 1
    assert future_cost_floor(cuts, np.array([2.0, 1.0]), np.array([8.0, 4.0])) == 4.0
    # A state without limit does no harm where it has no weight.
    assert future_cost_floor(cuts, np.array([2.0, 1.0]), np.array([np.inf, 4.0])) == 1.0
    with pytest.raises(CobreError, match="no limit"):
        future_cost_floor(cuts, np.zeros(2), np.full(2, np.inf))


def test_water_and_commitments_are_found_by_date():
    case = cascade_study(hydros=2, thermals=1, stages=2)
    after = PostStudyStage(case.stages[-1].end_date, 744.0)
    case = replace(case, post_study_stages=(after,))
    ends = after.start_date, after.start_date + datetime.timedelta(days=31)
    ours = state_slots(case, [("storage", 1, 0), ("in_transit", 0, 1), ("commitment", 0, 1)], stage=1)
    assert ours[0] == StateSlot(SlotKind.STORAGE, 1)
    assert ours[1] == StateSlot(SlotKind.IN_TRANSIT, 1, 1, interval=ends)
    assert ours[2] == StateSlot(SlotKind.ANTICIPATED, 0, 1, interval=ends)
    pool = (
        StateSlot(SlotKind.ANTICIPATED, 0, 1, interval=(ends[1], ends[1] + datetime.timedelta(days=30))),
        StateSlot(SlotKind.ANTICIPATED, 0, 0, interval=ends),
        StateSlot(SlotKind.IN_TRANSIT, 1, 1, interval=ends),
        StateSlot(SlotKind.STORAGE, 1),
    )
    assert find_slots(ours, pool) == [3, 2, 1]
    early = state_slots(case, [("in_transit", 0, 1), ("commitment", 0, 1)], stage=0)
    assert find_slots(early, pool) == [-1, -1]


def test_water_of_two_plants_may_be_one_state_of_the_pool():
    case = cascade_study(hydros=3, stages=2)
    plants = tuple(replace(hydro, downstream_id=2 if hydro.id < 2 else None) for hydro in case.hydros)
    assert all(isinstance(plant, Hydro) for plant in plants)
    case = replace(case, hydros=plants)
    ours = state_slots(case, [("in_transit", 0, 1), ("in_transit", 1, 1)], stage=1)
    assert find_slots(ours, (StateSlot(SlotKind.IN_TRANSIT, 2, 1),)) == [0, 0]


# A policy directory of cobre


def own_policy(path, nodes=3, **changes):
    """Monthly nodes from January 2024; two storages, water under way from plant 0, power of plant 5."""
    state = (
        storage(1),
        storage(0),
        StateEntry("in_transit", 0, 1, "water"),
        StateEntry("commitment", 5, 1, "power"),
    )
    made = replace(policy(hydros=4, nodes=nodes), components=state, **changes)
    write_policy_directory(path, made)
    return made


def study_of(path, end, after):
    case = cascade_study(hydros=2, stages=1)
    last = replace(case.stages[0], end_date=end)
    later = (PostStudyStage(end, 24.0 * (after - end).days),)
    return replace(case, stages=(last,), post_study_stages=later, policy=PolicyOptions(path))


STATE = [("storage", 0, 0), ("storage", 1, 0), ("in_transit", 0, 1), ("commitment", 5, 1)]


def test_what_training_writes_values_the_end(tmp_path):
    made = own_policy(tmp_path / "own")
    end, after = made.nodes[1].start_date, made.nodes[1].end_date
    cuts = boundary_cuts(study_of(tmp_path / "own", end, after), STATE)
    active = made.cuts[0].active
    np.testing.assert_array_equal(cuts.intercepts[:-1], made.cuts[0].intercept[active])
    np.testing.assert_array_equal(cuts.slopes[:-1], made.cuts[0].slopes[active][:, [1, 0, 2, 3]])
    # The floor under the cuts stands behind them.
    assert (cuts.intercepts[-1], cuts.slopes[-1].any()) == (made.nodes[0].future_cost_floor, False)
    assert cuts.warnings == ()


def test_what_arrives_on_other_days_is_another_state(tmp_path):
    made = own_policy(tmp_path / "own")
    end = made.nodes[1].start_date
    case = study_of(tmp_path / "own", end, made.nodes[1].end_date + datetime.timedelta(days=1))
    with pytest.raises(ValidationError) as caught:
        boundary_cuts(case, STATE)
    names = {problem.context["entity"] for problem in caught.value.problems}
    assert names == {"in_transit of entity 0, offset 1", "commitment of entity 5, offset 1"}


def test_nodes_of_a_policy_of_cobre_must_be_one_with_cuts(tmp_path):
    made = own_policy(tmp_path / "own")
    end, after = made.nodes[1].start_date, made.nodes[1].end_date
    with pytest.raises(ValidationError, match=r"one node of .* there is none"):
        boundary_cuts(study_of(tmp_path / "own", datetime.date(2025, 1, 1), after.replace(year=2026)), STATE)
    twin = replace(made.nodes[0], id=9)
    graph = replace(made, is_chain=False, nodes=(twin, *made.nodes), cuts=(made.cuts[0], *made.cuts))
    write_policy_directory(tmp_path / "graph", graph)
    with pytest.raises(ValidationError, match=r"there is 2 \(nodes 9, 0\)"):
        boundary_cuts(study_of(tmp_path / "graph", end, after), STATE)
    dropped = replace(made.cuts[0], active=np.zeros(len(made.cuts[0]), np.bool_))
    write_policy_directory(tmp_path / "idle", replace(made, cuts=(dropped, *made.cuts[1:])))
    with pytest.raises(ValidationError, match=r"node 0 of .* has no active cuts"):
        boundary_cuts(study_of(tmp_path / "idle", end, after), STATE)
