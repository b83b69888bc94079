"""The draws of a block of scenarios: path through the graph, noise and initial state.

All of it is a function of (seed, scenario, stage): scenario s draws as forward pass s of an iteration 0,
which training does not have.
"""

# Kernels are typed by Numba when they are compiled, not by annotations.
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False
from __future__ import annotations

import numpy as np
from numba import njit

from cobre.lp.arrays import LpStruct
from cobre.native import inner_kernel, struct_at
from cobre.sddp.kernel.draws import next_node
from cobre.sddp.kernel.graph import GraphStruct
from cobre.sddp.kernel.structs import GRAPH, LP
from cobre.sddp.simulation.arrays import FIRST_SCENARIO, NUM_SCENARIOS, SCENARIOS, ScenarioStruct
from cobre.stochastic import (
    SamplerStruct,
    forward_noise,
    initial_memory,
    prepare_forward,
    realise,
    sample_opening,
    sample_uniform,
)

_ITERATION = 0
"""Of all scenarios; those of training count from 1."""


@inner_kernel
def _choose_path(num_openings, graph, block, tree_seed, place, scenario):
    stages = len(graph.stage_start) - 1
    enumerated = len(graph.path_node) > 0
    node = np.int64(0)
    for stage in range(stages):
        if enumerated:
            node = graph.path_node[scenario, stage]
            opening = graph.path_opening[scenario, stage]
        else:
            if stage > 0:
                first = graph.successor_start[node]
                if graph.successor_start[node + 1] - first == 1:
                    node = graph.successor[first]
                else:
                    drawn = sample_uniform(tree_seed, _ITERATION, scenario, stage)
                    node = next_node(graph, node, drawn)
            opening = sample_opening(tree_seed, _ITERATION, scenario, stage, num_openings[node])
        block.node_all[place, stage] = node
        block.opening_all[place, stage] = opening


@inner_kernel
def _start(sampler, block, place, scenario):
    """Write the state that a scenario starts from: replayed history has its own past inflows."""
    start = block.state[0, place]
    for component in range(len(start)):
        start[component] = block.initial_state[component]
    initial_memory(sampler, _ITERATION, scenario, block.memory)
    for hydro in range(block.memory.shape[0]):
        for lane in range(block.memory.shape[1]):
            component = block.memory_place[hydro, lane]
            if component >= 0:
                start[component] = block.memory[hydro, lane]


@njit(cache=True, nogil=True)
def draw_shared_points(sampler_arrays):
    """Draw the points that the scenarios of a block share; before :func:`draw_scenarios`.

    A kernel of its own, because few studies draw fresh noise by a scheme: the others do not compile them.
    """
    prepare_forward(SamplerStruct(sampler_arrays), _ITERATION)


@njit(cache=True, nogil=True)
def draw_scenarios(sampler_arrays, study, tree_seed):
    """Draw what the scenarios of the present block have, into its buffers.

    Parameters
    ----------
    sampler_arrays
        See :class:`cobre.stochastic.SamplerArrays`.
    study
        Addresses of its structs, see :class:`cobre.sddp.simulation.arrays.SimulationStructs`.
    tree_seed
        uint64 seed of in-sample draws.
    """
    sampler, block = SamplerStruct(sampler_arrays), struct_at(ScenarioStruct, study[SCENARIOS])
    graph, num_openings = struct_at(GraphStruct, study[GRAPH]), struct_at(LpStruct, study[LP]).num_openings
    for place in range(block.counts[NUM_SCENARIOS]):
        scenario = block.counts[FIRST_SCENARIO] + place
        _choose_path(num_openings, graph, block, tree_seed, place, scenario)
        _start(sampler, block, place, scenario)
        for stage in range(block.noise.shape[1]):
            node = block.node_all[place, stage]
            row = block.tree_row[node] + block.opening_all[place, stage]
            forward_noise(sampler, _ITERATION, scenario, stage, row, block.drawn)
            realise(sampler, stage, block.drawn, block.noise[place, stage])
