"""From noise to inflow, load and availability.

* inflow (without the part of earlier inflows): ``base + sigma * eta``;
* load: ``max(0, mean + std * eta)`` of a bus with noise, else the mean as it is;
* availability of a source: ``maximum * clamp(mean + std * eta, 0, 1)`` where it has noise, else what the
  stage states; 0 out of service.
"""

# numba's decorator hides the kernels' types from mypy.
# mypy: disallow-untyped-decorators=False, warn-return-any=False
from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

import cobre.native  # noqa: F401  (sets where compiled code is cached, before the first kernel)
from cobre.case.model import Case
from cobre.stochastic.entities import NoiseLayout
from cobre.stochastic.par import InflowModel

FloatArray = NDArray[np.float64]


class NoiseStatistics(NamedTuple):
    """What turns noise into values: by (stage, entity), and by entity the place in a noise vector or -1."""

    base: FloatArray
    sigma: FloatArray
    load_mean: FloatArray
    load_std: FloatArray
    ncs_mean: FloatArray
    ncs_std: FloatArray
    ncs_stated: FloatArray
    ncs_most: FloatArray
    hydro_slot: NDArray[np.int64]
    bus_slot: NDArray[np.int64]
    source_slot: NDArray[np.int64]


def noise_statistics(case: Case, model: InflowModel, layout: NoiseLayout) -> NoiseStatistics:
    """Return the statistics of a study."""
    scenarios, sources = case.scenarios, len(case.non_controllables)
    shape = (len(case.stages), sources)
    serving = np.array([data.ncs_in_service for data in case.stage_data], np.bool_).reshape(shape)
    stated = np.array([data.ncs_available_mw for data in case.stage_data], np.float64).reshape(shape)
    most = np.array([source.max_generation_mw for source in case.non_controllables], np.float64)
    return NoiseStatistics(
        base=_plain(model.base_m3s),
        sigma=_plain(model.sigma_m3s),
        load_mean=_plain(scenarios.load_mean_mw),
        load_std=_plain(scenarios.load_std_mw),
        ncs_mean=_plain(scenarios.ncs_mean),
        ncs_std=_plain(scenarios.ncs_std),
        ncs_stated=np.where(serving, stated, 0.0),
        ncs_most=np.where(serving, most, 0.0),
        hydro_slot=layout.slots("inflow", len(case.hydros)),
        bus_slot=layout.slots("load", len(case.buses)),
        source_slot=layout.slots("ncs", sources),
    )


def _plain(array: FloatArray) -> FloatArray:
    """Return a writable array for kernels, whose types distinguish read-only arrays."""
    return np.array(array, np.float64, order="C")


@njit(cache=True, nogil=True)
def realised_load(mean: float, std: float, eta: float) -> float:
    """Return the load (MW) of a bus with noise."""
    return max(0.0, mean + std * eta)


@njit(cache=True, nogil=True)
def realised_share(mean: float, std: float, eta: float) -> float:
    """Return the available share of a source's maximum."""
    return min(max(mean + std * eta, 0.0), 1.0)


@njit(cache=True, nogil=True)
def realise_rows(
    statistics: NoiseStatistics,
    stage: int,
    noise: FloatArray,
    inflow: FloatArray,
    load: FloatArray,
    ncs: FloatArray,
) -> None:
    """Fill inflow (m3/s), load and availability (MW) of the openings whose noise the rows hold."""
    for row in range(noise.shape[0]):
        for hydro in range(inflow.shape[1]):
            eta = noise[row, statistics.hydro_slot[hydro]]
            inflow[row, hydro] = statistics.base[stage, hydro] + statistics.sigma[stage, hydro] * eta
        for bus in range(load.shape[1]):
            slot = statistics.bus_slot[bus]
            mean = statistics.load_mean[stage, bus]
            if slot >= 0:
                mean = realised_load(mean, statistics.load_std[stage, bus], noise[row, slot])
            load[row, bus] = mean
        for source in range(ncs.shape[1]):
            slot = statistics.source_slot[source]
            if slot < 0:
                ncs[row, source] = statistics.ncs_stated[stage, source]
            else:
                share = realised_share(
                    statistics.ncs_mean[stage, source], statistics.ncs_std[stage, source], noise[row, slot]
                )
                ncs[row, source] = statistics.ncs_most[stage, source] * share
