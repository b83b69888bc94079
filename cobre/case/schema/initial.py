"""``initial_conditions.json``: where the study starts; ``post_study_stages.json``: what follows it."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from cobre.case.schema.base import Count, FormatModel, Hours, Id, IsoDate, NonNegative, RootModel


class StorageEntry(FormatModel):
    """Storage of a hydro plant at the start."""

    hydro_id: Id
    value_hm3: NonNegative


class Window(FormatModel):
    """A span of days before or at the start of the study."""

    start_date: IsoDate
    end_date: IsoDate
    """First day after the window."""


class ObservationEntry(Window):
    """Mean incremental inflow observed before the study."""

    hydro_id: Id
    value_m3s: float


class DefluenceEntry(Window):
    """Mean release (turbined and spilt) of a plant before the study, part of which is still under way."""

    hydro_id: Id
    value_m3s: Annotated[float, Field(ge=0, le=1e12)]


class CommitmentEntry(Window):
    """Generation of an anticipated thermal plant that was decided before the study."""

    thermal_id: Id
    value_mw: NonNegative
    """Mean over the delivery stage, MW."""


class InitialConditionsFile(RootModel):
    """The whole file."""

    storage: list[StorageEntry]
    filling_storage: list[StorageEntry]
    """Storage of reservoirs that are still being filled for the first time."""
    recent_observations: list[ObservationEntry] | None = None
    past_defluences: list[DefluenceEntry] | None = None
    past_anticipated_commitments: list[CommitmentEntry] | None = None


class PostStudyStageEntry(FormatModel):
    """A period after the study, in which commitments made inside it are delivered."""

    start_date: IsoDate
    duration_hours: Hours


class PostStudyThermalBounds(FormatModel):
    """Limits and price of an anticipated thermal plant in a post-study stage."""

    thermal_id: Id
    post_study_stage_index: Count
    """Position in ``stages``, from 0."""
    cost_per_mwh: NonNegative
    min_mw: NonNegative
    max_mw: NonNegative


class PostStudyFile(RootModel):
    """The whole file ``post_study_stages.json``."""

    stages: list[PostStudyStageEntry]
    thermal_bounds: list[PostStudyThermalBounds] | None = None
