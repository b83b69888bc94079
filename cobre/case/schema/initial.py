"""``initial_conditions.json``: where the study starts."""

from __future__ import annotations

from typing import Annotated

from cobre.case.schema.base import FormatModel, Id, JsonObject, NonNegative, RootModel, unsupported


class StorageEntry(FormatModel):
    """Storage of a hydro plant at the start."""

    hydro_id: Id
    value_hm3: NonNegative


class InitialConditionsFile(RootModel):
    """The whole file."""

    storage: list[StorageEntry]
    filling_storage: list[StorageEntry]
    recent_observations: Annotated[
        list[JsonObject] | None, unsupported("observed inflows before the study", [])
    ] = None
    past_defluences: Annotated[list[JsonObject] | None, unsupported("water travel time", [])] = None
    past_anticipated_commitments: Annotated[
        list[JsonObject] | None, unsupported("anticipated thermal plants", [])
    ] = None
