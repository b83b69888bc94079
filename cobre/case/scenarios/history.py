"""Observed inflows, from which inflow models are estimated."""

from __future__ import annotations

import datetime

import numpy as np
from numpy.typing import NDArray

from cobre.case import layout
from cobre.case.documents import CaseDocuments
from cobre.case.model import InflowHistory
from cobre.case.problems import Reporter, plural, short_ids
from cobre.case.scenarios.rows import Rows
from cobre.case.seasons import season_of
from cobre.case.sources import Sources
from cobre.case.tables import NO_ID, Columns, read_table

DEFAULT_MIN_OBSERVATIONS = 30


def load_history(files: CaseDocuments, sources: Sources, reporter: Reporter) -> InflowHistory | None:
    """Read and check the history of inflows; ``None`` when anything is wrong with it."""
    path = layout.INFLOW_HISTORY
    opened = files.open_table(path, Reporter())
    names = opened.schema.names if opened is not None else ()
    if "date" in names and "start_date" not in names:
        reporter.error(
            "SchemaViolation",
            f"{path}: the column 'date' belongs to an older layout, in which an observation has one date.",
            file=path,
            field="date",
            suggestion="Give start_date and end_date, the first day and the first day after it.",
        )
        return None
    columns = {"hydro_id": "id", "start_date": "date", "end_date": "date", "value_m3s": "value"}
    table = read_table(files, path, columns, reporter)  # type: ignore[arg-type]
    if table is None:
        return None
    rows = Rows(table, path, "hydro", "hydro_id", sources.hydros.names, reporter)
    rows.finite("value_m3s")
    rows.cells(table["end_date"] <= table["start_date"], "end_date", "later than start_date")
    known = rows.known("hydro_id", sources.hydros.ids, "hydro")
    _check_overlap(rows)
    if sources.hydros.ids is not None:
        missing = sorted(sources.hydros.id_set - set(table["hydro_id"][known].tolist()))
        who = f"{plural('hydro') if len(missing) > 1 else 'hydro'} {short_ids(missing)}"
        if not table["hydro_id"].size and layout.INFLOW_AR not in sources.present:
            rows.error(
                "BusinessRuleViolation",
                "no row, so that no inflow model can be estimated.",
                "Give observations, or remove the file.",
                field="hydro_id",
                value=0,
                rule="5b.19",
            )
        elif missing and layout.INFLOW_STATS not in sources.present:
            rows.error(
                "BusinessRuleViolation",
                f"{who} without any row.",
                f"Give a history of every hydro plant, or statistics in {layout.INFLOW_STATS}.",
                field="hydro_id",
                value=short_ids(missing),
                rule="5b.19",
            )
        elif missing and layout.INFLOW_AR not in sources.present:
            reporter.warning(
                "ModelQuality",
                f"{path}: {who} without any row: its inflow has the given statistics and does not depend on "
                "earlier inflow or on that of other plants.",
                file=path,
                entity=who,
                field="hydro_id",
                value=short_ids(missing),
                rule="5b.19",
                suggestion="Give a history of every hydro plant.",
            )
    stages = sources.stages.root
    if stages is not None and stages.season_definitions is None:
        rows.error(
            "BusinessRuleViolation",
            f"estimating inflow models needs season_definitions in {layout.STAGES}.",
            "Define the seasons of the models.",
            field="start_date",
            rule="5b.21",
        )
    if not rows.clean:
        return None
    _warn_short_seasons(rows, sources, reporter)
    ids = sources.hydros.ids
    return None if ids is None else as_history(table, np.unique(np.array(ids, np.int64)))


def as_history(table: Columns, hydros: NDArray[np.int64]) -> InflowHistory:
    """Return observations ordered by plant and date; ``hydros`` are all ids, ascending."""
    hydro = np.searchsorted(hydros, table["hydro_id"]).astype(np.int64)
    order = np.lexsort((table["start_date"], hydro))
    history = InflowHistory(
        hydro[order],
        table["start_date"][order].astype("datetime64[D]"),
        table["end_date"][order].astype("datetime64[D]"),
        np.ascontiguousarray(table["value_m3s"][order], np.float64),
    )
    for column in (history.hydro, history.start, history.end, history.value_m3s):
        column.setflags(write=False)
    return history


def recent_observations(sources: Sources) -> InflowHistory | None:
    """Return the observations of ``initial_conditions.json``. Only for sources without errors."""
    root, ids = sources.initial.root, sources.hydros.ids
    entries = root.recent_observations if root is not None else None
    if not entries or ids is None:
        return None
    table: Columns = {
        "hydro_id": np.array([entry.hydro_id for entry in entries], np.int64),
        "start_date": np.array([entry.start_date for entry in entries], "datetime64[D]"),
        "end_date": np.array([entry.end_date for entry in entries], "datetime64[D]"),
        "value_m3s": np.array([entry.value_m3s for entry in entries], np.float64),
    }
    return as_history(table, np.unique(np.array(ids, np.int64)))


def _check_overlap(rows: Rows) -> None:
    table = rows.table
    order = np.lexsort((table["start_date"], table["hydro_id"]))
    same = table["hydro_id"][order][1:] == table["hydro_id"][order][:-1]
    overlaps: NDArray[np.bool_] = np.zeros(order.size, np.bool_)
    early = table["start_date"][order][1:] < table["end_date"][order][:-1]
    overlaps[order[1:]] = same & early
    rows.cells(overlaps, "start_date", "no earlier than the end of the observation before it")


def _warn_short_seasons(rows: Rows, sources: Sources, reporter: Reporter) -> None:
    stages, config = sources.stages.root, sources.config.root
    if stages is None or stages.season_definitions is None or config is None:
        return
    estimation = config.estimation
    wanted = estimation.min_observations_per_season if estimation is not None else None
    wanted = DEFAULT_MIN_OBSERVATIONS if wanted is None else wanted
    definitions = stages.season_definitions
    days: dict[datetime.date, int | None] = {}
    for day in np.unique(rows.table["start_date"]).tolist():
        season = season_of(definitions, day, 30)
        days[day] = None if season is None else season.id
    season_of_row = np.array(
        [NO_ID if days[day] is None else days[day] for day in rows.table["start_date"].tolist()], np.int64
    )
    hydros = max(len(sources.hydros.id_set), 1)
    counts = {item.id: int((season_of_row == item.id).sum()) / hydros for item in definitions.seasons}
    empty = sorted(number for number, count in counts.items() if count == 0)
    short = sorted(number for number, count in counts.items() if 0 < count < wanted)
    for seasons, what, rule in (
        (empty, "no observation", "5b.28"),
        (short, f"fewer than {wanted} observations per hydro plant", "5b.20"),
    ):
        if seasons:
            reporter.warning(
                "ModelQuality",
                f"{rows.path}: season {short_ids(seasons)} has {what}.",
                file=rows.path,
                entity=f"season {short_ids(seasons)}",
                field="start_date",
                value=short_ids(seasons),
                rule=rule,
                suggestion="Give a longer history, or lower estimation.min_observations_per_season.",
            )
