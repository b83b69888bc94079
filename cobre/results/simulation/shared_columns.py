"""Columns that many tables of a simulation have."""

from __future__ import annotations

from cobre.results.columns import code, date, identifier

SCENARIO = identifier("scenario_id", "Number of the scenario, from 0")
STAGE = (
    SCENARIO,
    identifier("stage_id", "Declared id of the stage"),
    identifier("node_id", "Id of the node of the policy graph; on a chain the position of the stage"),
)
BLOCK = (*STAGE, identifier("block_id", "Id of the load block inside its stage", nullable=True))
START = date("start_date", "First day of the stage")
OPERATIVE = code(
    "operative_state_code",
    "0 out of service, 1 in service without capacity, 2 operating, 3 operating at its largest",
)
