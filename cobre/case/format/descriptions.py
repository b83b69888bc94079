"""One schema document for each file of the format.

A JSON file gets a JSON Schema (draft 2020-12) made from the models that validate it. Beside the standard
keywords, ``x-honoured`` lists the only values that have an effect where others are refused as not supported
yet. A Parquet file gets a JSON document that lists its columns.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from cobre._version import __version__
from cobre.case.catalogue import EXTENSIONS
from cobre.case.format import layout
from cobre.case.format.columns import PARQUET_FILES
from cobre.case.format.schema.config import ConfigFile
from cobre.case.format.schema.generic import GenericConstraintsFile, GenericParametersFile
from cobre.case.format.schema.initial import InitialConditionsFile, PostStudyFile
from cobre.case.format.schema.penalties import PenaltiesFile
from cobre.case.format.schema.production import ProductionModelsFile
from cobre.case.format.schema.scenarios import CorrelationFile, LoadFactorsFile, NonControllableFactorsFile
from cobre.case.format.schema.stages import StagesFile
from cobre.case.format.schema.system import (
    BusesFile,
    ContractsFile,
    HydrosFile,
    LinesFile,
    NonControllablesFile,
    PumpingStationsFile,
    ThermalsFile,
)
from cobre.fields import RootModel

JSON_FILES: dict[str, type[RootModel]] = {
    layout.CONFIG: ConfigFile,
    layout.PENALTIES: PenaltiesFile,
    layout.STAGES: StagesFile,
    layout.INITIAL_CONDITIONS: InitialConditionsFile,
    layout.POST_STUDY: PostStudyFile,
    layout.BUSES: BusesFile,
    layout.LINES: LinesFile,
    layout.THERMALS: ThermalsFile,
    layout.HYDROS: HydrosFile,
    layout.NON_CONTROLLABLES: NonControllablesFile,
    layout.PUMPING_STATIONS: PumpingStationsFile,
    layout.CONTRACTS: ContractsFile,
    **{kind.path: kind.file for kind in EXTENSIONS},
    layout.PRODUCTION_MODELS: ProductionModelsFile,
    layout.CORRELATION: CorrelationFile,
    layout.LOAD_FACTORS: LoadFactorsFile,
    layout.NCS_FACTORS: NonControllableFactorsFile,
    layout.GENERIC_CONSTRAINTS: GenericConstraintsFile,
    layout.GENERIC_PARAMETERS: GenericParametersFile,
}
"""The model of every JSON file, by its path in the case directory."""

_OPEN_ROOTS = frozenset({layout.GENERIC_PARAMETERS})
"""Files whose root may carry keys that are ignored (with a warning)."""

_DRAFT = "https://json-schema.org/draft/2020-12/schema"


def schema_paths() -> dict[str, str]:
    """Return the path of each file's schema document (``config.json``: ``config.schema.json``)."""
    return {path: f"{path.removesuffix('.json')}.schema.json" for path in layout.KNOWN}


def describe(path: str) -> dict[str, Any]:
    """Return the schema document of a file of the format.

    Parameters
    ----------
    path
        As in the case directory, such as ``system/hydros.json``.

    Raises
    ------
    KeyError
        When the format has no such file.
    """
    if path in JSON_FILES:
        return _json_schema(path)
    file = PARQUET_FILES[path]
    return {
        **_header(path, "parquet", file.description),
        "required": path in layout.REQUIRED,
        "key": list(file.key),
        "columns": [asdict(column) for column in file.columns],
    }


def _header(path: str, kind: str, description: str) -> dict[str, Any]:
    return {
        "$schema": f"urn:cobre:{kind}-schema:v1",
        "$id": f"urn:cobre:case:{path}",
        "$comment": f"Exported by cobre {__version__}.",
        "title": path,
        "description": description,
    }


def _json_schema(path: str) -> dict[str, Any]:
    model = JSON_FILES[path]
    schema = model.model_json_schema(by_alias=True)
    if path in _OPEN_ROOTS:
        schema["additionalProperties"] = True
    header = {**_header(path, "json", schema["description"]), "$schema": _DRAFT}
    return {**header, **{key: value for key, value in schema.items() if key not in header}}
