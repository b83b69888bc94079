"""Values that options choose from."""

from __future__ import annotations

import enum


class LpEngineName(str, enum.Enum):
    """What LPs are solved with."""

    AUTO = "auto"
    HIGHS = "highs"
    OWN = "own"


class PolicyFormat(str, enum.Enum):
    """Formats of policy directories."""

    COBRE = "cobre"
    COBRE_RS = "cobre-rs"


class TemplateName(str, enum.Enum):
    """Cases that ``cobre init`` can write."""

    TOY = "toy"
    CASCADE = "cascade"
    FOUR_REGION = "four-region"
    WEEKLY = "weekly"
    SYNTHETIC = "synthetic"
