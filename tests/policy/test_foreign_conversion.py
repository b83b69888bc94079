"""Policies in the format of cobre-rs, there and back."""

from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np
import pytest
from builders.studies import cascade_study
from stored import policy, same, storage

from cobre.case.model import Case, PolicyOptions
from cobre.errors import OutputError, ValidationError
from cobre.policy import (
    Policy,
    StateEntry,
    adapted_cuts,
    case_fingerprint,
    case_nodes,
    compatibility,
    differences,
    from_flatbuffers,
    to_flatbuffers,
    write_flatbuffers,
    write_policy_directory,
)
from cobre.policy.foreign import PolicyDirectory
from cobre.policy.foreign.encode import encode_pool


@pytest.fixture(scope="module")
def case() -> Case:
    return cascade_study(hydros=3, stages=3, iterations=3, passes=2)


@pytest.fixture(scope="module")
def stored(case: Case) -> Policy:
    made = policy(iterations=3, passes=2, hydros=3, nodes=3)
    nodes = [
        replace(entry, loaded_cuts=known.loaded_cuts)
        for entry, known in zip(case_nodes(case, [1.5, -2.0, 0.0]), made.nodes, strict=True)
    ]
    return replace(made, nodes=tuple(nodes))


def write_files(path: Path, stored: Policy, case: Case) -> Path:
    write_flatbuffers(path, stored, case)
    return path


def test_there_and_back(tmp_path: Path, case: Case, stored: Policy) -> None:
    path = write_files(tmp_path / "policy", stored, case)
    found = from_flatbuffers(path, case, stored.components)
    assert found.sha256() == stored.sha256()
    # Of what the format does not hold nothing is claimed.
    assert (found.lower_bound_kind, found.fingerprint.topics) == ("estimate", {})
    assert np.isnan(found.upper_bounds).all()
    plain = [replace(part, activity={}) for part in stored.cuts]
    kept = replace(
        found, lower_bound_kind="bound", fingerprint=stored.fingerprint, upper_bounds=stored.upper_bounds
    )
    assert same(kept, replace(stored, cuts=tuple(plain), first_bases=None))
    pool = PolicyDirectory(path).pool(1)
    assert (pool.intercepts[-1], pool.slopes[-1].any()) == (stored.nodes[1].future_cost_floor, False)


def test_cuts_of_unknown_origin_count_as_loaded(tmp_path: Path, case: Case, stored: Policy) -> None:
    """An earlier run's, say, whose iterations are not those of the manifest."""
    path = write_files(tmp_path / "policy", stored, case)
    file = path / "cuts" / "000.bin"
    pool = PolicyDirectory(path).pool(0)
    file.write_bytes(encode_pool(replace(pool, iterations=pool.iterations + np.uint32(7))))
    found = from_flatbuffers(path, case, stored.components)
    assert found.nodes[0].loaded_cuts == len(found.cuts[0]) == len(pool.intercepts)
    assert not found.cuts[0].iteration.any()


def test_read_policy_can_start_the_study(tmp_path: Path, case: Case, stored: Policy) -> None:
    found = from_flatbuffers(write_files(tmp_path / "policy", stored, case), case, stored.components)
    adaptation = compatibility(found, stored.components, case_nodes(case))
    intercepts, slopes = adapted_cuts(found, adaptation)[0]
    active = stored.cuts[0].active
    np.testing.assert_array_equal(intercepts, stored.cuts[0].intercept[active])
    np.testing.assert_array_equal(slopes, stored.cuts[0].slopes[active])


@pytest.mark.parametrize("own", [True, False], ids=["cobre", "cobre-rs"])
def test_boundary_counts_by_its_cuts(tmp_path: Path, case: Case, stored: Policy, own: bool) -> None:
    """Not by its place, its time, or the nodes of other dates."""
    cuts = [replace(part, intercept=part.intercept + 1) for part in stored.cuts]
    variants = {
        "one": stored,
        "same": stored,
        "before": replace(stored, cuts=(cuts[0], *stored.cuts[1:])),
        "end": replace(stored, cuts=(*stored.cuts[:2], cuts[2])),
    }
    prints = {"none": case_fingerprint(case)}
    for name, variant in variants.items():
        path = tmp_path / name
        write_policy_directory(path, variant) if own else write_files(path, variant, case)
        prints[name] = case_fingerprint(replace(case, policy=PolicyOptions(path)))
    assert prints["one"] == prints["same"] == prints["before"]
    for other in ("none", "end"):
        (problem,) = differences(prints[other], prints["one"])
        assert problem.context["topic"] == "boundary"


def test_lags_and_order_of_components(tmp_path: Path, case: Case, stored: Policy) -> None:
    lag = StateEntry("inflow_lag", 1, 2, "lag")
    parts = (stored.components[0], lag, stored.components[2])
    path = write_files(tmp_path / "policy", replace(stored, components=parts), case)
    found = from_flatbuffers(path, case, (lag, *parts[::2]))
    np.testing.assert_array_equal(found.cuts[0].slopes, stored.cuts[0].slopes[:, [1, 0, 2]])
    with pytest.raises(ValidationError) as error:
        from_flatbuffers(path, case, stored.components)
    messages = " ".join(problem.message for problem in error.value.problems)
    assert "does not know a state of the study (storage of hydro 1)" in messages
    assert "values a state that the study does not have (inflow lag of hydro 1, index 2)" in messages


def test_policy_of_other_dates(tmp_path: Path, case: Case, stored: Policy) -> None:
    path = write_files(tmp_path / "policy", stored, case)
    moved = replace(
        case,
        stages=tuple(
            replace(s, start_date=s.start_date.replace(year=2030), end_date=s.end_date.replace(year=2030))
            for s in case.stages
        ),
    )
    with pytest.raises(ValidationError, match="no cuts that value states at the end") as error:
        from_flatbuffers(path, moved, stored.components)
    assert error.value.suggestion is not None
    assert "2024" in error.value.suggestion


def test_a_policy_of_another_case_is_not_written(tmp_path: Path, case: Case, stored: Policy) -> None:
    with pytest.raises(ValidationError, match=r"has 3 nodes, the case 2"):
        write_flatbuffers(tmp_path / "policy", stored, cascade_study(hydros=3, stages=2))
    later = replace(case, stages=(replace(case.stages[0], end_date=date(2031, 1, 1)), *case.stages[1:]))
    with pytest.raises(ValidationError, match=r"node 0 is of 2024-01-01 to .*2031-01-01 there"):
        write_flatbuffers(tmp_path / "policy", stored, later)
    odd = replace(stored, components=(*stored.components[:2], StateEntry("battery", 2, 0, "battery[2]")))
    with pytest.raises(OutputError, match=r"of entity 2, which the format of cobre-rs cannot hold"):
        write_flatbuffers(tmp_path / "policy", odd, case)
    assert list(tmp_path.iterdir()) == []


def test_water_from_two_plants_must_have_one_value(case: Case, stored: Policy) -> None:
    hydros = tuple(replace(hydro, downstream_id=2 if hydro.id < 2 else None) for hydro in case.hydros)
    both = replace(case, hydros=hydros)
    parts = (storage(2), StateEntry("in_transit", 0, 1, "a"), StateEntry("in_transit", 1, 1, "b"))
    with pytest.raises(OutputError, match="differently by where it comes from"):
        to_flatbuffers(replace(stored, components=parts), both)
    cuts = tuple(replace(part, slopes=part.slopes[:, [0, 1, 1]].copy()) for part in stored.cuts)
    _, pools = to_flatbuffers(replace(stored, components=parts, cuts=cuts), both)
    assert len(pools[0].slots) == 2
