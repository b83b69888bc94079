"""Inflow statistics of stages before the study, from which lags are standardised."""

from __future__ import annotations

import numpy as np

from cobre.case import layout
from cobre.case.documents import CaseDocuments
from cobre.case.model import PreStudyStats
from cobre.case.problems import Reporter
from cobre.case.schema.stages import PreStudyStageEntry, StageEntry
from cobre.case.seasons import stage_season
from cobre.case.sources import Sources
from cobre.case.tables import read_table

NO_SEASON = -1


def pre_study_stats(files: CaseDocuments, sources: Sources) -> PreStudyStats | None:
    """Return the statistics of pre-study stages. Only for a file of statistics without errors."""
    root, ids = sources.stages.root, sources.hydros.ids
    if root is None or ids is None or layout.INFLOW_STATS not in sources.present:
        return None
    listed: list[StageEntry | PreStudyStageEntry] = [*root.stages, *(root.pre_study_stages or ())]
    stages = sorted((stage for stage in listed if stage.id < 0), key=lambda stage: stage.id)
    columns = {"hydro_id": "id", "stage_id": "id", "mean_m3s": "value", "std_m3s": "value"}
    # What is odd about the file has been reported with its other rows.
    table = read_table(files, layout.INFLOW_STATS, columns, Reporter())  # type: ignore[arg-type]
    if not stages or table is None:
        return None
    stage_ids = np.array([stage.id for stage in stages], np.int64)
    hydros = np.unique(np.array(ids, np.int64))
    rows = np.flatnonzero(np.isin(table["stage_id"], stage_ids) & np.isin(table["hydro_id"], hydros))
    at = (
        np.searchsorted(stage_ids, table["stage_id"][rows]),
        np.searchsorted(hydros, table["hydro_id"][rows]),
    )
    shape = (stage_ids.size, hydros.size)
    mean, std, present = np.zeros(shape), np.zeros(shape), np.zeros(shape, np.bool_)
    mean[at], std[at], present[at] = table["mean_m3s"][rows], table["std_m3s"][rows], True
    seasons = [stage_season(root, stage) for stage in stages]
    stats = PreStudyStats(
        stage_ids,
        np.array([stage.start_date for stage in stages], "datetime64[D]"),
        np.array([stage.end_date for stage in stages], "datetime64[D]"),
        np.array([NO_SEASON if season is None else season for season in seasons], np.int64),
        mean,
        std,
        present,
    )
    for array in (stats.stage_id, stats.start, stats.end, stats.season_id, mean, std, present):
        array.setflags(write=False)
    return stats
