"""Options of ``cobre init --template synthetic``."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from cobre.case.templates import Template

_PANEL = "Options of the template 'synthetic'"
_NAME = "synthetic"


class SizeName(str, enum.Enum):
    """Sizes of synthetic systems that have a name."""

    SMALL = "small"
    MID = "mid"
    LARGE = "large"


Size = Annotated[
    SizeName | None,
    typer.Option(
        "--size",
        help="What options that are not given are taken from: small (4 hydro plants), mid (30) or large "
        "(150); default small.",
        rich_help_panel=_PANEL,
    ),
]
Hydros = Annotated[
    int | None,
    typer.Option("--hydros", min=1, max=10_000, metavar="N", help="Hydro plants.", rich_help_panel=_PANEL),
]
Thermals = Annotated[
    int | None,
    typer.Option(
        "--thermals", min=1, max=10_000, metavar="N", help="Thermal plants.", rich_help_panel=_PANEL
    ),
]
Buses = Annotated[
    int | None,
    typer.Option(
        "--buses", min=1, max=1_000, metavar="N", help="Buses, tied by lines.", rich_help_panel=_PANEL
    ),
]
Stages = Annotated[
    int | None,
    typer.Option("--stages", min=2, max=1_200, metavar="N", help="Months.", rich_help_panel=_PANEL),
]
Blocks = Annotated[
    int | None,
    typer.Option(
        "--blocks", min=1, max=168, metavar="N", help="Load blocks of a month.", rich_help_panel=_PANEL
    ),
]
Openings = Annotated[
    int | None,
    typer.Option(
        "--openings", min=1, max=100_000, metavar="N", help="Openings of a month.", rich_help_panel=_PANEL
    ),
]
Order = Annotated[
    int | None,
    typer.Option(
        "--order",
        min=0,
        max=12,
        metavar="N",
        help="Months that an inflow depends on; 0: none.",
        rich_help_panel=_PANEL,
    ),
]
Correlation = Annotated[
    float | None,
    typer.Option(
        "--correlation",
        min=0.0,
        max=1.0,
        metavar="X",
        help="Between inflows of neighbours; it falls with distance. 0: independent.",
        rich_help_panel=_PANEL,
    ),
]
FphaShare = Annotated[
    float | None,
    typer.Option(
        "--fpha-share",
        min=0.0,
        max=1.0,
        metavar="X",
        help="Share of hydro plants whose production depends on storage, by planes.",
        rich_help_panel=_PANEL,
    ),
]
ForwardPasses = Annotated[
    int | None,
    typer.Option(
        "--forward-passes",
        min=1,
        max=100_000,
        metavar="N",
        help="Forward passes of an iteration.",
        rich_help_panel=_PANEL,
    ),
]
Iterations = Annotated[
    int | None,
    typer.Option(
        "--iterations",
        min=1,
        max=2**31 - 1,
        metavar="N",
        help="Iterations of training.",
        rich_help_panel=_PANEL,
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(
        "--seed",
        min=0,
        max=2**63 - 1,
        metavar="N",
        help="Another seed, another system of the same size.",
        rich_help_panel=_PANEL,
    ),
]


def choose_template(name: str, size: SizeName | None, given: Mapping[str, int | float | None]) -> Template:
    """Return the template to write.

    Parameters
    ----------
    name
        Of the template.
    given
        Options of the synthetic template by name; ``None`` where not given.

    Raises
    ------
    typer.BadParameter
        When an option of the synthetic template is given for another one.
    """
    from cobre.case.templates import TEMPLATES, synthetic_template
    from cobre.case.templates.synthetic_options import SIZES

    wanted = {key: value for key, value in given.items() if value is not None}
    if name == _NAME:
        base = SIZES[(size or SizeName.SMALL).value]
        return synthetic_template(replace(base, **wanted))  # type: ignore[arg-type]
    foreign = ["size"] if size is not None else list(wanted)
    if foreign:
        option = f"--{foreign[0].replace('_', '-')}"
        raise typer.BadParameter(
            f"the template '{name}' has a fixed size; only --template {_NAME} takes this option",
            param_hint=option,
        )
    return TEMPLATES[name]
