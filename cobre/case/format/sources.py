"""All JSON files of a case, parsed as far as they go."""

from __future__ import annotations

from collections.abc import Collection as AnyCollection
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cobre.case.catalogue import EXTENSIONS, EntityType
from cobre.case.format import layout
from cobre.case.format.documents import CaseDocuments
from cobre.case.format.parse import Collection, Parsed, parse
from cobre.case.format.schema.config import ConfigFile
from cobre.case.format.schema.generic import (
    AnyParameter,
    ConstraintEntry,
    GenericConstraintsFile,
    GenericParametersFile,
    ParameterEntry,
)
from cobre.case.format.schema.initial import InitialConditionsFile, PostStudyFile, StorageEntry
from cobre.case.format.schema.penalties import PenaltiesFile
from cobre.case.format.schema.production import BySeason, ByStageRanges, ProductionEntry, ProductionModelsFile
from cobre.case.format.schema.scenarios import (
    CorrelationFile,
    LoadFactorEntry,
    LoadFactorsFile,
    NonControllableFactorEntry,
    NonControllableFactorsFile,
)
from cobre.case.format.schema.stages import StageEntry, StagesFile
from cobre.case.format.schema.system import (
    BusEntry,
    BusesFile,
    ContractEntry,
    ContractsFile,
    HydroEntry,
    HydrosFile,
    LineEntry,
    LinesFile,
    NonControllableEntry,
    NonControllablesFile,
    PumpingStationEntry,
    PumpingStationsFile,
    ThermalEntry,
    ThermalsFile,
)
from cobre.case.problems import Reporter


@dataclass(frozen=True)
class Sources:
    """The JSON files of a case; an optional file that is absent is ``None``, an optional registry empty."""

    present: AnyCollection[str]
    config: Parsed[ConfigFile, Any]
    penalties: Parsed[PenaltiesFile, Any]
    stages: Parsed[StagesFile, StageEntry]
    initial: Parsed[InitialConditionsFile, StorageEntry]
    buses: Parsed[BusesFile, BusEntry]
    lines: Parsed[LinesFile, LineEntry]
    thermals: Parsed[ThermalsFile, ThermalEntry]
    hydros: Parsed[HydrosFile, HydroEntry]
    production: Parsed[ProductionModelsFile, ByStageRanges | BySeason] | None
    load_factors: Parsed[LoadFactorsFile, LoadFactorEntry] | None
    non_controllables: Parsed[NonControllablesFile, NonControllableEntry]
    pumping_stations: Parsed[PumpingStationsFile, PumpingStationEntry]
    contracts: Parsed[ContractsFile, ContractEntry]
    ncs_factors: Parsed[NonControllableFactorsFile, NonControllableFactorEntry] | None
    post_study: Parsed[PostStudyFile, Any] | None = None
    extensions: Mapping[str, Parsed[Any, Any]] = field(default_factory=dict)
    correlation: Parsed[CorrelationFile, Any] | None = None
    generic_constraints: Parsed[GenericConstraintsFile, ConstraintEntry] | None = None
    generic_parameters: Parsed[GenericParametersFile, AnyParameter] | None = None

    def registry(self, kind: EntityType) -> Parsed[Any, Any]:
        """Return the entities of a type."""
        parsed: Parsed[Any, Any] = (
            self.extensions[kind.attribute] if kind.extension else getattr(self, kind.attribute)
        )
        return parsed


def read_sources(files: CaseDocuments, present: AnyCollection[str], reporter: Reporter) -> Sources:
    """Read and validate every JSON file of the case, reporting all faulty fields of all files.

    Parameters
    ----------
    present
        Paths that exist, from :func:`cobre.case.format.layout.scan` (which reports missing files).
    """

    def read(path: str, model: Any, item_type: Any = None, collection: Collection | None = None) -> Any:
        raw = files.read_json(path, reporter) if path in present else None
        return parse(raw, path, model, item_type, collection, reporter)

    def read_registry(path: str, model: Any, item_type: Any, collection: Collection) -> Any:
        return read(path, model, item_type, collection) if path in present else Parsed(None, (), (), {})

    by_hydro = Collection("production_models", "hydro", "hydro_id")
    by_bus = Collection("load_factors", "bus", "bus_id")
    return Sources(
        present=present,
        config=read(layout.CONFIG, ConfigFile),
        penalties=read(layout.PENALTIES, PenaltiesFile),
        stages=read(layout.STAGES, StagesFile, StageEntry, Collection("stages", "stage")),
        initial=read(
            layout.INITIAL_CONDITIONS,
            InitialConditionsFile,
            StorageEntry,
            Collection("storage", "hydro", "hydro_id"),
        ),
        buses=read(layout.BUSES, BusesFile, BusEntry, Collection("buses", "bus")),
        lines=read(layout.LINES, LinesFile, LineEntry, Collection("lines", "line")),
        thermals=read(layout.THERMALS, ThermalsFile, ThermalEntry, Collection("thermals", "thermal")),
        hydros=read(layout.HYDROS, HydrosFile, HydroEntry, Collection("hydros", "hydro")),
        production=(
            read(layout.PRODUCTION_MODELS, ProductionModelsFile, ProductionEntry, by_hydro)
            if layout.PRODUCTION_MODELS in present
            else None
        ),
        load_factors=(
            read(layout.LOAD_FACTORS, LoadFactorsFile, LoadFactorEntry, by_bus)
            if layout.LOAD_FACTORS in present
            else None
        ),
        non_controllables=read_registry(
            layout.NON_CONTROLLABLES,
            NonControllablesFile,
            NonControllableEntry,
            Collection("non_controllable_sources", "non-controllable source"),
        ),
        pumping_stations=read_registry(
            layout.PUMPING_STATIONS,
            PumpingStationsFile,
            PumpingStationEntry,
            Collection("pumping_stations", "pumping station"),
        ),
        contracts=read_registry(
            layout.CONTRACTS, ContractsFile, ContractEntry, Collection("contracts", "contract")
        ),
        extensions={
            kind.attribute: read_registry(kind.path, kind.file, kind.entry, Collection(kind.key, kind.word))
            for kind in EXTENSIONS
        },
        ncs_factors=(
            read(
                layout.NCS_FACTORS,
                NonControllableFactorsFile,
                NonControllableFactorEntry,
                Collection("non_controllable_factors", "non-controllable source", "ncs_id"),
            )
            if layout.NCS_FACTORS in present
            else None
        ),
        post_study=read(layout.POST_STUDY, PostStudyFile) if layout.POST_STUDY in present else None,
        correlation=read(layout.CORRELATION, CorrelationFile) if layout.CORRELATION in present else None,
        generic_constraints=(
            read(
                layout.GENERIC_CONSTRAINTS,
                GenericConstraintsFile,
                ConstraintEntry,
                Collection("constraints", "constraint"),
            )
            if layout.GENERIC_CONSTRAINTS in present
            else None
        ),
        generic_parameters=_read_parameters(files, reporter)
        if layout.GENERIC_PARAMETERS in present
        else None,
    )


def _read_parameters(files: CaseDocuments, reporter: Reporter) -> Parsed[GenericParametersFile, AnyParameter]:
    """Read the parameters; the format allows other keys beside them at the root."""
    path, key = layout.GENERIC_PARAMETERS, "scalar_parameters"
    raw = files.read_json(path, reporter)
    extra = sorted(set(raw or {}) - {key, "$schema"})
    if raw is not None and extra:
        reporter.warning(
            "SemanticAmbiguity",
            f"{path}: keys that are not part of the format are ignored: {', '.join(extra)}.",
            file=path,
            field=", ".join(extra),
            suggestion=f"The only key of this file is {key}.",
        )
        raw = {name: value for name, value in raw.items() if name not in extra}
    return parse(raw, path, GenericParametersFile, ParameterEntry, Collection(key, "parameter"), reporter)
