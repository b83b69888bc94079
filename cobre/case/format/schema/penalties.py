"""``penalties.json``: the global costs, and the shape of their overrides in entities."""

from __future__ import annotations

from cobre.fields import FormatModel, NonNegative, Positive, RootModel


class DeficitSegmentEntry(FormatModel):
    """A slice of unserved load; MW and $/MWh."""

    depth_mw: Positive | None = None
    """Size of the slice, MW; null = unlimited, for the last slice only."""
    cost: NonNegative
    """Price of unserved load in the slice, $/MWh."""


class BusPenalties(FormatModel):
    """Section ``bus``; $/MWh."""

    deficit_segments: list[DeficitSegmentEntry]
    """Slices of unserved load by strictly increasing cost."""
    excess_cost: Positive
    """Price of energy that nobody takes, $/MWh."""


class LinePenalties(FormatModel):
    """Section ``line``; $/MWh."""

    exchange_cost: Positive
    """Cost of a flow in either direction, $/MWh."""


class NonControllablePenalties(FormatModel):
    """Section ``non_controllable_source``; $/MWh."""

    curtailment_cost: Positive
    """Cost of available energy that is not fed in, $/MWh."""


class GlobalHydroPenalties(FormatModel):
    """Section ``hydro``; $/(m3/s.h), storage and filling in $/hm3, generation in $/MWh."""

    spillage_cost: Positive
    """Cost of spilling, $/(m3/s.h)."""
    diversion_cost: Positive
    """Cost of diverting, $/(m3/s.h)."""
    turbined_cost: NonNegative
    """Cost of turbining, $/(m3/s.h)."""
    storage_violation_below_cost: Positive
    """Price of storage below its minimum, $/hm3."""
    filling_target_violation_cost: Positive
    """Price of water missing in a filling, $/hm3."""
    turbined_violation_below_cost: Positive
    """Price of turbined flow below its minimum, $/(m3/s.h)."""
    outflow_violation_below_cost: Positive
    """Price of outflow below its minimum, $/(m3/s.h)."""
    outflow_violation_above_cost: Positive
    """Price of outflow above its maximum, $/(m3/s.h)."""
    generation_violation_below_cost: Positive
    """Price of generation below its minimum, $/MWh."""
    evaporation_violation_cost: Positive
    """Price of evaporation other than the model gives, $/(m3/s.h)."""
    water_withdrawal_violation_cost: Positive
    """Price of a withdrawal other than asked for, $/(m3/s.h)."""
    evaporation_violation_pos_cost: NonNegative | None = None
    """Price of more evaporation than the model gives, $/(m3/s.h); null takes the one for both directions."""
    evaporation_violation_neg_cost: NonNegative | None = None
    """Price of less evaporation than the model gives, $/(m3/s.h); null takes the one for both directions."""
    water_withdrawal_violation_pos_cost: NonNegative | None = None
    """Price of more withdrawal than asked for, $/(m3/s.h); null takes the one for both directions."""
    water_withdrawal_violation_neg_cost: NonNegative | None = None
    """Price of less withdrawal than asked for, $/(m3/s.h); null takes the one for both directions."""
    inflow_nonnegativity_cost: NonNegative | None = None
    """Price of the flow that lifts a negative inflow to 0, $/(m3/s.h); null = 1000."""


class HydroPenaltyOverrides(FormatModel):
    """``hydros[].penalties``; ``None`` takes the global value, 0 is allowed."""

    spillage_cost: NonNegative | None = None
    """Cost of spilling, $/(m3/s.h); null takes the global one."""
    diversion_cost: NonNegative | None = None
    """Cost of diverting, $/(m3/s.h); null takes the global one."""
    turbined_cost: NonNegative | None = None
    """Cost of turbining, $/(m3/s.h); null takes the global one."""
    storage_violation_below_cost: NonNegative | None = None
    """Price of storage below its minimum, $/hm3; null takes the global one."""
    filling_target_violation_cost: NonNegative | None = None
    """Price of water missing in a filling, $/hm3; null takes the global one."""
    turbined_violation_below_cost: NonNegative | None = None
    """Price of turbined flow below its minimum, $/(m3/s.h); null takes the global one."""
    outflow_violation_below_cost: NonNegative | None = None
    """Price of outflow below its minimum, $/(m3/s.h); null takes the global one."""
    outflow_violation_above_cost: NonNegative | None = None
    """Price of outflow above its maximum, $/(m3/s.h); null takes the global one."""
    generation_violation_below_cost: NonNegative | None = None
    """Price of generation below its minimum, $/MWh; null takes the global one."""
    evaporation_violation_cost: NonNegative | None = None
    """Price of evaporation other than the model gives, $/(m3/s.h); null takes the global one."""
    water_withdrawal_violation_cost: NonNegative | None = None
    """Price of a withdrawal other than asked for, $/(m3/s.h); null takes the global one."""
    inflow_nonnegativity_cost: NonNegative | None = None
    """Price of the flow that lifts a negative inflow to 0, $/(m3/s.h); null takes the global one."""


class PenaltiesFile(RootModel):
    """``penalties.json``: costs that hold where an entity or a stage has none of its own."""

    bus: BusPenalties
    """Costs at buses."""
    line: LinePenalties
    """Costs of lines."""
    hydro: GlobalHydroPenalties
    """Costs of hydro plants."""
    non_controllable_source: NonControllablePenalties
    """Costs of non-controllable sources."""
