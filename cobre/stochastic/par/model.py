"""The inflow model of a study: given by files, or estimated from history.

With standardised coefficients ``phi``, mean ``mu`` and standard deviation ``s``,

``psi_l = phi_l s_t / s_{t-l}``, ``base = mu_t - sum_l psi_l mu_{t-l}``, ``sigma = s_t r_t``.

An annual component adds ``phi_A s_t / (12 s_A)`` to ``psi_1 .. psi_12``; its mean cancels out.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cobre.case.model import Case
from cobre.case.periods import Period, StudyCalendar, study_calendar
from cobre.case.problems import short_ids
from cobre.case.scenarios.noise_share import noise_share, not_stationary
from cobre.case.scenarios.observations import missing_slots, observed_means
from cobre.errors import Problem, ValidationError
from cobre.stochastic.par.contract import InflowModel
from cobre.stochastic.par.dynamics import Memory, keep_needed, make_memory, observed_days, readers
from cobre.stochastic.par.earlier import given_models
from cobre.stochastic.par.estimation import estimate, observed_seasons, sample_share
from cobre.stochastic.par.lag_statistics import LagStatistics
from cobre.stochastic.par.standard import EarlierModel, StandardModel

FloatArray = NDArray[np.float64]

MONTHS_IN_A_YEAR = 12


def inflow_model(case: Case) -> InflowModel:
    """Return the inflow model of a study.

    Raises
    ------
    ValidationError
        When observations do not cover the periods that the model starts from, or a season of the study has
        none to estimate from.
    """
    return assemble(case, standard_model(case))


def standard_model(case: Case) -> StandardModel:
    """Return the model of a study in standardised form: estimated from history, or as the files give it."""
    path = case.scenarios.estimation_path
    estimated = path in ("full_estimation", "partial_estimation", "user_ar_history_stats")
    return estimate(case) if estimated else given_model(case)


def given_model(case: Case) -> StandardModel:
    """Return the model that the files give."""
    scenarios = case.scenarios
    shape = scenarios.inflow_mean_m3s.shape
    phi = np.zeros((*shape, 0)) if scenarios.ar_coefficients is None else scenarios.ar_coefficients
    annual = scenarios.annual
    calendar = study_calendar(case.seasons, case.stages)
    return StandardModel(
        scenarios.inflow_mean_m3s,
        scenarios.inflow_std_m3s,
        phi,
        None if annual is None else annual.coefficient / annual.std_m3s,
        sample_share(case),
        seasons=observed_seasons(case),
        earlier=given_models(case, calendar, phi.shape[2]),
    )


def assemble(case: Case, standard: StandardModel) -> InflowModel:
    """Return a standardised model in original units, with its memory and where it starts."""
    calendar = study_calendar(case.seasons, case.stages)
    lookup = LagStatistics(case, calendar, standard.mean, standard.std, standard.seasons)
    psi, effective, lag_mean, notes = _original_units(case, calendar, standard, lookup)
    base = standard.mean.copy()
    for lag in range(psi.shape[2]):
        base -= psi[:, :, lag] * lag_mean[:, :, lag]
    ratio, doubts = _noise_share(case, calendar, standard, effective, lookup)
    memory, wide = _with_memory(case, calendar, psi)
    needed, at_start = readers(memory, wide)
    initial = _initial(case, calendar, memory, at_start, standard.mean)
    lags, kept = keep_needed(memory, wide, initial, needed)
    return InflowModel(
        base_m3s=base,
        psi=kept,
        sigma_m3s=standard.std * ratio,
        lags=lags,
        path=case.scenarios.estimation_path,
        mean_m3s=standard.mean,
        std_m3s=standard.std,
        order=_order(standard.phi),
        fit=standard.fit,
        notes=(*standard.notes, *notes, *doubts),
    )


def _order(phi: FloatArray) -> NDArray[np.int64]:
    """Return the largest lag with a coefficient, by (stage, hydro)."""
    lag = np.arange(1, phi.shape[2] + 1, dtype=np.int64)
    found: NDArray[np.int64] = np.where(phi != 0.0, lag, 0).max(axis=2, initial=0)
    return found


def _noise_share(
    case: Case,
    calendar: StudyCalendar,
    standard: StandardModel,
    effective: FloatArray,
    lookup: LagStatistics,
) -> tuple[FloatArray, list[Problem]]:
    """Return the share of the noise by (stage, hydro), and notes on those that the sample gives.

    Raises
    ------
    ValidationError
        When no stationary series can have given coefficients, and no history has a sample of the noise.
    """
    lags = effective.shape[2]
    earlier = [
        (item.resolution, item.period, _effective(item, lags, calendar, lookup)) for item in standard.earlier
    ]
    share = noise_share(calendar, effective, earlier)
    broken = np.flatnonzero(np.isnan(share).any(axis=0)).tolist()
    if not broken:
        return share, []
    if standard.sample_ratio is not None:
        share[:, broken] = standard.sample_ratio[:, broken]
    if np.isnan(share).any():
        raise ValidationError(not_stationary(case, share), source=f"case {case.path}")
    return share, [
        Problem(
            "ModelQuality",
            f"No stationary series has the coefficients of {who}; the share of the noise is that of the "
            "observed inflow, so that deviations of generated inflow may differ from those observed.",
            {"entity": who, "field": "residual_ratio", "value": None},
            "Lower estimation.max_order, or set estimation.max_coefficient_magnitude.",
        )
        for who in (f"hydro {case.hydros[hydro].id} ({case.hydros[hydro].name})" for hydro in broken)
    ]


def _effective(item: EarlierModel, lags: int, calendar: StudyCalendar, lookup: LagStatistics) -> FloatArray:
    """Return coefficients of a period before the study as :func:`_original_units` does for its stages."""
    found = np.zeros((len(item.mean), lags))
    now = lookup.of(item.resolution, item.period)[1]
    period: Period = item.period
    for lag in range(lags):
        period = calendar.timelines[item.resolution].resolution.before(period)
        std = lookup.of(item.resolution, period)[1]
        if lag < item.phi.shape[1]:
            found[:, lag] = np.where(std > 0.0, item.phi[:, lag], 0.0)
        if lag < MONTHS_IN_A_YEAR:
            found[:, lag] += item.annual * std / MONTHS_IN_A_YEAR
    return np.where(now[:, np.newaxis] > 0.0, found, 0.0)


def _original_units(
    case: Case, calendar: StudyCalendar, standard: StandardModel, lookup: LagStatistics
) -> tuple[FloatArray, FloatArray, FloatArray, tuple[Problem, ...]]:
    """Return psi, standardised coefficients in effect and means of the lags by (stage, hydro, lag); notes."""
    stages, hydros, given = standard.phi.shape
    yearly = standard.annual is not None and bool((standard.annual != 0.0).any())
    lags = max(given, MONTHS_IN_A_YEAR) if yearly else given
    if lags == 0 or not ((standard.phi != 0.0).any() or yearly):
        empty = np.zeros((stages, hydros, 0))
        return empty, empty, empty, ()
    psi, effective, lag_mean = (np.zeros((stages, hydros, lags)) for _ in range(3))
    unknown: dict[tuple[int, int], list[int]] = {}
    for stage in range(stages):
        resolution = calendar.of_stage[stage]
        s_now = standard.std[stage]
        for lag, period in enumerate(calendar.timelines[resolution].lagged(stage, lags)):
            mean, std, known = lookup.of(resolution, period)
            coefficient = standard.phi[stage, :, lag] if lag < given else np.zeros(hydros)
            slope = np.divide(coefficient * s_now, std, out=np.zeros(hydros), where=std > 0.0)
            if yearly and standard.annual is not None and lag < MONTHS_IN_A_YEAR:
                slope = slope + standard.annual[stage] * s_now / MONTHS_IN_A_YEAR
            for hydro in np.flatnonzero((slope != 0.0) & ~known).tolist():
                unknown.setdefault((hydro, lag + 1), []).append(stage)
            psi[stage, :, lag] = slope
            lag_mean[stage, :, lag] = mean
            effective[stage, :, lag] = np.divide(slope * std, s_now, out=np.zeros(hydros), where=s_now > 0.0)
    return psi, effective, lag_mean, _unknown_lags(case, unknown)


def _unknown_lags(case: Case, unknown: dict[tuple[int, int], list[int]]) -> tuple[Problem, ...]:
    return tuple(
        Problem(
            "ModelQuality",
            f"Lag {lag} of hydro {case.hydros[hydro].id} ({case.hydros[hydro].name}) at stage "
            f"{short_ids([case.stages[stage].id for stage in stages])} is a period without statistics; those "
            "of the nearest stage are used.",
            {"entity": f"hydro {case.hydros[hydro].id}", "field": "lag", "value": lag},
            "Add a pre-study stage for that period, with a row of statistics.",
        )
        for (hydro, lag), stages in sorted(unknown.items())
    )


def _with_memory(case: Case, calendar: StudyCalendar, psi: FloatArray) -> tuple[Memory, FloatArray]:
    """Return the memory that the coefficients need, and the coefficients on its components."""
    stages, hydros, _ = psi.shape
    of_stage = np.array(calendar.of_stage, np.int64)
    counts = []
    for number in range(len(calendar.timelines)):
        read = np.flatnonzero((psi[of_stage == number] != 0.0).any(axis=(0, 1)))
        counts.append(int(read.max(initial=-1)) + 1)
    start = case.stages[0].start_date
    seen = []
    for timeline in calendar.timelines:
        _, covered = observed_means(
            timeline.periods[:1],
            hydros,
            case.scenarios.recent_observations,
            case.scenarios.inflow_history,
            until=start,
        )
        seen.append(observed_days(timeline, start) > 0 and bool((covered > 0).any()))
    memory = make_memory(calendar, tuple(counts), start, tuple(seen))
    wide = np.zeros((stages, hydros, len(memory.names)))
    for stage, number in enumerate(calendar.of_stage):
        first = memory.first_lag[number]
        wide[stage, :, first : first + counts[number]] = psi[stage, :, : counts[number]]
    return memory, wide


def _initial(
    case: Case,
    calendar: StudyCalendar,
    memory: Memory,
    at_start: NDArray[np.bool_],
    mean: FloatArray,
) -> FloatArray:
    """Return the memory before the first stage by (hydro, component)."""
    scenarios, start = case.scenarios, case.stages[0].start_date
    hydros = [(hydro.id, hydro.name) for hydro in case.hydros]
    initial = np.zeros((len(hydros), len(memory.names)))
    problems: list[Problem] = []
    for number, timeline in enumerate(calendar.timelines):
        first, so_far = memory.first_lag[number], memory.so_far[number]
        if so_far == first:
            continue
        past = timeline.past(so_far - first)
        value, covered = observed_means(
            past, len(hydros), scenarios.recent_observations, scenarios.inflow_history
        )
        problems += missing_slots(past, at_start[:, first:so_far], covered, hydros)
        initial[:, first:so_far] = value
        share = memory.observed_share[number]
        if share > 0.0:
            value, covered = observed_means(
                timeline.periods[:1],
                len(hydros),
                scenarios.recent_observations,
                scenarios.inflow_history,
                until=start,
            )
            # A plant without observations in the running period is assumed to have had its mean.
            initial[:, so_far] = share * np.where(covered[:, 0] > 0, value[:, 0], mean[0])
    if problems:
        raise ValidationError(problems, source=f"case {case.path}")
    return initial
