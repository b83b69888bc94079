"""Time: stages and their blocks, seasons, and the graph of the policy."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field
from typing import Literal

from cobre.rules.contracts import RiskMeasure

BlockMode = Literal["parallel", "chronological"]
SamplingMethod = Literal[
    "saa", "lhs", "qmc_sobol", "qmc_halton", "owen_sobol", "owen_halton", "historical_residuals"
]
CycleType = Literal["monthly", "weekly", "custom"]


@dataclass(frozen=True)
class Block:
    """A load block of a stage."""

    id: int
    name: str
    hours: float


@dataclass(frozen=True)
class Stage:
    """One decision period."""

    id: int
    start_date: datetime.date
    end_date: datetime.date
    season_id: int | None
    blocks: tuple[Block, ...]
    num_openings: int
    """Generated openings; 1 where all openings of the stage come from external scenarios."""
    discount_factor: float
    """One-step factor that multiplies the cost of all later stages (exactly 1 without a rate)."""
    block_mode: BlockMode = "parallel"
    risk: RiskMeasure = field(default_factory=RiskMeasure)
    sampling_method: SamplingMethod = "saa"
    storage_is_state: bool = True
    lags_are_state: bool = False

    @property
    def hours(self) -> float:
        """Hours of the stage, from its blocks."""
        return sum(block.hours for block in self.blocks)

    def __repr__(self) -> str:
        dates = f"{self.start_date} to {self.end_date}"
        return f"Stage(id={self.id}, {dates}, {len(self.blocks)} blocks, {self.num_openings} openings)"


@dataclass(frozen=True)
class Season:
    """One season of the cycle; days are inclusive on both ends where they are given."""

    id: int
    label: str
    month_start: int
    day_start: int | None = None
    month_end: int | None = None
    day_end: int | None = None


@dataclass(frozen=True)
class SeasonMap:
    """How dates map to seasons."""

    cycle_type: CycleType
    seasons: tuple[Season, ...]


@dataclass(frozen=True)
class PostStudyStage:
    """A period after the study, for commitments made inside it."""

    start_date: datetime.date
    hours: float


@dataclass(frozen=True)
class PolicyNode:
    """A node of the policy graph: one stage under one scenario of an external library, or any."""

    id: int
    stage: int
    """Position of its stage."""
    scenario_id: int | None = None
    label: str | None = None


@dataclass(frozen=True)
class Transition:
    """An edge between two nodes (positions in :attr:`PolicyGraph.nodes`)."""

    source: int
    target: int
    probability: float


@dataclass(frozen=True)
class PolicyGraph:
    """Which node follows which; nodes are ordered by stage, then by id.

    On a plain chain there is one node for each stage, and its id is the stage's position.
    """

    nodes: tuple[PolicyNode, ...]
    transitions: tuple[Transition, ...]
    root_risk: RiskMeasure | None = None
    """How the openings of the first stage are weighed; ``None`` = by that stage's own measure."""

    @property
    def has_scenarios(self) -> bool:
        """Whether a node has a scenario of its own."""
        return any(node.scenario_id is not None for node in self.nodes)

    @property
    def is_chain(self) -> bool:
        """Whether every stage has exactly one node, without a scenario of its own."""
        return all(
            node.stage == position and node.scenario_id is None for position, node in enumerate(self.nodes)
        )

    def __repr__(self) -> str:
        return f"PolicyGraph({len(self.nodes)} nodes, {len(self.transitions)} transitions)"


def chain_graph(stages: int) -> PolicyGraph:
    """Return the graph of a plain chain."""
    return PolicyGraph(
        tuple(PolicyNode(position, position) for position in range(stages)),
        tuple(Transition(position, position + 1, 1.0) for position in range(stages - 1)),
    )
