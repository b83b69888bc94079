"""``stochastic.html``: the uncertainty of a study as one page with plots, complete in itself.

Plots are made by plotly, which is an extra (``report``) and imported only here. Its code is part of the page,
so that it opens anywhere.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cobre._distribution import install_hint
from cobre.errors import CobreError
from cobre.results.files import atomic_write, output_errors

if TYPE_CHECKING:
    from cobre.stochastic.report.document import StochasticReport

PAGE = "stochastic.html"

_OBSERVED, _STATED, _GENERATED = "#333333", "#d1782f", "#2f6fb2"
_MOMENTS = (("mean", "mean, m³/s"), ("std", "deviation, m³/s"), ("lag1", "lag-1 correlation"))
_MOST_ROWS = 2000
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #222; }
body { max-width: 1080px; margin: 2em auto; padding: 0 1em; }
h1 { font-size: 1.5em; } h2 { font-size: 1.15em; margin-top: 2em; }
table { border-collapse: collapse; font-size: 0.92em; }
td, th { padding: 0.15em 0.8em 0.15em 0; text-align: left; }
td.number { text-align: right; font-variant-numeric: tabular-nums; } p.note { color: #555; }
details { margin: 0.5em 0; } summary { cursor: pointer; }
"""


class ReportExtraError(CobreError):
    """Plotly is not installed, so that there are no plots."""


def write_page(output_dir: Path, report: StochasticReport) -> Path:
    """Write the page to ``<output>/stochastic.html``.

    Raises
    ------
    ReportExtraError
        When plotly is not installed.
    OutputError
        When the file cannot be written.
    """
    content = page(report).encode()
    target = output_dir / PAGE
    with output_errors(target):
        output_dir.mkdir(parents=True, exist_ok=True)
    atomic_write(target, lambda file: _write_all(file, content))
    return target


def _write_all(file: Any, content: bytes) -> None:
    file.write(content)


def page(report: StochasticReport) -> str:
    """Return the page as one HTML document."""
    _require_plotly()
    name = html.escape(report.case.path.name)
    parts = [
        f"<h1>Uncertainty of {name}</h1>",
        _key_values(report.rows()),
        "<h2>Moments of inflows</h2>",
        f"<p class='note'>{_what_was_run(report)}</p>",
    ]
    figures = [("moments", _moments(report)), ("all-plants", _all_plants(report))]
    if len(report.case.hydros) > 1:
        figures.append(("spatial", _spatial(report)))
    figures += [("orders", _orders(report)), ("openings", _openings(report))]
    titles = {
        "all-plants": "All plants and seasons at once",
        "spatial": "Correlation between plants",
        "orders": "Orders",
        "openings": "Openings",
    }
    for number, (key, figure) in enumerate(figures):
        if figure is None:
            continue
        if key in titles:
            parts.append(f"<h2>{titles[key]}</h2>")
        parts.append(
            figure.to_html(full_html=False, include_plotlyjs=number == 0, div_id=key, validate=False)
        )
    parts += _tables(report)
    body = "\n".join(parts)
    return (
        "<!DOCTYPE html>\n<html lang='en'>\n<head>\n<meta charset='utf-8'>\n"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>\n"
        f"<title>Uncertainty of {name}</title>\n<style>{_STYLE}</style>\n</head>\n"
        f"<body>\n{body}\n</body>\n</html>\n"
    )


def _require_plotly() -> None:
    try:
        import plotly.graph_objects  # noqa: F401
    except ImportError as error:
        raise ReportExtraError(
            "ReportExtraMissing",
            f"{PAGE} is not written, since plotly is not installed",
            {"file": PAGE, "missing": error.name or "plotly"},
            f"install it with: {install_hint('report')}",
        ) from error


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


def _moments(report: StochasticReport) -> Any:
    """Return mean, deviation and lag-1 correlation by season, for a plant to be chosen."""
    from plotly.graph_objects import Scatter
    from plotly.subplots import make_subplots

    hydros = report.case.hydros
    if not hydros:
        return None
    labels, pairs = _labels(report), _pairs(report)
    figure = make_subplots(
        rows=3,
        cols=1,
        shared_xaxes=True,
        vertical_spacing=0.06,
        subplot_titles=[text for _, text in _MOMENTS],
    )
    owner: list[int] = []
    styles = (
        ("observed", _OBSERVED, "markers"),
        ("stated", _STATED, "lines"),
        ("generated", _GENERATED, "lines"),
    )
    for hydro in range(len(hydros)):
        for row, (key, _) in enumerate(_MOMENTS, start=1):
            for (name, colour, mode), values in zip(styles, pairs[key], strict=True):
                # Stated moments are observed ones where there are any.
                if values is None or (name == "stated" and report.quality.has_observations):
                    continue
                owner.append(hydro)
                figure.add_trace(
                    Scatter(
                        x=labels,
                        y=_numbers(values[:, hydro]),
                        name=name,
                        mode=mode,
                        line={"color": colour, "dash": "dot" if name == "stated" else "solid"},
                        marker={"color": colour, "size": 8},
                        legendgroup=name,
                        showlegend=row == 1,
                        visible=hydro == 0,
                    ),
                    row=row,
                    col=1,
                )
    choices = [
        {
            "label": f"{plant.id} {plant.name}",
            "method": "update",
            "args": [{"visible": [number == hydro for number in owner]}],
        }
        for hydro, plant in enumerate(hydros)
    ]
    return _finish(figure, 760, choices)


def _all_plants(report: StochasticReport) -> Any:
    """Return generated against observed (stated) moments of all plants and seasons."""
    from plotly.graph_objects import Scattergl
    from plotly.subplots import make_subplots

    pairs, labels = _pairs(report), _labels(report)
    shown = [
        (key, text, first if first is not None else second, made)
        for (key, text) in _MOMENTS
        for first, second, made in [pairs[key]]
        if first is not None or second is not None
    ]
    if not report.case.hydros:
        return None
    figure = make_subplots(rows=1, cols=len(shown), subplot_titles=[text for _, text, _, _ in shown])
    who = [f"{hydro.name}, {label}" for label in labels for hydro in report.case.hydros]
    known = "observed" if report.quality.has_observations else "stated"
    for column, (_, _, reference, made) in enumerate(shown, start=1):
        figure.add_trace(
            Scattergl(
                x=_numbers(reference.ravel()),
                y=_numbers(made.ravel()),
                text=who,
                mode="markers",
                marker={"color": _GENERATED, "size": 5, "opacity": 0.6},
                showlegend=False,
            ),
            row=1,
            col=column,
        )
        ends = _span((reference, made))
        figure.add_trace(
            Scattergl(x=ends, y=ends, mode="lines", line={"color": _OBSERVED, "width": 1}, showlegend=False),
            row=1,
            col=column,
        )
        figure.update_xaxes(title=known, row=1, col=column)
    figure.update_yaxes(title="generated", row=1, col=1)
    return _finish(figure, 400)


def _spatial(report: StochasticReport) -> Any:
    """Return correlations between plants, observed and generated, for a season to be chosen."""
    from plotly.graph_objects import Heatmap
    from plotly.subplots import make_subplots

    quality, names = report.quality, [f"{hydro.id} {hydro.name}" for hydro in report.case.hydros]
    sides = [("generated", quality.generated.spatial)]
    if quality.has_observations:
        sides.insert(0, ("observed", quality.observed_spatial))
    figure = make_subplots(rows=1, cols=len(sides), subplot_titles=[name for name, _ in sides])
    labels = _labels(report)
    for row in range(len(labels)):
        for column, (_, values) in enumerate(sides, start=1):
            figure.add_trace(
                Heatmap(
                    z=[_numbers(line, 3) for line in values[row]],
                    x=names,
                    y=names,
                    zmin=-1.0,
                    zmax=1.0,
                    colorscale="RdBu",
                    reversescale=False,
                    visible=row == 0,
                    showscale=column == len(sides),
                ),
                row=1,
                col=column,
            )
    figure.update_yaxes(autorange="reversed")
    choices = [
        {
            "label": label,
            "method": "update",
            "args": [{"visible": [at == row for at in range(len(labels)) for _ in sides]}],
        }
        for row, label in enumerate(labels)
    ]
    return _finish(figure, 520, choices)


def _orders(report: StochasticReport) -> Any:
    """Return orders by plant and season (given models: stage)."""
    from plotly.graph_objects import Figure, Heatmap

    fit = report.inflow.fit if report.provenance.ar_coefficients_source == "history" else None
    if fit is None:
        orders, across = report.inflow.order, [f"stage {stage.id}" for stage in report.case.stages]
    else:
        orders, across = fit.order, [f"season {season}" for season in fit.season_ids.tolist()]
    if not orders.any():
        return None
    names = [f"{hydro.id} {hydro.name}" for hydro in report.case.hydros]
    figure = Figure(
        Heatmap(
            z=orders.T.tolist(), x=across, y=names, colorscale="Blues", zmin=0, colorbar={"title": "order"}
        )
    )
    figure.update_yaxes(autorange="reversed")
    return _finish(figure, 160 + 22 * min(max(len(names), 5), 40))


def _openings(report: StochasticReport) -> Any:
    """Return how the noise of the openings is distributed, and its moments by node."""
    from plotly.graph_objects import Bar, Scatter
    from plotly.subplots import make_subplots

    noise = report.tree.noise[~np.isnan(report.tree.noise)]
    if not noise.size:
        return None
    heights, edges = np.histogram(noise, bins=min(60, max(10, noise.size // 20)), density=True)
    centres = (edges[:-1] + edges[1:]) / 2.0
    grid = np.linspace(-4.0, 4.0, 161)
    figure = make_subplots(
        rows=1, cols=2, subplot_titles=["noise and the standard normal density", "mean and deviation by node"]
    )
    figure.add_trace(
        Bar(x=_numbers(centres), y=_numbers(heights), marker={"color": _GENERATED}, name="openings"),
        row=1,
        col=1,
    )
    density = np.exp(-grid * grid / 2.0) / np.sqrt(2.0 * np.pi)
    figure.add_trace(
        Scatter(x=_numbers(grid), y=_numbers(density), line={"color": _OBSERVED}, name="density"),
        row=1,
        col=1,
    )
    items = [item for item in report.opening_summary if item.noise_mean is not None]
    where = [f"stage {item.stage_id}, node {item.node}" for item in items]
    for name, values, colour in (
        ("mean", [item.noise_mean for item in items], _GENERATED),
        ("deviation", [item.noise_std for item in items], _STATED),
    ):
        figure.add_trace(Scatter(x=where, y=values, name=name, line={"color": colour}), row=1, col=2)
    return _finish(figure, 400)


def _finish(figure: Any, height: int, choices: Sequence[dict[str, Any]] = ()) -> Any:
    menus, top, bottom = [], 50, 70
    if len(choices) > 1:
        top = 90
        above = 1.0 + 28.0 / (height - top - bottom)  # over the titles of the plots
        menus = [{"buttons": list(choices), "x": 1.0, "xanchor": "right", "y": above, "yanchor": "bottom"}]
    figure.update_layout(
        height=height,
        template="plotly_white",
        margin={"l": 60, "r": 20, "t": top, "b": bottom},
        updatemenus=menus,
        legend={"orientation": "h", "y": -40.0 / (height - top - bottom), "yanchor": "top"},
    )
    return figure


def _numbers(values: NDArray[np.float64], digits: int = 6) -> list[float | None]:
    """Return plain numbers of so many significant digits; ``None`` where there is none."""
    return [None if np.isnan(value) else float(f"{value:.{digits}g}") for value in values.tolist()]


def _span(parts: Iterable[NDArray[np.float64]]) -> list[float]:
    values = np.concatenate([part.ravel() for part in parts])
    values = values[~np.isnan(values)]
    return [float(values.min()), float(values.max())] if values.size else [0.0, 1.0]


def _key_values(rows: dict[str, str]) -> str:
    lines = [
        f"<tr><th>{html.escape(name)}</th><td>{html.escape(text)}</td></tr>" for name, text in rows.items()
    ]
    return "<table>\n" + "\n".join(lines) + "\n</table>"


def _tables(report: StochasticReport) -> list[str]:
    """Return coefficients, annual components and lowered orders, each behind a line to open it."""
    shown = (
        ("coefficients", "Coefficients"),
        ("annual", "Annual component"),
        ("reductions", "Orders lowered"),
    )
    found = []
    for key, title in shown:
        table = report.tables[key]
        if not len(table):
            continue
        columns = [name for name in table.column_names if table[name].null_count < len(table)]
        head = "".join(f"<th>{html.escape(name)}</th>" for name in columns)
        body = "\n".join(
            "<tr>" + "".join(f"<td class='number'>{_cell(row[name])}</td>" for name in columns) + "</tr>"
            for row in table.slice(0, _MOST_ROWS).to_pylist()
        )
        more = f", of which the first {_MOST_ROWS} are here" if len(table) > _MOST_ROWS else ""
        found.append(
            f"<details><summary>{title}: {len(table)} rows{more}</summary>\n"
            f"<table><tr>{head}</tr>\n{body}</table></details>"
        )
    return found


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list):
        return html.escape(", ".join(f"{item:.4g}" for item in value))
    return html.escape(str(value))
