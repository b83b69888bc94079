"""A published problem of three weeks whose optima under several risk measures are known.

One reservoir (0 to 200, full at the start), inflow 0, 50 or 100 in each week, a thermal plant of 150 at 50,
100 and 150 $ a unit, a hydro plant of 150, and a demand of 150. A stage of one hour stands for a week, so
that 1 MW is a unit of energy and 1 m3/s a unit of volume.
"""

import datetime
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cobre.case.model import (
    Block,
    Bus,
    Case,
    DeficitSegment,
    Hydro,
    RiskMeasure,
    Stage,
    Thermal,
    TrainingOptions,
    UnitGroup,
)
from cobre.case.model.horizon import chain_graph
from cobre.case.model.uniform import constant_production, scenarios, stage_data
from cobre.sddp import train
from cobre.sddp import training as driver

UNIT_HM3 = 0.0036
WEEKS = 3


def three_weeks(first: RiskMeasure, later: RiskMeasure, iterations: int = 20) -> Case:
    start = datetime.date(2024, 1, 1)
    return Case(
        path=Path("three-weeks"),
        training=TrainingOptions(42, 3, iterations, "none", None),
        stages=tuple(
            Stage(
                id=week,
                start_date=start + datetime.timedelta(weeks=week),
                end_date=start + datetime.timedelta(weeks=week + 1),
                season_id=None,
                blocks=(Block(0, "all", 1.0),),
                num_openings=3,
                discount_factor=1.0,
                risk=first if week == 0 else later,
            )
            for week in range(WEEKS)
        ),
        graph=chain_graph(WEEKS),
        buses=(Bus(0, "bus", (DeficitSegment(None, 1.0e5),)),),
        lines=(),
        thermals=(Thermal(0, "thermal", 0),),
        hydros=(Hydro(0, "hydro", None, (UnitGroup(0, "units", 0),), initial_storage_hm3=200.0 * UNIT_HM3),),
        stage_data=tuple(
            stage_data(
                1,
                hydros=1,
                thermals=1,
                thermal_max_mw=150.0,
                thermal_cost=cost,
                storage_max_hm3=200.0 * UNIT_HM3,
                turbined_max_m3s=150.0,
                generation_max_mw=150.0,
                group_turbined_max_m3s=150.0,
                group_generation_max_mw=150.0,
                excess_cost=1.0e4,
            )
            for cost in (50.0, 100.0, 150.0)
        ),
        production=constant_production(WEEKS, [1.0]),
        scenarios=scenarios(
            inflow_mean_m3s=np.full((WEEKS, 1), 50.0),
            inflow_std_m3s=np.ones((WEEKS, 1)),
            load_mean_mw=np.full((WEEKS, 1), 150.0),
            load_std_mw=np.zeros((WEEKS, 1)),
        ),
        evaporation=((None,),) * WEEKS,
        generic=((),) * WEEKS,
    )


@pytest.fixture(autouse=True)
def three_inflows(monkeypatch):
    """Openings of the problem in place of drawn ones."""
    build = driver.build_opening_tree

    def with_given_inflows(case, **options):
        tree = build(case, **options)
        return replace(tree, inflow_m3s=np.tile([[0.0], [50.0], [100.0]], (WEEKS, 1)))

    monkeypatch.setattr(driver, "build_opening_tree", with_given_inflows)


NEUTRAL = RiskMeasure()
HALF = RiskMeasure(0.5, 0.5)
THIRD = RiskMeasure(0.5, 1.0 / 3.0)
WORST = RiskMeasure(kind="worst_case")


@pytest.mark.parametrize(
    ("first", "later", "optimum"),
    [
        (NEUTRAL, NEUTRAL, 8333.0 + 1.0 / 3.0),
        (HALF, HALF, 11458.0 + 1.0 / 3.0),
        (THIRD, THIRD, 13750.0),
        (WORST, WORST, 17500.0),
        (RiskMeasure(1.0, 1.0 / 3.0), RiskMeasure(1.0, 1.0 / 3.0), 17500.0),
        # The worst third alone, and the mix of a half, as spectra.
        (RiskMeasure(kind="spectral", spectrum=(1.0, 0.0, 0.0)),) * 2 + (17500.0,),
        (RiskMeasure(kind="spectral", spectrum=(4 / 6, 1 / 6, 1 / 6)),) * 2 + (13750.0,),
        (RiskMeasure(kind="spectral", spectrum=(0.75, 0.25)),) * 2 + (11458.0 + 1.0 / 3.0,),
    ],
)
def test_known_optima(first, later, optimum):
    assert train(three_weeks(first, later)).lower_bound == pytest.approx(optimum, rel=1e-9)


def entropic(values, gamma):
    return np.log(np.mean(np.exp(gamma * (values - values.max())))) / gamma + values.max()


@pytest.mark.parametrize("gamma", [1.0e-7, 1.0e-4, 5.0e-3])
def test_entropic_measure_by_dynamic_programming(gamma):
    measure = RiskMeasure(kind="entropic", gamma=gamma)
    volumes = np.arange(0.0, 201.0)
    future = np.zeros_like(volumes)
    for cost in (150.0, 100.0, 50.0):
        # Turbined water t, end volume v + inflow - t - spillage; cost falls in t, so only spill what must be.
        here = []
        for volume in volumes:
            outcomes = []
            for inflow in (0.0, 50.0, 100.0):
                turbined = np.arange(0.0, min(150.0, volume + inflow) + 1.0)
                end = np.minimum(volume + inflow - turbined, 200.0)
                outcomes.append((cost * (150.0 - turbined) + np.interp(end, volumes, future)).min())
            here.append(entropic(np.array(outcomes), gamma))
        future = np.array(here)
    bound = train(three_weeks(measure, measure, iterations=60)).lower_bound
    # Volumes in whole units are one way to act: their cost is an upper bound, and here close to the optimum.
    assert bound <= future[200] * (1.0 + 1e-9)
    assert bound == pytest.approx(future[200], rel=2e-3)
    if gamma == 1.0e-7:
        assert bound == pytest.approx(8333.0 + 1.0 / 3.0, rel=1e-3)


@pytest.mark.parametrize(("measure", "optimum"), [(HALF, 10625.0), (THIRD, 12500.0), (WORST, 15000.0)])
def test_known_optima_with_a_neutral_root(measure, optimum):
    case = three_weeks(measure, measure)
    case = replace(case, graph=replace(case.graph, root_risk=NEUTRAL))
    assert train(case).lower_bound == pytest.approx(optimum, rel=1e-9)


def test_the_measure_of_the_first_stage_weighs_its_openings_and_what_follows():
    """Neutral in the first week, only outcomes of the third count: 27,500 / 3 by enumerating volumes."""
    assert train(three_weeks(NEUTRAL, HALF)).lower_bound == pytest.approx(27500.0 / 3.0, rel=1e-9)
