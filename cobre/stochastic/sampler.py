"""The noise of forward passes, by class and scheme.

* ``in_sample``: the opening that was drawn (:func:`cobre.stochastic.sample_opening`), as the tree holds it;
* ``out_of_sample``: fresh noise by the stage's sampling method, correlated as the openings are. Independent
  noise (``saa``) has as seed the hash of (1, seed, iteration, pass, noise group); the other methods make the
  points of all passes of an iteration together from the hash of (seed, iteration, noise group), and the
  place within a stratum of ``lhs`` from the hash of (seed, iteration, pass, noise group). Inflow has the
  seed of the scenario source; load and sources have the hash of it and of their number (1 and 2), so that no
  class repeats the noise of another;
* ``external``: one scenario of the library for the whole pass, by the hash of (a constant, iteration,
  pass, 0);
* ``historical``: one window of the history for the whole pass, likewise; the memory of past inflows is that
  of the window.

Everything is a function of (iteration, scenario, stage): any rank and thread can produce any of it.
"""

# numba's decorator hides the kernels' types from mypy.
# mypy: disallow-untyped-decorators=False, warn-return-any=False
from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from cobre.case.model import Case, ScenarioSource
from cobre.native import array_struct, inner_kernel
from cobre.stochastic.correlation import correlation_roots
from cobre.stochastic.entities import CLASSES, NoiseLayout, noise_groups
from cobre.stochastic.external import library
from cobre.stochastic.historical import historical_windows
from cobre.stochastic.noise.halton import fill_halton, fill_owen_halton
from cobre.stochastic.noise.latin import fill_latin_strata, finish_latin_point
from cobre.stochastic.noise.siphash import forward_seed, fresh_seed, opening_seed, stage_seed
from cobre.stochastic.noise.sobol import BITS, fill_owen_sobol, fill_sobol
from cobre.stochastic.noise.ziggurat import fill_standard_normal
from cobre.stochastic.openings import (
    LHS,
    METHODS,
    OWEN_HALTON,
    OWEN_SOBOL,
    QMC_HALTON,
    QMC_SOBOL,
    SAA,
    halton_bases,
    sobol_table,
)
from cobre.stochastic.par import InflowModel
from cobre.stochastic.statistics import noise_statistics, realised_load, realised_share
from cobre.stochastic.tree import OpeningTree, study_correlation, study_layout

FloatArray = NDArray[np.float64]

U32_2D = Annotated[NDArray[np.uint32], types.uint32[:, ::1]]
U64_1D = Annotated[NDArray[np.uint64], types.uint64[::1]]
I64_1D = Annotated[NDArray[np.int64], types.int64[::1]]
I64_2D = Annotated[NDArray[np.int64], types.int64[:, ::1]]
F64_1D = Annotated[FloatArray, types.float64[::1]]
F64_2D = Annotated[FloatArray, types.float64[:, ::1]]
F64_3D = Annotated[FloatArray, types.float64[:, :, ::1]]

IN_SAMPLE, OUT_OF_SAMPLE, EXTERNAL, HISTORICAL = range(4)
_SCHEMES = {
    "in_sample": IN_SAMPLE,
    "out_of_sample": OUT_OF_SAMPLE,
    "external": EXTERNAL,
    "historical": HISTORICAL,
}
_EXTERNAL_SEED = np.uint64(0x65787465726E616C)
_HISTORICAL_SEED = np.uint64(0x686973746F726963)


class SamplerArrays(NamedTuple):
    """What forward passes draw from; H hydros, B buses, S sources, T stages, K lags.

    Only ``fresh`` changes, by :func:`prepare_forward`; the rest is read-only for kernels.

    Attributes
    ----------
    scheme, seed, first_slot
        By class: scheme, seed of fresh noise, and (one longer) where it begins in a noise vector.
    passes
        All passes of an iteration, the first of those that ``fresh`` holds, and how many it holds.
    method, group, fresh_at
        By stage: sampling method, noise group, position in ``fresh`` or -1.
    fresh_stage
        By position in ``fresh``: a stage whose group and method it is of.
    fresh
        Fresh noise of this iteration by (position, pass, place), before correlation.
    directions, primes
        Of Sobol and Halton points.
    base, sigma ... source_slot
        As in :class:`~cobre.stochastic.statistics.NoiseStatistics`.
    stage_start ... root
        As in :class:`~cobre.stochastic.correlation.CorrelationRoots`; ``entity`` is whose place ``slot`` is.
    tree_inflow, tree_load, tree_ncs
        The opening tree's values.
    inflow_offset, inflow_row
        External scenarios or historical windows of base inflow: rows of stage t from ``inflow_offset[t]``.
    load_offset, load_row, ncs_offset, ncs_row
        External scenarios of load and availability.
    library_size
        By class: scenarios, or windows.
    memory
        What enters the first stage, by (window, hydro, K); one window unless inflow is historical.
    """

    scheme: I64_1D
    seed: U64_1D
    first_slot: I64_1D
    passes: I64_1D
    method: I64_1D
    group: I64_1D
    fresh_at: I64_1D
    fresh_stage: I64_1D
    fresh: F64_3D
    directions: U32_2D
    primes: I64_1D
    base: F64_2D
    sigma: F64_2D
    load_mean: F64_2D
    load_std: F64_2D
    ncs_mean: F64_2D
    ncs_std: F64_2D
    ncs_stated: F64_2D
    ncs_most: F64_2D
    hydro_slot: I64_1D
    bus_slot: I64_1D
    source_slot: I64_1D
    stage_start: I64_1D
    stage_group: I64_1D
    kind: I64_1D
    slot_start: I64_1D
    slot: I64_1D
    entity: I64_1D
    root_start: I64_1D
    root: F64_1D
    tree_inflow: F64_2D
    tree_load: F64_2D
    tree_ncs: F64_2D
    inflow_offset: I64_1D
    inflow_row: F64_2D
    load_offset: I64_1D
    load_row: F64_2D
    ncs_offset: I64_1D
    ncs_row: F64_2D
    library_size: I64_1D
    memory: F64_3D


SamplerStruct = array_struct(SamplerArrays)


def make_sampler(
    case: Case,
    model: InflowModel,
    tree: OpeningTree,
    *,
    source: ScenarioSource | None = None,
    passes: int | None = None,
    block: tuple[int, int] | None = None,
) -> SamplerArrays:
    """Return what the forward passes of a study draw from.

    Parameters
    ----------
    model, tree
        The study's inflow model and opening tree.
    source
        Schemes; those of training unless given.
    passes
        Forward passes of an iteration, over all ranks; those of training unless given.
    block
        Passes ``start`` to ``stop`` that this rank makes; all unless given.

    Raises
    ------
    ValidationError
        If the history has no complete window, or there are more dimensions than Sobol points have.
    """
    source = case.training.source if source is None else source
    passes = case.training.forward_passes if passes is None else passes
    start, stop = (0, passes) if block is None else block
    layout = study_layout(case)
    statistics = noise_statistics(case, model, layout)
    scheme = np.array([_SCHEMES[source.scheme(name)] for name in CLASSES], np.int64)
    if case.graph.has_scenarios:
        scheme[scheme == EXTERNAL] = IN_SAMPLE  # the nodes' openings hold the scenarios
    fresh = bool((scheme == OUT_OF_SAMPLE).any())
    roots = correlation_roots(case, layout, study_correlation(case) if fresh else None)
    slots = np.array([*(layout.start(name) for name in CLASSES), layout.dimension], np.int64)

    method = np.array([METHODS[stage.sampling_method] for stage in case.stages], np.int64)
    group = noise_groups(case.stages)
    fresh_at, fresh_stage = _fresh_positions(method, group, fresh)
    drawn = set(method[fresh_at >= 0].tolist())
    widest = int(np.diff(slots).max())
    sobol = sobol_table(widest) if drawn & {QMC_SOBOL, OWEN_SOBOL} else np.zeros((0, BITS), np.uint32)
    primes = halton_bases(widest if drawn & {QMC_HALTON, OWEN_HALTON} else 0)

    memory = np.array(model.lags.initial, np.float64, order="C")[None]
    rows: dict[str, tuple[NDArray[np.int64], FloatArray]] = {}
    sizes = [1, 1, 1]
    for number, name in enumerate(CLASSES):
        width = (len(case.hydros), len(case.buses), len(case.non_controllables))[number]
        rows[name] = np.zeros(1, np.int64), np.zeros((0, width))
        if scheme[number] == EXTERNAL:
            values = library(case, name, model)
            given = case.scenarios.external(name) or ()
            sizes[number] = max(len(part) for part in given)
            rows[name] = _stacked(values)
        elif scheme[number] == HISTORICAL:
            windows = historical_windows(case, model, source.historical_years)
            sizes[number], memory = len(windows), windows.memory
            rows[name] = _stacked(tuple(np.swapaxes(windows.base_m3s, 0, 1)))
    seed = np.uint64(source.seed or 0)
    return SamplerArrays(
        scheme=scheme,
        seed=np.array([seed, stage_seed(seed, 1), stage_seed(seed, 2)], np.uint64),
        first_slot=slots,
        passes=np.array([passes, start, stop - start], np.int64),
        method=method,
        group=group,
        fresh_at=fresh_at,
        fresh_stage=fresh_stage,
        fresh=np.zeros((fresh_stage.size, stop - start, layout.dimension)),
        directions=sobol,
        primes=primes,
        **statistics._asdict(),
        stage_start=roots.stage_start,
        stage_group=roots.stage_group,
        kind=roots.kind,
        slot_start=roots.slot_start,
        slot=roots.slot,
        entity=_entity_of_slot(layout)[roots.slot],
        root_start=roots.root_start,
        root=roots.root,
        tree_inflow=_writable(tree.inflow_m3s),
        tree_load=_writable(tree.load_mw),
        tree_ncs=_writable(tree.ncs_mw),
        inflow_offset=rows["inflow"][0],
        inflow_row=rows["inflow"][1],
        load_offset=rows["load"][0],
        load_row=rows["load"][1],
        ncs_offset=rows["ncs"][0],
        ncs_row=rows["ncs"][1],
        library_size=np.array(sizes, np.int64),
        memory=np.ascontiguousarray(memory),
    )


def _fresh_positions(
    method: NDArray[np.int64], group: NDArray[np.int64], wanted: bool
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return for each stage its position in the table of fresh noise, and for each position a stage."""
    at = np.full(method.size, -1, np.int64)
    known: dict[tuple[int, int], int] = {}
    first: list[int] = []
    for stage in range(method.size if wanted else 0):
        if method[stage] != SAA:
            key = (int(group[stage]), int(method[stage]))
            if key not in known:
                known[key] = len(first)
                first.append(stage)
            at[stage] = known[key]
    return at, np.array(first, np.int64)


def _stacked(values: tuple[FloatArray, ...]) -> tuple[NDArray[np.int64], FloatArray]:
    offset = np.zeros(len(values) + 1, np.int64)
    np.cumsum([len(part) for part in values], out=offset[1:])
    return offset, np.ascontiguousarray(np.concatenate(values), dtype=np.float64)


def _entity_of_slot(layout: NoiseLayout) -> NDArray[np.int64]:
    return np.concatenate([layout.members(name) for name in CLASSES])


def _writable(array: FloatArray) -> FloatArray:
    """Return a view whose type kernels take, though nothing writes to it."""
    view = array.view()
    view.setflags(write=True)
    return view


def noise_length(sampler: SamplerArrays) -> int:
    """Return the length of the buffer that :func:`forward_noise` fills."""
    width = sampler.hydro_slot.size + sampler.bus_slot.size + sampler.source_slot.size
    return int(width + sampler.first_slot[-1])


@inner_kernel
def prepare_forward(sampler: SamplerArrays, iteration: int) -> None:
    """Draw what the passes of an iteration share; once before its first :func:`forward_noise`.

    Does nothing where all fresh noise is independent (``saa``).
    """
    passes, first = sampler.passes[0], sampler.passes[1]
    for position in range(sampler.fresh_stage.shape[0]):
        stage = sampler.fresh_stage[position]
        group, method = sampler.group[stage], sampler.method[stage]
        for number in range(3):
            if sampler.scheme[number] != OUT_OF_SAMPLE:
                continue
            base = sampler.seed[number]
            seed = opening_seed(base, iteration, group)
            out = sampler.fresh[position, :, sampler.first_slot[number] : sampler.first_slot[number + 1]]
            if method == LHS:
                fill_latin_strata(seed, passes, first, out)
                for row in range(out.shape[0]):
                    finish_latin_point(forward_seed(base, iteration, first + row, group), passes, out[row])
            elif method == QMC_SOBOL:
                fill_sobol(seed, sampler.directions, first, False, out)
            elif method == OWEN_SOBOL:
                fill_owen_sobol(seed, sampler.directions, first, out)
            elif method == QMC_HALTON:
                fill_halton(seed, sampler.primes, passes, first, out)
            else:
                fill_owen_halton(seed, sampler.primes, passes, first, out)


@inner_kernel
def _drawn(sampler: SamplerArrays, number: int, iteration: int, scenario: int) -> int:
    """Return the scenario or window of a class that a pass takes."""
    seed = _EXTERNAL_SEED if sampler.scheme[number] == EXTERNAL else _HISTORICAL_SEED
    return np.int64(forward_seed(seed, iteration, scenario, 0) % np.uint64(sampler.library_size[number]))


@inner_kernel
def initial_memory(sampler: SamplerArrays, iteration: int, scenario: int, out: FloatArray) -> None:
    """Fill the memory of past inflows, by (hydro, K), with which a pass begins."""
    window = 0
    if sampler.scheme[0] == HISTORICAL:
        window = _drawn(sampler, 0, iteration, scenario)
    for hydro in range(out.shape[0]):
        for lag in range(out.shape[1]):
            out[hydro, lag] = sampler.memory[window, hydro, lag]


@inner_kernel
def forward_noise(
    sampler: SamplerArrays, iteration: int, scenario: int, stage: int, opening: int, eta_out: FloatArray
) -> None:
    """Draw the noise of a pass at a stage; :func:`realise` makes values of it.

    Parameters
    ----------
    iteration
        Training iteration, from 1; that of the last :func:`prepare_forward`. 0 in simulation.
    scenario
        Forward pass, counted over all ranks, from 0.
    stage
        Position of the stage.
    opening
        Row of the opening tree that was drawn.
    eta_out
        Buffer of :func:`noise_length` elements. Its first H + B + S ones are filled, entities as in the case:
        noise of classes drawn out of sample, values of the others; the rest is scratch.
    """
    hydros, buses = sampler.hydro_slot.shape[0], sampler.bus_slot.shape[0]
    sources = sampler.source_slot.shape[0]
    if (
        sampler.scheme[0] == OUT_OF_SAMPLE
        or sampler.scheme[1] == OUT_OF_SAMPLE
        or sampler.scheme[2] == OUT_OF_SAMPLE
    ):
        _fresh_noise(sampler, iteration, scenario, stage, eta_out[hydros + buses + sources :])
    for number in range(3):
        if number == 0:
            slots, drawn, offset, rows = (
                sampler.hydro_slot,
                sampler.tree_inflow,
                sampler.inflow_offset,
                sampler.inflow_row,
            )
            begin = 0
        elif number == 1:
            slots, drawn, offset, rows = (
                sampler.bus_slot,
                sampler.tree_load,
                sampler.load_offset,
                sampler.load_row,
            )
            begin = hydros
        else:
            slots, drawn, offset, rows = (
                sampler.source_slot,
                sampler.tree_ncs,
                sampler.ncs_offset,
                sampler.ncs_row,
            )
            begin = hydros + buses
        scheme = sampler.scheme[number]
        if scheme == OUT_OF_SAMPLE:
            _spread(sampler, stage, number, slots, begin, eta_out)
        elif scheme == IN_SAMPLE:
            for entity in range(slots.shape[0]):
                eta_out[begin + entity] = drawn[opening, entity]
        else:
            count = offset[stage + 1] - offset[stage]
            row = offset[stage] + _drawn(sampler, number, iteration, scenario) % count
            for entity in range(slots.shape[0]):
                eta_out[begin + entity] = rows[row, entity]


@inner_kernel
def _fresh_noise(sampler: SamplerArrays, iteration: int, scenario: int, stage: int, out: FloatArray) -> None:
    """Fill the independent noise of the classes drawn out of sample, in the order of noise vectors."""
    position = sampler.fresh_at[stage]
    for number in range(3):
        if sampler.scheme[number] != OUT_OF_SAMPLE:
            continue
        first, last = sampler.first_slot[number], sampler.first_slot[number + 1]
        if position < 0:
            seed = fresh_seed(sampler.seed[number], iteration, scenario, sampler.group[stage])
            fill_standard_normal(seed, out[first:last])
        else:
            row = scenario - sampler.passes[1]
            for place in range(first, last):
                out[place] = sampler.fresh[position, row, place]


@inner_kernel
def _spread(
    sampler: SamplerArrays,
    stage: int,
    number: int,
    slots: NDArray[np.int64],
    begin: int,
    eta_out: FloatArray,
) -> None:
    """Correlate the fresh noise of a class and write it by entity; 0 for entities without noise."""
    independent = eta_out[
        sampler.hydro_slot.shape[0] + sampler.bus_slot.shape[0] + sampler.source_slot.shape[0] :
    ]
    for entity in range(slots.shape[0]):
        eta_out[begin + entity] = independent[slots[entity]] if slots[entity] >= 0 else 0.0
    for position in range(sampler.stage_start[stage], sampler.stage_start[stage + 1]):
        group = sampler.stage_group[position]
        if sampler.kind[group] != number:
            continue
        start, stop = sampler.slot_start[group], sampler.slot_start[group + 1]
        size = stop - start
        for i in range(size):
            total = 0.0
            for j in range(size):
                factor = sampler.root[sampler.root_start[group] + i * size + j]
                total += factor * independent[sampler.slot[start + j]]
            eta_out[begin + sampler.entity[start + i]] = total


@inner_kernel
def realise(sampler: SamplerArrays, stage: int, eta: FloatArray, out: FloatArray) -> None:
    """Make values of what :func:`forward_noise` has drawn, by the arithmetic of the opening tree.

    Parameters
    ----------
    eta
        Its buffer.
    out
        H + B + S values: inflow without the part of earlier inflows (m3/s), load (MW) and availability (MW),
        before block factors; may be ``eta`` itself.
    """
    hydros, buses = sampler.hydro_slot.shape[0], sampler.bus_slot.shape[0]
    for hydro in range(hydros):
        value = eta[hydro]
        if sampler.scheme[0] == OUT_OF_SAMPLE:
            value = sampler.base[stage, hydro] + sampler.sigma[stage, hydro] * value
        out[hydro] = value
    for bus in range(buses):
        value = eta[hydros + bus]
        if sampler.scheme[1] == OUT_OF_SAMPLE:
            mean = sampler.load_mean[stage, bus]
            if sampler.bus_slot[bus] >= 0:
                value = realised_load(mean, sampler.load_std[stage, bus], value)
            else:
                value = mean
        out[hydros + bus] = value
    for source in range(sampler.source_slot.shape[0]):
        value = eta[hydros + buses + source]
        if sampler.scheme[2] == OUT_OF_SAMPLE:
            if sampler.source_slot[source] >= 0:
                share = realised_share(sampler.ncs_mean[stage, source], sampler.ncs_std[stage, source], value)
                value = sampler.ncs_most[stage, source] * share
            else:
                value = sampler.ncs_stated[stage, source]
        out[hydros + buses + source] = value
