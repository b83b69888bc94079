"""The tables of a simulation: every column once, with its type, unit and meaning.

Names, order and units of the columns are those of cobre-rs; names of entities and dates come after them, and
so do columns that it does not have. Schemas, ``variables.csv`` and the page of docs are made from here.
"""

from __future__ import annotations

from typing import Final

from cobre.members import members_of
from cobre.results.columns import Column, TableSpec, code, date, identifier, number, table, text
from cobre.results.simulation.shared_columns import BLOCK, OPERATIVE, SCENARIO, STAGE, START

EXTENSIONS: Final = members_of("cobre.results.simulation.extensions")
"""Types of entities that cobre-rs does not have, each a module with ``TABLE``, ``COSTS`` and ``MAKER``."""


def _cost(name: str, description: str) -> Column:
    return number(name, "$", description)


COSTS: Final = table(
    "costs",
    "a stage of a scenario",
    STAGE,
    identifier("block_id", "Always null: costs are those of the whole stage", nullable=True),
    _cost("total_cost", "Immediate and future cost"),
    _cost("immediate_cost", "Cost of the stage itself, not discounted: the sum of all components"),
    _cost("future_cost", "Value of the outgoing state by the policy, discounted to this stage"),
    number("discount_factor", "", "Factor that discounts a cost of this stage to the first one"),
    _cost("thermal_cost", "Generation of thermal plants"),
    _cost("anticipated_thermal_cost", "Commitments ahead of time, charged when they are made"),
    _cost("contract_cost", "Energy bought, less what is earned with energy sold"),
    _cost("deficit_cost", "Load that is not served"),
    _cost("excess_cost", "Generation beyond the load"),
    _cost("storage_violation_cost", "Storage below its minimum"),
    _cost("filling_target_cost", "Storage missing in the first filling of reservoirs"),
    _cost("hydro_violation_cost", "Sum of the six violation costs of hydro plants that follow"),
    _cost("outflow_violation_below_cost", "Outflow below its minimum"),
    _cost("outflow_violation_above_cost", "Outflow above its maximum"),
    _cost("turbined_violation_cost", "Turbined flow below its minimum"),
    _cost("generation_violation_cost", "Hydro generation below its minimum"),
    _cost("evaporation_violation_cost", "Evaporation that differs from its model"),
    _cost("withdrawal_violation_cost", "Withdrawal that differs from the scheduled one"),
    _cost("inflow_penalty_cost", "Water added where inflow is negative"),
    _cost("generic_violation_cost", "Violation of generic constraints"),
    _cost("spillage_cost", "Spilt water"),
    _cost("turbined_cost", "Turbined water"),
    _cost("curtailment_cost", "Curtailed generation of non-controllable sources"),
    _cost("exchange_cost", "Flow on lines"),
    _cost("pumping_cost", "Pumping; 0, since its energy is paid for where it is generated"),
    _cost("diversion_cost", "Diverted water"),
    *(column for module in EXTENSIONS for column in module.COSTS),
    _cost(
        "non_controllable_credit",
        "Reward for what non-controllable sources could generate, negative: the study's cost rewards "
        "generation, which is this and the cost of curtailment",
    ),
    START,
)

HYDROS: Final = table(
    "hydros",
    "a hydro plant in a block",
    BLOCK,
    identifier("hydro_id", "Hydro plant"),
    number("turbined_m3s", "m3/s", "Turbined flow"),
    number("spillage_m3s", "m3/s", "Spilt flow"),
    number(
        "outflow_m3s",
        "m3/s",
        "Turbined and spilt flow, without diversion; of a plant out of service the river that passes",
    ),
    number(
        "evaporation_m3s",
        "m3/s",
        "Evaporation, 0 without a model; negative where rain exceeds it",
        nullable=True,
    ),
    number("diverted_inflow_m3s", "m3/s", "Flow received through diversion channels", nullable=True),
    number("diverted_outflow_m3s", "m3/s", "Flow sent through the diversion channel", nullable=True),
    number("incremental_inflow_m3s", "m3/s", "Natural inflow between this plant and those above it"),
    number("inflow_m3s", "m3/s", "The same as incremental_inflow_m3s"),
    number(
        "storage_initial_hm3",
        "hm3",
        "Storage at the start of the block where blocks are chronological, else of the stage",
    ),
    number(
        "storage_final_hm3",
        "hm3",
        "Storage at the end of the block where blocks are chronological, else of the stage",
    ),
    number("generation_mw", "MW", "Mean generation"),
    number("generation_mwh", "MWh", "Energy generated"),
    number(
        "equivalent_productivity_mw_per_m3s",
        "MW/(m3/s)",
        "Power for each unit of turbined flow at the reference storage",
    ),
    number(
        "accumulated_productivity_mw_per_m3s",
        "MW/(m3/s)",
        "Sum of the equivalent productivities of the plant and all plants below it",
    ),
    number(
        "incremental_inflow_energy_mw",
        "MW",
        "Accumulated productivity times natural inflow",
    ),
    number(
        "stored_energy_initial_mwh",
        "MWh",
        "Energy of the initial storage above the plant's minimum, in its whole cascade",
    ),
    number(
        "stored_energy_final_mwh",
        "MWh",
        "Energy of the final storage above the plant's minimum, in its whole cascade",
    ),
    number("spillage_cost", "$", "Cost of spilt water"),
    number(
        "water_value_per_hm3",
        "$/hm3",
        "Dual of the water balance: change of the cost for one more hm3, so negative where water is worth "
        "money; not discounted",
    ),
    code(
        "storage_binding_code",
        "Limits that the final storage is at: 0 none, 1 minimum (or below it), 2 maximum, 3 both",
    ),
    code(
        "operative_state_code",
        "0 out of service or filling for the first time, 1 in service without capacity, 2 operating, "
        "3 turbined flow or generation at its largest",
    ),
    number("turbined_slack_m3s", "m3/s", "Turbined flow missing to its minima (plant and unit groups)"),
    number("outflow_slack_below_m3s", "m3/s", "Outflow missing to its minimum"),
    number("outflow_slack_above_m3s", "m3/s", "Outflow beyond its maximum"),
    number("generation_slack_mw", "MW", "Generation missing to its minima (plant and unit groups)"),
    number("storage_violation_below_hm3", "hm3", "Storage missing to its minimum"),
    number(
        "filling_target_violation_hm3",
        "hm3",
        "Storage missing to the rate and to the target of the first filling",
    ),
    number("evaporation_violation_pos_m3s", "m3/s", "Evaporation beyond its model"),
    number("evaporation_violation_neg_m3s", "m3/s", "Evaporation missing to its model"),
    number("inflow_nonnegativity_slack_m3s", "m3/s", "Water added where inflow is negative"),
    number("water_withdrawal_violation_pos_m3s", "m3/s", "Withdrawal beyond the scheduled one"),
    number("water_withdrawal_violation_neg_m3s", "m3/s", "Withdrawal missing to the scheduled one"),
    number(
        "integrated_equivalent_productivity_mw_per_m3s",
        "MW/(m3/s)",
        "Equivalent productivity at the mean head between the limits of storage",
    ),
    number(
        "integrated_accumulated_productivity_mw_per_m3s",
        "MW/(m3/s)",
        "Sum of the integrated productivities of the plant and all plants below it",
    ),
    number("stored_energy_initial_mw", "MW", "stored_energy_initial_mwh over the hours of the stage"),
    number("stored_energy_final_mw", "MW", "stored_energy_final_mwh over the hours of the stage"),
    number(
        "delayed_inflow_m3s",
        "m3/s",
        "Flow that arrives after its travel time, released by plants above in this stage or earlier",
    ),
    number("water_withdrawal_m3s", "m3/s", "Withdrawal, negative where water is given back"),
    text("hydro_name", "Name of the plant"),
    START,
)

HYDRO_BUS_GENERATION: Final = table(
    "hydro_bus_generation",
    "a hydro plant at a bus in a block",
    BLOCK,
    identifier("hydro_id", "Hydro plant"),
    identifier("bus_id", "Bus that its unit groups feed"),
    number("turbined_m3s", "m3/s", "Turbined flow"),
    number("generation_mw", "MW", "Mean generation"),
    number("generation_mwh", "MWh", "Energy generated"),
    text("hydro_name", "Name of the plant"),
    text("bus_name", "Name of the bus"),
    START,
)

THERMALS: Final = table(
    "thermals",
    "a thermal plant in a block",
    BLOCK,
    identifier("thermal_id", "Thermal plant"),
    number("generation_mw", "MW", "Mean generation"),
    number("generation_mwh", "MWh", "Energy generated"),
    number("generation_cost", "$", "Cost of generation; 0 where it was paid when it was committed"),
    Column("is_anticipated", "bool", "", "Whether the plant is committed ahead of time"),
    number(
        "anticipated_committed_mw",
        "MW",
        "Commitment that is delivered in this stage; null where there is none",
        nullable=True,
    ),
    number(
        "anticipated_decision_mw",
        "MW",
        "Sum of the commitments made in this stage; null where none can be made",
        nullable=True,
    ),
    OPERATIVE,
    text("thermal_name", "Name of the plant"),
    START,
)

BUSES: Final = table(
    "buses",
    "a bus in a block",
    BLOCK,
    identifier("bus_id", "Bus"),
    number("load_mw", "MW", "Load"),
    number("load_mwh", "MWh", "Energy of the load"),
    number("deficit_mw", "MW", "Load that is not served"),
    number("deficit_mwh", "MWh", "Energy that is not served"),
    number("excess_mw", "MW", "Generation beyond the load"),
    number("excess_mwh", "MWh", "Energy beyond the load"),
    number(
        "spot_price",
        "$/MWh",
        "Dual of the load balance over the hours of the block: cost of one more MWh; not discounted",
    ),
    text("bus_name", "Name of the bus"),
    START,
)

EXCHANGES: Final = table(
    "exchanges",
    "a line in a block",
    BLOCK,
    identifier("line_id", "Line"),
    number("direct_flow_mw", "MW", "Flow from source to target, as sent"),
    number("reverse_flow_mw", "MW", "Flow from target to source, as sent"),
    number("net_flow_mw", "MW", "Direct less reverse flow"),
    number("net_flow_mwh", "MWh", "Energy of the net flow"),
    number("losses_mw", "MW", "What does not arrive of both flows"),
    number("losses_mwh", "MWh", "Energy that does not arrive"),
    number("exchange_cost", "$", "Cost of both flows"),
    OPERATIVE,
    text("line_name", "Name of the line"),
    START,
)

PUMPING_STATIONS: Final = table(
    "pumping_stations",
    "a pumping station in a block",
    BLOCK,
    identifier("pumping_station_id", "Pumping station"),
    number("pumped_flow_m3s", "m3/s", "Pumped flow"),
    number("pumped_volume_hm3", "hm3", "Pumped water"),
    number("power_consumption_mw", "MW", "Power taken from the bus"),
    number("energy_consumption_mwh", "MWh", "Energy taken from the bus"),
    number("pumping_cost", "$", "0: the energy is paid for where it is generated"),
    OPERATIVE,
    text("pumping_station_name", "Name of the station"),
    START,
)

CONTRACTS: Final = table(
    "contracts",
    "a contract in a block",
    BLOCK,
    identifier("contract_id", "Contract"),
    number("power_mw", "MW", "Power bought or sold"),
    number("energy_mwh", "MWh", "Energy bought or sold"),
    number("price_per_mwh", "$/MWh", "Price; what is earned is negative"),
    number("total_cost", "$", "Price times energy"),
    OPERATIVE,
    text("contract_name", "Name of the contract"),
    START,
)

NON_CONTROLLABLES: Final = table(
    "non_controllables",
    "a non-controllable source in a block",
    BLOCK,
    identifier("non_controllable_id", "Non-controllable source"),
    number("generation_mw", "MW", "Mean generation"),
    number("generation_mwh", "MWh", "Energy generated"),
    number("available_mw", "MW", "What it could generate; 0 out of service"),
    number("curtailment_mw", "MW", "What it could generate and does not"),
    number("curtailment_mwh", "MWh", "Energy that is curtailed"),
    number("curtailment_cost", "$", "Curtailed energy at the price of curtailment"),
    code(
        "operative_state_code",
        "0 out of service, 1 nothing available, 2 operating, 3 generating all that is available",
    ),
    text("non_controllable_name", "Name of the source"),
    START,
)

GENERIC_VIOLATIONS: Final = table(
    "generic_violations",
    "a row of a generic constraint that has a penalty",
    STAGE,
    identifier("block_id", "Block of the row; null for a row of the whole stage", nullable=True),
    identifier("constraint_id", "Generic constraint"),
    number("slack_value", "varies", "Violation, in the unit of the constraint"),
    number("slack_cost", "$", "Cost of the violation"),
    text("constraint_name", "Name of the constraint"),
    START,
)

INFLOW_LAGS: Final = table(
    "inflow_lags",
    "what a plant's inflow model remembers as a stage begins",
    STAGE,
    identifier("hydro_id", "Hydro plant"),
    identifier("lag_index", "Place among what models remember, from 0; of plain lags 0 is the latest"),
    number("inflow_m3s", "m3/s", "Past inflow"),
    text("lag_name", "What is remembered, such as 'lag 1' or 'month so far'"),
    text("hydro_name", "Name of the plant"),
    START,
)

IN_TRANSIT: Final = table(
    "in_transit",
    "water under way to a plant as a stage ends, by the stage of its arrival",
    STAGE,
    identifier("hydro_id", "Hydro plant that it reaches"),
    identifier("lag", "Stages until it arrives, from 1"),
    number("in_transit_volume_hm3", "hm3", "Water under way that arrives so many stages later"),
    number("delayed_arrival_hm3", "hm3", "Water of earlier stages that arrived in this stage; 0 from lag 2"),
    text("hydro_name", "Name of the plant"),
    START,
)

TRANSIT_SEED: Final = table(
    "transit_seed",
    "a stage whose releases of a plant have not all arrived as the study ends",
    SCENARIO,
    identifier("hydro_id", "Hydro plant that released the water"),
    date("start_date", "First day of the release"),
    date("end_date", "Day after the release"),
    number("value_m3s", "m3/s", "Mean release, turbined and spilt"),
    text("hydro_name", "Name of the plant"),
)

ANTICIPATED_LANES: Final = table(
    "anticipated_lanes",
    "a commitment for a delivery after the study, from the stage where it is made",
    STAGE,
    identifier("thermal_id", "Thermal plant"),
    identifier("delivery_date", "First day of the delivery as YYYYMMDD"),
    number("deposited_decision_mw", "MW", "Commitment made in this stage, else 0"),
    number("carried_committed_mw", "MW", "Commitment as the stage ends"),
    text("thermal_name", "Name of the plant"),
    START,
)

PATHS: Final = table("paths", "a stage of a scenario", STAGE, START)

SCENARIO_SUMMARY: Final = table(
    "scenario_summary",
    "a scenario",
    SCENARIO,
    number(
        "probability", "", "Probability; null unless scenarios enumerate all that can happen", nullable=True
    ),
    number(
        "discounted_immediate_cost",
        "$",
        "Sum of the immediate costs of all stages, discounted to the first one; without the future cost",
    ),
    number("terminal_cost", "$", "Value of the final state by the policy, discounted to the first stage"),
)

TABLES: Final[tuple[TableSpec, ...]] = (
    COSTS,
    HYDROS,
    HYDRO_BUS_GENERATION,
    THERMALS,
    EXCHANGES,
    BUSES,
    PUMPING_STATIONS,
    CONTRACTS,
    NON_CONTROLLABLES,
    *(module.TABLE for module in EXTENSIONS),
    INFLOW_LAGS,
    IN_TRANSIT,
    TRANSIT_SEED,
    ANTICIPATED_LANES,
    GENERIC_VIOLATIONS,
    PATHS,
    SCENARIO_SUMMARY,
)
"""All tables; a study has those of the entities that it has."""
