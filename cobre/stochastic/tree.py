"""The opening tree: the noise of every stage and what it means in inflow and load.

White noise, sample average approximation. Opening ``j`` of stage ``t`` is a vector ``eta`` of independent
standard normal numbers, ordered ``[hydros by id | buses by id with any load std > 0 | non-controllable
sources by id with stats]``, drawn from the generator whose seed is the hash of (tree seed, ``j``, stage id).
Openings of a stage are equally probable, and shared by its nodes; a node with a scenario of its own has one
opening, that scenario of the external library.

A stage with the same season in the same year as its predecessor belongs to one *noise group* with it and
repeats its openings; openings beyond the predecessor's number get zero noise.

Realisations: inflow ``mean + std * eta``, raised to 0 where the study truncates negative inflows; load
``max(0, mean + std * eta)`` for the buses with noise, and the mean as it is for the others; availability of
sources ``maximum * clamp(mean + std * eta, 0, 1)`` where they have stats, else what the stage states.
"""

# numba's decorator hides the kernels' types from mypy.
# mypy: disallow-untyped-decorators=False
from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numba import njit
from numpy.typing import NDArray

import cobre.native  # noqa: F401  (sets where compiled code is cached, before the first kernel)
from cobre.case.model import Case, Stage
from cobre.errors import Problem, ValidationError
from cobre.stochastic.siphash import opening_seed
from cobre.stochastic.ziggurat import fill_standard_normal


@dataclass(frozen=True, eq=False)
class OpeningTree:
    """All openings of all nodes of the policy graph, one row each; read-only by convention.

    The openings of node ``n`` (on a chain: of the stage at that position) are the rows ``offset[n]`` to
    ``offset[n + 1]``. All arrays are C-contiguous, so that kernels take them as they are.

    Attributes
    ----------
    seed
        Seed of the tree (64 bits); in-sample forward draws use it too.
    offset
        int64 ``(nodes + 1,)``: first row of each node, and the number of rows at the end.
    noise
        float64 ``(rows, dim)``: standard normal numbers, ``[hydros by id | noisy buses by id | noisy sources
        by id]``; NaN for openings of an external library.
    noisy_buses
        int64: positions in the case of the buses with a load std > 0 at any stage, in the order of ``noise``.
    inflow_m3s
        float64 ``(rows, hydros)``: realised incremental inflow, hydros as in the case.
    load_mw
        float64 ``(rows, buses)``: realised load before block factors, buses as in the case.
    ncs_mw
        float64 ``(rows, sources)``: realised availability before block factors, 0 out of service.
    """

    seed: int
    offset: NDArray[np.int64]
    noise: NDArray[np.float64]
    noisy_buses: NDArray[np.int64]
    inflow_m3s: NDArray[np.float64]
    load_mw: NDArray[np.float64]
    ncs_mw: NDArray[np.float64]

    @property
    def num_openings(self) -> NDArray[np.int64]:
        """Number of openings of each node; each has the probability ``1 / num_openings[node]`` there."""
        return np.diff(self.offset)

    def rows(self, node: int) -> slice:
        """Return the rows of the node at position ``node``."""
        return slice(int(self.offset[node]), int(self.offset[node + 1]))


def build_opening_tree(case: Case, seed: int | None = None) -> OpeningTree:
    """Draw the opening tree of a study.

    Parameters
    ----------
    case
        The study. The noise of an entity follows its id and so does not depend on the order of entities.
    seed
        Seed to use instead of the study's ``tree_seed``.

    Raises
    ------
    ValidationError
        If the seed does not fit in 64 bits without sign.
    """
    seed = _checked_seed(case.training.tree_seed if seed is None else seed)
    stages = case.stages
    counts = np.array([stage.num_openings for stage in stages], dtype=np.int64)
    offset = np.zeros(len(stages) + 1, dtype=np.int64)
    np.cumsum(counts, out=offset[1:])

    hydro_order = np.argsort(np.array([hydro.id for hydro in case.hydros], dtype=np.int64), kind="stable")
    noisy_buses = _noisy_buses(case)
    noisy_sources = _noisy_sources(case)
    first_bus = len(hydro_order)
    first_source = first_bus + len(noisy_buses)
    noise = np.zeros((int(offset[-1]), first_source + len(noisy_sources)), dtype=np.float64)
    for position, stage in enumerate(stages):
        block = noise[offset[position] : offset[position + 1]]
        if position > 0 and _same_group(stages[position - 1], stage):
            previous = noise[offset[position - 1] : offset[position]]
            shared = min(len(previous), len(block))
            block[:shared] = previous[:shared]
        else:
            _fill_openings(np.uint64(seed), stage.id, block)

    of_row = np.repeat(np.arange(len(stages)), counts)
    tree = OpeningTree(
        seed=seed,
        offset=offset,
        noise=noise,
        noisy_buses=noisy_buses,
        inflow_m3s=_inflow(case, of_row, hydro_order, noise[:, :first_bus]),
        load_mw=_load(case, of_row, noisy_buses, noise[:, first_bus:first_source]),
        ncs_mw=_availability(case, of_row, noisy_sources, noise[:, first_source:]),
    )
    return tree if case.graph.is_chain else _by_node(case, tree)


def _by_node(case: Case, tree: OpeningTree) -> OpeningTree:
    """Return the tree of a node graph from that of its stages."""
    parts = [_openings_of(case, tree, node.stage, node.scenario_id) for node in case.graph.nodes]
    offset = np.zeros(len(parts) + 1, dtype=np.int64)
    np.cumsum([len(part[0]) for part in parts], out=offset[1:])
    noise, inflow, load, ncs = (
        np.ascontiguousarray(np.concatenate([part[kind] for part in parts])) for kind in range(4)
    )
    return replace(tree, offset=offset, noise=noise, inflow_m3s=inflow, load_mw=load, ncs_mw=ncs)


def _openings_of(
    case: Case, tree: OpeningTree, stage: int, scenario: int | None
) -> tuple[NDArray[np.float64], ...]:
    """Return noise, inflow, load and availability of one node's openings."""
    rows = tree.rows(stage)
    parts = (tree.noise[rows], tree.inflow_m3s[rows], tree.load_mw[rows], tree.ncs_mw[rows])
    if scenario is None:
        return parts
    scenarios, data = case.scenarios, case.stage_data[stage]
    unknown = np.full((1, tree.noise.shape[1]), np.nan)
    inflow, load, ncs = (part[:1].copy() for part in parts[1:])
    if scenarios.external_inflow_m3s is not None:
        inflow[0] = scenarios.external_inflow_m3s[stage][scenario]
    if scenarios.external_load_mw is not None:
        load[0] = scenarios.external_load_mw[stage][scenario]
    if scenarios.external_ncs is not None:
        most = np.array([source.max_generation_mw for source in case.non_controllables])
        ncs[0] = np.where(data.ncs_in_service, most * scenarios.external_ncs[stage][scenario], 0.0)
    return unknown, inflow, load, ncs


def _checked_seed(seed: int) -> int:
    if not 0 <= seed < 2**64:
        raise ValidationError(
            [
                Problem(
                    "InvalidSeed",
                    f"the seed of the opening tree is {seed}, outside 0 .. 2^64 - 1",
                    {"field": "tree_seed", "value": seed},
                    "give a non-negative integer",
                )
            ],
            source="the opening tree",
        )
    return int(seed)


def _same_group(previous: Stage, stage: Stage) -> bool:
    return (
        stage.season_id is not None
        and stage.season_id == previous.season_id
        and stage.start_date.year == previous.start_date.year
    )


def _noisy_buses(case: Case) -> NDArray[np.int64]:
    ids = np.array([bus.id for bus in case.buses], dtype=np.int64)
    by_id = np.argsort(ids, kind="stable").astype(np.int64)
    noisy = np.any(case.scenarios.load_std_mw[:, by_id] > 0.0, axis=0)
    positions: NDArray[np.int64] = by_id[noisy]
    return positions


def _noisy_sources(case: Case) -> NDArray[np.int64]:
    ids = np.array([source.id for source in case.non_controllables], dtype=np.int64)
    by_id = np.argsort(ids, kind="stable").astype(np.int64)
    positions: NDArray[np.int64] = by_id[case.scenarios.ncs_has_stats[by_id]]
    return positions


def _availability(
    case: Case, of_row: NDArray[np.int64], noisy: NDArray[np.int64], noise: NDArray[np.float64]
) -> NDArray[np.float64]:
    sources = len(case.non_controllables)
    stated = np.array([data.ncs_available_mw for data in case.stage_data]).reshape(len(case.stages), sources)
    serving = np.array([data.ncs_in_service for data in case.stage_data]).reshape(len(case.stages), sources)
    most = np.array([source.max_generation_mw for source in case.non_controllables], np.float64)
    available: NDArray[np.float64] = np.ascontiguousarray(stated[of_row], dtype=np.float64)
    share = case.scenarios.ncs_mean[of_row][:, noisy] + case.scenarios.ncs_std[of_row][:, noisy] * noise
    available[:, noisy] = most[noisy] * np.clip(share, 0.0, 1.0)
    available[~serving[of_row]] = 0.0
    return available


def _inflow(
    case: Case, of_row: NDArray[np.int64], hydro_order: NDArray[np.int64], noise: NDArray[np.float64]
) -> NDArray[np.float64]:
    eta = np.empty_like(noise, order="C")
    eta[:, hydro_order] = noise
    from cobre.stochastic.par import inflow_model
    model = inflow_model(case)
    inflow: NDArray[np.float64] = model.base_m3s[of_row] + model.sigma_m3s[of_row] * eta
    return np.ascontiguousarray(inflow)


def _load(
    case: Case, of_row: NDArray[np.int64], noisy_buses: NDArray[np.int64], noise: NDArray[np.float64]
) -> NDArray[np.float64]:
    load: NDArray[np.float64] = np.ascontiguousarray(case.scenarios.load_mean_mw[of_row], dtype=np.float64)
    std = case.scenarios.load_std_mw[of_row]
    load[:, noisy_buses] = np.maximum(0.0, load[:, noisy_buses] + std[:, noisy_buses] * noise)
    return load


@njit(cache=True, nogil=True)
def _fill_openings(seed: np.uint64, stage_id: int, out: NDArray[np.float64]) -> None:
    """Fill the (opening, dim) noise of one stage, one generator for each opening."""
    for opening in range(out.shape[0]):
        fill_standard_normal(opening_seed(seed, opening, stage_id), out[opening])
