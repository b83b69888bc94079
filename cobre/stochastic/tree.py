"""The opening tree: the noise of every stage and what it means in inflow, load and availability.

Opening ``j`` of stage ``t`` is a vector ``eta`` of standard normal numbers (:mod:`cobre.stochastic.entities`
states whose), made by the stage's sampling method (:mod:`cobre.stochastic.openings`) and correlated
(:mod:`cobre.stochastic.correlation`), or read from ``scenarios/noise_openings.parquet``, where it is used as
it is. Openings of a stage are equally probable, and shared by its nodes. At a node with a scenario of its own
the classes with external scenarios have that scenario in all openings; where nothing else is random there is
one opening.

A stage with the same season in the same year as its predecessor belongs to one *noise group* with it and
repeats its openings; openings beyond the predecessor's number get zero noise.

With a communicator the ranks of a host fill one shared array, each some noise groups of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cobre.case.model import Case, ClassName, Correlation, PolicyNode, Stage
from cobre.case.scenarios.correlation import resolve_correlation
from cobre.comm.contract import Communicator
from cobre.comm.regions import SharedRegion
from cobre.errors import Problem, ValidationError
from cobre.stochastic.correlation import CorrelationRoots, correlate_rows, correlation_roots
from cobre.stochastic.entities import CLASSES, NoiseLayout, noise_layout
from cobre.stochastic.external import (
    follow,
    follows_external,
    node_classes,
    number_of_scenarios,
    varying,
)
from cobre.stochastic.historical import HistoricalWindows, historical_windows
from cobre.stochastic.openings import METHODS, OWEN_SOBOL, QMC_SOBOL, fill_openings, sobol_table
from cobre.stochastic.par import InflowModel, estimated_correlation, inflow_model
from cobre.stochastic.statistics import NoiseStatistics, noise_statistics, realise_rows

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class OpeningTree:
    """All openings of all nodes of the policy graph, one row each; read-only by convention.

    The openings of node ``n`` (on a chain: of the stage at that position) are the rows ``offset[n]`` to
    ``offset[n + 1]``. All arrays are C-contiguous, so that kernels take them as they are.

    Attributes
    ----------
    seed
        Seed of the tree (64 bits); in-sample forward draws use it too.
    offset
        int64 ``(nodes + 1,)``: first row of each node, and the number of rows at the end.
    noise
        float64 ``(rows, dim)``: standard normal numbers, ``[hydros by id | noisy buses by id | noisy sources
        by id]``; NaN where values come from an external library instead.
    noisy_buses
        int64: positions in the case of the buses with noise, in the order of ``noise``.
    inflow_m3s
        float64 ``(rows, hydros)``: realised incremental inflow without the part of earlier inflows and
        before truncation, hydros as in the case.
    load_mw
        float64 ``(rows, buses)``: realised load before block factors, buses as in the case.
    ncs_mw
        float64 ``(rows, sources)``: realised availability before block factors, 0 out of service.
    region
        What holds the arrays, where ranks share them.
    """

    seed: int
    offset: NDArray[np.int64]
    noise: FloatArray
    noisy_buses: NDArray[np.int64]
    inflow_m3s: FloatArray
    load_mw: FloatArray
    ncs_mw: FloatArray
    region: SharedRegion | None = field(default=None, repr=False)

    @property
    def num_openings(self) -> NDArray[np.int64]:
        """Number of openings of each node; each has the probability ``1 / num_openings[node]`` there."""
        return np.diff(self.offset)

    def rows(self, node: int) -> slice:
        """Return the rows of the node at position ``node``."""
        return slice(int(self.offset[node]), int(self.offset[node + 1]))

    def __repr__(self) -> str:
        return f"OpeningTree({len(self.offset) - 1} nodes, {int(self.offset[-1])} openings, seed={self.seed})"


def build_opening_tree(
    case: Case,
    seed: int | None = None,
    comm: Communicator | None = None,
    model: InflowModel | None = None,
) -> OpeningTree:
    """Draw the opening tree of a study.

    Parameters
    ----------
    case
        The study. The noise of an entity follows its id and so does not depend on the order of entities.
    seed
        Seed to use instead of the study's ``tree_seed``.
    comm
        Ranks that fill the tree together; collective. The tree is the same, and its arrays are read-only.
    model
        The study's inflow model; made from the case unless given.

    Raises
    ------
    ValidationError
        If the seed does not fit in 64 bits without sign, or the history has no complete window.
    """
    seed = _checked_seed(case.training.tree_seed if seed is None else seed)
    model = inflow_model(case) if model is None else model
    _check_nodes(case, model)
    generator = _Generator(case, seed, model)
    if case.graph.is_chain:
        arrays = _Arrays.allocate(generator.counts, generator.widths, comm)
        start, stop = arrays.own_stages(generator.group_starts)
        generator.fill(arrays, start, stop)
    else:
        stages = _Arrays.allocate(generator.counts, generator.widths, None)
        generator.fill(stages, 0, len(case.stages))
        nodes = case.graph.nodes
        counts = [generator.openings_of(node) for node in nodes]
        arrays = _Arrays.allocate(np.array(counts, np.int64), generator.widths, comm)
        start, stop = arrays.own_stages(np.arange(len(nodes)))
        for position in range(start, stop):
            generator.fill_node(nodes[position], stages, arrays, position)
    noise, inflow, load, ncs = arrays.finish()
    return OpeningTree(
        seed, arrays.offset, noise, generator.layout.buses, inflow, load, ncs, region=arrays.region
    )


class _Arrays:
    """The tree's four tables, one after the other in one array, which may be shared."""

    def __init__(
        self,
        offset: NDArray[np.int64],
        widths: tuple[int, ...],
        data: FloatArray,
        region: SharedRegion | None,
    ) -> None:
        self.offset = offset
        self.region = region
        self.tables: list[FloatArray] = []
        rows, start = int(offset[-1]), 0
        for width in widths:
            self.tables.append(data[start : start + rows * width].reshape(rows, width))
            start += rows * width
        self._part, self._parts = 0, 1

    @classmethod
    def allocate(
        cls, counts: NDArray[np.int64], widths: tuple[int, ...], comm: Communicator | None
    ) -> _Arrays:
        offset = np.zeros(counts.size + 1, np.int64)
        np.cumsum(counts, out=offset[1:])
        size = int(offset[-1]) * sum(widths)
        if comm is None:
            return cls(offset, widths, np.zeros(size), None)
        region = comm.create_shared_region(size, np.float64)
        # Every rank writes its own rows only; all of it is taken since rows lie in four tables.
        arrays = cls(offset, widths, region.population_view(0, size), region)
        group = comm.split_local()
        arrays._part, arrays._parts = group.rank, group.size
        return arrays

    def block(self, position: int) -> tuple[FloatArray, ...]:
        """Return the rows of a stage or node in each table."""
        rows = slice(int(self.offset[position]), int(self.offset[position + 1]))
        return tuple(table[rows] for table in self.tables)

    def own_stages(self, group_starts: NDArray[np.int64]) -> tuple[int, int]:
        """Return the stages that this rank fills: whole groups, about equally many rows on each rank."""
        last = self.offset.size - 1
        bounds = [*group_starts.tolist(), last]
        wanted = [int(self.offset[-1]) * part // self._parts for part in (self._part, self._part + 1)]
        start, stop = (
            next((bound for bound in bounds if self.offset[bound] >= rows), last) for rows in wanted
        )
        return start, last if self._part == self._parts - 1 else stop

    def finish(self) -> list[FloatArray]:
        """Wait for the other ranks; return the tables."""
        if self.region is not None:
            self.region.fence()
            for table in self.tables:
                table.setflags(write=False)
        return self.tables


def openings_by_node(case: Case, model: InflowModel) -> NDArray[np.int64]:
    """Return how many openings each node has, having checked that they can be drawn; draws none.

    Raises
    ------
    ValidationError
        As :func:`build_opening_tree` does, and the sampler of forward passes.
    """
    _check_nodes(case, model)
    generator = _Generator(case, _checked_seed(case.training.tree_seed), model)
    if case.training.source.scheme("inflow") == "historical":
        historical_windows(case, model, case.training.source.historical_years)
    by_sobol = any(METHODS[stage.sampling_method] in (QMC_SOBOL, OWEN_SOBOL) for stage in case.stages)
    if by_sobol and case.scenarios.noise_openings is None:
        sobol_table(generator.layout.dimension)
    return np.array([generator.openings_of(node) for node in case.graph.nodes], np.int64)


class _Generator:
    """Makes the openings of stages, in place."""

    def __init__(self, case: Case, seed: int, model: InflowModel) -> None:
        self._case, self._seed = case, seed
        following = follows_external(case)
        self.layout: NoiseLayout = study_layout(case)
        statistics = noise_statistics(case, model, self.layout)
        self._statistics: NoiseStatistics = follow(case, model, statistics) if following else statistics
        self._windows: HistoricalWindows | None = None
        counts = np.array([stage.num_openings for stage in case.stages], np.int64)
        if case.scenarios.noise_openings is None:
            if following:
                counts = np.minimum(counts, number_of_scenarios(case))
            residual = [stage.sampling_method == "historical_residuals" for stage in case.stages]
            if any(residual):
                self._windows = historical_windows(case, model, case.training.source.historical_years)
                counts = np.where(residual, np.minimum(counts, len(self._windows)), counts)
        self.counts = counts
        self.widths = (
            self.layout.dimension,
            len(case.hydros),
            len(case.buses),
            len(case.non_controllables),
        )
        repeats = [False, *(_same_group(a, b) for a, b in zip(case.stages, case.stages[1:], strict=False))]
        self._repeats = np.array(repeats[: len(case.stages)], np.bool_)
        self.group_starts: NDArray[np.int64] = np.flatnonzero(~self._repeats)

    @cached_property
    def _roots(self) -> CorrelationRoots:
        return correlation_roots(self._case, self.layout, study_correlation(self._case))

    def fill(self, arrays: _Arrays, start: int, stop: int) -> None:
        """Fill the rows of the stages ``start`` to ``stop``; the first does not repeat another."""
        for position in range(start, stop):
            noise, *values = arrays.block(position)
            given = self._case.scenarios.noise_openings
            if given is not None:
                noise[:] = given[position]
            elif self._repeats[position]:
                previous = arrays.block(position - 1)[0]
                shared = min(len(previous), len(noise))
                noise[:shared] = previous[:shared]
            else:
                self._draw(position, noise)
            realise_rows(self._statistics, position, noise, *values)

    def _draw(self, position: int, noise: FloatArray) -> None:
        stage, roots = self._case.stages[position], self._roots
        residuals = np.zeros((1, 0))
        if self._windows is not None:
            residuals = np.ascontiguousarray(self._windows.noise[:, position][:, self.layout.hydros])
        fill_openings(self._seed, stage, residuals, noise)
        groups = roots.stage_group[roots.stage_start[position] : roots.stage_start[position + 1]]
        if groups.size and stage.sampling_method != "historical_residuals":
            correlate_rows(groups, roots.slot_start, roots.slot, roots.root_start, roots.root, noise)

    def openings_of(self, node: PolicyNode) -> int:
        """Return the number of openings of a node."""
        if node.scenario_id is None or self._random_beside(node.stage):
            return int(self.counts[node.stage])
        return 1

    def _random_beside(self, stage: int) -> bool:
        """Return whether a class without external scenarios is random at a stage."""
        statistics, external = self._statistics, node_classes(self._case)
        std = {"inflow": statistics.sigma, "load": statistics.load_std, "ncs": statistics.ncs_std}
        return any(name not in external and bool((std[name][stage] > 0.0).any()) for name in CLASSES)

    def fill_node(self, node: PolicyNode, stages: _Arrays, arrays: _Arrays, position: int) -> None:
        """Fill the rows of a node from those of its stage and its scenario."""
        source, target = stages.block(node.stage), arrays.block(position)
        for given, filled in zip(source, target, strict=True):
            filled[:] = given[: len(filled)]
        if node.scenario_id is None:
            return
        case, scenario, external = self._case, node.scenario_id, node_classes(self._case)
        noise, inflow, load, ncs = target
        if not self._random_beside(node.stage):
            noise[:] = np.nan
        for name in external:
            begin = self.layout.start(name)
            noise[:, begin : begin + self.layout.members(name).size] = np.nan
        if "inflow" in external and case.scenarios.external_inflow_m3s is not None:
            inflow[:] = case.scenarios.external_inflow_m3s[node.stage][scenario]
        if "load" in external and case.scenarios.external_load_mw is not None:
            load[:] = case.scenarios.external_load_mw[node.stage][scenario]
        if "ncs" in external and case.scenarios.external_ncs is not None:
            most = np.array([source.max_generation_mw for source in case.non_controllables])
            share = case.scenarios.external_ncs[node.stage][scenario]
            ncs[:] = np.where(case.stage_data[node.stage].ncs_in_service, most * share, 0.0)


def study_layout(case: Case) -> NoiseLayout:
    """Return the layout of a study's noise; what varies over followed external scenarios has noise too."""
    if not follows_external(case):
        return noise_layout(case)
    return noise_layout(case, varying(case, "load"), varying(case, "ncs"))


def study_correlation(case: Case) -> Correlation | None:
    """Return the correlation of a study: that of the file, else the one estimated from its history."""
    if case.scenarios.correlation is not None:
        return case.scenarios.correlation
    file = estimated_correlation(case)
    if file is None:
        return None
    positions: dict[ClassName, dict[int, int]] = {
        "inflow": {hydro.id: position for position, hydro in enumerate(case.hydros)}
    }
    return resolve_correlation(file, positions, [stage.id for stage in case.stages])


def _check_nodes(case: Case, model: InflowModel) -> None:
    """Refuse scenarios of inflow at nodes of a model with lags, whose part depends on the way there."""
    if model.lags.names and case.graph.has_scenarios and "inflow" in node_classes(case):
        raise ValidationError(
            [
                Problem(
                    "NotImplemented",
                    "stages.json: nodes take external scenarios of inflow, which is not supported yet with "
                    "an autoregressive inflow model.",
                    {"file": "stages.json", "field": "policy_graph.nodes[].scenario_id"},
                    "Remove the scenario ids, or the autoregressive coefficients.",
                )
            ],
            source="the opening tree",
        )


def _checked_seed(seed: int) -> int:
    if not 0 <= seed < 2**64:
        raise ValidationError(
            [
                Problem(
                    "InvalidSeed",
                    f"the seed of the opening tree is {seed}, outside 0 .. 2^64 - 1",
                    {"field": "tree_seed", "value": seed},
                    "give a non-negative integer",
                )
            ],
            source="the opening tree",
        )
    return int(seed)


def _same_group(previous: Stage, stage: Stage) -> bool:
    return (
        stage.season_id is not None
        and stage.season_id == previous.season_id
        and stage.start_date.year == previous.start_date.year
    )
