"""What a simulation amounts to: cost and risk, deficit, energy, prices; with units, over all scenarios.

::

    metrics = cobre.results.load("output").simulation.metrics
    metrics.cost.mean, metrics.cost.ci_95
    metrics.deficit().to_pandas()

Enumerated scenarios count by their probabilities, sampled ones all the same. Energies by stage are sums over
its blocks, powers and prices means weighted by the hours of blocks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from cobre.distribution import DEFICIT_MWH, Distribution, cvar, distribution_of, expectation, quantiles
from cobre.errors import CobreError
from cobre.results.hours import block_hours, quantities
from cobre.results.metric import Metric
from cobre.results.reading.filters import fault

if TYPE_CHECKING:
    from cobre.results.reading.cube import Cube
    from cobre.results.reading.run import Simulation
    from cobre.results.reading.table import Table

FloatArray = NDArray[np.float64]

LEVELS: Final = (0.05, 0.25, 0.5, 0.75, 0.95)
"""Quantiles that are given unless others are asked for."""

_SUMS: Final = frozenset({"total_cost", "immediate_cost", "future_cost", "hydro_violation_cost"})
_SOURCES: Final = (
    ("hydro", "hydros", "generation_mwh"),
    ("thermal", "thermals", "generation_mwh"),
    ("non_controllable", "non_controllables", "generation_mwh"),
    ("curtailment", "non_controllables", "curtailment_mwh"),
    ("pumping", "pumping_stations", "energy_consumption_mwh"),
    ("losses", "exchanges", "losses_mwh"),
    ("load", "buses", "load_mwh"),
    ("deficit", "buses", "deficit_mwh"),
    ("excess", "buses", "excess_mwh"),
)
_NO_FURTHER_SOURCES: Final = frozenset(
    {"hydro_bus_generation", "contracts", *(name for _, name, _ in _SOURCES)}
)


def level_name(level: float) -> str:
    """Return the name of the column of a quantile, such as ``p05`` or ``p97_5``."""
    return "p" + f"{100 * level:04.1f}".removesuffix(".0").replace(".", "_")


class SimulationMetrics:
    """Metrics of a simulation; each reads the columns that it needs and no others."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation

    def __repr__(self) -> str:
        return f"SimulationMetrics({str(self._simulation.directory)!r})"

    # -- cost and risk

    @cached_property
    def scenario_cost(self) -> FloatArray:
        """Cost of the stages of each scenario, discounted to the first one, $; scenarios ascending."""
        return self._simulation["scenario_summary"].cube("discounted_immediate_cost")[
            "discounted_immediate_cost"
        ]

    @cached_property
    def cost(self) -> Distribution:
        """Distribution of the discounted cost, $: mean with its 95 % confidence interval, spread, CVaR."""
        return distribution_of(self.scenario_cost, self._simulation.probability)

    def cvar(self, level: float = 0.95) -> float:
        """Return the mean cost of the dearest scenarios, those beyond ``level``, $."""
        if not 0.0 <= level < 1.0:
            raise fault("OutOfRange", f"level is {level!r}", "level", level, "give one from 0 to below 1")
        return cvar(self.scenario_cost, self._simulation.probability, level)

    def cost_by_component(self) -> Metric:
        """Return the expected discounted cost by component: ``cost`` ($), ``share`` (% of the total)."""
        components, by_stage, _ = self._component_costs
        cost = by_stage.sum(axis=0)
        total = float(self.cost.mean)
        share = 100.0 * cost / total if total else np.zeros_like(cost)
        order = np.argsort(-np.abs(cost), kind="stable")
        return Metric(
            "cost by component",
            {
                "component": ([components[place] for place in order], ""),
                "cost": (cost[order], "$"),
                "share": (share[order], "%"),
            },
        )

    def cost_by_stage(self) -> Metric:
        """Return the expected cost of each stage by component, discounted to the first stage, $."""
        components, by_stage, cube = self._component_costs
        columns: dict[str, tuple[Any, str]] = _stage_columns(cube)
        columns["cost"] = (by_stage.sum(axis=1), "$")
        for place, name in enumerate(components):
            columns[name] = (by_stage[:, place], "$")
        return Metric("cost by stage", columns)

    @cached_property
    def _component_costs(self) -> tuple[list[str], FloatArray, Cube]:
        table = self._simulation["costs"]
        names = [name for name in table.columns if name.endswith(("_cost", "_credit")) and name not in _SUMS]
        discount = table.cube("discount_factor")
        means = np.empty((len(discount.labels["stage"]), len(names)))
        for place, name in enumerate(names):  # one column at a time: 25 of them are much memory
            paid = table.cube(name)[name] * discount["discount_factor"]
            means[:, place] = expectation(paid, self._simulation.probability)
        return [name.removesuffix("_cost") for name in names], means, discount

    # -- any column

    def quantiles(
        self,
        table: str | Table,
        columns: str | Sequence[str],
        levels: Sequence[float] = LEVELS,
        *,
        stages: bool = True,
        **rows: Any,
    ) -> Metric:
        """Return mean and quantiles over scenarios of columns of a table, by stage, block and entity.

        Parameters
        ----------
        table
            A table of the simulation, or its name.
        columns
            Columns of numbers.
        levels
            From 0 to 1: 0 is the least, 1 the largest value.
        stages
            Whether columns of ids are followed by the first day of the stage.
        **rows
            Which rows, as for :meth:`cobre.results.reading.Table.to_arrow`.

        Returns
        -------
        Metric
            A row for each column, stage, block and entity: ``column``, ids, ``mean``, and for each level a
            column such as ``p05``, in the unit of ``column``, which is in ``unit``.
        """
        source = self._simulation[table] if isinstance(table, str) else table
        names = [columns] if isinstance(columns, str) else list(columns)
        _check_levels(levels)
        collected: list[dict[str, tuple[Any, str]]] = []
        for name in names:
            cube = source.cube(name, **rows)
            if "scenario" not in cube.dims:
                raise fault(
                    "InvalidValue",
                    f"table {source.name} is not by scenario",
                    "table",
                    source.name,
                    "choose another",
                )
            weights = self._weights(cube)
            values = cube[name]
            some = ~np.isnan(values).all(axis=0).reshape(-1)
            values = values.reshape(len(values), -1)[:, some]
            ids = _index_columns(cube, source, some, stages=stages)
            size = values.shape[1]
            found = quantiles(values, levels, weights) if size else np.empty((len(levels), 0))
            collected.append(
                {
                    "column": ([name] * size, ""),
                    "unit": ([source.unit(name)] * size, ""),
                    **ids,
                    "mean": (expectation(values, weights), ""),
                    **{level_name(q): (found[place], "") for place, q in enumerate(levels)},
                }
            )
        joined = {
            name: (np.concatenate([np.asarray(part[name][0]) for part in collected]), unit)
            for name, (_, unit) in collected[0].items()
        }
        return Metric(f"quantiles of {', '.join(names)} of {source.name}", joined)

    def _weights(self, cube: Cube) -> FloatArray | None:
        probability = self._simulation.probability
        if probability is None:
            return None
        return probability[np.searchsorted(self._simulation.scenarios, cube.labels["scenario"])]

    # -- deficit

    def deficit(self, by: Sequence[str] = ("bus", "stage")) -> Metric:
        """Return expected energy not served and the probability of a deficit.

        Parameters
        ----------
        by
            ``("bus", "stage")``, ``("bus",)``, ``("stage",)``, or ``()`` for the whole study.

        Returns
        -------
        Metric
            ``expected_unserved_mwh`` (MWh), ``deficit_probability`` (that some load of the bus, stage or
            study is not served), ``expected_load_mwh`` and ``unserved_share`` (% of the load).
        """
        unknown = [item for item in by if item not in ("bus", "stage")]
        if unknown or isinstance(by, str):
            raise fault("InvalidValue", f"by is {by!r}", "by", by, "give some of 'bus' and 'stage'")
        cube = self._simulation["buses"].cube(["deficit_mwh", "load_mwh"])
        summed = tuple(
            place
            for place, dim in enumerate(cube.dims)
            if dim == "block"
            or (dim == "stage" and "stage" not in by)
            or (dim == "entity" and "bus" not in by)
        )
        unserved = np.nansum(cube["deficit_mwh"], axis=summed)
        load = np.nansum(cube["load_mwh"], axis=summed)
        weights = self._weights(cube)
        expected, expected_load = expectation(unserved, weights), expectation(load, weights)
        probability = expectation((unserved > DEFICIT_MWH).astype(np.float64), weights)
        columns: dict[str, tuple[Any, str]] = {}
        stages, buses = len(cube.labels["stage"]), len(cube.names)
        if "stage" in by:
            columns |= {
                name: (np.repeat(values, buses) if "bus" in by else values, unit)
                for name, (values, unit) in _stage_columns(cube).items()
            }
        if "bus" in by:
            repeats = stages if "stage" in by else 1
            columns["bus_id"] = (np.tile(cube.labels["entity"], repeats), "")
            columns["bus_name"] = (list(cube.names) * repeats, "")
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(expected_load > 0.0, 100.0 * expected / expected_load, 0.0)
        columns |= {
            "expected_unserved_mwh": (np.ravel(expected), "MWh"),
            "deficit_probability": (np.ravel(probability), ""),
            "expected_load_mwh": (np.ravel(expected_load), "MWh"),
            "unserved_share": (np.ravel(share), "%"),
        }
        return Metric("deficit", columns)

    # -- energy

    def stored_energy(self, levels: Sequence[float] = LEVELS) -> Metric:
        """Return the energy stored in all reservoirs as each stage ends, MWh: mean and quantiles."""
        cube = self._simulation["hydros"].cube("stored_energy_final_mwh")
        energy = _last_block(cube, cube["stored_energy_final_mwh"])
        return self._by_stage("stored energy", cube, np.nansum(energy, axis=2), levels, "MWh")

    def inflow_energy(self, levels: Sequence[float] = LEVELS) -> Metric:
        """Return the energy of the natural inflow of all plants by stage, MW: mean and quantiles."""
        cube = self._simulation["hydros"].cube("incremental_inflow_energy_mw")
        energy = np.nansum(cube["incremental_inflow_energy_mw"], axis=cube.axis("entity"))
        mean = self._over_blocks(cube, energy)
        return self._by_stage("inflow energy", cube, mean, levels, "MW")

    def energy(self) -> Metric:
        """Return the expected energy of each stage by source and use, MWh.

        Of contracts it holds what is bought (``import``) and sold (``export``), both positive.
        """
        columns: dict[str, tuple[Any, str]] = {}
        for label, name, column in _SOURCES:
            if name in self._simulation:
                cube = self._simulation[name].cube(column)
                columns.setdefault("stage_id", (cube.labels["stage"], ""))
                columns |= _stage_columns(cube) if "start_date" not in columns else {}
                columns[f"{label}_mwh"] = (self._expected_sum(cube, cube[column]), "MWh")
        for name in self._simulation:  # entities that cobre-rs does not have
            table = self._simulation[name]
            if name in _NO_FURTHER_SOURCES or table.entity_key is None:
                continue
            for quantity in quantities(table):
                cube = table.cube(f"{quantity}_mwh")
                label = f"{table.entity_key.removesuffix('_id')}_{quantity}_mwh"
                columns[label] = (self._expected_sum(cube, cube[f"{quantity}_mwh"]), "MWh")
        if "contracts" in self._simulation:
            cube = self._simulation["contracts"].cube("energy_mwh")
            bought = cube["energy_mwh"]
            columns["import_mwh"] = (self._expected_sum(cube, np.maximum(bought, 0.0)), "MWh")
            columns["export_mwh"] = (self._expected_sum(cube, np.maximum(-bought, 0.0)), "MWh")
        return Metric("energy", columns)

    def _expected_sum(self, cube: Cube, values: FloatArray) -> FloatArray:
        axes = tuple(place for place, dim in enumerate(cube.dims) if dim not in ("scenario", "stage"))
        return expectation(np.nansum(values, axis=axes), self._weights(cube))

    # -- prices

    def marginal_cost(self, levels: Sequence[float] = LEVELS) -> Metric:
        """Return the marginal cost of each bus and stage, $/MWh, its mean over hours: mean and quantiles."""
        cube = self._simulation["buses"].cube("spot_price")
        price = np.moveaxis(cube["spot_price"], cube.axis("entity"), 1)  # [scenario, bus, stage, block]
        by_bus = self._over_blocks(cube, price)
        weights = self._weights(cube)
        found = quantiles(by_bus, levels, weights)
        stages, buses = len(cube.labels["stage"]), len(cube.names)
        columns: dict[str, tuple[Any, str]] = {
            "bus_id": (np.repeat(cube.labels["entity"], stages), ""),
            "bus_name": ([name for name in cube.names for _ in range(stages)], ""),
        }
        columns |= {name: (np.tile(part, buses), unit) for name, (part, unit) in _stage_columns(cube).items()}
        columns["mean"] = (expectation(by_bus, weights).reshape(-1), "$/MWh")
        columns |= {level_name(q): (found[place].reshape(-1), "$/MWh") for place, q in enumerate(levels)}
        return Metric("marginal cost", columns)

    def marginal_cost_duration(self, points: int = 101, **rows: Any) -> Metric:
        """Return the duration curve of the marginal cost of each bus.

        Parameters
        ----------
        points
            How many, at equal distances of the duration.
        **rows
            Which rows of ``buses``, such as ``stage=3`` or ``entity="North"``; all unless given.

        Returns
        -------
        Metric
            ``bus_id``, ``bus_name``, ``duration`` (%), ``price`` ($/MWh): the price is at least ``price`` in
            ``duration`` of the hours, over all scenarios by their probabilities.
        """
        if points < 2:
            raise fault("OutOfRange", f"points is {points}", "points", points, "give 2 or more")
        cube = self._simulation["buses"].cube("spot_price", **rows)
        hours = self._hours_of(cube)
        weights = self._weights(cube)
        scenarios = np.full(len(cube.labels["scenario"]), 1.0) if weights is None else weights
        mass = (scenarios[:, None, None] * hours[None, :, :]).reshape(-1)
        duration = np.linspace(0.0, 100.0, points)
        price = np.moveaxis(cube["spot_price"], cube.axis("entity"), 0).reshape(len(cube.names), -1)
        curves = [_duration_curve(values, mass, duration) for values in price]
        return Metric(
            "marginal cost duration",
            {
                "bus_id": (np.repeat(cube.labels["entity"], points), ""),
                "bus_name": ([name for name in cube.names for _ in range(points)], ""),
                "duration": (np.tile(duration, len(cube.names)), "%"),
                "price": (np.concatenate(curves) if curves else np.zeros(0), "$/MWh"),
            },
        )

    # -- hours

    @cached_property
    def hours(self) -> dict[tuple[int, int], float]:
        """Hours of each block by ids of stage and block; without blocks in which nothing has any power."""
        return block_hours(self._simulation)

    def _hours_of(self, cube: Cube) -> FloatArray:
        """Return hours by stage and block of a cube; 0 where the stage does not have the block."""
        blocks = cube.labels.get("block", np.array([-1]))
        hours = np.zeros((len(cube.labels["stage"]), len(blocks)))
        values = next(iter(cube.values.values()))
        axes = tuple(place for place, dim in enumerate(cube.dims) if dim not in ("stage", "block"))
        there = ~np.isnan(values).all(axis=axes).reshape(hours.shape)
        for t, stage in enumerate(cube.labels["stage"].tolist()):
            for b, block in enumerate(blocks.tolist()):
                if there[t, b]:
                    hours[t, b] = self.hours.get((stage, block), math.nan)
        for t in range(len(hours)):
            if not np.isnan(hours[t]).any():
                continue
            if there[t].sum() == 1:
                hours[t] = there[t]  # the only block of its stage, in which nothing has any power
                continue
            raise CobreError(
                "UnknownHours",
                f"the hours of the blocks of stage {cube.labels['stage'][t]} are not known: there is neither "
                "load nor generation in some of them",
                {"stage": int(cube.labels["stage"][t])},
                "take the table by blocks (quantiles)",
            )
        return hours

    def _over_blocks(self, cube: Cube, values: FloatArray) -> FloatArray:
        """Return means over the last axis, of blocks, weighted by hours; the axis before it is of stages."""
        hours = self._hours_of(cube)
        share = hours / hours.sum(axis=1, keepdims=True)
        found: FloatArray = np.nansum(values * share, axis=-1)
        return found

    def _by_stage(
        self, name: str, cube: Cube, values: FloatArray, levels: Sequence[float], unit: str
    ) -> Metric:
        _check_levels(levels)
        weights = self._weights(cube)
        found = quantiles(values, levels, weights)
        columns = _stage_columns(cube)
        columns["mean"] = (expectation(values, weights), unit)
        columns |= {level_name(q): (found[place], unit) for place, q in enumerate(levels)}
        return Metric(name, columns)


def _check_levels(levels: Sequence[float]) -> None:
    for level in levels:
        if not 0.0 <= level <= 1.0:
            raise fault("OutOfRange", f"a level of a quantile is {level!r}", "levels", level, "give 0 to 1")


def _stage_columns(cube: Cube) -> dict[str, tuple[Any, str]]:
    columns: dict[str, tuple[Any, str]] = {"stage_id": (cube.labels["stage"], "")}
    if len(cube.dates):
        columns["start_date"] = (cube.dates, "")
    return columns


def _index_columns(
    cube: Cube, table: Table, some: NDArray[np.bool_], *, stages: bool
) -> dict[str, tuple[Any, str]]:
    dims = cube.dims[1:]
    shape = [len(cube.labels[dim]) for dim in dims]
    grid = [part.reshape(-1)[some] for part in np.indices(shape)] if shape else []
    columns: dict[str, tuple[Any, str]] = {}
    for dim, place in zip(dims, grid, strict=True):
        key = (table.entity_key or dim) if dim == "entity" else dim if dim.startswith("lag") else f"{dim}_id"
        columns[key.replace("delivery_date_id", "delivery_date")] = (cube.labels[dim][place], "")
        if dim == "stage" and stages and len(cube.dates):
            columns["start_date"] = (cube.dates[place], "")
        if dim == "entity":
            columns["name"] = (np.array(cube.names, dtype=str)[place], "")
    return columns


def _last_block(cube: Cube, values: FloatArray) -> FloatArray:
    """Return values of the last block that each stage has, [scenario, stage, entity]."""
    if "block" not in cube.dims:
        return values
    axis = cube.axis("block")
    there: NDArray[np.bool_] = np.logical_not(np.isnan(values).all(axis=(0, cube.axis("entity"))))
    last = there.shape[1] - 1 - np.argmax(there[:, ::-1], axis=1)
    found: FloatArray = np.take_along_axis(values, last[None, :, None, None], axis=axis).squeeze(axis)
    return found


def _duration_curve(price: FloatArray, mass: FloatArray, duration: FloatArray) -> FloatArray:
    known = ~np.isnan(price) & (mass > 0.0)
    order = np.argsort(-price[known], kind="stable")
    ordered = price[known][order]
    reached = np.cumsum(mass[known][order])
    places = np.searchsorted(reached, duration / 100.0 * reached[-1] * (1.0 - 1e-12))
    found: FloatArray = ordered[np.minimum(places, len(ordered) - 1)]
    return found
