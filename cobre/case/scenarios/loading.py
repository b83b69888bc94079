"""All files in ``scenarios/`` together: statistics, inflow models, external scenarios."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cobre.case import layout
from cobre.case.checks.config import external_classes
from cobre.case.checks.stages import pre_study_ids
from cobre.case.documents import CaseDocuments
from cobre.case.model import Scenarios
from cobre.case.parse import Parsed
from cobre.case.problems import Reporter, short_ids
from cobre.case.scenarios.correlation import check_correlation
from cobre.case.scenarios.external import FILES, ClassName, load_external, registry_of, scenario_stages
from cobre.case.scenarios.history import load_history, recent_observations
from cobre.case.scenarios.inflow_models import load_annual, load_coefficients
from cobre.case.scenarios.openings import check_openings
from cobre.case.scenarios.pre_study import pre_study_stats
from cobre.case.sources import Sources
from cobre.case.stats import AVAILABILITY, INFLOW, LOAD, SeasonalStats, StatsFile, read_stats, zero_stats

_STATS: dict[ClassName, StatsFile] = {"inflow": INFLOW, "load": LOAD, "ncs": AVAILABILITY}


def load_scenarios(files: CaseDocuments, sources: Sources, reporter: Reporter) -> Scenarios | None:
    """Read and check everything in ``scenarios/`` except factors by block.

    Returns
    -------
    Scenarios or None
        ``None`` when anything is wrong with the files, or stages or entities are not all known.
    """
    before = len(reporter.errors)
    stats = {name: _read_stats(files, name, registry_of(sources, name), sources, reporter) for name in _STATS}
    external = load_external(files, sources, reporter)
    _check_mixed(stats, sources, reporter)
    check_correlation(sources, reporter)
    present = sources.present
    phi = load_coefficients(files, sources, reporter) if layout.INFLOW_AR in present else None
    annual = load_annual(files, sources, reporter) if layout.INFLOW_ANNUAL in present else None
    history = load_history(files, sources, reporter) if layout.INFLOW_HISTORY in present else None
    inflow, load, ncs = stats["inflow"], stats["load"], stats["ncs"]
    dimension = None
    if inflow is not None and load is not None and ncs is not None:
        noisy = int((load.std > 0).any(axis=0).sum())
        dimension = inflow.mean.shape[1] + noisy + int(ncs.has_rows.sum())
    check_openings(files, sources, dimension, reporter)
    if len(reporter.errors) > before or inflow is None or load is None or ncs is None or external is None:
        return None
    return Scenarios(
        inflow_mean_m3s=_frozen(inflow.mean),
        inflow_std_m3s=_frozen(inflow.std),
        load_mean_mw=_frozen(load.mean),
        load_std_mw=_frozen(load.std),
        ncs_mean=_frozen(ncs.mean),
        ncs_std=_frozen(ncs.std),
        ncs_has_stats=ncs.has_rows,
        external_inflow_m3s=external.get("inflow"),
        external_load_mw=external.get("load"),
        external_ncs=external.get("ncs"),
        has_inflow_stats=layout.INFLOW_STATS in present,
        ar_coefficients=phi,
        annual=annual,
        inflow_history=history,
        recent_observations=recent_observations(sources),
        pre_study=pre_study_stats(files, sources),
    )


def _frozen(array: NDArray[np.float64]) -> NDArray[np.float64]:
    fixed = np.ascontiguousarray(array, dtype=np.float64)
    fixed.setflags(write=False)
    return fixed


def _read_stats(
    files: CaseDocuments, name: ClassName, entities: Parsed[Any, Any], sources: Sources, reporter: Reporter
) -> SeasonalStats | None:
    stages, file = sources.stages, _STATS[name]
    if file.path in sources.present:
        return read_stats(
            files,
            file,
            entities.ids,
            entities.names,
            stages.ids,
            reporter,
            other_stages=pre_study_ids(sources),
            needed=_needed(name, entities, sources),
        )
    if entities.ids is None or stages.ids is None:
        return None
    return zero_stats(len(stages.id_set), len(entities.id_set))


def _needed(name: ClassName, entities: Parsed[Any, Any], sources: Sources) -> NDArray[np.bool_] | None:
    """Return by (stage, entity) where statistics must be given, or ``None`` while that is not known.

    Not needed: a hydro plant out of service, and a stage whose values all come from external scenarios.
    """
    if sources.stages.ids is None or entities.ids is None or sources.stages.root is None:
        return None
    stages = np.array(sorted(sources.stages.id_set), np.int64)
    numbers = sorted(entities.id_set)
    needed = np.ones((stages.size, len(numbers)), np.bool_)
    if name == "inflow":
        position = {number: index for index, number in enumerate(numbers)}
        for hydro in entities.items:
            column = needed[:, position[hydro.id]]
            entry = hydro.filling.start_stage_id if hydro.filling is not None else hydro.entry_stage_id
            if entry is not None:
                column[stages < entry] = False
            if hydro.exit_stage_id is not None:
                column[stages >= hydro.exit_stage_id] = False
    if name in external_classes(sources):
        generated = {
            node.stage_id for node in sources.stages.root.policy_graph.nodes or () if node.scenario_id is None
        }
        only_external = sorted(set(scenario_stages(sources)) - generated)
        needed[np.isin(stages, only_external)] = False
    return needed


def _check_mixed(stats: dict[ClassName, SeasonalStats | None], sources: Sources, reporter: Reporter) -> None:
    """Refuse noise of a class at nodes whose other classes take an external scenario."""
    in_use = external_classes(sources)
    wanted = scenario_stages(sources)
    if not in_use or not wanted or sources.stages.ids is None:
        return
    stage_ids = np.array(sorted(sources.stages.id_set), np.int64)
    rows = np.isin(stage_ids, sorted(wanted))
    for name, table in stats.items():
        if name in in_use or table is None:
            continue
        random = rows & (table.std > 0).any(axis=1)
        if random.any():
            where = short_ids(stage_ids[random].tolist())
            path = _STATS[name].path
            reporter.error(
                "NotImplemented",
                f"{path}: {name} is random at stage {where}, where nodes take an external scenario; "
                "generated noise beside external scenarios is not supported yet.",
                file=path,
                field=_STATS[name].std_column,
                value=where,
                suggestion=f"Give {name} in {FILES[name].path}, or a standard deviation of 0 there.",
            )
