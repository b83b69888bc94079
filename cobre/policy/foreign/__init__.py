"""Policy directories in the FlatBuffers format of cobre-rs, and the cuts that value a study's end.

::

    <policy>/   manifest.bin   cuts/000.bin  cuts/001.bin ...   (one file for each pool of cuts)

A pool holds the cuts on the future cost after one stage, in $, and which entity each coefficient belongs
to and at which date the state is valued. Writing is in :mod:`cobre.policy.foreign.encode`, apart because only
it needs the ``flatbuffers`` package.
"""

from cobre.policy.foreign.directory import PolicyDirectory
from cobre.policy.foreign.records import (
    FORMAT_VERSION,
    Manifest,
    ManifestEdge,
    ManifestNode,
    Pool,
    SeasonManifest,
    SlotKind,
    StateSlot,
)
from cobre.policy.foreign.slots import state_slots

__all__ = [
    "FORMAT_VERSION",
    "Manifest",
    "ManifestEdge",
    "ManifestNode",
    "PolicyDirectory",
    "Pool",
    "SeasonManifest",
    "SlotKind",
    "StateSlot",
    "state_slots",
]
