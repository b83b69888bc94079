"""What the forward passes of an iteration were paid for: by stage, by component, by entity."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cobre.errors import Problem
from cobre.lp.cost_components import COMPONENTS

if TYPE_CHECKING:
    import pyarrow as pa

    from cobre.sddp.kernel.buffers import IterationBuffers

FloatArray = NDArray[np.float64]

DOMINATING_SHARE = 0.5
"""Share of the cost from which violations are worth a warning."""

_NAMED = 3
"""How many components, entities and stages a message names."""

_ADVICE = "check limits, initial state, load and inflow of what is named"


@dataclass(frozen=True)
class CostBreakdown:
    """Expected cost of the forward passes of one iteration, $, discounted to the beginning of the study.

    Attributes
    ----------
    iteration
        From 1.
    stage_ids
        Declared ids of the stages.
    by_stage
        $ by stage and by component of :data:`cobre.lp.cost_components.COMPONENTS`.
    payers
        Component and entity of each amount of ``by_payer``; the future cost has none.
    by_payer
        $ over all stages.
    """

    iteration: int
    stage_ids: tuple[int, ...]
    by_stage: tuple[tuple[float, ...], ...]
    payers: tuple[tuple[str, str], ...]
    by_payer: tuple[float, ...]

    def __repr__(self) -> str:
        parts = ", ".join(f"{name}={cost:.6g}" for name, cost in self.components.items())
        return f"CostBreakdown(iteration={self.iteration}, total={self.total!r}, {parts})"

    @property
    def components(self) -> dict[str, float]:
        """$ by component, the largest first; without those that are 0."""
        return _largest_first(
            (part.name, math.fsum(stage[place] for stage in self.by_stage))
            for place, part in enumerate(COMPONENTS)
        )

    @property
    def total(self) -> float:
        """Sum of the components: the mean cost of the forward passes."""
        return math.fsum(cost for stage in self.by_stage for cost in stage)

    @property
    def violations(self) -> dict[str, float]:
        """$ of the components that are prices of violations, the largest first."""
        return _violations(self.components)

    @property
    def violation_share(self) -> float:
        """Share of violations in what is paid; revenues are not set off. 0 where nothing is paid."""
        return _share(sum(self.violations.values()), self.components)

    def share(self, component: str) -> float:
        """Return the share of a component in what is paid; negative for a revenue."""
        return _share(self.components.get(component, 0.0), self.components)

    def stages_of(self, component: str) -> dict[int, float]:
        """Return the $ of a component by stage id, the largest first; without stages that pay nothing."""
        place = [part.name for part in COMPONENTS].index(component)
        paid = ((stage, costs[place]) for stage, costs in zip(self.stage_ids, self.by_stage, strict=True))
        return _largest_first(paid)

    def entities_of(self, component: str) -> dict[str, float]:
        """Return the $ of a component by entity, the largest first; without entities that pay nothing."""
        paid = zip(self.payers, self.by_payer, strict=True)
        return _largest_first((entity, cost) for (name, entity), cost in paid if name == component)

    def stage_table(self) -> pa.Table:
        """Return the $ by stage and component, see :data:`cobre.results.costs.STAGE_COST_SCHEMA`."""
        from cobre.results.costs import stage_cost_table

        return stage_cost_table([self])

    def entity_table(self) -> pa.Table:
        """Return the $ by component and entity, see :data:`cobre.results.costs.ENTITY_COST_SCHEMA`."""
        from cobre.results.costs import entity_cost_table

        return entity_cost_table([self])

    def as_dict(self) -> dict[str, Any]:
        """Return totals and components for JSON, with the entities and stages that pay most of violations."""
        return {
            "iteration": self.iteration,
            "total": self.total,
            "violation_share": self.violation_share,
            "components": self.components,
            "violations": {
                name: {
                    "entities": _first(self.entities_of(name)),
                    "stages": {str(stage): cost for stage, cost in _first(self.stages_of(name)).items()},
                }
                for name in self.violations
            },
        }

    def warnings(self) -> tuple[Problem, ...]:
        """Return a warning where violations are more than half of what is paid, with who pays most."""
        if self.violation_share <= DOMINATING_SHARE:
            return ()
        named = [self._violation_text(name) for name in _first(self.violations)]
        text = (
            f"{self.violation_share:.1%} of the cost of the forward passes of iteration {self.iteration} is "
            f"paid for violations and deficit: {'; '.join(named)}"
        )
        context = {
            "iteration": self.iteration,
            "violation_share": self.violation_share,
            "components": self.violations,
        }
        advice = _ADVICE
        if self.iteration == 1:
            advice += "; passes of a first iteration may lack cuts that look ahead: compare a later one"
        return (Problem("ViolationsDominate", text, context, advice),)

    def first_stage_warnings(self) -> tuple[Problem, ...]:
        """Return a warning where violations are more than half of what is paid in the first stage.

        Cuts that are still missing do not explain those: they are there without any decision before them.
        """
        stage, paid = self.stage_ids[0], zip(COMPONENTS, self.by_stage[0], strict=True)
        components = _largest_first((part.name, cost) for part, cost in paid)
        violations = _violations(components)
        share = _share(sum(violations.values()), components)
        if share <= DOMINATING_SHARE:
            return ()
        named = [
            f"{name} {_share(cost, components):.1%} (over all stages most by "
            f"{', '.join(_first(self.entities_of(name)))})"
            for name, cost in _first(violations).items()
        ]
        text = (
            f"{share:.1%} of the cost of stage {stage} in iteration {self.iteration} is paid for violations "
            f"and deficit: {'; '.join(named)}"
        )
        context = {"iteration": self.iteration, "stage": stage, "violation_share": share}
        return (Problem("ViolationsDominate", text, context, _ADVICE),)

    def _violation_text(self, component: str) -> str:
        entities, stages = _first(self.entities_of(component)), _first(self.stages_of(component))
        whole = self.components[component]
        return (
            f"{component} {self.share(component):.1%} ("
            f"{', '.join(f'{name} {cost / whole:.0%}' for name, cost in entities.items())}; "
            f"{'stage' if len(stages) == 1 else 'stages'} "
            f"{', '.join(f'{stage} {cost / whole:.0%}' for stage, cost in stages.items())})"
        )


def own_costs(buffers: IterationBuffers) -> FloatArray:
    """Return what this rank's passes of the iteration last run were paid for, float64[m, T K + P]."""
    passes, stages, components = buffers.component_cost_own.shape
    by_stage = buffers.component_cost_own.reshape(passes, stages * components)
    return np.concatenate([by_stage, buffers.payer_cost_own], axis=1)


def cost_breakdown(
    costs: FloatArray,
    weights: FloatArray,
    iteration: int,
    stage_ids: Sequence[int],
    payers: Sequence[tuple[int, str]],
) -> CostBreakdown:
    """Return the expected cost of an iteration.

    Passes are added up in their order, so that ranks and threads change no bit.

    Parameters
    ----------
    costs
        Of all passes, in the form of :func:`own_costs`.
    weights
        Probability of each pass.
    iteration
        From 1.
    payers
        Of :class:`cobre.lp.cost_components.CostMap`.
    """
    total = np.zeros(costs.shape[1])
    for weight, row in zip(weights, costs, strict=True):
        total += weight * row
    by_stage = total[: len(total) - len(payers)].reshape(len(stage_ids), -1)
    return CostBreakdown(
        iteration=iteration,
        stage_ids=tuple(stage_ids),
        by_stage=tuple(tuple(stage) for stage in by_stage.tolist()),
        payers=tuple((COMPONENTS[component].name, entity) for component, entity in payers),
        by_payer=tuple(total[len(total) - len(payers) :].tolist()),
    )


def _share(cost: float, components: Mapping[str, float]) -> float:
    paid = math.fsum(max(part, 0.0) for part in components.values())
    return cost / paid if paid > 0.0 else 0.0


def _violations(components: Mapping[str, float]) -> dict[str, float]:
    names = {part.name for part in COMPONENTS if part.violation}
    return {name: cost for name, cost in components.items() if name in names}


def _largest_first(paid: Iterable[tuple[Any, float]]) -> dict[Any, float]:
    return dict(sorted(((who, cost) for who, cost in paid if cost), key=lambda item: -item[1]))


def _first(paid: Mapping[Any, float]) -> dict[Any, float]:
    return dict(list(paid.items())[:_NAMED])
