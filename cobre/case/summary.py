"""The size of a case in numbers: entities, time, uncertainty and models."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cobre.case.catalogue import singular
from cobre.case.model import Case
from cobre.case.model.options import ClassName

_PATHS: Mapping[str, str] = {
    "deterministic": "none, inflows are 0 (deterministic)",
    "user_stats_white_noise": "white noise from given statistics (user_stats_white_noise)",
    "user_provided_no_history": "given statistics and coefficients (user_provided_no_history)",
    "full_estimation": "estimated from history (full_estimation)",
    "partial_estimation": "given statistics, coefficients estimated from history (partial_estimation)",
    "user_ar_history_stats": "statistics from history, given coefficients (user_ar_history_stats)",
    "user_provided_all": "given statistics and coefficients beside a history (user_provided_all)",
}


@dataclass(frozen=True)
class FittedPlant:
    """Quality of the production planes fitted for a plant: the worst of its configurations.

    Attributes
    ----------
    configurations
        Number of fits; stages with the same geometry, limits and options share one.
    planes
        Most planes of any of them.
    alpha
        Least-squares factor of the worst fit.
    max_deviation_mw, mean_deviation_mw, mean_power_mw
        Of the worst fit, over its grid; see :class:`~cobre.case.model.FitQuality`.
    """

    hydro_id: int
    name: str
    configurations: int
    planes: int
    alpha: float
    max_deviation_mw: float
    mean_deviation_mw: float
    mean_power_mw: float

    @property
    def relative_deviation(self) -> float:
        """Mean deviation over mean power."""
        return self.mean_deviation_mw / self.mean_power_mw if self.mean_power_mw > 0.0 else 0.0


@dataclass(frozen=True)
class CaseSummary:
    """The size of a study and how its uncertainty is made; ``str`` gives a table.

    Attributes
    ----------
    case
        The case directory.
    entities
        Number of entities by kind, all kinds.
    stages, first_day, last_day
        Number of study stages, the day the first starts and the day the last ends.
    hours
        Of all stages.
    blocks, chronological_stages
        Blocks of each stage; stages whose blocks follow each other in time.
    openings
        Openings of each node of the policy graph.
    nodes
        Number of nodes; equal to the number of stages on a chain.
    graph
        ``chain`` or ``nodes``.
    uncertainty
        For inflow, load and non-controllable sources: how their values are made.
    estimation_path
        Where the inflow model comes from; see :attr:`cobre.case.model.Scenarios.estimation_path`.
    forward_passes
        Of one iteration; ``None`` when every path is followed.
    paths
        Paths through the graph and its openings.
    max_iterations, seed
        Of training.
    risk_stages
        Stages with a risk measure other than the expectation.
    production
        Number of plants by kind of production model (a plant may have several).
    generic_rows
        Rows of generic constraints at all stages.
    fits
        Plants whose planes were fitted, the worst first.
    """

    case: str
    entities: Mapping[str, int]
    stages: int
    first_day: str
    last_day: str
    hours: float
    blocks: tuple[int, ...]
    chronological_stages: int
    openings: tuple[int, ...]
    nodes: int
    graph: str
    uncertainty: Mapping[str, str]
    estimation_path: str
    forward_passes: int | None
    paths: int
    max_iterations: int
    seed: int
    risk_stages: int
    production: Mapping[str, int]
    generic_rows: int
    fits: tuple[FittedPlant, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return the summary as plain data."""
        return asdict(self)

    def rows(self) -> dict[str, str]:
        """Return the lines of the table, by title."""
        counts = [_count(count, kind.replace("_", " ")) for kind, count in self.entities.items() if count]
        blocks = f"{_span(self.blocks)} {'block' if max(self.blocks) == 1 else 'blocks'} each"
        if self.chronological_stages:
            blocks += f", chronological in {self.chronological_stages}"
        limit = f"{self.max_iterations} iterations"
        passes = (
            "every path" if self.forward_passes is None else f"forward passes in each: {self.forward_passes}"
        )
        days = f"{self.first_day} to {self.last_day}"
        rows = {
            "case": self.case,
            "entities": ", ".join(counts) or "none",
            "stages": f"{self.stages} from {days}, {self.hours:g} hours; {blocks}",
            "policy graph": "chain" if self.graph == "chain" else f"{self.nodes} nodes",
            "openings": f"{_span(self.openings)} a {'stage' if self.graph == 'chain' else 'node'}, "
            f"{_count(self.paths, 'paths')}",
            **{name.replace("_", " "): text for name, text in self.uncertainty.items()},
            "inflow model": _PATHS[self.estimation_path],
            "training": f"{limit}, {passes}; seed {self.seed}",
        }
        if self.risk_stages:
            rows["risk"] = f"a measure other than the expectation in {self.risk_stages} stages"
        if self.production:
            rows["production"] = ", ".join(f"{kind}: {count}" for kind, count in self.production.items())
        if self.generic_rows:
            rows["generic rows"] = str(self.generic_rows)
        if self.fits:
            rows["fitted planes"] = f"{len(self.fits)} plants; worst {_fit(self.fits[0])}"
        return rows

    def __str__(self) -> str:
        rows = self.rows()
        width = max(len(title) for title in rows)
        return "\n".join(f"{title:<{width}}  {text}" for title, text in rows.items())

    def __repr__(self) -> str:
        counts = ", ".join(f"{count} {kind}" for kind, count in self.entities.items() if count)
        return f"CaseSummary({self.stages} stages; {counts})"


def summarize(case: Case) -> CaseSummary:
    """Return the summary of a case."""
    openings = tuple(
        1 if node.scenario_id is not None else case.stages[node.stage].num_openings
        for node in case.graph.nodes
    )
    sources = case.scenarios
    return CaseSummary(
        case=str(case.path),
        entities={
            "buses": len(case.buses),
            "lines": len(case.lines),
            "thermals": len(case.thermals),
            "hydros": len(case.hydros),
            "unit_groups": sum(len(hydro.unit_groups) for hydro in case.hydros),
            "non_controllable_sources": len(case.non_controllables),
            "pumping_stations": len(case.pumping_stations),
            "contracts": len(case.contracts),
            **{name: len(items) for name, items in case.extensions.items()},
        },
        stages=len(case.stages),
        first_day=case.stages[0].start_date.isoformat(),
        last_day=case.stages[-1].end_date.isoformat(),
        hours=float(sum(stage.hours for stage in case.stages)),
        blocks=tuple(len(stage.blocks) for stage in case.stages),
        chronological_stages=sum(stage.block_mode == "chronological" for stage in case.stages),
        openings=openings,
        nodes=len(case.graph.nodes),
        graph="chain" if case.graph.is_chain else "nodes",
        uncertainty={
            "inflow": _describe_inflow(case),
            "load": _describe(sources.load_std_mw, "load", case, "buses"),
            "non_controllable": _describe(sources.ncs_std, "ncs", case, "sources"),
        },
        estimation_path=sources.estimation_path,
        forward_passes=None if case.training.enumerated else case.training.forward_passes,
        paths=_paths(case, openings),
        max_iterations=case.training.iteration_limit,
        seed=case.training.tree_seed,
        risk_stages=sum(not stage.risk.is_expectation for stage in case.stages),
        production=_production(case),
        generic_rows=sum(len(rows) for rows in case.generic),
        fits=_fits(case),
    )


def _describe_inflow(case: Case) -> str:
    sources = case.scenarios
    if sources.has_inflow_stats or sources.inflow_history is None:
        return _describe(sources.inflow_std_m3s, "inflow", case, "hydros")
    methods = sorted({stage.sampling_method for stage in case.stages})
    return f"noise as in the history at {_count(len(case.hydros), 'hydros')} ({', '.join(methods)})"


def _describe(std: NDArray[np.float64], kind: ClassName, case: Case, word: str) -> str:
    entities, scenarios = std.shape[1], case.scenarios
    noisy = int((std > 0.0).any(axis=0).sum())
    scheme = case.training.source.scheme(kind)
    parts = []
    if scheme == "external":
        parts.append("external scenarios" + (" at nodes" if case.graph.has_scenarios else ""))
    if noisy:
        methods = sorted({stage.sampling_method for stage in case.stages})
        how = "given" if scenarios.noise_openings is not None else ", ".join(methods)
        profiles = scenarios.correlation.profiles.values() if scenarios.correlation is not None else ()
        grouped = any(group.kind == kind for groups in profiles for group in groups)
        if kind == "inflow" and scenarios.correlation is None:
            grouped = scenarios.estimation_path == "partial_estimation"
        noise = "correlated" if grouped else "independent"
        parts.append(f"{noise} normal noise at {noisy} of {entities} {word} ({how})")
    if scheme in ("out_of_sample", "historical"):
        parts.append(f"passes {scheme.replace('_', ' ')}")
    return "; ".join(parts) or (f"without noise at {_count(entities, word)}" if entities else "none")


def _paths(case: Case, openings: tuple[int, ...]) -> int:
    """Return the number of paths from the first stage to the last, openings included."""
    after = [0] * len(case.graph.nodes)
    last = len(case.stages) - 1
    targets: dict[int, list[int]] = {}
    for edge in case.graph.transitions:
        if edge.probability > 0.0:
            targets.setdefault(edge.source, []).append(edge.target)
    for place in reversed(range(len(case.graph.nodes))):
        following = sum(after[target] for target in targets.get(place, ()))
        after[place] = openings[place] * (1 if case.graph.nodes[place].stage == last else following)
    return sum(count for count, node in zip(after, case.graph.nodes, strict=True) if node.stage == 0)


def _production(case: Case) -> dict[str, int]:
    kinds = {(number, model.kind) for models in case.production for number, model in enumerate(models)}
    return dict(sorted(Counter(kind for _, kind in kinds).items()))


def _fits(case: Case) -> tuple[FittedPlant, ...]:
    fitted = []
    for number, hydro in enumerate(case.hydros):
        models = {id(models[number]): models[number] for models in case.production}
        pairs = [(model.quality, len(model.planes)) for model in models.values() if model.quality is not None]
        if not pairs:
            continue
        worst = max(
            (quality for quality, _ in pairs),
            key=lambda quality: quality.mean_deviation_mw / max(quality.mean_power_mw, 1e-9),
        )
        fitted.append(
            FittedPlant(hydro.id, hydro.name, len(pairs), max(planes for _, planes in pairs), **asdict(worst))
        )
    return tuple(sorted(fitted, key=lambda plant: (-plant.relative_deviation, plant.hydro_id)))


def _fit(plant: FittedPlant) -> str:
    return (
        f"{plant.name}: {plant.planes} planes, mean deviation {100.0 * plant.relative_deviation:.2f} %, "
        f"largest {plant.max_deviation_mw:.4g} MW, alpha {plant.alpha:.4g}"
    )


def _span(values: tuple[int, ...]) -> str:
    least, most = min(values), max(values)
    return str(least) if least == most else f"{least} to {most}"


def _count(count: int, words: str) -> str:
    """Return a number with its noun, which is given in the plural."""
    if count == 1:
        return f"1 {singular(words)}"
    return f"{count if count < 10**7 else f'about 10^{len(str(count)) - 1}'} {words}"
