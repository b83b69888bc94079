"""What launched ranks run; in a module that a new process can import."""

from __future__ import annotations

import hashlib

import cobre.case
from cobre.stochastic import build_opening_tree


def tree_digest(comm, path):
    tree = build_opening_tree(cobre.case.load(path), comm=comm)
    digest = hashlib.sha256()
    for array in (tree.offset, tree.noise, tree.inflow_m3s, tree.load_mw, tree.ncs_mw):
        digest.update(array.tobytes())
    return digest.hexdigest()
