"""Types of entities that are modules of their own: one for each, with the constant ``PART``.

See :class:`cobre.lp.parts.StagePart`; a module that is put here is found by itself.
"""

from __future__ import annotations

from cobre.lp.parts import StagePart
from cobre.members import members_of

PARTS: tuple[StagePart, ...] = tuple(module.PART for module in members_of("cobre.lp.entities"))
"""All of them, by the names of their modules."""
