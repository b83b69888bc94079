"""Stage LPs as sparse arrays, and the engine that solves all openings of a trial point."""

from cobre.lp.build import build_templates
from cobre.lp.diagnose import Diagnosis, RowViolation, diagnose
from cobre.lp.template import StageTemplate

__all__ = ["Diagnosis", "RowViolation", "StageTemplate", "build_templates", "diagnose"]
