"""Policy directories and checkpoints: Parquet and JSON, checksummed, never half-written.

``docs/policy-format.md`` describes the files. :mod:`~cobre.policy.store.directory` writes and reads them,
:mod:`~cobre.policy.checkpoints` keeps the last few of a run, :mod:`~cobre.policy.fingerprint`
tells whether a study is the one a policy was trained for, :mod:`~cobre.policy.warm_start` what of
a policy another study can start from, :mod:`~cobre.policy.protection` whether a run may replace
what an output directory holds, and :mod:`~cobre.policy.foreign.conversion` converts to and from the format of
cobre-rs.
"""

from cobre.policy.bases import StartingBases
from cobre.policy.boundary import BoundaryCuts, boundary_cuts, future_cost_floor
from cobre.policy.checkpoints import FoundCheckpoint, latest_checkpoint, write_checkpoint
from cobre.policy.digest import policy_digest
from cobre.policy.fingerprint import Fingerprint, Topic, case_fingerprint, differences, require_same
from cobre.policy.foreign.conversion import case_nodes, case_transitions, from_flatbuffers, to_flatbuffers
from cobre.policy.history import history_columns, history_records
from cobre.policy.model import (
    CheckpointData,
    LowerBoundKind,
    NodeCuts,
    NodeEntry,
    PolicyData,
    StateEntry,
    TransitionEntry,
    VisitedStates,
)
from cobre.policy.protection import (
    PlannedWork,
    StoredWork,
    objection,
    protected_work,
    source_digest,
    stored_work,
)
from cobre.policy.store.directory import read_checkpoint, read_policy_directory, write_policy_directory
from cobre.policy.warm_start import Adaptation, adapted_cuts, compatibility

__all__ = [
    "Adaptation",
    "BoundaryCuts",
    "CheckpointData",
    "Fingerprint",
    "FoundCheckpoint",
    "LowerBoundKind",
    "NodeCuts",
    "NodeEntry",
    "PlannedWork",
    "PolicyData",
    "StartingBases",
    "StateEntry",
    "StoredWork",
    "Topic",
    "TransitionEntry",
    "VisitedStates",
    "adapted_cuts",
    "boundary_cuts",
    "case_fingerprint",
    "case_nodes",
    "case_transitions",
    "compatibility",
    "differences",
    "from_flatbuffers",
    "future_cost_floor",
    "history_columns",
    "history_records",
    "latest_checkpoint",
    "objection",
    "policy_digest",
    "protected_work",
    "read_checkpoint",
    "read_policy_directory",
    "require_same",
    "source_digest",
    "stored_work",
    "to_flatbuffers",
    "write_checkpoint",
    "write_policy_directory",
]
