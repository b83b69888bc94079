"""What kernels of a simulation work on: the buffers of one block of scenarios, and the way back to templates.

Their size depends on the block, not on the number of scenarios.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cobre.lp import StageTemplate, StateLayout
from cobre.lp.arrays import (
    F64_1D,
    F64_2D,
    F64_3D,
    I32_1D,
    I64_1D,
    I64_2D,
    BasisStore,
    BasisStruct,
    CutPool,
    LpArrays,
    LpStruct,
    LpWorkspace,
    PoolStruct,
    WorkspaceStruct,
)
from cobre.lp.cost_components import component_names
from cobre.lp.engines.own.trial import OwnArrays, OwnStruct
from cobre.lp.reduction import CoreForm
from cobre.native import HeldStruct, array_struct
from cobre.sddp.kernel.buffers import I64_3D, LP_COUNTS
from cobre.sddp.kernel.graph import GraphArrays, GraphStruct
from cobre.sddp.kernel.structs import BASIS, BUFFERS, GRAPH, LP, OWN, POOL, STRUCTS, WORKSPACE

SCENARIOS = BUFFERS
"""Where the address of the buffers is, in the place that those of an iteration have."""

# Columns of ScenarioArrays.failure.
FAILED_STATUS = 0
FAILED_STAGE = 1
FAILURE_FIELDS = 2

# Entries of ScenarioArrays.counts.
NUM_SCENARIOS = 0
GROUP_SIZE = 1
FIRST_SCENARIO = 2


class ScenarioArrays(NamedTuple):
    """A block of at most B scenarios; T stages, N nodes, n state components, E random entities.

    Attributes
    ----------
    counts
        int64[3]: scenarios of the present block, scenarios of a group, number of the first scenario.
    next_group
        Shared counter from which workers take their next group.
    order
        The scenarios of the block in the order in which they are taken at a stage, int64[B].
    node_all, opening_all
        Node and opening of every scenario at every stage, int64[B, T].
    noise
        What is drawn: values of the random entities, float64[B, T, E].
    state
        Incoming state by stage, and behind the last stage the state that is left, float64[T + 1, B, n].
    realised
        Values of the random entities as LPs have them, float64[T, B, E].
    column, dual
        Values of columns and duals of rows in physical units, by stage, then scenario: stage t begins at
        ``*_start[t]``, and a scenario takes ``*_width[t]`` numbers.
    discount
        Factor to the first stage, float64[T + 1, B].
    stage_cost, future_cost
        $ of each stage without and of the discounted future cost, not discounted to the first stage,
        float64[B, T].
    component_cost, payer_cost
        Discounted cost of each scenario by stage and component, float64[B, T, K], and over all stages by
        payer, float64[B, P].
    failure
        int64[B, 2]: ``FAILED_*`` columns; status 0 = nothing.
    initial_state, tree_row, memory_place, memory, drawn
        As in :class:`cobre.sddp.kernel.buffers.IterationBuffers`.
    column_unit, row_unit
        Physical units in one unit of a column of the LP, and $ per physical unit in one unit of a row's dual;
        laid out as ``LpArrays.cost`` and ``LpArrays.row_lower``.
    way_first, way_start, way_row, way_value
        The way back from duals of core forms: those of row r of node k are entries ``way_start[way_first[k] +
        r]`` to the next; see :class:`cobre.lp.reduction.CoreForm`.
    lp_counts
        How much work LPs were, int64[workers, T, LP_COUNTS].
    """

    counts: I64_1D
    next_group: I64_1D
    order: I64_1D
    node_all: I64_2D
    opening_all: I64_2D
    noise: F64_3D
    state: F64_3D
    realised: F64_3D
    column: F64_1D
    column_start: I64_1D
    column_width: I64_1D
    dual: F64_1D
    dual_start: I64_1D
    dual_width: I64_1D
    discount: F64_2D
    stage_cost: F64_2D
    future_cost: F64_2D
    component_cost: F64_3D
    payer_cost: F64_2D
    failure: I64_2D
    initial_state: F64_1D
    tree_row: I64_1D
    memory_place: I64_2D
    memory: F64_2D
    drawn: F64_1D
    column_unit: F64_1D
    row_unit: F64_1D
    way_first: I64_1D
    way_start: I64_1D
    way_row: I32_1D
    way_value: F64_1D
    lp_counts: I64_3D


ScenarioStruct = array_struct(ScenarioArrays)


def scenario_words(lp: LpArrays, graph: GraphArrays) -> int:
    """Return how many numbers a scenario takes in the buffers of a block."""
    columns, rows = _widths(lp, graph)
    stages, states, entities = len(columns), int(lp.state_col.shape[1]), int(lp.noise_start.shape[1]) - 1
    payers = int(lp.cost_payer.max(initial=-1)) + 1
    per_stage = 2 * entities + states + 5 + len(component_names())
    return int(columns.sum() + rows.sum()) + stages * per_stage + payers


def scenario_arrays(
    lp: LpArrays,
    graph: GraphArrays,
    layout: StateLayout,
    templates: Sequence[StageTemplate],
    forms: Sequence[CoreForm | None],
    block: int,
    group: int,
    workers: int,
) -> ScenarioArrays:
    """Allocate the buffers of blocks of ``block`` scenarios, in groups of ``group``.

    Parameters
    ----------
    templates
        Of all nodes, scaled.
    forms
        By node; ``None`` where HiGHS solves its LPs.
    """
    columns, rows = _widths(lp, graph)
    stages, states, entities = len(columns), lp.state_col.shape[1], lp.noise_start.shape[1] - 1
    way_first, way_start, way_row, way_value = _way_back(forms)
    return ScenarioArrays(
        counts=np.array([0, group, 0], np.int64),
        next_group=np.zeros(1, np.int64),
        order=np.arange(block, dtype=np.int64),
        node_all=np.zeros((block, stages), np.int64),
        opening_all=np.zeros((block, stages), np.int64),
        noise=np.zeros((block, stages, entities)),
        state=np.zeros((stages + 1, block, states)),
        realised=np.zeros((stages, block, entities)),
        column=np.zeros(block * int(columns.sum())),
        column_start=block * _starts(columns),
        column_width=columns,
        dual=np.zeros(block * int(rows.sum())),
        dual_start=block * _starts(rows),
        dual_width=rows,
        discount=np.ones((stages + 1, block)),
        stage_cost=np.zeros((block, stages)),
        future_cost=np.zeros((block, stages)),
        component_cost=np.zeros((block, stages, len(component_names()))),
        payer_cost=np.zeros((block, int(lp.cost_payer.max(initial=-1)) + 1)),
        failure=np.zeros((block, FAILURE_FIELDS), np.int64),
        initial_state=np.ascontiguousarray(layout.initial, np.float64),
        tree_row=_starts(lp.num_openings),
        memory_place=np.ascontiguousarray(layout.memory_place, np.int64),
        memory=np.zeros(layout.memory_place.shape),
        # Room for noise by entity in front of the independent numbers, of which there are no more.
        drawn=np.zeros(2 * entities),
        column_unit=np.concatenate([template.col_scale for template in templates]),
        row_unit=np.concatenate([template.row_scale * lp.cost_scale for template in templates]),
        way_first=way_first,
        way_start=way_start,
        way_row=way_row,
        way_value=way_value,
        lp_counts=np.zeros((workers, stages, LP_COUNTS), np.int64),
    )


def _widths(lp: LpArrays, graph: GraphArrays) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the most columns and rows of the nodes of each stage."""
    first = graph.stage_start[:-1]
    return np.maximum.reduceat(lp.num_cols, first), np.maximum.reduceat(lp.num_rows, first)


def _starts(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(sizes)])[:-1].astype(np.int64)


def _way_back(
    forms: Sequence[CoreForm | None],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]:
    """Return the maps from duals of core forms to those of templates; nodes share equal ones."""
    first = np.zeros(len(forms), np.int64)
    known: dict[tuple[int, int, int], int] = {}
    starts, rows, values = [np.zeros(0, np.int64)], [np.zeros(0, np.int32)], [np.zeros(0)]
    place = entries = 0
    for node, form in enumerate(forms):
        if form is None:
            continue
        key = (id(form.dual_start), id(form.dual_row), id(form.dual_value))
        if key not in known:
            known[key] = place
            starts.append(entries + form.dual_start.astype(np.int64))
            rows.append(form.dual_row.astype(np.int32))
            values.append(form.dual_value)
            place += len(form.dual_start)
            entries += len(form.dual_row)
        first[node] = known[key]
    return first, np.concatenate(starts), np.concatenate(rows), np.concatenate(values)


class SimulationStructs:
    """The structs of a simulation; ``addresses`` are valid as long as this object lives, intp[STRUCTS]."""

    def __init__(
        self,
        lp: LpArrays,
        graph: GraphArrays,
        pool: CutPool,
        work: LpWorkspace,
        basis: BasisStore,
        scenarios: ScenarioArrays,
        own: OwnArrays,
    ) -> None:
        self._held = {
            LP: HeldStruct(LpStruct, lp),
            GRAPH: HeldStruct(GraphStruct, graph),
            POOL: HeldStruct(PoolStruct, pool),
            WORKSPACE: HeldStruct(WorkspaceStruct, work),
            BASIS: HeldStruct(BasisStruct, basis),
            SCENARIOS: HeldStruct(ScenarioStruct, scenarios),
            OWN: HeldStruct(OwnStruct, own),
        }
        self.addresses = np.array([self._held[place].address for place in range(STRUCTS)], np.intp)
