"""The uncertainty of a study, made and reported without training: what ``Case.stochastic`` returns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from cobre.case.model import Case, Correlation
from cobre.stochastic.par import InflowModel
from cobre.stochastic.par.model import assemble, standard_model
from cobre.stochastic.par.standard import StandardModel
from cobre.stochastic.report.quality import FitQuality, fit_quality
from cobre.stochastic.report.sample import sample_inflows
from cobre.stochastic.tree import OpeningTree, build_opening_tree, study_correlation

if TYPE_CHECKING:
    import pyarrow as pa

FloatArray = NDArray[np.float64]
Source = Literal["file", "history", "none"]

SAMPLE_YEARS = 5000
"""Generated values behind each moment; a correlation is known to about 0.014 then."""


@dataclass(frozen=True)
class Provenance:
    """Where the parts of the uncertainty come from.

    Attributes
    ----------
    estimation_path
        See :attr:`cobre.case.model.Scenarios.estimation_path`.
    seasonal_stats_source, ar_coefficients_source, correlation_source
        A file of the case, the history of inflows, or nothing.
    opening_tree_source
        ``generated`` or ``file``.
    ar_method, ar_max_order
        How orders were selected; ``None`` where coefficients are not estimated.
    white_noise_fallbacks
        Pairs of season and plant with random inflow for which estimation left no autoregression.
    """

    estimation_path: str
    seasonal_stats_source: Source
    ar_coefficients_source: Source
    correlation_source: Source
    opening_tree_source: Literal["generated", "file"]
    n_hydros: int
    ar_method: str | None
    ar_max_order: int | None
    white_noise_fallbacks: int


@dataclass(frozen=True)
class OpeningSummary:
    """The openings of one node: a stage on a chain.

    Attributes
    ----------
    node
        Position in the policy graph.
    method
        Sampling method of the stage, ``file``, or ``scenario`` where a node has one of its own.
    noise_mean, noise_std, noise_min, noise_max
        Over all openings and entities; ``None`` without noise.
    """

    node: int
    stage_id: int
    method: str
    openings: int
    noise_mean: float | None
    noise_std: float | None
    noise_min: float | None
    noise_max: float | None


@dataclass(frozen=True, eq=False)
class StochasticReport:
    """The uncertainty of a study: models, correlation, opening tree, and how well models fit.

    Attributes
    ----------
    case
        The study.
    inflow
        The inflow model, in original units, as the stage LPs use it.
    standard
        The same in standardised form: ``standard.phi[stage, hydro, lag - 1]``, mean, deviation.
    correlation
        How noise is correlated; ``None`` = not at all.
    tree
        The opening tree; ``openings(stage)`` has the noise of one stage.
    """

    case: Case
    inflow: InflowModel
    standard: StandardModel
    correlation: Correlation | None
    tree: OpeningTree

    @cached_property
    def quality(self) -> FitQuality:
        """Observed and generated moments; the first access generates a sample, which may take seconds."""
        sample = sample_inflows(self.case, self.standard, self.inflow, self.correlation, SAMPLE_YEARS)
        return fit_quality(self.case, self.standard, sample)

    @property
    def orders(self) -> NDArray[np.int64]:
        """Autoregressive orders by (stage, hydro)."""
        return self.inflow.order

    @property
    def coefficients(self) -> FloatArray:
        """Standardised autoregressive coefficients by (stage, hydro, lag - 1)."""
        return self.standard.phi

    def openings(self, stage: int) -> FloatArray:
        """Return the noise of the stage at a position by (opening, entity): hydros, buses, sources by id.

        Where all nodes of the stage have a scenario of their own, the values it gives are NaN.
        """
        nodes = [at for at, node in enumerate(self.case.graph.nodes) if node.stage == stage]
        free = [at for at in nodes if self.case.graph.nodes[at].scenario_id is None]
        noise: FloatArray = self.tree.noise[self.tree.rows((free or nodes)[0])]
        return noise

    @cached_property
    def provenance(self) -> Provenance:
        """Where the parts come from."""
        return provenance_of(self.case, self.inflow, self.correlation)

    @cached_property
    def opening_summary(self) -> tuple[OpeningSummary, ...]:
        """The openings of every node in numbers."""
        return tuple(_openings_of(self, node) for node in range(len(self.case.graph.nodes)))

    @cached_property
    def tables(self) -> Mapping[str, pa.Table]:
        """Everything as tables; see :func:`cobre.stochastic.report.tables.report_tables`."""
        from cobre.stochastic.report.tables import report_tables

        return report_tables(self)

    def order_counts(self) -> dict[int, int]:
        """Return how many pairs of season (without an estimate: stage) and plant have each order."""
        fit = self.inflow.fit if self.provenance.ar_coefficients_source == "history" else None
        orders = self.inflow.order if fit is None else fit.order
        return dict(sorted(Counter(orders.ravel().tolist()).items()))

    def rows(self) -> dict[str, str]:
        """Return the lines of a table for people, by title; quality is not among them."""
        origin, openings = self.provenance, self.opening_summary
        counts = ", ".join(f"{order}: {number}" for order, number in self.order_counts().items())
        unit = "season" if origin.ar_coefficients_source == "history" else "stage"
        methods = sorted({item.method for item in openings})
        few, many = min(item.openings for item in openings), max(item.openings for item in openings)
        rows = {
            "case": str(self.case.path),
            "inflow model": f"{origin.estimation_path}, hydros: {origin.n_hydros}",
            "statistics": _FROM[origin.seasonal_stats_source],
            "coefficients": _FROM[origin.ar_coefficients_source],
            "correlation": _FROM[origin.correlation_source],
            "lags": ", ".join(self.inflow.lags.names) or "none",
            "orders": f"{counts} (order: pairs of {unit} and plant)" if counts else "none",
        }
        if origin.ar_method is not None and self.inflow.fit is not None:
            rows["selection"] = (
                f"{origin.ar_method}, up to order {origin.ar_max_order}; orders lowered: "
                f"{len(self.inflow.fit.reductions)}; without autoregression: {origin.white_noise_fallbacks}"
            )
        if self.correlation is not None:
            names = list(self.correlation.profiles)
            more = f" and {len(names) - 4} more" if len(names) > 4 else ""
            rows["profiles"] = ", ".join(names[:4]) + more
        span = str(few) if few == many else f"{few} to {many}"
        rows["opening tree"] = (
            f"openings a node: {span}, nodes: {len(openings)}, entities: {self.tree.noise.shape[1]}; "
            f"{', '.join(methods)}, seed {self.tree.seed}"
        )
        noise = self.tree.noise[~np.isnan(self.tree.noise)]
        if noise.size:
            rows["noise"] = (
                f"mean {noise.mean():.4f}, standard deviation {noise.std():.4f}, "
                f"from {noise.min():.3f} to {noise.max():.3f}"
            )
        return rows

    def as_dict(self) -> dict[str, Any]:
        """Return the report as plain data, without the openings themselves."""
        names = {hydro.id: hydro.name for hydro in self.case.hydros}
        sample = self.quality.generated
        parts = ("orders", "coefficients", "annual", "fit", "reductions", "quality", "spatial_correlation")
        return {
            "case": str(self.case.path),
            "provenance": asdict(self.provenance),
            "order_counts": {str(order): number for order, number in self.order_counts().items()},
            "hydros": [{"hydro_id": number, "name": name} for number, name in names.items()],
            "lags": list(self.inflow.lags.names),
            **{name: self.tables[name].to_pylist() for name in parts},
            "sample": {"kind": sample.kind, "size": sample.size},
            "correlation_profiles": [] if self.correlation is None else list(self.correlation.profiles),
            "opening_tree": {
                "seed": self.tree.seed,
                "dimension": self.tree.noise.shape[1],
                "nodes": [asdict(item) for item in self.opening_summary],
            },
        }

    def __str__(self) -> str:
        rows = self.rows()
        width = max(len(title) for title in rows)
        return "\n".join(f"{title:<{width}}  {text}" for title, text in rows.items())

    def __repr__(self) -> str:
        stages, hydros = self.inflow.base_m3s.shape
        return (
            f"StochasticReport({self.case.path.name!r}: {self.inflow.path}, {stages} stages, "
            f"{hydros} hydros, largest order {int(self.inflow.order.max(initial=0))}, "
            f"{self.tree.noise.shape[0]} openings)"
        )


_FROM: Mapping[Source, str] = {"file": "from a file", "history": "estimated from history", "none": "none"}


def stochastic_report(case: Case) -> StochasticReport:
    """Fit the inflow model of a study and draw its opening tree.

    Raises
    ------
    ValidationError
        When observations do not cover what the model starts from, or a season of the study has none.
    """
    standard = standard_model(case)
    model = assemble(case, standard)
    return StochasticReport(
        case, model, standard, study_correlation(case), build_opening_tree(case, model=model)
    )


def provenance_of(case: Case, model: InflowModel, correlation: Correlation | None) -> Provenance:
    """Return where the parts of a study's uncertainty come from."""
    scenarios, path = case.scenarios, model.path
    fitted = path in ("full_estimation", "partial_estimation")
    statistics: Source = "none"
    if path in ("full_estimation", "user_ar_history_stats"):
        statistics = "history"
    elif scenarios.has_inflow_stats:
        statistics = "file"
    coefficients: Source = "history" if fitted else "none"
    if scenarios.ar_coefficients is not None:
        coefficients = "file"
    correlated: Source = "none"
    if correlation is not None:
        correlated = "history" if scenarios.correlation is None else "file"
    fallbacks = 0
    if fitted and model.fit is not None:
        fallbacks = int((model.fit.white_noise & (model.fit.std_m3s > 0.0)).sum())
    return Provenance(
        estimation_path=path,
        seasonal_stats_source=statistics,
        ar_coefficients_source=coefficients,
        correlation_source=correlated,
        opening_tree_source="generated" if scenarios.noise_openings is None else "file",
        n_hydros=len(case.hydros),
        ar_method=case.estimation.order_selection if fitted else None,
        ar_max_order=case.estimation.max_order if fitted else None,
        white_noise_fallbacks=fallbacks,
    )


def _openings_of(report: StochasticReport, position: int) -> OpeningSummary:
    case, tree = report.case, report.tree
    node = case.graph.nodes[position]
    stage = case.stages[node.stage]
    noise = tree.noise[tree.rows(position)]
    known = noise[~np.isnan(noise)]
    method: str = stage.sampling_method
    if case.scenarios.noise_openings is not None:
        method = "file"
    elif node.scenario_id is not None and not known.size:
        method = "scenario"
    figures: list[float | None] = [None] * 4
    if known.size:
        figures = [float(known.mean()), float(known.std()), float(known.min()), float(known.max())]
    return OpeningSummary(position, stage.id, method, len(noise), *figures)
