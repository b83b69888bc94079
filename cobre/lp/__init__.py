"""Stage LPs as sparse arrays, and the engine that solves all openings of a trial point."""

from cobre.lp.build import build_templates
from cobre.lp.diagnose import Diagnosis, RowViolation, diagnose
from cobre.lp.index import LpIndex
from cobre.lp.measure import measure_stages
from cobre.lp.scaling import ScalingReport, scale_templates
from cobre.lp.state import StateComponent, StateLayout
from cobre.lp.template import StageTemplate

__all__ = [
    "Diagnosis",
    "LpIndex",
    "RowViolation",
    "ScalingReport",
    "StageTemplate",
    "StateComponent",
    "StateLayout",
    "build_templates",
    "diagnose",
    "measure_stages",
    "scale_templates",
]
