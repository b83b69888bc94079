"""Service windows, filling, and the checks of the optional registries and parts of ``system/``."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders.base_case import PATHS, errors_of, only, pick, warnings_of, write_case
from builders.base_case_extras import CONTRACTS, NCS, NCS_FACTORS, PUMPING, bounds, registries

from cobre.case import load
from cobre.case.format.schema import system as schema
from cobre.case.format.schema.penalties import PenaltiesFile
from cobre.case.model import Diversion, Filling, HydroStatus
from cobre.units import HM3_PER_M3S_HOUR

OPERATING, OUT, FILLING = HydroStatus


def edit_entry(key: str, position: int, **values: Any) -> Any:
    return lambda file: file[key][position].update(values)


@pytest.mark.parametrize(
    ("entry", "leave", "served"),
    [
        (None, None, [1, 1, 1]),
        (1, None, [0, 1, 1]),
        (None, 1, [1, 0, 0]),
        (1, 2, [0, 1, 0]),
        (-3, 0, [0, 0, 0]),
        (0, 99, [1, 1, 1]),
    ],
)
def test_out_of_service_means_no_limits(
    tmp_path: Path, entry: int | None, leave: int | None, served: list[int]
) -> None:
    window = {"entry_stage_id": entry, "exit_stage_id": leave}
    case = load(
        write_case(
            tmp_path,
            thermals=edit_entry("thermals", 0, **window),
            lines=edit_entry("lines", 0, **window),
            hydros=edit_entry("hydros", 0, **window),
        )
    )
    inside = np.array(served, np.bool_)
    assert [data.thermal_max_mw[0, 0] for data in case.stage_data] == np.where(inside, 40.0, 0.0).tolist()
    assert [data.thermal_min_mw[0, 1] for data in case.stage_data] == np.where(inside, 1.0, 0.0).tolist()
    assert [data.line_reverse_mw[0, 0] for data in case.stage_data] == np.where(inside, 20.0, 0.0).tolist()
    assert [data.hydro_status[0] for data in case.stage_data] == np.where(inside, OPERATING, OUT).tolist()
    assert all(data.turbined_max_m3s[0, 0] == 100.0 for data in case.stage_data)
    unused = [problem for problem in case.warnings if problem.kind == "UnusedEntity"]
    assert len(unused) == (0 if inside.any() else 3)


@pytest.mark.parametrize(("entry", "leave"), [(1, 1), (2, 1)])
def test_window_ends_before_it_starts(tmp_path: Path, entry: int, leave: int) -> None:
    path = write_case(tmp_path, lines=edit_entry("lines", 0, entry_stage_id=entry, exit_stage_id=leave))
    only(path, "BusinessRuleViolation", rule="5a.6", entity="line 0 (LINK)", value=entry)


def filled(**changes: Any) -> dict[str, Any]:
    """Return the edits of a case whose first plant is filled from stage 0 and enters service at stage 2."""
    values = {"filling": {"start_stage_id": 0}, "entry_stage_id": 2, **changes}
    initial = {
        "storage": [{"hydro_id": 4, "value_hm3": 60.0}],
        "filling_storage": [{"hydro_id": 1, "value_hm3": 2.0}],
    }
    return {"hydros": edit_entry("hydros", 0, **values), "initial": initial}


def test_filling(tmp_path: Path) -> None:
    case = load(write_case(tmp_path, **filled()))
    assert case.hydros[0].filling == Filling(0)
    assert case.hydros[0].initial_storage_hm3 == 2.0
    assert [data.hydro_status.tolist() for data in case.stage_data] == [
        [FILLING, OPERATING],
        [FILLING, OPERATING],
        [OPERATING, OPERATING],
    ]
    assert case.warnings == ()


def test_filling_starts_inside_the_study(tmp_path: Path) -> None:
    case = load(write_case(tmp_path, **filled(filling={"start_stage_id": 1, "filling_min_rate_m3s": 4.0})))
    assert case.hydros[0].filling == Filling(1)
    assert [data.hydro_status[0] for data in case.stage_data] == [OUT, FILLING, OPERATING]
    assert [data.filling_min_rate_m3s.tolist() for data in case.stage_data] == [[4.0, 0.0]] * 3


def test_rate_of_filling_by_stage(tmp_path: Path) -> None:
    rows = {"hydro_id": [1], "stage_id": [1], "filling_min_rate_m3s": [6.0]}
    case = load(write_case(tmp_path, **filled(), extra={bounds("hydro"): rows}))
    assert [data.filling_min_rate_m3s[0] for data in case.stage_data] == [0.0, 6.0, 0.0]


@pytest.mark.parametrize(
    ("changes", "field", "rule"),
    [
        ({"entry_stage_id": None}, "entry_stage_id", "5a.7"),
        ({"entry_stage_id": 0}, "filling.start_stage_id", "5a.7"),
        ({"exit_stage_id": 3}, "exit_stage_id", "5a.7a"),
    ],
)
def test_faulty_filling(tmp_path: Path, changes: dict, field: str, rule: str) -> None:
    path = write_case(tmp_path, **filled(**changes))
    only(path, "BusinessRuleViolation", entity="hydro 1 (UPPER)", field=field, rule=rule)


def test_filling_must_reach_the_dead_volume(tmp_path: Path) -> None:
    hours = 744 + 696
    enough = (10.0 - 2.0) / (hours * HM3_PER_M3S_HOUR)

    def write(name: str, rate: float) -> Path:
        filling = {"start_stage_id": 0, "filling_min_rate_m3s": rate}
        return write_case(tmp_path / name, **filled(filling=filling))

    assert warnings_of(write("a", enough * 1.001)) == []
    only(write("b", enough * 0.999), "BusinessRuleViolation", rule="5b.33", entity="hydro 1 (UPPER)")


@pytest.mark.parametrize(
    ("storage", "filling", "field"),
    [
        ({4: 60.0}, {1: 10.0}, "filling_storage.value_hm3"),
        ({4: 60.0, 1: 5.0}, {}, "storage.value_hm3"),
        ({}, {1: 2.0, 4: 2.0}, "filling_storage.value_hm3"),
    ],
)
def test_initial_storage_of_filling(
    tmp_path: Path, storage: dict[int, float], filling: dict[int, float], field: str
) -> None:
    def entries(values: dict[int, float]) -> list[dict]:
        return [{"hydro_id": number, "value_hm3": value} for number, value in values.items()]

    changes = {**filled(), "initial": {"storage": entries(storage), "filling_storage": entries(filling)}}
    only(write_case(tmp_path, **changes), "BusinessRuleViolation", rule="5a.7b", field=field)


def test_parts_of_hydro_plants(tmp_path: Path) -> None:
    values = {
        "travel_time_hours": 36,
        "diversion": {"downstream_id": 4, "max_flow_m3s": 12},
        "specific_productivity_mw_per_m3s_per_m": 0.0089,
        "tailrace": {"type": "piecewise", "points": [{"outflow_m3s": 0, "height_m": 1}]},
        "hydraulic_losses": {"type": "factor", "value": 0.02},
        "efficiency": {"type": "constant", "value": 0.92},
    }
    rows = {
        "hydro_id": [1, 1],
        "stage_id": [1, 2],
        "block_id": [0, None],
        "min_diversion_m3s": [1.0, None],
        "max_diversion_m3s": [6.0, 15.0],
    }
    release = {"hydro_id": 1, "start_date": "2023-12-01", "end_date": "2024-01-01", "value_m3s": 5.0}
    path = write_case(
        tmp_path,
        initial=lambda f: f.update(past_defluences=[release]),
        hydros=edit_entry("hydros", 0, **values),
        lines=edit_entry("lines", 0, losses_percent=2.5),
        extra={bounds("hydro"): rows},
    )
    case = load(path)
    plant = case.hydros[0]
    assert plant.travel_time_hours == 36.0
    assert plant.diversion == Diversion(4)
    assert plant.specific_productivity_mw_per_m3s_per_m == 0.0089
    assert case.lines[0].loss == 0.025
    assert [data.diversion_max_m3s[0].tolist() for data in case.stage_data] == [[12, 12], [6, 12], [15, 15]]
    assert case.stage_data[1].diversion_min_m3s.tolist() == [[1, 0], [0, 0]]
    assert case.stage_data[1].diversion_max_m3s[1].tolist() == [0, 0]


@pytest.mark.parametrize(
    ("values", "kind", "field"),
    [
        (
            {"diversion": {"downstream_id": 9, "max_flow_m3s": 1}},
            "InvalidReference",
            "diversion.downstream_id",
        ),
        ({"diversion": {"downstream_id": 1, "max_flow_m3s": 1}}, "CycleDetected", "diversion.downstream_id"),
        ({"travel_time_hours": 5, "downstream_id": None}, "BusinessRuleViolation", "travel_time_hours"),
        ({"efficiency": {"type": "constant", "value": 1.5}}, "InvalidValue", "efficiency.value"),
        ({"efficiency": {"type": "curve", "value": 0.9}}, "InvalidValue", "efficiency.type"),
        ({"tailrace": {"type": "polynomial"}}, "SchemaViolation", "tailrace.coefficients"),
        ({"tailrace": {"coefficients": [1.0]}}, "SchemaViolation", "tailrace.type"),
        ({"tailrace": {"type": "spline", "points": []}}, "InvalidValue", "tailrace.type"),
        (
            {"hydraulic_losses": {"type": "factor", "value_m": 1.0}},
            "SchemaViolation",
            "hydraulic_losses.value",
        ),
        ({"evaporation": {"coefficients_mm": [1.0] * 11}}, "InvalidValue", "evaporation.coefficients_mm"),
        ({"evaporation": {"coefficients_mm": [1.0] * 13}}, "InvalidValue", "evaporation.coefficients_mm"),
        (
            {
                "tailrace": {
                    "type": "piecewise",
                    "points": [{"outflow_m3s": 5, "height_m": 1}, {"outflow_m3s": 5, "height_m": 2}],
                }
            },
            "InvalidValue",
            "tailrace.points[1].outflow_m3s",
        ),
    ],
)
def test_faulty_parts_of_hydro_plants(tmp_path: Path, values: dict, kind: str, field: str) -> None:
    errors = errors_of(write_case(tmp_path, hydros=edit_entry("hydros", 0, **values)))
    pick(errors, kind, file=PATHS["hydros"], entity="hydro 1 (UPPER)", field=field)


@pytest.mark.parametrize("value", [-1, 100.5])
def test_losses_are_a_percentage(tmp_path: Path, value: float) -> None:
    path = write_case(tmp_path, lines=edit_entry("lines", 0, losses_percent=value))
    only(path, "InvalidValue", entity="line 0 (LINK)", field="losses_percent", value=value)


@pytest.mark.parametrize(
    "config", [{}, {"lead_stages": 1, "lead_time_hours": 5.0}, {"lead_stages": None, "lead_time_hours": None}]
)
def test_anticipated_config_has_one_lead(tmp_path: Path, config: dict) -> None:
    path = write_case(tmp_path, thermals=edit_entry("thermals", 0, anticipated_config=config))
    problem = only(path, "InvalidValue", entity="thermal 0 (T0)", field="anticipated_config")
    assert "exactly one" in problem.message


@pytest.mark.parametrize(
    ("path", "key", "values", "kind", "context"),
    [
        (NCS, "non_controllable_sources", {"bus_id": 9}, "InvalidReference", {"field": "bus_id", "value": 9}),
        (NCS, "non_controllable_sources", {"max_generation_mw": -1}, "InvalidValue", {}),
        (NCS, "non_controllable_sources", {"id": 2}, "DuplicateId", {"value": 2}),
        (
            PUMPING,
            "pumping_stations",
            {"source_hydro_id": 9},
            "InvalidReference",
            {"field": "source_hydro_id"},
        ),
        (PUMPING, "pumping_stations", {"source_hydro_id": 1}, "BusinessRuleViolation", {"rule": "5a.19"}),
        (
            PUMPING,
            "pumping_stations",
            {"flow": {"min_m3s": 5, "max_m3s": 4}},
            "InvalidValue",
            {"entity": "pumping station 1 (LIFT)", "field": "flow.min_m3s"},
        ),
        (CONTRACTS, "contracts", {"bus_id": 9}, "InvalidReference", {"entity": "contract 0 (IMPORT)"}),
        (CONTRACTS, "contracts", {"type": "swap"}, "InvalidValue", {"field": "type", "value": "swap"}),
        (
            CONTRACTS,
            "contracts",
            {"limits": {"min_mw": 6, "max_mw": 5}},
            "InvalidValue",
            {"field": "limits.min_mw"},
        ),
        (NCS_FACTORS, "non_controllable_factors", {"ncs_id": 9}, "InvalidReference", {"field": "ncs_id"}),
        (
            NCS_FACTORS,
            "non_controllable_factors",
            {"stage_id": 9},
            "InvalidReference",
            {"rule": "referential.8", "value": 9},
        ),
        (
            NCS_FACTORS,
            "non_controllable_factors",
            {"block_factors": [{"block_id": 4, "factor": 1.0}]},
            "InvalidReference",
            {"field": "block_factors[0].block_id", "value": 4},
        ),
    ],
)
def test_faulty_registries(
    tmp_path: Path, path: str, key: str, values: dict, kind: str, context: dict
) -> None:
    extra = registries()
    extra[path][key][0].update(values)
    if path == NCS and "id" in values:
        extra.pop(NCS_FACTORS)
    only(write_case(tmp_path, extra=extra), kind, file=path, **context)


def test_two_entries_of_factors(tmp_path: Path) -> None:
    extra = registries()
    extra[NCS_FACTORS]["non_controllable_factors"] *= 2
    only(write_case(tmp_path, extra=extra), "DuplicateId", file=NCS_FACTORS, value=2)


def test_a_dangling_id_is_found_in_an_entry_with_other_faults(tmp_path: Path) -> None:
    extra = registries()
    extra[PUMPING]["pumping_stations"][0].update(bus_id=99, source_hydro_id=88, unknown=1)
    errors = errors_of(write_case(tmp_path, extra=extra))
    pick(errors, "InvalidReference", file=PUMPING, field="bus_id", value=99)
    pick(errors, "InvalidReference", file=PUMPING, field="source_hydro_id", value=88)
    pick(errors, "SchemaViolation", file=PUMPING, field="unknown")
    assert len(errors) == 3


@pytest.mark.parametrize(
    "model", [getattr(schema, name) for name in dir(schema) if name.endswith("File")] + [PenaltiesFile]
)
def test_every_field_is_described(model: Any) -> None:
    """The JSON Schemas of the files carry a description of every key."""
    exported = model.model_json_schema()
    for name, entry in {"file": exported, **exported["$defs"]}.items():
        assert entry["description"], name
        for key, field in entry["properties"].items():
            assert "description" in field or key == "$schema", f"{name}.{key}"
