"""Every value of every JSON file, spoilt in turn: problems, never another exception."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from builders.base_case import PATHS, base_files, write_case
from builders.base_case_extras import registries, tables

from cobre.case import check
from cobre.case.format.schema.config import ConfigFile
from cobre.errors import Problem

JSON_NAMES = [name for name, path in PATHS.items() if path.endswith(".json")]
KINDS = {
    "FileNotFound",
    "ParseError",
    "SchemaViolation",
    "InvalidReference",
    "DuplicateId",
    "InvalidValue",
    "CycleDetected",
    "DimensionMismatch",
    "BusinessRuleViolation",
    "NotImplemented",
    "BoundaryReconciliationError",
    "IncompatibleSettings",
}
WARNING_KINDS = {"UnusedEntity", "ModelQuality", "SemanticAmbiguity"}
VALUES = [None, float("nan"), float("inf"), -1, 0, 10**30, 1e308, True, "text", [], {}, [None], {"x": 1}]


def places(value: Any, here: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield the place of every value inside a document; of a list, its first entry stands for all."""
    inside = (
        value.items() if isinstance(value, dict) else enumerate(value[:1]) if isinstance(value, list) else ()
    )
    for key, item in inside:
        yield (*here, key)
        yield from places(item, (*here, key))


def mutants(document: Any) -> Iterator[Any]:
    """Yield copies of a document: each value deleted, replaced, and each object with one more key."""
    for place in places(document):
        for action in ("delete", "add", *range(len(VALUES))):
            changed = copy.deepcopy(document)
            holder = changed
            for part in place[:-1]:
                holder = holder[part]
            if action == "delete":
                del holder[place[-1]]
            elif action == "add":
                if not isinstance(holder, dict):
                    continue
                holder["unknown key"] = 1
            else:
                holder[place[-1]] = copy.deepcopy(VALUES[int(action)])
            yield changed


def full_files() -> dict[str, Any]:
    """Return the base case with as many optional keys as can be given."""
    files = base_files()
    config = files["config"]
    config["training"].update(
        cut_selection={"row_activity_tolerance": 0.0, "selection": None},
        parallelism={"backward_scheduler": {"method": "by_scenario"}},
        scenario_source={"seed": 1, "inflow": {"scheme": "in_sample"}, "openings": {"source": "generated"}},
        solver={"retry_max_attempts": 5, "forward": {"presolve": None}},
    )
    config["simulation"] = {"selection": {"method": "sampled", "num_scenarios": 3}, "scenario_source": {}}
    config["simulation"]["scenario_source"].update(
        inflow={"scheme": "historical"}, historical_years={"from": 1, "to": 2}
    )
    config["policy"] = {"mode": "fresh", "checkpointing": {"enabled": False}}
    files["stages"]["policy_graph"]["transitions"] = [
        {"source_id": n, "target_id": n + 1, "probability": 1, "annual_discount_rate_override": None}
        for n in (0, 1)
    ]
    files["stages"]["stages"][0].update(risk_measure="expectation", state_variables={"storage": True})
    # One entity of each kind is enough here.
    files["stages"]["stages"][1]["blocks"].pop()
    files["load_factors"]["load_factors"][0]["block_factors"][0]["block_id"] = 0
    files["hydros"]["hydros"][0].update(
        penalties={"spillage_cost": 0.5},
        travel_time_hours=0,
        exit_stage_id=None,
        tailrace={"type": "piecewise", "points": [{"outflow_m3s": 0.0, "height_m": 1.0}]},
        hydraulic_losses={"type": "constant", "value_m": 0.5},
        efficiency={"type": "constant", "value": 0.9},
        diversion={"downstream_id": 4, "max_flow_m3s": 5.0},
        filling={"start_stage_id": 0, "filling_min_rate_m3s": 4.0},
        entry_stage_id=2,
        specific_productivity_mw_per_m3s_per_m=0.009,
    )
    files["initial"].update(
        storage=[{"hydro_id": 4, "value_hm3": 60.0}], filling_storage=[{"hydro_id": 1, "value_hm3": 2.0}]
    )
    files["lines"]["lines"][0].update(losses_percent=2.5, entry_stage_id=0)
    return files


def assert_problems(errors: list[Problem], warnings: list[Problem]) -> None:
    for problem in [*errors, *warnings]:
        assert problem.kind in (KINDS if problem in errors else WARNING_KINDS)
        assert problem.message.endswith(".")
        assert problem.context["file"]
        json.dumps(problem.as_dict(), allow_nan=False)


@pytest.mark.parametrize("name", JSON_NAMES)
def test_mutations_give_problems_only(tmp_path: Path, name: str) -> None:
    files = full_files()
    path = write_case(tmp_path, **{key: files[key] for key in JSON_NAMES})
    assert check(path)[1] == []
    refused = total = 0
    for changed in mutants(files[name]):
        (path / PATHS[name]).write_text(json.dumps(changed))
        case, errors, warnings = check(path)
        total += 1
        refused += bool(errors)
        assert (case is None) == bool(errors), changed
        assert_problems(errors, warnings)
    assert refused > total // 2


@pytest.mark.parametrize("name", sorted(registries()))
def test_mutations_of_optional_registries(tmp_path: Path, name: str) -> None:
    extra = registries()
    path = write_case(tmp_path, extra=extra)
    assert check(path)[1] == []
    for changed in mutants(extra[name]):
        (path / name).write_text(json.dumps(changed))
        case, errors, warnings = check(path)
        assert (case is None) == bool(errors), changed
        assert_problems(errors, warnings)


CELLS = [None, float("nan"), float("inf"), -1, 0, 3, 10**9, 1e308, -1e308]


@pytest.mark.parametrize("name", sorted(tables()))
def test_mutations_of_bounds(tmp_path: Path, name: str) -> None:
    """Each column dropped, renamed, of another type, and its first cell replaced."""
    extra = {**registries(), **tables()}
    path = write_case(tmp_path, extra=extra)
    assert check(path)[1] == []
    table = extra[name]
    for column, cells in table.items():
        rest = {key: other for key, other in table.items() if key != column}
        changes = [rest, {**rest, f"{column}_": cells}]
        changes += [{**rest, column: [value] * len(cells)} for value in ("x", True, None)]
        for value in CELLS:
            changed = [value, *cells[1:]]
            if isinstance(value, float):
                changed = [None if cell is None else float(cell) for cell in changed]
            changes.append({**table, column: changed})
        for changed_table in changes:
            write_case(path, extra={name: pa.table(changed_table)})
            case, errors, warnings = check(path)
            assert (case is None) == bool(errors), changed_table
            assert_problems(errors, warnings)


def test_every_section_of_config_is_known() -> None:
    sections = set(ConfigFile.model_fields) - {"json_schema"}
    assert sections == {
        "training",
        "simulation",
        "modeling",
        "policy",
        "exports",
        "estimation",
        "upper_bound_evaluation",
    }
