"""The files a case directory may hold, and the check of what lies in it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from cobre.case.problems import Reporter, did_you_mean

CONFIG = "config.json"
PENALTIES = "penalties.json"
STAGES = "stages.json"
INITIAL_CONDITIONS = "initial_conditions.json"
POST_STUDY = "post_study_stages.json"
BUSES = "system/buses.json"
LINES = "system/lines.json"
THERMALS = "system/thermals.json"
HYDROS = "system/hydros.json"
NON_CONTROLLABLES = "system/non_controllable_sources.json"
PUMPING_STATIONS = "system/pumping_stations.json"
CONTRACTS = "system/energy_contracts.json"
PRODUCTION_MODELS = "system/hydro_production_models.json"
GEOMETRY = "system/hydro_geometry.parquet"
FPHA_PLANES = "system/fpha_hyperplanes.parquet"
ENERGY_PRODUCTIVITY = "system/hydro_energy_productivity.parquet"
TAILRACE_CURVES = "system/tailrace_curves.parquet"
INFLOW_STATS = "scenarios/inflow_seasonal_stats.parquet"
INFLOW_HISTORY = "scenarios/inflow_history.parquet"
INFLOW_AR = "scenarios/inflow_ar_coefficients.parquet"
INFLOW_ANNUAL = "scenarios/inflow_annual_component.parquet"
LOAD_STATS = "scenarios/load_seasonal_stats.parquet"
NCS_STATS = "scenarios/non_controllable_stats.parquet"
CORRELATION = "scenarios/correlation.json"
NOISE_OPENINGS = "scenarios/noise_openings.parquet"
EXTERNAL_INFLOW = "scenarios/external_inflow_scenarios.parquet"
EXTERNAL_LOAD = "scenarios/external_load_scenarios.parquet"
EXTERNAL_NCS = "scenarios/external_ncs_scenarios.parquet"
LOAD_FACTORS = "scenarios/load_factors.json"
NCS_FACTORS = "scenarios/non_controllable_factors.json"
THERMAL_BOUNDS = "constraints/thermal_bounds.parquet"
HYDRO_BOUNDS = "constraints/hydro_bounds.parquet"
UNIT_GROUP_BOUNDS = "constraints/hydro_unit_group_bounds.parquet"
LINE_BOUNDS = "constraints/line_bounds.parquet"
PUMPING_BOUNDS = "constraints/pumping_bounds.parquet"
CONTRACT_BOUNDS = "constraints/contract_bounds.parquet"
NCS_BOUNDS = "constraints/ncs_bounds.parquet"
GENERIC_CONSTRAINTS = "constraints/generic_constraints.json"
GENERIC_BOUNDS = "constraints/generic_constraint_bounds.parquet"
GENERIC_PARAMETERS = "constraints/generic_parameters.json"
BUS_COSTS = "constraints/penalty_overrides_bus.parquet"
LINE_COSTS = "constraints/penalty_overrides_line.parquet"
HYDRO_COSTS = "constraints/penalty_overrides_hydro.parquet"
NCS_COSTS = "constraints/penalty_overrides_ncs.parquet"

REQUIRED = (CONFIG, PENALTIES, STAGES, INITIAL_CONDITIONS, BUSES, LINES, THERMALS, HYDROS)
OPTIONAL = (
    POST_STUDY,
    NON_CONTROLLABLES,
    PUMPING_STATIONS,
    CONTRACTS,
    PRODUCTION_MODELS,
    GEOMETRY,
    FPHA_PLANES,
    ENERGY_PRODUCTIVITY,
    TAILRACE_CURVES,
    INFLOW_STATS,
    INFLOW_HISTORY,
    INFLOW_AR,
    INFLOW_ANNUAL,
    LOAD_STATS,
    NCS_STATS,
    CORRELATION,
    NOISE_OPENINGS,
    EXTERNAL_INFLOW,
    EXTERNAL_LOAD,
    EXTERNAL_NCS,
    LOAD_FACTORS,
    NCS_FACTORS,
    THERMAL_BOUNDS,
    HYDRO_BOUNDS,
    UNIT_GROUP_BOUNDS,
    LINE_BOUNDS,
    PUMPING_BOUNDS,
    CONTRACT_BOUNDS,
    NCS_BOUNDS,
    GENERIC_CONSTRAINTS,
    GENERIC_BOUNDS,
    GENERIC_PARAMETERS,
    BUS_COSTS,
    LINE_COSTS,
    HYDRO_COSTS,
    NCS_COSTS,
)

RETIRED = {
    "constraints/exchange_factors.json": "rows with block_id in constraints/line_bounds.parquet",
    "system/scalar_parameters.json": "constraints/generic_parameters.json",
}
"""Files that left the format, and what took their place."""

KNOWN = (*REQUIRED, *OPTIONAL)
DIRECTORIES = ("system", "scenarios", "constraints")
_DATA_SUFFIXES = (".json", ".parquet")


def scan(root: Path, reporter: Reporter) -> frozenset[str]:
    """Report files that are missing, unknown or retired.

    Returns
    -------
    frozenset
        Paths (relative, with ``/``) of all entries in the case directory and its three folders.
    """
    present = set(_list(root, "", reporter))
    for directory in DIRECTORIES:
        if directory in present:
            present.update(_list(root, directory, reporter))
    return judge(frozenset(present), frozenset(path for path in present if (root / path).is_dir()), reporter)


def judge(present: frozenset[str], directories: frozenset[str], reporter: Reporter) -> frozenset[str]:
    """Report which of the paths in ``present`` are unknown or retired and which are missing among them.

    Parameters
    ----------
    directories
        Those of the paths that are directories.
    """
    for path in REQUIRED:
        if path not in present:
            reporter.error(
                "FileNotFound",
                f"The required file {path} is missing.",
                file=path,
                rule="structural.2",
                suggestion=_suggest_missing(path, present),
            )
    for path in sorted(present):
        _judge(path, path in directories, reporter)
    return present


def _list(root: Path, directory: str, reporter: Reporter) -> list[str]:
    folder = root / directory
    try:
        names = sorted(entry.name for entry in folder.iterdir())
    except NotADirectoryError:
        reporter.error(
            "SchemaViolation",
            f"{directory} must be a directory, but it is a file.",
            file=directory,
            suggestion=f"Replace it with a directory that holds the files of {directory}/.",
        )
        return []
    except OSError as error:
        reporter.error(
            "FileNotFound",
            f"The directory {directory or '.'} cannot be listed: {error.strerror or error}.",
            file=directory or ".",
            suggestion="Check that it exists and that you may read it.",
        )
        return []
    return [f"{directory}/{name}" if directory else name for name in names]


def _similar(path: str, candidates: Iterable[str]) -> str | None:
    """Return the candidate whose bare name is closest; folder and ending would make all names similar."""
    by_stem = {PurePosixPath(candidate).stem: candidate for candidate in candidates}
    close = did_you_mean(PurePosixPath(path).stem, by_stem)
    return by_stem[close] if close else None


def _suggest_missing(path: str, present: frozenset[str]) -> str:
    folder = str(PurePosixPath(path).parent)
    others = {other for other in present if other not in KNOWN and str(PurePosixPath(other).parent) == folder}
    close = _similar(path, others)
    if close:
        return f"There is a file {close}; rename it to {path} if that is what it is."
    return f"Create {path}; lists of lines, thermals and hydros may be empty."


def _judge(path: str, is_directory: bool, reporter: Reporter) -> None:
    pure = PurePosixPath(path)
    if path in RETIRED:
        reporter.error(
            "BusinessRuleViolation",
            f"The file {path} is no longer part of the format.",
            file=path,
            rule="structural.1",
            suggestion=f"Use {RETIRED[path]} instead, and remove this file.",
        )
    elif path in KNOWN or path in DIRECTORIES or pure.name.startswith("."):
        return
    elif is_directory:
        _judge_directory(path, reporter)
    elif pure.suffix.lower() in _DATA_SUFFIXES:
        _judge_file(path, reporter)


def _judge_directory(path: str, reporter: Reporter) -> None:
    close = did_you_mean(path, DIRECTORIES)
    if close and "/" not in path:
        reporter.error(
            "SchemaViolation",
            f"The directory {path} is not part of the format.",
            file=path,
            suggestion=f"Did you mean '{close}'?",
        )


def _judge_file(path: str, reporter: Reporter) -> None:
    pure = PurePosixPath(path)
    folder = "" if str(pure.parent) == "." else str(pure.parent)
    home = next((known for known in KNOWN if PurePosixPath(known).name == pure.name), None)
    siblings = [known for known in KNOWN if known.rpartition("/")[0] == folder]
    if home:
        reporter.error(
            "SchemaViolation",
            f"The file {path} lies in the wrong place.",
            file=path,
            suggestion=f"Move it to {home}.",
        )
    elif folder or _similar(path, siblings):
        listing = f"Files in {folder or 'the case directory'}: {', '.join(sorted(siblings))}."
        close = _similar(path, siblings)
        reporter.error(
            "SchemaViolation",
            f"The file {path} is not part of the format.",
            file=path,
            suggestion=f"Did you mean '{close}'? {listing}" if close else listing,
        )
    else:
        reporter.warning(
            "SemanticAmbiguity",
            f"The file {path} is not part of the format and is ignored.",
            file=path,
            suggestion="Remove it, or keep it outside the case directory.",
        )
