from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from builders.scenario_studies import make_case, make_stage
from oracle.noise import Pcg64, Ziggurat, opening_seed

from cobre.errors import ValidationError
from cobre.stochastic import build_opening_tree
from cobre.stochastic.noise import ziggurat


def noise_oracle(seed: int, n_openings: int, stage_id: int, dim: int) -> np.ndarray:
    draw = Ziggurat(ziggurat._X.tolist(), ziggurat._F.tolist()).draw
    rows = []
    for opening in range(n_openings):
        rng = Pcg64(opening_seed(seed, opening, stage_id))
        rows.append([draw(rng) for _ in range(dim)])
    return np.array(rows)


def test_toy_values_are_pinned():
    tree = build_opening_tree(make_case([make_stage(0, 10), make_stage(1, 10, month=2)]))
    assert tree.seed == 42
    assert tree.noise[:3, 0].tolist() == [0.40098936496495646, -1.3954121776085244, 0.8337031709056368]
    assert tree.inflow_m3s[0, 0] == 100.0 + 10.0 * 0.40098936496495646


def test_noise_is_a_function_of_seed_opening_and_stage_id():
    stages = [make_stage(3, 4), make_stage(5, 2, month=2), make_stage(60, 7, month=3)]
    case = make_case(stages, hydro_ids=(1, 2), bus_ids=(4, 8), load_std=[0.0, 1.0])
    tree = build_opening_tree(case)
    for position, stage in enumerate(stages):
        np.testing.assert_array_equal(
            tree.noise[tree.rows(position)], noise_oracle(42, stage.num_openings, stage.id, 3)
        )
    # The same stage in another study, at another position, with more openings: the same noise.
    other = build_opening_tree(make_case([make_stage(60, 9)], hydro_ids=(7, 9, 11)))
    np.testing.assert_array_equal(other.noise[:7], tree.noise[tree.rows(2)])


def test_layout_with_different_numbers_of_openings():
    case = make_case(
        [make_stage(0, 3), make_stage(1, 1, month=2), make_stage(2, 5, month=3)], hydro_ids=(0, 1)
    )
    tree = build_opening_tree(case)
    assert tree.offset.tolist() == [0, 3, 4, 9]
    assert tree.offset.dtype == np.int64
    assert tree.num_openings.tolist() == [3, 1, 5]
    assert tree.noise.shape == (9, 2)
    assert tree.inflow_m3s.shape == (9, 2)
    assert tree.load_mw.shape == (9, 1)
    for array in (tree.noise, tree.inflow_m3s, tree.load_mw):
        assert array.dtype == np.float64
        assert array.flags.c_contiguous


def test_seed_argument_replaces_the_seed_of_the_study():
    stages = [make_stage(0, 5)]
    by_argument = build_opening_tree(make_case(stages), seed=7)
    by_study = build_opening_tree(make_case(stages, tree_seed=7))
    assert by_argument.seed == by_study.seed == 7
    np.testing.assert_array_equal(by_argument.noise, by_study.noise)
    assert not np.array_equal(by_argument.noise, build_opening_tree(make_case(stages)).noise)
    largest = build_opening_tree(make_case(stages), seed=2**64 - 1)
    np.testing.assert_array_equal(largest.noise, noise_oracle(2**64 - 1, 5, 0, 1))


@pytest.mark.parametrize("seed", [-1, 2**64])
def test_seed_out_of_range_is_refused(seed):
    with pytest.raises(ValidationError, match=str(seed)) as caught:
        build_opening_tree(make_case([make_stage(0, 2)]), seed=seed)
    assert caught.value.kind == "InvalidSeed"


def test_order_of_entities_does_not_matter():
    stages = [make_stage(0, 6), make_stage(1, 4, month=2)]
    mean, std = np.array([10.0, 20.0, 30.0]), np.array([1.0, 2.0, 3.0])
    load, load_std = np.array([5.0, 6.0, 7.0]), np.array([0.5, 0.0, 0.7])
    given = make_case(
        stages,
        hydro_ids=(1, 2, 3),
        bus_ids=(0, 4, 9),
        inflow_mean=mean,
        inflow_std=std,
        load_mean=load,
        load_std=load_std,
    )
    shuffle = [2, 0, 1]
    shuffled = dataclasses.replace(
        given,
        hydros=tuple(given.hydros[i] for i in shuffle),
        buses=tuple(given.buses[i] for i in shuffle),
        scenarios=dataclasses.replace(
            given.scenarios,
            inflow_mean_m3s=given.scenarios.inflow_mean_m3s[:, shuffle],
            inflow_std_m3s=given.scenarios.inflow_std_m3s[:, shuffle],
            load_mean_mw=given.scenarios.load_mean_mw[:, shuffle],
            load_std_mw=given.scenarios.load_std_mw[:, shuffle],
        ),
    )
    tree, other = build_opening_tree(given), build_opening_tree(shuffled)
    np.testing.assert_array_equal(other.noise, tree.noise)
    np.testing.assert_array_equal(other.inflow_m3s, tree.inflow_m3s[:, shuffle])
    np.testing.assert_array_equal(other.load_mw, tree.load_mw[:, shuffle])
    assert other.inflow_m3s.flags.c_contiguous
    assert [shuffled.buses[i].id for i in other.noisy_buses] == [0, 9]


def test_stages_of_one_season_and_year_share_their_openings():
    stages = [
        make_stage(0, 3, season_id=0),
        make_stage(1, 5, season_id=0, month=2),
        make_stage(2, 4, season_id=0, month=3),
        make_stage(3, 2, season_id=0, month=4),
        make_stage(4, 2, season_id=1, month=5),
        make_stage(5, 2, season_id=0, month=6),
        make_stage(6, 2, season_id=0, year=2025),
    ]
    tree = build_opening_tree(make_case(stages, hydro_ids=(0, 1)))
    blocks = [tree.noise[tree.rows(t)] for t in range(len(stages))]
    np.testing.assert_array_equal(blocks[0], noise_oracle(42, 3, 0, 2))
    np.testing.assert_array_equal(blocks[1][:3], blocks[0])
    np.testing.assert_array_equal(blocks[1][3:], np.zeros((2, 2)))
    np.testing.assert_array_equal(blocks[2], blocks[1][:4])
    np.testing.assert_array_equal(blocks[3], blocks[0][:2])
    for t in (4, 5, 6):  # another season; the season again but not next to it; another year
        np.testing.assert_array_equal(blocks[t], noise_oracle(42, 2, t, 2))


def test_stages_without_a_season_share_nothing():
    tree = build_opening_tree(make_case([make_stage(0, 3), make_stage(1, 3, month=2)]))
    np.testing.assert_array_equal(tree.noise[3:], noise_oracle(42, 3, 1, 1))


@pytest.mark.parametrize("method", ["none", "penalty", "truncation", "truncation_with_penalty"])
def test_negative_inflow_stays_in_the_tree(method):
    case = make_case([make_stage(0, 20)], inflow_mean=5.0, inflow_std=10.0, inflow_method=method)
    tree = build_opening_tree(case)
    np.testing.assert_array_equal(tree.inflow_m3s, 5.0 + 10.0 * tree.noise)
    assert tree.inflow_m3s.min() < 0.0


def test_load_noise_follows_the_hydros_and_is_cut_at_zero():
    stages = [make_stage(0, 20), make_stage(1, 20, month=2)]
    case = make_case(
        stages,
        hydro_ids=(3,),
        bus_ids=(0, 1, 2),
        load_mean=[[10.0, -7.0, 4.0], [-3.0, -7.0, 4.0]],
        load_std=[[20.0, 0.0, 0.0], [0.0, 0.0, 8.0]],
    )
    tree = build_opening_tree(case)
    assert tree.noisy_buses.tolist() == [0, 2]
    assert tree.noise.shape == (40, 3)
    first, second = tree.rows(0), tree.rows(1)
    raw = 10.0 + 20.0 * tree.noise[first, 1]
    assert raw.min() < 0.0 < raw.max()
    np.testing.assert_array_equal(tree.load_mw[first, 0], np.maximum(raw, 0.0))
    # A bus with noise at some stage is cut at 0 at all of them; one without keeps its mean, whatever it is.
    np.testing.assert_array_equal(tree.load_mw[second, 0], np.zeros(20))
    np.testing.assert_array_equal(tree.load_mw[:, 1], np.full(40, -7.0))
    np.testing.assert_array_equal(tree.load_mw[first, 2], np.full(20, 4.0))
    np.testing.assert_array_equal(tree.load_mw[second, 2], np.maximum(0.0, 4.0 + 8.0 * tree.noise[second, 2]))


def test_a_study_without_noise_or_hydros_has_rows_all_the_same():
    tree = build_opening_tree(make_case([make_stage(0, 2)], hydro_ids=(), load_mean=9.0))
    assert tree.noise.shape == (2, 0)
    assert tree.inflow_m3s.shape == (2, 0)
    assert tree.load_mw.tolist() == [[9.0], [9.0]]


def test_the_tree_does_not_share_memory_with_the_study():
    case = make_case([make_stage(0, 1)])
    tree = build_opening_tree(case)
    assert not np.shares_memory(tree.load_mw, case.scenarios.load_mean_mw)
    assert not np.shares_memory(tree.inflow_m3s, case.scenarios.inflow_mean_m3s)
