"""Warnings where the balance of a case is far from that of any system: a unit or a factor is probably wrong.

That a load is above all capacity is certain; the other limits lie far from what was found in systems from
one plant to national ones (inflow energy 0 to 1.1 times the load, capacity 0.6 to 4 times it, storage up to
154 days).
"""

from __future__ import annotations

from cobre.case.balance.model import BusBalance, EnergyBalance
from cobre.case.format import layout
from cobre.case.problems import Reporter, name_entity, short_ids
from cobre.errors import Problem

MOST_INFLOW_ENERGY = 10.0
"""Inflow energy over load."""
MOST_CAPACITY = 20.0
"""Capacity over peak load."""
MOST_STORAGE_DAYS = 3652.0
"""Days of load in full reservoirs: ten years."""
_ROUNDING_MW = 1e-6


def balance_warnings(balance: EnergyBalance, stages: int) -> list[Problem]:
    """Return what is probably not meant, with the numbers.

    Parameters
    ----------
    stages
        Number of stages of the study.
    """
    reporter = Reporter()
    short = [bus for bus in balance.buses if bus.shortage_mw > _ROUNDING_MW]
    if balance.short_stages:
        _system_is_short(balance, stages, reporter)
    elif short:
        for bus in short:
            _bus_is_short(bus, reporter)
    else:
        _energy_is_short(balance, reporter)
    _sizes(balance, reporter)
    return reporter.warnings


def _system_is_short(balance: EnergyBalance, stages: int, reporter: Reporter) -> None:
    missing = balance.load_mw - balance.capacity_mw
    parts = ", ".join(
        f"{kind.replace('_', '-')} {most:,.6g}" for kind, most in balance.capacity_by_kind.items()
    )
    reporter.warning(
        "ModelQuality",
        f"Load is above all capacity at {len(balance.short_stages)} of {stages} stages "
        f"({short_ids(balance.short_stages)}): {balance.load_mw:,.6g} MW against "
        f"{balance.capacity_mw:,.6g} MW "
        f"({parts or 'none'}) at stage {balance.stage_id}, block {balance.block_id}, so at least "
        f"{missing:,.6g} MW "
        "are not served.",
        file=layout.LOAD_STATS,
        field="mean_mw",
        value=balance.load_mw,
        suggestion="Check that loads, block factors and limits of generation are in MW.",
    )


def _bus_is_short(bus: BusBalance, reporter: Reporter) -> None:
    entity = name_entity("bus", bus.id, bus.name)
    reporter.warning(
        "ModelQuality",
        f"The load of {entity} is above all that can reach it: {bus.load_mw:,.6g} MW against "
        f"{bus.local_mw:,.6g} MW "
        f"there and at most {bus.import_mw:,.6g} MW by lines at stage {bus.stage_id}, block "
        f"{bus.block_id}, so at "
        f"least {bus.shortage_mw:,.6g} MW are not served.",
        file=layout.LOAD_STATS,
        entity=entity,
        field="mean_mw",
        value=bus.load_mw,
        suggestion="Check the load, the limits of its plants, and those of its lines.",
    )


def _energy_is_short(balance: EnergyBalance, reporter: Reporter) -> None:
    stored = balance.initial_energy_mwh / balance.hours
    have = balance.mean_inflow_energy_mw + balance.mean_source_mw + balance.mean_other_mw + stored
    if have >= balance.mean_load_mw:
        return
    reporter.warning(
        "ModelQuality",
        f"Energy is short on average: the load takes {balance.mean_load_mw:,.6g} MW, and there are "
        f"{have:,.6g} MW (inflow {balance.mean_inflow_energy_mw:,.6g}, storage at the start {stored:,.6g}, "
        f"non-controllable {balance.mean_source_mw:,.6g}, thermal and imports at most "
        f"{balance.mean_other_mw:,.6g}).",
        file=layout.LOAD_STATS,
        field="mean_mw",
        value=balance.mean_load_mw,
        suggestion="Check the units of inflow (m3/s), productivity (MW per m3/s) and load (MW).",
    )


def _sizes(balance: EnergyBalance, reporter: Reporter) -> None:
    if balance.mean_load_mw <= 0.0:
        reporter.warning(
            "ModelQuality",
            "No bus has any load at any stage.",
            file=layout.LOAD_STATS,
            field="mean_mw",
            value=0.0,
            suggestion="Add rows of load for every bus and stage.",
        )
        return
    if balance.mean_inflow_energy_mw > MOST_INFLOW_ENERGY * balance.mean_load_mw:
        ratio = balance.mean_inflow_energy_mw / balance.mean_load_mw
        reporter.warning(
            "ModelQuality",
            f"Inflow has {ratio:,.3g} times the energy of the load: {balance.mean_inflow_energy_mw:,.6g} "
            "MW on "
            f"average against {balance.mean_load_mw:,.6g} MW.",
            file=layout.INFLOW_STATS,
            field="mean_m3s",
            value=balance.mean_inflow_energy_mw,
            suggestion="Check that inflows are in m3/s and incremental, and productivities in MW per m3/s.",
        )
    if balance.capacity_mw > MOST_CAPACITY * balance.peak_load_mw:
        reporter.warning(
            "ModelQuality",
            f"Capacity is {balance.capacity_mw / balance.peak_load_mw:,.3g} times the peak load: "
            f"{balance.capacity_mw:,.6g} MW against {balance.peak_load_mw:,.6g} MW.",
            file=layout.LOAD_STATS,
            field="mean_mw",
            value=balance.peak_load_mw,
            suggestion="Check that loads and limits of generation are in MW.",
        )
    days = balance.storage_days
    if days is not None and days > MOST_STORAGE_DAYS:
        reporter.warning(
            "ModelQuality",
            f"Full reservoirs hold {days:,.6g} days of load ({balance.stored_energy_mwh / 1000.0:,.6g} GWh).",
            file=layout.HYDROS,
            field="reservoir",
            value=days,
            suggestion="Check that storages are in hm3 (millions of m3).",
        )
