"""The energy balance of a case on one screen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cobre.case.balance.capacity import KINDS, StagePower, expected_inflow, expected_source_mw, stage_powers
from cobre.case.balance.energy import inflow_energy_mw, stored_energy_mwh
from cobre.case.model import Case

FloatArray = NDArray[np.float64]

_HOURS_PER_YEAR = 8766.0
_MOST_BUSES = 8
"""Buses that have a line of their own."""


@dataclass(frozen=True)
class BusBalance:
    """Power at a bus, at the stage and block where least is left (or most is missing), MW.

    Attributes
    ----------
    load_mw
        Expected load.
    local_mw, import_mw
        Most power of what stands there, and most that lines bring.
    """

    id: int
    name: str
    stage_id: int
    block_id: int
    load_mw: float
    local_mw: float
    import_mw: float

    @property
    def shortage_mw(self) -> float:
        """Load that cannot be served; negative where power is left."""
        return self.load_mw - self.local_mw - self.import_mw


@dataclass(frozen=True)
class EnergyBalance:
    """What a case has against what its load takes; ``str`` gives a table.

    Capacities are upper bounds; loads, inflows and availabilities are expected values.

    Attributes
    ----------
    stage_id, block_id
        Where least power is left (or most is missing).
    load_mw, capacity_mw
        Of the system there.
    capacity_by_kind
        MW there by kind of source, without those that have none.
    short_stages
        Ids of stages with a block whose load is above all capacity.
    peak_load_mw
        Largest load of the system at any block.
    buses
        By id.
    mean_load_mw, mean_inflow_energy_mw, mean_source_mw, mean_other_mw
        Averages over the study: load; power of the inflow on its way to the last plant; expected availability
        of non-controllable sources; most power of thermal plants and imports.
    hours
        Of the study.
    stored_energy_mwh, initial_energy_mwh
        In full reservoirs, and at the start, above the least storages.
    thermal_cost, deficit_cost
        Least and largest, $/MWh; ``None`` where there is none.
    """

    stage_id: int
    block_id: int
    load_mw: float
    capacity_mw: float
    capacity_by_kind: Mapping[str, float]
    short_stages: tuple[int, ...]
    peak_load_mw: float
    buses: tuple[BusBalance, ...]
    mean_load_mw: float
    mean_inflow_energy_mw: float
    mean_source_mw: float
    mean_other_mw: float
    hours: float
    stored_energy_mwh: float
    initial_energy_mwh: float
    thermal_cost: tuple[float, float] | None
    deficit_cost: tuple[float, float] | None

    @property
    def storage_days(self) -> float | None:
        """Days of average load that full reservoirs can serve; ``None`` without load."""
        return self._days(self.stored_energy_mwh)

    @property
    def initial_days(self) -> float | None:
        """The same of what is stored at the start."""
        return self._days(self.initial_energy_mwh)

    def _days(self, energy_mwh: float) -> float | None:
        return energy_mwh / (24.0 * self.mean_load_mw) if self.mean_load_mw > 0.0 else None

    def as_dict(self) -> dict[str, Any]:
        """Return the numbers as plain data."""
        buses = [{**asdict(bus), "shortage_mw": bus.shortage_mw} for bus in self.buses]
        return {
            **asdict(self),
            "buses": buses,
            "storage_days": self.storage_days,
            "initial_days": self.initial_days,
        }

    def rows(self) -> dict[str, str]:
        """Return the lines of the table, by title."""
        parts = ", ".join(
            f"{kind.replace('_', '-')} {most:,.0f}" for kind, most in self.capacity_by_kind.items()
        )
        rows = {
            "power": f"load {self.load_mw:,.0f} MW, capacity {self.capacity_mw:,.0f} MW at stage "
            f"{self.stage_id}, "
            f"block {self.block_id}, where least is left ({parts or 'none'}); peak load "
            f"{self.peak_load_mw:,.0f} MW"
        }
        if len(self.buses) > 1:
            # The tightest first; buses without load are not worth a line.
            loaded = sorted(
                (bus for bus in self.buses if bus.load_mw > 0.0), key=lambda bus: -bus.shortage_mw
            )
            for bus in loaded[:_MOST_BUSES]:
                rows[f"  {bus.name}"] = (
                    f"load {bus.load_mw:,.0f} MW, capacity {bus.local_mw:,.0f} MW, lines bring at most "
                    f"{bus.import_mw:,.0f} MW (stage {bus.stage_id}, block {bus.block_id})"
                )
            if len(loaded) > _MOST_BUSES:
                rows["  other buses"] = f"{len(loaded) - _MOST_BUSES}, with more to spare"
        rows["energy"] = (
            f"load {self._year(self.mean_load_mw)}, inflow {self._year(self.mean_inflow_energy_mw)}, "
            f"non-controllable {self._year(self.mean_source_mw)}, thermal and imports at most "
            f"{self._year(self.mean_other_mw)}"
        )
        if self.storage_days is not None and self.stored_energy_mwh > 0.0:
            rows["storage"] = (
                f"{self.storage_days:,.1f} days of load when full, {self.initial_days:,.1f} at the start "
                f"({self.stored_energy_mwh / 1000.0:,.0f} GWh and "
                f"{self.initial_energy_mwh / 1000.0:,.0f} GWh)"
            )
        costs = [
            f"{name} {_span(ends)} $/MWh"
            for name, ends in (("thermal", self.thermal_cost), ("deficit", self.deficit_cost))
            if ends is not None
        ]
        rows["cost order"] = ", ".join(costs) or "none"
        return rows

    def __str__(self) -> str:
        rows = self.rows()
        width = max(len(title) for title in rows)
        return "\n".join(f"{title:<{width}}  {text}" for title, text in rows.items())

    def __repr__(self) -> str:
        return (
            f"EnergyBalance(load {self.load_mw:,.0f} MW, capacity {self.capacity_mw:,.0f} MW at stage "
            f"{self.stage_id}; {len(self.short_stages)} stages short)"
        )

    @staticmethod
    def _year(power_mw: float) -> str:
        return f"{power_mw * _HOURS_PER_YEAR / 1000.0:,.0f} GWh a year"


def energy_balance(case: Case, inflow_m3s: FloatArray) -> EnergyBalance:
    """Return the energy balance of a case.

    Parameters
    ----------
    inflow_m3s
        Expected incremental inflow by (stage, hydro), such as ``mean_m3s`` of the inflow model.
    """
    powers = stage_powers(case)
    left = [power.by_kind.sum(axis=0) - power.load.sum(axis=0) for power in powers]
    stage = min(range(len(left)), key=lambda position: float(left[position].min()))
    block = int(left[stage].argmin())
    there = powers[stage].by_kind[:, block]
    hours = [np.array([item.hours for item in stage.blocks]) for stage in case.stages]
    stage_hours = np.array([stage.hours for stage in case.stages])
    sources = expected_source_mw(case)
    source_mw = [
        (available[:, None] * data.ncs_factor).sum(axis=0)
        for available, data in zip(sources, case.stage_data, strict=True)
    ]
    other = [KINDS.index("thermal"), KINDS.index("contract")]
    full, initial = stored_energy_mwh(case)
    used = [
        data.thermal_cost[data.thermal_max_mw.max(axis=1) > 0.0] for data in case.stage_data if case.thermals
    ]
    return EnergyBalance(
        stage_id=case.stages[stage].id,
        block_id=case.stages[stage].blocks[block].id,
        load_mw=float(powers[stage].load[:, block].sum()),
        capacity_mw=float(there.sum()),
        capacity_by_kind={kind: float(most) for kind, most in zip(KINDS, there, strict=True) if most > 0.0},
        short_stages=tuple(
            item.id for item, spare in zip(case.stages, left, strict=True) if _is_short(float(spare.min()))
        ),
        peak_load_mw=max(float(power.load.sum(axis=0).max()) for power in powers),
        buses=_buses(case, powers),
        mean_load_mw=_mean([power.load.sum(axis=0) for power in powers], hours),
        mean_inflow_energy_mw=float(
            np.average(inflow_energy_mw(case, expected_inflow(case, inflow_m3s)), weights=stage_hours)
        ),
        mean_source_mw=_mean(source_mw, hours),
        mean_other_mw=_mean([power.by_kind[other].sum(axis=0) for power in powers], hours),
        hours=float(stage_hours.sum()),
        stored_energy_mwh=full,
        initial_energy_mwh=initial,
        thermal_cost=_ends(np.concatenate(used) if used else np.zeros(0)),
        deficit_cost=_ends(
            np.array([segment.cost_per_mwh for bus in case.buses for segment in bus.deficit_segments])
        ),
    )


def _buses(case: Case, powers: list[StagePower]) -> tuple[BusBalance, ...]:
    spare = np.concatenate([power.local + power.imports - power.load for power in powers], axis=1)
    places = [
        (position, block) for position, power in enumerate(powers) for block in range(power.load.shape[1])
    ]
    found = []
    for number, bus in enumerate(case.buses):
        position, block = places[int(spare[number].argmin())]
        power, stage = powers[position], case.stages[position]
        found.append(
            BusBalance(
                bus.id,
                bus.name,
                stage.id,
                stage.blocks[block].id,
                float(power.load[number, block]),
                float(power.local[number, block]),
                float(power.imports[number, block]),
            )
        )
    return tuple(found)


def _is_short(spare_mw: float) -> bool:
    return spare_mw < -1e-6


def _mean(power: list[FloatArray], hours: list[FloatArray]) -> float:
    return float(np.average(np.concatenate(power), weights=np.concatenate(hours)))


def _ends(values: FloatArray) -> tuple[float, float] | None:
    return (float(values.min()), float(values.max())) if values.size else None


def _span(ends: tuple[float, float]) -> str:
    least, most = ends
    return f"{least:,.6g}" if least == most else f"{least:,.6g} to {most:,.6g}"
