"""The validated, immutable study: what a case directory means once every default is resolved.

Entities are sorted by id; every array follows that order, the order of study stages (ascending stage id)
and the order of blocks (ascending block id). Nothing here refers to files any more.
"""

from cobre.case.model.case import Case
from cobre.case.model.generic import GenericRow, GenericTerm, VariableKind
from cobre.case.model.horizon import (
    Block,
    BlockMode,
    PolicyGraph,
    PolicyNode,
    PostStudyStage,
    RiskMeasure,
    SamplingMethod,
    Season,
    SeasonMap,
    Stage,
    Transition,
)
from cobre.case.model.options import (
    CheckpointOptions,
    InflowMethod,
    PolicyMode,
    PolicyOptions,
    TrainingOptions,
)
from cobre.case.model.production import EvaporationModel, FitQuality, ProductionKind, ProductionModel
from cobre.case.model.scenarios import Scenarios
from cobre.case.model.stage_data import HYDRO_PENALTIES, HydroStatus, StageData
from cobre.case.model.system import (
    AnticipatedDelivery,
    Bus,
    Contract,
    DeficitSegment,
    Diversion,
    Filling,
    Hydro,
    Line,
    NonControllable,
    PumpingStation,
    Thermal,
    UnitGroup,
)

__all__ = [
    "HYDRO_PENALTIES",
    "AnticipatedDelivery",
    "Block",
    "BlockMode",
    "Bus",
    "Case",
    "CheckpointOptions",
    "Contract",
    "DeficitSegment",
    "Diversion",
    "EvaporationModel",
    "Filling",
    "FitQuality",
    "GenericRow",
    "GenericTerm",
    "Hydro",
    "HydroStatus",
    "InflowMethod",
    "Line",
    "NonControllable",
    "PolicyGraph",
    "PolicyMode",
    "PolicyNode",
    "PolicyOptions",
    "PostStudyStage",
    "ProductionKind",
    "ProductionModel",
    "PumpingStation",
    "RiskMeasure",
    "SamplingMethod",
    "Scenarios",
    "Season",
    "SeasonMap",
    "Stage",
    "StageData",
    "Thermal",
    "TrainingOptions",
    "Transition",
    "UnitGroup",
    "VariableKind",
]
