"""What the figures of a page are made of: traces of plotly as plain data, numbers cut to what can be seen.

Colours are roles of the style sheet (``@blue``, ``@blue/0.2``), replaced on the page by those of the theme.
They can be told apart with any kind of colour vision, and differ in dash, position or label, too.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]
Trace = dict[str, Any]

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
"""Of fans: what 5, 25, 50, 75 and 95 of 100 scenarios do not exceed."""

PALETTE = ("@blue", "@orange", "@green", "@purple", "@yellow", "@sky", "@grey", "@dark")

DIGITS = 5
"""Significant digits of the numbers in pages."""


@dataclass(frozen=True)
class Choice:
    """What a figure shows when an entry of its menu is chosen: keys that replace those of each trace."""

    label: str
    traces: Sequence[Trace]
    layout: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Figure:
    """A plot with its heading and what a reader takes from it.

    Attributes
    ----------
    key
        Id of its place on the page.
    reading
        What is shown, and what it means for a planner; HTML.
    choices, choice_name, group
        Entries of a menu and what they are (``Plant``); figures of the same group follow each other.
    half
        Whether it takes half of a wide screen, beside the next one.
    """

    key: str
    title: str
    reading: str
    traces: Sequence[Trace]
    layout: Mapping[str, Any]
    height: int = 400
    choices: Sequence[Choice] = ()
    choice_name: str = "Plant"
    group: str | None = None
    half: bool = False

    def as_data(self) -> dict[str, Any]:
        """Return what the page draws it from."""
        data: dict[str, Any] = {"traces": list(self.traces), "layout": self.layout, "height": self.height}
        if self.choices:
            data["choices"] = [
                {"label": part.label, "traces": list(part.traces), "layout": part.layout}
                for part in self.choices
            ]
        if self.group is not None:
            data["group"] = self.group
        return data


def numbers(values: ArrayLike, digits: int = DIGITS) -> list[float | int | None]:
    """Return plain numbers of so many significant digits; ``None`` where one is not finite."""
    return [_short(value, digits) for value in np.asarray(values, np.float64).ravel().tolist()]


def _short(value: float, digits: int) -> float | int | None:
    if not np.isfinite(value):
        return None
    short = float(f"{value:.{digits}g}")
    return int(short) if short == int(short) and abs(short) < 1e15 else short


def dates(days: Iterable[datetime.date]) -> list[str]:
    """Return dates as plotly reads them."""
    return [day.isoformat() for day in days]


def fan(x: Sequence[Any], quantiles: ArrayLike, mean: ArrayLike, role: str = "@blue") -> list[Trace]:
    """Return the traces of a fan: bands of 90 and 50 % of the scenarios, median and mean.

    Parameters
    ----------
    quantiles
        float64[5, x], of :data:`QUANTILES`.
    mean
        float64[x].
    """
    thin = {"width": 0.5, "color": f"{role}/0.6"}
    styles: tuple[tuple[str, Trace], ...] = (
        ("95 %", {"line": thin, "showlegend": False}),
        ("75 %", {"line": thin, "fill": "tonexty", "fillcolor": f"{role}/0.16", "name": "75 %"}),
        ("median", {"line": {"width": 2.5, "color": role}, "fill": "tonexty", "fillcolor": f"{role}/0.34"}),
        ("25 %", {"line": thin, "fill": "tonexty", "fillcolor": f"{role}/0.34", "showlegend": False}),
        ("5 %", {"line": thin, "fill": "tonexty", "fillcolor": f"{role}/0.16", "showlegend": False}),
    )
    values = np.asarray(quantiles, np.float64)[::-1]
    found = []
    for (name, style), line in zip(styles, values, strict=True):
        trace = {"type": "scatter", "mode": "lines", "name": name, "x": list(x), "y": numbers(line), **style}
        if name == "75 %":
            trace["showlegend"] = False
        found.append(trace)
    found.append(
        {
            "type": "scatter",
            "mode": "lines",
            "name": "mean",
            "x": list(x),
            "y": numbers(mean),
            "line": {"width": 1.8, "color": "@orange", "dash": "dash"},
        }
    )
    return [*found, _band(x, "25–75 %", f"{role}/0.45"), _band(x, "5–95 %", f"{role}/0.16")]


def _band(x: Sequence[Any], name: str, colour: str) -> Trace:
    """Return an entry of the legend for a band."""
    return {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        "x": [x[0]] if len(x) else [],
        "y": [None],
        "marker": {"symbol": "square", "size": 12, "color": colour},
        "hoverinfo": "skip",
    }


def fan_values(quantiles: ArrayLike, mean: ArrayLike) -> list[Trace]:
    """Return what another choice replaces in the traces of :func:`fan`."""
    lines = np.vstack([np.asarray(quantiles, np.float64)[::-1], np.asarray(mean, np.float64)[None]])
    return [*({"y": numbers(line)} for line in lines), {}, {}]


def line(x: Sequence[Any], y: ArrayLike, name: str, role: str, **more: Any) -> Trace:
    """Return a line."""
    style = {"color": role, "width": 2, **more.pop("line", {})}
    return {
        "type": "scatter",
        "mode": more.pop("mode", "lines"),
        "name": name,
        "x": list(x),
        "y": numbers(y, more.pop("digits", DIGITS)),
        "line": style,
        **more,
    }


def bars(x: Sequence[Any], y: ArrayLike, name: str, role: str, **more: Any) -> Trace:
    """Return bars."""
    digits = more.pop("digits", DIGITS)
    return {
        "type": "bar",
        "name": name,
        "x": list(x),
        "y": numbers(y, digits),
        "marker": {"color": role},
        **more,
    }


def axes(x: str | None, y: str, **more: Any) -> dict[str, Any]:
    """Return a layout with titles of the axes and one label for all lines under the pointer."""
    found: dict[str, Any] = {"yaxis": {"title": {"text": y}}, "xaxis": {}, "hovermode": "x unified"}
    if x is not None:
        found["xaxis"]["title"] = {"text": x}
    for name, value in more.items():
        found[name] = {**found.get(name, {}), **value} if isinstance(value, Mapping) else value
    return found
