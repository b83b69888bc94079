"""What a type of entities adds to the stage LPs: its contract on one page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cobre.lp.index import IdArray

if TYPE_CHECKING:
    from cobre.lp.stage.context import StageContext


@dataclass(frozen=True)
class CostComponent:
    """A part of the cost.

    Attributes
    ----------
    kinds
        Families of columns that it is paid by.
    violation
        Whether it is the price of a load or limit that is not kept, so that a sound study pays little of it.
    """

    name: str
    kinds: tuple[str, ...]
    violation: bool = False


@dataclass(frozen=True)
class StagePart:
    """The part of the stage LPs that a type of entities makes; the constant ``PART`` of its module.

    Attributes
    ----------
    entry
        The type: the model of its entries in the catalogue.
    add
        Adds columns and rows of all entities to a stage, and returns the column of the outgoing state of each
        of them. What leaves or enters a bus goes into the rows ``stage.load``; the incoming state of the i-th
        entity is component ``stage.layout.first[state_kind] + i``. Called only where the study has entities
        of the type.
    state_kind
        Kind of the one state component of each entity, which policy files name it by; ``None`` where it has
        no state (``add`` then returns an empty array).
    initial
        Value of the component that enters the first stage.
    costs
        What the columns with a cost are paid for.
    """

    entry: type[Any]
    add: Callable[[StageContext], IdArray]
    state_kind: str | None = None
    initial: Callable[[Any], float] = lambda entity: 0.0
    costs: tuple[CostComponent, ...] = ()
