"""Planes fitted to the production function of a plant, with what is wrong or odd about them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cobre.case.checks.production import entity_of
from cobre.case.format import layout
from cobre.case.format.schema.production import FphaConfig, PlaneReduction, ReduceByAngle
from cobre.case.format.schema.system import HydroEntry
from cobre.case.model import FitQuality
from cobre.case.problems import Reporter
from cobre.hydro.fpha import FitWindow, PlaneFit, deviation, fit_planes
from cobre.hydro.geometry import GeometryCurve
from cobre.hydro.head import Head, ProductionFunction
from cobre.hydro.reduction import reduce_by_angle, reduce_by_distance

FloatArray = NDArray[np.float64]

_NO_WIDTH_HM3 = 1e-6
"""Width of a fitting window up to which it counts as a single storage."""
_HALF_WIDTH_SHARE = 0.005
"""How far the window around a single storage reaches to either side, as a share of the useful storage."""
_LEAST_HALF_WIDTH_HM3 = 1.0
"""The least it reaches to either side."""
POOR_FIT = 0.05
"""Mean deviation of fitted planes, relative to the mean power, above which a warning is given."""


class FphaFitter:
    """Fits planes plant by plant.

    Parameters
    ----------
    reduction
        How planes are thinned out; ``None`` = not at all.
    """

    def __init__(self, reduction: PlaneReduction | None, reporter: Reporter) -> None:
        self.reduction, self.reporter = reduction, reporter

    def fit(
        self, plant: HydroEntry, config: FphaConfig, head: Head, stage_id: int
    ) -> tuple[FloatArray, FitQuality | None]:
        """Return the planes from a stage on and how well they fit; none after reporting why not."""
        entity = entity_of(plant)
        low, high = _window(plant, config, head.geometry)
        if low > high:
            self.reporter.error(
                "InvalidValue",
                f"{layout.PRODUCTION_MODELS}: the fitting window of {entity} at stage {stage_id} ends before "
                f"it starts: {low} to {high} hm3.",
                file=layout.PRODUCTION_MODELS,
                entity=entity,
                field="fpha_config.fitting_window",
                value=[low, high],
                suggestion="Give a lower end that is not above the upper one.",
            )
            return np.zeros((0, 4)), None
        function = ProductionFunction(head, efficiency_of(plant))
        low, high, points = _on_curve(low, high, plant, head.geometry)
        window = FitWindow(
            low,
            high,
            plant.generation.max_turbined_m3s,
            points or config.volume_discretization_points or FitWindow.volume_points,
            config.turbine_discretization_points or FitWindow.turbine_points,
            config.max_planes_per_hydro,
            plant.generation.max_generation_mw,
        )
        try:
            fit = fit_planes(function, window)
        except (ArithmeticError, np.linalg.LinAlgError) as error:
            self.reporter.error(
                "InvalidValue",
                f"{layout.HYDROS}: no planes can be fitted to {entity} at stage {stage_id}: {error}.",
                file=layout.HYDROS,
                entity=entity,
                field="tailrace",
                suggestion="Check geometry and tailrace of the plant for extreme numbers.",
            )
            return np.zeros((0, 4)), None
        planes, quality = self._reduced(fit, function, window)
        if quality.mean_deviation_mw > POOR_FIT * quality.mean_power_mw:
            worst = quality.max_deviation_mw
            share = (
                100.0 * quality.mean_deviation_mw / quality.mean_power_mw if quality.mean_power_mw else 100.0
            )
            self.reporter.warning(
                "ModelQuality",
                f"{layout.PRODUCTION_MODELS}: the planes of {entity} from stage {stage_id} deviate from its "
                f"production function by {share:.1f} % on average, at most {worst:.4g} MW.",
                file=layout.PRODUCTION_MODELS,
                entity=entity,
                field="fpha_config",
                value=quality.mean_deviation_mw,
                suggestion="Narrow the fitting window; a strongly non-concave function has no better planes.",
            )
        return planes, quality

    def _reduced(
        self, fit: PlaneFit, function: ProductionFunction, window: FitWindow
    ) -> tuple[FloatArray, FitQuality]:
        planes, worst, mean = fit.planes, fit.max_deviation_mw, fit.mean_deviation_mw
        if self.reduction is not None and window.max_turbined_m3s > 0.0:
            if isinstance(self.reduction, ReduceByAngle):
                planes = reduce_by_angle(planes, self.reduction.tolerance_deg)
            else:
                planes = reduce_by_distance(
                    planes,
                    self.reduction.tolerance_pct,
                    self.reduction.n_samples,
                    (window.low_hm3, window.high_hm3),
                    window.max_turbined_m3s,
                )
            storage = np.linspace(window.low_hm3, window.high_hm3, window.volume_points)
            turbined = np.linspace(0.0, window.max_turbined_m3s, window.turbine_points)
            at = np.column_stack([np.repeat(storage, turbined.size), np.tile(turbined, storage.size)])
            worst, mean = deviation(planes, at, window.power(function, at[:, 0], at[:, 1]))
        return planes, FitQuality(fit.alpha, worst, mean, fit.mean_power_mw)

    def check_idle(self, plant: HydroEntry, planes: FloatArray, stage_id: int) -> None:
        """Warn of planes that would force a plant to turbine while it is nearly empty."""
        low = plant.reservoir.min_storage_hm3
        if not len(planes):
            return
        least = float((planes[:, 0] + planes[:, 1] * low).min())
        if least < -1e-6 * max(1.0, plant.generation.max_generation_mw):
            entity = entity_of(plant)
            self.reporter.warning(
                "ModelQuality",
                f"{layout.PRODUCTION_MODELS}: at minimum storage and without turbined flow, the planes of "
                f"{entity} from stage {stage_id} demand a generation of at most {least:.4g} MW.",
                file=layout.PRODUCTION_MODELS,
                entity=entity,
                field="fpha_config",
                value=least,
                suggestion="Give planes that allow no generation at any storage within the limits.",
            )


def efficiency_of(plant: HydroEntry) -> float:
    """Return the efficiency of a plant, 0-1."""
    return 1.0 if plant.efficiency is None else plant.efficiency.value


def _window(plant: HydroEntry, config: FphaConfig, geometry: GeometryCurve) -> tuple[float, float]:
    """Return the range of storage (hm3) that planes are wanted for, which may reach beyond the geometry.

    An end that is not given is that of the geometry, or the given one if that lies beyond.
    """
    low, high = plant.reservoir.min_storage_hm3, plant.reservoir.max_storage_hm3
    ends: dict[str, float | None] = {"min": None, "max": None}
    entry = config.fitting_window
    for end in ends if entry is not None else ():
        share = getattr(entry, f"volume_{end}_percentile")
        absolute = getattr(entry, f"volume_{end}_hm3")
        ends[end] = low + share * (high - low) if share is not None else absolute
    first, last = float(geometry.volume_hm3[0]), float(geometry.volume_hm3[-1])
    lowest = first if ends["max"] is None else min(first, ends["max"])
    highest = last if ends["min"] is None else max(last, ends["min"])
    return (
        lowest if ends["min"] is None else ends["min"],
        highest if ends["max"] is None else ends["max"],
    )


def _on_curve(
    low_hm3: float, high_hm3: float, plant: HydroEntry, geometry: GeometryCurve
) -> tuple[float, float, int | None]:
    """Return the part of a window within the geometry, and its points along storage where they are fixed.

    A single storage gets a narrow window around it, so that planes have the slope of the head there; only
    a geometry of one point leaves a window without width.
    """
    first, last = float(geometry.volume_hm3[0]), float(geometry.volume_hm3[-1])
    low, high = min(max(low_hm3, first), last), min(max(high_hm3, first), last)
    if high - low > _NO_WIDTH_HM3 or last - first <= _NO_WIDTH_HM3:
        return low, high, None
    useful = plant.reservoir.max_storage_hm3 - plant.reservoir.min_storage_hm3
    half = max(_HALF_WIDTH_SHARE * useful, _LEAST_HALF_WIDTH_HM3)
    return max(low - half, first), min(high + half, last), 2
