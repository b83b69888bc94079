"""Where openings come from: sampling methods, files, external scenarios, history; and who fills them."""

from __future__ import annotations

import dataclasses
import datetime
import sys

import numpy as np
import oracle.noise as oracle
import pytest
import rank_functions
from builders.scenario_studies import make_case, make_stage
from builders.shared_cases import shared_cases
from scipy.stats import qmc

import cobre.case
from cobre.case.model import (
    Case,
    InflowHistory,
    PolicyGraph,
    PolicyNode,
    ScenarioSource,
    Season,
    SeasonMap,
    Stage,
    Transition,
)
from cobre.comm.launch import launch
from cobre.errors import ValidationError
from cobre.stochastic import build_opening_tree
from cobre.stochastic.entities import noise_groups
from cobre.stochastic.noise import ziggurat
from cobre.stochastic.noise.halton import first_primes


def by_method(stage: Stage, method: str) -> Stage:
    return dataclasses.replace(stage, sampling_method=method)


def with_scenarios(case: Case, **changes) -> Case:
    return dataclasses.replace(case, scenarios=dataclasses.replace(case.scenarios, **changes))


def with_source(case: Case, **changes) -> Case:
    source = ScenarioSource(**changes)
    return dataclasses.replace(case, training=dataclasses.replace(case.training, source=source))


def test_each_stage_has_its_method():
    methods = ["lhs", "qmc_halton", "saa"]
    stages = [by_method(make_stage(3 + t, 6, month=1 + t), method) for t, method in enumerate(methods)]
    tree = build_opening_tree(make_case(stages, hydro_ids=(0, 1), bus_ids=(0,), load_std=1.0))
    first, second = (oracle.stage_seed(42, number) for number in (3, 4))
    assert tree.noise[tree.rows(0)].tolist() == oracle.latin(first, 6, 3)
    assert tree.noise[tree.rows(1)].tolist() == oracle.halton(second, 6, first_primes(3).tolist())
    plain = build_opening_tree(make_case([make_stage(5, 6)], hydro_ids=(0, 1), load_std=1.0))
    np.testing.assert_array_equal(tree.noise[tree.rows(2)], plain.noise)


@pytest.mark.parametrize("method", ["lhs", "qmc_sobol", "qmc_halton", "owen_sobol", "owen_halton"])
def test_a_noise_group_repeats_openings_of_any_method(method):
    stages = [by_method(make_stage(t, n, season_id=0, month=1 + t), method) for t, n in enumerate((4, 2, 6))]
    tree = build_opening_tree(make_case(stages))
    first = tree.noise[tree.rows(0)]
    np.testing.assert_array_equal(tree.noise[tree.rows(1)], first[:2])
    np.testing.assert_array_equal(tree.noise[tree.rows(2)], [*first[:2], *[[0.0]] * 4])


def test_groups_are_numbered_by_first_occurrence():
    stages = [make_stage(t, 1, season_id=s) for t, s in enumerate((4, 4, None, 7, 4, None))]
    assert noise_groups(stages).tolist() == [0, 0, 1, 2, 0, 3]


def test_given_openings_are_used_as_they_are():
    case = make_case([make_stage(0, 2, season_id=0), make_stage(1, 3, season_id=0)], load_std=5.0)
    given = (np.arange(4.0).reshape(2, 2), -np.arange(6.0).reshape(3, 2))
    tree = build_opening_tree(with_scenarios(case, noise_openings=given))
    np.testing.assert_array_equal(tree.noise, np.concatenate(given))
    np.testing.assert_array_equal(tree.inflow_m3s[:, 0], 100.0 + 10.0 * tree.noise[:, 0])
    np.testing.assert_array_equal(tree.load_mw[:, 0], np.maximum(0.0, 50.0 + 5.0 * tree.noise[:, 1]))


def test_openings_follow_external_scenarios():
    """Noise stays, mean and population deviation are the scenarios', and there are no more openings."""
    case = make_case([make_stage(0, 3), make_stage(1, 9, month=2)], hydro_ids=(1, 2), bus_ids=(0, 1))
    plain = build_opening_tree(case)
    inflow = (np.array([[7.0, 8.0]]), np.array([[1.0, 5.0], [3.0, 5.0], [8.0, 5.0]]))
    load = (np.array([[1.0, 2.0]] * 4), np.array([[1.0, 2.0], [5.0, 2.0], [6.0, 2.0], [8.0, 2.0]]))
    case = with_scenarios(case, external_inflow_m3s=inflow, external_load_mw=load)
    tree = build_opening_tree(with_source(case, seed=1, inflow="external", load="external"))
    assert tree.num_openings.tolist() == [1, 3]
    assert tree.noisy_buses.tolist() == [0]
    np.testing.assert_array_equal(tree.noise[0, :2], plain.noise[0])
    np.testing.assert_array_equal(tree.inflow_m3s[0], [7.0, 8.0])
    np.testing.assert_array_equal(tree.load_mw[0], [1.0, 2.0])
    eta = tree.noise[1:]
    np.testing.assert_array_equal(eta[:, :2], plain.noise[3:6])
    np.testing.assert_allclose(tree.inflow_m3s[1:, 0], 4.0 + np.std([1, 3, 8]) * eta[:, 0], rtol=1e-14)
    np.testing.assert_array_equal(tree.inflow_m3s[1:, 1], [5.0] * 3)
    expected = np.maximum(5.0 + np.std([1, 5, 6, 8]) * eta[:, 2], 0.0)
    np.testing.assert_allclose(tree.load_mw[1:, 0], expected, rtol=1e-14)
    np.testing.assert_array_equal(tree.load_mw[1:, 1], [2.0] * 3)


def test_scenario_nodes_have_generated_openings_of_other_classes():
    case = make_case([make_stage(0, 1), make_stage(1, 3, month=2)], bus_ids=(0,), load_std=[[0.0], [4.0]])
    nodes = (PolicyNode(0, 0), PolicyNode(1, 1, 1), PolicyNode(2, 1, 0), PolicyNode(3, 1))
    edges = tuple(Transition(0, target, 1 / 3) for target in (1, 2, 3))
    inflow = (np.zeros((0, 1)), np.array([[11.0], [22.0]]))
    case = with_scenarios(case, external_inflow_m3s=inflow)
    case = with_source(dataclasses.replace(case, graph=PolicyGraph(nodes, edges)), seed=1, inflow="external")
    tree = build_opening_tree(case)
    assert tree.num_openings.tolist() == [1, 3, 3, 3]
    assert tree.inflow_m3s[:, 0].tolist()[1:7] == [22.0] * 3 + [11.0] * 3
    for node in (1, 2):
        assert np.isnan(tree.noise[tree.rows(node), 0]).all()
        np.testing.assert_array_equal(tree.noise[tree.rows(node), 1], tree.noise[tree.rows(3), 1])
        np.testing.assert_array_equal(tree.load_mw[tree.rows(node)], tree.load_mw[tree.rows(3)])
    assert np.unique(tree.load_mw[tree.rows(3)]).size == 3


def monthly_history(first: int, last: int, hydros: int = 1) -> InflowHistory:
    """Return observations of 10 * hydro + month + year / 1000, one for each month."""
    rows = [(h, y, m) for h in range(hydros) for y in range(first, last + 1) for m in range(1, 13)]
    days = [np.datetime64(f"{y}-{m:02d}", "D") for _, y, m in rows]
    ends = [(np.datetime64(f"{y}-{m:02d}", "M") + 1).astype("datetime64[D]") for _, y, m in rows]
    values = [10.0 * h + m + y / 1000.0 for h, y, m in rows]
    return InflowHistory(np.array([h for h, _, _ in rows]), np.array(days), np.array(ends), np.array(values))


def monthly_stage(t: int, n: int = 8) -> Stage:
    start = datetime.date(2024 + t // 12, t % 12 + 1, 1)
    end = datetime.date(2024 + (t + 1) // 12, (t + 1) % 12 + 1, 1)
    return dataclasses.replace(make_stage(t, n, season_id=t % 12), start_date=start, end_date=end)


def with_history(case: Case, history: InflowHistory) -> Case:
    """Return a case of white noise by its statistics, beside which there is a history."""
    none = np.zeros((len(case.stages), len(case.hydros), 0))
    return with_scenarios(case, inflow_history=history, ar_coefficients=none)


MONTHS = SeasonMap("monthly", tuple(Season(m, f"month {m}", m + 1) for m in range(12)))


def test_residuals_of_history():
    stages = [by_method(monthly_stage(t), "historical_residuals") for t in range(10, 14)]
    case = make_case(stages, hydro_ids=(4, 6), inflow_mean=5.0, inflow_std=2.0, bus_ids=(0,), load_std=3.0)
    case = with_history(case, monthly_history(1990, 1994, hydros=2))
    tree = build_opening_tree(case)
    assert tree.num_openings.tolist() == [4] * 4  # years 1990-1993: the study runs on into the next
    for position, stage in enumerate(stages):
        month, later = stage.start_date.month, stage.start_date.year - 2024
        for opening, row in enumerate(tree.noise[tree.rows(position)]):
            year = 1990 + oracle.opening_seed(42, opening, stage.id) % 4 + later
            observed = np.array([0.0, 10.0]) + month + year / 1000.0
            np.testing.assert_allclose(row[:2], (observed - 5.0) / 2.0, rtol=1e-13)
            assert row[2] == 0.0


def test_history_without_a_complete_window():
    stages = [by_method(monthly_stage(t), "historical_residuals") for t in range(3)]
    case = with_history(make_case(stages, hydro_ids=(0, 1)), monthly_history(1990, 1991))
    with pytest.raises(ValidationError, match="no year from 1990 to 1992 has observations of all hydros"):
        build_opening_tree(case)


def test_historical_years_choose_windows():
    stages = [by_method(monthly_stage(t, 5), "historical_residuals") for t in range(2)]
    case = make_case(stages, inflow_mean=0.0, inflow_std=1.0)
    case = with_history(case, monthly_history(1990, 2000))
    tree = build_opening_tree(with_source(case, historical_years=(1995, 2050)))
    np.testing.assert_allclose(tree.noise[:, 0], [1 + 1.995, 2 + 1.995])


def test_sums_over_days_of_partial_months():
    week = dataclasses.replace(make_stage(0, 1), end_date=datetime.date(2024, 2, 3))
    week = dataclasses.replace(week, start_date=datetime.date(2024, 1, 30))
    stages = [by_method(week, "historical_residuals"), monthly_stage(2, 1)]
    case = make_case(stages, inflow_mean=0.0, inflow_std=1.0)
    tree = build_opening_tree(with_history(case, monthly_history(1990, 1990)))
    assert tree.noise[0, 0] == pytest.approx((2 * 1 + 2 * 2) / 4 + 1.99)


def sampled_case() -> Case:
    methods = ["saa", "lhs", "lhs", "owen_sobol", "qmc_halton", "qmc_sobol", "owen_halton"]
    seasons = [0, 1, 1, 2, 3, 4, 5]
    stages = [
        by_method(make_stage(t, 3 + t, season_id=seasons[t], month=1 + t), method)
        for t, method in enumerate(methods)
    ]
    return make_case(stages, hydro_ids=(1, 2, 3), bus_ids=(0, 1), load_std=2.0)


@pytest.mark.skipif(sys.platform != "linux", reason="shm needs Linux")
@pytest.mark.parametrize("backend", ["shm", "tcp"])
def test_ranks_fill_the_same_tree(backend):
    case = sampled_case()
    alone = build_opening_tree(case)
    expected = [array.tobytes() for array in (alone.noise, alone.inflow_m3s, alone.load_mw, alone.ncs_mw)]
    for found, offset, writable in launch(rank_functions.tree_bytes, 2, backend=backend, args=(case,)):
        assert found == expected
        assert offset == alone.offset.tolist()
        assert not writable


def test_memory_is_that_of_the_arrays():
    import tracemalloc

    case = make_case([make_stage(t, 60, season_id=t % 12, year=2024 + t // 12) for t in range(48)])
    case = make_case(case.stages, hydro_ids=range(100), bus_ids=(0, 1), load_std=1.0)
    build_opening_tree(case)
    tracemalloc.start()
    try:
        tree = build_opening_tree(case)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    own = sum(array.nbytes for array in (tree.noise, tree.inflow_m3s, tree.load_mw, tree.ncs_mw))
    assert peak < 1.1 * own


def test_openings_of_the_published_external_case():
    """Its stage LPs spill what does not fit, so that the lower bound is linear in the mean of openings."""
    tree = build_opening_tree(cobre.case.load(shared_cases() / "d28-decomp-weekly-monthly"))
    inflow = [tree.inflow_m3s[tree.rows(t)].mean() for t in range(6)]
    assert inflow[:5] == [45.0, 55.0, 60.0, 50.0, 65.0]
    hours = np.array([168.0] * 5 + [744.0])
    spilt_m3sh = inflow @ hours - 100.0 / 0.0036
    assert 0.01 * spilt_m3sh == pytest.approx(684.8652832950687, rel=1e-9)


@pytest.mark.parametrize("method", ["saa", "lhs", "qmc_sobol", "qmc_halton"])
def test_trees_like_the_toy_case_equal_the_oracles(method):
    """One plant with inflow 40 +- 10 over four months, ten openings, seed 42; and three plants."""
    for hydros in (1, 3):
        stages = [by_method(make_stage(t, 10), method) for t in range(4)]
        case = make_case(stages, hydro_ids=range(hydros), inflow_mean=40.0, inflow_std=10.0)
        tree = build_opening_tree(case)
        for number in range(4):
            noise = tree.noise[tree.rows(number)]
            assert noise.tolist() == toy_noise(method, number, hydros)
            np.testing.assert_array_equal(tree.inflow_m3s[tree.rows(number)], 40.0 + 10.0 * noise)


def toy_noise(method: str, stage: int, dim: int) -> list[list[float]]:
    seed = oracle.stage_seed(42, stage)
    if method == "lhs":
        return oracle.latin(seed, 10, dim)
    if method == "qmc_halton":
        return oracle.halton(seed, 10, first_primes(dim).tolist())
    if method == "qmc_sobol":
        points = qmc.Sobol(dim, scramble=False, bits=32).random(16)[:10]
        return oracle.sobol(seed, (points * 2.0**32).astype(np.uint64).tolist())
    normal = oracle.Ziggurat(ziggurat._X.tolist(), ziggurat._F.tolist())
    found = []
    for opening in range(10):
        generator = oracle.Pcg64(oracle.opening_seed(42, opening, stage))
        found.append([normal.draw(generator) for _ in range(dim)])
    return found
