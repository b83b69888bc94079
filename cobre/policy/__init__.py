"""Policies: one model, their directories and checkpoints on disk, and what other studies make of them.

``docs/policy-format.md`` describes the files. :mod:`~cobre.policy.model` holds what a policy is,
:mod:`~cobre.policy.store` writes and reads our directories (Parquet and JSON, checksummed, never
half-written), :mod:`~cobre.policy.foreign` those of cobre-rs, :mod:`~cobre.policy.checkpoints` keeps the
last few of a run,
:mod:`~cobre.policy.fingerprint` states whether a study is the one a policy was trained for,
:mod:`~cobre.policy.warm_start` what of a policy another study can start from, :mod:`~cobre.policy.boundary`
what values its end, and :mod:`~cobre.policy.protection` whether a run may replace what an output directory
holds.
"""

from cobre.policy.bases import FirstBases, StartingBases
from cobre.policy.boundary import BoundaryCuts, boundary_cuts, future_cost_floor
from cobre.policy.checkpoints import FoundCheckpoint, latest_checkpoint, write_checkpoint
from cobre.policy.digest import policy_digest
from cobre.policy.fingerprint import (
    Fingerprint,
    Topic,
    case_fingerprint,
    differences,
    require_same,
    study_fingerprint,
    with_fingerprint,
)
from cobre.policy.foreign.conversion import (
    case_nodes,
    case_transitions,
    from_flatbuffers,
    to_flatbuffers,
    write_flatbuffers,
)
from cobre.policy.formats import format_of
from cobre.policy.history import history_columns, history_records
from cobre.policy.model import (
    CheckpointData,
    LowerBoundKind,
    LpEngine,
    LpEngines,
    NodeCuts,
    NodeEntry,
    Policy,
    StateEntry,
    TransitionEntry,
)
from cobre.policy.protection import (
    PlannedWork,
    StoredWork,
    described_work,
    objection,
    protected_work,
    source_digest,
    stored_work,
)
from cobre.policy.store.directory import (
    StoredDirectory,
    read_checkpoint,
    read_policy_directory,
    write_policy_directory,
)
from cobre.policy.visited import VisitedRows, VisitedStates
from cobre.policy.warm_start import (
    Adaptation,
    LoadedCuts,
    adapted_cuts,
    compatibility,
    cuts_to_simulate,
    read_policy,
    state_entries,
    warm_cuts,
)

__all__ = [
    "Adaptation",
    "BoundaryCuts",
    "CheckpointData",
    "Fingerprint",
    "FirstBases",
    "FoundCheckpoint",
    "LoadedCuts",
    "LowerBoundKind",
    "LpEngine",
    "LpEngines",
    "NodeCuts",
    "NodeEntry",
    "PlannedWork",
    "Policy",
    "StartingBases",
    "StateEntry",
    "StoredDirectory",
    "StoredWork",
    "Topic",
    "TransitionEntry",
    "VisitedRows",
    "VisitedStates",
    "adapted_cuts",
    "boundary_cuts",
    "case_fingerprint",
    "case_nodes",
    "case_transitions",
    "compatibility",
    "cuts_to_simulate",
    "described_work",
    "differences",
    "format_of",
    "from_flatbuffers",
    "future_cost_floor",
    "history_columns",
    "history_records",
    "latest_checkpoint",
    "objection",
    "policy_digest",
    "protected_work",
    "read_checkpoint",
    "read_policy",
    "read_policy_directory",
    "require_same",
    "source_digest",
    "state_entries",
    "stored_work",
    "study_fingerprint",
    "to_flatbuffers",
    "warm_cuts",
    "with_fingerprint",
    "write_checkpoint",
    "write_flatbuffers",
    "write_policy_directory",
]
