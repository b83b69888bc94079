"""The files a case directory may hold, and the check of what lies in it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from cobre.case.catalogue import EXTENSIONS
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
    *(kind.path for kind in EXTENSIONS),
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
    *(kind.bounds for kind in EXTENSIONS if kind.bounds is not None),
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
_OUTPUT_DIRECTORIES = frozenset(
    {"output", "training", "simulation", "policy", "checkpoints", "stochastic", "hydro_models"}
)
"""Folders that cobre and cobre-rs write: exports in them carry names of the format."""
_DATA_SUFFIXES = (".json", ".parquet")
_FOREIGN_SUFFIXES = (
    *(".csv", ".tsv", ".txt", ".dat", ".xls", ".xlsx", ".ods"),
    *(".feather", ".arrow", ".ipc", ".orc", ".pq", ".parq"),
    *(".yaml", ".yml", ".toml", ".json5", ".jsonc", ".jsonl", ".ndjson"),
    *(".gz", ".bz2", ".xz", ".zst", ".zip"),
)
"""Endings of data that somebody may take for a file of the format."""


def _bare(name: str) -> str:
    """Return what is left of a file's name without endings, letter case and hyphens."""
    return name.partition(".")[0].lower().replace("-", "_").replace(" ", "_")


_BY_BARE_NAME = {_bare(PurePosixPath(path).name): path for path in KNOWN}


def scan(root: Path, reporter: Reporter) -> frozenset[str]:
    """Report files that are missing, unknown, misplaced or retired.

    Returns
    -------
    frozenset
        Paths (relative, with ``/``) of all entries in the case directory and in its folders: all levels of
        the three of the format, one of the others.
    """
    present = set(_list(root, "", reporter))
    directories = {path for path in present if (root / path).is_dir()}
    for directory in sorted(directories.union(DIRECTORIES) & present):
        if directory in DIRECTORIES:
            _add_tree(root, directory, present, directories, reporter)
        elif not directory.startswith(".") and directory not in _OUTPUT_DIRECTORIES:
            # Whatever else lies there is none of our business, and neither is a folder that cannot be read.
            present.update(path for path in _list(root, directory, Reporter()) if _misplaced(path))
    return judge(frozenset(present), frozenset(directories), reporter)


def _add_tree(
    root: Path, directory: str, present: set[str], directories: set[str], reporter: Reporter
) -> None:
    for path in _list(root, directory, reporter):
        present.add(path)
        # A file of the format may be a folder by mistake; links may lead in circles.
        if path not in KNOWN and (root / path).is_dir() and not (root / path).is_symlink():
            directories.add(path)
            _add_tree(root, path, present, directories, Reporter())


def _misplaced(path: str) -> bool:
    return PurePosixPath(path).name.lower() in {PurePosixPath(known).name for known in KNOWN}


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
        _judge(path, path in directories, present, reporter)
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
    if present.isdisjoint(REQUIRED):
        return "Give the directory of a case; 'cobre init DIR' writes a new one."
    if path in (LINES, THERMALS, HYDROS):
        return f"Create {path}; its list may be empty."
    return f"Create {path}; 'cobre schema DIR' writes what it may hold."


def _judge(path: str, is_directory: bool, present: frozenset[str], reporter: Reporter) -> None:
    pure = PurePosixPath(path)
    if path in RETIRED:
        reporter.error(
            "BusinessRuleViolation",
            f"The file {path} is no longer part of the format.",
            file=path,
            rule="structural.1",
            suggestion=f"Use {RETIRED[path]} instead, and remove this file.",
        )
    elif path in KNOWN or path in DIRECTORIES or any(part.startswith(".") for part in pure.parts):
        return
    elif is_directory:
        _judge_directory(path, present, reporter)
    else:
        _judge_file(path, present, reporter)


def _judge_directory(path: str, present: frozenset[str], reporter: Reporter) -> None:
    close = did_you_mean(path, DIRECTORIES)
    meant = _BY_BARE_NAME.get(_bare(PurePosixPath(path).name))
    if close and "/" not in path:
        reporter.error(
            "SchemaViolation",
            f"The directory {path} is not part of the format.",
            file=path,
            suggestion=f"Did you mean '{close}'?",
        )
    elif meant and meant not in present:
        reporter.error(
            "SchemaViolation",
            f"{path} is a directory and is not read; the format has {meant}, which is missing.",
            file=path,
            suggestion=f"Write its content as one file {meant}, or move it out of the case directory.",
        )


def _judge_file(path: str, present: frozenset[str], reporter: Reporter) -> None:
    pure = PurePosixPath(path)
    suffix = pure.suffix.lower()
    folder = "" if str(pure.parent) == "." else str(pure.parent)
    siblings = [known for known in KNOWN if known.rpartition("/")[0] == folder]
    meant = _BY_BARE_NAME.get(_bare(pure.name))
    looks_like_data = suffix in ("", *_DATA_SUFFIXES, *_FOREIGN_SUFFIXES)
    if meant is None and suffix in _FOREIGN_SUFFIXES and folder in DIRECTORIES:
        meant = _similar(path, siblings)
    if meant and meant not in present and looks_like_data:
        misplaced = pure.name == PurePosixPath(meant).name
        reporter.error(
            "SchemaViolation",
            f"The file {path} lies in the wrong place."
            if misplaced
            else f"The file {path} is not read; the format has {meant}, which is missing.",
            file=path,
            suggestion=f"Move it to {meant}."
            if misplaced
            else f"Write its content as {meant}, or move it out of the case directory.",
        )
    elif suffix in _DATA_SUFFIXES and folder in ("", *DIRECTORIES):
        _judge_unknown(path, folder, siblings, meant, reporter)
    elif meant and (looks_like_data or set(pure.suffixes) & set(_DATA_SUFFIXES)):
        reporter.warning(
            "SemanticAmbiguity",
            f"The file {path} is not read; the format has {meant}.",
            file=path,
            suggestion="Remove it, or keep it outside the case directory.",
        )


def _judge_unknown(
    path: str, folder: str, siblings: list[str], meant: str | None, reporter: Reporter
) -> None:
    """Report a JSON or Parquet file of another name, or one that also lies where it belongs."""
    close = _similar(path, siblings)
    if meant and PurePosixPath(meant).name == PurePosixPath(path).name:
        reporter.error(
            "SchemaViolation",
            f"The file {path} lies in the wrong place.",
            file=path,
            suggestion=f"Remove it: {meant} is there as well.",
        )
    elif folder or close:
        listing = f"Files in {folder or 'the case directory'}: {', '.join(sorted(siblings))}."
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
