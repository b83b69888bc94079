"""Water under way: what was released earlier and arrives now or later.

The outgoing component (h, j) is what reaches the plant below h in stage t + j: the incoming component
(h, j + 1) and the share of this stage's release that takes that long. The incoming component (h, 1) arrives
in this stage, evenly over its hours.
"""

from __future__ import annotations

import numpy as np

from cobre.lp.index import IdArray
from cobre.lp.stage.context import StageContext


def add_transit(stage: StageContext) -> IdArray:
    """Add the outgoing water in transit and the arrivals; return its columns, in state order.

    Releases of this stage are added to the rows ``hydro_transit`` by :mod:`cobre.lp.stage.flows`.
    """
    lp, layout = stage.lp, stage.layout
    parts = [
        (place, component)
        for place, component in enumerate(layout.components)
        if component.kind == "in_transit"
    ]
    labels = tuple(f"{stage.topology.hydro_labels[part.entity]}, {part.offset}" for _, part in parts)
    remaining = len(stage.case.stages) - 1 - stage.position
    in_time = np.array([part.offset <= remaining for _, part in parts], bool)
    outgoing = lp.add_columns("hydro_in_transit", (labels,), upper=np.where(in_time, np.inf, 0.0))
    rows = lp.add_equations("hydro_transit", (labels,), where=in_time)
    lp.put(rows, outgoing, 1.0)
    for number, (place, part) in enumerate(parts):
        if part.offset < layout.transit_depth[part.entity]:
            lp.put_state(rows[number], place + 1, 1.0)
        if part.offset == 1:
            target = stage.balance[stage.topology.downstream[part.entity]]
            lp.put_state(target, place, stage.period_hours / stage.stage.hours)
    return outgoing
