"""``system/hydro_production_models.json``: production models by stage or season."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from cobre.fields import FormatModel, Id, NonNegative, Positive, PositiveCount, RootModel

ModelName = Literal["constant_productivity", "linearized_head", "fpha"]
Fraction = Annotated[float, Field(ge=0, le=1)]
# A hull over more points than this takes minutes and gives thousands of planes.
GridPoints = Annotated[int, Field(ge=2, le=100)]


class FittingWindow(FormatModel):
    """Range of storage that planes are fitted over; at most one key for each end.

    What is not given is the end of the geometry curve; what lies beyond that curve is moved to its end. A
    single storage means a narrow window around it.
    """

    volume_min_hm3: NonNegative | None = None
    """Lower end, hm3."""
    volume_min_percentile: Fraction | None = None
    """Lower end as a share of the useful storage, 0-1."""
    volume_max_hm3: NonNegative | None = None
    """Upper end, hm3."""
    volume_max_percentile: Fraction | None = None
    """Upper end as a share of the useful storage, 0-1."""

    @model_validator(mode="after")
    def _check_ends(self) -> FittingWindow:
        for end in ("min", "max"):
            if (
                getattr(self, f"volume_{end}_hm3") is not None
                and getattr(self, f"volume_{end}_percentile") is not None
            ):
                raise PydanticCustomError(
                    "one_of",
                    "must be an object with at most one of {first} and {second}",
                    {"first": f"volume_{end}_hm3", "second": f"volume_{end}_percentile"},
                )
        return self


class FphaConfig(FormatModel):
    """Where the planes of a piecewise linear production function come from."""

    source: Literal["computed", "precomputed"]
    """``computed``: fitted to geometry and tailrace; ``precomputed``: given in fpha_hyperplanes.parquet."""
    volume_discretization_points: GridPoints | None = None
    """Points of the grid along storage; null = 5."""
    turbine_discretization_points: GridPoints | None = None
    """Points of the grid along turbined flow; null = 5."""
    spillage_discretization_points: PositiveCount | None = None
    """Without effect: the slope in spillage is fitted to nine points."""
    max_planes_per_hydro: PositiveCount | None = None
    """Most planes of the fit; null keeps every face of the hull."""
    fitting_window: FittingWindow | None = None
    """Range of storage of the grid; null = all of the geometry curve."""


class ReferenceVolume(FormatModel):
    """The storage that represents a plant; exactly one of the two keys."""

    volume_hm3: Positive | None = None
    """Storage, hm3."""
    percentile: Fraction | None = None
    """Share of the useful storage, 0-1."""

    @model_validator(mode="after")
    def _check_one(self) -> ReferenceVolume:
        if (self.volume_hm3 is None) == (self.percentile is None):
            raise PydanticCustomError(
                "one_of", "must be an object with exactly one of volume_hm3 and percentile"
            )
        return self


class ModelChoice(FormatModel):
    """A production model and its numbers."""

    model: ModelName
    """How water becomes energy."""
    productivity_mw_per_m3s: NonNegative | None = None
    """Power for each unit of turbined flow, MW/(m3/s); with linearised head, at the reference storage."""
    fpha_config: FphaConfig | None = None
    """Required for the model fpha."""
    reference_volume: ReferenceVolume | None = None
    """Storage where equivalent productivity and head are taken; null = 65 % of the useful storage."""


class StageRange(ModelChoice):
    """Production model from one stage id to another, both included."""

    start_stage_id: Id
    """First stage of the range."""
    end_stage_id: Id | None = None
    """Last stage of the range; null = to the end of the study."""


class SeasonChoice(ModelChoice):
    """Production model of a season."""

    season_id: Id
    """The season."""


class ByStageRanges(FormatModel):
    """A plant whose model is given by ranges of stages; the first range that holds a stage wins."""

    hydro_id: Id
    """The plant."""
    selection_mode: Literal["stage_ranges"]
    """Names this form."""
    stage_ranges: list[StageRange]
    """Ranges in order of precedence."""


class BySeason(FormatModel):
    """A plant whose model is given by season."""

    hydro_id: Id
    """The plant."""
    selection_mode: Literal["seasonal"]
    """Names this form."""
    default_model: ModelName | None = None
    """Model of the stages whose season is not listed; null = that of hydros.json."""
    seasons: list[SeasonChoice]
    """Models by season."""


ProductionEntry = Annotated[ByStageRanges | BySeason, Field(discriminator="selection_mode")]


class ReduceByAngle(FormatModel):
    """Merge neighbouring planes whose normals enclose a small angle."""

    method: Literal["angle"]
    """Names this form."""
    tolerance_deg: Annotated[float, Field(ge=0, le=90)]
    """Angle below which planes are merged, degrees."""


class ReduceByDistance(FormatModel):
    """Merge neighbouring planes that differ little in power."""

    method: Literal["distance"]
    """Names this form."""
    tolerance_pct: NonNegative
    """Mean square difference below which planes are merged, % of the square of the largest power."""
    n_samples: Annotated[int, Field(ge=1, le=10_000)]
    """Points at which planes are compared."""


PlaneReduction = Annotated[ReduceByAngle | ReduceByDistance, Field(discriminator="method")]


class ProductionModelsFile(RootModel):
    """``system/hydro_production_models.json``: how water becomes energy, by stage or season."""

    production_models: list[ProductionEntry]
    """One entry for each plant."""
    fpha_plane_reduction: PlaneReduction | None = None
    """How planes of fitted production functions are thinned out; null = not at all."""
