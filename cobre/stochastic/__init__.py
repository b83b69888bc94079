"""Uncertainty: seeds, random numbers, inflow models, the opening tree and what forward passes draw.

Every random number is a function of a seed and of what it is for (opening and stage; iteration, scenario
and stage), never of the order in which things are computed.
"""

from cobre.stochastic.sampler import (
    SamplerArrays,
    SamplerStruct,
    forward_noise,
    initial_memory,
    make_sampler,
    noise_length,
    prepare_forward,
    realise,
)
from cobre.stochastic.sampling import sample_opening, sample_uniform
from cobre.stochastic.tree import OpeningTree, build_opening_tree

__all__ = [
    "OpeningTree",
    "SamplerArrays",
    "SamplerStruct",
    "build_opening_tree",
    "forward_noise",
    "initial_memory",
    "make_sampler",
    "noise_length",
    "prepare_forward",
    "realise",
    "sample_opening",
    "sample_uniform",
]
