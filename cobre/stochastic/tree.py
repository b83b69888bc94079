"""The opening tree: the noise of every stage and what it means in inflow and load.

White noise, sample average approximation. Opening ``j`` of stage ``t`` is a vector ``eta`` of independent
standard normal numbers, ordered ``[hydros by id | buses by id with any load std > 0 | sources by id with
statistics]``, drawn from the generator whose seed is the hash of (tree seed, ``j``, stage id). Openings of a
stage are equally probable.

A stage with the same season in the same year as its predecessor belongs to one *noise group* with it and
repeats its openings; openings beyond the predecessor's number get zero noise.

Realisations: inflow ``mean + std * eta``, raised to 0 where the study truncates negative inflows; load
``max(0, mean + std * eta)`` for the buses with noise, and the mean as it is for the others; availability of a
non-controllable source ``max * min(1, max(0, mean + std * eta))``, or what is declared without statistics.
"""

# numba's decorator hides the kernels' types from mypy.
# mypy: disallow-untyped-decorators=False
from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

import cobre.native  # noqa: F401  (sets where compiled code is cached, before the first kernel)
from cobre.case.model import Case, Stage
from cobre.errors import Problem, ValidationError
from cobre.stochastic.siphash import opening_seed
from cobre.stochastic.ziggurat import fill_standard_normal

_TRUNCATING = ("truncation", "truncation_with_penalty")


@dataclass(frozen=True, eq=False)
class OpeningTree:
    """All openings of all stages, one row each, stage after stage; read-only by convention.

    The openings of the stage at position ``t`` are the rows ``offset[t]`` to ``offset[t + 1]``. All arrays
    are C-contiguous, so that kernels take them as they are.

    Attributes
    ----------
    seed
        Seed of the tree (64 bits); in-sample forward draws use it too.
    offset
        int64 ``(stages + 1,)``: first row of each stage, and the number of rows at the end.
    noise
        float64 ``(rows, dim)``: standard normal numbers, ``[hydros by id | noisy buses by id]``.
    noisy_buses
        int64: positions in the case of the buses with a load std > 0 at any stage, in the order of ``noise``.
    inflow_m3s
        float64 ``(rows, hydros)``: realised incremental inflow, hydros as in the case.
    load_mw
        float64 ``(rows, buses)``: realised load before block factors, buses as in the case.
    ncs_mw
        float64 ``(rows, sources)``: realised availability before block factors; 0 out of service.
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
        """Number of openings of each stage; each has the probability ``1 / num_openings[stage]``."""
        return np.diff(self.offset)

    def rows(self, stage: int) -> slice:
        """Return the rows of the stage at position ``stage``."""
        return slice(int(self.offset[stage]), int(self.offset[stage + 1]))


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
    noisy_sources = np.flatnonzero(case.scenarios.ncs_has_stats)
    hydros, buses = len(hydro_order), len(noisy_buses)
    noise = np.zeros((int(offset[-1]), hydros + buses + len(noisy_sources)), dtype=np.float64)
    for position, stage in enumerate(stages):
        block = noise[offset[position] : offset[position + 1]]
        if position > 0 and _same_group(stages[position - 1], stage):
            previous = noise[offset[position - 1] : offset[position]]
            shared = min(len(previous), len(block))
            block[:shared] = previous[:shared]
        else:
            _fill_openings(np.uint64(seed), stage.id, block)

    of_row = np.repeat(np.arange(len(stages)), counts)
    return OpeningTree(
        seed=seed,
        offset=offset,
        noise=noise,
        noisy_buses=noisy_buses,
        inflow_m3s=_inflow(case, of_row, hydro_order, noise[:, :hydros]),
        load_mw=_load(case, of_row, noisy_buses, noise[:, hydros : hydros + buses]),
        ncs_mw=_availability(case, of_row, noisy_sources, noise[:, hydros + buses :]),
    )


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


def _inflow(
    case: Case, of_row: NDArray[np.int64], hydro_order: NDArray[np.int64], noise: NDArray[np.float64]
) -> NDArray[np.float64]:
    eta = np.empty_like(noise, order="C")
    eta[:, hydro_order] = noise
    std = case.scenarios.inflow_std_m3s[of_row]
    inflow: NDArray[np.float64] = case.scenarios.inflow_mean_m3s[of_row] + std * eta
    if case.training.inflow_method in _TRUNCATING:
        # A flow without noise is not truncated: nothing random made it negative.
        np.maximum(inflow, 0.0, out=inflow, where=std > 0.0)
    return np.ascontiguousarray(inflow)


def _load(
    case: Case, of_row: NDArray[np.int64], noisy_buses: NDArray[np.int64], noise: NDArray[np.float64]
) -> NDArray[np.float64]:
    load: NDArray[np.float64] = np.ascontiguousarray(case.scenarios.load_mean_mw[of_row], dtype=np.float64)
    std = case.scenarios.load_std_mw[of_row]
    load[:, noisy_buses] = np.maximum(0.0, load[:, noisy_buses] + std[:, noisy_buses] * noise)
    return load


def _availability(
    case: Case, of_row: NDArray[np.int64], noisy: NDArray[np.int64], noise: NDArray[np.float64]
) -> NDArray[np.float64]:
    declared = np.stack([data.ncs_available_mw for data in case.stage_data])
    serves = np.stack([data.ncs_in_service for data in case.stage_data])
    most = np.array([source.max_generation_mw for source in case.non_controllables])
    share = case.scenarios.ncs_mean[of_row][:, noisy] + case.scenarios.ncs_std[of_row][:, noisy] * noise
    available: NDArray[np.float64] = declared[of_row].astype(np.float64)
    available[:, noisy] = most[noisy] * np.clip(share, 0.0, 1.0)
    available[~serves[of_row]] = 0.0
    return np.ascontiguousarray(available)


@njit(cache=True, nogil=True)
def _fill_openings(seed: np.uint64, stage_id: int, out: NDArray[np.float64]) -> None:
    """Fill the (opening, dim) noise of one stage, one generator for each opening."""
    for opening in range(out.shape[0]):
        fill_standard_normal(opening_seed(seed, opening, stage_id), out[opening])
