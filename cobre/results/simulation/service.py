"""When entities of every type are in service, as the files of the case state it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cobre.case.catalogue import ENTITY_TYPES, by_id
from cobre.case.model import Case
from cobre.case.service import in_service


@dataclass(frozen=True, eq=False)
class Service:
    """Whether entities are in service, by the name of their type: bool (stage, entity)."""

    by_type: Mapping[str, NDArray[np.bool_]]

    def at(self, kind: str, position: int) -> NDArray[np.bool_]:
        """Return whether each entity of a type is in service at a stage."""
        served: NDArray[np.bool_] = self.by_type[kind][position]
        return served


def service_of(case: Case) -> Service:
    """Return the service of all entities; in a study made without files all are always in service."""
    stage_ids = np.array([stage.id for stage in case.stages], np.int64)
    found = {}
    for kind in ENTITY_TYPES:
        entities = case.extensions.get(kind.attribute) if kind.extension else getattr(case, kind.attribute)
        served = np.ones((len(stage_ids), len(entities or ())), np.bool_)
        documents = case.documents
        if kind.has_service and documents is not None and kind.path in documents and served.shape[1]:
            read = kind.file.model_validate_json(_text(documents[kind.path]))
            served = in_service(by_id(getattr(read, kind.key)), stage_ids)
        found[kind.name] = served
    return Service(found)


def _text(document: object) -> bytes:
    from cobre.case.format.documents import encode_json

    return encode_json(document)
