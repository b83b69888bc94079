"""Water values: of a policy against storage, and along the simulated scenarios."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from cobre.results.pages.figures import PALETTE, Choice, Figure, FloatArray, axes, line, numbers
from cobre.results.pages.page import Section, escape
from cobre.results.pages.run_data import RunData
from cobre.results.pages.simulated import Simulated
from cobre.results.pages.simulation_sections import FAN_TEXT, MOST_CHOICES, entities, entity_fan, stage_starts

if TYPE_CHECKING:
    from cobre.policy import Policy

CURVES = 6
"""Stages of which water values are drawn against storage."""
POINTS = 33
"""Storages of a curve."""
_DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
_KNOWN = {"storage", "inflow_lag", "commitment"}


def policy_section(run: RunData) -> Section | None:
    """Return what water is worth; ``None`` without a simulation, which shows the storages that matter."""
    simulated = run.simulated
    if simulated is None or not simulated.has("hydros"):
        return None
    section = Section(
        "water-values",
        "Water values",
        "What one more hm³ in a reservoir saves later. The policy stores water as long as it is worth more "
        "than what "
        "it would replace now.",
    )
    values = -simulated.column("hydros", "water_value_per_hm3", "mean")
    layout = simulated.layout("hydros")
    plants = moving_plants(simulated)
    if not plants:
        return None
    section.parts.append(
        entity_fan(
            simulated,
            "water-value-fan",
            "Water value of a plant in the scenarios",
            stage_starts(simulated),
            entities(values, layout.names, plants),
            "water value, $/hm³",
            "Change of the cost of a stage and of all later ones for one more hm³, in $ of the stage. "
            + FAN_TEXT,
            group="hydro",
        )
    )
    policy = run.policy
    if policy is None:
        return section
    reason = why_no_curves(policy, simulated)
    if reason is None:
        section.parts.append(_curves(policy, simulated, plants))
    else:
        section.parts.append(
            f"<p class='soft'>Water values against storage are not drawn: {escape(reason)}.</p>"
        )
    return section


def moving_plants(simulated: Simulated) -> list[int]:
    """Return the plants whose storage changes, those where it changes most first."""
    storage = simulated.column("hydros", "storage_final_hm3", "last")
    size = storage.max(axis=(0, 1)) - storage.min(axis=(0, 1))
    return [at for at in np.argsort(-size, kind="stable").tolist() if size[at] > 0.0][:MOST_CHOICES]


def why_no_curves(policy: Policy, simulated: Simulated) -> str | None:
    """Return why a state cannot be put together from tables; ``None`` where it can."""
    if not policy.is_chain:
        return "the stages of the study have several nodes, each with cuts of its own"
    for place, component in enumerate(policy.components):
        if component.kind in _KNOWN or _final_column(simulated, component.kind) is not None:
            continue
        if any(cuts.slopes[:, place].any() for cuts in policy.cuts):
            kind = component.kind.replace("_", " ")
            return f"the future cost also depends on {kind}, which tables hold only in sums"
    return None


def water_values(
    policy: Policy, node: int, state: FloatArray, component: int, grid: FloatArray
) -> FloatArray:
    """Return how much a unit of a component saves, at values of it and a state otherwise.

    It is minus the slope of the highest cut, the first one of several.
    """
    intercept, slopes = policy.valuation(node)
    if not len(intercept):
        return np.full(len(grid), np.nan)
    here = intercept + slopes @ state
    values = here[:, None] + slopes[:, component, None] * (grid - state[component])
    return np.asarray(0.0 - slopes[values.argmax(axis=0), component])


def mean_states(policy: Policy, simulated: Simulated) -> FloatArray:
    """Return the mean state that each stage leaves, [stage, component]; NaN where tables do not hold it."""
    states = np.zeros((len(simulated.stages), len(policy.components)))
    found: dict[tuple[str, int], FloatArray] = {}
    for kind in {component.kind for component in policy.components}:
        table, column = _final_column(simulated, kind) or ("", "")
        if table:
            mean = simulated.mean(simulated.column(table, column, "last"))
            for place, number in enumerate(simulated.layout(table).ids.tolist()):
                found[kind, number] = mean[:, place]
    memory, committed = _mean_memory(simulated), _mean_commitment(simulated)
    for place, component in enumerate(policy.components):
        if (component.kind, component.entity_id) in found:
            states[:, place] = found[component.kind, component.entity_id]
        elif component.kind == "inflow_lag":
            states[:, place] = memory[component.entity_id, component.offset]
        elif component.kind == "commitment":
            states[:, place] = committed(component.entity_id, component.offset)
    return states


def _final_column(simulated: Simulated, kind: str) -> tuple[str, str] | None:
    """Return the table and the column of a kind of state named ENTITY_QUANTITY; storage is water's."""
    if kind == "storage":
        return "hydros", "storage_final_hm3"
    for name, table in simulated.tables.items():
        stem = (table.entity_key or "").removesuffix("id")
        if stem and kind.startswith(stem):
            for column in table.columns:
                if column.startswith(f"{kind.removeprefix(stem)}_final_"):
                    return name, column
    return None


def _mean_memory(simulated: Simulated) -> dict[tuple[int, int], FloatArray]:
    """Return the past inflow that each stage leaves, by plant and number of its lane, from 1."""
    if not simulated.has("inflow_lags"):
        return {}
    cube = simulated.tables["inflow_lags"].cube("inflow_m3s")
    mean = simulated.mean(cube["inflow_m3s"])  # [stage, plant, lane], as stages begin
    after = np.concatenate([mean[1:], np.full_like(mean[:1], np.nan)])
    return {
        (hydro, lane + 1): after[:, at, to]
        for at, hydro in enumerate(cube.labels["entity"].tolist())
        for to, lane in enumerate(cube.labels["lag_index"].tolist())
    }


def _mean_commitment(simulated: Simulated) -> Callable[[int, int], FloatArray]:
    """Return what was ordered for so many stages later, by thermal plant; NaN for what follows the study."""
    stages = len(simulated.stages)
    if not simulated.has("thermals"):
        return lambda thermal, offset: np.full(stages, np.nan)
    delivered = np.nan_to_num(simulated.column("thermals", "anticipated_committed_mw", "first"))
    mean = simulated.mean(delivered)
    place = {number: at for at, number in enumerate(simulated.layout("thermals").ids.tolist())}

    def ordered(thermal: int, offset: int) -> FloatArray:
        later = np.full(stages, np.nan)
        later[: max(stages - offset, 0)] = mean[offset:, place[thermal]]
        return later

    return ordered


def _curves(policy: Policy, simulated: Simulated, plants: list[int]) -> Figure:
    states = mean_states(policy, simulated)
    valued = [
        at for at in range(len(states)) if len(policy.valuation(at)[0]) and not np.isnan(states[at]).any()
    ]
    shown = sorted(
        {valued[at] for at in np.linspace(0, len(valued) - 1, min(CURVES, len(valued))).round().astype(int)}
    )
    layout = simulated.layout("hydros")
    storage = simulated.column("hydros", "storage_final_hm3", "last")
    place = {part.entity_id: at for at, part in enumerate(policy.components) if part.kind == "storage"}
    choices = []
    for plant in plants:
        low, high = float(storage[:, :, plant].min()), float(storage[:, :, plant].max())
        grid = np.linspace(low, high, POINTS)
        component = place[int(layout.ids[plant])]
        curves = [
            {"x": numbers(grid), "y": numbers(water_values(policy, at, states[at], component, grid))}
            for at in shown
        ]
        choices.append(Choice(layout.names[plant], curves))
    traces = [
        line([], [], simulated.stages[at].end.isoformat(), colour, line={"dash": dash})
        for at, colour, dash in zip(shown, PALETTE, _DASHES, strict=False)
    ]
    reading = (
        "Water value by the policy's cuts, against the storage of the plant on days when a stage ends, over "
        "the "
        "range that the "
        "simulation visits. All else, other reservoirs and past inflow, is at its mean over the scenarios. "
        "Steep "
        "curves mark storages below which water becomes scarce."
    )
    return Figure(
        "water-value-curves",
        "Water value against storage",
        reading,
        traces,
        axes("storage, hm³", "water value, $/hm³"),
        420,
        choices,
        "Plant",
        "hydro",
    )
