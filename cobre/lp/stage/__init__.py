"""The LP of one stage, put together from the parts of the system."""

from cobre.lp.stage.build import build_stage
from cobre.lp.stage.context import NoiseEntities, StageContext

__all__ = ["NoiseEntities", "StageContext", "build_stage"]
