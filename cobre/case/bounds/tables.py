"""All files of bounds and cost overrides, read and held against what the entities declare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cobre.case.bounds import files
from cobre.case.bounds.axes import EntityAxis, StageAxis, entity_axis, group_axis, is_complete, stage_axis
from cobre.case.bounds.files import BoundFile
from cobre.case.bounds.rows import ALL_BLOCKS, BoundRows, RowReporter, no_rows, read_rows
from cobre.case.catalogue import EXTENSIONS, by_id
from cobre.case.format.documents import CaseDocuments
from cobre.case.format.sources import Sources
from cobre.case.problems import Reporter

_TOLERANCE = 1e-9
"""Relative slack when a bound is held against the declared limit."""


@dataclass(frozen=True, eq=False)
class BoundTables:
    """The rows of every file; those of a file that is absent are empty."""

    thermal: BoundRows
    hydro: BoundRows
    unit_group: BoundRows
    line: BoundRows
    pumping: BoundRows
    contract: BoundRows
    ncs: BoundRows
    bus_costs: BoundRows
    line_costs: BoundRows
    hydro_costs: BoundRows
    ncs_costs: BoundRows
    extensions: Mapping[str, BoundRows] = field(default_factory=dict)


def read_bounds(documents: CaseDocuments, sources: Sources, reporter: Reporter) -> BoundTables | None:
    """Read all files of bounds and cost overrides that are present, and report every fault in them.

    Returns
    -------
    BoundTables or None
        ``None`` when any of the files cannot be used.
    """
    before = len(reporter.errors)
    stages = stage_axis(sources)
    thermals, hydros = entity_axis(sources.thermals, "thermal"), entity_axis(sources.hydros, "hydro")
    groups, lines = group_axis(sources), entity_axis(sources.lines, "line")
    buses = entity_axis(sources.buses, "bus")
    ncs = entity_axis(sources.non_controllables, "non-controllable source")
    pumping = entity_axis(sources.pumping_stations, "pumping station")
    contracts = entity_axis(sources.contracts, "contract")

    def read(file: BoundFile, axis: EntityAxis, *checks: Any) -> BoundRows | None:
        return _read(documents, sources, file, axis, stages, checks, reporter)

    tables = {
        "thermal": read(files.THERMAL, thermals, _check_thermals),
        "hydro": read(files.HYDRO, hydros, _check_hydros),
        "unit_group": read(files.UNIT_GROUP, groups, _check_groups),
        "line": read(files.LINE, lines),
        "pumping": read(files.PUMPING, pumping),
        "contract": read(files.CONTRACT, contracts),
        "ncs": read(files.NCS, ncs),
        "bus_costs": read(files.BUS_COSTS, buses),
        "line_costs": read(files.LINE_COSTS, lines),
        "hydro_costs": read(files.HYDRO_COSTS, hydros),
        "ncs_costs": read(files.NCS_COSTS, ncs),
    }
    extensions = {
        kind.attribute: read(
            files.EXTENSION_BOUNDS[kind.attribute], entity_axis(sources.registry(kind), kind.word)
        )
        for kind in EXTENSIONS
        if kind.attribute in files.EXTENSION_BOUNDS
    }
    usable = {name: rows for name, rows in tables.items() if rows is not None}
    extended = {name: rows for name, rows in extensions.items() if rows is not None}
    missing = len(usable) < len(tables) or len(extended) < len(extensions)
    if missing or len(reporter.errors) > before:
        return None
    return BoundTables(**usable, extensions=extended)


def _read(
    documents: CaseDocuments,
    sources: Sources,
    file: BoundFile,
    axis: EntityAxis,
    stages: StageAxis,
    checks: Sequence[Any],
    reporter: Reporter,
) -> BoundRows | None:
    if file.path not in sources.present:
        return no_rows(file)
    rows, report = read_rows(documents, file, axis, stages, reporter)
    if rows is not None and report is not None:
        for check in checks:
            check(rows, sources, report)
    return rows


def _check_thermals(rows: BoundRows, sources: Sources, report: RowReporter) -> None:
    """Rule 5a.38: a plant committed ahead of time has one commitment for the whole stage."""
    if not is_complete(sources.thermals):
        return
    thermals = by_id(sources.thermals.items)
    ahead = np.array([thermal.anticipated_config is not None for thermal in thermals], np.bool_)
    wrong = ahead[rows.entity] & (rows.block != ALL_BLOCKS)
    report.cells(
        rows.row[wrong],
        "block_id",
        "BusinessRuleViolation",
        lambda _: "null for a plant with anticipated_config",
        "Give the limits of the whole stage, in a row without block_id.",
        "5a.38",
    )


def _check_hydros(rows: BoundRows, sources: Sources, report: RowReporter) -> None:
    """Rules 5a.43 and 5a.46, and rates of filling of plants that are never filled."""
    if not is_complete(sources.hydros):
        return
    hydros = by_id(sources.hydros.items)
    for column in ("max_turbined_m3s", "max_generation_mw"):
        declared = np.array([getattr(hydro.generation, column) for hydro in hydros], np.float64)
        _check_tightening(rows, column, declared, "5a.43", report)
    channel = np.array([hydro.diversion is not None for hydro in hydros], np.bool_)
    for column in ("min_diversion_m3s", "max_diversion_m3s"):
        wrong = (rows.values[column] > 0) & ~channel[rows.entity]
        report.cells(
            rows.row[wrong],
            column,
            "BusinessRuleViolation",
            lambda _: "null or 0 for a plant without a diversion channel",
            "Remove the value, or give the plant a diversion in system/hydros.json.",
            "5a.46",
        )
    filled = np.array([hydro.filling is not None for hydro in hydros], np.bool_)
    wrong = (rows.values["filling_min_rate_m3s"] > 0) & ~filled[rows.entity]
    report.cells(
        rows.row[wrong],
        "filling_min_rate_m3s",
        "BusinessRuleViolation",
        lambda _: "null or 0 for a plant without filling",
        "Remove the value, or give the plant a filling in system/hydros.json.",
    )


def _check_groups(rows: BoundRows, sources: Sources, report: RowReporter) -> None:
    """Rule 5a.45: bounds of unit groups may only be tighter than what the group declares."""
    hydros = by_id(sources.hydros.items)
    groups = [group for hydro in hydros for group in by_id(hydro.unit_groups)]
    if len(groups) != (0 if report.axis.ids is None else report.axis.ids.size):
        return  # ids that repeat have been reported
    for column in rows.values:
        declared = np.array([getattr(group, column) for group in groups], np.float64)
        _check_tightening(rows, column, declared, "5a.45", report)


def _check_tightening(
    rows: BoundRows, column: str, declared: NDArray[np.float64], rule: str, report: RowReporter
) -> None:
    is_minimum = column.startswith("min_")
    limit = declared[rows.entity]
    slack = _TOLERANCE * np.abs(limit)
    values = rows.values[column]
    wrong = np.flatnonzero(values < limit - slack if is_minimum else values > limit + slack)
    at = dict(zip(rows.row[wrong].tolist(), limit[wrong].tolist(), strict=True))
    report.cells(
        rows.row[wrong],
        column,
        "BusinessRuleViolation",
        lambda row: f"{'>=' if is_minimum else '<='} the declared {at[row]}",
        "Bounds by stage may only be tighter than those in system/hydros.json.",
        rule,
    )
