"""Autoregressive inflow models: coefficients by stage and lag, and the annual component.

Coefficients are standardised: with z the inflow less its mean, over its standard deviation,
``z_t = sum_l phi_{t,l} z_{t-l} + r_t eta``; :mod:`cobre.case.scenarios.noise_share` has the share r of the
noise.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cobre.case.checks.stages import ids_before_study
from cobre.case.format import layout
from cobre.case.format.documents import CaseDocuments
from cobre.case.format.sources import Sources
from cobre.case.format.tables import Columns, read_table
from cobre.case.model import AnnualComponent
from cobre.case.problems import Reporter, short_ids
from cobre.case.scenarios.rows import Rows

FloatArray = NDArray[np.float64]

_MAX_LAG = 1000
"""Far more than any model has; a larger lag is a mistake that would only cost memory."""


def load_coefficients(files: CaseDocuments, sources: Sources, reporter: Reporter) -> FloatArray | None:
    """Read and check the autoregressive coefficients.

    Returns
    -------
    array or None
        By (stage, hydro, lag - 1); ``None`` when anything is wrong with the file or it is not used.
    """
    path = layout.INFLOW_AR
    columns = {"hydro_id": "id", "stage_id": "id", "lag": "id", "coefficient": "value"}
    table = read_table(files, path, columns, reporter)  # type: ignore[arg-type]
    if table is None:
        return None
    rows = Rows(table, path, "hydro", "hydro_id", sources.hydros.names, reporter)
    rows.finite("coefficient")
    rows.cells((table["lag"] < 1) | (table["lag"] > _MAX_LAG), "lag", f"from 1 to {_MAX_LAG}")
    rows.known("hydro_id", sources.hydros.ids, "hydro")
    stage_ids = sources.stages.ids
    rows.ignored_stages(None if stage_ids is None else {*stage_ids, *ids_before_study(sources)})
    rows.unique("hydro_id", "stage_id", "lag")
    in_use = bool((table["coefficient"] != 0.0).any())
    stages = sources.stages.root
    if stages is not None and stages.season_definitions is None and in_use:
        rows.error(
            "BusinessRuleViolation",
            f"autoregressive inflow models need season_definitions in {layout.STAGES}.",
            "Define the seasons that the lags count.",
            field="coefficient",
        )
    phi = None
    if rows.clean and stage_ids is not None and sources.hydros.ids is not None:
        phi = coefficient_array(table, sources.hydros.ids, stage_ids)
        _warn_lags_off(rows, sources, reporter)
    without = {layout.INFLOW_STATS, layout.INFLOW_HISTORY}.isdisjoint(sources.present)
    if rows.clean and without:
        reporter.warning(
            "SemanticAmbiguity",
            f"{path}: the file is ignored, since there are neither statistics nor a history of inflow.",
            file=path,
            suggestion=f"Add {layout.INFLOW_STATS}.",
        )
        return None
    return phi if rows.clean else None


def coefficient_array(table: Columns, hydro_ids: Sequence[int], stage_ids: Sequence[int]) -> FloatArray:
    """Return coefficients by (stage, hydro, lag - 1), axes by ascending id, without rows of other stages.

    All lags of the table count, so that arrays for other stages have the same shape.
    """
    hydros, stages = np.unique(np.array(hydro_ids, np.int64)), np.unique(np.array(stage_ids, np.int64))
    order = int(table["lag"].max()) if table["lag"].size else 0
    phi = np.zeros((stages.size, hydros.size, order))
    inside = np.isin(table["stage_id"], stages) & np.isin(table["hydro_id"], hydros)
    at = np.searchsorted(stages, table["stage_id"][inside])
    phi[at, np.searchsorted(hydros, table["hydro_id"][inside]), table["lag"][inside] - 1] = table[
        "coefficient"
    ][inside]
    phi.setflags(write=False)
    return phi


def _warn_lags_off(rows: Rows, sources: Sources, reporter: Reporter) -> None:
    used = set(rows.table["stage_id"][rows.table["coefficient"] != 0.0].tolist())
    off = [
        stage.id
        for stage in sources.stages.items
        if stage.id in used and not (stage.state_variables and stage.state_variables.inflow_lags)
    ]
    if off:
        reporter.warning(
            "SemanticAmbiguity",
            f"{layout.STAGES}: state_variables.inflow_lags of stage {short_ids(off)} is not true, but the "
            "inflow there depends on earlier inflows, which are carried along in any case.",
            file=layout.STAGES,
            entity=f"stage {short_ids(off)}",
            field="state_variables.inflow_lags",
            value=False,
            rule="5b.34",
            suggestion="Set inflow_lags to true.",
        )


def load_annual(files: CaseDocuments, sources: Sources, reporter: Reporter) -> AnnualComponent | None:
    """Read and check the annual component; ``None`` when anything is wrong with it or it is not used."""
    path = layout.INFLOW_ANNUAL
    values = ("annual_coefficient", "annual_mean_m3s", "annual_std_m3s")
    columns = {"hydro_id": "id", "stage_id": "id", **dict.fromkeys(values, "value")}
    table = read_table(files, path, columns, reporter)  # type: ignore[arg-type]
    if table is None:
        return None
    rows = Rows(table, path, "hydro", "hydro_id", sources.hydros.names, reporter)
    rows.finite(*values)
    rows.cells(table["annual_std_m3s"] <= 0, "annual_std_m3s", "> 0")
    rows.known("hydro_id", sources.hydros.ids, "hydro")
    stage_ids = sources.stages.ids
    rows.ignored_stages(None if stage_ids is None else {*stage_ids, *ids_before_study(sources)})
    rows.unique("hydro_id", "stage_id")
    in_use = bool((table["annual_coefficient"] != 0.0).any())
    stages = sources.stages.root
    seasons = stages.season_definitions if stages is not None else None
    if stages is not None and (seasons is None or seasons.cycle_type != "monthly") and in_use:
        rows.error(
            "BusinessRuleViolation",
            f"annual components need a monthly cycle of seasons in {layout.STAGES}.",
            "Define twelve monthly seasons, or remove the file.",
            field="annual_coefficient",
            rule="5a.29",
        )
    if not rows.clean or stage_ids is None or sources.hydros.ids is None:
        return None
    if layout.INFLOW_HISTORY in sources.present and layout.INFLOW_AR not in sources.present:
        reporter.warning(
            "SemanticAmbiguity",
            f"{path}: the file is ignored, since the model is estimated from {layout.INFLOW_HISTORY}.",
            file=path,
            suggestion=f"Add {layout.INFLOW_AR}, or set estimation.order_selection to pacf_annual.",
        )
        return None
    return annual_arrays(table, sources.hydros.ids, stage_ids)


def annual_arrays(table: Columns, hydro_ids: Sequence[int], stage_ids: Sequence[int]) -> AnnualComponent:
    """Return the annual component by (stage, hydro), axes by ascending id; other rows are left out."""
    hydros, stages = np.unique(np.array(hydro_ids, np.int64)), np.unique(np.array(stage_ids, np.int64))
    inside = np.isin(table["stage_id"], stages) & np.isin(table["hydro_id"], hydros)
    at = (
        np.searchsorted(stages, table["stage_id"][inside]),
        np.searchsorted(hydros, table["hydro_id"][inside]),
    )
    arrays = []
    for column, absent in (("annual_coefficient", 0.0), ("annual_mean_m3s", 0.0), ("annual_std_m3s", 1.0)):
        values = np.full((stages.size, hydros.size), absent)
        values[at] = table[column][inside]
        values.setflags(write=False)
        arrays.append(values)
    return AnnualComponent(*arrays)
