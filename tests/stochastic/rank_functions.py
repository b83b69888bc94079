"""Functions that launched ranks run; they have to live in a module that a new process can import."""

from __future__ import annotations

from cobre.stochastic import build_opening_tree


def tree_bytes(comm, case):
    tree = build_opening_tree(case, comm=comm)
    arrays = (tree.noise, tree.inflow_m3s, tree.load_mw, tree.ncs_mw)
    writable = any(array.flags.writeable for array in arrays)
    return [array.tobytes() for array in arrays], tree.offset.tolist(), writable
