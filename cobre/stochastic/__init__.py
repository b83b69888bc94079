"""Uncertainty: seeds, random numbers, the opening tree and what forward passes draw from it.

Every random number is a function of a seed and of what it is for (opening and stage; iteration, scenario
and stage), never of the order in which things are computed.
"""

from cobre.stochastic.sampling import sample_opening, sample_uniform
from cobre.stochastic.tree import OpeningTree, build_opening_tree

__all__ = ["OpeningTree", "build_opening_tree", "sample_opening", "sample_uniform"]
