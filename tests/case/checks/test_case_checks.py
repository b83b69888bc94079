"""Faults across fields, entities and files, and warnings of odd input."""

from pathlib import Path
from typing import Any

import pytest
from builders.base_case import PATHS, errors_of, group, hydro, only, pick, warnings_of, write_case

from cobre.case import check


def test_empty_stages(tmp_path: Path) -> None:
    def edit(file: dict) -> None:
        file["stages"] = []

    errors = errors_of(write_case(tmp_path, stages=edit, load_factors=None))
    problem = pick(errors, "BusinessRuleViolation", file="stages.json", field="stages", value=[])
    assert "stages is empty" in problem.message
    assert len(errors) == 1


def test_single_stage(tmp_path: Path) -> None:
    def edit(file: dict) -> None:
        file["stages"] = file["stages"][:1]

    path = write_case(tmp_path, stages=edit, load_factors=None)
    assert "at least two stages" in only(path, "BusinessRuleViolation", field="stages", value=[0]).message


@pytest.mark.parametrize(
    ("name", "key", "entity"),
    [
        ("buses", "buses", "bus 0 (SOUTH)"),
        ("lines", "lines", "line 0 (LINK)"),
        ("thermals", "thermals", "thermal 0 (T0)"),
        ("hydros", "hydros", "hydro 1 (UPPER)"),
        ("stages", "stages", "stage 0"),
        ("initial", "storage", "hydro 1 (UPPER)"),
        ("production", "production_models", "hydro 1 (UPPER)"),
        ("load_factors", "load_factors", "bus 3 (NORTH)"),
    ],
)
def test_duplicates(tmp_path: Path, name: str, key: str, entity: str) -> None:
    path = write_case(tmp_path, **{name: lambda f: f[key].append(f[key][0])})
    only(path, "DuplicateId", file=PATHS[name], entity=entity)


def test_duplicate_unit_group(tmp_path: Path) -> None:
    path = write_case(tmp_path, hydros=lambda f: f["hydros"][1]["unit_groups"][1].update(id=0))
    only(path, "DuplicateId", entity="hydro 4 (LOWER)", field="unit_groups", value=0)


@pytest.mark.parametrize(
    ("name", "edit", "entity", "field"),
    [
        ("lines", lambda f: f["lines"][0].update(source_bus_id=9), "line 0 (LINK)", "source_bus_id"),
        ("lines", lambda f: f["lines"][0].update(target_bus_id=9), "line 0 (LINK)", "target_bus_id"),
        ("thermals", lambda f: f["thermals"][0].update(bus_id=9), "thermal 0 (T0)", "bus_id"),
        ("hydros", lambda f: f["hydros"][0].update(downstream_id=9), "hydro 1 (UPPER)", "downstream_id"),
        (
            "hydros",
            lambda f: f["hydros"][1]["unit_groups"][1].update(bus_id=9),
            "hydro 4 (LOWER)",
            "unit_groups[1].bus_id",
        ),
        (
            "initial",
            lambda f: f["storage"].append({"hydro_id": 9, "value_hm3": 1.0}),
            "hydro 9",
            "storage.hydro_id",
        ),
        (
            "production",
            lambda f: f["production_models"].append({**f["production_models"][0], "hydro_id": 9}),
            "hydro 9",
            "hydro_id",
        ),
        ("load_factors", lambda f: f["load_factors"][0].update(bus_id=9), "bus 9", "bus_id"),
        ("load_factors", lambda f: f["load_factors"][0].update(stage_id=9), "bus 3 (NORTH)", "stage_id"),
    ],
)
def test_dangling_id(tmp_path: Path, name: str, edit: Any, entity: str, field: str) -> None:
    path = write_case(tmp_path, **{name: edit})
    problem = only(
        path, "InvalidReference", file=PATHS[name], entity=entity, field=field, value=9, rule="referential.1"
    )
    assert "Known" in (problem.suggestion or "")


def test_load_factor_of_unknown_block(tmp_path: Path) -> None:
    path = write_case(
        tmp_path,
        load_factors=lambda f: f["load_factors"][0]["block_factors"].append({"block_id": 7, "factor": 1}),
    )
    only(path, "InvalidReference", field="block_factors[1].block_id", value=7, rule="5b.17")


def test_load_factor_of_a_block_twice(tmp_path: Path) -> None:
    path = write_case(
        tmp_path,
        load_factors=lambda f: f["load_factors"][0]["block_factors"].append({"block_id": 1, "factor": 1}),
    )
    only(path, "DuplicateId", entity="bus 3 (NORTH) at stage 1", field="block_factors", value=1)


@pytest.mark.parametrize(
    ("links", "cycles"),
    [
        ({1: 1}, ["1 -> 1"]),
        ({1: 2, 2: 1}, ["1 -> 2 -> 1"]),
        ({1: 2, 2: 3, 3: 2}, ["2 -> 3 -> 2"]),
        ({1: 2, 2: 1, 3: 4, 4: 3, 5: 1}, ["1 -> 2 -> 1", "3 -> 4 -> 3"]),
    ],
)
def test_cascade_cycles(tmp_path: Path, links: dict[int, int], cycles: list[str]) -> None:
    plants = {"hydros": [hydro(n, f"H{n}", links.get(n), [group(0, 100.0)]) for n in range(1, 6)]}
    path = write_case(
        tmp_path,
        hydros=plants,
        inflow=None,
        initial={"storage": [], "filling_storage": []},
        production=lambda f: f.update(
            production_models=[{**f["production_models"][0], "hydro_id": n} for n in range(1, 6)]
        ),
    )
    errors = errors_of(path)
    assert [problem.kind for problem in errors] == ["CycleDetected"] * len(cycles)
    for problem, cycle in zip(errors, cycles, strict=True):
        assert cycle in problem.message
        assert problem.context["rule"] == "5a.1"
        assert problem.context["entity"].startswith(f"hydro {cycle[0]} ")


@pytest.mark.parametrize(
    ("name", "entity", "place", "field", "rule"),
    [
        ("thermals", 0, ("generation", "min_mw"), "generation.min_mw", "5a.13"),
        ("hydros", 0, ("reservoir", "min_storage_hm3"), "reservoir.min_storage_hm3", "5a.2"),
        ("hydros", 0, ("generation", "min_turbined_m3s"), "generation.min_turbined_m3s", "5a.3"),
        ("hydros", 0, ("generation", "min_generation_mw"), "generation.min_generation_mw", "5a.5"),
    ],
)
def test_minimum_above_maximum(
    tmp_path: Path, name: str, entity: int, place: tuple[str, str], field: str, rule: str
) -> None:
    path = write_case(tmp_path, **{name: lambda f: f[name][entity][place[0]].update({place[1]: 999.0})})
    pick(errors_of(path), "InvalidValue", file=PATHS[name], field=field, value=999.0, rule=rule)


def test_minimum_outflow_above_maximum(tmp_path: Path) -> None:
    limits = {"min_outflow_m3s": 5, "max_outflow_m3s": 4}
    path = write_case(tmp_path, hydros=lambda f: f["hydros"][0].update(outflow=limits))
    only(path, "InvalidValue", field="outflow.min_outflow_m3s", value=5.0, rule="5a.4")


@pytest.mark.parametrize(("key", "unit"), [("generation", "mw"), ("turbined", "m3s")])
def test_unit_group_minimum_above_maximum(tmp_path: Path, key: str, unit: str) -> None:
    low = f"min_{key}_{unit}"
    path = write_case(tmp_path, hydros=lambda f: f["hydros"][0]["unit_groups"][0].update({low: 101.0}))
    only(path, "InvalidValue", entity="hydro 1 (UPPER)", field=f"unit_groups[0].{low}", value=101.0)


@pytest.mark.parametrize("key", ["max_generation_mw", "max_turbined_m3s"])
def test_unit_groups_larger_than_the_plant(tmp_path: Path, key: str) -> None:
    def grow(by: float) -> Any:
        return lambda f: f["hydros"][1]["unit_groups"][0].update({key: 60.0 + by})

    rule = {"rule": "5a.41", "entity": "hydro 4 (LOWER)", "field": f"unit_groups[].{key}"}
    only(write_case(tmp_path / "a", hydros=grow(0.01)), "BusinessRuleViolation", **rule)
    assert warnings_of(write_case(tmp_path / "b", hydros=grow(5e-5))) == []


@pytest.mark.parametrize("key", ["min_generation_mw", "min_turbined_m3s"])
def test_unit_groups_with_less_minimum_than_the_plant(tmp_path: Path, key: str) -> None:
    path = write_case(tmp_path, hydros=lambda f: f["hydros"][1]["generation"].update({key: 2.0}))
    only(path, "BusinessRuleViolation", rule="5a.44", field=f"unit_groups[].{key}", value=0.0)


def test_line_from_a_bus_to_itself(tmp_path: Path) -> None:
    path = write_case(tmp_path, lines=lambda f: f["lines"][0].update(target_bus_id=0))
    only(path, "InvalidValue", entity="line 0 (LINK)", field="target_bus_id", value=0)


@pytest.mark.parametrize(
    ("segments", "index", "key"),
    [
        ([(None, 1.0), (None, 2.0)], 0, "depth_mw"),
        ([(5.0, 1.0), (6.0, 2.0)], 1, "depth_mw"),
        ([(5.0, 2.0), (None, 2.0)], 1, "cost"),
        ([(5.0, 3.0), (None, 2.0)], 1, "cost"),
    ],
)
def test_deficit_segments(tmp_path: Path, segments: list[tuple[Any, float]], index: int, key: str) -> None:
    entries = [{"depth_mw": depth, "cost": cost * 1000.0} for depth, cost in segments]
    field = f"deficit_segments[{index}].{key}"
    path = write_case(tmp_path / "a", buses=lambda f: f["buses"][0].update(deficit_segments=entries))
    only(path, "InvalidValue", file="system/buses.json", entity="bus 0 (SOUTH)", field=field)
    path = write_case(tmp_path / "b", penalties=lambda f: f["bus"].update(deficit_segments=entries))
    only(path, "InvalidValue", file="penalties.json", field=f"bus.{field}")


def test_deficit_segments_empty(tmp_path: Path) -> None:
    path = write_case(tmp_path, penalties=lambda f: f["bus"].update(deficit_segments=[]))
    only(path, "InvalidValue", file="penalties.json", field="bus.deficit_segments", value=[])


@pytest.mark.parametrize("end", ["2024-01-01", "2023-12-31"])
def test_stage_must_end_after_it_starts(tmp_path: Path, end: str) -> None:
    path = write_case(tmp_path, stages=lambda f: f["stages"][0].update(end_date=end))
    only(path, "InvalidValue", file="stages.json", entity="stage 0", field="end_date", value=end)


@pytest.mark.parametrize("ids", [[], [1], [0, 0], [0, 2], [-1, 0]])
def test_block_ids(tmp_path: Path, ids: list[int]) -> None:
    blocks = [{"id": number, "name": "B", "hours": 10} for number in ids]
    path = write_case(tmp_path, stages=lambda f: f["stages"][0].update(blocks=blocks))
    only(path, "InvalidValue", entity="stage 0", field="blocks", value=ids)


def chain(*links: tuple[int, int, float]) -> Any:
    transitions = [{"source_id": s, "target_id": t, "probability": p} for s, t, p in links]
    return lambda f: f["policy_graph"].update(transitions=transitions)


@pytest.mark.parametrize(
    "links",
    [
        [(0, 1, 1.0)],
        [(0, 1, 1.0), (1, 2, 1.0), (2, 0, 1.0)],
        [(0, 2, 1.0), (1, 2, 1.0)],
        [(0, 1, 0.5), (0, 1, 0.5), (1, 2, 1.0)],
        [(0, 1, 0.5), (0, 2, 0.5), (1, 2, 1.0)],
    ],
)
def test_transitions_other_than_the_chain(tmp_path: Path, links: list[tuple[int, int, float]]) -> None:
    only(write_case(tmp_path, stages=chain(*links)), "NotImplemented", field="policy_graph.transitions")


def test_transition_probabilities(tmp_path: Path) -> None:
    path = write_case(tmp_path, stages=chain((0, 1, 0.5), (1, 2, 1.0)))
    only(path, "BusinessRuleViolation", entity="stage 0", value=0.5, rule="5b.2")


def test_transition_to_an_unknown_stage(tmp_path: Path) -> None:
    path = write_case(tmp_path, stages=chain((0, 1, 1.0), (1, 9, 1.0)))
    only(path, "InvalidReference", field="policy_graph.transitions[1].target_id", value=9, rule="5b.1")


def test_discount_rate_without_finite_factor(tmp_path: Path) -> None:
    def edit(file: dict) -> None:
        file["stages"][0].update(annual_discount_rate_override=-1 + 1e-15, end_date="2224-01-01")

    only(write_case(tmp_path, stages=edit), "InvalidValue", field="annual_discount_rate_override")


def test_productivity_must_cover_every_stage(tmp_path: Path) -> None:
    def edit(file: dict) -> None:
        file["production_models"][0]["stage_ranges"][0]["start_stage_id"] = 1
        file["production_models"][1]["stage_ranges"][0]["productivity_mw_per_m3s"] = None

    errors = errors_of(write_case(tmp_path, production=edit))
    rule = {"file": PATHS["production"], "rule": "productivity_resolution.1"}
    pick(errors, "DimensionMismatch", entity="hydro 1 (UPPER)", value="0", **rule)
    pick(errors, "DimensionMismatch", entity="hydro 4 (LOWER)", value="0-2", **rule)
    assert len(errors) == 2


def test_productivity_file_absent(tmp_path: Path) -> None:
    path = write_case(tmp_path, production=None)
    only(path, "DimensionMismatch", entity="hydros 1, 4", value="0-2", rule="productivity_resolution.1")


def test_production_range_ends_before_it_starts(tmp_path: Path) -> None:
    def edit(file: dict) -> None:
        part = file["production_models"][0]["stage_ranges"][0]
        file["production_models"][0]["stage_ranges"].insert(
            0, {**part, "start_stage_id": 2, "end_stage_id": 1}
        )

    only(write_case(tmp_path, production=edit), "InvalidValue", field="stage_ranges[0].end_stage_id", value=1)


def test_faulty_entity_gives_no_trail_of_dangling_ids(tmp_path: Path) -> None:
    def edit_bus(file: dict) -> None:
        file["buses"][0]["name"] = 5

    def edit_stage(file: dict) -> None:
        file["stages"][1]["num_openings"] = "four"

    def edit_hydro(file: dict) -> None:
        file["hydros"][1]["reservoir"] = None

    errors = errors_of(write_case(tmp_path, buses=edit_bus, stages=edit_stage, hydros=edit_hydro))
    assert [problem.kind for problem in errors] == ["SchemaViolation"] * 3


def test_broken_file_gives_no_trail_of_dangling_ids(tmp_path: Path) -> None:
    path = write_case(tmp_path, buses="{", hydros="[]", stages=None)
    assert [problem.kind for problem in errors_of(path)] == ["FileNotFound", "ParseError", "SchemaViolation"]


def test_many_faults_are_all_reported(tmp_path: Path) -> None:
    """A missing file, broken JSON, an unknown key, a dangling id, a negative capacity, a NaN and more."""

    def edit_hydros(file: dict) -> None:
        file["hydros"][0]["downstream_id"] = 77
        file["hydros"][0]["unit_groups"][0]["max_generation_mw"] = 50.0
        file["hydros"][1]["reservoir"].update(min_storage_hm3=300.0)
        file["hydros"][1]["unit_groups"][0]["bus_id"] = 88

    def edit_load(table: dict) -> None:
        table["mean_mw"][4] = float("nan")

    def edit_stages(file: dict) -> None:
        file["stages"][2]["end_date"] = file["stages"][2]["start_date"]
        file["stages"][1]["openings"] = 3

    path = write_case(
        tmp_path,
        initial=None,
        penalties="{,}",
        config=lambda f: f["training"].update(tree_sed=1),
        lines=lambda f: f["lines"][0]["capacity"].update(direct_mw=-30.0),
        thermals=lambda f: f["thermals"][1].update(bus_id=99, cost_per_mwh=-1),
        hydros=edit_hydros,
        load=edit_load,
        stages=edit_stages,
        extra={"scenarios/correlation.json": {"method": "spectral", "profiles": {}, "schedules": []}},
    )
    errors = errors_of(path)
    pick(errors, "FileNotFound", file="initial_conditions.json")
    pick(errors, "ParseError", file="penalties.json", line=1, column=2)
    pick(errors, "SchemaViolation", file="config.json", field="training.tree_sed", value=1)
    pick(errors, "InvalidValue", entity="line 0 (LINK)", field="capacity.direct_mw", value=-30.0)
    pick(errors, "InvalidValue", entity="thermal 2 (T2)", field="cost_per_mwh", value=-1)
    pick(errors, "InvalidReference", entity="thermal 2 (T2)", field="bus_id", value=99)
    pick(errors, "InvalidReference", entity="hydro 1 (UPPER)", field="downstream_id", value=77)
    pick(errors, "InvalidValue", entity="hydro 4 (LOWER)", field="reservoir.min_storage_hm3", value=300.0)
    pick(errors, "InvalidReference", entity="hydro 4 (LOWER)", field="unit_groups[0].bus_id", value=88)
    pick(
        errors,
        "InvalidValue",
        file=PATHS["load"],
        entity="bus 3 (NORTH)",
        field="mean_mw[row 4]",
        value="NaN",
    )
    pick(errors, "InvalidValue", entity="stage 2", field="end_date")
    pick(errors, "SchemaViolation", entity="stage 1", field="openings", value=3)
    pick(errors, "SchemaViolation", file="scenarios/correlation.json", field="schedules")
    assert len(errors) == 13
    assert all(problem.suggestion for problem in errors)


def test_initial_storage_outside_its_limits(tmp_path: Path) -> None:
    def edit(file: dict) -> None:
        file["storage"] = [{"hydro_id": 1, "value_hm3": 5.0}, {"hydro_id": 4, "value_hm3": 201.0}]

    warnings = warnings_of(write_case(tmp_path, initial=edit))
    pick(warnings, "ModelQuality", entity="hydro 1 (UPPER)", value=5.0)
    pick(warnings, "ModelQuality", entity="hydro 4 (LOWER)", value=201.0)
    assert len(warnings) == 2


def test_initial_storage_missing(tmp_path: Path) -> None:
    warnings = warnings_of(write_case(tmp_path, initial=lambda f: f["storage"].pop()))
    assert (
        "starts at its minimum, 10.0 hm3" in pick(warnings, "ModelQuality", entity="hydro 4 (LOWER)").message
    )


def test_penalty_warnings(tmp_path: Path) -> None:
    path = write_case(
        tmp_path,
        penalties=lambda f: f["hydro"].update(generation_violation_below_cost=5000, diversion_cost=902),
        hydros=lambda f: f["hydros"][0].update(penalties={"spillage_cost": 0, "diversion_cost": 0.0}),
    )
    warnings = warnings_of(path)
    pick(warnings, "ModelQuality", file="penalties.json", rule="5b.8", value=5000.0)
    pick(warnings, "ModelQuality", file="penalties.json", rule="5b.9", value=902.0)
    pick(warnings, "ModelQuality", rule="5b.10", entity="hydro 1 (UPPER)", field="penalties.spillage_cost")
    pick(warnings, "ModelQuality", rule="5b.10", entity="hydro 1 (UPPER)", field="penalties.diversion_cost")
    assert len(warnings) == 4


def test_zero_inflow_deviation_only_matters_with_several_openings(tmp_path: Path) -> None:
    def edit(table: dict) -> None:
        table["std_m3s"] = [0.0, 0.0, 4.2, 0.0, 1.1, 1.2]

    warnings = warnings_of(write_case(tmp_path, inflow=edit))
    problem = pick(warnings, "ModelQuality", rule="5b.12", entity="hydro 1 (UPPER)")
    assert "stage 1," in problem.message
    assert len(warnings) == 1


def test_unused_bus(tmp_path: Path) -> None:
    def edit(file: dict) -> None:
        file["buses"].append({"id": 8, "name": "EMPTY", "operational_start_date": "1900-01-01"})

    def edit_load(table: dict) -> None:
        for name, cells in {
            "bus_id": [8] * 3,
            "stage_id": [0, 1, 2],
            "mean_mw": [0.0] * 3,
            "std_mw": [0.0] * 3,
        }.items():
            table[name] += cells

    warnings = warnings_of(write_case(tmp_path, buses=edit, load=edit_load))
    pick(warnings, "UnusedEntity", entity="bus 8 (EMPTY)")
    assert len(warnings) == 1


def test_a_dangling_id_is_found_in_an_entity_with_other_faults(tmp_path):
    def spoil_thermal(content):
        content["thermals"][0].update(bus_id=99, unknown=1)
        content["thermals"][0]["generation"]["max_mw"] = -5.0

    def spoil_hydro(content):
        content["hydros"][0]["reservoir"]["max_storage_hm3"] = "full"
        content["hydros"][0]["downstream_id"] = 77
        content["hydros"][0]["unit_groups"][0]["bus_id"] = 88

    write_case(tmp_path, thermals=spoil_thermal, hydros=spoil_hydro)
    errors = errors_of(tmp_path)
    dangling = {(p.context["field"], p.context["value"]) for p in errors if p.kind == "InvalidReference"}
    assert dangling == {("bus_id", 99), ("downstream_id", 77), ("unit_groups[0].bus_id", 88)}
    fields = {p.context["field"] for p in errors}
    assert fields >= {"unknown", "generation.max_mw", "reservoir.max_storage_hm3"}


def test_empty_stages_are_one_fault_and_not_many(tmp_path):
    write_case(tmp_path, stages=lambda content: content.update(stages=[]))
    _, errors, warnings = check(tmp_path)
    assert [p.context["field"] for p in errors] == ["stages"]
    assert not [p for p in warnings if "stage_id" in p.context.values()]
