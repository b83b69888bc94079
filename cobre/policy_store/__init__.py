"""Policy directories and checkpoints: Parquet and JSON, checksummed, never half-written.

``docs/policy-format.md`` describes the files. :mod:`~cobre.policy_store.directory` writes and reads them,
:mod:`~cobre.policy_store.checkpoints` keeps the last few of a run, :mod:`~cobre.policy_store.fingerprint`
tells whether a study is the one a policy was trained for, :mod:`~cobre.policy_store.compatibility` what of
a policy another study can start from, :mod:`~cobre.policy_store.protection` whether a run may replace
what an output directory holds, and :mod:`~cobre.policy_store.interchange` converts to and from the format of
cobre-rs.
"""

from cobre.policy_store.bases import StartingBases
from cobre.policy_store.checkpoints import FoundCheckpoint, latest_checkpoint, write_checkpoint
from cobre.policy_store.compatibility import Adaptation, adapted_cuts, compatibility
from cobre.policy_store.digest import policy_digest
from cobre.policy_store.directory import read_checkpoint, read_policy_directory, write_policy_directory
from cobre.policy_store.fingerprint import Fingerprint, Topic, case_fingerprint, differences, require_same
from cobre.policy_store.history import history_columns, history_records
from cobre.policy_store.interchange import case_nodes, case_transitions, from_flatbuffers, to_flatbuffers
from cobre.policy_store.protection import (
    PlannedWork,
    StoredWork,
    objection,
    protected_work,
    source_digest,
    stored_work,
)
from cobre.policy_store.records import (
    CheckpointData,
    LowerBoundKind,
    NodeCuts,
    NodeEntry,
    PolicyData,
    StateEntry,
    TransitionEntry,
    VisitedStates,
)

__all__ = [
    "Adaptation",
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
    "case_fingerprint",
    "case_nodes",
    "case_transitions",
    "compatibility",
    "differences",
    "from_flatbuffers",
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
