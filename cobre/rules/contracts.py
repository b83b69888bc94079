"""What a rule must provide: the contracts of stopping rules, risk measures and cut selections on one page.

Functions that become kernels are plain Python here. :mod:`cobre.sddp` compiles them, so they stick to what
Numba compiles, call no function of their module, and depend on their arguments alone: every rank and thread
gets the same result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from cobre.fields import FormatModel


class Iteration(Protocol):
    """What a stopping rule reads of an iteration; costs in $, times in ms.

    :class:`cobre.sddp.progress.IterationRecord` describes every field.
    """

    @property
    def iteration(self) -> int: ...  # noqa: D102
    @property
    def lower_bound(self) -> float: ...  # noqa: D102
    @property
    def lower_bound_kind(self) -> str: ...  # noqa: D102
    @property
    def upper_bound(self) -> float: ...  # noqa: D102
    @property
    def upper_bound_kind(self) -> str: ...  # noqa: D102
    @property
    def upper_bound_std(self) -> float: ...  # noqa: D102
    @property
    def risk_averse(self) -> bool: ...  # noqa: D102
    @property
    def deterministic_upper_bound(self) -> float | None: ...  # noqa: D102
    @property
    def forward_passes(self) -> int: ...  # noqa: D102
    @property
    def stage_costs(self) -> Sequence[float]: ...  # noqa: D102
    @property
    def cuts_added(self) -> int: ...  # noqa: D102
    @property
    def cuts_active(self) -> int: ...  # noqa: D102
    @property
    def lp_solves(self) -> int: ...  # noqa: D102
    @property
    def simplex_iterations(self) -> int: ...  # noqa: D102


@dataclass(frozen=True)
class Fault:
    """What is wrong with a rule in this study: ``training.stopping_rules[i] <what>.``."""

    what: str
    suggestion: str
    value: Any = None


class StoppingRule(FormatModel):
    """An entry of ``training.stopping_rules``: a subclass in a module of :mod:`cobre.rules.stopping`.

    Its fields are the keys of the entry; ``type`` is a ``Literal`` with the name of the rule, which is also
    the reason that results report.
    """

    type: str
    """Names the rule."""

    converges: ClassVar[bool] = False
    """Whether training that the rule ends has converged, or just ended."""
    takes_upper_bound: ClassVar[bool] = False
    """Whether the rule compares the bounds; the cost of passes is none under a risk measure."""
    needs_stage_costs: ClassVar[bool] = False
    """Whether the rule reads ``stage_costs``, which are empty otherwise."""

    def is_met(self, history: Sequence[Iteration], elapsed_s: float) -> bool:
        """Return whether training may stop after the last of ``history``, which is never empty.

        Parameters
        ----------
        elapsed_s
            Seconds since training began, the same on every rank.
        """
        raise NotImplementedError

    def faults(self, config: Any) -> Iterator[Fault]:
        """Yield what is wrong with the rule beside the other keys of ``config.json``.

        Parameters
        ----------
        config
            :class:`cobre.case.format.schema.config.ConfigFile`.
        """
        yield from ()


@dataclass(frozen=True)
class RiskMeasure:
    """How outcomes of what follows a stage are weighed.

    ``cvar`` is ``(1 - weight) * expectation + weight * CVaR`` of the worst ``tail`` share of outcomes;
    the expectation has ``weight`` 0.
    """

    weight: float = 0.0
    tail: float = 1.0
    kind: str = "cvar"
    """Name of its module in :mod:`cobre.rules.risk`."""
    gamma: float = 0.0
    """Aversion of the kind ``entropic``, 1/$: ``log(E[exp(gamma Z)]) / gamma``."""
    spectrum: tuple[float, ...] = ()
    """Of the kind ``spectral``: how much each equal part of the probability counts, from the worst on;
    never rising, with the sum 1."""
    parameters: tuple[float, ...] = field(default=(), metadata={"extension": True})
    """Of any other kind."""

    @property
    def is_expectation(self) -> bool:
        """Whether the measure is the expectation."""
        return self.kind == "cvar" and (self.weight == 0.0 or self.tail >= 1.0)


@dataclass(frozen=True)
class RiskRule:
    """A risk measure: the constant ``MEASURE`` of a module of :mod:`cobre.rules.risk`.

    Attributes
    ----------
    key
        In ``stages.json``: ``"risk_measure": {key: content}``, or ``"risk_measure": key`` without content.
    content
        Pydantic type of the value of the key (a :class:`~cobre.fields.FormatModel`, or an annotated
        list); ``None`` where the measure has no parameters.
    measure
        Makes the measure of the validated content. Its kind is the name of the module.
    weigh
        Kernel ``weigh(values, probability, count, parameters, order, weights)``: writes the weights of the
        first ``count`` outcomes and returns the penalty, so that ``sum(weights * values) - penalty`` is the
        measure of the outcomes ``values`` ($) with the probabilities ``probability``, and a lower bound of
        the measure of any other outcomes. ``parameters`` is float64[n], ``order`` holds the positions of the
        outcomes from the worst on (equal ones in their order) if ``needs_order``, and ``weights`` is to be
        written.
    parameters
        What of a measure becomes the kernel's ``parameters``.
    """

    key: str
    content: Any
    measure: Callable[[Any], RiskMeasure]
    weigh: Callable[..., float]
    parameters: Callable[[RiskMeasure], tuple[float, ...]] = lambda measure: measure.parameters
    needs_order: bool = False


class CutMethodEntry(FormatModel):
    """``training.cut_selection.selection``; ``method`` is a ``Literal`` with the name of the method."""

    method: str
    """Names the method."""


@dataclass(frozen=True)
class CutMethod:
    """A cut selection: the constant ``METHOD`` of a module of :mod:`cobre.rules.selection`.

    Attributes
    ----------
    content
        Model of ``training.cut_selection.selection``; its field ``method`` is a ``Literal`` with the name of
        the module. The keys ``check_frequency``, ``start_iteration``, ``seed_window``, ``candidate_recency``
        and ``max_added_per_round`` mean what :class:`cobre.case.model.CutSelection` states.
    tolerance_key
        Key of the model that is the tolerance, $.
    mark
        ``mark(comes_close)`` returns a kernel ``(cuts, stage, tolerance, parameters)`` that sets
        ``cuts.keep[node, slot]`` for every slot of the stage's nodes: whether an active cut stays. It runs
        every ``check_frequency`` iterations. ``cuts`` is
        :class:`cobre.sddp.kernel.selection_kernels.SelectionArrays` with all visited states;
        ``comes_close(cuts, stage, place, slot, tolerance)``, a kernel, returns whether a cut comes within the
        tolerance of the highest one at a visited state. ``None``: the method drops no cut.
    loads
        ``loads(options, made_in, iteration)``, where LPs do not start with all cuts: the first slot with
        which they start, and the first that may enter later, of a node whose cuts were made in the iterations
        ``made_in``, in ascending order; ``None`` before the method takes effect.
    parameter_keys
        Further number keys of the model that become ``parameters``, float64, in this order.
    """

    content: type[CutMethodEntry]
    tolerance_key: str
    mark: Callable[..., Callable[..., None]] | None = None
    loads: Callable[[Any, Any, int], tuple[int, int] | None] | None = None
    parameter_keys: tuple[str, ...] = ()
