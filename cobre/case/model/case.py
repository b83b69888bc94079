"""The complete study."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from cobre.case.model.generic import GenericRow
from cobre.case.model.horizon import PolicyGraph, PostStudyStage, SeasonMap, Stage
from cobre.case.model.options import PolicyOptions, TrainingOptions
from cobre.case.model.production import EvaporationModel, ProductionModel
from cobre.case.model.scenarios import Scenarios
from cobre.case.model.stage_data import StageData
from cobre.case.model.system import (
    Bus,
    Contract,
    Hydro,
    Line,
    NonControllable,
    PumpingStation,
    Thermal,
)
from cobre.errors import Problem
from cobre.hydro.energy import EnergyData


@dataclass(frozen=True, eq=False)
class Case:
    """A complete study.

    Attributes
    ----------
    stage_data
        Resolved limits and costs, one for each stage.
    production
        Production model by stage, then hydro.
    evaporation
        Evaporation model by stage, then hydro; ``None`` where nothing evaporates.
    generic
        Rows of generic constraints by stage.
    energy
        Productivities and reference points by stage and hydro, for reports; ``None`` in a study made
        without files.
    warnings
        What looked odd while loading but is not wrong.
    """

    path: Path
    training: TrainingOptions
    stages: tuple[Stage, ...]
    graph: PolicyGraph
    buses: tuple[Bus, ...]
    lines: tuple[Line, ...]
    thermals: tuple[Thermal, ...]
    hydros: tuple[Hydro, ...]
    stage_data: tuple[StageData, ...]
    production: tuple[tuple[ProductionModel, ...], ...]
    scenarios: Scenarios
    evaporation: tuple[tuple[EvaporationModel | None, ...], ...]
    generic: tuple[tuple[GenericRow, ...], ...]
    non_controllables: tuple[NonControllable, ...] = ()
    pumping_stations: tuple[PumpingStation, ...] = ()
    contracts: tuple[Contract, ...] = ()
    post_study_stages: tuple[PostStudyStage, ...] = ()
    seasons: SeasonMap | None = None
    energy: EnergyData | None = None
    policy: PolicyOptions = field(default_factory=PolicyOptions)
    warnings: tuple[Problem, ...] = ()

    def __repr__(self) -> str:
        counts = (
            (self.stages, "stages"),
            (self.buses, "buses"),
            (self.lines, "lines"),
            (self.thermals, "thermals"),
            (self.hydros, "hydros"),
            (self.non_controllables, "non-controllable sources"),
            (self.pumping_stations, "pumping stations"),
            (self.contracts, "contracts"),
        )
        listed = ", ".join(
            f"{len(items)} {word}" for position, (items, word) in enumerate(counts) if items or position < 5
        )
        return f"Case({self.path.name!r}: {listed})"
