"""Openings given as noise: ``scenarios/noise_openings.parquet``."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cobre.case.format import layout
from cobre.case.format.documents import CaseDocuments
from cobre.case.format.sources import Sources
from cobre.case.format.tables import read_table
from cobre.case.problems import Reporter, short_ids
from cobre.case.scenarios.rows import Rows

FloatArray = NDArray[np.float64]


def load_openings(
    files: CaseDocuments, sources: Sources, dimension: int | None, reporter: Reporter
) -> tuple[FloatArray, ...] | None:
    """Read and check the file of openings, and whether it is asked for.

    Parameters
    ----------
    dimension
        Number of random entities (hydros, buses with noise, sources with statistics); ``None`` = not known.

    Returns
    -------
    tuple or None
        For each stage the noise by (opening, entity); a stage without generated openings has one of zeros.
        ``None`` where openings are generated, or when anything is wrong.
    """
    config = sources.config.root
    source = config.training.scenario_source if config is not None else None
    wanted = source is not None and source.openings is not None and source.openings.source == "file"
    path = layout.NOISE_OPENINGS
    found = None
    if path in sources.present:
        found = _read(files, sources, dimension, reporter)
        if config is not None and not wanted:
            reporter.warning(
                "SemanticAmbiguity",
                f"{path}: the file is not used, since openings.source in training is not 'file'.",
                file=path,
                suggestion=f'Set openings.source to "file" in {layout.CONFIG}, or remove the file.',
            )
    elif wanted:
        reporter.error(
            "FileNotFound",
            f"{layout.CONFIG}: training.scenario_source.openings.source is 'file', but there is no {path}.",
            file=layout.CONFIG,
            field="training.scenario_source.openings.source",
            value="file",
            suggestion="Add the file, or use generated openings.",
        )
    return found if wanted else None


def _read(
    files: CaseDocuments, sources: Sources, dimension: int | None, reporter: Reporter
) -> tuple[FloatArray, ...] | None:
    columns = {"stage_id": "id", "opening_index": "id", "entity_index": "id", "value": "value"}
    table = read_table(files, layout.NOISE_OPENINGS, columns, reporter)  # type: ignore[arg-type]
    if table is None:
        return None
    rows = Rows(table, layout.NOISE_OPENINGS, "stage", "stage_id", {}, reporter)
    rows.finite("value")
    good = rows.ignored_stages(sources.stages.ids)
    rows.unique("stage_id", "opening_index", "entity_index")
    if not rows.clean or dimension is None or sources.stages.ids is None:
        return None
    found = []
    openings = {stage.id: stage.num_openings for stage in sources.stages.items}
    for stage, count in sorted(openings.items()):
        if count is None:
            found.append(np.zeros((1, dimension)))
            continue
        at = np.flatnonzero(good & (table["stage_id"] == stage))
        opening, entity = table["opening_index"][at], table["entity_index"][at]
        inside = (opening >= 0) & (opening < count) & (entity >= 0) & (entity < dimension)
        if not inside.all() or at.size != count * dimension:
            bad = at[~inside][:20].tolist()
            detail = f"; outside the grid: row {short_ids(bad)}" if bad else ""
            rows.error(
                "DimensionMismatch",
                f"stage {stage} has {at.size} values, but {count} openings of {dimension} entities need "
                f"{count * dimension}{detail}.",
                "Give one value for every opening and entity: hydros by id, buses with noise, sources with "
                "statistics.",
                entity=f"stage {stage}",
                field="opening_index",
                value=int(at.size),
            )
            continue
        values = np.empty((count, dimension))
        values[opening, entity] = table["value"][at]
        values.setflags(write=False)
        found.append(values)
    return tuple(found) if rows.clean else None
