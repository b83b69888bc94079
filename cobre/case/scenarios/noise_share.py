"""Share of the noise in an inflow that standardised coefficients leave, by season.

With ``C`` the correlations of the lags that a season reads, ``rho = C phi`` are those of its inflow with
them, and ``r^2 = 1 - phi' C phi``: then the inflow has the standard deviation that is stated. ``C`` of the
next season has ``rho`` as its newest row. Round a whole cycle of seasons it comes back to where it started:
the share belongs to the season, whatever the first stage of the study.

The coefficients of a season are those of the first study stage that has it, else of a stage before the study,
else 0.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

import numpy as np
from numpy.typing import NDArray

from cobre.case.format import layout
from cobre.case.model import Case
from cobre.case.periods import Period, StudyCalendar, study_calendar
from cobre.case.problems import Reporter, make_problem, name_entity, short_ids
from cobre.errors import Problem

FloatArray = NDArray[np.float64]
BeforeStudy = Iterable[tuple[int, Period, FloatArray]]
"""Coefficients of periods before the study: resolution, period, float64 ``(H, L)``."""

_TOLERANCE = 1e-9
_DAYS_IN_A_YEAR = 365


def noise_share(calendar: StudyCalendar, phi: FloatArray, before: BeforeStudy = ()) -> FloatArray:
    """Return ``r`` by (stage, hydro); NaN where coefficients leave no variance to the noise.

    A plant with NaN has coefficients that no stationary series can have.

    Parameters
    ----------
    phi
        float64 ``(T, H, L)``: standardised coefficients on the last L periods of the stage's own resolution.
    before
        Those of periods before the study.
    """
    stages, hydros, lags = phi.shape
    ratio = np.ones((stages, hydros))
    if lags == 0:
        return ratio
    earlier = list(before)
    for number in sorted(set(calendar.of_stage)):
        own = [stage for stage in range(stages) if calendar.of_stage[stage] == number]
        position = _cycle(calendar, number, own)
        cycle = np.zeros((len(position), hydros, lags))
        homes = [calendar.timelines[number].periods[calendar.timelines[number].home[stage]] for stage in own]
        at = [position[_key(period)] for period in homes]
        for stage, place in reversed(list(zip(own, at, strict=True))):
            cycle[place] = phi[stage]
        for resolution, period, coefficients in earlier:
            place = position.get(_key(period), -1)
            if resolution == number and place >= 0 and place not in at:
                still_open = ~(cycle[place] != 0.0).any(axis=1)
                cycle[place][still_open] = coefficients[still_open]
        ratio[own] = np.sqrt(_periodic_share(cycle))[at]
    return ratio


def _key(period: Period) -> Hashable:
    return period.start if period.season_id is None else period.season_id


def _cycle(calendar: StudyCalendar, number: int, own: list[int]) -> dict[Hashable, int]:
    """Return the seasons of a year in their order; without seasons the study's own periods."""
    timeline = calendar.timelines[number]
    homes = [timeline.periods[timeline.home[stage]] for stage in own]
    found: dict[Hashable, int] = {}
    if all(period.season_id is not None for period in homes):
        period = homes[0]
        while (period.start - homes[0].start).days < _DAYS_IN_A_YEAR:
            found.setdefault(_key(period), len(found))
            period = timeline.resolution.after(period)
    for period in homes:
        found.setdefault(_key(period), len(found))
    return found


def _periodic_share(phi: FloatArray) -> FloatArray:
    """Return ``r^2`` by (season, hydro) from coefficients by (season, hydro, lag - 1); NaN as above."""
    left = np.ones(phi.shape[:2])
    for hydro in np.flatnonzero((phi != 0.0).any(axis=(0, 2))).tolist():
        left[:, hydro] = _share_of_plant(np.ascontiguousarray(phi[:, hydro]))
    return left


def _share_of_plant(phi: FloatArray) -> FloatArray:
    """Return ``r^2`` by season: the correlations that a cycle gives back solve a linear system."""
    lags = int(np.flatnonzero((phi != 0.0).any(axis=0)).max()) + 1
    phi = phi[:, :lags]
    first, second = np.triu_indices(lags, 1)
    # The identity, and for each pair of lags the same with that correlation 1.
    trials = np.tile(np.eye(lags), (first.size + 1, 1, 1))
    trials[np.arange(1, first.size + 1), first, second] = 1.0
    trials[np.arange(1, first.size + 1), second, first] = 1.0
    with np.errstate(over="ignore", invalid="ignore"):
        after = _through_cycle(phi, trials)[0][:, first, second]
        moved = (after[1:] - after[0]).T
        correlation = np.eye(lags)[np.newaxis]
        try:
            solution = np.linalg.solve(np.eye(first.size) - moved, after[0])
            correlation[0, first, second] = correlation[0, second, first] = solution
            possible = float(np.linalg.eigvalsh(correlation[0])[0]) >= -_TOLERANCE
        except np.linalg.LinAlgError:
            possible = False
        left = _through_cycle(phi, correlation)[1][:, 0]
    bad = ~(left >= -_TOLERANCE)  # written so that NaN is bad, too
    if not possible and not bad.any():
        bad[:] = True
    return np.where(bad, np.nan, np.clip(left, 0.0, 1.0))


def _through_cycle(phi: FloatArray, correlation: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return correlations (several at once) after all seasons have passed, and ``r^2`` by (season, one)."""
    left = np.empty((len(phi), len(correlation)))
    for season, coefficients in enumerate(phi):
        rho: FloatArray = np.einsum("nkl,l->nk", correlation, coefficients)
        left[season] = 1.0 - np.einsum("nk,k->n", rho, coefficients)
        shifted = np.empty_like(correlation)
        shifted[:, 0, 0] = 1.0
        shifted[:, 0, 1:] = shifted[:, 1:, 0] = rho[:, :-1]
        shifted[:, 1:, 1:] = correlation[:, :-1, :-1]
        correlation = shifted
    return correlation, left


def check_given_coefficients(case: Case, reporter: Reporter) -> None:
    """Check that the coefficients of the files are those of stationary series.

    Plants with an annual component are checked once the model is made, which holds the deviations of months.
    """
    scenarios = case.scenarios
    phi, before = scenarios.ar_coefficients, scenarios.pre_study
    if phi is None or scenarios.inflow_history is not None:
        return
    random = scenarios.inflow_std_m3s > 0.0
    if scenarios.annual is not None:
        random = random & ~(scenarios.annual.coefficient != 0.0).any(axis=0)
    calendar = study_calendar(case.seasons, case.stages)
    earlier: list[tuple[int, Period, FloatArray]] = []
    if before is not None and before.ar_coefficients is not None:
        homes = calendar.periods_before(before)
        earlier = [(*home, rows) for home, rows in zip(homes, before.ar_coefficients, strict=True)]
    share = noise_share(calendar, np.where(random[:, :, np.newaxis], phi, 0.0), earlier)
    reporter.errors += not_stationary(case, share)


def not_stationary(case: Case, share: FloatArray) -> list[Problem]:
    """Return a problem for each plant whose coefficients no stationary series can have.

    Parameters
    ----------
    share
        From :func:`noise_share`.
    """
    problems = []
    for hydro in np.flatnonzero(np.isnan(share).any(axis=0)).tolist():
        entity = name_entity("hydro", case.hydros[hydro].id, case.hydros[hydro].name)
        where = short_ids([case.stages[at].id for at in np.flatnonzero(np.isnan(share[:, hydro])).tolist()])
        problems.append(
            make_problem(
                "InvalidValue",
                f"{layout.INFLOW_AR}: the coefficients of {entity} at stage {where} imply, round the cycle "
                "of seasons, a correlation outside [-1, 1] or a negative variance of the residual.",
                "Give coefficients of a stationary model.",
                {"file": layout.INFLOW_AR, "entity": entity, "field": "coefficient", "value": where},
            )
        )
    return problems
