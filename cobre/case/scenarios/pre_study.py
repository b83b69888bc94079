"""Inflow statistics and coefficients of stages before the study: lags are standardised by them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cobre.case import layout
from cobre.case.checks.stages import ids_before_study
from cobre.case.documents import CaseDocuments
from cobre.case.model import PreStudyStats
from cobre.case.problems import Reporter
from cobre.case.scenarios.inflow_models import annual_arrays, coefficient_array
from cobre.case.schema.stages import PreStudyStageEntry, StageEntry
from cobre.case.seasons import stage_season
from cobre.case.sources import Sources
from cobre.case.tables import Columns, read_table

NO_SEASON = -1
_ANNUAL = ("annual_coefficient", "annual_mean_m3s", "annual_std_m3s")
_COLUMNS: dict[str, dict[str, str]] = {
    layout.INFLOW_STATS: {"mean_m3s": "value", "std_m3s": "value"},
    layout.INFLOW_AR: {"lag": "id", "coefficient": "value"},
    layout.INFLOW_ANNUAL: dict.fromkeys(_ANNUAL, "value"),
}


def pre_study_stats(files: CaseDocuments, sources: Sources) -> PreStudyStats | None:
    """Return what files state of stages before the study. Only for files without errors.

    Those are the pre-study stages, and others with a negative id that rows of inflow models name.
    """
    root, ids = sources.stages.root, sources.hydros.ids
    if root is None or ids is None:
        return None
    tables: dict[str, Columns] = {}
    for path, values in _COLUMNS.items():
        columns = {"hydro_id": "id", "stage_id": "id", **values}
        # What is odd about the file has been reported with its other rows.
        table = read_table(files, path, columns, Reporter()) if path in sources.present else None  # type: ignore[arg-type]
        if table is not None:
            tables[path] = table
    listed: list[StageEntry | PreStudyStageEntry] = [*root.stages, *(root.pre_study_stages or ())]
    declared = {stage.id: stage for stage in listed if stage.id < 0}
    named = {number for table in tables.values() for number in np.unique(table["stage_id"]).tolist()}
    stage_ids = sorted({*declared, *(named & ids_before_study(sources))})
    if not stage_ids:
        return None
    numbers, hydros = np.array(stage_ids, np.int64), np.unique(np.array(ids, np.int64))
    shape = (numbers.size, hydros.size)
    mean, std, present = np.zeros(shape), np.zeros(shape), np.zeros(shape, np.bool_)
    if layout.INFLOW_STATS in tables:
        table = tables[layout.INFLOW_STATS]
        rows = np.flatnonzero(np.isin(table["stage_id"], numbers) & np.isin(table["hydro_id"], hydros))
        at = (
            np.searchsorted(numbers, table["stage_id"][rows]),
            np.searchsorted(hydros, table["hydro_id"][rows]),
        )
        mean[at], std[at], present[at] = table["mean_m3s"][rows], table["std_m3s"][rows], True
    phi = annual = None
    if layout.INFLOW_AR in tables:
        phi = coefficient_array(tables[layout.INFLOW_AR], ids, stage_ids)
    if layout.INFLOW_ANNUAL in tables:
        annual = annual_arrays(tables[layout.INFLOW_ANNUAL], ids, stage_ids)
    stages = [declared.get(number) for number in stage_ids]
    seasons = [None if stage is None else stage_season(root, stage) for stage in stages]
    stats = PreStudyStats(
        numbers,
        _days([None if stage is None else stage.start_date for stage in stages]),
        _days([None if stage is None else stage.end_date for stage in stages]),
        np.array([NO_SEASON if season is None else season for season in seasons], np.int64),
        mean,
        std,
        present,
        phi,
        annual,
    )
    for array in (stats.stage_id, stats.start, stats.end, stats.season_id, mean, std, present):
        array.setflags(write=False)
    return stats


def _days(dates: list[object]) -> NDArray[np.datetime64]:
    return np.array(dates, "datetime64[D]")
