"""A case directory to a model, or to the list of everything that is wrong with it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from cobre.case.anticipated import check_anticipated, check_committed, commit_ahead
from cobre.case.bounds import read_bounds, stage_axis
from cobre.case.checks.calendar import check_calendar
from cobre.case.checks.config import check_config
from cobre.case.checks.initial import check_initial
from cobre.case.checks.limits import check_limits
from cobre.case.checks.quality import (
    check_cost_order,
    check_inflow_noise,
    check_penalty_order,
    check_start_dates,
    check_unused_buses,
)
from cobre.case.checks.references import check_faulty_entries
from cobre.case.checks.registries import check_registries
from cobre.case.checks.service import check_service
from cobre.case.checks.stages import check_stages, study_stages
from cobre.case.checks.system import check_system
from cobre.case.format import layout
from cobre.case.format.documents import CaseDocuments
from cobre.case.format.sources import read_sources
from cobre.case.generic.checks import check_generic
from cobre.case.generic.rows import resolve_generic
from cobre.case.hydro.models import resolve_hydro_models
from cobre.case.hydro.travel import check_travel
from cobre.case.model import Case
from cobre.case.problems import Reporter
from cobre.case.resolve import resolve
from cobre.case.scenarios import load_scenarios
from cobre.case.scenarios.lag_seed import check_lag_seed
from cobre.case.scenarios.load_factors import check_load_factors
from cobre.case.scenarios.ncs_factors import check_ncs_factors
from cobre.case.scenarios.noise_share import check_given_coefficients
from cobre.case.stage_arrays import resolve_stage_data
from cobre.errors import Problem, ValidationError
from cobre.machine import check_process


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

    Examples
    --------
    >>> case = load("examples/two-plant-cascade")
    >>> [hydro.name for hydro in case.hydros], case.hydros[0].downstream_id
    (['Alto', 'Baixo'], 1)
    >>> load("examples/none-such")
    Traceback (most recent call last):
    cobre.errors.ValidationError: The case directory examples/none-such does not exist. ...
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

    Examples
    --------
    >>> case, errors, warnings = check("examples/none-such")
    >>> case is None, errors[0].kind
    (True, 'FileNotFound')
    """
    reporter = Reporter()
    root = _find_root(path, reporter)
    case = None if root is None else _check_files(CaseDocuments(root), reporter)
    return case, _by_file(reporter.errors), _by_file(reporter.warnings)


def build(documents: Mapping[str, Any], directory: str | os.PathLike[str] = "case") -> Case:
    """Build and validate a case from documents in memory; nothing is read from or written to disk.

    Parameters
    ----------
    documents
        Path inside a case directory to content: a JSON object, a ``pyarrow.Table`` or a mapping of columns,
        or the bytes of such a file. ``None`` leaves a file out.
    directory
        The case's path, which need not exist: its name is shown, and paths inside the files are relative to
        it.

    Raises
    ------
    cobre.errors.ValidationError
        With every problem of every document; see its ``problems``.

    Examples
    --------
    >>> from cobre.templates import TEMPLATES
    >>> build(TEMPLATES["toy"].build(), "toy")
    Case('toy': 6 stages, 1 buses, 0 lines, 2 thermals, 1 hydros)
    """
    files = CaseDocuments(Path(directory).absolute(), documents)
    reporter = Reporter()
    case = _check_files(files, reporter)
    if case is None:
        raise ValidationError(_by_file(reporter.errors), source=f"case {os.fspath(directory)} in memory")
    return case


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
    holds_case = exists and root.parent.joinpath(layout.CONFIG).is_file()
    reporter.error(
        "FileNotFound",
        f"The case directory {shown} {found}.",
        file=".",
        value=shown,
        suggestion=f"Give the directory: {root.parent}."
        if holds_case
        else "Give the directory that holds config.json and system/.",
    )
    return None


def _check_files(files: CaseDocuments, reporter: Reporter) -> Case | None:
    check_process()
    root = files.directory
    present = files.scan(reporter)
    sources = read_sources(files, present, reporter)
    check_config(root, sources, reporter)
    check_stages(sources, reporter)
    sources = study_stages(sources)
    check_calendar(sources, reporter)
    check_system(sources, reporter)
    check_registries(sources, reporter)
    stages = stage_axis(sources)
    check_service(sources, stages, reporter)
    check_initial(sources, reporter)
    check_travel(sources, reporter)
    check_anticipated(sources, reporter)
    check_faulty_entries(sources, reporter)
    check_load_factors(sources, reporter)
    check_ncs_factors(sources, reporter)
    generic = check_generic(files, sources, reporter)
    check_penalty_order(sources, reporter)
    check_start_dates(sources, reporter)
    bounds = read_bounds(files, sources, reporter)
    limits = check_limits(sources, bounds, stages, reporter)
    hydro_models = resolve_hydro_models(files, sources, reporter)
    scenarios = load_scenarios(files, sources, reporter)
    if reporter.errors or hydro_models is None or scenarios is None:
        return None
    penalties = sources.penalties.root
    if penalties is None or bounds is None or limits is None:
        return None
    check_inflow_noise(sources, scenarios.inflow_std_m3s, reporter)
    check_unused_buses(sources, scenarios, reporter)
    stage_data = resolve_stage_data(sources, penalties, bounds, limits)
    case = commit_ahead(resolve(root, sources, stage_data, hydro_models, scenarios), sources)
    check_committed(case, reporter)
    check_cost_order(case, reporter)
    check_lag_seed(case, reporter)
    check_given_coefficients(case, reporter)
    rows = resolve_generic(generic, case, sources, reporter)
    files.read_all(reporter)
    if reporter.errors:
        return None
    case = replace(case, generic=rows, documents=files, warnings=tuple(_by_file(reporter.warnings)))
    # Imported late: these checks use modules that depend on cases. Only a case without errors gets here.
    from cobre.sddp.soundness import study_problems

    reporter.errors += study_problems(case)
    return None if reporter.errors else case


def _by_file(problems: Sequence[Problem]) -> list[Problem]:
    rank = {path: index for index, path in enumerate(layout.KNOWN)}
    return sorted(problems, key=lambda problem: rank.get(str(problem.context.get("file")), len(rank)))
