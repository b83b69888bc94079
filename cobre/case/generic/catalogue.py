"""The variables an expression may name: whose they are, and what their arguments mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

from cobre.case.model import VariableKind

Registry = Literal["hydro", "thermal", "line", "bus", "pumping station", "contract", "source"]
"""The entity class an id belongs to."""

Scope = Literal["block", "stage", "boundary", "evaporation"]
"""How a variable relates to blocks.

``block``: one value for each block; without a block argument, that of the row's block.
``stage``: one value for the stage; no block argument.
``boundary``: a storage at the start or end of the stage, or with a block argument of that block.
``evaporation``: one value for the stage with parallel blocks, one for each chronological block.
"""


@dataclass(frozen=True)
class VariableRule:
    """What one variable needs and accepts."""

    registry: Registry
    scope: Scope = "block"
    takes_bus: bool = False


def _rules() -> dict[VariableKind, VariableRule]:
    return {
        "hydro_storage": VariableRule("hydro", "stage"),
        "hydro_storage_initial": VariableRule("hydro", "boundary"),
        "hydro_storage_final": VariableRule("hydro", "boundary"),
        "hydro_useful_volume_initial": VariableRule("hydro", "boundary"),
        "hydro_useful_volume_final": VariableRule("hydro", "boundary"),
        "hydro_turbined": VariableRule("hydro", takes_bus=True),
        "hydro_spillage": VariableRule("hydro"),
        "hydro_diversion": VariableRule("hydro"),
        "hydro_outflow": VariableRule("hydro"),
        "hydro_generation": VariableRule("hydro", takes_bus=True),
        "hydro_evaporation": VariableRule("hydro", "evaporation"),
        "hydro_withdrawal": VariableRule("hydro", "stage"),
        "hydro_inflow": VariableRule("hydro"),
        "thermal_generation": VariableRule("thermal"),
        "anticipated_decision": VariableRule("thermal", "stage"),
        "line_direct": VariableRule("line"),
        "line_reverse": VariableRule("line"),
        "line_exchange": VariableRule("line"),
        "bus_deficit": VariableRule("bus"),
        "bus_excess": VariableRule("bus"),
        "pumping_flow": VariableRule("pumping station"),
        "pumping_power": VariableRule("pumping station"),
        "contract_import": VariableRule("contract"),
        "contract_export": VariableRule("contract"),
        "non_controllable_generation": VariableRule("source"),
        "non_controllable_curtailment": VariableRule("source"),
    }


VARIABLES: Final[Mapping[VariableKind, VariableRule]] = MappingProxyType(_rules())
"""Every variable, in the order in which the terms of a row are listed."""

BY_NAME: Final[Mapping[str, VariableKind]] = MappingProxyType({str(kind): kind for kind in VARIABLES})
