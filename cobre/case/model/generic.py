"""Generic linear constraints, resolved to one entry for each LP row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

VariableKind = Literal[
    "hydro_storage",
    "hydro_storage_initial",
    "hydro_storage_final",
    "hydro_useful_volume_initial",
    "hydro_useful_volume_final",
    "hydro_turbined",
    "hydro_spillage",
    "hydro_diversion",
    "hydro_outflow",
    "hydro_generation",
    "hydro_evaporation",
    "hydro_withdrawal",
    "hydro_inflow",
    "thermal_generation",
    "anticipated_decision",
    "line_direct",
    "line_reverse",
    "line_exchange",
    "bus_deficit",
    "bus_excess",
    "pumping_flow",
    "pumping_power",
    "contract_import",
    "contract_export",
    "non_controllable_generation",
    "non_controllable_curtailment",
]


@dataclass(frozen=True, slots=True)
class GenericTerm:
    """``coefficient * variable``.

    Attributes
    ----------
    kind
        The variable.
    entity_id
        Its entity.
    block
        Position of the block the term refers to, or ``None`` for a stage-level variable (storage,
        withdrawal, anticipated decision, evaporation and boundary storages of the whole stage).
    bus_id
        Restricts turbined flow or generation to the unit groups on that bus.
    """

    coefficient: float
    kind: VariableKind
    entity_id: int
    block: int | None
    bus_id: int | None = None


@dataclass(frozen=True, slots=True)
class GenericRow:
    """``lower <= sum of terms <= upper`` at one stage.

    Attributes
    ----------
    constraint_id, name
        Of the constraint the row belongs to.
    stage
        Position of the stage.
    block
        Position of the block the row belongs to; ``None`` for a row of the whole stage.
    lower, upper
        Bounds; infinite where the row has none.
    penalty
        $ per unit of violation and hour of the row's block (or stage); ``None`` = hard.
    """

    constraint_id: int
    name: str
    stage: int
    block: int | None
    terms: tuple[GenericTerm, ...]
    lower: float
    upper: float
    penalty: float | None

    def __repr__(self) -> str:
        place = f"stage={self.stage}, block={self.block}"
        limits = f"{self.lower:g} to {self.upper:g}"
        return (
            f"GenericRow({self.name!r}, {place}, {len(self.terms)} terms, {limits}, penalty={self.penalty})"
        )
