"""Geometry, tailrace, production function, linearised head, evaporation and energy, against hand values."""

import datetime

import numpy as np
import pytest

from cobre.hydro.energy import COMPUTED_TAGS, EnergyData, accumulate
from cobre.hydro.evaporation import linear_evaporation, month_shares
from cobre.hydro.geometry import GeometryCurve
from cobre.hydro.head import Head, ProductionFunction
from cobre.hydro.linear_head import head_planes, productivity_slope
from cobre.hydro.tailrace import PiecewiseCurve, PolynomialCurve, SegmentedCurve, TailraceFamilies

CURVE = GeometryCurve([10.0, 20.0, 40.0], [100.0, 110.0, 120.0], [1.0, 2.0, 6.0])


def test_geometry_is_linear_between_points_and_constant_outside() -> None:
    assert CURVE.height([0.0, 15.0, 30.0, 50.0]).tolist() == [100.0, 105.0, 115.0, 120.0]
    assert [CURVE.area(v) for v in (0.0, 15.0, 40.0)] == [1.0, 1.5, 6.0]
    # The slope on a point is that of the segment that starts there; at the top, of the last one.
    assert [CURVE.area_slope(v) for v in (0.0, 10.0, 20.0, 40.0, 99.0)] == [0.1, 0.1, 0.2, 0.2, 0.2]
    assert GeometryCurve([5.0], [7.0], [2.0]).area_slope(5.0) == 0.0


def test_mean_height_is_the_exact_integral() -> None:
    # 10 hm3 at 105 m on average, then 20 hm3 at 115 m.
    assert CURVE.mean_height(10.0, 40.0) == pytest.approx((10 * 105.0 + 20 * 115.0) / 30, abs=1e-12)
    assert CURVE.mean_height(0.0, 99.0) == CURVE.mean_height(10.0, 40.0)
    assert CURVE.mean_height(15.0, 15.0) == 105.0
    assert CURVE.secant_height_slope(10.0, 40.0) == 20.0 / 30.0
    assert CURVE.secant_height_slope(15.0, 15.0) == 0.0


def test_tailrace_curves() -> None:
    assert PolynomialCurve((1.0, 2.0, 3.0)).level([0.0, 2.0]).tolist() == [1.0, 17.0]
    assert PiecewiseCurve((0.0, 10.0), (5.0, 6.0)).level([-1.0, 5.0, 99.0]).tolist() == [5.0, 5.5, 6.0]
    low = SegmentedCurve((0.0, 10.0, 20.0), ((1.0, 0.1, 0, 0, 0), (0.0, 0.2, 0, 0, 0)))
    assert low.level([0.0, 5.0, 10.0, 20.0, 50.0]).tolist() == [1.0, 1.5, 2.0, 4.0, 4.0]
    high = SegmentedCurve((0.0, 20.0), ((5.0, 0.0, 0, 0, 0),))
    families = TailraceFamilies((100.0, 110.0), (low, high))
    assert families.at(None) is low
    assert families.at(90.0) is low
    assert families.at(120.0) is high
    assert families.at(102.5).level(5.0) == pytest.approx(0.75 * 1.5 + 0.25 * 5.0, abs=1e-12)


def test_production_function() -> None:
    head = Head(CURVE, PolynomialCurve((60.0, 0.1)), loss_factor=0.05, loss_m=1.0)
    function = ProductionFunction(head, efficiency=0.9)
    net = 0.95 * (105.0 - 60.0 - 0.1 * 30.0) - 1.0
    assert float(function.power(15.0, 20.0, 10.0)) == pytest.approx(0.00981 * 0.9 * 20.0 * net, rel=1e-14)
    # The head is never negative.
    assert float(Head(CURVE, PolynomialCurve((200.0,))).net(15.0, 1.0)) == 0.0
    assert head.mean_net(10.0, 40.0, 30.0) == pytest.approx(
        0.95 * (CURVE.mean_height(10.0, 40.0) - 63.0) - 1.0, rel=1e-14
    )


def test_planes_of_linearised_head_envelop_the_product() -> None:
    head = Head(CURVE, PolynomialCurve((60.0,)), loss_factor=0.1)
    slope = productivity_slope(head, 0.4, 0.009, 20.0, 10.0, 40.0, 50.0)
    assert slope == pytest.approx(0.009 * 0.9 * 20.0 / 30.0, rel=1e-14)
    # Without a specific productivity, productivity is proportional to net head.
    assert productivity_slope(head, 0.4, None, 20.0, 10.0, 40.0, 50.0) == pytest.approx(
        0.4 / (0.9 * 50.0) * 0.9 * 20.0 / 30.0, rel=1e-14
    )
    planes = head_planes(0.4, slope, 20.0, 10.0, 40.0, 50.0)
    storage, flow = np.meshgrid(np.linspace(10.0, 40.0, 13), np.linspace(0.0, 50.0, 11), indexing="ij")
    exact = (0.4 + slope * (storage - 20.0)) * flow
    upper = (planes[:, 0, None, None] + np.multiply.outer(planes[:, 1], storage)).min(axis=0)
    upper = (
        planes[:, 0, None, None]
        + np.multiply.outer(planes[:, 1], storage)
        + np.multiply.outer(planes[:, 2], flow)
    ).min(axis=0)
    gap = upper - exact
    assert gap.min() >= -1e-12
    assert gap.max() == pytest.approx(slope * 50.0 * 30.0 / 4.0, rel=1e-2)
    for side in (gap[0], gap[-1], gap[:, 0], gap[:, -1]):
        np.testing.assert_allclose(side, 0.0, atol=1e-12)
    assert head_planes(0.4, 0.0, 20.0, 10.0, 40.0, 50.0).tolist() == [[0.0, 0.0, 0.4, 0.0]]
    with pytest.raises(ValueError, match="net head"):
        productivity_slope(Head(CURVE, PolynomialCurve((200.0,))), 0.4, None, 20.0, 10.0, 40.0, 50.0)


def test_months_of_a_stage() -> None:
    def day(text: str) -> datetime.date:
        return datetime.date.fromisoformat(text)

    assert month_shares(day("2024-01-01"), day("2024-02-01")) == [(1, 31, 1.0)]
    assert month_shares(day("2024-01-20"), day("2024-01-27")) == [(1, 31, 1.0)]
    assert month_shares(day("2023-12-30"), day("2024-02-03")) == [
        (12, 31, 2 / 35),
        (1, 31, 31 / 35),
        (2, 29, 2 / 35),
    ]
    assert month_shares(day("9999-12-01"), day("9999-12-31")) == [(12, 31, 1.0)]


def test_evaporation_of_a_published_case() -> None:
    # 100 mm, 1 km2 and 0.005 km2/hm3 at 100 hm3; January has 744 hours, February 2024 has 696.
    curve = GeometryCurve([0.0, 100.0, 200.0], [0.0, 0.0, 0.0], [0.5, 1.0, 1.5])
    for month, hours in ((1, 744.0), (2, 696.0)):
        k0, kv, reference = linear_evaporation(
            curve, [100.0] * 12, [100.0] * 12, [(month, int(hours) // 24, 1.0)]
        )
        assert kv == pytest.approx(100.0 * 0.005 / (3.6 * hours), rel=1e-14)
        assert k0 == pytest.approx(100.0 * 1.0 / (3.6 * hours) - kv * 100.0, rel=1e-14)
        assert reference == 100.0


def test_evaporation_over_two_months_is_the_mean_by_days() -> None:
    first = linear_evaporation(CURVE, list(range(12)), [15.0] * 6 + [30.0] * 6, [(6, 30, 1.0)])
    second = linear_evaporation(CURVE, list(range(12)), [15.0] * 6 + [30.0] * 6, [(7, 31, 1.0)])
    both = linear_evaporation(CURVE, list(range(12)), [15.0] * 6 + [30.0] * 6, [(6, 30, 0.25), (7, 31, 0.75)])
    np.testing.assert_allclose(both, 0.25 * np.array(first) + 0.75 * np.array(second), rtol=1e-14)
    # At the reference storage the whole surface evaporates: 5 mm from 1.5 km2 in 30 days.
    assert first[0] + first[1] * 15.0 == pytest.approx(5.0 * 1.5 * 1000.0 / (30 * 86400.0), rel=1e-12)


def test_energy_of_a_cascade() -> None:
    own = np.array([[1.0, 10.0, 100.0, 1000.0]])
    # 0 -> 2 -> 1; 3 stands alone.
    downstream = np.array([2, -1, 1, -1], np.intp)
    assert accumulate(own, downstream).tolist() == [[111.0, 10.0, 110.0, 1000.0]]
    data = EnergyData(
        downstream=downstream,
        equivalent=own,
        integrated=2.0 * own,
        specific=np.full((1, 4), np.nan),
        reference_volume_hm3=np.full((1, 4), 5.0),
        reference_turbine_m3s=np.full((1, 4), 6.0),
        min_storage_hm3=np.full(4, 1.0),
        max_storage_hm3=np.full(4, 4.0),
    )
    values = {
        tag: float(data.parameter(tag, 0)[0]) for tag in COMPUTED_TAGS if tag != "specific_productivity"
    }
    assert values == {
        "equivalent_productivity": 1.0,
        "accumulated_productivity": 111.0,
        "reference_volume": 5.0,
        "reference_turbine": 6.0,
        "min_storage": 1.0,
        "max_storage": 4.0,
        "integrated_equivalent_productivity": 2.0,
        "integrated_accumulated_productivity": 222.0,
        "max_stored_energy": 666.0,
    }
    assert np.isnan(data.parameter("specific_productivity", 0)).all()
    with pytest.raises(KeyError):
        data.parameter("head", 0)
