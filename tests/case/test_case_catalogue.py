"""Types of entities from their rows in the catalogue: batteries, which nothing but the catalogue lists."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from builders.base_case import errors_of, only, pick, warnings_of, write_case

from cobre.case import load
from cobre.case.catalogue import ENTITY_TYPES, singular
from cobre.case.format.schema.batteries import Battery
from cobre.case.model import Case
from cobre.case.summary import summarize

FILE, BOUNDS = "system/batteries.json", "constraints/battery_bounds.parquet"


def battery(number: int = 0, **keys: Any) -> dict[str, Any]:
    return {
        "id": number,
        "name": f"cell {number}",
        "operational_start_date": "2000-01-01",
        "bus_id": 0,
        "max_charge_mw": 5.0,
        "max_discharge_mw": 6.0,
        "max_energy_mwh": 70.0,
        "initial_energy_mwh": 10.0,
        **keys,
    }


def with_batteries(path: Path, *batteries: dict[str, Any], **more: Any) -> Path:
    return write_case(path, extra={FILE: {"batteries": list(batteries)}, **more})


def test_batteries_are_sorted_and_have_defaults(tmp_path: Path) -> None:
    case = load(with_batteries(tmp_path, battery(7), battery(3, min_energy_mwh=1.0)))
    first, second = case.entities(Battery)
    assert (first.id, first.min_energy_mwh, second.id, second.min_energy_mwh) == (3, 1.0, 7, 0.0)
    assert (first.charge_efficiency, first.discharge_cost_per_mwh) == (1.0, 0.0)
    assert "2 batteries" in repr(case)
    assert summarize(case).entities["batteries"] == 2


def test_a_case_without_batteries_shows_none(tmp_path: Path) -> None:
    case = load(with_batteries(tmp_path))
    assert case.entities(Battery) == ()
    assert "batteries" not in {*summarize(case).entities, *case.to_arrow()}
    assert case.stage_data[0].extensions == {}


def test_limits_by_block_and_service(tmp_path: Path) -> None:
    bounds = {
        "battery_id": [0, 0],
        "stage_id": [1, 1],
        "block_id": [None, 0],
        "max_charge_mw": [2.0, 3.0],
    }
    case = load(with_batteries(tmp_path, battery(entry_stage_id=1, exit_stage_id=2), **{BOUNDS: bounds}))
    assert [data.extensions["battery_charge_max_mw"].tolist() for data in case.stage_data] == [
        [[0.0] * len(case.stages[0].blocks)],
        [[3.0, *[2.0] * (len(case.stages[1].blocks) - 1)]],
        [[0.0] * len(case.stages[2].blocks)],
    ]


def test_tables_have_types_where_all_is_null(tmp_path: Path) -> None:
    tables = load(with_batteries(tmp_path, battery())).to_arrow()
    assert tables["batteries"].schema.field("entry_stage_id").type == pa.int32()
    assert tables["batteries"].column("max_energy_mwh").to_pylist() == [70.0]
    assert tables["battery_limits"].column("battery_discharge_max_mw").unique().to_pylist() == [6.0]


def test_a_saved_case_keeps_its_batteries(tmp_path: Path) -> None:
    case = load(with_batteries(tmp_path / "one", battery()))
    assert load(case.save(tmp_path / "two")).entities(Battery) == case.entities(Battery)


@pytest.mark.parametrize(
    ("keys", "kind", "field"),
    [
        ({"bus_id": 99}, "InvalidReference", "bus_id"),
        ({"min_energy_mwh": 11.0}, "InvalidValue", "min_energy_mwh"),
        ({"initial_energy_mwh": 71.0}, "InvalidValue", "initial_energy_mwh"),
        ({"charge_efficiency": 0.0}, "InvalidValue", "charge_efficiency"),
        ({"discharge_efficiency": 1.1}, "InvalidValue", "discharge_efficiency"),
        ({"max_charge_mw": -1.0}, "InvalidValue", "max_charge_mw"),
        ({"max_power_mw": 1.0}, "SchemaViolation", "max_power_mw"),
        ({"entry_stage_id": 2, "exit_stage_id": 1}, "BusinessRuleViolation", "entry_stage_id"),
    ],
)
def test_faults(tmp_path: Path, keys: dict[str, Any], kind: str, field: str) -> None:
    path = with_batteries(tmp_path, battery(**keys))
    only(path, kind, file=FILE, entity="battery 0 (cell 0)", field=field)


def test_ids_that_repeat_and_rows_of_no_battery(tmp_path: Path) -> None:
    only(with_batteries(tmp_path / "one", battery(), battery()), "DuplicateId", file=FILE, value=0)
    bounds = {"battery_id": [4], "stage_id": [0], "block_id": [None], "max_charge_mw": [1.0]}
    path = with_batteries(tmp_path / "two", battery(), **{BOUNDS: bounds})
    pick(errors_of(path), "InvalidReference", file=BOUNDS, value=4)


def test_a_bus_with_a_battery_alone_is_used(tmp_path: Path) -> None:
    def edit(file: dict) -> None:
        file["buses"].append({"id": 50, "name": "hut", "operational_start_date": "2000-01-01"})

    def edit_load(table: dict) -> None:
        rows = {"bus_id": [50] * 3, "stage_id": [0, 1, 2], "mean_mw": [0.0] * 3, "std_mw": [0.0] * 3}
        for name, cells in rows.items():
            table[name] += cells

    lonely = write_case(tmp_path / "one", buses=edit, load=edit_load)
    pick(warnings_of(lonely), "UnusedEntity", entity="bus 50 (hut)")
    batteries = {FILE: {"batteries": [battery(bus_id=50)]}}
    assert warnings_of(write_case(tmp_path / "two", buses=edit, load=edit_load, extra=batteries)) == []


def test_every_type_but_extensions_has_its_place_in_a_case() -> None:
    for kind in ENTITY_TYPES:
        assert kind.extension or kind.attribute in Case.__dataclass_fields__
    assert [singular(kind.attribute) for kind in ENTITY_TYPES] == [kind.word for kind in ENTITY_TYPES]
