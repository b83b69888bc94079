"""Production models of all plants at a stage, as arrays."""

from __future__ import annotations

import numpy as np

from cobre.case.model import ProductionModel
from cobre.lp.stage.context import BoolArray, FloatArray, StageContext


def has_planes(model: ProductionModel) -> bool:
    """Whether the generation of a plant is bounded by planes instead of being proportional to the flow."""
    return model.kind != "constant_productivity" and len(model.planes) > 0


def is_planar(stage: StageContext) -> BoolArray:
    """Plants whose production :func:`has_planes`."""
    return np.array([has_planes(model) for model in stage.case.production[stage.position]], bool)


def productivity(stage: StageContext) -> FloatArray:
    """MW per m3/s of every plant; of no meaning where :func:`is_planar`."""
    models = stage.case.production[stage.position]
    return np.array([model.productivity_mw_per_m3s for model in models], np.float64)


def plane_table(stage: StageContext) -> tuple[FloatArray, BoolArray]:
    """Return the planes of all plants as (hydro, plane, 4), and which of them exist."""
    models = stage.case.production[stage.position]
    planar = is_planar(stage)
    most = max((len(model.planes) for model, has in zip(models, planar, strict=True) if has), default=0)
    table = np.zeros((len(models), most, 4))
    exists = np.zeros((len(models), most), bool)
    for h in np.flatnonzero(planar):
        count = len(models[h].planes)
        table[h, :count] = models[h].planes
        exists[h, :count] = True
    return table, exists
