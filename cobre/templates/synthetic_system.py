"""The system of a synthetic case: rivers, plants, loads and lines drawn at random, all numbers rounded.

Every part of the system has its own stream of uniform numbers (PCG64 of seed and part), so that, e.g., more
thermal plants leave the rivers as they are. Values are rounded to four digits: what the mathematical
library of a machine does in the last bit does not show.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from cobre.templates.synthetic_options import MAX_ORDER, SyntheticOptions

MONTHS = 12
HM3_PER_M3S_MONTH = 2.63
"""hm3 of 1 m3/s over a mean month, to size reservoirs."""

_PLANTS_OF_A_RIVER = 6
_MAIN_STEM = 0.75
"""Share of plants that lie right above the plant drawn before; the others start a tributary."""
_HYDRO_SHARE = 0.7
"""Mean hydro energy over load."""
_THERMAL_OVER_LOAD = 0.7
_LINE_OVER_LOAD = 0.35
_RANGE = 300.0
"""Distance (km) at which the correlation of inflows has fallen to 1/e."""
_AREA = 1000.0
_RIVER_STEP = 40.0


@dataclass(frozen=True)
class Plant:
    """A hydro plant: storage in hm3, flows in m3/s, productivity in MW/(m3/s), place in km."""

    river: int
    bus: int
    downstream: int | None
    min_storage: float
    max_storage: float
    initial_storage: float
    max_turbined: float
    productivity: float
    min_outflow: float
    inflow: tuple[float, ...]
    """Mean incremental inflow of the twelve months."""
    deviation: tuple[float, ...]
    """Its standard deviation."""
    place: tuple[float, float]
    planes: bool


@dataclass(frozen=True)
class Thermal:
    """A thermal plant: MW and $/MWh."""

    bus: int
    max_mw: float
    cost: float


class Draws:
    """Uniform numbers of one part of the system."""

    def __init__(self, options: SyntheticOptions, part: int) -> None:
        self._random = np.random.Generator(np.random.PCG64([options.seed, part]))

    def between(self, low: float, high: float) -> float:
        """Return a number between, uniform."""
        return low + (high - low) * float(self._random.random())

    def scale(self, low: float, high: float) -> float:
        """Return a number between, whose logarithm is uniform."""
        return math.exp(self.between(math.log(low), math.log(high)))

    def below(self, count: int) -> int:
        """Return one of 0, ..., count - 1."""
        return min(int(self.between(0.0, count)), count - 1)


_RIVERS, _THERMALS, _LOADS, _LINES, _MODELS, _PAST = range(6)


def rounded(value: float, digits: int = 4) -> float:
    """Round to significant digits."""
    return float(f"{value:.{digits}g}")


def draw_plants(options: SyntheticOptions) -> list[Plant]:
    """Return the hydro plants by id; a plant lies above plants with lower ids of its river."""
    draws = Draws(options, _RIVERS)
    rivers = max(1, round(options.hydros / _PLANTS_OF_A_RIVER))
    river_of = [plant * rivers // options.hydros for plant in range(options.hydros)]
    downstream: list[int | None] = []
    for plant, river in enumerate(river_of):
        first = river_of.index(river)
        if plant == first:
            downstream.append(None)
        else:
            stem = draws.between(0.0, 1.0) < _MAIN_STEM
            downstream.append(plant - 1 if stem else first + draws.below(plant - first))
    mouth = [(draws.between(0.0, _AREA), draws.between(0.0, _AREA)) for _ in range(rivers)]
    wet_month = [draws.between(0.0, MONTHS) for _ in range(rivers)]
    local = [draws.scale(20.0, 400.0) for _ in river_of]
    natural = local.copy()
    for plant in reversed(range(options.hydros)):
        below = downstream[plant]
        if below is not None:
            natural[below] += natural[plant]
    with_planes = _evenly(options.hydros, options.fpha_share)
    plants: list[Plant] = []
    for plant, river in enumerate(river_of):
        below = downstream[plant]
        x, y = mouth[river] if below is None else plants[below].place
        place = (
            rounded(x + draws.between(-_RIVER_STEP, _RIVER_STEP)),
            rounded(y + draws.between(0.0, _RIVER_STEP)),
        )
        swing, variation = draws.between(0.3, 0.6), draws.between(0.2, 0.4)
        peak = wet_month[river] + draws.between(-0.7, 0.7)
        inflow = [
            rounded(local[plant] * (1.0 + swing * math.cos(2.0 * math.pi * (month - peak) / MONTHS)))
            for month in range(MONTHS)
        ]
        useful = natural[plant] * HM3_PER_M3S_MONTH * draws.scale(0.05, 8.0)
        low = rounded(useful * draws.between(0.1, 0.5))
        high = rounded(low + useful)
        plants.append(
            Plant(
                river=river,
                bus=river % options.buses,
                downstream=below,
                min_storage=low,
                max_storage=high,
                initial_storage=rounded(low + (high - low) * draws.between(0.3, 0.8), 6),
                max_turbined=rounded(natural[plant] * draws.between(1.1, 1.9)),
                productivity=rounded(draws.between(0.15, 0.9)),
                min_outflow=rounded(natural[plant] * draws.between(0.05, 0.2)),
                inflow=tuple(inflow),
                deviation=tuple(rounded(variation * value) for value in inflow),
                place=place,
                planes=with_planes[plant],
            )
        )
    return plants


def draw_loads(options: SyntheticOptions, plants: list[Plant]) -> list[float]:
    """Return the mean load of every bus (MW): together the mean hydro energy over its share."""
    draws = Draws(options, _LOADS)
    flow = [sum(plant.inflow) / MONTHS for plant in plants]
    for number in reversed(range(len(plants))):
        below = plants[number].downstream
        if below is not None:
            flow[below] += flow[number]
    energy = sum(
        plant.productivity * min(q, plant.max_turbined) for plant, q in zip(plants, flow, strict=True)
    )
    weight = [draws.between(0.5, 1.5) for _ in range(options.buses)]
    return [rounded(energy / _HYDRO_SHARE * w / sum(weight)) for w in weight]


def load_shape(options: SyntheticOptions) -> list[float]:
    """Return the load of the twelve months over its mean."""
    draws = Draws(options, _LOADS + 100)
    swing, peak = draws.between(0.03, 0.08), draws.between(0.0, MONTHS)
    return [
        rounded(1.0 + swing * math.cos(2.0 * math.pi * (month - peak) / MONTHS)) for month in range(MONTHS)
    ]


def draw_thermals(options: SyntheticOptions, loads: list[float]) -> list[Thermal]:
    """Return the thermal plants by id, spread over the buses, cheap ones larger."""
    draws = Draws(options, _THERMALS)
    weight = [draws.between(0.5, 1.5) for _ in range(options.thermals)]
    capacity = _THERMAL_OVER_LOAD * sum(loads)
    return [
        Thermal(
            bus=number % options.buses,
            max_mw=rounded(capacity * w / sum(weight)),
            cost=rounded(30.0 + 300.0 * (number + draws.between(0.0, 1.0)) / options.thermals),
        )
        for number, w in enumerate(weight)
    ]


def draw_lines(options: SyntheticOptions, loads: list[float]) -> list[tuple[int, int, float, float]]:
    """Return lines (source, target, MW there, MW back): a tree over the buses, closed to a ring."""
    draws = Draws(options, _LINES)
    ends = [(draws.below(bus), bus) for bus in range(1, options.buses)]
    if options.buses > 2 and (0, options.buses - 1) not in ends:
        ends.append((0, options.buses - 1))
    return [
        (
            source,
            target,
            rounded(_LINE_OVER_LOAD * min(loads[source], loads[target]) * draws.between(0.5, 1.5)),
            rounded(_LINE_OVER_LOAD * min(loads[source], loads[target]) * draws.between(0.5, 1.5)),
        )
        for source, target in ends
    ]


def draw_coefficients(options: SyntheticOptions) -> list[list[list[float]]]:
    """Return standardised autoregressive coefficients by plant, month and lag.

    All are positive and those of a month sum to less than 0.8. So the correlations that they imply, averages
    of correlations with weights that sum to less than 1, lie in [0, 0.8), and the residual keeps more than
    1 - 0.8^2 of the variance: the model is stationary whatever the order.
    """
    draws = Draws(options, _MODELS)
    lags = range(options.order)
    coefficients = []
    for _ in range(options.hydros):
        memory, decay = draws.between(0.3, 0.7), draws.between(0.3, 0.6)
        weight = [decay**lag for lag in lags]
        coefficients.append(
            [
                [rounded(strength * w / sum(weight)) for w in weight]
                for strength in (memory + draws.between(-0.1, 0.09) for _ in range(MONTHS))
            ]
        )
    return coefficients


def draw_past(options: SyntheticOptions, plants: list[Plant]) -> list[list[float]]:
    """Return the inflow (m3/s) of every plant in the months before January, latest first."""
    draws = Draws(options, _PAST)
    wetness = [draws.between(0.8, 1.2) for _ in range(MAX_ORDER)]
    return [
        [
            rounded(plant.inflow[MONTHS - 1 - lag] * wetness[lag] * draws.between(0.9, 1.1))
            for lag in range(options.order)
        ]
        for plant in plants
    ]


def correlations(options: SyntheticOptions, plants: list[Plant]) -> list[list[float]]:
    """Return the correlation of inflow noise between plants: an exponential of their distance.

    Such matrices are positive definite; so they stay, as the factor below 1 only enlarges the diagonal.
    """
    at = np.array([plant.place for plant in plants])
    distance = np.sqrt(((at[:, None, :] - at[None, :, :]) ** 2).sum(axis=2))
    matrix = np.round(options.correlation * np.exp(-distance / _RANGE), 10)
    np.fill_diagonal(matrix, 1.0)
    values: list[list[float]] = matrix.tolist()
    return values


def planes(plant: Plant) -> list[tuple[float, float, float]]:
    """Return planes (constant, per hm3, per m3/s) that bound the generation of a plant.

    With Q the greatest flow, x = (v - v_min) / (v_max - v_min), rho the productivity and a = 0.15::

        g <= rho (1 + a) q                                  no generation without flow
        g <= rho ((1 - a) q + a Q (q / (Q k) + k x))        k = 0.6, 1, 1.6

    The latter are tangents of the concave rho ((1 - a) q + 2 a sqrt(q Q x)): more head, more energy.
    """
    gain = 0.15
    rho, span = plant.productivity, plant.max_storage - plant.min_storage
    found = [(0.0, 0.0, rounded(rho * (1.0 + gain), 6))]
    for k in (0.6, 1.0, 1.6):
        per_hm3 = rounded(rho * gain * plant.max_turbined * k / span, 6)
        found.append((-per_hm3 * plant.min_storage, per_hm3, rounded(rho * (1.0 - gain + gain / k), 6)))
    return found


def _evenly(count: int, share: float) -> list[bool]:
    """Return ``count`` marks of which a share is set, spread evenly."""
    return [int((number + 1) * share + 1e-9) > int(number * share + 1e-9) for number in range(count)]
