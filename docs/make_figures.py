"""Makes the figures of the site from runs of cobre: ``python docs/make_figures.py``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

FIGURES = Path(__file__).with_name("figures")
ITERATIONS = 60
EVERY = 5
"""Iterations between two evaluations of the upper bound."""

_WIDTH, _HEIGHT = 720, 380
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 20, 30, 50
_LOWER, _UPPER = "#0072b2", "#d55e00"  # distinct with any colour vision

Points = Sequence[tuple[float, float]]


def convergence() -> tuple[Points, Points]:
    """Train the template four-region; return its lower and upper bounds, million $ by iteration."""
    import cobre
    from cobre.case import build
    from cobre.templates import TEMPLATES

    editor = build(TEMPLATES["four-region"].build()).edit()
    editor["config.json"]["upper_bound_evaluation"] = {
        "enabled": True,
        "initial_iteration": EVERY,
        "interval_iterations": EVERY,
    }
    history = cobre.train(editor.build(), iterations=ITERATIONS).history
    lower = [(record.iteration, record.lower_bound / 1e6) for record in history]
    upper = [
        (record.iteration, record.deterministic_upper_bound / 1e6)
        for record in history
        if record.deterministic_upper_bound is not None
    ]
    return lower, upper


def draw(lower: Points, upper: Points) -> str:
    """Return the bounds as an SVG document."""
    low, high = 850.0, 1100.0

    def place(point: tuple[float, float]) -> tuple[float, float]:
        across = (point[0] - 1) / (ITERATIONS - 1)
        up = (min(max(point[1], low), high) - low) / (high - low)
        return (
            round(_LEFT + across * (_WIDTH - _LEFT - _RIGHT), 1),
            round(_HEIGHT - _BOTTOM - up * (_HEIGHT - _TOP - _BOTTOM), 1),
        )

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        'font-family="sans-serif" font-size="13" role="img">',
        "<title>Lower and upper bound by iteration</title>",
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#ffffff"/>',
    ]
    for value in range(int(low), int(high) + 1, 50):
        x, y = place((1, value))
        parts.append(f'<line x1="{x}" y1="{y}" x2="{_WIDTH - _RIGHT}" y2="{y}" stroke="#dddddd"/>')
        parts.append(f'<text x="{x - 8}" y="{y + 4}" text-anchor="end" fill="#333333">{value}</text>')
    for iteration in (1, *range(10, ITERATIONS + 1, 10)):
        x, y = place((iteration, low))
        parts.append(f'<text x="{x}" y="{y + 20}" text-anchor="middle" fill="#333333">{iteration}</text>')
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    parts.append(f'<text x="{middle}" y="{_HEIGHT - 8}" text-anchor="middle" fill="#333333">iteration</text>')
    parts.append('<text x="8" y="18" fill="#333333">million $, risk-adjusted cost of the year</text>')
    shown = [point for point in lower if point[1] >= low]
    for points, colour, name, above in (
        (upper, _UPPER, "deterministic upper bound", True),
        (shown, _LOWER, "lower bound", False),
    ):
        within = [place(point) for point in points if math.isfinite(point[1]) and point[1] <= high]
        path = " ".join(f"{x},{y}" for x, y in within)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x}" cy="{y}" r="2.5" fill="{colour}"/>' for x, y in within]
        x, y = within[-1]
        parts.append(
            f'<text x="{x}" y="{y - 10 if above else y + 20}" text-anchor="end" fill="{colour}">'
            f"{name} {points[-1][1]:.1f}</text>"
        )
    return "\n".join([*parts, "</svg>", ""])


if __name__ == "__main__":
    (FIGURES / "convergence.svg").write_text(draw(*convergence()), encoding="utf-8")
