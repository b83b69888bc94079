"""The concave hull against SciPy's convex hull."""

import numpy as np
import pytest
from scipy.spatial import ConvexHull

from cobre.hydro.hull import upper_hull_1d, upper_hull_2d


def upper_planes(x: np.ndarray, y: np.ndarray, height: np.ndarray) -> np.ndarray:
    """Return the planes (intercept, slopes) of the upper hull by SciPy, in coordinates scaled to 0-1."""
    at = np.column_stack([np.repeat(x, y.size), np.tile(y, x.size)])
    unit = (at - at[0]) / (at[-1] - at[0])
    level = height.ravel() / np.abs(height).max()
    # One point far below closes the hull, so that flat functions have a volume too.
    closed = np.vstack([np.column_stack([unit, level]), [0.5, 0.5, -5.0]])
    planes = ConvexHull(closed).equations
    planes = planes[planes[:, 2] > 1e-9]
    return np.column_stack([-planes[:, 3], -planes[:, 0], -planes[:, 1]]) / planes[:, 2:3]


SHAPES = {
    "noise": lambda x, y, rng: rng.normal(size=np.broadcast_shapes(x.shape, y.shape)),
    "product": lambda x, y, rng: x * y,
    "concave": lambda x, y, rng: -((x - 300.0) ** 2) - 10.0 * y**2,
    "flat": lambda x, y, rng: np.full(np.broadcast_shapes(x.shape, y.shape), 3.0),
    "steps": lambda x, y, rng: np.minimum(x, 2.0 * y) + np.round(rng.uniform(size=(x.size, y.size))),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_hull_over_a_grid_equals_scipy(shape: str) -> None:
    rng = np.random.default_rng(7)
    for _ in range(40):
        x = np.sort(rng.uniform(0.0, 1000.0, rng.integers(2, 8)))
        y = np.sort(rng.uniform(0.0, 50.0, rng.integers(2, 8)))
        height = SHAPES[shape](x[:, None], y[None, :], rng)
        faces = upper_hull_2d(x, y, height)
        expected = upper_planes(x, y, height)
        scale = np.abs(height).max()
        share = rng.uniform(size=(100, 2))
        at = [x[0], y[0]] + share * [x[-1] - x[0], y[-1] - y[0]]
        ours = np.min([face.intercept + at @ face.slope for face in faces], axis=0)
        theirs = scale * np.min(expected[:, 0] + share @ expected[:, 1:].T, axis=1)
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-9 * scale)
        # Faces in one plane come out as one.
        assert len(faces) == len(np.unique(np.round(expected, 7), axis=0))
        points = np.column_stack([np.repeat(x, y.size), np.tile(y, x.size)])
        for face in faces:
            above = face.intercept + points @ face.slope - height.ravel()
            assert above.min() >= -1e-9 * scale
            assert np.abs(above[face.points]).max() <= 1e-9 * scale


def test_hull_over_a_line() -> None:
    faces = upper_hull_1d(np.array([0.0, 1.0, 2.0, 3.0, 4.0]), np.array([0.0, 2.0, 3.0, 3.5, 5.0]))
    assert [(face.intercept, face.slope.tolist(), face.points.tolist()) for face in faces] == [
        (0.0, [2.0], [0, 1]),
        (1.0, [1.0], [1, 2, 4]),
    ]
    (single,) = upper_hull_1d(np.array([2.0]), np.array([7.0]))
    assert (single.intercept, single.slope.tolist()) == (7.0, [0.0])
