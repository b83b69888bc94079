"""What a synthetic case is made from: how much of everything, and a seed."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any

from cobre.errors import Problem, ValidationError

MAX_ORDER = 12
MAX_SEED = 2**63 - 1

LIMITS: dict[str, tuple[float, float]] = {
    "hydros": (1, 10_000),
    "thermals": (1, 10_000),
    "buses": (1, 1_000),
    "stages": (2, 1_200),
    "blocks": (1, 168),
    "openings": (1, 100_000),
    "order": (0, MAX_ORDER),
    "correlation": (0.0, 1.0),
    "fpha_share": (0.0, 1.0),
    "forward_passes": (1, 100_000),
    "iterations": (1, 2**31 - 1),
    "seed": (0, MAX_SEED),
}
"""Least and greatest value of every option."""


_SHARES = ("correlation", "fpha_share")


def _is_number(name: str, value: Any) -> bool:
    wanted: tuple[type, ...] = (int, float) if name in _SHARES else (int,)
    return isinstance(value, wanted) and not isinstance(value, bool)


def _kind(name: str) -> str:
    return "a number" if name in _SHARES else "a whole number"


@dataclass(frozen=True)
class SyntheticOptions:
    """Sizes of a synthetic case; the case is a function of these numbers alone.

    Attributes
    ----------
    hydros, thermals, buses
        Number of plants and buses; rivers are trees of about six plants.
    stages
        Months from January 2025 on.
    blocks
        Load blocks of a month, from the highest load to the lowest.
    openings
        Of every month.
    order
        Of the autoregressive inflow models, in months; 0 is white noise.
    correlation
        Between the inflows of plants at the same place, 0-1; it falls with distance. 0 is independent noise.
    fpha_share
        Share of hydro plants, 0-1, whose production is bounded by planes in storage and flow.
    forward_passes, iterations
        Of training.
    seed
        Draws another system of the same size, and its opening tree.

    Raises
    ------
    cobre.errors.ValidationError
        For values outside :data:`LIMITS`.
    """

    hydros: int = 4
    thermals: int = 4
    buses: int = 1
    stages: int = 12
    blocks: int = 1
    openings: int = 10
    order: int = 0
    correlation: float = 0.0
    fpha_share: float = 0.0
    forward_passes: int = 4
    iterations: int = 50
    seed: int = 1

    def __post_init__(self) -> None:
        problems = [
            Problem(
                "InvalidValue",
                f"{field.name} is {value!r}, but must be {_kind(field.name)} from {low:g} to {high:g}",
                {"field": field.name, "value": value},
                "give a value in this range",
            )
            for field in fields(self)
            for value, (low, high) in [(getattr(self, field.name), LIMITS[field.name])]
            if not _is_number(field.name, value) or not low <= value <= high
        ]
        if problems:
            raise ValidationError(problems, source="options of the synthetic case")

    def command_line(self) -> str:
        """Return the options as ``cobre init`` takes them."""
        return " ".join(
            f"--{name.replace('_', '-')} {value:g}"
            if isinstance(value, float)
            else f"--{name.replace('_', '-')} {value}"
            for name, value in asdict(self).items()
        )


SIZES = {
    "small": SyntheticOptions(),
    "mid": SyntheticOptions(
        hydros=30,
        thermals=30,
        buses=4,
        blocks=3,
        openings=20,
        fpha_share=0.5,
        forward_passes=8,
        iterations=25,
    ),
    "large": SyntheticOptions(
        hydros=150,
        thermals=100,
        buses=5,
        blocks=3,
        openings=20,
        fpha_share=0.5,
        forward_passes=8,
        iterations=10,
    ),
}
"""Sizes by name; benchmarks use them."""
