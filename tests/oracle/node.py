"""The decisions of one node of the tree: its columns, and the balances that meet in them."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from oracle.files import Json, RawFiles
from oracle.lp import Lp, Terms
from oracle.openings import Opening
from oracle.production import Planes
from oracle.time_axis import HM3_PER_M3S_HOUR


class Node:
    """A node: stage, realisation, weight of its costs in the objective, and the node before it.

    Attributes
    ----------
    columns
        Column numbers by name; a name begins with the kind and the entity's id.
    water
        Terms of what enters (+) or leaves (-) a reservoir in a period, by (hydro id, period): hm3.
    constant_water
        The given part of it, hm3.
    generation
        The term that stands for the generation of a unit group, by (hydro id, group id, block): MW.
    power
        Terms of what is fed into a bus in a block, by (bus id, block): MW.
    """

    def __init__(
        self,
        files: RawFiles,
        lp: Lp,
        position: int,
        opening: Opening,
        weight: float,
        parent: Node | None,
        fitted: Planes,
    ) -> None:
        self.files, self.lp, self.position, self.opening = files, lp, position, opening
        self.weight, self.parent, self.fitted = weight, parent, fitted
        self.stage: Json = files.stages[position]
        self.stage_id = int(self.stage["id"])
        self.hours = files.hours(position)
        self.total_hours = sum(self.hours)
        self.chronological = self.stage.get("block_mode") == "chronological"
        self.columns: dict[Hashable, int] = {}
        self.cost: Terms = []
        self.generation: dict[tuple[int, int, int], tuple[int, float]] = {}
        self.blocks = range(len(self.hours))
        self.period_hours = self.hours if self.chronological else [self.total_hours]
        self.periods = range(len(self.period_hours))
        self.water: dict[tuple[int, int], Terms] = {
            (plant["id"], p): [] for plant in files.hydros for p in self.periods
        }
        self.constant_water = dict.fromkeys(self.water, 0.0)
        self.power: dict[tuple[int, int], Terms] = {
            (bus["id"], k): [] for bus in files.buses for k in self.blocks
        }

    def add(self, name: Hashable, cost: float = 0.0, upper: float = float("inf"), lower: float = 0.0) -> int:
        """Add a column with its cost ($ per unit, before probability and discount)."""
        assert name not in self.columns, name
        column = self.lp.column(self.weight * cost, upper, lower)
        self.columns[name] = column
        self.cost.append((column, cost))
        return column

    def soft(
        self,
        name: Hashable,
        terms: Terms,
        price: float,
        lower: float = -float("inf"),
        upper: float = float("inf"),
    ) -> None:
        """Add a row whose bounds may be violated at a price ($ per unit)."""
        terms = list(terms)
        if lower > -float("inf"):
            terms.append((self.add(("below", name), price), 1.0))
        if upper < float("inf"):
            terms.append((self.add(("above", name), price), -1.0))
        self.lp.row(terms, lower, upper)

    def period(self, block: int) -> int:
        """Period that a block belongs to."""
        return block if self.chronological else 0

    def volume(self, block: int) -> float:
        """The hm3 that 1 m3/s carries in a block."""
        return HM3_PER_M3S_HOUR * self.hours[block]

    def line(self) -> Iterator[Node]:
        """This node and those before it, backwards."""
        node: Node | None = self
        while node is not None:
            yield node
            node = node.parent

    def at(self, position: int) -> Node:
        """The node of an earlier stage (or this one) on the way here."""
        return next(node for node in self.line() if node.position == position)
