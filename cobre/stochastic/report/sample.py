"""A long sample of an inflow model, and its moments.

Where the model repeats itself from year to year and the study has every season (or a history has the
others), whole *season cycles* are run one after the other, and the first years forgotten: what is left does
not depend on where the study starts. Else the *study* itself is run, from what was observed before it.

Noise is made as openings are, one generator for each replica and period, under a seed of its own, and
correlated by the profile of the season. Inflows are those of the model, before negative ones are truncated.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cobre.case.model import Case, Correlation
from cobre.case.periods import StudyCalendar, study_calendar
from cobre.stochastic.correlation import CorrelationRoots, correlate_rows, correlation_roots
from cobre.stochastic.entities import NoiseLayout, noise_groups, noise_layout
from cobre.stochastic.external import next_memory
from cobre.stochastic.openings import fill_one_by_one
from cobre.stochastic.par.contract import InflowModel
from cobre.stochastic.par.standard import StandardModel

FloatArray = NDArray[np.float64]
SampleKind = Literal["season cycle", "study"]

SEED = np.uint64(0x71_75_61_6C_69_74_79)
"""Not one that a study would choose, so that the sample is not the study's own noise."""
_REPLICAS = 250
_FORGOTTEN_YEARS = 10
_MONTHS = 12


@dataclass(frozen=True, eq=False)
class InflowSample:
    """Moments of generated inflows, by season or, where the study was run, by stage.

    Attributes
    ----------
    kind
        What was run.
    size
        Number of values behind each moment.
    season_id
        int64 ``(G,)``; -1 = none.
    stage
        int64 ``(G,)``: position of the stage whose model it is; -1 for a season that no stage has.
    mean_m3s, std_m3s, lag1, negative
        float64 ``(G, H)``: mean, standard deviation, correlation with the period (stage) before, share of
        negative values.
    spatial
        float64 ``(G, H, H)``: correlation between plants.
    """

    kind: SampleKind
    size: int
    season_id: NDArray[np.int64]
    stage: NDArray[np.int64]
    mean_m3s: FloatArray
    std_m3s: FloatArray
    lag1: FloatArray
    negative: FloatArray
    spatial: FloatArray


@dataclass(frozen=True, eq=False)
class _Cycle:
    """The model of each season of one resolution, in the order of the year."""

    season_ids: list[int]
    stage: list[int]
    psi: FloatArray
    mean: FloatArray
    sigma: FloatArray


def sample_inflows(
    case: Case, standard: StandardModel, model: InflowModel, correlation: Correlation | None, years: int
) -> InflowSample:
    """Generate inflows of a model and return their moments.

    Parameters
    ----------
    standard, model
        The study's model, standardised and in original units.
    correlation
        Of the study's noise.
    years
        Values behind each moment, rounded up to whole replicas.
    """
    calendar = study_calendar(case.seasons, case.stages)
    cycles = [
        _season_cycle(case, calendar, number, standard, model) for number in sorted(set(calendar.of_stage))
    ]
    found = [cycle for cycle in cycles if cycle is not None]
    if len(found) < len(cycles) or not case.hydros:
        return _run_study(case, model, correlation, years)
    parts = [_run_cycle(case, cycle, correlation, years) for cycle in found]
    if len(parts) == 1:
        return parts[0]
    joined = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in ("season_id", "stage", "mean_m3s", "std_m3s", "lag1", "negative", "spatial")
    }
    return InflowSample("season cycle", parts[0].size, **joined)


def _season_cycle(
    case: Case, calendar: StudyCalendar, number: int, standard: StandardModel, model: InflowModel
) -> _Cycle | None:
    """Return the seasons of a resolution; ``None`` where one is not known or differs from year to year."""
    seasons = _seasons_of_a_year(calendar, number)
    fit = standard.fit if model.path in ("full_estimation", "partial_estimation") else None
    fitted = {} if fit is None else {season: at for at, season in enumerate(fit.season_ids.tolist())}
    lags = standard.phi.shape[2]
    stages, mean, std, phi, yearly, ratio = [], [], [], [], [], []
    annual = np.zeros_like(standard.mean) if standard.annual is None else standard.annual
    for season in seasons or ():
        own = [
            position
            for position, stage in enumerate(case.stages)
            if stage.season_id == season and calendar.of_stage[position] == number
        ]
        if own and all(
            np.array_equal(values[own[0]], values[position])
            for values in (standard.mean, standard.std, standard.phi, annual)
            for position in own
        ):
            # The share of the noise settles in the course of the study: the latest stage represents all.
            last = own[-1]
            stages.append(last)
            mean.append(standard.mean[last])
            std.append(standard.std[last])
            phi.append(standard.phi[last])
            yearly.append(annual[last])
            ratio.append(_share(model.sigma_m3s[last], standard.std[last]))
        elif not own and fit is not None and season in fitted:
            at = fitted[season]
            stages.append(-1)
            mean.append(fit.mean_m3s[at])
            std.append(fit.std_m3s[at])
            phi.append(fit.coefficients[at][:, :lags])
            yearly.append(_share(fit.annual_coefficient[at], fit.annual_std_m3s[at]))
            ratio.append(fit.residual_ratio[at])
        else:
            return None
    if not stages:
        return None
    deviation = np.array(std)
    psi = _original_units(np.array(phi), np.array(yearly), deviation)
    return _Cycle(list(seasons or ()), stages, psi, np.array(mean), deviation * np.array(ratio))


def _share(part: FloatArray, whole: FloatArray) -> FloatArray:
    found: FloatArray = np.divide(part, whole, out=np.zeros_like(whole), where=whole > 0.0)
    return found


def _seasons_of_a_year(calendar: StudyCalendar, number: int) -> list[int] | None:
    """Return the seasons of a resolution in the order of the year; ``None`` without seasons."""
    timeline = calendar.timelines[number]
    period = timeline.periods[timeline.home[calendar.of_stage.index(number)]]
    found: list[int] = []
    while period.season_id is not None:
        if found and period.season_id == found[0]:
            return found
        if not found or period.season_id != found[-1]:  # a long year has its last week twice
            found.append(period.season_id)
        period = timeline.resolution.after(period)
    return None


def _original_units(phi: FloatArray, yearly: FloatArray, std: FloatArray) -> FloatArray:
    """Return coefficients on deviations from the mean (m3/s) by (season, hydro, lag - 1)."""
    seasons, hydros, lags = phi.shape
    depth = max(lags, _MONTHS) if (yearly != 0.0).any() else lags
    psi = np.zeros((seasons, hydros, depth))
    for lag in range(1, depth + 1):
        if lag <= lags:
            psi[:, :, lag - 1] = _share(phi[:, :, lag - 1] * std, np.roll(std, lag, axis=0))
        if lag <= _MONTHS:
            psi[:, :, lag - 1] += yearly * std / _MONTHS
    return psi


def _run_cycle(case: Case, cycle: _Cycle, correlation: Correlation | None, years: int) -> InflowSample:
    seasons, hydros = cycle.mean.shape
    layout = _inflow_layout(case)
    profiles = [
        _profile(correlation, season, stage)
        for season, stage in zip(cycle.season_ids, cycle.stage, strict=True)
    ]
    noise = _Noise(case, layout, None if correlation is None else replace_profiles(correlation, profiles))
    replicas = min(_REPLICAS, years)
    wanted = -(-years // replicas)
    sums = [_Sums(hydros) for _ in range(seasons)]
    depth = max(cycle.psi.shape[2], 1)
    past = deque([np.zeros((replicas, hydros)) for _ in range(depth)], maxlen=depth)
    used = (cycle.psi != 0.0).any(axis=1)
    for year in range(_FORGOTTEN_YEARS + wanted):
        for season in range(seasons):
            eta = noise.draw(replicas, year * seasons + season, season)
            deviation = cycle.sigma[season] * eta
            for lag in np.flatnonzero(used[season]).tolist():
                deviation += cycle.psi[season, :, lag] * past[lag]
            if year >= _FORGOTTEN_YEARS:
                sums[season].add(deviation, past[0], cycle.mean[season])
            past.appendleft(deviation)
    moments = [part.moments() for part in sums]
    return InflowSample(
        "season cycle",
        replicas * wanted,
        np.array(cycle.season_ids, np.int64),
        np.array(cycle.stage, np.int64),
        cycle.mean + np.array([item[0] for item in moments]),
        *(np.array([item[part] for item in moments]) for part in range(1, 5)),
    )


def _run_study(
    case: Case, model: InflowModel, correlation: Correlation | None, scenarios: int
) -> InflowSample:
    hydros, stages = len(case.hydros), len(case.stages)
    noise = _Noise(case, _inflow_layout(case), correlation)
    group = noise_groups(case.stages)
    memory = np.repeat(model.lags.initial[None], scenarios, axis=0)
    sums = [_Sums(hydros) for _ in range(stages)]
    eta = before = np.zeros((scenarios, hydros))
    centre = np.zeros((stages, hydros))
    for stage in range(stages):
        if stage == 0 or group[stage] != group[stage - 1]:
            eta = noise.draw(scenarios, stage, stage)
        inflow = model.base_m3s[stage] + model.sigma_m3s[stage] * eta
        if model.lags.names:
            inflow += np.einsum("hk,shk->sh", model.psi[stage], memory)
            memory = next_memory(model, stage, memory, inflow)
        centre[stage] = inflow.mean(axis=0)
        deviation = inflow - centre[stage]
        sums[stage].add(deviation, before, centre[stage])
        before = deviation
    moments = [part.moments() for part in sums]
    lag1 = np.array([item[2] for item in moments])
    lag1[:1] = np.nan
    return InflowSample(
        "study",
        scenarios,
        np.array([-1 if stage.season_id is None else stage.season_id for stage in case.stages], np.int64),
        np.arange(stages, dtype=np.int64),
        centre + np.array([item[0] for item in moments]),
        np.array([item[1] for item in moments]),
        lag1,
        *(np.array([item[part] for item in moments]) for part in (3, 4)),
    )


def _inflow_layout(case: Case) -> NoiseLayout:
    nobody = np.zeros(0, np.int64)
    return NoiseLayout(noise_layout(case).hydros, nobody, nobody)


def _profile(correlation: Correlation | None, season: int, stage: int) -> str:
    """Return the profile of a season: that of its stage, else the one estimated for it, else the default."""
    if correlation is None:
        return ""
    if stage >= 0:
        return correlation.of_stage[stage]
    estimated = f"season_{season:02d}"
    if estimated in correlation.profiles:
        return estimated
    return "default" if "default" in correlation.profiles else next(iter(correlation.profiles))


def replace_profiles(correlation: Correlation, of_stage: list[str]) -> Correlation:
    """Return the same profiles for another sequence of stages."""
    return replace(correlation, of_stage=tuple(of_stage))


class _Noise:
    """Correlated noise of inflows, hydros as in the case."""

    def __init__(self, case: Case, layout: NoiseLayout, correlation: Correlation | None) -> None:
        self._order = layout.hydros
        self._roots: CorrelationRoots | None = None
        if correlation is not None:
            self._roots = correlation_roots(case, layout, correlation)

    def draw(self, rows: int, period: int, step: int) -> FloatArray:
        """Return noise by (row, hydro) for a period, correlated as at the given step."""
        noise = np.empty((rows, self._order.size))
        fill_one_by_one(SEED, period, noise)
        roots = self._roots
        if roots is not None:
            groups = roots.stage_group[roots.stage_start[step] : roots.stage_start[step + 1]]
            correlate_rows(groups, roots.slot_start, roots.slot, roots.root_start, roots.root, noise)
        found = np.empty_like(noise)
        found[:, self._order] = noise
        return found


class _Sums:
    """Sums over values that are nearly centred, for moments."""

    def __init__(self, hydros: int) -> None:
        self._count = 0
        self._now, self._before, self._before_2, self._cross = (np.zeros(hydros) for _ in range(4))
        self._negative = np.zeros(hydros)
        self._pairs = np.zeros((hydros, hydros))

    def add(self, now: FloatArray, before: FloatArray, centre: FloatArray) -> None:
        self._count += len(now)
        self._now += now.sum(axis=0)
        self._before += before.sum(axis=0)
        self._before_2 += (before * before).sum(axis=0)
        self._cross += (now * before).sum(axis=0)
        self._negative += (now < -centre).sum(axis=0)
        # Plain loops of einsum: the same bits whatever the number of BLAS threads.
        self._pairs += np.einsum("rh,rg->hg", now, now)

    def moments(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return mean, standard deviation, correlation with the value before, share below 0, correlations."""
        count = self._count
        mean, before = self._now / count, self._before / count
        covariance = self._pairs / count - np.outer(mean, mean)
        std = np.sqrt(np.maximum(np.diagonal(covariance), 0.0))
        std_before = np.sqrt(np.maximum(self._before_2 / count - before * before, 0.0))
        lag1 = _share(self._cross / count - mean * before, std * std_before)
        spatial = _share(covariance, np.outer(std, std))
        np.fill_diagonal(spatial, 1.0)
        return mean, std, lag1, self._negative / count, spatial
