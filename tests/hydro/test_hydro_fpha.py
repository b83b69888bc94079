"""Fitted planes: the steps of the fit, their quality, fewer planes."""

import numpy as np
import pytest
from scipy.spatial import ConvexHull

from cobre.hydro.fpha import FitWindow, deviation, fit_planes, without_rounding
from cobre.hydro.geometry import GeometryCurve
from cobre.hydro.head import Head, ProductionFunction
from cobre.hydro.reduction import reduce_by_angle, reduce_by_distance
from cobre.hydro.tailrace import PiecewiseCurve, PolynomialCurve

BOWL = GeometryCurve([0.0, 40.0, 120.0, 200.0], [380.0, 392.0, 403.0, 409.0], [1.0, 2.0, 3.0, 4.0])
PLANT = ProductionFunction(Head(BOWL, PolynomialCurve((300.0, 0.02, 1e-4)), loss_factor=0.03), 0.92)
WINDOW = FitWindow(0.0, 200.0, 50.0)


def lowest(planes: np.ndarray, storage: np.ndarray, flow: np.ndarray) -> np.ndarray:
    return (planes[:, :1] + np.outer(planes[:, 1], storage) + np.outer(planes[:, 2], flow)).min(axis=0)


def grid(window: FitWindow) -> tuple[np.ndarray, np.ndarray]:
    storage = np.linspace(window.low_hm3, window.high_hm3, window.volume_points)
    flow = np.linspace(0.0, window.max_turbined_m3s, window.turbine_points)
    return np.repeat(storage, flow.size), np.tile(flow, storage.size)


def test_head_linear_in_storage_has_two_planes() -> None:
    # phi = c q (a + b v): the hull over the rectangle is the lower of c q (a + b V) and c q a + c b Q v.
    curve = GeometryCurve([0.0, 200.0], [380.0, 400.0], [1.0, 1.0])
    function = ProductionFunction(Head(curve, PolynomialCurve((300.0,)), loss_factor=0.03), 0.92)
    fit = fit_planes(function, WINDOW)
    factor = 0.00981 * 0.92 * 0.97
    hull = factor * np.array([[0.0, 0.0, 100.0, 0.0], [0.0, 0.1 * 50.0, 80.0, 0.0]])
    storage, flow = grid(WINDOW)
    exact, upper = function.power(storage, flow), lowest(hull, storage, flow)
    alpha = (exact @ upper) / (upper @ upper)
    assert fit.alpha == pytest.approx(alpha, rel=1e-14)
    np.testing.assert_allclose(fit.planes, alpha * hull, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(
    "tailrace",
    [
        PolynomialCurve((300.0,)),
        PolynomialCurve((300.0, 0.02, 1e-4)),
        PiecewiseCurve((0.0, 20.0, 60.0, 150.0), (300.0, 304.0, 309.0, 312.0)),
    ],
)
def test_fit_follows_its_definition(tailrace: PolynomialCurve | PiecewiseCurve) -> None:
    function = ProductionFunction(Head(BOWL, tailrace, loss_factor=0.03), 0.92)
    window = FitWindow(10.0, 190.0, 50.0, volume_points=6, turbine_points=4)
    fit = fit_planes(function, window)
    storage, flow = grid(window)
    exact = function.power(storage, flow)
    # The hull by SciPy, with the point that closes it below.
    unit = np.column_stack([(storage - 10.0) / 180.0, flow / 50.0, exact / exact.max()])
    hull = ConvexHull(np.vstack([unit, [0.5, 0.5, -5.0]]))
    upper = hull.equations[hull.equations[:, 2] > 1e-9]
    slopes = np.column_stack([-upper[:, 3], -upper[:, 0] / 180.0, -upper[:, 1] / 50.0]) / upper[:, 2:3]
    slopes[:, 0] -= slopes[:, 1] * 10.0
    slopes = np.unique(np.round(slopes * exact.max(), 9), axis=0)
    values = (slopes[:, :1] + slopes[:, 1:] @ np.vstack([storage, flow])).min(axis=0)
    alpha = (exact @ values) / (values @ values)
    assert fit.alpha == pytest.approx(alpha, rel=1e-9)
    order = np.lexsort((slopes[:, 1], -slopes[:, 2]))
    np.testing.assert_allclose(fit.planes[:, :3], alpha * slopes[order], rtol=0, atol=1e-8)
    # The slope in spillage is that of a line through nine points, where the face has most power, not scaled
    # by alpha.
    spilt = np.linspace(0.0, 100.0, 9)
    for plane in fit.planes:
        on_face = np.flatnonzero(
            np.abs(plane[:3] @ [1.0 + 0 * storage, storage, flow] / alpha - exact) < 1e-6
        )
        top = on_face[np.argmax(exact[on_face])]
        slope = np.polyfit(spilt, function.power(storage[top], flow[top], spilt), 1)[0]
        assert plane[3] == pytest.approx(min(slope, 0.0), abs=1e-12)
    assert (fit.planes[:, 1] >= 0.0).all()
    assert (fit.planes[:, 3] <= 0.0).all()


# A plant of at most 100 MW and its planes by cobre-rs 0.18.0.
CAPPED = ProductionFunction(
    Head(
        GeometryCurve([100.0, 400.0, 1000.0], [300.0, 320.0, 340.0], [10.0, 20.0, 30.0]),
        PolynomialCurve((250.0, 0.02, -2e-5, 3e-8)),
        loss_factor=0.02,
    ),
    0.9,
)
CAPPED_PLANES = [
    [0.0, 0.0, 0.7629597189438163, -0.007142572709999989],
    [-0.08342025180105322, 0.0008342025180104966, 0.7479440736196273, -0.014696135369999974],
    [-2.11733026030792, 0.021173302603079175, 0.5648921728540094, -0.02324472633000006],
    [-2.685242831451715, 0.026852428314517146, 0.5393361071525383, -0.02324472633000006],
    [28.583958514156873, 0.0, 0.46961231114015306, -0.023244726330000024],
    [-5.712085715335689, 0.05712085715335695, 0.44853082063601896, -0.023244726330000066],
    [-7.598502022825311, 0.07598502022825317, 0.42023457602367464, -0.023244726330000017],
    [-7.51508177102428, 0.08265864037233703, 0.405218930699486, -0.023244726330000017],
    [-6.4571558958298345, 0.08568128573003543, 0.39161702658984315, -0.023244726330000017],
    [-4.5132617258296746, 0.08568128573003544, 0.37865773212317544, -0.023244726330000017],
    [4.885569689252117, 0.05712085715335696, 0.3778797846054335, -0.03337238393999994],
    [-4.340384499664781, 0.08550840850387056, 0.3778797846054335, -0.03337238393999994],
    [41.9643950168309, 0.02685242831451715, 0.24167185483065431, -0.03337238393999994],
    [99.02580518517983, 0.0, 0.0, -0.03337238393999997],
]


def test_power_is_capped_before_planes_are_fitted() -> None:
    fit = fit_planes(CAPPED, FitWindow(100.0, 1000.0, 200.0, max_generation_mw=100.0))
    order = np.lexsort((fit.planes[:, 1], -fit.planes[:, 2].round(9)))
    np.testing.assert_allclose(fit.planes[order], CAPPED_PLANES, rtol=1e-9, atol=1e-12)
    storage, flow = grid(FitWindow(100.0, 1000.0, 200.0))
    exact = np.minimum(CAPPED.power(storage, flow), 100.0)
    gap = np.abs(lowest(fit.planes, storage, flow) - exact)
    assert (fit.max_deviation_mw, fit.mean_power_mw) == (
        pytest.approx(gap.max()),
        pytest.approx(exact.mean()),
    )
    # Without the cap the planes of high flow lie far above what the plant can give.
    free = fit_planes(CAPPED, FitWindow(100.0, 1000.0, 200.0))
    assert lowest(free.planes, storage, flow).max() > 1.2 * 100.0


def test_quality_is_that_of_the_planes() -> None:
    fit = fit_planes(PLANT, WINDOW)
    storage, flow = grid(WINDOW)
    exact = PLANT.power(storage, flow)
    gap = np.abs(lowest(fit.planes, storage, flow) - exact)
    assert fit.max_deviation_mw == pytest.approx(gap.max(), rel=1e-12)
    assert fit.mean_deviation_mw == pytest.approx(gap.mean(), rel=1e-12)
    assert fit.mean_power_mw == pytest.approx(exact.mean(), rel=1e-12)
    assert fit.mean_deviation_mw < 0.03 * fit.mean_power_mw
    assert deviation(fit.planes, np.column_stack([storage, flow]), exact) == (
        fit.max_deviation_mw,
        fit.mean_deviation_mw,
    )


def test_a_plant_without_storage_has_no_slope_in_it() -> None:
    fit = fit_planes(PLANT, FitWindow(100.0, 100.0, 50.0))
    assert len(fit.planes) == 4
    assert (fit.planes[:, 1] == 0.0).all()
    flow = np.linspace(0.0, 50.0, 5)
    np.testing.assert_allclose(
        lowest(fit.planes, np.full(5, 100.0), flow), fit.alpha * PLANT.power(100.0, flow), rtol=1e-12
    )
    assert fit.alpha == pytest.approx(1.0, rel=1e-12)


def test_a_plant_without_turbines_generates_nothing() -> None:
    assert fit_planes(PLANT, FitWindow(0.0, 200.0, 0.0)).planes.tolist() == [[0.0] * 4]
    drowned = ProductionFunction(Head(BOWL, PolynomialCurve((500.0,))), 0.9)
    fit = fit_planes(drowned, WINDOW)
    np.testing.assert_array_equal(fit.planes, [[0.0] * 4])
    assert fit.alpha == 1.0


def test_numbers_that_overflow_are_refused() -> None:
    with pytest.raises(ArithmeticError, match="not finite"):
        fit_planes(ProductionFunction(Head(BOWL, PolynomialCurve((0.0, -1e308, -1e308))), 0.9), WINDOW)


def test_most_planes() -> None:
    free = fit_planes(PLANT, WINDOW)
    capped = fit_planes(PLANT, FitWindow(0.0, 200.0, 50.0, max_planes=3))
    assert len(free.planes) > 3
    assert len(capped.planes) == 3
    assert capped.mean_deviation_mw < 0.05 * capped.mean_power_mw
    # The factor is fitted to what is left.
    assert capped.alpha < free.alpha


def test_reduction_by_angle() -> None:
    planes = np.array(
        [[0.0, 0.0, 1.0, 0.0], [0.5, 0.01, 0.9, -0.1], [1.5, 0.01, 0.88, -0.1], [9.0, 0.0, 0.1, 0.0]]
    )
    assert reduce_by_angle(planes, 0.0).tolist() == planes.tolist()
    # The planes in the middle enclose 0.6 degrees; the first goes through the origin and stays.
    middle = planes[1:3].mean(axis=0)
    np.testing.assert_allclose(reduce_by_angle(planes, 2.0), [planes[0], middle, planes[3]], rtol=1e-14)
    np.testing.assert_allclose(
        reduce_by_angle(planes, 90.0), [planes[0], (middle + planes[3]) / 2.0], rtol=1e-14
    )


def test_neighbours_are_alike_in_storage() -> None:
    # By falling slope in storage: each becomes the mean of it and of what was merged before, as in cobre-rs.
    planes = np.array(
        [[-4.0, 0.30, 0.40, 0.0], [-3.0, 0.28, 0.41, 0.0], [-2.0, 0.26, 0.42, -0.1], [9.0, 0.02, 0.41, 0.0]]
    )
    merged = 0.25 * planes[0] + 0.25 * planes[1] + 0.5 * planes[2]
    for order in ([0, 1, 2, 3], [3, 1, 0, 2]):
        np.testing.assert_allclose(reduce_by_angle(planes[order], 8.0), [merged, planes[3]], rtol=1e-14)


def test_reduction_by_distance() -> None:
    planes = fit_planes(PLANT, FitWindow(0.0, 200.0, 50.0, volume_points=12, turbine_points=12)).planes
    window = ((0.0, 200.0), 50.0)
    assert reduce_by_distance(planes, 0.0, 50, *window).tolist() == planes.tolist()
    fewer = reduce_by_distance(planes, 0.01, 50, *window)
    fewest = reduce_by_distance(planes, 1.0, 50, *window)
    assert len(planes) > len(fewer) > len(fewest) >= 1
    np.testing.assert_array_equal(fewer, reduce_by_distance(planes, 0.01, 50, *window))
    storage, flow = grid(FitWindow(0.0, 200.0, 50.0, 30, 30))
    change = np.abs(lowest(fewer, storage, flow) - lowest(planes, storage, flow))
    assert change.max() < 0.1 * PLANT.power(200.0, 50.0)


def test_coefficients_that_are_rounding_become_0() -> None:
    planes = np.array([[50.0, 1e-18, 0.9, -3.8e-22], [0.0, 0.01, 1.0, -1e-6]])
    cleaned = without_rounding(planes, high_hm3=1000.0, max_turbined_m3s=500.0)
    np.testing.assert_array_equal(cleaned, [[50.0, 0.0, 0.9, 0.0], [0.0, 0.01, 1.0, -1e-6]])
    assert without_rounding(np.zeros((0, 4)), 0.0, 0.0).shape == (0, 4)
