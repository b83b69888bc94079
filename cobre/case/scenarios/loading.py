"""All files in ``scenarios/`` together: statistics, inflow models, external scenarios."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cobre.case.checks.config import external_classes
from cobre.case.checks.stages import ids_before_study, pre_study_ids
from cobre.case.format import layout
from cobre.case.format.documents import CaseDocuments
from cobre.case.format.parse import Parsed
from cobre.case.format.sources import Sources
from cobre.case.model import Scenarios
from cobre.case.model.options import ClassName
from cobre.case.problems import Reporter, short_ids
from cobre.case.scenarios.correlation import load_correlation
from cobre.case.scenarios.external import FILES, load_external, registry_of, scenario_stages
from cobre.case.scenarios.history import load_history, recent_observations
from cobre.case.scenarios.inflow_models import load_annual, load_coefficients
from cobre.case.scenarios.openings import load_openings
from cobre.case.scenarios.pre_study import pre_study_stats
from cobre.case.scenarios.stats import (
    AVAILABILITY,
    INFLOW,
    LOAD,
    SeasonalStats,
    StatsFile,
    read_stats,
    zero_stats,
)

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
    present = sources.present
    phi = load_coefficients(files, sources, reporter) if layout.INFLOW_AR in present else None
    annual = load_annual(files, sources, reporter) if layout.INFLOW_ANNUAL in present else None
    history = load_history(files, sources, reporter) if layout.INFLOW_HISTORY in present else None
    correlation = load_correlation(sources, reporter)
    _check_replays(sources, reporter)
    inflow, load, ncs = stats["inflow"], stats["load"], stats["ncs"]
    dimension = None
    if inflow is not None and load is not None and ncs is not None:
        noisy = int((load.std > 0).any(axis=0).sum())
        dimension = inflow.mean.shape[1] + noisy + int(ncs.has_rows.sum())
    openings = load_openings(files, sources, dimension, reporter)
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
        correlation=correlation,
        noise_openings=openings,
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
            other_stages=ids_before_study(sources) if name == "inflow" else pre_study_ids(sources),
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
    """Check the number of openings where all nodes of a stage take an external scenario.

    They have openings of their own exactly where a class without external scenarios is random.
    """
    in_use, wanted, root = external_classes(sources), scenario_stages(sources), sources.stages.root
    if not in_use or not wanted or sources.stages.ids is None or root is None or None in stats.values():
        return
    stage_ids = sorted(sources.stages.id_set)
    openings = {stage.id: stage.num_openings for stage in root.stages}
    generated = {node.stage_id for node in root.policy_graph.nodes or () if node.scenario_id is None}
    for position, stage in enumerate(stage_ids):
        if stage not in wanted or stage in generated:
            continue
        random = [
            name
            for name, table in stats.items()
            if name not in in_use and table is not None and (table.std[position] > 0).any()
        ]
        entity, given = f"stage {stage}", openings.get(stage)
        if random and given is None:
            reporter.error(
                "SchemaViolation",
                f"{layout.STAGES}: num_openings of {entity} is missing; its nodes take an external scenario, "
                f"but {' and '.join(random)} is random there.",
                file=layout.STAGES,
                entity=entity,
                field="num_openings",
                suggestion=f"Add num_openings, or give {random[0]} in {FILES[random[0]].path}.",
            )
        elif given is not None and not random:
            reporter.error(
                "BusinessRuleViolation",
                f"{layout.STAGES}: num_openings of {entity} is {given}, but all its nodes take an external "
                "scenario and nothing else is random there.",
                file=layout.STAGES,
                entity=entity,
                field="num_openings",
                value=given,
                suggestion="Remove num_openings from this stage.",
            )


def _check_replays(sources: Sources, reporter: Reporter) -> None:
    """Check that there is a history where inflows are taken from it."""
    if layout.INFLOW_HISTORY in sources.present:
        return
    config, stages = sources.config.root, sources.stages.root
    source = config.training.scenario_source if config is not None else None
    if source is not None and source.inflow is not None and source.inflow.scheme == "historical":
        field = "training.scenario_source.inflow.scheme"
        reporter.error(
            "FileNotFound",
            f"{layout.CONFIG}: {field} is 'historical', but there is no {layout.INFLOW_HISTORY}.",
            file=layout.CONFIG,
            field=field,
            value="historical",
            suggestion="Add the file, or use another scheme.",
        )
    replaying = [
        stage.id
        for stage in (stages.stages if stages is not None else ())
        if stage.id >= 0 and stage.sampling_method == "historical_residuals"
    ]
    if replaying:
        reporter.error(
            "FileNotFound",
            f"{layout.STAGES}: sampling_method of stage {short_ids(replaying)} is 'historical_residuals', "
            f"but there is no {layout.INFLOW_HISTORY}.",
            file=layout.STAGES,
            entity=f"stage {short_ids(replaying)}",
            field="sampling_method",
            value="historical_residuals",
            suggestion="Add the file, or use another method.",
        )
