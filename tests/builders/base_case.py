"""A small valid case as plain data, written to a directory after any change a test makes.

``write_case(path)`` writes the case as it is. Each keyword changes one file: a function edits its content
in place, ``None`` leaves the file out, text or bytes are written as they are, and any other value takes the
place of the content. JSON files are dicts; Parquet files are dicts of columns (or a pyarrow table)::

    write_case(tmp_path, hydros=lambda f: f["hydros"][0].update(downstream_id=9), load=None)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from builders.case_files import write_files
from cobre.case import check
from cobre.errors import Problem

PATHS = {
    "config": "config.json",
    "penalties": "penalties.json",
    "stages": "stages.json",
    "initial": "initial_conditions.json",
    "buses": "system/buses.json",
    "lines": "system/lines.json",
    "thermals": "system/thermals.json",
    "hydros": "system/hydros.json",
    "production": "system/hydro_production_models.json",
    "inflow": "scenarios/inflow_seasonal_stats.parquet",
    "load": "scenarios/load_seasonal_stats.parquet",
    "load_factors": "scenarios/load_factors.json",
}
COLUMN_TYPES = {
    **dict.fromkeys(("hydro_id", "bus_id", "stage_id", "constraint_id", "block_id"), pa.int32()),
    **dict.fromkeys(("bound_lower", "bound_upper"), pa.float64()),
    **dict.fromkeys(("mean_m3s", "std_m3s", "mean_mw", "std_mw"), pa.float64()),
}
SINCE = "1900-01-01"


def group(bus_id: int, max_mw: float, group_id: int = 0) -> dict[str, Any]:
    """Return a unit group with productivity 1."""
    return {
        "id": group_id,
        "name": f"G{group_id}",
        "bus_id": bus_id,
        "min_generation_mw": 0.0,
        "max_generation_mw": max_mw,
        "min_turbined_m3s": 0.0,
        "max_turbined_m3s": max_mw,
    }


def hydro(
    hydro_id: int, name: str, downstream_id: int | None, groups: list[dict[str, Any]]
) -> dict[str, Any]:
    """Return a plant of 100 m3/s and 100 MW with a reservoir of 200 hm3."""
    return {
        "id": hydro_id,
        "name": name,
        "operational_start_date": SINCE,
        "downstream_id": downstream_id,
        "reservoir": {"min_storage_hm3": 10.0, "max_storage_hm3": 200.0},
        "outflow": {"min_outflow_m3s": 0.0, "max_outflow_m3s": None},
        "generation": {
            "model": "constant_productivity",
            "min_turbined_m3s": 0.0,
            "max_turbined_m3s": 100.0,
            "min_generation_mw": 0.0,
            "max_generation_mw": 100.0,
        },
        "unit_groups": groups,
    }


def base_files() -> dict[str, Any]:
    """Return a fresh copy of the case: 3 stages, 2 buses, 1 line, 2 thermals, 2 hydros in cascade.

    Loading it gives no warning.
    """
    stages = [
        ("2024-01-01", "2024-02-01", 744),
        ("2024-02-01", "2024-03-01", 696),
        ("2024-03-01", "2024-04-01", 744),
    ]
    return {
        "config": {
            "training": {
                "tree_seed": 7,
                "selection": {"method": "sampled", "forward_passes": 2},
                "stopping_rules": [{"type": "iteration_limit", "limit": 10}],
            },
            "modeling": {"inflow_non_negativity": {"method": "none"}},
        },
        "penalties": {
            "bus": {
                "deficit_segments": [{"depth_mw": 5.0, "cost": 1000.0}, {"depth_mw": None, "cost": 5000.0}],
                "excess_cost": 0.5,
            },
            "line": {"exchange_cost": 0.25},
            "hydro": {
                "spillage_cost": 0.01,
                "diversion_cost": 0.1,
                "turbined_cost": 0.0,
                "storage_violation_below_cost": 900.0,
                "filling_target_violation_cost": 901.0,
                "turbined_violation_below_cost": 902.0,
                "outflow_violation_below_cost": 903.0,
                "outflow_violation_above_cost": 904.0,
                "generation_violation_below_cost": 905.0,
                "evaporation_violation_cost": 906.0,
                "water_withdrawal_violation_cost": 907.0,
            },
            "non_controllable_source": {"curtailment_cost": 0.005},
        },
        "stages": {
            "policy_graph": {"type": "finite_horizon", "annual_discount_rate": 0.12},
            "stages": [
                {
                    "id": index,
                    "start_date": start,
                    "end_date": end,
                    "blocks": [
                        {"id": 0, "name": "PEAK", "hours": 100},
                        {"id": 1, "name": "BASE", "hours": hours - 100.0},
                    ],
                    "num_openings": 1 if index == 0 else 4,
                }
                for index, (start, end, hours) in enumerate(stages)
            ],
        },
        "initial": {
            "storage": [{"hydro_id": 1, "value_hm3": 50.0}, {"hydro_id": 4, "value_hm3": 60.0}],
            "filling_storage": [],
        },
        "buses": {
            "buses": [
                {"id": 0, "name": "SOUTH", "operational_start_date": SINCE},
                {
                    "id": 3,
                    "name": "NORTH",
                    "operational_start_date": SINCE,
                    "deficit_segments": [{"depth_mw": None, "cost": 3000.0}],
                },
            ]
        },
        "lines": {
            "lines": [
                {
                    "id": 0,
                    "name": "LINK",
                    "operational_start_date": SINCE,
                    "source_bus_id": 0,
                    "target_bus_id": 3,
                    "capacity": {"direct_mw": 30.0, "reverse_mw": 20.0},
                }
            ]
        },
        "thermals": {
            "thermals": [
                {
                    "id": index,
                    "name": f"T{index}",
                    "operational_start_date": SINCE,
                    "bus_id": bus,
                    "cost_per_mwh": 50.0 + index,
                    "generation": {"min_mw": 1.0, "max_mw": 40.0},
                }
                for index, bus in ((0, 0), (2, 3))
            ]
        },
        "hydros": {
            "hydros": [
                hydro(1, "UPPER", 4, [group(0, 100.0)]),
                hydro(4, "LOWER", None, [group(0, 60.0), group(3, 40.0, 1)]),
            ]
        },
        "production": {
            "production_models": [
                {
                    "hydro_id": number,
                    "selection_mode": "stage_ranges",
                    "stage_ranges": [
                        {
                            "start_stage_id": 0,
                            "end_stage_id": None,
                            "model": "constant_productivity",
                            "productivity_mw_per_m3s": 1.0 + 0.1 * number,
                        }
                    ],
                }
                for number in (1, 4)
            ]
        },
        "inflow": {
            "hydro_id": [1, 1, 1, 4, 4, 4],
            "stage_id": [0, 1, 2, 0, 1, 2],
            "mean_m3s": [40.0, 41.0, 42.0, 10.0, 11.0, 12.0],
            "std_m3s": [4.0, 4.1, 4.2, 1.0, 1.1, 1.2],
        },
        "load": {
            "bus_id": [0, 0, 0, 3, 3, 3],
            "stage_id": [0, 1, 2, 0, 1, 2],
            "mean_mw": [70.0, 71.0, 72.0, 30.0, 31.0, 32.0],
            "std_mw": [0.0, 0.0, 0.0, 3.0, 3.1, 3.2],
        },
        "load_factors": {
            "load_factors": [
                {"bus_id": 3, "stage_id": 1, "block_factors": [{"block_id": 1, "factor": 0.75}]},
            ]
        },
    }


def write_case(path: Path, extra: Mapping[str, Any] | None = None, **changes: Any) -> Path:
    """Write the base case with ``changes`` (see the module text) and return its directory.

    Parameters
    ----------
    path
        Directory to write to; created if needed.
    extra
        More files: relative path to content (dict of JSON, dict of columns for ``.parquet``, text, bytes).
    """
    files = base_files()
    unknown = sorted(set(changes) - set(files))
    if unknown:
        raise TypeError(f"write_case() has no file {unknown}; it has {sorted(files)}")
    for name, change in changes.items():
        files[name] = _apply(change, files[name])
    contents = {PATHS[name]: content for name, content in files.items()}
    path.mkdir(parents=True, exist_ok=True)
    contents |= extra or {}
    return write_files(
        path, {name: _typed(name, part) for name, part in contents.items() if part is not None}
    )


def _apply(change: Any, content: Any) -> Any:
    if not callable(change):
        return change
    change(content)
    return content


def _typed(name: str, content: Any) -> Any:
    """Columns of a Parquet file as a table; those whose type is not known here have that of their values."""
    if not name.endswith(".parquet") or not isinstance(content, dict):
        return content
    return pa.table({key: pa.array(column, COLUMN_TYPES.get(key)) for key, column in content.items()})


def errors_of(path: Path) -> list[Problem]:
    """Return the errors of a case that must have some."""
    case, errors, _ = check(path)
    assert case is None
    assert errors
    return errors


def warnings_of(path: Path) -> list[Problem]:
    """Return the warnings of a case that must load."""
    case, errors, warnings = check(path)
    assert errors == []
    assert case is not None
    assert list(case.warnings) == warnings
    return warnings


def pick(problems: Sequence[Problem], kind: str, **context: Any) -> Problem:
    """Return the one problem of this kind with this context; fail with the whole list otherwise."""
    found = [
        problem
        for problem in problems
        if problem.kind == kind and all(problem.context.get(key) == value for key, value in context.items())
    ]
    listing = "\n".join(f"{problem.kind}: {problem.message} {dict(problem.context)}" for problem in problems)
    assert len(found) == 1, f"{len(found)} problems are {kind} {context}; all problems:\n{listing}"
    return found[0]


def only(path: Path, kind: str, **context: Any) -> Problem:
    """Return the only error of a case, which must be of this kind with this context."""
    errors = errors_of(path)
    problem = pick(errors, kind, **context)
    assert len(errors) == 1, [other.message for other in errors]
    return problem


def put(place: str, value: Any):
    """Return an edit that sets a dotted place, such as ``hydros.0.reservoir.max_storage_hm3``."""
    *parents, last = [int(part) if part.isdigit() else part for part in place.split(".")]

    def edit(file: Any) -> None:
        for part in parents:
            file = file.setdefault(part, {}) if isinstance(part, str) else file[part]
        file[last] = value

    return edit


def assert_same(one: Any, other: Any) -> None:
    """Compare two models bit by bit, all but the path and the files they come from."""
    assert type(one) is type(other)
    if isinstance(one, np.ndarray):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
    elif isinstance(one, dict):
        assert one.keys() == other.keys()
        for key, value in one.items():
            assert_same(value, other[key])
    elif isinstance(one, tuple):
        for left, right in zip(one, other, strict=True):
            assert_same(left, right)
    elif dataclasses.is_dataclass(one):
        for field in dataclasses.fields(one):
            if field.name not in ("path", "documents", "config"):
                assert_same(getattr(one, field.name), getattr(other, field.name))
    else:
        assert one == other
