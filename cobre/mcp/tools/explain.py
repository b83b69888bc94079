"""Tools that explain: why a price is what it is, and what makes water worth what it is.

What they state follows from the simulated tables, the limits of the case and the cuts of the policy; what
does not follow from these is listed as unknown.
"""

from __future__ import annotations

import contextlib
from typing import Annotated, Any, Final

from pydantic import Field

from cobre.errors import CobreError
from cobre.mcp.case_files import load_case
from cobre.mcp.contract import Answer, Arguments, Id, Name, Settings, Tool
from cobre.mcp.jobs.state import CASE
from cobre.mcp.jobs.store import JobStore
from cobre.mcp.output_files import opened_policy, opened_results
from cobre.mcp.paths import PRIVATE_DIRECTORY, Root, clean
from cobre.mcp.texts import plain
from cobre.mcp.tools.case import CasePlace
from cobre.mcp.tools.results import OutputPlace

StudyCase = Annotated[
    CasePlace | None,
    Field(description="The case of the run; by default that of its job, or the directory above the output."),
]


class Unit(Answer):
    """A plant, source or contract at a bus, and where it is between its limits."""

    kind: str
    id: int
    name: str
    bus: str
    power_mw: float
    least_mw: float | None
    most_mw: float | None
    position: str
    """at its minimum, at its maximum, between its limits, out of service, committed ahead, ..."""
    marginal_cost: float | None
    """Of one more MWh, $/MWh: its cost, or what its water is worth elsewhere; null if unknown."""
    sets_price: bool
    """Whether it is between its limits and its marginal cost is the price of its bus."""


class Link(Answer):
    """A line of the price area, or at its edge."""

    id: int
    name: str
    source: str
    target: str
    net_flow_mw: float
    most_mw: float
    """In the direction of the flow."""
    cost: float
    """$/MWh of flow."""
    loss: float
    """Share of the flow that does not arrive."""
    congested: bool


class PriceExplanation(Answer):
    """Why a price is what it is."""

    output: str
    bus: str
    scenario_id: int
    stage_id: int
    block_id: int
    price: float
    """$/MWh, not discounted."""
    prices: dict[str, float]
    """Of all buses of the price area: those that lines below their limits connect; costs and losses of lines
    keep them apart."""
    deficit_mw: float
    excess_mw: float
    units: list[Unit]
    """Of the price area."""
    lines: list[Link]
    statements: list[str]
    unknown: list[str]
    """What was not examined, or does not follow from the data."""

    def headline(self) -> str:
        """Return the price and the first reason."""
        reason = self.statements[0] if self.statements else "no reason found"
        return (
            f"{self.bus}, scenario {self.scenario_id}, stage {self.stage_id}, block {self.block_id}: "
            f"{self.price:.6g} $/MWh. {reason}"
        )


class PriceArguments(Arguments):
    """Arguments of ``cobre_explain_price``."""

    output: OutputPlace
    bus: Annotated[Name | Id, Field(description="Name or id.")]
    stage: Annotated[Id, Field(description="Id of the stage, as in the tables.")]
    scenario: Id = 0
    block: Annotated[Id | None, Field(description="The one with the highest price unless given.")] = None
    case: StudyCase = None


def explain_price(settings: Settings, arguments: PriceArguments) -> PriceExplanation:
    """Explain the price of a bus from the units and lines around it."""
    from cobre.mcp.explaining.price import explain

    root = settings.root
    case = load_case(root, study_place(settings, arguments.output, arguments.case))
    with opened_results(root, arguments.output) as results:
        found = explain(
            results.simulation,
            case,
            bus=arguments.bus,
            scenario=arguments.scenario,
            stage=arguments.stage,
            block=arguments.block,
        )
    return PriceExplanation(output=arguments.output, **plain(found))


class CutAt(Answer):
    """A cut at a state."""

    slot: int
    iteration: int
    """0: loaded from another policy."""
    value: float
    """$ at the state."""
    below: float
    """$ below the highest cut."""
    slope: float
    """$/hm3 of this plant's storage."""
    water_value: float
    """$/hm3: minus the slope."""


class WaterExplanation(Answer):
    """What makes the water of a plant worth what it is."""

    output: str
    hydro: str
    scenario_id: int
    stage_id: int
    storage_initial_hm3: float
    storage_final_hm3: float
    value_in_stage: float
    """Worth of another hm3 at the beginning of the stage, $/hm3: minus the dual of its water balance."""
    value_after_stage: float | None
    """Worth of another hm3 at its end, by the highest cut, $/hm3; null if unknown."""
    future_cost: float | None
    """By the highest cut, $ at the beginning of the next stage."""
    discount_factor: float | None
    """Of costs of the next stage, to this one; null in the last."""
    matches_simulation: bool | None
    """Whether that is the future cost that the simulation has; null where it cannot be compared."""
    cuts: list[CutAt]
    """The highest first."""
    active_cuts: int
    """Cuts of the stage that LPs use."""
    binding: list[str]
    """Limits that the plant is at."""
    statements: list[str]
    unknown: list[str]

    def headline(self) -> str:
        """Return both values."""
        after = "unknown" if self.value_after_stage is None else f"{self.value_after_stage:.6g}"
        return (
            f"{self.hydro}, scenario {self.scenario_id}, stage {self.stage_id}: another hm3 is worth "
            f"{self.value_in_stage:.6g} $ at the beginning, {after} $ at the end of the stage."
        )


class WaterArguments(Arguments):
    """Arguments of ``cobre_explain_water_value``."""

    output: OutputPlace
    hydro: Annotated[Name | Id, Field(description="Name or id.")]
    stage: Annotated[Id, Field(description="Id of the stage, as in the tables.")]
    scenario: Id = 0
    case: StudyCase = None
    cuts: Annotated[int, Field(ge=1, le=100, description="How many cuts to show.")] = 5


def explain_water_value(settings: Settings, arguments: WaterArguments) -> WaterExplanation:
    """Explain a water value from the cuts at the simulated state."""
    from cobre.mcp.explaining.water import explain

    root = settings.root
    case = None
    with contextlib.suppress(CobreError):  # most of it can do without
        case = load_case(root, study_place(settings, arguments.output, arguments.case))
    with (
        opened_results(root, arguments.output) as results,
        opened_policy(root, arguments.output, None) as policy,
    ):
        found = explain(
            results.simulation,
            policy,
            case,
            hydro=arguments.hydro,
            scenario=arguments.scenario,
            stage=arguments.stage,
            shown=arguments.cuts,
        )
    return WaterExplanation(output=arguments.output, **plain(found))


def study_place(settings: Settings, output: str, case: str | None) -> str:
    """Return where the case of a run is: as given, of its latest job, or above the output.

    Raises
    ------
    CobreError
        Kind ``NoCase``.
    """
    if case is not None:
        return case
    place = clean(output)
    for state in JobStore(settings).states():
        if state.request.output == place and state.started_at is not None:
            return f"{PRIVATE_DIRECTORY}/{state.request.id}/{CASE}"
    above = place.rpartition("/")[0] or "."
    if _holds_case(settings.root, above):
        return above
    raise CobreError(
        "NoCase",
        f"which case is {place!r} a run of?",
        {"output": place},
        "give case, the directory of the study",
    )


def _holds_case(root: Root, place: str) -> bool:
    try:
        return root.exists(f"{place}/config.json")
    except CobreError:
        return False


TOOLS: Final[tuple[Any, ...]] = (
    Tool(
        "cobre_explain_price",
        "Explain a price",
        "Why the price of a bus is what it is in a simulated scenario, stage and block: units between "
        "their limits and what one more MWh of them costs, congested lines, deficit; only what follows "
        "from the data.",
        PriceArguments,
        PriceExplanation,
        explain_price,
    ),
    Tool(
        "cobre_explain_water_value",
        "Explain a water value",
        "Why the water of a plant is worth what it is in a simulated scenario and stage: the cuts that are "
        "highest at the state, with their slopes, and the limits that the plant is at.",
        WaterArguments,
        WaterExplanation,
        explain_water_value,
    ),
)
