"""What is written of a study's uncertainty, in the form of the case's own files.

::

    <output>/stochastic/  inflow_seasonal_stats.parquet  inflow_ar_coefficients.parquet
                          inflow_annual_component.parquet  load_seasonal_stats.parquet
                          correlation.json  noise_openings.parquet  fitting_report.json

Copied into ``scenarios/`` of the case (the last one is for people), the files give the same model again. A
file that would be empty is not written, and that of an earlier run is removed.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from cobre.results.files import output_errors, sync_directory, write_json, write_parquet

if TYPE_CHECKING:
    import pyarrow as pa

    from cobre.stochastic.report.document import StochasticReport

DIRECTORY = "stochastic"
STATISTICS = "inflow_seasonal_stats.parquet"
COEFFICIENTS = "inflow_ar_coefficients.parquet"
ANNUAL = "inflow_annual_component.parquet"
LOAD = "load_seasonal_stats.parquet"
CORRELATION = "correlation.json"
OPENINGS = "noise_openings.parquet"
FITTING = "fitting_report.json"
FILES = (STATISTICS, COEFFICIENTS, ANNUAL, LOAD, CORRELATION, OPENINGS, FITTING)


def write_stochastic(output_dir: Path, report: StochasticReport) -> tuple[Path, ...]:
    """Write the uncertainty of a study to ``<output>/stochastic``.

    Returns
    -------
    tuple
        The files that were written.

    Raises
    ------
    OutputError
        When a file cannot be written.
    """
    directory = output_dir / DIRECTORY
    tables, documents = export_tables(report), _documents(report)
    written = tuple(name for name in FILES if name in tables or name in documents)
    with output_errors(directory):
        directory.mkdir(parents=True, exist_ok=True)
        for name in FILES:
            if name not in written:
                (directory / name).unlink(missing_ok=True)
        sync_directory(directory)
    while tables:  # gone one by one, with what they hold
        write_parquet(directory / next(iter(tables)), tables.pop(next(iter(tables))))
    for name, document in documents.items():
        write_json(directory / name, document)
    return tuple(directory / name for name in written)


def export_tables(report: StochasticReport) -> dict[str, pa.Table]:
    """Return the tables of the study's uncertainty, by file name."""
    from cobre.stochastic.report import tables as made

    tables = {}
    origin = report.provenance
    if origin.seasonal_stats_source != "none":
        tables[STATISTICS] = made.statistics_table(report)
    if origin.ar_coefficients_source != "none":
        # Also without rows: with the file there, nothing is estimated again.
        tables[COEFFICIENTS] = made.coefficients_table(report)
    annual = made.annual_table(report)
    if len(annual):
        tables[ANNUAL] = annual
    if report.case.buses:
        tables[LOAD] = made.load_table(report)
    if made.why_openings_stay(report) is None:
        openings = made.openings_table(report)
        if len(openings) and openings["value"].null_count == 0:
            tables[OPENINGS] = openings
    return tables


def correlation_document(report: StochasticReport) -> dict[str, Any] | None:
    """Return the correlation of noise as ``correlation.json`` has it; ``None`` without one."""
    correlation, case = report.correlation, report.case
    if correlation is None:
        return None
    ids = {
        "inflow": [hydro.id for hydro in case.hydros],
        "load": [bus.id for bus in case.buses],
        "ncs": [source.id for source in case.non_controllables],
    }
    profiles = {
        name: {
            "correlation_groups": [
                {
                    "name": group.name,
                    "entities": [
                        {"type": group.kind, "id": ids[group.kind][member]}
                        for member in group.members.tolist()
                    ],
                    "matrix": group.matrix.tolist(),
                }
                for group in groups
            ]
        }
        for name, groups in correlation.profiles.items()
    }
    usual = "default" if "default" in profiles else next(iter(profiles))
    schedule = [
        {"stage_id": stage.id, "profile_name": name}
        for stage, name in zip(case.stages, correlation.of_stage, strict=True)
        if name != usual
    ]
    return {"method": "spectral", "profiles": profiles, "schedule": schedule}


def fitting_document(report: StochasticReport) -> dict[str, Any] | None:
    """Return orders, coefficients and reductions of an estimated model by plant; ``None`` of a given one."""
    fit = report.inflow.fit
    if fit is None or report.provenance.ar_coefficients_source != "history":
        return None
    hydros: dict[str, Any] = {}
    for position, hydro in enumerate(report.case.hydros):
        orders = fit.order[:, position].tolist()
        hydros[str(hydro.id)] = {
            "selected_order": max(orders, default=0),
            "coefficients": [
                fit.coefficients[season, position, :order].tolist() for season, order in enumerate(orders)
            ],
            "contribution_reductions": [
                {
                    "season_id": item.season_id,
                    "original_order": item.from_order,
                    "reduced_order": item.to_order,
                    "contributions": list(item.contributions),
                    "reason": item.reason,
                }
                for item in fit.reductions
                if item.hydro == position
            ],
        }
    return {"season_ids": fit.season_ids.tolist(), "hydros": hydros}


def _documents(report: StochasticReport) -> dict[str, dict[str, Any]]:
    found = {CORRELATION: correlation_document(report), FITTING: fitting_document(report)}
    return {name: document for name, document in found.items() if document is not None}
