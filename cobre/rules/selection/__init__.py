"""Which cuts stay in the LPs: one module for each method, with the constant ``METHOD``.

Methods that drop cuts compare them at the states that forward passes visited so far. The highest cut at any
visited state is the same before and after.
"""

from __future__ import annotations

from cobre.members import members_of
from cobre.rules.contracts import CutMethod, CutMethodEntry

METHODS: dict[str, CutMethod] = {
    module.__name__.rpartition(".")[2]: module.METHOD for module in members_of("cobre.rules.selection")
}
"""All methods by name, which is that of their module."""

CUT_METHODS: tuple[type[CutMethodEntry], ...] = tuple(method.content for method in METHODS.values())
"""Their models in ``config.json``."""
