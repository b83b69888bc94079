"""Limits with all bounds laid over them: intervals that turned around, fillings that cannot be done."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cobre.case.bounds.axes import EntityAxis, StageAxis, entity_axis, group_axis, is_complete
from cobre.case.bounds.limits import Grids, resolve_limits
from cobre.case.bounds.tables import BoundTables
from cobre.case.catalogue import ENTITY_TYPES, by_id
from cobre.case.format import layout
from cobre.case.format.sources import Sources
from cobre.case.model import HydroStatus
from cobre.case.problems import Reporter, name_entity, short_ids
from cobre.case.scenarios.stats import group_by_stages
from cobre.case.service import hydro_status
from cobre.units import HM3_PER_M3S_HOUR


@dataclass(frozen=True)
class _Interval:
    """Two grids, one of which must not exceed the other.

    A soft minimum has a price, so a minimum above the maximum is odd but not wrong.
    """

    low: str
    high: str
    columns: str
    path: str
    rule: str | None = None
    soft: bool = False


_INTERVALS = (
    _Interval("thermal_min_mw", "thermal_max_mw", "generation_mw", layout.THERMAL_BOUNDS, "5a.13"),
    _Interval("storage_min_hm3", "storage_max_hm3", "storage_hm3", layout.HYDRO_BOUNDS, "5a.2"),
    _Interval("turbined_min_m3s", "turbined_max_m3s", "turbined_m3s", layout.HYDRO_BOUNDS, "5a.3", True),
    _Interval("outflow_min_m3s", "outflow_max_m3s", "outflow_m3s", layout.HYDRO_BOUNDS, "5a.4", True),
    _Interval("generation_min_mw", "generation_max_mw", "generation_mw", layout.HYDRO_BOUNDS, "5a.5", True),
    _Interval("diversion_min_m3s", "diversion_max_m3s", "diversion_m3s", layout.HYDRO_BOUNDS, "5a.46"),
    _Interval(
        "group_turbined_min_m3s",
        "group_turbined_max_m3s",
        "turbined_m3s",
        layout.UNIT_GROUP_BOUNDS,
        "5a.45",
    ),
    _Interval(
        "group_generation_min_mw",
        "group_generation_max_mw",
        "generation_mw",
        layout.UNIT_GROUP_BOUNDS,
        "5a.45",
    ),
    _Interval("pumping_min_m3s", "pumping_max_m3s", "m3s", layout.PUMPING_BOUNDS),
    _Interval("contract_min_mw", "contract_max_mw", "mw", layout.CONTRACT_BOUNDS),
)


def check_limits(
    sources: Sources, tables: BoundTables | None, stages: StageAxis, reporter: Reporter
) -> Grids | None:
    """Resolve the limits of all stages and check them.

    Returns
    -------
    dict or None
        The grids of :func:`~cobre.case.bounds.limits.resolve_limits`; ``None`` while stages, registries or
        bounds are not all readable.
    """
    registries = [sources.registry(kind) for kind in ENTITY_TYPES if kind.has_service]
    groups = group_axis(sources)
    count = sum(len(hydro.unit_groups) for hydro in sources.hydros.items)
    if tables is None or stages.ids is None or not stages.complete or not all(map(is_complete, registries)):
        return None
    if groups.ids is None or groups.ids.size != count:
        return None
    grids = resolve_limits(sources, tables, stages)
    axes = {
        layout.THERMAL_BOUNDS: entity_axis(sources.thermals, "thermal"),
        layout.HYDRO_BOUNDS: entity_axis(sources.hydros, "hydro"),
        layout.UNIT_GROUP_BOUNDS: groups,
        layout.PUMPING_BOUNDS: entity_axis(sources.pumping_stations, "pumping station"),
        layout.CONTRACT_BOUNDS: entity_axis(sources.contracts, "contract"),
    }
    for interval in _INTERVALS:
        # Without the file, what the entity declares has been checked on its own.
        if interval.path in sources.present:
            _check_interval(interval, grids, axes[interval.path], stages, reporter)
    _check_filling(sources, grids, stages, reporter)
    return grids


def _check_interval(
    interval: _Interval, grids: Grids, axis: EntityAxis, stages: StageAxis, reporter: Reporter
) -> None:
    low, high = grids[interval.low], grids[interval.high]
    turned: NDArray[np.bool_] = low > high
    if turned.ndim == 3:
        turned &= np.arange(stages.width) < stages.blocks[:, None, None]
    wrong = np.asarray(turned.any(axis=2) if turned.ndim == 3 else turned)
    if not wrong.any() or axis.ids is None or stages.ids is None:
        return
    report = reporter.warning if interval.soft else reporter.error
    for members, at in group_by_stages(wrong, axis.ids, stages.ids):
        names = ", ".join(axis.name(member) for member in members[:5])
        more = f" and {len(members) - 5} more" if len(members) > 5 else ""
        first = (int(np.searchsorted(stages.ids, at[0])), int(np.searchsorted(axis.ids, members[0])))
        report(
            "ModelQuality" if interval.soft else "InvalidValue",
            f"{interval.path}: with these bounds, min_{interval.columns} of {names}{more} is above "
            f"max_{interval.columns} at stage {short_ids(at)}.",
            file=interval.path,
            entity=axis.name(members[0]) if len(members) == 1 else f"{names}{more}",
            field=f"min_{interval.columns}",
            value=float(np.max(low[first])),
            rule=interval.rule,
            suggestion="Give both limits where one of them changes, the minimum no greater than the maximum.",
        )


def _check_filling(sources: Sources, grids: Grids, stages: StageAxis, reporter: Reporter) -> None:
    """Rule 5b.33: where rates of filling are given, they must reach the dead volume by the entry stage."""
    if sources.initial.root is None or stages.ids is None:
        return
    seeds = {entry.hydro_id: entry.value_hm3 for entry in sources.initial.root.filling_storage}
    hydros = by_id(sources.hydros.items)
    status = hydro_status(hydros, stages.ids)
    with np.errstate(over="ignore"):  # an absurd rate reaches any volume
        volume: NDArray[np.float64] = grids["filling_min_rate_m3s"] * stages.hours[:, None] * HM3_PER_M3S_HOUR
    for position, hydro in enumerate(hydros):
        filling = np.flatnonzero(status[:, position] == HydroStatus.FILLING)
        retained = float(volume[filling, position].sum())
        if hydro.filling is None or not filling.size or retained == 0.0 or filling[-1] + 1 == stages.ids.size:
            continue
        reached = seeds.get(hydro.id, 0.0) + retained
        target = float(grids["storage_min_hm3"][filling[-1] + 1, position])
        if reached < target * (1.0 - 1e-9):
            entity = name_entity("hydro", hydro.id, hydro.name)
            reporter.error(
                "BusinessRuleViolation",
                f"{layout.HYDROS}: filling {entity} at its minimum rate reaches {reached:.6g} hm3 at stage "
                f"{hydro.entry_stage_id}, less than the dead volume of {target:.6g} hm3.",
                file=layout.HYDROS,
                entity=entity,
                field="filling.filling_min_rate_m3s",
                value=hydro.filling.filling_min_rate_m3s,
                rule="5b.33",
                suggestion="Raise the rate, start earlier or enter service later; or give no rate at all.",
            )
