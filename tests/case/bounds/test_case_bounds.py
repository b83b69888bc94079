"""Limits and costs by stage and block: what the files of ``constraints/`` turn into, and their faults."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders.base_case import errors_of, only, pick, warnings_of, write_case
from builders.base_case_extras import bounds, overrides, registries, rich_files

from cobre.case import Case, check, load


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Case:
    return load(write_case(tmp_path_factory.mktemp("rich"), extra=rich_files()))


def test_row_of_a_block_beats_row_of_the_stage_beats_the_entity(case: Case) -> None:
    one, two, three = case.stage_data
    assert one.thermal_max_mw.tolist() == [[40, 40], [40, 40]]
    assert two.thermal_max_mw.tolist() == [[30, 25], [40, 40]]
    assert two.thermal_min_mw.tolist() == [[2, 2], [1, 1]]
    assert (one.thermal_cost.tolist(), two.thermal_cost.tolist()) == ([50, 52], [60, 52])
    assert three.thermal_cost.tolist() == [50, 61]
    assert two.line_direct_mw.tolist() == [[5, 15]]
    assert two.line_reverse_mw.tolist() == [[0, 0]]
    assert three.line_direct_mw.tolist() == [[30, 30]]


def test_hydro_bounds(case: Case) -> None:
    one, two, three = case.stage_data
    assert one.turbined_min_m3s.tolist() == [[1, 1], [0, 0]]
    assert one.turbined_max_m3s.tolist() == [[90, 90], [100, 100]]
    assert three.turbined_max_m3s.tolist() == [[80, 100], [100, 100]]
    assert three.outflow_min_m3s.tolist() == [[4, 0], [0, 0]]
    assert three.outflow_max_m3s.tolist() == [[300, np.inf], [np.inf, np.inf]]
    # Two rows of one plant and stage with different columns add up.
    assert two.outflow_max_m3s.tolist() == [[np.inf, np.inf], [400, 400]]
    assert two.storage_min_hm3.tolist() == [10, 20]
    assert two.storage_max_hm3.tolist() == [200, 180]
    assert one.generation_min_mw[0].tolist() == [5, 5]
    assert one.generation_max_mw[0].tolist() == [95, 95]
    assert [data.withdrawal_m3s.tolist() for data in case.stage_data] == [[2.5, 0], [0, -1.5], [0, 0]]


def test_unit_group_bounds(case: Case) -> None:
    data = case.stage_data[0]
    assert data.group_generation_min_mw.tolist() == [[0, 0], [0, 0], [3, 3]]
    assert data.group_generation_max_mw.tolist() == [[100, 100], [60, 60], [35, 30]]
    assert data.group_turbined_min_m3s.tolist() == [[0, 0], [0, 0], [0, 1]]
    assert data.group_turbined_max_m3s.tolist() == [[100, 100], [60, 60], [40, 38]]
    assert case.stage_data[1].group_generation_max_mw[2].tolist() == [40, 40]


def test_contracts_and_pumping(case: Case) -> None:
    one, two, three = case.stage_data
    assert [(item.id, item.kind, item.bus_id) for item in case.contracts] == [
        (0, "import", 3),
        (1, "export", 3),
    ]
    assert one.contract_max_mw.tolist() == [[5, 5], [9, 9]]
    assert one.contract_min_mw.tolist() == [[0, 0], [1, 1]]
    assert three.contract_price.tolist() == [[90, 90], [-30, -45]]
    station = case.pumping_stations[0]
    assert (station.source_hydro_id, station.destination_hydro_id, station.bus_id) == (4, 1, 0)
    assert station.consumption_mw_per_m3s == 0.5
    assert two.pumping_min_m3s.tolist() == [[0, 1]]
    assert two.pumping_max_m3s.tolist() == [[8, 4]]
    # Out of service from stage 2.
    assert three.pumping_max_m3s.tolist() == [[0, 0]]


def test_non_controllable_sources(case: Case) -> None:
    assert [(item.id, item.max_generation_mw, item.allow_curtailment) for item in case.non_controllables] == [
        (2, 10.0, False),
        (7, 20.0, True),
    ]
    assert [data.ncs_available_mw.tolist() for data in case.stage_data] == [[0, 20], [10, 12], [10, 20]]
    assert [data.ncs_in_service.tolist() for data in case.stage_data] == [
        [False, True],
        [True] * 2,
        [True] * 2,
    ]
    assert [data.curtailment_cost.tolist() for data in case.stage_data] == [
        [0.005, 0.25],
        [0.005, 0.25],
        [0.0625, 0.25],
    ]
    assert case.stage_data[2].ncs_factor.tolist() == [[1, 1], [0.5, 1]]
    assert case.stage_data[0].ncs_factor.tolist() == [[1, 1], [1, 1]]


def test_cost_overrides(case: Case) -> None:
    one, two, three = case.stage_data
    assert (one.excess_cost.tolist(), two.excess_cost.tolist()) == ([0.5, 0.5], [0.5, 0.75])
    assert (two.exchange_cost.tolist(), three.exchange_cost.tolist()) == ([0.25], [0.125])
    assert two.penalty("spillage").tolist() == [0.5, 0.01]
    assert two.penalty("turbined").tolist() == [0.25, 0.0]
    assert one.penalty("spillage").tolist() == [0.01, 0.01]


@pytest.mark.parametrize(
    ("own", "common", "stage", "expected"),
    [
        ({}, {}, {}, (906, 906)),
        ({}, {"pos": 5.0}, {}, (5, 906)),
        ({"": 7.0}, {"pos": 5.0, "neg": 6.0}, {}, (7, 7)),
        ({"": 7.0}, {"pos": 5.0}, {"": 8.0}, (8, 8)),
        ({"": 7.0}, {"pos": 5.0}, {"": 8.0, "pos": 9.0}, (9, 8)),
        ({}, {"neg": 6.0}, {"pos": 9.0}, (9, 6)),
    ],
)
def test_order_of_directional_costs(
    tmp_path: Path, own: dict, common: dict, stage: dict, expected: tuple[float, float]
) -> None:
    def name(side: str) -> str:
        return f"evaporation_violation_{side}_cost" if side else "evaporation_violation_cost"

    def named(values: dict) -> dict:
        return {name(side): value for side, value in values.items()}

    columns = {key: [value] for key, value in named(stage).items()}
    case = load(
        write_case(
            tmp_path,
            penalties=lambda f: f["hydro"].update(named(common)),
            hydros=lambda f: f["hydros"][0].update(penalties=named(own)),
            extra={overrides("hydro"): {"hydro_id": [1], "stage_id": [2], **columns}},
        )
    )
    data = case.stage_data[2]
    found = (data.penalty("evaporation_violation_pos")[0], data.penalty("evaporation_violation_neg")[0])
    assert found == expected


def test_arrays_are_read_only_and_contiguous(case: Case) -> None:
    for data in case.stage_data:
        arrays = {name: value for name, value in vars(data).items() if name != "extensions"}
        for name, array in (arrays | data.extensions).items():
            assert array.flags.c_contiguous, name
            assert not array.flags.writeable, name


def test_stages_with_different_numbers_of_blocks(tmp_path: Path) -> None:
    def edit(file: dict) -> None:
        file["stages"][0]["blocks"] = [{"id": 0, "name": "ALL", "hours": 744}]
        file["stages"][2]["blocks"].append({"id": 2, "name": "NIGHT", "hours": 5})

    rows = {
        "thermal_id": [0, 0, 0],
        "stage_id": [2, 2, 0],
        "block_id": [None, 2, 0],
        "max_generation_mw": [20.0, 10.0, 35.0],
    }
    case = load(write_case(tmp_path, stages=edit, extra={bounds("thermal"): rows}))
    assert [data.thermal_max_mw[0].tolist() for data in case.stage_data] == [[35], [40, 40], [20, 20, 10]]


def test_order_of_rows_does_not_matter(tmp_path: Path) -> None:
    straight = rich_files()
    turned = {
        path: {name: column[::-1] for name, column in content.items()}
        if path.endswith(".parquet")
        else content
        for path, content in straight.items()
    }
    one = load(write_case(tmp_path / "a", extra=straight))
    two = load(write_case(tmp_path / "b", extra=turned))
    for left, right in zip(one.stage_data, two.stage_data, strict=True):
        for name, array in vars(left).items():
            np.testing.assert_array_equal(array, getattr(right, name), err_msg=name)


def rows_of(name: str, **columns: Any) -> dict[str, Any]:
    """Return the extra files of a case whose only bounds are these rows."""
    return {**registries(), bounds(name): {key: [value] for key, value in columns.items()}}


@pytest.mark.parametrize(
    ("name", "columns", "kind", "context"),
    [
        (
            "thermal",
            {"thermal_id": 9, "stage_id": 0, "max_generation_mw": 1.0},
            "InvalidReference",
            {"rule": "referential.1", "field": "thermal_id", "value": 9},
        ),
        (
            "line",
            {"line_id": 0, "stage_id": 9, "direct_mw": 1.0},
            "BusinessRuleViolation",
            {"rule": "5a.49", "field": "stage_id[row 0]", "value": 9},
        ),
        (
            "ncs",
            {"ncs_id": 7, "stage_id": 9, "available_generation_mw": 1.0},
            "BusinessRuleViolation",
            {"rule": "referential.7", "field": "stage_id[row 0]"},
        ),
        (
            "contract",
            {"contract_id": 0, "stage_id": 0, "block_id": 2, "max_mw": 9.0},
            "BusinessRuleViolation",
            {"rule": "5a.35", "entity": "contract 0 (IMPORT)", "value": 2},
        ),
        (
            "contract",
            {"contract_id": 0, "stage_id": 0, "block_id": -1, "max_mw": 9.0},
            "BusinessRuleViolation",
            {"rule": "5a.35", "value": -1},
        ),
        (
            "hydro",
            {"hydro_id": 1, "stage_id": 0, "block_id": 0, "min_storage_hm3": 20.0},
            "BusinessRuleViolation",
            {"rule": "5a.36", "field": "min_storage_hm3[row 0]"},
        ),
        (
            "thermal",
            {"thermal_id": 0, "stage_id": 0, "block_id": 0, "cost_per_mwh": 20.0},
            "BusinessRuleViolation",
            {"rule": "5a.37", "field": "cost_per_mwh[row 0]"},
        ),
        (
            "hydro",
            {"hydro_id": 1, "stage_id": 0, "max_turbined_m3s": 100.5},
            "BusinessRuleViolation",
            {"rule": "5a.43", "entity": "hydro 1 (UPPER)"},
        ),
        (
            "hydro_unit_group",
            {"hydro_id": 4, "hydro_unit_group_id": 1, "stage_id": 0, "max_generation_mw": 41.0},
            "BusinessRuleViolation",
            {"rule": "5a.45", "entity": "hydro 4 (LOWER), unit group 1"},
        ),
        (
            "hydro_unit_group",
            {"hydro_id": 4, "hydro_unit_group_id": 5, "stage_id": 0, "max_generation_mw": 1.0},
            "InvalidReference",
            {"rule": "referential.3", "entity": "hydro 4 (LOWER), unit group 5", "value": 5},
        ),
        (
            "hydro_unit_group",
            {"hydro_id": -4, "hydro_unit_group_id": -1, "stage_id": 0, "max_generation_mw": 1.0},
            "InvalidReference",
            {"rule": "referential.1", "field": "hydro_id", "value": -4},
        ),
        (
            "hydro",
            {"hydro_id": 1, "stage_id": 0, "min_diversion_m3s": 1.0},
            "BusinessRuleViolation",
            {"rule": "5a.46", "entity": "hydro 1 (UPPER)"},
        ),
        (
            "hydro",
            {"hydro_id": 1, "stage_id": 0, "filling_min_rate_m3s": 1.0},
            "BusinessRuleViolation",
            {"entity": "hydro 1 (UPPER)", "field": "filling_min_rate_m3s[row 0]"},
        ),
        (
            "line",
            {"line_id": 0, "stage_id": 0, "direct_mw": -1.0},
            "InvalidValue",
            {"field": "direct_mw[row 0]", "value": -1.0},
        ),
        (
            "pumping",
            {"pumping_station_id": 1, "stage_id": 0, "max_m3s": float("inf")},
            "InvalidValue",
            {"field": "max_m3s[row 0]", "value": "Infinity"},
        ),
        (
            "ncs",
            {"ncs_id": 7, "stage_id": 0, "available_generation_mw": float("nan")},
            "InvalidValue",
            {"field": "available_generation_mw[row 0]", "value": "NaN"},
        ),
        ("ncs", {"ncs_id": 7, "stage_id": 0}, "SchemaViolation", {"field": "available_generation_mw"}),
        ("pumping", {"station_id": 1, "stage_id": 0}, "SchemaViolation", {"field": "pumping_station_id"}),
        (
            "thermal",
            {"thermal_id": 0, "stage_id": 0, "max_generation_mw": 0.5},
            "InvalidValue",
            {"rule": "5a.13", "entity": "thermal 0 (T0)", "value": 1.0},
        ),
        (
            "hydro",
            {"hydro_id": 4, "stage_id": 0, "max_storage_hm3": 9.0},
            "InvalidValue",
            {"rule": "5a.2", "entity": "hydro 4 (LOWER)"},
        ),
        (
            "contract",
            {"contract_id": 0, "stage_id": 0, "min_mw": 6.0},
            "InvalidValue",
            {"entity": "contract 0 (IMPORT)", "field": "min_mw"},
        ),
    ],
)
def test_faulty_rows(tmp_path: Path, name: str, columns: dict, kind: str, context: dict) -> None:
    problem = only(write_case(tmp_path, extra=rows_of(name, **columns)), kind, file=bounds(name), **context)
    assert problem.suggestion


def test_minimum_with_a_price_above_the_maximum_is_a_warning(tmp_path: Path) -> None:
    rows = rows_of("hydro", hydro_id=1, stage_id=2, block_id=1, min_outflow_m3s=9.0, max_outflow_m3s=8.0)
    warnings = warnings_of(write_case(tmp_path, extra=rows))
    assert "at stage 2" in pick(warnings, "ModelQuality", rule="5a.4", entity="hydro 1 (UPPER)").message
    assert len(warnings) == 1


def test_block_rows_of_an_anticipated_plant(tmp_path: Path) -> None:
    path = write_case(
        tmp_path,
        thermals=lambda f: f["thermals"][0].update(anticipated_config={"lead_stages": 1}),
        extra=rows_of("thermal", thermal_id=0, stage_id=1, block_id=0, max_generation_mw=9.0),
    )
    pick(errors_of(path), "BusinessRuleViolation", rule="5a.38", entity="thermal 0 (T0)")


@pytest.mark.parametrize(
    ("columns", "repeats"),
    [
        ({"max_generation_mw": [1.5, 2.5]}, True),
        ({"max_generation_mw": [1.5, None], "min_generation_mw": [None, 0.5]}, False),
        ({"max_generation_mw": [1.5, 2.5], "block_id": [0, None]}, False),
        ({"max_generation_mw": [1.5, 2.5], "block_id": [0, 1]}, False),
        ({"max_generation_mw": [1.5, 2.5], "block_id": [1, 1]}, True),
    ],
)
def test_duplicates(tmp_path: Path, columns: dict, repeats: bool) -> None:
    rows = {"thermal_id": [0, 0], "stage_id": [1, 1], **columns}
    path = write_case(tmp_path, extra={bounds("thermal"): rows})
    if repeats:
        only(path, "DuplicateId", entity="thermal 0 (T0)", field="max_generation_mw", value=[1.5, 2.5])
    else:
        assert warnings_of(path) == []


def test_duplicate_override(tmp_path: Path) -> None:
    rows = {"bus_id": [3, 3], "stage_id": [1, 1], "excess_cost": [1.0, 2.0]}
    only(write_case(tmp_path, extra={overrides("bus"): rows}), "DuplicateId", entity="bus 3 (NORTH)")


@pytest.mark.parametrize("value", [0.0, -1.0])
def test_overrides_must_be_positive(tmp_path: Path, value: float) -> None:
    rows = {"hydro_id": [4], "stage_id": [1], "spillage_cost": [value]}
    path = write_case(tmp_path, extra={overrides("hydro"): rows})
    only(path, "InvalidValue", entity="hydro 4 (LOWER)", field="spillage_cost[row 0]", value=value)


def test_overrides_of_unknown_stages_are_ignored_with_a_warning(tmp_path: Path) -> None:
    rows = {"line_id": [0], "stage_id": [9], "exchange_cost": [5.0]}
    warnings = warnings_of(write_case(tmp_path, extra={overrides("line"): rows}))
    pick(warnings, "SemanticAmbiguity", file=overrides("line"), field="stage_id", value="9")


def test_many_faults_are_summed_up(tmp_path: Path) -> None:
    rows = {"thermal_id": [0] * 100, "stage_id": [7] * 100, "max_generation_mw": [-1.0] * 100}
    errors = errors_of(write_case(tmp_path, extra={bounds("thermal"): rows}))
    assert len(errors) == 2 * 21
    assert "80 more rows: 20-99" in errors[20].message


def test_broken_registry_gives_no_trail(tmp_path: Path) -> None:
    _, errors, _ = check(write_case(tmp_path, thermals="{", hydros="[", stages="", extra=rich_files()))
    assert {problem.context["file"] for problem in errors} == {
        "stages.json",
        "system/thermals.json",
        "system/hydros.json",
    }


def test_columns_of_nulls_only(tmp_path: Path) -> None:
    rows = rows_of("thermal", thermal_id=0, stage_id=0, block_id=None, max_generation_mw=None)
    case = load(write_case(tmp_path, extra=rows))
    assert case.stage_data[0].thermal_max_mw.tolist() == [[40, 40], [40, 40]]
    assert "has no effect" in pick(case.warnings, "SemanticAmbiguity", file=bounds("thermal")).message
