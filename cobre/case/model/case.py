"""The complete study."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from cobre.case.format.documents import CaseDocuments
from cobre.case.model.generic import GenericRow
from cobre.case.model.horizon import PolicyGraph, PostStudyStage, SeasonMap, Stage
from cobre.case.model.options import (
    EstimationOptions,
    ExportOptions,
    PolicyOptions,
    SimulationOptions,
    TrainingOptions,
)
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
from cobre.display import html_table
from cobre.errors import Problem
from cobre.hydro.energy import EnergyData

if TYPE_CHECKING:
    import pyarrow

    from cobre.case.format.editing import CaseEditor
    from cobre.case.format.schema.config import ConfigFile
    from cobre.case.format.schema.system import Entity
    from cobre.case.summary import CaseSummary
    from cobre.stochastic.report.document import StochasticReport


_Entity = TypeVar("_Entity", bound="Entity")


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
    documents
        The files the case was made from; ``None`` in a study made without files.
    config
        ``config.json`` as it was validated; ``None`` in a study made without files. Keys without an
        option above are read there; see :meth:`option`.
    extensions
        Entities of types that are extensions, by id, by the name of their collection; see :meth:`entities`.
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
    estimation: EstimationOptions = field(default_factory=EstimationOptions)
    simulation: SimulationOptions = field(default_factory=SimulationOptions)
    exports: ExportOptions = field(default_factory=ExportOptions)
    warnings: tuple[Problem, ...] = ()
    documents: CaseDocuments | None = field(default=None, repr=False)
    config: ConfigFile | None = field(default=None, repr=False)
    extensions: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)

    def entities(self, kind: type[_Entity]) -> tuple[_Entity, ...]:
        """Return the entities of a type that is an extension, given by the model of its entries, by id."""
        from cobre.case.catalogue import type_of

        return self.extensions.get(type_of(kind).attribute, ())

    def option(self, path: str) -> Any:
        """Return the value of a key of ``config.json`` that has no place in the options of the study.

        Parameters
        ----------
        path
            Sections and key, such as ``"modeling.cost_scale_factor"``.

        Returns
        -------
        Any
            ``None`` where the key is not given.

        Examples
        --------
        >>> from cobre.case import load
        >>> load("examples/random-inflow").option("modeling.cost_scale_factor") is None
        True
        """
        value: Any = self.config
        for name in path.split("."):
            value = None if value is None else getattr(value, name)
        return value

    def edit(self) -> CaseEditor:
        """Return the documents of the case for editing; its ``build`` gives a new case."""
        from cobre.case.format.editing import CaseEditor

        return CaseEditor(self)

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
        """Write a case directory that loads to this case; see :func:`cobre.case.format.saving.save_case`."""
        from cobre.case.format.saving import save_case

        return save_case(self, path, overwrite=overwrite)

    def to_arrow(self) -> dict[str, pyarrow.Table]:
        """Return entities and resolved values as tables; see :func:`cobre.case.arrow.case_tables`.

        >>> from cobre.case import load
        >>> tables = load("examples/random-inflow").to_arrow()
        >>> tables["thermals"].column("name").to_pylist()
        ['Gas', 'Fuel oil', 'Diesel']
        """
        from cobre.case.arrow import case_tables

        return case_tables(self)

    def summary(self) -> CaseSummary:
        """Return the size of the study and how its uncertainty is made; ``print`` shows it as a table.

        >>> from cobre.case import load
        >>> print(load("examples/random-inflow").summary())  # doctest: +ELLIPSIS
        case              ...random-inflow
        entities          1 bus, 3 thermals, 2 hydros, 2 unit groups
        ...
        openings          4 a stage, 256 paths
        ...
        """
        from cobre.case.summary import summarize

        return summarize(self)

    def stochastic(self) -> StochasticReport:
        """Fit the inflow model, draw the opening tree and report on both; ``print`` shows it as a table."""
        from cobre.stochastic.report.document import stochastic_report

        return stochastic_report(self)

    def _repr_html_(self) -> str:
        return html_table("Case", self.summary().rows())

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
            *((items, name.replace("_", " ")) for name, items in self.extensions.items()),
        )
        listed = ", ".join(
            f"{len(items)} {word}" for position, (items, word) in enumerate(counts) if items or position < 5
        )
        return f"Case({self.path.name!r}: {listed})"
