"""What a study was resolved to: models, limits, rows of constraints, and where they come from.

::

    <output>/training/             hydro_models.json  model_provenance.json  scaling_report.json
             training/dictionaries/  variables.csv  entities.csv  codes.json  bounds.parquet
             hydro_models/         fpha_hyperplanes.parquet  evaporation_models.parquet
             generic_constraints/  resolved_echo.parquet

A file without rows is not written, and that of an earlier run is removed.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from cobre.case.model import Case, GenericRow, GenericTerm, ProductionModel
from cobre.results.bounds import BOUNDS, bounds_table
from cobre.results.columns import Column, TableSpec, identifier, number, table, text
from cobre.results.dictionaries import write_dictionaries
from cobre.results.files import output_errors, write_json, write_parquet
from cobre.results.training_catalogue import training_variable_rows

if TYPE_CHECKING:
    from cobre.lp import ScalingReport

PLANES: Final[TableSpec] = table(
    "fpha_hyperplanes",
    "a fitted plane of a plant at a stage; the file can be an input again",
    identifier("hydro_id", "Hydro plant"),
    identifier("stage_id", "Declared id of the stage", nullable=True),
    identifier("plane_id", "Number of the plane, from 0"),
    number("gamma_0", "MW", "Constant of the plane"),
    number("gamma_v", "MW/hm3", "Slope in the mean storage"),
    number("gamma_q", "MW/(m3/s)", "Slope in the turbined flow"),
    number("gamma_s", "MW/(m3/s)", "Slope in the spilt flow"),
    number("kappa", "", "Factor on the whole plane: 1", nullable=True),
    number("valid_v_min_hm3", "hm3", "Always null: planes hold everywhere", nullable=True),
    number("valid_v_max_hm3", "hm3", "Always null: planes hold everywhere", nullable=True),
    number("valid_q_max_m3s", "m3/s", "Always null: planes hold everywhere", nullable=True),
)

EVAPORATION: Final[TableSpec] = table(
    "evaporation_models",
    "the evaporation of a plant at a stage: intercept + slope times mean storage",
    identifier("hydro_id", "Hydro plant"),
    identifier("stage_id", "Declared id of the stage", nullable=True),
    number("intercept_m3s", "m3/s", "Evaporation at storage 0"),
    number("volume_slope_m3s_per_hm3", "m3/s/hm3", "Slope in the mean storage"),
    number("reference_volume_hm3", "hm3", "Storage at which the model is exact"),
    text("source", "Of the reference volume: user_supplied or default_midpoint"),
)

ECHO: Final[TableSpec] = table(
    "resolved_echo",
    "a term of a row of a generic constraint",
    identifier("stage_id", "Declared id of the stage"),
    identifier("block_id", "Block of the row; null for a row of the whole stage", nullable=True),
    identifier("constraint_id", "Generic constraint"),
    text("constraint_name", "Its name"),
    identifier("term_index", "Number of the term, from 0; null for a row without terms", nullable=True),
    Column("variable_kind", "string", "", "Kind of the variable", nullable=True),
    Column("variable", "string", "", "The variable with entity, block and bus", nullable=True),
    number("coefficient", "varies", "Coefficient, parameters inserted", nullable=True),
    number("bound_lower", "varies", "Lower limit of the row; null without one", nullable=True),
    number("bound_upper", "varies", "Upper limit of the row; null without one", nullable=True),
    text("derived_shape", "cap, floor, band or equality"),
    Column("slack_enabled", "bool", "", "Whether the row may be violated at a price"),
    number(
        "slack_penalty", "$/h", "Price of a unit of violation for an hour; null without one", nullable=True
    ),
)


def write_models(output_dir: Path, case: Case, scaling: ScalingReport | None = None) -> None:
    """Write all of them.

    Parameters
    ----------
    scaling
        What scaling did to the stage LPs; without it there is no report on it.

    Raises
    ------
    OutputError
        When a file cannot be written.
    """
    training = output_dir / "training"
    dictionaries = training / "dictionaries"
    with output_errors(dictionaries):
        dictionaries.mkdir(parents=True, exist_ok=True)
    write_dictionaries(dictionaries, case, (BOUNDS, PLANES, EVAPORATION, ECHO), training_variable_rows())
    write_parquet(dictionaries / "bounds.parquet", bounds_table(case))
    write_json(training / "hydro_models.json", hydro_models_document(case))
    write_json(training / "model_provenance.json", provenance_document(case))
    if scaling is not None:
        write_json(training / "scaling_report.json", scaling.as_dict())
    for directory, name, made in (
        ("hydro_models", "fpha_hyperplanes", planes_table(case)),
        ("hydro_models", "evaporation_models", evaporation_table(case)),
        ("generic_constraints", "resolved_echo", echo_table(case)),
    ):
        path = output_dir / directory / f"{name}.parquet"
        with output_errors(path):
            if not len(made):
                path.unlink(missing_ok=True)
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
        write_parquet(path, made)


def provenance_document(case: Case) -> dict[str, Any]:
    """Return where inflow models and production models come from."""
    from cobre.stochastic.par import inflow_model
    from cobre.stochastic.report.document import provenance_of
    from cobre.stochastic.tree import study_correlation

    models = hydro_models_document(case)
    sources = [part["source"] for part in models["fpha_details"]]
    return {
        "inflow": dataclasses.asdict(provenance_of(case, inflow_model(case), study_correlation(case))),
        "hydro_production": {
            "n_fpha_computed_from_geometry": sources.count("computed_from_geometry"),
            "n_fpha_precomputed_hyperplanes": sources.count("precomputed_hyperplanes"),
            "n_linearized_head": sources.count("linearized_head"),
            "n_evaporation_ref_user_supplied": models["n_user_supplied_ref"],
            "n_evaporation_ref_default_midpoint": models["n_default_midpoint_ref"],
        },
    }


def hydro_models_document(case: Case) -> dict[str, Any]:
    """Return how many plants have which models, by their first stage."""
    models = case.production[0] if case.production else ()
    with_planes = [
        (plant, model) for plant, model in zip(case.hydros, models, strict=True) if len(model.planes)
    ]
    evaporating = {
        plant.id
        for stage in case.evaporation
        for plant, model in zip(case.hydros, stage, strict=True)
        if model is not None
    }
    given = _given_references(case) & evaporating
    idle = [
        plant.id
        for place, plant in enumerate(case.hydros)
        if all((data.turbined_max_m3s[place] <= 0.0).all() for data in case.stage_data)
    ]
    return {
        "n_constant": len(case.hydros) - len(with_planes),
        "n_fpha": len(with_planes),
        "total_planes": sum(len(model.planes) for _, model in with_planes),
        "fpha_details": [
            {
                "hydro_id": plant.id,
                "name": plant.name,
                "source": _source(model),
                "n_planes": len(model.planes),
                **({} if model.quality is None else {"fit": dataclasses.asdict(model.quality)}),
            }
            for plant, model in with_planes
        ],
        "no_turbine_capacity": idle,
        "n_evaporation": len(evaporating),
        "n_no_evaporation": len(case.hydros) - len(evaporating),
        "n_user_supplied_ref": len(given),
        "n_default_midpoint_ref": len(evaporating) - len(given),
    }


def _source(model: ProductionModel) -> str:
    if model.kind == "linearized_head":
        return "linearized_head"
    return "precomputed_hyperplanes" if model.quality is None else "computed_from_geometry"


def _given_references(case: Case) -> set[int]:
    """Return the plants whose file gives the reference volumes of evaporation."""
    documents = case.documents
    if documents is None or "system/hydros.json" not in documents:
        return set()
    entries = documents["system/hydros.json"]["hydros"]
    return {entry["id"] for entry in entries if (entry.get("evaporation") or {}).get("reference_volumes_hm3")}


def planes_table(case: Case) -> pa.Table:
    """Return the planes that were fitted here, in the form of the input file."""
    rows = [
        {
            "hydro_id": plant.id,
            "stage_id": stage.id,
            "plane_id": place,
            **dict(zip(("gamma_0", "gamma_v", "gamma_q", "gamma_s"), plane.tolist(), strict=True)),
            "kappa": 1.0,
        }
        for place_of_plant, plant in enumerate(case.hydros)
        for stage, models in zip(case.stages, case.production, strict=True)
        if models[place_of_plant].quality is not None
        for place, plane in enumerate(np.asarray(models[place_of_plant].planes))
    ]
    return pa.Table.from_pylist(rows, schema=PLANES.schema)


def evaporation_table(case: Case) -> pa.Table:
    """Return the evaporation models of all plants and stages."""
    given = _given_references(case)
    rows = [
        {
            "hydro_id": plant.id,
            "stage_id": stage.id,
            "intercept_m3s": model.intercept_m3s,
            "volume_slope_m3s_per_hm3": model.slope_m3s_per_hm3,
            "reference_volume_hm3": model.reference_volume_hm3,
            "source": "user_supplied" if plant.id in given else "default_midpoint",
        }
        for place, plant in enumerate(case.hydros)
        for stage, models in zip(case.stages, case.evaporation, strict=True)
        if (model := models[place]) is not None
    ]
    return pa.Table.from_pylist(rows, schema=EVAPORATION.schema)


def echo_table(case: Case) -> pa.Table:
    """Return the rows of all generic constraints, term by term."""
    return pa.Table.from_pylist(list(_echo(case)), schema=ECHO.schema)


def _echo(case: Case) -> Iterator[dict[str, Any]]:
    for stage, rows in zip(case.stages, case.generic, strict=True):
        blocks = [block.id for block in stage.blocks]
        for row in rows:
            whole = {
                "stage_id": stage.id,
                "block_id": None if row.block is None else blocks[row.block],
                "constraint_id": row.constraint_id,
                "constraint_name": row.name,
                "bound_lower": row.lower if math.isfinite(row.lower) else None,
                "bound_upper": row.upper if math.isfinite(row.upper) else None,
                "derived_shape": _shape(row),
                "slack_enabled": row.penalty is not None,
                "slack_penalty": row.penalty,
            }
            if not row.terms:
                yield whole
            for place, term in enumerate(row.terms):
                yield {
                    **whole,
                    "term_index": place,
                    "variable_kind": term.kind,
                    "variable": _variable(term, blocks),
                    "coefficient": term.coefficient,
                }


def _shape(row: GenericRow) -> str:
    if row.lower == row.upper:
        return "equality"
    if math.isfinite(row.lower) and math.isfinite(row.upper):
        return "band"
    return "floor" if math.isfinite(row.lower) else "cap"


def _variable(term: GenericTerm, blocks: list[int]) -> str:
    parts = [f"id={term.entity_id}"]
    if term.bus_id is not None:
        parts.append(f"bus={term.bus_id}")
    parts.append("block=all" if term.block is None else f"block={blocks[term.block]}")
    return f"{term.kind}({', '.join(parts)})"
