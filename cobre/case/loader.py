"""A case directory to a model, or to the list of everything that is wrong with it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from cobre.case import layout
from cobre.case.checks.config import check_config
from cobre.case.checks.initial import check_initial
from cobre.case.checks.quality import check_inflow_noise, check_penalty_order, check_unused_buses
from cobre.case.checks.references import check_faulty_entries
from cobre.case.checks.stages import check_stages
from cobre.case.checks.system import check_system
from cobre.case.generic.checks import check_generic
from cobre.case.generic.rows import resolve_generic
from cobre.case.hydro_models import resolve_hydro_models
from cobre.case.load_factors import check_load_factors
from cobre.case.model import Case
from cobre.case.parse import Parsed
from cobre.case.problems import Reporter
from cobre.case.resolve import resolve
from cobre.case.sources import Sources, read_sources
from cobre.case.stats import INFLOW, LOAD, SeasonalStats, StatsFile, read_stats, zero_stats
from cobre.errors import Problem, ValidationError


def load(path: str | os.PathLike[str]) -> Case:
    """Load and validate a case directory.

    Parameters
    ----------
    path
        The case directory.

    Returns
    -------
    Case
        The complete, immutable study; odd but allowed input is listed in its ``warnings``.

    Raises
    ------
    cobre.errors.ValidationError
        With every problem of every file; see its ``problems``.
    """
    case, errors, _ = check(path)
    if case is None:
        raise ValidationError(errors, source=f"case {os.fspath(path)}")
    return case


def check(path: str | os.PathLike[str]) -> tuple[Case | None, list[Problem], list[Problem]]:
    """Validate a case directory without raising on what is wrong with it.

    Returns
    -------
    case, errors, warnings
        The case (``None`` if there is any error), all errors and all warnings, both ordered by file.
    """
    reporter = Reporter()
    root = _find_root(path, reporter)
    case = None if root is None else _check_files(root, reporter)
    return case, _by_file(reporter.errors), _by_file(reporter.warnings)


def _find_root(path: str | os.PathLike[str], reporter: Reporter) -> Path | None:
    shown = os.fspath(path)
    try:
        root = Path(path).resolve()
        exists, is_directory = root.exists(), root.is_dir()
    except (OSError, ValueError, RuntimeError) as error:
        # NUL bytes, names that are too long, circular links.
        reporter.error("FileNotFound", f"The case directory {shown!r} cannot be opened: {error}.", file=".")
        return None
    if is_directory:
        return root
    found = "is not a directory" if exists else "does not exist"
    reporter.error(
        "FileNotFound",
        f"The case directory {shown} {found}.",
        file=".",
        value=shown,
        suggestion="Give the directory that holds config.json and system/.",
    )
    return None


def _check_files(root: Path, reporter: Reporter) -> Case | None:
    present = layout.scan(root, reporter)
    sources = read_sources(root, present, reporter)
    check_config(sources, reporter)
    check_stages(sources, reporter)
    if not sources.stages.ids:
        # An empty list has been reported; that a stage does not exist must not be said of every row again.
        sources = replace(sources, stages=replace(sources.stages, ids=None))
    check_system(sources, reporter)
    check_initial(sources, reporter)
    check_faulty_entries(sources, reporter)
    check_load_factors(sources, reporter)
    generic = check_generic(root, sources, reporter)
    check_penalty_order(sources, reporter)
    inflow = _read_stats(root, INFLOW, sources.hydros, sources, reporter)
    load_stats = _read_stats(root, LOAD, sources.buses, sources, reporter)
    hydro_models = resolve_hydro_models(root, sources, reporter)
    if reporter.errors or hydro_models is None or inflow is None or load_stats is None:
        return None
    check_inflow_noise(sources, inflow, reporter)
    check_unused_buses(sources, load_stats, reporter)
    case = resolve(root, sources, hydro_models, inflow, load_stats, ())
    rows = resolve_generic(generic, case, sources, reporter)
    if reporter.errors:
        return None
    return replace(case, generic=rows, warnings=tuple(_by_file(reporter.warnings)))


def _read_stats(
    root: Path, file: StatsFile, entities: Parsed[Any, Any], sources: Sources, reporter: Reporter
) -> SeasonalStats | None:
    stages = sources.stages
    if file.path in sources.present:
        return read_stats(root, file, entities.ids, entities.names, stages.ids, reporter)
    if entities.ids is None or stages.ids is None:
        return None
    return zero_stats(len(stages.id_set), len(entities.id_set))


def _by_file(problems: Sequence[Problem]) -> list[Problem]:
    rank = {path: index for index, path in enumerate(layout.KNOWN)}
    return sorted(problems, key=lambda problem: rank.get(str(problem.context.get("file")), len(rank)))
