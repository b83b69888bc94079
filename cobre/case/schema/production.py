"""``system/hydro_production_models.json``: productivity by stage."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from cobre.case.schema.base import FormatModel, Id, JsonObject, NonNegative, RootModel, unsupported


class StageRange(FormatModel):
    """Production model from one stage id to another, both included (``None`` = to the end)."""

    start_stage_id: Id
    end_stage_id: Id | None = None
    model: Annotated[
        Literal["constant_productivity", "linearized_head", "fpha"],
        unsupported("a production model other than 'constant_productivity'", "constant_productivity"),
    ]
    productivity_mw_per_m3s: NonNegative | None = None
    fpha_config: Annotated[JsonObject | None, unsupported("piecewise production functions (FPHA)")] = None
    reference_volume: Annotated[JsonObject | None, unsupported("reference volumes")] = None


class ByStageRanges(FormatModel):
    """A plant whose model is given by ranges of stages; the first range that holds a stage wins."""

    hydro_id: Id
    selection_mode: Literal["stage_ranges"]
    stage_ranges: list[StageRange]


class BySeason(FormatModel):
    """A plant whose model is given by season."""

    hydro_id: Id
    selection_mode: Annotated[Literal["seasonal"], unsupported("production models by season")]
    default_model: str | None = None
    seasons: list[JsonObject] | None = None


ProductionEntry = Annotated[ByStageRanges | BySeason, Field(discriminator="selection_mode")]


class ProductionModelsFile(RootModel):
    """The whole file."""

    production_models: list[ProductionEntry]
    fpha_plane_reduction: Annotated[
        JsonObject | None, unsupported("piecewise production functions (FPHA)")
    ] = None
