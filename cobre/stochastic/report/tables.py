"""The uncertainty of a study as ``pyarrow`` tables: for analysis, and in the form of the case's own files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cobre.case.model import Case
from cobre.stochastic.external import follows_external
from cobre.stochastic.report.document import StochasticReport

FloatArray = NDArray[np.float64]

_CLASSES = ("random", "constant", "saturated")


def report_tables(report: StochasticReport) -> dict[str, pa.Table]:
    """Return the tables of a report, by name.

    ``inflow_model`` (by stage and hydro: mean, deviation, base, sigma, order), ``orders``, ``coefficients``,
    ``annual``, ``fit`` and ``reductions`` (what estimation found, by season), ``quality`` and
    ``spatial_correlation`` (observed, stated and generated moments), ``openings`` (noise), ``opening_tree``
    (its moments). What does not apply is null; tables without content have no rows.
    """
    return {
        "inflow_model": _inflow_model(report),
        "orders": _orders(report),
        "coefficients": _coefficients(report),
        "annual": annual_table(report),
        "fit": _fit(report),
        "reductions": _reductions(report),
        "quality": _quality(report),
        "spatial_correlation": _spatial(report),
        "openings": openings_table(report),
        "opening_tree": pa.Table.from_pylist(
            [vars(item) for item in report.opening_summary],
            schema=pa.schema(
                [
                    ("node", pa.int32()),
                    ("stage_id", pa.int32()),
                    ("method", pa.string()),
                    ("openings", pa.int32()),
                    *((f"noise_{name}", pa.float64()) for name in ("mean", "std", "min", "max")),
                ]
            ),
        ),
    }


def statistics_table(report: StochasticReport) -> pa.Table:
    """Return mean and deviation by hydro and stage, those before the study included, as the case format has
    them.
    """  # noqa: D205
    case, model, earlier = report.case, report.inflow, report.standard.earlier
    hydros, stages = _grid(_hydro_ids(case), _stage_ids(case))
    mean, std = model.mean_m3s.T.ravel(), model.std_m3s.T.ravel()
    if earlier:
        before_mean, before_std = (
            np.array([getattr(item, name) for item in earlier]) for name in ("mean", "std")
        )
        known = ~np.isnan(before_mean)
        at = np.argwhere(known)
        ids = np.array([item.stage_id for item in earlier], np.int64)
        stages = np.concatenate([ids[at[:, 0]], stages])
        hydros = np.concatenate([np.array(_hydro_ids(case), np.int64)[at[:, 1]], hydros])
        mean = np.concatenate([before_mean[known], mean])
        std = np.concatenate([before_std[known], std])
    return _table({"hydro_id": hydros, "stage_id": stages}, {"mean_m3s": mean, "std_m3s": std})


def coefficients_table(report: StochasticReport) -> pa.Table:
    """Return the autoregressive coefficients other than 0, as the case format has them."""
    case, earlier = report.case, report.standard.earlier
    phi = np.concatenate([*(item.phi[np.newaxis] for item in earlier), report.standard.phi])
    at = np.argwhere(phi.transpose(1, 0, 2) != 0.0)
    ids = np.array(_hydro_ids(case), np.int64)
    stages = np.array([*(item.stage_id for item in earlier), *_stage_ids(case)], np.int64)
    keys = {"hydro_id": ids[at[:, 0]], "stage_id": stages[at[:, 1]], "lag": at[:, 2] + 1}
    return _table(keys, {"coefficient": phi[at[:, 1], at[:, 0], at[:, 2]]})


def annual_table(report: StochasticReport) -> pa.Table:
    """Return the annual component, as the case format has it; no rows without one."""
    case, shape = report.case, report.inflow.mean_m3s.shape
    coefficient, mean, std = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    given, fit, earlier = case.scenarios.annual, report.inflow.fit, report.standard.earlier
    if report.provenance.ar_coefficients_source == "file" and given is not None:
        coefficient, mean, std = given.coefficient, given.mean_m3s, given.std_m3s
    elif report.provenance.ar_coefficients_source == "history" and fit is not None:
        place = {season: at for at, season in enumerate(fit.season_ids.tolist())}
        for position, stage in enumerate(case.stages):
            if stage.season_id in place:
                at = place[stage.season_id]
                coefficient[position] = fit.annual_coefficient[at]
                mean[position], std[position] = fit.annual_mean_m3s[at], fit.annual_std_m3s[at]
    coefficient, mean, std = (
        np.concatenate([*(getattr(item, name)[np.newaxis] for item in earlier), values])
        for name, values in (
            ("annual_coefficient", coefficient),
            ("annual_mean", mean),
            ("annual_std", std),
        )
    )
    there = (coefficient != 0.0) & (std > 0.0)
    found = np.argwhere(there.T)
    ids = np.array(_hydro_ids(case), np.int64)
    stages = np.array([*(item.stage_id for item in earlier), *_stage_ids(case)], np.int64)
    return _table(
        {"hydro_id": ids[found[:, 0]], "stage_id": stages[found[:, 1]]},
        {
            "annual_coefficient": coefficient.T[there.T],
            "annual_mean_m3s": mean.T[there.T],
            "annual_std_m3s": std.T[there.T],
        },
    )


def load_table(report: StochasticReport) -> pa.Table:
    """Return mean and deviation of load by bus and stage, as the case format has them."""
    case = report.case
    buses, stages = _grid([bus.id for bus in case.buses], _stage_ids(case))
    mean, std = case.scenarios.load_mean_mw, case.scenarios.load_std_mw
    return _table({"bus_id": buses, "stage_id": stages}, {"mean_mw": mean.T.ravel(), "std_mw": std.T.ravel()})


def openings_table(report: StochasticReport) -> pa.Table:
    """Return the noise by stage, opening and entity, as the case format has it.

    Values that a node's own scenario gives are null, and stages without any noise left out.
    """
    stages, opening, entity, value = [], [], [], []
    for position, stage in enumerate(report.case.stages):
        noise = report.openings(position)
        if not noise.size or np.isnan(noise).all():
            continue
        count, dimension = noise.shape
        stages.append(np.full(noise.size, stage.id))
        opening.append(np.repeat(np.arange(count), dimension))
        entity.append(np.tile(np.arange(dimension), count))
        value.append(noise.ravel())
    empty = np.zeros(0)
    values = np.concatenate([*value, empty])
    columns = {
        name: pa.array(np.concatenate([*parts, empty]).astype(np.int32))
        for name, parts in (("stage_id", stages), ("opening_index", opening), ("entity_index", entity))
    }
    return pa.table({**columns, "value": pa.array(values, mask=np.isnan(values))})


def why_openings_stay(report: StochasticReport) -> str | None:
    """Return why a file of openings cannot represent this tree; ``None`` where it can."""
    case = report.case
    if follows_external(case):
        return "openings follow external scenarios, which a file of openings cannot represent"
    fewer = [
        stage.id
        for position, stage in enumerate(case.stages)
        if len(report.openings(position)) != stage.num_openings
    ]
    if fewer:
        return f"stage {fewer[0]} has other openings than its num_openings states"
    return None


def _inflow_model(report: StochasticReport) -> pa.Table:
    model = report.inflow
    hydros, stages = _grid(_hydro_ids(report.case), _stage_ids(report.case))
    return _table(
        {"hydro_id": hydros, "stage_id": stages, "order": model.order.T.ravel()},
        {
            "mean_m3s": model.mean_m3s.T.ravel(),
            "std_m3s": model.std_m3s.T.ravel(),
            "base_m3s": model.base_m3s.T.ravel(),
            "sigma_m3s": model.sigma_m3s.T.ravel(),
        },
    )


def _orders(report: StochasticReport) -> pa.Table:
    case = report.case
    hydros, stages = _grid(_hydro_ids(case), _stage_ids(case))
    season = [-1 if stage.season_id is None else stage.season_id for stage in case.stages]
    seasons = np.tile(np.array(season, np.int64), len(case.hydros))
    return pa.table(
        {
            "hydro_id": _ints(hydros),
            "stage_id": _ints(stages),
            "season_id": _ids_or_null(seasons),
            "order": _ints(report.inflow.order.T.ravel()),
        }
    )


def _coefficients(report: StochasticReport) -> pa.Table:
    """Return coefficients by season where they are estimated, else by stage."""
    fit, case = report.inflow.fit, report.case
    if report.provenance.ar_coefficients_source != "history" or fit is None:
        given = coefficients_table(report)
        season = {stage.id: stage.season_id for stage in case.stages}
        season |= {item.stage_id: item.period.season_id for item in report.standard.earlier}
        seasons = pa.array([season[number] for number in given["stage_id"].to_pylist()], pa.int32())
        return given.add_column(1, "season_id", seasons)
    at = np.argwhere(fit.coefficients.transpose(1, 0, 2) != 0.0)
    ids = np.array(_hydro_ids(case), np.int64)
    found = _table(
        {"hydro_id": ids[at[:, 0]], "season_id": fit.season_ids[at[:, 1]], "lag": at[:, 2] + 1},
        {"coefficient": fit.coefficients[at[:, 1], at[:, 0], at[:, 2]]},
    )
    return found.add_column(2, "stage_id", pa.nulls(len(found), pa.int32()))


def _fit(report: StochasticReport) -> pa.Table:
    fit = report.inflow.fit
    ids = _hydro_ids(report.case) if fit is not None else []
    rows: list[dict[str, Any]] = []
    estimated = report.provenance.ar_coefficients_source == "history"
    for hydro, number in enumerate(ids):
        if fit is None:
            break
        for season, season_id in enumerate(fit.season_ids.tolist()):
            cell = (season, hydro)
            rows.append(
                {
                    "hydro_id": number,
                    "season_id": season_id,
                    "observations": int(fit.count[cell]),
                    "class": _CLASSES[fit.classes[cell]],
                    "selected_order": int(fit.selected_order[cell]) if estimated else None,
                    "order": int(fit.order[cell]) if estimated else None,
                    "residual_ratio": float(fit.residual_ratio[cell]) if estimated else None,
                    "annual_coefficient": float(fit.annual_coefficient[cell]) if estimated else None,
                }
            )
    whole = ("hydro_id", "season_id", "observations")
    schema = pa.schema(
        [
            *((name, pa.int32()) for name in whole),
            ("class", pa.string()),
            ("selected_order", pa.int32()),
            ("order", pa.int32()),
            ("residual_ratio", pa.float64()),
            ("annual_coefficient", pa.float64()),
        ]
    )
    return pa.Table.from_pylist(rows, schema=schema)


def _reductions(report: StochasticReport) -> pa.Table:
    fit, ids = report.inflow.fit, _hydro_ids(report.case)
    if report.provenance.ar_coefficients_source != "history":
        fit = None
    rows = [
        {
            "hydro_id": ids[item.hydro],
            "season_id": item.season_id,
            "original_order": item.from_order,
            "reduced_order": item.to_order,
            "reason": item.reason,
            "contributions": list(item.contributions),
        }
        for item in (fit.reductions if fit is not None else ())
    ]
    schema = pa.schema(
        [
            *((name, pa.int32()) for name in ("hydro_id", "season_id", "original_order", "reduced_order")),
            ("reason", pa.string()),
            ("contributions", pa.list_(pa.float64())),
        ]
    )
    return pa.Table.from_pylist(rows, schema=schema)


def _quality(report: StochasticReport) -> pa.Table:
    quality, ids = report.quality, _hydro_ids(report.case)
    made = quality.generated
    rows = len(made.season_id)
    stage_ids = np.array([*_stage_ids(report.case), -1], np.int64)

    def flat(values: FloatArray) -> pa.Array:
        column = np.ascontiguousarray(values.T).ravel()
        return pa.array(column, mask=np.isnan(column))

    return pa.table(
        {
            "hydro_id": _ints(np.repeat(np.array(ids, np.int64), rows)),
            "season_id": _ids_or_null(np.tile(made.season_id, len(ids))),
            "stage_id": pa.array(
                np.tile(stage_ids[made.stage], len(ids)).astype(np.int32),
                mask=np.tile(made.stage < 0, len(ids)),
            ),
            "observations": _ints(quality.count.T.ravel()),
            "observed_mean_m3s": flat(quality.observed_mean_m3s),
            "stated_mean_m3s": flat(quality.stated_mean_m3s),
            "generated_mean_m3s": flat(made.mean_m3s),
            "observed_std_m3s": flat(quality.observed_std_m3s),
            "stated_std_m3s": flat(quality.stated_std_m3s),
            "generated_std_m3s": flat(made.std_m3s),
            "observed_lag1": flat(quality.observed_lag1),
            "generated_lag1": flat(made.lag1),
            "generated_negative_share": flat(made.negative),
        }
    )


def _spatial(report: StochasticReport) -> pa.Table:
    """Return the correlation of each pair of plants, by season or stage."""
    quality, ids = report.quality, np.array(_hydro_ids(report.case), np.int64)
    made = quality.generated
    first, second = np.triu_indices(len(ids), 1)
    rows, pairs = len(made.season_id), first.size
    stage_ids = np.array([*_stage_ids(report.case), -1], np.int64)
    observed = quality.observed_spatial[:, first, second].ravel()
    return pa.table(
        {
            "season_id": _ids_or_null(np.repeat(made.season_id, pairs)),
            "stage_id": pa.array(
                np.repeat(stage_ids[made.stage], pairs).astype(np.int32),
                mask=np.repeat(made.stage < 0, pairs),
            ),
            "hydro_id": _ints(np.tile(ids[first], rows)),
            "other_hydro_id": _ints(np.tile(ids[second], rows)),
            "observed": pa.array(observed, mask=np.isnan(observed)),
            "generated": pa.array(made.spatial[:, first, second].ravel()),
        }
    )


def _hydro_ids(case: Case) -> list[int]:
    return [hydro.id for hydro in case.hydros]


def _stage_ids(case: Case) -> list[int]:
    return [stage.id for stage in case.stages]


def _grid(first: Sequence[int], second: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return all pairs as two columns, the first changing slowly."""
    return (
        np.repeat(np.array(first, np.int64), len(second)),
        np.tile(np.array(second, np.int64), len(first)),
    )


def _ints(values: NDArray[np.int64]) -> pa.Array:
    return pa.array(values.astype(np.int32))


def _ids_or_null(values: NDArray[np.int64]) -> pa.Array:
    return pa.array(values.astype(np.int32), mask=values < 0)


def _table(keys: dict[str, NDArray[np.int64]], values: dict[str, FloatArray]) -> pa.Table:
    columns = {name: _ints(column) for name, column in keys.items()}
    return pa.table({**columns, **{name: pa.array(column) for name, column in values.items()}})
