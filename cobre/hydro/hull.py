"""The smallest concave function above given points, as planes.

In one dimension the points lie over a line, in two dimensions over a grid. The faces are found one from the
other: a plane through an edge of a known face, turned down around that edge until it touches the next point,
is the face on the other side. Points within the tolerance of a plane belong to its face, so that faces in one
plane come out as one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

_TOLERANCE = 1e-10
"""Height, relative to the largest, within which a point lies on a plane."""


@dataclass(frozen=True, eq=False)
class Face:
    """A plane ``intercept + slope . x`` above all points, and the positions of the points on it."""

    intercept: float
    slope: FloatArray
    points: IntArray


def upper_hull_1d(x: FloatArray, height: FloatArray) -> list[Face]:
    """Return the segments of the concave hull of points over a line, in ascending ``x``.

    Parameters
    ----------
    x
        Strictly increasing. A single point gives one flat segment.

    Examples
    --------
    >>> faces = upper_hull_1d(np.array([0.0, 1.0, 2.0, 3.0]), np.array([0.0, 3.0, 3.0, 4.0]))
    >>> [(face.intercept, float(face.slope[0]), face.points.tolist()) for face in faces]
    [(0.0, 3.0, [0, 1]), (2.5, 0.5, [1, 3])]
    """
    if x.size == 1:
        return [Face(float(height[0]), np.zeros(1), np.array([0]))]
    scale = max(float(np.abs(height).max()), np.finfo(np.float64).tiny)
    corners: list[int] = []
    for point in range(x.size):
        # Drop the last corner while it does not lie above the chord to the new point.
        while len(corners) > 1:
            first, last = corners[-2], corners[-1]
            share = (x[last] - x[first]) / (x[point] - x[first])
            chord = height[first] + share * (height[point] - height[first])
            if height[last] - chord > _TOLERANCE * scale:
                break
            corners.pop()
        corners.append(point)
    faces = []
    for first, last in pairwise(corners):
        slope = (height[last] - height[first]) / (x[last] - x[first])
        intercept = float(height[first] - slope * x[first])
        gap = intercept + slope * x - height
        faces.append(Face(intercept, np.array([slope]), np.flatnonzero(np.abs(gap) <= _TOLERANCE * scale)))
    return faces


def upper_hull_2d(x: FloatArray, y: FloatArray, height: FloatArray) -> list[Face]:
    """Return the faces of the concave hull of points over a grid.

    Parameters
    ----------
    x, y
        Strictly increasing, two values or more.
    height
        float64 (len(x), len(y)); points count in the order of its raveled form.

    Returns
    -------
    list of Face
        In the order of ascending slopes.
    """
    points = np.column_stack([np.repeat(x, y.size), np.tile(y, x.size)])
    height = height.ravel()
    low = points[0]
    span = points[-1] - low
    scale = float(np.abs(height).max()) or 1.0
    unit, level = (points - low) / span, height / scale
    faces = _wrap(unit, level)
    found = []
    for plane, members in faces:
        slope = scale * plane[1:] / span
        found.append(Face(float(scale * plane[0] - slope @ low), slope, members))
    return sorted(found, key=lambda face: tuple(face.slope))


def _wrap(unit: FloatArray, level: FloatArray) -> list[tuple[FloatArray, IntArray]]:
    """Return planes (intercept and slopes) and their points, in scaled coordinates."""
    lifted = np.column_stack([np.ones(len(unit)), unit])
    border = np.flatnonzero(unit[:, 0] == 0.0)
    border = border[np.argsort(unit[border, 1])]
    edge = upper_hull_1d(unit[border, 1], level[border])[0]
    start = np.array([edge.intercept, 0.0, edge.slope[0]])
    # Turn the plane through an edge over the border until it rests on a point.
    outer = unit[:, 0] > 0.0
    start[1] = ((level - lifted @ start)[outer] / unit[outer, 0]).max()
    faces: list[tuple[FloatArray, IntArray]] = []
    done: set[tuple[int, int]] = set()
    open_faces = deque([start])
    while open_faces:
        plane = open_faces.popleft()
        members = np.flatnonzero(np.abs(lifted @ plane - level) <= _TOLERANCE)
        ring = _convex_ring(unit, members)
        edges = list(zip(ring, ring[1:] + ring[:1], strict=True))
        if len(ring) < 3 or all(edge in done for edge in edges):
            continue
        plane = _plane_of(lifted, level, ring)
        faces.append((plane, members))
        done.update(edges)
        for tail, head in edges:
            if (head, tail) in done:
                continue
            neighbour = _turn(lifted, level, plane, tail, head)
            if neighbour is not None:
                open_faces.append(neighbour)
        if len(faces) > 2 * len(unit):
            raise ArithmeticError("the concave hull does not close")
    if not faces:
        raise ArithmeticError("the concave hull has no faces")
    return faces


def _turn(
    lifted: FloatArray, level: FloatArray, plane: FloatArray, tail: int, head: int
) -> FloatArray | None:
    """Return the face on the right of the edge from ``tail`` to ``head``; ``None`` on the outer border.

    All planes through the edge are ``plane + t * d`` with d the signed distance from the edge's line.
    The smallest t that keeps the plane above all points on that side is the largest ratio below.
    """
    _, x0, y0 = lifted[tail]
    _, x1, y1 = lifted[head]
    length = np.hypot(x1 - x0, y1 - y0)
    across = np.array([y0 * (x1 - x0) - x0 * (y1 - y0), y1 - y0, x0 - x1]) / length
    away = lifted @ across
    outer = away > 1e-9
    if not outer.any():
        return None
    turn = ((level - lifted @ plane)[outer] / away[outer]).max()
    turned: FloatArray = plane + turn * across
    return turned


def _plane_of(lifted: FloatArray, level: FloatArray, ring: list[int]) -> FloatArray:
    """Return the plane through the widest triangle of a ring, free of the rounding of many turns."""
    base = lifted[ring[0], 1:]
    best, widest = (ring[0], ring[1], ring[2]), 0.0
    for first, second in pairwise(ring[1:]):
        a, b = lifted[first, 1:] - base, lifted[second, 1:] - base
        area = abs(a[0] * b[1] - a[1] * b[0])
        if area > widest:
            best, widest = (ring[0], first, second), float(area)
    corners = np.array(best)
    plane: FloatArray = np.linalg.solve(lifted[corners], level[corners])
    return plane


def _convex_ring(unit: FloatArray, members: IntArray) -> list[int]:
    """Return the corners of the convex hull of some points, counter-clockwise."""
    order = members[np.lexsort((unit[members, 1], unit[members, 0]))].tolist()
    if len(order) < 3:
        return list(order)
    lower = _half_ring(unit, order)
    upper = _half_ring(unit, reversed(order))
    return lower[:-1] + upper[:-1]


def _half_ring(unit: FloatArray, order: Iterable[int]) -> list[int]:
    ring: list[int] = []
    for point in order:
        while len(ring) > 1:
            a, b = unit[ring[-1]] - unit[ring[-2]], unit[point] - unit[ring[-2]]
            if a[0] * b[1] - a[1] * b[0] > 1e-12:
                break
            ring.pop()
        ring.append(point)
    return ring
