"""External scenarios as noise: what of them the inflow model does not explain, and how openings follow them.

Scenario s of a library of n is, at a stage with fewer scenarios, scenario ``s mod n_t``. Its inflows are
taken along the whole study: what is left of them when the part of earlier inflows is taken off is the *base
inflow*, from which the stage LPs get the given inflow back, whether or not the model has noise there.

Openings of a study with external scenarios, and without nodes that name them, keep their noise but have the
mean and the (population) standard deviation of the scenarios at their stage; there are no more of them than
scenarios.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cobre.case.model import Case, ClassName, ScenarioSource
from cobre.stochastic.entities import CLASSES
from cobre.stochastic.par import InflowModel
from cobre.stochastic.statistics import NoiseStatistics

FloatArray = NDArray[np.float64]


def external_classes(case: Case, source: ScenarioSource | None = None) -> tuple[ClassName, ...]:
    """Return the classes whose passes take external scenarios (``source``: training's unless given)."""
    source = case.training.source if source is None else source
    return tuple(name for name in CLASSES if source.scheme(name) == "external")


def node_classes(case: Case) -> tuple[ClassName, ...]:
    """Return the classes that nodes with a scenario take from external scenarios.

    A study made without files need not name the scheme: all classes with scenarios, then.
    """
    given = tuple(name for name in CLASSES if case.scenarios.external(name) is not None)
    return tuple(name for name in external_classes(case) if name in given) or given


def follows_external(case: Case) -> bool:
    """Return whether generated openings follow the external scenarios."""
    return (
        bool(external_classes(case))
        and not case.graph.has_scenarios
        and case.scenarios.noise_openings is None
    )


def library(case: Case, name: ClassName, model: InflowModel) -> tuple[FloatArray, ...]:
    """Return for each stage base inflow (m3/s), load or availability (MW) by (scenario, entity)."""
    given = case.scenarios.external(name)
    if given is None:
        raise ValueError(f"the case holds no external scenarios of {name}")
    if name == "inflow":
        return base_inflows(given, model)
    if name == "load":
        return given
    most = np.array([source.max_generation_mw for source in case.non_controllables], np.float64)
    return tuple(
        np.where(data.ncs_in_service, most * shares, 0.0)
        for data, shares in zip(case.stage_data, given, strict=True)
    )


def base_inflows(given: tuple[FloatArray, ...], model: InflowModel) -> tuple[FloatArray, ...]:
    """Return scenarios of inflow without the part of earlier inflows of the same scenario.

    Without lags a stage has as many as the file gives; with lags every stage has as many as the longest.
    """
    if not model.lags.names:
        return given
    count = max(len(values) for values in given)
    memory = np.repeat(model.lags.initial[None], count, axis=0)
    found = []
    for stage, values in enumerate(given):
        inflow = values[np.arange(count) % len(values)]
        found.append(inflow - np.einsum("hk,shk->sh", model.psi[stage], memory))
        memory = next_memory(model, stage, memory, inflow)
    return tuple(found)


def next_memory(model: InflowModel, stage: int, memory: FloatArray, inflow: FloatArray) -> FloatArray:
    """Return the memory by (scenario, hydro, K) after a stage with these inflows."""
    carried = np.einsum("jk,shk->shj", model.lags.carry[stage], memory)
    moved: FloatArray = carried + model.lags.gain[stage] * inflow[:, :, None]
    return moved


def number_of_scenarios(case: Case) -> NDArray[np.int64]:
    """Return the fewest scenarios that any external class has at each stage."""
    counts = [
        [len(values) for values in given]
        for name in external_classes(case)
        if (given := case.scenarios.external(name)) is not None
    ]
    fewest: NDArray[np.int64] = np.array(counts, np.int64).min(axis=0)
    return fewest


def varying(case: Case, name: ClassName) -> NDArray[np.bool_] | None:
    """Return which entities of a class vary over its external scenarios at any stage."""
    given = case.scenarios.external(name)
    if name not in external_classes(case) or given is None:
        return None
    varies: NDArray[np.bool_] = np.any([values.std(axis=0) > 0.0 for values in given], axis=0)
    return varies


def follow(case: Case, model: InflowModel, statistics: NoiseStatistics) -> NoiseStatistics:
    """Return the statistics of openings that follow the external scenarios."""
    classes = external_classes(case)
    if "inflow" in classes and (given := case.scenarios.external_inflow_m3s) is not None:
        rows = [values[: len(own)] for values, own in zip(base_inflows(given, model), given, strict=True)]
        base, sigma = _moments(rows)
        statistics = statistics._replace(base=base, sigma=sigma)
    if "load" in classes and (given := case.scenarios.external_load_mw) is not None:
        mean, std = _moments(list(given))
        statistics = statistics._replace(load_mean=mean, load_std=std)
    if "ncs" in classes and (given := case.scenarios.external_ncs) is not None:
        mean, std = _moments(list(given))
        statistics = statistics._replace(ncs_mean=mean, ncs_std=std, ncs_stated=statistics.ncs_most * mean)
    return statistics


def _moments(rows: list[FloatArray]) -> tuple[FloatArray, FloatArray]:
    mean = np.ascontiguousarray([values.mean(axis=0) for values in rows])
    return mean, np.ascontiguousarray([values.std(axis=0) for values in rows])
