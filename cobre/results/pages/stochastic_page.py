"""``stochastic.html``: the uncertainty of a study as one page; reports of runs have parts of it, too."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cobre.results.pages import page as furniture
from cobre.results.pages.figures import Choice, Figure, FloatArray, bars, line, numbers
from cobre.results.pages.page import Page, Section, escape
from cobre.results.pages.plotly_code import ReportExtraError

if TYPE_CHECKING:
    from cobre.stochastic.report.document import StochasticReport

__all__ = ["PAGE", "ReportExtraError", "fit_parts", "page", "write_page"]

PAGE = "stochastic.html"

_OBSERVED, _STATED, _GENERATED = "@dark", "@orange", "@blue"
_MOMENTS = (("mean", "mean, m³/s"), ("std", "deviation, m³/s"), ("lag1", "lag-1 correlation"))
_STYLES = (
    ("observed", _OBSERVED, "markers"),
    ("stated", _STATED, "lines"),
    ("generated", _GENERATED, "lines"),
)
_MOST_ROWS = 2000
_MOST_POINTS = 6000
"""Points of a cloud; the page draws them one by one."""


def write_page(output_dir: Path, report: StochasticReport) -> Path:
    """Write the page to ``<output>/stochastic.html``.

    Raises
    ------
    ReportExtraError
        When plotly is not installed.
    OutputError
        When the file cannot be written.
    """
    target = output_dir / PAGE
    furniture.write_page(target, page(report))
    return target


def page(report: StochasticReport) -> Page:
    """Return the page."""
    name = report.case.path.name
    sections = [
        Section(
            "model", "The model", parts=[furniture.card("", furniture.key_values(report.rows().items()))]
        ),
        Section("inflow", "How well generated inflow fits", escape(_what_was_run(report)), fit_parts(report)),
        Section(
            "openings-section",
            "Openings",
            "The branches that training sees at each stage.",
            _opening_parts(report),
        ),
        Section("tables", "Tables", parts=list(_tables(report))),
    ]
    return Page(
        f"Uncertainty of {name}",
        escape(f"{len(report.case.stages)} stages, {len(report.case.hydros)} hydro plants"),
        [section for section in sections if section.parts],
    )


def fit_parts(report: StochasticReport) -> list[Figure | str]:
    """Return figures of how well the inflow model fits."""
    if not report.case.hydros:
        return []
    found = [_moments(report), _all_plants(report), _spatial(report), _orders(report)]
    return [figure for figure in found if figure is not None]


def _opening_parts(report: StochasticReport) -> list[Figure | str]:
    return list(_openings(report))


def _what_was_run(report: StochasticReport) -> str:
    sample = report.quality.generated
    if sample.kind == "season cycle":
        made = f"Generated: {sample.size} years of the model, far from where the study starts."
    else:
        made = f"Generated: {sample.size} runs of the study from what was observed before it."
    if report.quality.has_observations:
        return f"{made} Observed: the history of the case, as it is."
    return f"{made} The case has no history; stated are the statistics of its files."


def _labels(report: StochasticReport) -> list[str]:
    """Return a name for each season or stage of the sample."""
    sample = report.quality.generated
    if sample.kind == "study":
        return [f"stage {report.case.stages[at].id}" for at in sample.stage.tolist()]
    names = (
        {} if report.case.seasons is None else {item.id: item.label for item in report.case.seasons.seasons}
    )
    return [names.get(season, f"season {season}") for season in sample.season_id.tolist()]


def _pairs(report: StochasticReport) -> dict[str, tuple[Any, Any, Any]]:
    """Return observed, stated and generated moments by name; ``None`` where there are none."""
    quality = report.quality
    made, seen = quality.generated, quality.has_observations
    return {
        "mean": (quality.observed_mean_m3s if seen else None, quality.stated_mean_m3s, made.mean_m3s),
        "std": (quality.observed_std_m3s if seen else None, quality.stated_std_m3s, made.std_m3s),
        "lag1": (quality.observed_lag1 if seen else None, None, made.lag1),
    }


def _moments(report: StochasticReport) -> Figure:
    """Return mean, deviation and lag-1 correlation by season, for a plant to be chosen."""
    hydros, labels, pairs = report.case.hydros, _labels(report), _pairs(report)
    traces: list[dict[str, Any]] = []
    values: list[FloatArray] = []
    for row, (key, _) in enumerate(_MOMENTS, start=1):
        for (name, colour, mode), known in zip(_STYLES, pairs[key], strict=True):
            # Stated moments are observed ones where there are any.
            if known is None or (name == "stated" and report.quality.has_observations):
                continue
            values.append(known)
            trace = line(
                labels, [], name, colour, mode=mode, line={"dash": "dot" if name == "stated" else "solid"}
            )
            shape = {"marker": {"color": colour, "size": 8}, "legendgroup": name, "showlegend": row == 1}
            traces.append({**trace, **shape, "xaxis": _axis("x", row), "yaxis": _axis("y", row)})
    choices = [
        Choice(f"{plant.id} {plant.name}", [{"y": numbers(part[:, at], 6)} for part in values])
        for at, plant in enumerate(hydros)
    ]
    layout: dict[str, Any] = {"grid": {"rows": 3, "columns": 1, "pattern": "independent", "ygap": 0.18}}
    for row, (_, text) in enumerate(_MOMENTS, start=1):
        layout[_axis("yaxis", row)] = {"title": {"text": text}}
        layout[_axis("xaxis", row)] = {"type": "category", "showticklabels": row == len(_MOMENTS)}
    return Figure(
        "moments",
        "Moments of inflows",
        "Generated inflow should have the mean, spread and persistence of what it stands for: lines "
        "through the dots.",
        traces,
        layout,
        720,
        choices,
    )


def _all_plants(report: StochasticReport) -> Figure:
    """Return generated against observed (stated) moments of all plants and seasons."""
    pairs, labels = _pairs(report), _labels(report)
    shown = [
        (key, text, first if first is not None else second, made)
        for (key, text) in _MOMENTS
        for first, second, made in [pairs[key]]
        if first is not None or second is not None
    ]
    who = np.array([f"{hydro.name}, {label}" for label in labels for hydro in report.case.hydros])
    known = "observed" if report.quality.has_observations else "stated"
    traces: list[dict[str, Any]] = []
    layout: dict[str, Any] = {
        "grid": {"rows": 1, "columns": len(shown), "pattern": "independent", "xgap": 0.14},
        "hovermode": "closest",
        "showlegend": False,
    }
    for column, (_, text, reference, made) in enumerate(shown, start=1):
        axes = {"xaxis": _axis("x", column), "yaxis": _axis("y", column)}
        some = slice(None, None, max(1, -(-reference.size // _MOST_POINTS)))
        cloud = line(
            numbers(reference.ravel()[some], 6),
            made.ravel()[some],
            text,
            _GENERATED,
            mode="markers",
            digits=6,
        )
        marker = {"color": f"{_GENERATED}/0.6", "size": 5}
        traces.append({**cloud, "marker": marker, "text": who[some].tolist(), **axes})
        ends = _span((reference, made))
        traces.append(
            {**line(ends, ends, "equal", _OBSERVED, line={"width": 1}), "hoverinfo": "skip", **axes}
        )
        layout[_axis("xaxis", column)] = {"title": {"text": f"{text}: {known}"}}
        layout[_axis("yaxis", column)] = {"title": {"text": "generated"} if column == 1 else {}}
    return Figure(
        "all-plants",
        "All plants and seasons at once",
        "Each point is a plant in a season; on the line generated and known moments are equal.",
        traces,
        layout,
        400,
    )


def _spatial(report: StochasticReport) -> Figure | None:
    """Return correlations between plants, observed and generated, for a season to be chosen."""
    if len(report.case.hydros) < 2:
        return None
    quality, names = report.quality, [f"{hydro.id} {hydro.name}" for hydro in report.case.hydros]
    sides = [("generated", quality.generated.spatial)]
    if quality.has_observations:
        sides.insert(0, ("observed", quality.observed_spatial))
    labels = _labels(report)
    traces = [
        {
            "type": "heatmap",
            "name": name,
            "x": names,
            "y": names,
            "zmin": -1.0,
            "zmax": 1.0,
            "colorscale": [[0.0, "@orange"], [0.5, "@card"], [1.0, "@blue"]],
            "showscale": column == len(sides),
            "xaxis": _axis("x", column),
            "yaxis": _axis("y", column),
            "hovertemplate": "%{y}<br>%{x}: %{z}<extra>" + name + "</extra>",
        }
        for column, (name, _) in enumerate(sides, start=1)
    ]
    digits = 3 if len(names) <= 60 else 2
    choices = [
        Choice(label, [{"z": [numbers(part, digits) for part in values[row]]} for _, values in sides])
        for row, label in enumerate(labels)
    ]
    layout: dict[str, Any] = {
        "grid": {"rows": 1, "columns": len(sides), "pattern": "independent", "xgap": 0.2},
        "hovermode": "closest",
    }
    for column, (name, _) in enumerate(sides, start=1):
        layout[_axis("xaxis", column)] = {
            "title": {"text": name},
            "showticklabels": len(names) <= 40,
            "type": "category",
        }
        layout[_axis("yaxis", column)] = {
            "autorange": "reversed", "showticklabels": column == 1 and len(names) <= 60, "type": "category"
        }  # fmt: skip
    return Figure(
        "spatial",
        "Correlation between plants",
        "Whether rivers are dry together: blue pairs rise and fall alike. Generated and observed pictures "
        "should agree.",
        traces,
        layout,
        520,
        choices,
        "Season" if report.quality.generated.kind == "season cycle" else "Stage",
    )


def _orders(report: StochasticReport) -> Figure | None:
    """Return orders by plant and season (given models: stage)."""
    fit = report.inflow.fit if report.provenance.ar_coefficients_source == "history" else None
    if fit is None:
        orders, across = report.inflow.order, [f"stage {stage.id}" for stage in report.case.stages]
    else:
        orders, across = fit.order, [f"season {season}" for season in fit.season_ids.tolist()]
    if not orders.any():
        return None
    names = [f"{hydro.id} {hydro.name}" for hydro in report.case.hydros]
    trace = {
        "type": "heatmap",
        "name": "order",
        "z": orders.T.tolist(),
        "x": across,
        "y": names,
        "colorscale": [[0.0, "@scale-low"], [1.0, "@scale-high"]],
        "zmin": 0,
        "colorbar": {"title": {"text": "order"}, "thickness": 12, "outlinewidth": 0},
        "hovertemplate": "%{y}, %{x}: order %{z}<extra></extra>",
    }
    return Figure(
        "orders",
        "Orders",
        "How many earlier periods the inflow of a plant depends on.",
        [trace],
        {"yaxis": {"autorange": "reversed", "type": "category"}, "hovermode": "closest"},
        160 + 22 * min(max(len(names), 5), 40),
    )


def _openings(report: StochasticReport) -> list[Figure]:
    """Return how the noise of the openings is distributed, and its moments by node."""
    noise = report.tree.noise[~np.isnan(report.tree.noise)]
    if not noise.size:
        return []
    heights, edges = np.histogram(noise, bins=min(60, max(10, noise.size // 20)), density=True)
    centres = (edges[:-1] + edges[1:]) / 2.0
    grid = np.linspace(-4.0, 4.0, 161)
    density = np.exp(-grid * grid / 2.0) / np.sqrt(2.0 * np.pi)
    items = [item for item in report.opening_summary if item.noise_mean is not None]
    where = [f"stage {item.stage_id}, node {item.node}" for item in items]
    return [
        Figure(
            "openings",
            "Noise of all openings",
            "Bars follow the curve where the openings cover what the model can draw.",
            [
                bars(centres.tolist(), heights, "openings", _GENERATED, digits=6),
                line(grid.tolist(), density, "standard normal", _OBSERVED, digits=6),
            ],
            {"xaxis": {"title": {"text": "noise"}}, "yaxis": {"title": {"text": "density"}}, "bargap": 0.05},
            380,
            half=True,
        ),
        Figure(
            "opening-moments",
            "Moments by node",
            "Mean near 0 and deviation near 1 at each node; less with few openings.",
            [
                line(where, np.array([item.noise_mean for item in items], float), "mean", _GENERATED),
                line(
                    where,
                    np.array([item.noise_std for item in items], float),
                    "deviation",
                    _STATED,
                    line={"dash": "dash"},
                ),
            ],
            {
                "xaxis": {"type": "category", "nticks": 8},
                "yaxis": {"title": {"text": "noise"}},
                "hovermode": "x unified",
            },
            380,
            half=True,
        ),
    ]


def _axis(name: str, number: int) -> str:
    """Return what plotly calls an axis of one of several plots, which are counted from 1."""
    return name if number == 1 else f"{name}{number}"


def _span(parts: Sequence[FloatArray]) -> list[float]:
    values = np.concatenate([part.ravel() for part in parts])
    values = values[~np.isnan(values)]
    return [float(values.min()), float(values.max())] if values.size else [0.0, 1.0]


def _tables(report: StochasticReport) -> list[str]:
    """Return coefficients, annual components and lowered orders, each behind a line to open it."""
    shown = (
        ("coefficients", "Coefficients"),
        ("annual", "Annual component"),
        ("reductions", "Orders lowered"),
    )
    found = []
    for key, title in shown:
        rows = report.tables[key]
        if not len(rows):
            continue
        columns = [name for name in rows.column_names if rows[name].null_count < len(rows)]
        body = ([_cell(row[name]) for name in columns] for row in rows.slice(0, _MOST_ROWS).to_pylist())
        more = f", of which the first {_MOST_ROWS} are here" if len(rows) > _MOST_ROWS else ""
        content = furniture.table(columns, body, texts=0, caption=title)
        found.append(f"<details><summary>{title}: {len(rows)} rows{more}</summary>\n{content}</details>")
    return found


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list):
        return ", ".join(f"{item:.4g}" for item in value)
    return str(value)
