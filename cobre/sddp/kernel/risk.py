"""The weights of outcomes under the risk measures of a study, in nopython.

Each measure is a module of :mod:`cobre.rules.risk`; here they become one kernel.
"""

# Kernels are typed by Numba when they are compiled, not by annotations.
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False
from __future__ import annotations

from cobre.native import inner_kernel
from cobre.rules.risk import MEASURES

RISK_KINDS = {kind: code for code, kind in enumerate(MEASURES)}
"""Values of GraphArrays.risk_kind."""


@inner_kernel
def _sort_from_worst(values, count, order):
    """Write the positions of outcomes by falling value; equal ones keep their order."""
    for j in range(count):
        place = j
        while place > 0 and values[order[place - 1]] < values[j]:
            order[place] = order[place - 1]
            place -= 1
        order[place] = j


def compiled_measure(kind):
    """Return the kernel of one measure, with the arguments of :class:`cobre.rules.contracts.RiskRule`."""
    rule = MEASURES[kind]
    weigh, needs_order = inner_kernel(rule.weigh), rule.needs_order

    @inner_kernel
    def weigh_sorted(values, probability, count, parameters, order, weights):
        if needs_order:
            _sort_from_worst(values, count, order)
        return weigh(values, probability, count, parameters, order, weights)

    return weigh_sorted


def _either(code, measure, others):
    @inner_kernel
    def weigh(kind, values, probability, count, parameters, order, weights):
        if kind == code:
            return measure(values, probability, count, parameters, order, weights)
        return others(kind, values, probability, count, parameters, order, weights)

    return weigh


@inner_kernel
def _none_of_them(kind, values, probability, count, parameters, order, weights):
    raise ValueError("no such risk measure")


_weigh = _none_of_them
for _kind, _code in RISK_KINDS.items():
    _weigh = _either(_code, compiled_measure(_kind), _weigh)


@inner_kernel
def weigh_outcomes(graph, stage, values, probability, count, order, weights):
    """Write the weights of the first ``count`` outcomes under the measure of ``stage``; return its penalty.

    The measure's value is ``sum(weights * values) - penalty``. Equal outcomes keep their order, so the result
    is a function of the arguments alone.

    Parameters
    ----------
    graph
        :class:`cobre.sddp.kernel.graph.GraphArrays`.
    values, probability
        float64: outcome (a cost) and probability of each.
    order
        Scratch, int64.
    weights
        Out, float64.
    """
    parameters = graph.risk_parameters[graph.risk_start[stage] : graph.risk_start[stage + 1]]
    return _weigh(graph.risk_kind[stage], values, probability, count, parameters, order, weights)
