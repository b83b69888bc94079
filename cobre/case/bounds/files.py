"""The Parquet files of ``constraints/`` that change limits and costs by stage: their columns and rules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from cobre.case.catalogue import EXTENSIONS
from cobre.case.format import layout

Sign = Literal["any", ">= 0", "> 0"]


@dataclass(frozen=True)
class BoundColumn:
    """A value column: the sign it must have, and whether it may differ by block."""

    name: str
    sign: Sign = ">= 0"
    by_block: bool = True
    required: bool = False


@dataclass(frozen=True)
class BoundFile:
    """One file.

    Attributes
    ----------
    has_blocks
        Whether there is a column ``block_id``.
    stage_rule
        Rule that a row of an unknown stage breaks; ``None`` = such rows are ignored with a warning.
    block_rule
        Rule that a block row with a value for the whole stage breaks.
    group_column
        Second id column, of unit groups.
    """

    path: str
    id_column: str
    columns: tuple[BoundColumn, ...]
    has_blocks: bool = True
    stage_rule: str | None = "5a.49"
    block_rule: str | None = None
    group_column: str | None = None


def _columns(*names: str) -> tuple[BoundColumn, ...]:
    return tuple(BoundColumn(name) for name in names)


def _costs(*names: str) -> tuple[BoundColumn, ...]:
    return tuple(BoundColumn(name, "> 0", by_block=False) for name in names)


THERMAL = BoundFile(
    layout.THERMAL_BOUNDS,
    "thermal_id",
    (*_columns("min_generation_mw", "max_generation_mw"), BoundColumn("cost_per_mwh", by_block=False)),
    block_rule="5a.37",
)
HYDRO = BoundFile(
    layout.HYDRO_BOUNDS,
    "hydro_id",
    (
        *_columns("min_turbined_m3s", "max_turbined_m3s", "min_outflow_m3s", "max_outflow_m3s"),
        *_columns("min_generation_mw", "max_generation_mw", "min_diversion_m3s", "max_diversion_m3s"),
        BoundColumn("min_storage_hm3", by_block=False),
        BoundColumn("max_storage_hm3", by_block=False),
        BoundColumn("filling_min_rate_m3s", by_block=False),
        BoundColumn("water_withdrawal_m3s", "any", by_block=False),
    ),
    block_rule="5a.36",
)
UNIT_GROUP = BoundFile(
    layout.UNIT_GROUP_BOUNDS,
    "hydro_id",
    _columns("min_generation_mw", "max_generation_mw", "min_turbined_m3s", "max_turbined_m3s"),
    group_column="hydro_unit_group_id",
)
LINE = BoundFile(layout.LINE_BOUNDS, "line_id", _columns("direct_mw", "reverse_mw"))
PUMPING = BoundFile(layout.PUMPING_BOUNDS, "pumping_station_id", _columns("min_m3s", "max_m3s"))
CONTRACT = BoundFile(
    layout.CONTRACT_BOUNDS,
    "contract_id",
    (*_columns("min_mw", "max_mw"), BoundColumn("price_per_mwh", "any")),
)
NCS = BoundFile(
    layout.NCS_BOUNDS,
    "ncs_id",
    (BoundColumn("available_generation_mw", by_block=False, required=True),),
    has_blocks=False,
    stage_rule="referential.7",
)

BUS_COSTS = BoundFile(layout.BUS_COSTS, "bus_id", _costs("excess_cost"), has_blocks=False, stage_rule=None)
LINE_COSTS = BoundFile(
    layout.LINE_COSTS, "line_id", _costs("exchange_cost"), has_blocks=False, stage_rule=None
)
HYDRO_COSTS = BoundFile(
    layout.HYDRO_COSTS,
    "hydro_id",
    _costs(
        *("spillage_cost", "diversion_cost", "turbined_cost"),
        *("storage_violation_below_cost", "filling_target_violation_cost", "turbined_violation_below_cost"),
        *("outflow_violation_below_cost", "outflow_violation_above_cost", "generation_violation_below_cost"),
        *("evaporation_violation_cost", "evaporation_violation_pos_cost", "evaporation_violation_neg_cost"),
        "water_withdrawal_violation_cost",
        *("water_withdrawal_violation_pos_cost", "water_withdrawal_violation_neg_cost"),
        "inflow_nonnegativity_cost",
    ),
    has_blocks=False,
    stage_rule=None,
)
NCS_COSTS = BoundFile(
    layout.NCS_COSTS, "ncs_id", _costs("curtailment_cost"), has_blocks=False, stage_rule=None
)

EXTENSION_BOUNDS = {
    kind.attribute: BoundFile(kind.bounds, kind.id_column, _columns(*(limit.key for limit in kind.limits)))
    for kind in EXTENSIONS
    if kind.bounds is not None
}
"""The files of types that are extensions, by the name of their collection."""
