"""Puts the parts of a stage LP together.

For stage t with blocks k of tau_k hours (H = sum of tau_k), zeta_k = 0.0036 tau_k (hm3 per m3/s), the rows
that parts share are

    water balance of hydro h (hm3; one for the stage, or one for each block where blocks are chronological)
        v'_h - v_h + sum_k zeta_k (q_h,k + s_h,k + w_h,k) - arrivals from above + zeta E_h + pumping
            - zeta (sigma_h + u-_h - u+_h) = zeta (a_h(w) - withdrawal_h)
    load balance of bus b in block k (MW)
        sum G + sum g + sum n + imports - exports + sum (1 - loss) f_in - sum f_out - sum c pumped
            + sum_j delta_j - e = D_b(w) phi_b,k

and whatever the modules of :mod:`cobre.lp.entities` add to them,

with v storage, q turbined flow, s spillage, w diversion, E evaporation, sigma the inflow slack, u the
withdrawal slacks, G hydro and g thermal generation, n generation of non-controllable sources, f line flows,
delta deficit, e excess, a inflow, D load, phi its block factor. Flow costs are $/(m3/s.h): a flow of 1 m3/s
for tau hours costs tau times the rate.
"""

from __future__ import annotations

from cobre.case.model import Case
from cobre.lp.assembly import AssembledLp
from cobre.lp.entities import PARTS
from cobre.lp.stage.context import FloatArray, StageContext
from cobre.lp.stage.flows import add_flows
from cobre.lp.stage.generic import add_generic_rows
from cobre.lp.stage.memory import add_memory
from cobre.lp.stage.network import add_load_rows, add_network
from cobre.lp.stage.production import add_production
from cobre.lp.stage.reservoir import add_reservoirs, add_water_uses
from cobre.lp.stage.sources import add_sources
from cobre.lp.stage.thermal import add_thermals
from cobre.lp.stage.transit import add_transit
from cobre.lp.state import StateLayout
from cobre.lp.topology import Topology

FUTURE_COST = "future_cost"


def build_stage(
    case: Case, topology: Topology, layout: StateLayout, position: int, most_available_mw: FloatArray
) -> tuple[AssembledLp, list[int]]:
    """Build the LP of the stage at ``position``.

    Parameters
    ----------
    most_available_mw
        Most that each non-controllable source may have at the stage, before block factors.

    Returns
    -------
    (AssembledLp, list of int)
        The LP, whose future cost is without cost and bounds, and the column of each outgoing component of
        the state.
    """
    stage = StageContext(case, topology, layout, position, most_available_mw)
    storage = add_reservoirs(stage)
    add_load_rows(stage)
    stage.lp.add_columns(FUTURE_COST)
    memory = add_memory(stage)
    transit = add_transit(stage)
    add_flows(stage)
    add_production(stage)
    add_water_uses(stage)
    commitments = add_thermals(stage)
    add_sources(stage)
    add_network(stage)
    further = [column for part in PARTS if case.entities(part.entry) for column in part.add(stage).tolist()]
    add_generic_rows(stage)
    state_columns = [*storage.tolist(), *memory.tolist(), *transit.tolist(), *commitments.tolist(), *further]
    return stage.lp.finish(len(layout), len(stage.noise)), state_columns
