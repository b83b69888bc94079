"""Uncertainty as the files state it; :mod:`cobre.stochastic` makes noise of it.

Stage axes follow the study stages; a table that is absent is ``None``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cobre.case.model.options import ClassName

FloatArray = NDArray[np.float64]


EstimationPath = Literal[
    "deterministic",
    "user_stats_white_noise",
    "user_provided_no_history",
    "full_estimation",
    "partial_estimation",
    "user_ar_history_stats",
    "user_provided_all",
]
"""Where an inflow model comes from: nothing, statistics, coefficients, history, or a mix of them."""


@dataclass(frozen=True, eq=False)
class InflowHistory:
    """Mean inflows observed over windows of days, ordered by hydro, then start; no overlap within a hydro.

    Attributes
    ----------
    hydro
        int64: position of the plant.
    start, end
        datetime64[D]: first day, and first day after.
    value_m3s
        float64: mean incremental inflow.
    """

    hydro: NDArray[np.int64]
    start: NDArray[np.datetime64]
    end: NDArray[np.datetime64]
    value_m3s: FloatArray

    def __repr__(self) -> str:
        return f"InflowHistory({self.hydro.size} observations of {np.unique(self.hydro).size} hydros)"


@dataclass(frozen=True, eq=False)
class AnnualComponent:
    """Annual component of inflow models by (stage, hydro); coefficient 0 and std 1 where there is none.

    Attributes
    ----------
    coefficient
        Standardised coefficient of the mean of the last twelve months.
    mean_m3s, std_m3s
        Of that mean.
    """

    coefficient: FloatArray
    mean_m3s: FloatArray
    std_m3s: FloatArray

    def __repr__(self) -> str:
        return f"AnnualComponent({int((self.coefficient != 0.0).sum())} coefficients)"


@dataclass(frozen=True, eq=False)
class PreStudyStats:
    """Inflow statistics and models of stages before the study, by ascending stage id.

    Attributes
    ----------
    stage_id
        int64: negative ids.
    start, end
        datetime64[D]: first day, and first day after; NaT for a stage that only rows name, which is the
        period ``-stage_id`` periods before the first of the study.
    season_id
        int64: season, -1 where there is none.
    mean_m3s, std_m3s
        By (stage, hydro).
    present
        bool by (stage, hydro): whether there is a row of statistics.
    ar_coefficients
        Standardised, by (stage, hydro, lag - 1); ``None`` without any.
    annual
        Annual component by (stage, hydro); ``None`` without one.
    """

    stage_id: NDArray[np.int64]
    start: NDArray[np.datetime64]
    end: NDArray[np.datetime64]
    season_id: NDArray[np.int64]
    mean_m3s: FloatArray
    std_m3s: FloatArray
    present: NDArray[np.bool_]
    ar_coefficients: FloatArray | None = None
    annual: AnnualComponent | None = None

    def __repr__(self) -> str:
        return f"PreStudyStats({self.stage_id.size} stages, {self.present.shape[1]} hydros)"


@dataclass(frozen=True, eq=False)
class CorrelationGroup:
    """Entities of one class whose noise is correlated.

    Attributes
    ----------
    members
        int64: positions of the entities in the case.
    matrix
        Correlations in the order of ``members``, as the file states them.
    """

    name: str
    kind: ClassName
    members: NDArray[np.int64]
    matrix: FloatArray

    def __repr__(self) -> str:
        return f"CorrelationGroup({self.name!r}: {self.members.size} of {self.kind})"


@dataclass(frozen=True, eq=False)
class Correlation:
    """How the noise of entities is correlated; entities in no group are independent.

    Attributes
    ----------
    profiles
        Groups that hold together, by name.
    of_stage
        Name of the profile of each study stage.
    """

    profiles: dict[str, tuple[CorrelationGroup, ...]]
    of_stage: tuple[str, ...]

    def __repr__(self) -> str:
        return f"Correlation({len(self.profiles)} profiles)"


@dataclass(frozen=True, eq=False)
class Scenarios:
    """Statistics and scenarios.

    Attributes
    ----------
    inflow_mean_m3s, inflow_std_m3s
        Incremental inflow by (stage, hydro).
    load_mean_mw, load_std_mw
        Load by (stage, bus), before block factors.
    ncs_mean, ncs_std
        Availability as a share of the maximum, by (stage, source).
    ncs_has_stats
        Which sources have rows at all, (source,).
    has_inflow_stats
        Whether there is a file of inflow statistics; without one they are 0.
    ar_coefficients
        Standardised autoregressive coefficients by (stage, hydro, lag - 1), or ``None``.
    annual
        Annual component of inflow models, or ``None``.
    inflow_history
        Observed inflows from which models are estimated, or ``None``.
    recent_observations
        Observed inflows from which the study starts, or ``None``.
    pre_study
        Inflow statistics and models of stages before the study, or ``None``.
    external_inflow_m3s
        For each stage an array (scenario, hydro), or ``None``.
    external_load_mw
        For each stage an array (scenario, bus), or ``None``.
    external_ncs
        For each stage an array (scenario, source) of availability shares, or ``None``.
    correlation
        How noise is correlated; ``None`` = not at all.
    noise_openings
        For each stage the given noise by (opening, entity): hydros, then buses with a load std > 0 at any
        stage, then sources with statistics, each by id; ``None`` where openings are generated.
    """

    inflow_mean_m3s: FloatArray
    inflow_std_m3s: FloatArray
    load_mean_mw: FloatArray
    load_std_mw: FloatArray
    ncs_mean: FloatArray
    ncs_std: FloatArray
    ncs_has_stats: NDArray[np.bool_]
    external_inflow_m3s: tuple[FloatArray, ...] | None = None
    external_load_mw: tuple[FloatArray, ...] | None = None
    external_ncs: tuple[FloatArray, ...] | None = None
    has_inflow_stats: bool = True
    ar_coefficients: FloatArray | None = None
    annual: AnnualComponent | None = None
    inflow_history: InflowHistory | None = None
    recent_observations: InflowHistory | None = None
    pre_study: PreStudyStats | None = None
    correlation: Correlation | None = None
    noise_openings: tuple[FloatArray, ...] | None = None

    @property
    def estimation_path(self) -> EstimationPath:
        """Where the inflow model comes from."""
        given = self.ar_coefficients is not None
        if self.inflow_history is not None:
            if self.has_inflow_stats:
                return "user_provided_all" if given else "partial_estimation"
            return "user_ar_history_stats" if given else "full_estimation"
        if not self.has_inflow_stats:
            return "deterministic"
        return "user_provided_no_history" if given else "user_stats_white_noise"

    def external(self, name: ClassName) -> tuple[FloatArray, ...] | None:
        """Return the external scenarios of a class."""
        libraries: dict[ClassName, tuple[FloatArray, ...] | None] = {
            "inflow": self.external_inflow_m3s,
            "load": self.external_load_mw,
            "ncs": self.external_ncs,
        }
        return libraries[name]

    def __repr__(self) -> str:
        stages, hydros = self.inflow_mean_m3s.shape
        given = {
            "inflow": self.external_inflow_m3s,
            "load": self.external_load_mw,
            "sources": self.external_ncs,
        }
        external = ", ".join(name for name, values in given.items() if values is not None)
        return f"Scenarios({stages} stages, {hydros} hydros; external: {external or 'none'})"
