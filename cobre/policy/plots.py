"""A picture of a policy: the future cost, and the worth of water, against the storage of a plant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cobre._distribution import install_hint
from cobre.errors import CobreError
from cobre.policy.evaluate import (
    STORAGE,
    future_cost,
    plant_label,
    state_of,
    storage_place,
    water_values,
    wrong,
)

if TYPE_CHECKING:
    from cobre.policy.model import Policy

_POINTS = 101


def future_cost_figure(
    policy: Policy, plant: str | int | None, stage: int, state: Any, storage: Any, points: int
) -> Any:
    """Return the figure of :meth:`cobre.policy.Policy.plot`."""
    graph_objects, make_subplots = _plotly()
    if not any(part.kind == STORAGE for part in policy.components):
        raise wrong("plant", plant, "a plant with a reservoir, which this policy has none of")
    place = (
        next(number for number, part in enumerate(policy.components) if part.kind == STORAGE)
        if plant is None
        else storage_place(policy, plant)
    )
    label = plant_label(policy.components[place])
    base = state_of(policy, {} if state is None else state)
    storages, costs, worth = curve(policy, place, stage, base, _range(policy, place, base, storage), points)
    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, vertical_spacing=0.08)
    figure.add_trace(graph_objects.Scatter(x=storages, y=costs, name="future cost, $"), row=1, col=1)
    line = {"shape": "hv"}
    figure.add_trace(
        graph_objects.Scatter(x=storages, y=worth, name="water value, $/hm3", line=line), row=2, col=1
    )
    node = policy.nodes[stage]
    figure.update_xaxes(title_text=f"storage of {label}, hm3", row=2, col=1)
    figure.update_yaxes(title_text="$", row=1, col=1)
    figure.update_yaxes(title_text="$/hm3", row=2, col=1)
    figure.update_layout(title=f"Future cost on {node.end_date}, the end of stage {node.stage_id}")
    return figure


def curve(
    policy: Policy, place: int, stage: int, base: NDArray[np.float64], ends: tuple[float, float], points: int
) -> tuple[NDArray[np.float64], list[float], list[float]]:
    """Return storages of one reservoir, and future cost ($) and water value ($/hm3) at each."""
    label = plant_label(policy.components[place])
    storages = np.linspace(*ends, points)
    costs, worth = [], []
    for value in storages.tolist():
        state = base.copy()
        state[place] = value
        costs.append(future_cost(policy, stage, state))
        worth.append(water_values(policy, stage, state)[label])
    return storages, costs, worth


def _range(policy: Policy, place: int, base: NDArray[np.float64], storage: Any) -> tuple[float, float]:
    """Return the storages shown: as given, else the study's limits, else up to twice that of the state."""
    if storage is not None:
        try:
            least, most = (float(value) for value in storage)
        except (TypeError, ValueError):
            raise wrong("storage", storage, "two numbers of hm3") from None
        if not (np.isfinite([least, most]).all() and least < most):
            raise wrong("storage", storage, "two finite numbers of hm3, the smaller one first")
        return least, most
    if policy.study is not None:
        ids = [hydro.id for hydro in policy.study.hydros]
        hydro = ids.index(policy.components[place].entity_id)
        least = min(float(data.storage_min_hm3[hydro]) for data in policy.study.stage_data)
        most = max(float(data.storage_max_hm3[hydro]) for data in policy.study.stage_data)
        if least < most:
            return least, most
    return 0.0, 2.0 * max(float(base[place]), 0.5)


def _plotly() -> tuple[Any, Any]:
    try:
        import plotly.graph_objects
        from plotly.subplots import make_subplots
    except ImportError as error:
        raise CobreError(
            "ReportExtraMissing",
            "a policy is plotted with plotly, which is not installed",
            {"missing": error.name or "plotly"},
            f"install it with: {install_hint('report')}",
        ) from error
    return plotly.graph_objects, make_subplots
