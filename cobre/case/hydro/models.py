"""Production and evaporation of every hydro plant at every stage, from tables, entries and physics.

Equal models are one object: planes are fitted once for each distinct configuration of a plant.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cobre.case.catalogue import by_id
from cobre.case.checks.production import check_evaporation, check_needs, entity_of, fpha_source
from cobre.case.format import layout
from cobre.case.format.documents import CaseDocuments
from cobre.case.format.schema.production import (
    ModelChoice,
    ReferenceVolume,
)
from cobre.case.format.schema.stages import StageEntry
from cobre.case.format.schema.system import FactorLosses, HydroEntry, PolynomialTailrace
from cobre.case.format.sources import Sources
from cobre.case.hydro.fpha_fit import FphaFitter, efficiency_of
from cobre.case.hydro.production import PlantChoice, choose_models
from cobre.case.hydro.tables import HydroTables, PlantRates, read_hydro_tables
from cobre.case.model import EvaporationModel, FitQuality, ProductionModel
from cobre.case.problems import Reporter
from cobre.hydro.energy import EnergyData
from cobre.hydro.evaporation import linear_evaporation, month_shares
from cobre.hydro.fpha import without_rounding
from cobre.hydro.geometry import GeometryCurve
from cobre.hydro.head import GRAVITY_MW, Head
from cobre.hydro.linear_head import head_planes, productivity_slope
from cobre.hydro.tailrace import PiecewiseCurve, PolynomialCurve, Tailrace

FloatArray = NDArray[np.float64]

DEFAULT_REFERENCE = 0.65
"""Share of the useful storage that represents a plant unless its production model gives another."""


@dataclass(frozen=True, eq=False)
class HydroModels:
    """Models of all plants, resolved but for the range of storage.

    Attributes
    ----------
    evaporation
        By stage, then hydro.
    """

    energy: EnergyData
    evaporation: tuple[tuple[EvaporationModel | None, ...], ...]
    _makers: tuple[tuple[Callable[[float, float], ProductionModel], ...], ...]
    """By hydro, then stage: the model for a range of storage; equal models have the same maker."""

    def production(
        self, low_hm3: FloatArray, high_hm3: FloatArray
    ) -> tuple[tuple[ProductionModel, ...], ...]:
        """Return the production models by stage, then hydro.

        Parameters
        ----------
        low_hm3, high_hm3
            (hydro,) range that storage can take at any stage, which the planes of linearised head are for.
        """
        columns = []
        for makers, low, high in zip(self._makers, low_hm3.tolist(), high_hm3.tolist(), strict=True):
            made: dict[int, ProductionModel] = {}
            for maker in makers:
                if id(maker) not in made:
                    made[id(maker)] = maker(low, high)
            columns.append([made[id(maker)] for maker in makers])
        stages = len(self.evaporation)
        return tuple(tuple(column[stage] for column in columns) for stage in range(stages))


def resolve_hydro_models(files: CaseDocuments, sources: Sources, reporter: Reporter) -> HydroModels | None:
    """Read everything about production and evaporation, report all problems and return the models.

    Returns ``None`` when there is any error, here or before.
    """
    tables = read_hydro_tables(files, sources, reporter)
    choices = choose_models(sources, tables, reporter)
    stages = by_id(stage for stage in sources.stages.items if stage.id >= 0)
    if sources.stages.ids is not None:
        stage_ids = [number for number in sorted(sources.stages.id_set) if number >= 0]
        for choice in choices:
            check_needs(choice, tables, stage_ids, reporter)
    for plant in by_id(sources.hydros.items):
        check_evaporation(plant, tables, reporter)
    if reporter.errors or sources.hydros.ids is None:
        return None
    builder = _Builder(stages, choices, tables, sources, reporter)
    # Overflow is reported as what it is, a plant whose numbers are not finite.
    with np.errstate(over="ignore", invalid="ignore"):
        models = builder.build()
    return None if reporter.errors else models


class _Builder:
    def __init__(
        self,
        stages: Sequence[StageEntry],
        choices: Sequence[PlantChoice],
        tables: HydroTables,
        sources: Sources,
        reporter: Reporter,
    ) -> None:
        self.stages, self.choices, self.tables, self.reporter = stages, choices, tables, reporter
        self.stage_ids = [stage.id for stage in stages]
        self.position = {choice.plant.id: index for index, choice in enumerate(choices)}
        production = sources.production
        reduction = production.root.fpha_plane_reduction if production and production.root else None
        self.fitter = FphaFitter(reduction, reporter)
        self.planes: dict[tuple[object, ...], tuple[FloatArray, FitQuality | None]] = {}
        shape = (len(stages), len(choices))
        self.reference = np.zeros(shape)
        self.turbine = np.zeros(shape)
        self.specific = np.zeros(shape)
        self.equivalent = np.zeros(shape)
        self.integrated = np.zeros(shape)

    def build(self) -> HydroModels:
        for index, choice in enumerate(self.choices):
            self._reference_points(index, choice)
        makers = tuple(self._plant(index, choice) for index, choice in enumerate(self.choices))
        self._check_reduction()
        for index, choice in enumerate(self.choices):
            finite = np.isfinite(self.equivalent[:, index]) & np.isfinite(self.integrated[:, index])
            if not (finite & np.isfinite(self.reference[:, index])).all():
                self._refuse_numbers(choice.plant, "productivity")
        plants = [choice.plant for choice in self.choices]
        energy = EnergyData(
            downstream=np.array([self._downstream(plant) for plant in plants], np.intp),
            equivalent=_frozen(self.equivalent),
            integrated=_frozen(self.integrated),
            specific=_frozen(self.specific),
            reference_volume_hm3=_frozen(self.reference),
            reference_turbine_m3s=_frozen(self.turbine),
            min_storage_hm3=_frozen(
                np.array([plant.reservoir.min_storage_hm3 for plant in plants], np.float64)
            ),
            max_storage_hm3=_frozen(
                np.array([plant.reservoir.max_storage_hm3 for plant in plants], np.float64)
            ),
        )
        return HydroModels(energy, self._evaporation(plants), makers)

    def _downstream(self, plant: HydroEntry) -> int:
        return -1 if plant.downstream_id is None else self.position.get(plant.downstream_id, -1)

    def _reference_points(self, index: int, choice: PlantChoice) -> None:
        plant = choice.plant
        rates = self.tables.rates.get(plant.id, PlantRates())
        volumes = [_reference_hm3(plant, part.reference_volume) for part in choice.parts]
        self.reference[:, index] = np.array(volumes)[choice.at]
        outflow = rates.by_stage("outflow", self.stage_ids)
        self.turbine[:, index] = np.where(np.isnan(outflow), plant.generation.max_turbined_m3s, outflow)
        specific = rates.by_stage("specific", self.stage_ids)
        own = plant.specific_productivity_mw_per_m3s_per_m
        self.specific[:, index] = np.where(np.isnan(specific), np.nan if own is None else own, specific)

    def _plant(
        self, index: int, choice: PlantChoice
    ) -> tuple[Callable[[float, float], ProductionModel], ...]:
        """Return the makers of one plant's models by stage, and fill in its productivities."""
        plant = choice.plant
        geometry = self.tables.geometry.get(plant.id)
        levels = self._downstream_levels(choice)
        of_stage = self.tables.planes.get(plant.id, {})
        # Plain lists: this runs for every plant and stage. NaN is unequal to itself, so no key may hold it.
        at, by_table = choice.at.tolist(), choice.given_by_table.tolist()
        given = [None if value != value else value for value in choice.productivity.tolist()]
        specific = [None if value != value else value for value in self.specific[:, index].tolist()]
        reference = self.reference[:, index].tolist()
        made: dict[tuple[object, ...], tuple[Callable[[float, float], ProductionModel], float, float]] = {}
        keys = []
        for stage, number in enumerate(self.stage_ids):
            planes_of = number if number in of_stage else None
            key = (at[stage], given[stage], specific[stage], levels[stage], planes_of, by_table[stage])
            keys.append(key)
            if key in made:
                continue
            part = choice.parts[at[stage]]
            head = None if geometry is None else self._head(plant, geometry, levels[stage])
            own = self._equivalent(
                choice, part, given[stage], specific[stage], head, reference[stage], number
            )
            mean = own
            low, high = plant.reservoir.min_storage_hm3, plant.reservoir.max_storage_hm3
            rate = specific[stage]
            if head is not None and rate is not None and low < high and not by_table[stage]:
                mean = rate * head.mean_net(low, high, plant.generation.max_turbined_m3s)
            planes_key = (plant.id, at[stage], levels[stage], planes_of)
            maker = self._maker(choice, part, own, rate, head, reference[stage], number, planes_key)
            made[key] = (maker, own, mean)
        self.equivalent[:, index] = [made[key][1] for key in keys]
        self.integrated[:, index] = [made[key][2] for key in keys]
        return tuple(made[key][0] for key in keys)

    def _downstream_levels(self, choice: PlantChoice) -> list[float | None]:
        """Return the level below the plant by stage, where its tailrace depends on it."""
        families = self.tables.tailrace.get(choice.plant.id)
        unknown: list[float | None] = [None] * len(self.stage_ids)
        if families is None or len(families.levels_m) < 2:
            return unknown
        below = self._downstream(choice.plant)
        curve = None if below < 0 else self.tables.geometry.get(self.choices[below].plant.id)
        if curve is None:
            entity = entity_of(choice.plant)
            self.reporter.warning(
                "ModelQuality",
                f"{layout.TAILRACE_CURVES}: {entity} has {len(families.levels_m)} families, but the level "
                f"downstream is not known; the one for {families.levels_m[0]} m is used.",
                file=layout.TAILRACE_CURVES,
                entity=entity,
                field="downstream_reference_level_m",
                value=families.levels_m[0],
                suggestion=f"Give the plant downstream rows in {layout.GEOMETRY}.",
            )
            return unknown
        levels = curve.height(self.reference[:, below])
        return [float(level) for level in levels]

    def _head(self, plant: HydroEntry, geometry: GeometryCurve, level: float | None) -> Head:
        losses = plant.hydraulic_losses
        factor = losses.value if isinstance(losses, FactorLosses) else 0.0
        metres = losses.value_m if losses is not None and not isinstance(losses, FactorLosses) else 0.0
        return Head(geometry, self._tailrace(plant, level), factor, metres)

    def _tailrace(self, plant: HydroEntry, level: float | None) -> Tailrace:
        families = self.tables.tailrace.get(plant.id)
        if families is not None:
            return families.at(level)
        if plant.tailrace is None:
            return PolynomialCurve((0.0,))
        if isinstance(plant.tailrace, PolynomialTailrace):
            return PolynomialCurve(tuple(plant.tailrace.coefficients))
        points = plant.tailrace.points
        return PiecewiseCurve(
            tuple(point.outflow_m3s for point in points), tuple(point.height_m for point in points)
        )

    def _equivalent(
        self,
        choice: PlantChoice,
        part: ModelChoice,
        given: float | None,
        specific: float | None,
        head: Head | None,
        reference: float,
        stage_id: int,
    ) -> float:
        """Return the equivalent productivity, MW/(m3/s)."""
        if given is not None:
            return given
        plant = choice.plant
        if specific is None and fpha_source(part) == "computed":
            specific = GRAVITY_MW * efficiency_of(plant)
        if head is None or specific is None:
            entity = entity_of(plant)
            lacking = f"rows in {layout.GEOMETRY}" if head is None else "a specific productivity"
            self.reporter.error(
                "DimensionMismatch",
                f"{layout.ENERGY_PRODUCTIVITY}: {entity} has no equivalent productivity at stage {stage_id}, "
                f"and it cannot be computed without {lacking}.",
                file=layout.ENERGY_PRODUCTIVITY,
                entity=entity,
                field="equivalent_productivity_mw_per_m3s",
                value=stage_id,
                rule="productivity_resolution.1",
                suggestion="Reports need the equivalent productivity (null stage_id = all stages), or "
                f"specific_productivity_mw_per_m3s_per_m and rows in {layout.GEOMETRY}.",
            )
            return 0.0
        return specific * float(head.net(reference, plant.generation.max_turbined_m3s))

    def _maker(
        self,
        choice: PlantChoice,
        part: ModelChoice,
        productivity: float,
        specific: float | None,
        head: Head | None,
        reference: float,
        stage_id: int,
        planes_key: tuple[object, ...],
    ) -> Callable[[float, float], ProductionModel]:
        plant = choice.plant
        if part.model == "linearized_head" and head is not None:
            return self._linear_head(plant, productivity, specific, head, reference)
        if planes_key not in self.planes:
            planes, quality = np.zeros((0, 4)), None
            if part.model == "fpha" and part.fpha_config is not None:
                if part.fpha_config.source == "precomputed":
                    given = self.tables.planes[plant.id]
                    planes = given.get(stage_id, given.get(None, planes))
                elif head is not None:
                    planes, quality = self.fitter.fit(plant, part.fpha_config, head, stage_id)
                planes = without_rounding(
                    planes, plant.reservoir.max_storage_hm3, plant.generation.max_turbined_m3s
                )
                self.fitter.check_idle(plant, planes, stage_id)
            self.planes[planes_key] = (_frozen(planes), quality)
        model = ProductionModel(part.model, productivity, *self.planes[planes_key])
        return lambda low, high: model

    def _linear_head(
        self, plant: HydroEntry, productivity: float, specific: float | None, head: Head, reference: float
    ) -> Callable[[float, float], ProductionModel]:
        low, high = plant.reservoir.min_storage_hm3, plant.reservoir.max_storage_hm3
        flow = plant.generation.max_turbined_m3s
        entity = entity_of(plant)
        try:
            slope = productivity_slope(head, productivity, specific, reference, low, high, flow)
        except ValueError as error:
            self.reporter.error(
                "BusinessRuleViolation",
                f"{layout.GEOMETRY}: the head of {entity} cannot be linearised: {error}.",
                file=layout.GEOMETRY,
                entity=entity,
                field="height_m",
                value=float(head.geometry.height(reference)),
                suggestion="Check heights, tailrace and losses, or give a specific productivity.",
            )
            return lambda low, high: ProductionModel("linearized_head", productivity, np.zeros((0, 4)))
        if not np.isfinite(head_planes(productivity, slope, reference, low, high, flow)).all():
            self._refuse_numbers(plant, "head")
        if productivity + slope * (low - reference) < 0.0:
            self.reporter.error(
                "InvalidValue",
                f"{layout.HYDROS}: with {slope} MW/(m3/s) for each hm3, the productivity of {entity} would "
                f"be negative at its minimum storage ({low} hm3).",
                file=layout.HYDROS,
                entity=entity,
                field="specific_productivity_mw_per_m3s_per_m",
                value=specific,
                suggestion="Check specific productivity, productivity and geometry against each other.",
            )
        if (
            specific is None
            and plant.tailrace is None
            and plant.id not in self.tables.tailrace
            and slope > 0.0
        ):
            self.reporter.warning(
                "ModelQuality",
                f"{layout.HYDROS}: {entity} has no tailrace, so its head is counted from level 0.",
                file=layout.HYDROS,
                entity=entity,
                field="tailrace",
                suggestion="Give the tailrace, or a specific productivity.",
            )

        def make(low_hm3: float, high_hm3: float) -> ProductionModel:
            planes = head_planes(productivity, slope, reference, min(low, low_hm3), max(high, high_hm3), flow)
            return ProductionModel("linearized_head", productivity, _frozen(planes))

        return make

    def _refuse_numbers(self, plant: HydroEntry, what: str) -> None:
        entity = entity_of(plant)
        self.reporter.error(
            "InvalidValue",
            f"{layout.HYDROS}: the {what} of {entity} is not a finite number.",
            file=layout.HYDROS,
            entity=entity,
            field=what,
            suggestion="Check the plant's numbers, here and in the tables of system/, for extreme values.",
        )

    def _check_reduction(self) -> None:
        fitted = any(fpha_source(part) == "computed" for choice in self.choices for part in choice.parts)
        if self.fitter.reduction is not None and not fitted:
            self.reporter.warning(
                "SemanticAmbiguity",
                f"{layout.PRODUCTION_MODELS}: fpha_plane_reduction has no effect without computed planes.",
                file=layout.PRODUCTION_MODELS,
                field="fpha_plane_reduction",
                suggestion="Planes that are given are used as they are.",
            )

    def _evaporation(self, plants: Sequence[HydroEntry]) -> tuple[tuple[EvaporationModel | None, ...], ...]:
        months = [tuple(month_shares(stage.start_date, stage.end_date)) for stage in self.stages]
        columns = [self._evaporation_of(plant, months) for plant in plants]
        return tuple(tuple(column[stage] for column in columns) for stage in range(len(self.stages)))

    def _evaporation_of(
        self, plant: HydroEntry, months: Sequence[tuple[tuple[int, int, float], ...]]
    ) -> list[EvaporationModel | None]:
        entry, geometry = plant.evaporation, self.tables.geometry.get(plant.id)
        if entry is None or geometry is None:
            return [None] * len(months)
        middle = (plant.reservoir.min_storage_hm3 + plant.reservoir.max_storage_hm3) / 2.0
        reference = entry.reference_volumes_hm3 or [middle] * 12
        made: dict[object, EvaporationModel] = {}
        models: list[EvaporationModel | None] = []
        for part in months:
            if part not in made:
                numbers = linear_evaporation(geometry, entry.coefficients_mm, reference, part)
                if not np.isfinite(numbers).all():
                    self._refuse_numbers(plant, "evaporation")
                made[part] = EvaporationModel(*numbers)
            models.append(made[part])
        return models


def _reference_hm3(plant: HydroEntry, entry: ReferenceVolume | None) -> float:
    low, high = plant.reservoir.min_storage_hm3, plant.reservoir.max_storage_hm3
    if entry is not None and entry.volume_hm3 is not None:
        return entry.volume_hm3
    share = DEFAULT_REFERENCE if entry is None or entry.percentile is None else entry.percentile
    return low + share * (high - low)


def _frozen(array: FloatArray) -> FloatArray:
    fixed = np.ascontiguousarray(array, dtype=np.float64)
    fixed.setflags(write=False)
    return fixed
