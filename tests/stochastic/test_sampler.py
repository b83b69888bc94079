"""The noise of forward passes: every scheme, every method, and the arithmetic of the tree."""

from __future__ import annotations

import dataclasses
import struct

import numpy as np
import oracle.noise as oracle
import pytest
from builders.scenario_studies import make_case, make_stage
from numba import njit
from scipy.stats import kstest
from test_correlation import correlated, inflow_group, random_correlation
from test_opening_sources import (
    MONTHS,
    by_method,
    monthly_history,
    monthly_stage,
    sampled_case,
    with_scenarios,
    with_source,
)

from cobre.case.model import Case
from cobre.stochastic import (
    build_opening_tree,
    forward_noise,
    initial_memory,
    make_sampler,
    noise_length,
    prepare_forward,
    realise,
)
from cobre.stochastic.correlation import symmetric_root
from cobre.stochastic.noise import ziggurat
from cobre.stochastic.noise.halton import first_primes
from cobre.stochastic.par import InflowModel, LagDynamics, inflow_model

PASSES = 6


def with_passes(case: Case, **source) -> Case:
    case = with_source(case, **source)
    return dataclasses.replace(case, training=dataclasses.replace(case.training, forward_passes=PASSES))


@njit
def _draw(sampler, iteration, scenario, stage, opening, eta, out):
    forward_noise(sampler, iteration, scenario, stage, opening, eta)
    realise(sampler, stage, eta, out)


@njit
def _prepare(sampler, iteration):
    prepare_forward(sampler, iteration)


@njit
def _memory(sampler, iteration, scenario, out):
    initial_memory(sampler, iteration, scenario, out)


def draw(sampler, iteration: int, scenario: int, stage: int, opening: int = 0) -> tuple[list, list]:
    width = sampler.hydro_slot.size + sampler.bus_slot.size + sampler.source_slot.size
    eta, out = np.full(noise_length(sampler), np.nan), np.full(width, np.nan)
    _draw(sampler, iteration, scenario, stage, opening, eta, out)
    return eta[:width].tolist(), out.tolist()


def sampler_of(case: Case, iteration: int = 1, model: InflowModel | None = None, **options):
    model = inflow_model(case) if model is None else model
    sampler = make_sampler(case, model, build_opening_tree(case, model=model), **options)
    _prepare(sampler, iteration)
    return sampler


def normals(seed: int, count: int) -> list[float]:
    rng, table = oracle.Pcg64(seed), oracle.Ziggurat(ziggurat._X.tolist(), ziggurat._F.tolist())
    return [table.draw(rng) for _ in range(count)]


def class_seed(seed: int, number: int) -> int:
    return seed if number == 0 else oracle.siphash(struct.pack("<QI", seed, number))


def test_in_sample_passes_meet_the_openings():
    case = with_passes(sampled_case())
    tree, sampler = build_opening_tree(case), sampler_of(case)
    for row in range(len(tree.noise)):
        stage = int(np.searchsorted(tree.offset, row, side="right")) - 1
        _, out = draw(sampler, 3, 1, stage, row)
        assert out == [*tree.inflow_m3s[row], *tree.load_mw[row], *tree.ncs_mw[row]]


def test_fresh_noise_one_by_one():
    stages = [make_stage(7, 2, season_id=1), make_stage(8, 2, season_id=2), make_stage(9, 2, season_id=1)]
    case = make_case(stages, hydro_ids=(3, 5), bus_ids=(0, 1), load_std=[[0.0, 4.0]])
    case = with_passes(case, seed=99, inflow="out_of_sample", load="out_of_sample")
    sampler = sampler_of(case)
    for stage, group in enumerate((0, 1, 0)):
        eta, out = draw(sampler, 2, 5, stage)
        inflow = normals(oracle.fresh_seed(99, 2, 5, group), 2)
        load = normals(oracle.fresh_seed(class_seed(99, 1), 2, 5, group), 1)
        assert eta == [*inflow, 0.0, *load]
        assert out == [*(100.0 + 10.0 * x for x in inflow), 50.0, max(0.0, 50.0 + 4.0 * load[0])]


def test_classes_choose_their_scheme():
    case = make_case([make_stage(0, 2)], hydro_ids=(3,), bus_ids=(0,), load_std=4.0)
    case = with_passes(case, seed=5, load="out_of_sample")
    tree = build_opening_tree(case)
    _, out = draw(sampler_of(case), 1, 0, 0, 1)
    assert out[0] == tree.inflow_m3s[1, 0]
    assert out[1] == max(0.0, 50.0 + 4.0 * normals(oracle.fresh_seed(class_seed(5, 1), 1, 0, 0), 1)[0])


@pytest.mark.parametrize("block", [None, (2, 5)])
def test_fresh_noise_made_together(block):
    methods = ["lhs", "qmc_halton", "qmc_sobol"]
    stages = [by_method(make_stage(t, 2, month=1 + t), method) for t, method in enumerate(methods)]
    case = make_case(stages, hydro_ids=(1, 2, 3), bus_ids=(0, 1), load_std=1.0)
    case = with_passes(case, seed=11, inflow="out_of_sample", load="out_of_sample")
    sampler = sampler_of(case, iteration=4, block=block)
    for scenario in range(*(block or (0, PASSES))):
        for number, where in ((0, slice(0, 3)), (1, slice(3, 5))):
            seed, dim = class_seed(11, number), where.stop - where.start
            shared = [oracle.opening_seed(seed, 4, group) for group in range(3)]
            own = oracle.forward_seed(seed, 4, scenario, 0)
            assert draw(sampler, 4, scenario, 0)[0][where] == oracle.latin_point(
                shared[0], own, scenario, PASSES, dim
            )
            halton = oracle.halton(shared[1], PASSES, first_primes(dim).tolist())
            assert draw(sampler, 4, scenario, 1)[0][where] == halton[scenario]
            plain = [[int(f"{i:032b}"[::-1], 2)] for i in range(PASSES)]  # first dimension: bits reversed
            assert (
                draw(sampler, 4, scenario, 2)[0][where.start] == oracle.sobol(shared[2], plain)[scenario][0]
            )


@pytest.mark.parametrize("method", ["lhs", "qmc_sobol", "owen_sobol", "owen_halton"])
def test_fresh_noise_is_standard_normal_over_iterations(method):
    case = make_case([by_method(make_stage(0, 2), method)], hydro_ids=(1, 2))
    case = with_passes(case, seed=3, inflow="out_of_sample")
    model = inflow_model(case)
    sampler = make_sampler(case, model, build_opening_tree(case))
    found = []
    for iteration in range(1, 601):
        _prepare(sampler, iteration)
        found.append(draw(sampler, iteration, 2, 0)[0][:2])
    for column in np.array(found).T:
        assert kstest(column, "norm").pvalue > 1e-4
    assert abs(np.corrcoef(np.array(found).T)[0, 1]) < 4.5 / np.sqrt(600)


@pytest.mark.parametrize("method", ["saa", "lhs"])
def test_fresh_noise_is_correlated_as_the_openings_are(method):
    matrix = random_correlation(3, 5)
    plain = make_case([by_method(make_stage(0, 2), method)], hydro_ids=(9, 4, 6))
    plain = with_passes(plain, seed=8, inflow="out_of_sample")
    case = correlated(plain, {"default": [inflow_group([0, 1, 2], matrix)]}, ("default",))
    independent = draw(sampler_of(plain), 1, 3, 0)[0][:3]
    np.testing.assert_allclose(
        draw(sampler_of(case), 1, 3, 0)[0][:3], symmetric_root(matrix) @ independent, rtol=1e-12
    )


def pick(tag: int, iteration: int, scenario: int, count: int) -> int:
    return oracle.forward_seed(tag, iteration, scenario, 0) % count


def test_external_scenarios_come_whole():
    case = make_case([make_stage(0, 2), make_stage(1, 2, month=2)], hydro_ids=(1, 2), inflow_std=[0.0, 3.0])
    inflow = (np.array([[1.0, 2.0], [3.0, 4.0]]), np.arange(10.0).reshape(5, 2))
    case = with_scenarios(case, external_inflow_m3s=inflow)
    sampler = sampler_of(with_passes(case, seed=1, inflow="external"))
    for iteration, scenario in ((1, 0), (2, 0), (2, 3)):
        drawn = pick(0x65787465726E616C, iteration, scenario, 5)
        assert draw(sampler, iteration, scenario, 0)[1][:2] == inflow[0][drawn % 2].tolist()
        assert draw(sampler, iteration, scenario, 1)[1][:2] == inflow[1][drawn].tolist()


def lagged_model(case: Case) -> InflowModel:
    """Return z = 1 + 0.5 (last month) + 0.25 (the month before) + 2 eta."""
    stages, hydros = len(case.stages), len(case.hydros)
    lags = LagDynamics(
        ("lag 1", "lag 2"),
        carry=np.array([[[0.0, 0.0], [1.0, 0.0]]] * stages),
        gain=np.array([[1.0, 0.0]] * stages),
        initial=np.tile([4.0, 8.0], (hydros, 1)),
        needed=np.ones((hydros, 2), np.bool_),
    )
    psi = np.tile([0.5, 0.25], (stages, hydros, 1))
    ones = np.ones((stages, hydros))
    order = np.full((stages, hydros), 2)
    return InflowModel(ones, psi, 2.0 * ones, lags, "user_provided_no_history", 4.0 * ones, 3.0 * ones, order)


def inflows_along(sampler, model: InflowModel, iteration: int, scenario: int) -> np.ndarray:
    memory = np.empty_like(model.lags.initial)
    _memory(sampler, iteration, scenario, memory)
    found = []
    for stage in range(len(model.base_m3s)):
        base = np.array(draw(sampler, iteration, scenario, stage)[1][: len(memory)])
        inflow = base + (model.psi[stage] * memory).sum(axis=1)
        found.append(inflow)
        memory = memory @ model.lags.carry[stage].T + np.outer(inflow, model.lags.gain[stage])
    return np.array(found)


def test_external_inflow_comes_back_through_lags():
    case = make_case([make_stage(t, 2, month=1 + t) for t in range(4)], hydro_ids=(1, 2))
    rng = np.random.default_rng(0)
    inflow = tuple(rng.normal(10.0, 3.0, size=(n, 2)) for n in (1, 3, 2, 3))
    case = with_scenarios(case, external_inflow_m3s=inflow)
    case = with_passes(case, seed=1, inflow="external")
    model = lagged_model(case)
    sampler = sampler_of(case, model=model)
    for scenario in range(5):
        drawn = pick(0x65787465726E616C, 1, scenario, 3)
        expected = [values[drawn % len(values)] for values in inflow]
        np.testing.assert_allclose(inflows_along(sampler, model, 1, scenario), expected, rtol=1e-12)


def test_historical_inflow_comes_back_with_its_lags():
    case = make_case([monthly_stage(t, 2) for t in range(11, 14)], hydro_ids=(1, 2))
    case = dataclasses.replace(case, seasons=MONTHS)
    case = with_scenarios(case, inflow_history=monthly_history(1990, 1995, hydros=2))
    case = with_passes(case, inflow="historical", historical_years=range(1992, 2001))
    model = lagged_model(case)
    sampler = sampler_of(case, model=model)
    for scenario in range(5):
        year = 1992 + pick(0x686973746F726963, 1, scenario, 3)
        expected = np.array(
            [[12 + year / 1000], [1 + (year + 1) / 1000], [2 + (year + 1) / 1000]]
        ) + np.array([0.0, 10.0])
        np.testing.assert_allclose(inflows_along(sampler, model, 1, scenario), expected, rtol=1e-12)
        memory = np.empty((2, 2))
        _memory(sampler, 1, scenario, memory)
        np.testing.assert_allclose(memory[0], [11 + year / 1000, 10 + year / 1000])


def test_memory_of_other_schemes_is_that_of_the_model():
    case = with_passes(make_case([make_stage(0, 2), make_stage(1, 2)]))
    model = lagged_model(case)
    memory = np.empty((1, 2))
    _memory(sampler_of(case, model=model), 1, 3, memory)
    assert memory.tolist() == [[4.0, 8.0]]
