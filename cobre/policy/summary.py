"""A policy directory in numbers: what ``cobre policy show`` reports."""

from __future__ import annotations

import datetime
import math
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from cobre.policy.foreign.directory import PolicyDirectory
from cobre.policy.formats import Format, format_of
from cobre.policy.protection import source_digest
from cobre.policy.store.directory import StoredDirectory


@dataclass(frozen=True)
class NodeSummary:
    """Cuts of a node; ``start_date`` and ``future_cost_floor`` ($) are ``None`` where the files lack them."""

    id: int
    stage_id: int | None
    start_date: datetime.date | None
    end_date: datetime.date | None
    cuts: int
    active: int
    loaded: int
    future_cost_floor: float | None


@dataclass(frozen=True)
class PolicySummary:
    """What a policy directory holds.

    Attributes
    ----------
    kind
        ``policy`` or ``checkpoint``.
    digest
        Of the cuts (``policy_sha256``); of a policy of cobre-rs, of all its files.
    study
        Digest of the study's fingerprint; ``None`` where the files do not hold the study.
    entities
        How many of each kind the study has, as far as its fingerprint holds the numbers.
    lower_bound, upper_bound
        Of the last iteration, $; the upper one is the mean cost of its forward passes. ``None`` = unknown.
    lower_bound_kind
        ``bound`` or ``estimate``.
    components
        What the numbers of a state are.
    """

    path: Path
    format: Format
    kind: str
    written_by: str
    created_at: str
    digest: str
    study: str | None
    iterations: int
    forward_passes: int
    seed: int
    lower_bound: float | None
    lower_bound_kind: str
    upper_bound: float | None
    started_from: str | None
    components: tuple[str, ...]
    nodes: tuple[NodeSummary, ...]
    entities: dict[str, int] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return everything as JSON can hold it, apart from dates and paths, which are texts there."""
        return {**asdict(self), "path": str(self.path.absolute())}


def summarise(path: Path) -> PolicySummary:
    """Read a policy directory of either format, and check that it is whole.

    Raises
    ------
    ValidationError
        When it is not there, damaged, or of another version.
    """
    return _own(path) if format_of(path) == "cobre" else _foreign(path)


def _own(path: Path) -> PolicySummary:
    stored = StoredDirectory(path)
    policy, document = stored.policy(), stored.manifest.document
    topics = policy.fingerprint.topics
    return PolicySummary(
        path=path,
        format="cobre",
        kind=stored.manifest.kind,
        written_by=f"cobre {document.get('cobre_version', '')}".strip(),
        created_at=str(document.get("created_at", "")),
        digest=policy.sha256(),
        study=policy.fingerprint.sha256() if topics else None,
        iterations=policy.completed_iterations,
        forward_passes=policy.forward_passes,
        seed=policy.seed,
        lower_bound=_last(policy.lower_bounds.tolist()),
        lower_bound_kind=policy.lower_bound_kind,
        upper_bound=_last(policy.upper_bounds.tolist()),
        started_from=policy.started_from,
        components=policy.state_names,
        nodes=tuple(
            NodeSummary(
                node.id,
                node.stage_id,
                node.start_date,
                node.end_date,
                len(cuts),
                int(cuts.active.sum()),
                node.loaded_cuts,
                _known(node.future_cost_floor),
            )
            for node, cuts in zip(policy.nodes, policy.cuts, strict=True)
        ),
        # A section of the study that lists entities has their number as its value, and their ids beside it.
        entities={
            name: topic.value
            for name, topic in sorted(topics.items())
            if f"{name}.id" in topics and name != "stages" and type(topic.value) is int and topic.value > 0
        },
    )


def _foreign(path: Path) -> PolicySummary:
    directory = PolicyDirectory(path)
    manifest = directory.manifest
    pools = [directory.pool(number) for number in range(manifest.num_pools)]
    stages = {node.pool_id: node for node in manifest.nodes}
    first = next((pool for pool in pools if pool.slots), None)
    return PolicySummary(
        path=path,
        format="cobre-rs",
        kind="policy",
        written_by=f"{manifest.software or 'unknown'} {manifest.software_version}".strip(),
        created_at=manifest.created_at,
        digest=source_digest(path),
        study=None,
        iterations=manifest.completed_iterations,
        forward_passes=manifest.forward_passes,
        seed=manifest.rng_seed,
        lower_bound=_known(manifest.final_lower_bound) if manifest.completed_iterations else None,
        lower_bound_kind="estimate",
        upper_bound=manifest.best_upper_bound,
        started_from=None,
        components=() if first is None else tuple(str(slot) for slot in first.slots),
        nodes=tuple(
            NodeSummary(
                stages[number].id if number in stages else number,
                stages[number].stage_id if number in stages else pool.graph_stage_id,
                None,
                pool.priced_date,
                len(pool.intercepts),
                int(pool.active.sum()),
                pool.warm_start_count,
                None,
            )
            for number, pool in enumerate(pools)
        ),
    )


def _last(values: list[float]) -> float | None:
    return _known(values[-1]) if values else None


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None
