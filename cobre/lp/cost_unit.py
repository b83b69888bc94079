"""The unit of costs in the LPs: one for all stages, in which no cost is lost in the solver's tolerances.

HiGHS takes a reduced cost below 1e-9 for zero, and beside a cost of 1e16 one of 1 has no digit left. Costs
stay above ``LEAST_COST`` units; costs so far apart that the largest would then be beyond what doubles hold
beside the smallest are refused, by name. Validity never rests on the unit (:mod:`cobre.lp.dual_bound` sees to
that): it decides how close bounds can be to the optimum.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cobre.case.format import layout
from cobre.case.model import Stage
from cobre.errors import Problem, ValidationError
from cobre.lp.assembly import AssembledLp
from cobre.lp.index import ABSENT

FloatArray = NDArray[np.float64]

LEAST_COST = 2.0**-18
"""Least value of the smallest cost in units of the objective, where the unit is chosen here."""

LEAST_GIVEN_COST = 1.0e-8
"""The same where ``cost_scale_factor`` is given: ten times the solver's tolerance."""

LARGEST_GIVEN_COST = 1.0e9
"""Largest value of the largest cost in units of the objective, where ``cost_scale_factor`` is given."""

WIDEST_COSTS = 1.0e14
"""Ratio of the largest to the smallest cost that LPs can hold."""

_FIELDS = {
    "thermal_generation": "cost_per_mwh",
    "anticipated_decision": "cost_per_mwh",
    "contract_power": "price_per_mwh",
    "non_controllable_generation": "curtailment_cost",
    "bus_deficit": "deficit_segments.cost",
    "bus_excess": "excess_cost",
    "line_direct": "exchange_cost",
    "line_reverse": "exchange_cost",
    "hydro_spillage": "spillage_cost",
    "hydro_diversion": "diversion_cost",
    "hydro_turbined": "turbined_cost",
    "hydro_inflow_slack": "inflow_nonnegativity_cost",
    "hydro_withdrawal_below": "water_withdrawal_violation_neg_cost",
    "hydro_withdrawal_above": "water_withdrawal_violation_pos_cost",
    "hydro_evaporation_below": "evaporation_violation_neg_cost",
    "hydro_evaporation_above": "evaporation_violation_pos_cost",
    "hydro_storage_below": "storage_violation_below_cost",
    "hydro_filling_rate_violation": "filling_target_violation_cost",
    "hydro_filling_target_violation": "filling_target_violation_cost",
    "hydro_outflow_min_violation": "outflow_violation_below_cost",
    "hydro_outflow_max_violation": "outflow_violation_above_cost",
    "hydro_turbined_min_violation": "turbined_violation_below_cost",
    "hydro_plant_turbined_min_violation": "turbined_violation_below_cost",
    "hydro_generation_min_violation": "generation_violation_below_cost",
    "hydro_plant_generation_min_violation": "generation_violation_below_cost",
    "generic_below": "slack.penalty",
    "generic_above": "slack.penalty",
}
"""The field that the cost of each kind of column comes from."""


@dataclass(frozen=True)
class Cost:
    """One cost of the study, $ for one unit of its column over the column's time."""

    value: float
    stage_id: int
    entity: str
    field: str

    def __str__(self) -> str:
        return f"{self.value:.3g} $ ({self.field} of {self.entity}, stage {self.stage_id})"


def cost_ends(stage: Stage, lp: AssembledLp) -> list[Cost]:
    """Return the smallest and the largest cost of every kind of column of a stage; none that is 0."""
    found = []
    size = np.abs(lp.cost)
    for kind, family in lp.index.columns.items():
        places = np.argwhere(family.ids != ABSENT)
        costs = size[family.ids[family.ids != ABSENT]]
        paid = np.flatnonzero(costs)
        if not len(paid):
            continue
        for choose in (np.argmin, np.argmax):
            member = paid[choose(costs[paid])]
            labels = [axis[place] for axis, place in zip(family.axes, places[member], strict=True)]
            entity = f"{kind}[{', '.join(labels)}]"
            found.append(Cost(float(costs[member]), stage.id, entity, _FIELDS.get(kind, "cost")))
    return found


def choose_cost_scale(ends: Sequence[Cost], given: float | None = None) -> float:
    """Return the $ in one unit of objective: ``given``, or a power of two.

    That is the middle of the range of all costs, and less where the smallest cost asks for it.

    Parameters
    ----------
    ends
        Of all stages, or of some, as :func:`cost_ends` returns them.
    given
        ``modeling.cost_scale_factor`` of the case.

    Raises
    ------
    ValidationError
        When costs are too far apart, or too far from the unit that is given; names the entity and field.
    """
    if not ends:
        return given or 1.0
    least, most = (choose(ends, key=lambda cost: cost.value) for choose in (min, max))
    if not math.isfinite(most.value) or most.value > WIDEST_COSTS * least.value:
        # The culprit is the end that is farther from the other costs.
        typical = float(np.exp(np.median([np.log(min(cost.value, 1e300)) for cost in ends])))
        culprit = most if most.value / typical >= typical / least.value else least
        raise _refusal(
            f"costs from {least} to {most} are too far apart for one LP: the largest may be at most "
            f"{WIDEST_COSTS:.0e} times the smallest",
            culprit,
            f"bring {culprit.field} of {culprit.entity} closer to the other costs"
            + (", or make it 0" if culprit is least else ""),
        )
    if given is None:
        middle = math.sqrt(least.value) * math.sqrt(most.value)
        return float(2.0 ** min(round(math.log2(middle)), math.floor(math.log2(least.value / LEAST_COST))))
    for cost, fits in (
        (least, least.value / given >= LEAST_GIVEN_COST),
        (most, most.value / given <= LARGEST_GIVEN_COST),
    ):
        if not fits:
            low, high = most.value / LARGEST_GIVEN_COST, least.value / LEAST_GIVEN_COST
            raise _refusal(
                f"{layout.CONFIG}: modeling.cost_scale_factor = {given:.6g} makes the cost of {cost} "
                f"{cost.value / given:.3g} units of objective, which the solver cannot distinguish from "
                f"{'zero' if cost is least else 'infinity'}",
                cost,
                f"leave modeling.cost_scale_factor out, or choose it between {low:.3g} and {high:.3g}",
                file=layout.CONFIG,
                cost_scale_factor=given,
            )
    return given


def _refusal(message: str, cost: Cost, suggestion: str, **context: object) -> ValidationError:
    where = {"entity": cost.entity, "field": cost.field, "value": cost.value, "stage": cost.stage_id}
    return ValidationError([Problem("InvalidValue", message, {**context, **where}, suggestion)], "costs")
