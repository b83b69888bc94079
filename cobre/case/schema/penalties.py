"""``penalties.json``: the global costs, and the shape of their overrides in entities."""

from __future__ import annotations

from cobre.case.schema.base import FormatModel, NonNegative, Positive, RootModel


class DeficitSegmentEntry(FormatModel):
    """A slice of unserved load; MW and $/MWh."""

    depth_mw: Positive | None = None
    cost: NonNegative


class BusPenalties(FormatModel):
    """Section ``bus``; $/MWh."""

    deficit_segments: list[DeficitSegmentEntry]
    excess_cost: Positive


class LinePenalties(FormatModel):
    """Section ``line``; $/MWh."""

    exchange_cost: Positive


class NonControllablePenalties(FormatModel):
    """Section ``non_controllable_source``; $/MWh."""

    curtailment_cost: Positive


class GlobalHydroPenalties(FormatModel):
    """Section ``hydro``; $/(m3/s.h), storage and filling in $/hm3, generation in $/MWh."""

    spillage_cost: Positive
    diversion_cost: Positive
    turbined_cost: NonNegative
    storage_violation_below_cost: Positive
    filling_target_violation_cost: Positive
    turbined_violation_below_cost: Positive
    outflow_violation_below_cost: Positive
    outflow_violation_above_cost: Positive
    generation_violation_below_cost: Positive
    evaporation_violation_cost: Positive
    water_withdrawal_violation_cost: Positive
    evaporation_violation_pos_cost: NonNegative | None = None
    evaporation_violation_neg_cost: NonNegative | None = None
    water_withdrawal_violation_pos_cost: NonNegative | None = None
    water_withdrawal_violation_neg_cost: NonNegative | None = None
    inflow_nonnegativity_cost: NonNegative | None = None


class HydroPenaltyOverrides(FormatModel):
    """``hydros[].penalties``; ``None`` takes the global value, 0 is allowed."""

    spillage_cost: NonNegative | None = None
    diversion_cost: NonNegative | None = None
    turbined_cost: NonNegative | None = None
    storage_violation_below_cost: NonNegative | None = None
    filling_target_violation_cost: NonNegative | None = None
    turbined_violation_below_cost: NonNegative | None = None
    outflow_violation_below_cost: NonNegative | None = None
    outflow_violation_above_cost: NonNegative | None = None
    generation_violation_below_cost: NonNegative | None = None
    evaporation_violation_cost: NonNegative | None = None
    water_withdrawal_violation_cost: NonNegative | None = None
    inflow_nonnegativity_cost: NonNegative | None = None


class PenaltiesFile(RootModel):
    """The whole file."""

    bus: BusPenalties
    line: LinePenalties
    hydro: GlobalHydroPenalties
    non_controllable_source: NonControllablePenalties
