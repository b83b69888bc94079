"""What plants remember of past inflows, carried to the next stage.

With the memory m of a plant and its inflow z of this stage, the outgoing memory is ``carry m + gain z`` (see
:class:`cobre.stochastic.par.LagDynamics`). No decision changes it; its columns exist for the cuts.
"""

from __future__ import annotations

import numpy as np

from cobre.lp.index import IdArray
from cobre.lp.stage.context import StageContext


def add_memory(stage: StageContext) -> IdArray:
    """Add the outgoing memories and their equations; return the columns, in state order."""
    lp, layout = stage.lp, stage.layout
    lags = layout.inflow.lags
    parts = [part for part in layout.components if part.kind == "inflow_lag"]
    labels = tuple(f"{stage.topology.hydro_labels[part.entity]}, {lags.names[part.lane]}" for part in parts)
    outgoing = lp.add_columns("hydro_inflow_memory", (labels,), lower=-np.inf)
    rows = lp.add_equations("hydro_inflow_memory", (labels,))
    lp.put(rows, outgoing, 1.0)
    carry, gain = lags.carry[stage.position], lags.gain[stage.position]
    entity = np.array([part.entity for part in parts], np.int64)
    lane = np.array([part.lane for part in parts], np.int64)
    # A component that nobody needs is not in the state; what is carried from it is not needed either.
    lp.put_state(rows[:, None], layout.memory_place[entity], carry[lane])
    lp.put_noise(rows, stage.noise.hydro[entity], gain[lane])
    return outgoing
