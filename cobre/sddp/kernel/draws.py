"""The draws of an iteration's forward passes: their path through the graph, noise and initial state.

Every rank draws the paths of all passes, and the noise of its own ones. All of it is a function of
(seed, iteration, pass, stage), so nothing is communicated.
"""

# Kernels are typed by Numba when they are compiled, not by annotations.
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False
from __future__ import annotations

import numpy as np
from numba import njit

from cobre.lp.arrays import LpStruct
from cobre.native import inner_kernel, struct_at
from cobre.sddp.kernel.buffers import BuffersStruct
from cobre.sddp.kernel.graph import GraphStruct
from cobre.sddp.kernel.structs import BUFFERS, GRAPH, LP
from cobre.stochastic import (
    SamplerStruct,
    forward_noise,
    initial_memory,
    prepare_forward,
    realise,
    sample_opening,
    sample_uniform,
)


@inner_kernel
def next_node(graph, node, uniform):
    """Return the node that follows, by a number in [0, 1)."""
    first, last = graph.successor_start[node], graph.successor_start[node + 1]
    passed = 0.0
    for edge in range(first, last - 1):
        passed += graph.probability[edge]
        if uniform < passed:
            return graph.successor[edge]
    return graph.successor[last - 1]


@inner_kernel
def _choose_paths(num_openings, graph, buffers, tree_seed, iteration):
    """Write node and opening of every pass at every stage: a function of the arguments alone."""
    stages = len(graph.stage_start) - 1
    passes = len(buffers.pass_all)
    enumerated = len(graph.path_node) > 0
    for forward_pass in range(passes):
        node = np.int64(0)
        for stage in range(stages):
            if enumerated:
                node = graph.path_node[forward_pass, stage]
                opening = graph.path_opening[forward_pass, stage]
            else:
                if stage > 0:
                    first = graph.successor_start[node]
                    if graph.successor_start[node + 1] - first == 1:
                        node = graph.successor[first]
                    else:
                        drawn = sample_uniform(tree_seed, iteration + 1, forward_pass, stage)
                        node = next_node(graph, node, drawn)
                opening = sample_opening(tree_seed, iteration + 1, forward_pass, stage, num_openings[node])
            buffers.node_all[forward_pass, stage] = node
            buffers.opening_all[forward_pass, stage] = opening


@inner_kernel
def _start(sampler, buffers, iteration, own_pass, forward_pass):
    """Write the state that a pass starts from: replayed history has its own past inflows."""
    start = buffers.start_own[own_pass]
    for component in range(len(start)):
        start[component] = buffers.initial_state[component]
    initial_memory(sampler, iteration + 1, forward_pass, buffers.memory)
    for hydro in range(buffers.memory.shape[0]):
        for lane in range(buffers.memory.shape[1]):
            place = buffers.memory_place[hydro, lane]
            if place >= 0:
                start[place] = buffers.memory[hydro, lane]


@njit(cache=True, nogil=True)
def draw_points(sampler_arrays, iteration):
    """Draw the points that passes of an iteration (0-based) share; before :func:`draw_passes`.

    A kernel of its own, because few studies draw fresh noise by a scheme: the others do not compile them.
    """
    prepare_forward(SamplerStruct(sampler_arrays), iteration + 1)


@njit(cache=True, nogil=True)
def draw_passes(sampler_arrays, study, rank, tree_seed, iteration):
    """Fill ``node_all``, ``opening_all``, ``noise_own`` and ``start_own`` for an iteration (0-based).

    Parameters
    ----------
    sampler_arrays
        See :class:`cobre.stochastic.SamplerArrays`.
    study
        Addresses of its structs, see :mod:`cobre.sddp.kernel.structs`.
    tree_seed
        uint64 seed of in-sample draws.
    """
    sampler, buffers = SamplerStruct(sampler_arrays), struct_at(BuffersStruct, study[BUFFERS])
    graph, num_openings = struct_at(GraphStruct, study[GRAPH]), struct_at(LpStruct, study[LP]).num_openings
    _choose_paths(num_openings, graph, buffers, tree_seed, iteration)
    first_pass = buffers.pass_start[rank]
    for own_pass in range(buffers.noise_own.shape[0]):
        forward_pass = first_pass + own_pass
        _start(sampler, buffers, iteration, own_pass, forward_pass)
        for stage in range(buffers.noise_own.shape[1]):
            node = buffers.node_all[forward_pass, stage]
            row = buffers.tree_row[node] + buffers.opening_all[forward_pass, stage]
            forward_noise(sampler, iteration + 1, forward_pass, stage, row, buffers.drawn)
            realise(sampler, stage, buffers.drawn, buffers.noise_own[own_pass, stage])
