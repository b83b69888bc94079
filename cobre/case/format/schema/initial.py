"""``initial_conditions.json``: where the study starts; ``post_study_stages.json``: what follows it."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from cobre.fields import Count, FormatModel, Hours, Id, IsoDate, NonNegative, RootModel


class StorageEntry(FormatModel):
    """Storage of a hydro plant at the start."""

    hydro_id: Id
    """The plant."""
    value_hm3: NonNegative
    """Storage, dead volume included, hm3."""


class Window(FormatModel):
    """A span of days before or at the start of the study."""

    start_date: IsoDate
    """First day."""
    end_date: IsoDate
    """First day after the window."""


class ObservationEntry(Window):
    """Mean incremental inflow observed before the study."""

    hydro_id: Id
    """The plant."""
    value_m3s: float
    """Mean incremental inflow over the window, m3/s."""


class DefluenceEntry(Window):
    """Mean release (turbined and spilt) of a plant before the study, part of which is still under way."""

    hydro_id: Id
    """The plant."""
    value_m3s: Annotated[float, Field(ge=0, le=1e12)]
    """Mean release over the window, m3/s."""


class CommitmentEntry(Window):
    """Generation of an anticipated thermal plant that was decided before the study."""

    thermal_id: Id
    """The plant."""
    value_mw: NonNegative
    """Mean over the delivery stage, MW."""


class InitialConditionsFile(RootModel):
    """``initial_conditions.json``: where the study starts."""

    storage: list[StorageEntry]
    """Storage of reservoirs in operation; a plant that is not listed starts at its minimum."""
    filling_storage: list[StorageEntry]
    """Storage of reservoirs that are still being filled for the first time."""
    recent_observations: list[ObservationEntry] | None = None
    """Inflows before the study, which autoregressive models start from."""
    past_defluences: list[DefluenceEntry] | None = None
    """Releases before the study of plants whose water takes time to travel."""
    past_anticipated_commitments: list[CommitmentEntry] | None = None
    """Commitments made before the study."""


class PostStudyStageEntry(FormatModel):
    """A period after the study, in which commitments made inside it are delivered."""

    start_date: IsoDate
    """First day."""
    duration_hours: Hours
    """Duration, h."""


class PostStudyThermalBounds(FormatModel):
    """Limits and price of an anticipated thermal plant in a post-study stage."""

    thermal_id: Id
    """The plant."""
    post_study_stage_index: Count
    """Position in ``stages``, from 0."""
    cost_per_mwh: NonNegative
    """Cost of generation, $/MWh."""
    min_mw: NonNegative
    """Least generation, MW."""
    max_mw: NonNegative
    """Most generation, MW."""


class PostStudyFile(RootModel):
    """``post_study_stages.json``: periods after the study in which commitments are delivered."""

    stages: list[PostStudyStageEntry]
    """Periods after the study, in order and without gaps."""
    thermal_bounds: list[PostStudyThermalBounds] | None = None
    """Limits and prices of commitments for these periods."""
