"""Faults of single fields: unknown keys, types, limits, values not supported yet."""

from pathlib import Path
from typing import Any

import pytest
from builders.base_case import PATHS, errors_of, only, pick, put, warnings_of, write_case

from cobre.case import check


@pytest.mark.parametrize(
    ("name", "place", "entity", "field", "hint"),
    [
        ("config", "trainig", None, "trainig", "Did you mean 'training'?"),
        ("config", "training.tree_sed", None, "training.tree_sed", "Did you mean 'tree_seed'?"),
        (
            "config",
            "training.selection.x",
            None,
            "training.selection.x",
            "keys: double_every, forward_passes, initial_passes, method.",
        ),
        ("config", "training.stopping_rules.0.limits", None, "training.stopping_rules[0].limits", "'limit'"),
        ("config", "training.forward_passes", None, "training.forward_passes", '"selection"'),
        ("penalties", "hydro.spilage_cost", None, "hydro.spilage_cost", "'spillage_cost'"),
        ("stages", "stages.1.num_opening", "stage 1", "num_opening", "'num_openings'"),
        ("stages", "stages.1.blocks.0.hour", "stage 1", "blocks[0].hour", "Did you mean 'hours'?"),
        ("stages", "scenario_source", None, "scenario_source", "config.json"),
        ("buses", "buses.1.excess_cost", "bus 3 (NORTH)", "excess_cost", "deficit_segments"),
        ("hydros", "hydros.0.bus_id", "hydro 1 (UPPER)", "bus_id", "unit_groups"),
        (
            "hydros",
            "hydros.0.reservoir.max_storage",
            "hydro 1 (UPPER)",
            "reservoir.max_storage",
            "max_storage_hm3",
        ),
        ("production", "production_models.0.seasons", "hydro 1", "seasons", "stage_ranges"),
        ("load_factors", "load_factors.0.block_factor", "bus 3", "block_factor", "'block_factors'"),
    ],
)
def test_unknown_key(
    tmp_path: Path, name: str, place: str, entity: str | None, field: str, hint: str
) -> None:
    path = write_case(tmp_path, **{name: put(place, 17)})
    problem = only(path, "SchemaViolation", file=PATHS[name], entity=entity, field=field, value=17)
    assert "unknown key" in problem.message
    assert hint in (problem.suggestion or "")


@pytest.mark.parametrize(
    ("name", "place", "field"),
    [
        ("config", "training", "training"),
        ("config", "training.selection.method", "training.selection.method"),
        ("config", "training.selection.forward_passes", "training.selection.forward_passes"),
        ("stages", "stages.0.num_openings", "num_openings"),
        ("penalties", "line.exchange_cost", "line.exchange_cost"),
        ("initial", "filling_storage", "filling_storage"),
        ("thermals", "thermals.0.operational_start_date", "operational_start_date"),
        ("hydros", "hydros.0.unit_groups.0.bus_id", "unit_groups[0].bus_id"),
        ("production", "production_models.0.selection_mode", "selection_mode"),
    ],
)
def test_missing_key(tmp_path: Path, name: str, place: str, field: str) -> None:
    def edit(file: Any) -> None:
        *parents, last = [int(part) if part.isdigit() else part for part in place.split(".")]
        for part in parents:
            file = file[part]
        del file[last]

    problem = only(write_case(tmp_path, **{name: edit}), "SchemaViolation", file=PATHS[name], field=field)
    assert "missing" in problem.message


@pytest.mark.parametrize(
    ("name", "place", "value", "kind"),
    [
        ("thermals", "thermals.0.cost_per_mwh", "5", "SchemaViolation"),
        ("thermals", "thermals.0.cost_per_mwh", True, "SchemaViolation"),
        ("thermals", "thermals.0.cost_per_mwh", None, "SchemaViolation"),
        ("thermals", "thermals.0.cost_per_mwh", [1], "SchemaViolation"),
        ("thermals", "thermals.0.cost_per_mwh", 10**400, "InvalidValue"),
        ("thermals", "thermals.0.bus_id", 0.0, "SchemaViolation"),
        ("thermals", "thermals.0.bus_id", False, "SchemaViolation"),
        ("thermals", "thermals.0.bus_id", "0", "SchemaViolation"),
        ("thermals", "thermals.0.bus_id", 2**31, "InvalidValue"),
        ("thermals", "thermals.0.name", 3, "SchemaViolation"),
        ("thermals", "thermals.0.operational_start_date", 20240101, "SchemaViolation"),
        ("thermals", "thermals.0.operational_start_date", "20240101", "InvalidValue"),
        ("thermals", "thermals.0.operational_start_date", "2024-02-30", "InvalidValue"),
        ("thermals", "thermals.0.generation", 5, "SchemaViolation"),
        ("thermals", "thermals.0", 5, "SchemaViolation"),
        ("thermals", "thermals", {}, "SchemaViolation"),
        ("config", "training.selection.forward_passes", 0, "InvalidValue"),
        ("config", "training.selection.method", "samled", "InvalidValue"),
        ("config", "training.selection.method", 5, "SchemaViolation"),
        ("config", "training.stopping_rules.0.type", "iterations", "InvalidValue"),
        ("config", "training.stopping_rules.0.limit", 0, "InvalidValue"),
        ("config", "training.stopping_mode", "some", "InvalidValue"),
        ("config", "training.tree_seed", 2**63, "InvalidValue"),
        ("config", "modeling.cost_scale_factor", 0, "InvalidValue"),
        ("config", "modeling.inflow_non_negativity.method", "clip", "InvalidValue"),
        ("config", "simulation.selection", {"method": "sampled", "num_scenarios": -1}, "InvalidValue"),
        ("config", "simulation.enabled", 1, "SchemaViolation"),
        ("stages", "stages.0.num_openings", 0, "InvalidValue"),
        ("stages", "stages.0.num_openings", None, "SchemaViolation"),
        ("stages", "stages.0.blocks.0.hours", 0, "InvalidValue"),
        ("stages", "stages.0.risk_measure", "cvar", "InvalidValue"),
        ("stages", "stages.0.annual_discount_rate_override", -1, "InvalidValue"),
        ("stages", "policy_graph.annual_discount_rate", -0.1, "InvalidValue"),
        ("stages", "policy_graph.type", "tree", "InvalidValue"),
        ("penalties", "bus.excess_cost", 0, "InvalidValue"),
        ("penalties", "line.exchange_cost", -1.0, "InvalidValue"),
        ("penalties", "hydro.spillage_cost", 0, "InvalidValue"),
        ("penalties", "hydro.turbined_cost", -1e-9, "InvalidValue"),
        ("penalties", "hydro.inflow_nonnegativity_cost", -1, "InvalidValue"),
        ("penalties", "non_controllable_source.curtailment_cost", 0, "InvalidValue"),
        ("penalties", "bus.deficit_segments.0.depth_mw", 0.0, "InvalidValue"),
        ("buses", "buses.1.deficit_segments.0.cost", -5, "InvalidValue"),
        ("lines", "lines.0.capacity.reverse_mw", -1, "InvalidValue"),
        ("lines", "lines.0.losses_percent", -1, "InvalidValue"),
        ("thermals", "thermals.0.generation.max_mw", -5.0, "InvalidValue"),
        ("hydros", "hydros.0.reservoir.min_storage_hm3", -1, "InvalidValue"),
        ("hydros", "hydros.0.outflow.min_outflow_m3s", -1, "InvalidValue"),
        ("hydros", "hydros.0.unit_groups.0.max_turbined_m3s", -1, "InvalidValue"),
        ("hydros", "hydros.0.unit_groups", [], "InvalidValue"),
        ("hydros", "hydros.0.generation.model", "quadratic", "InvalidValue"),
        ("hydros", "hydros.0.penalties", {"spillage_cost": -1}, "InvalidValue"),
        ("hydros", "hydros.0.travel_time_hours", -1, "InvalidValue"),
        ("initial", "storage.0.value_hm3", -0.5, "InvalidValue"),
        ("production", "production_models.0.stage_ranges.0.productivity_mw_per_m3s", -1, "InvalidValue"),
        ("production", "production_models.0.stage_ranges.0.model", "bad", "InvalidValue"),
        ("load_factors", "load_factors.0.block_factors.0.factor", 0, "InvalidValue"),
    ],
)
def test_bad_value(tmp_path: Path, name: str, place: str, value: Any, kind: str) -> None:
    problem = only(write_case(tmp_path, **{name: put(place, value)}), kind, file=PATHS[name])
    assert problem.context["file"] in problem.message
    assert problem.suggestion


def test_negative_capacity_names_file_entity_field_and_value(tmp_path: Path) -> None:
    path = write_case(tmp_path, thermals=put("thermals.1.generation.max_mw", -5.0))
    problem = only(
        path,
        "InvalidValue",
        file="system/thermals.json",
        entity="thermal 2 (T2)",
        field="generation.max_mw",
        value=-5.0,
    )
    assert (
        problem.message
        == "system/thermals.json: generation.max_mw of thermal 2 (T2) must be >= 0, but is -5.0."
    )


@pytest.mark.parametrize(
    ("text", "shown"), [("NaN", "NaN"), ("Infinity", "Infinity"), ("-1e999", "-Infinity")]
)
def test_numbers_that_are_not_finite(tmp_path: Path, text: str, shown: str) -> None:
    path = write_case(tmp_path)
    file = path / PATHS["thermals"]
    file.write_text(file.read_text().replace("52.0", text))
    only(path, "InvalidValue", entity="thermal 2 (T2)", field="cost_per_mwh", value=shown)


def test_entity_without_readable_id(tmp_path: Path) -> None:
    errors = errors_of(write_case(tmp_path, thermals=put("thermals.1.id", "two")))
    pick(errors, "SchemaViolation", entity="entry thermals[1] (T2)", field="id", value="two")
    assert len(errors) == 1


UNSUPPORTED = [
    ("config", "exports", {"states": True}, "exporting"),
    ("stages", "stages.0.sampling_method", "selective", "representative openings"),
    ("stages", "policy_graph.type", "cyclic", "cyclic"),
]


@pytest.mark.parametrize(("name", "place", "value", "feature"), UNSUPPORTED)
def test_not_supported_yet(tmp_path: Path, name: str, place: str, value: Any, feature: str) -> None:
    errors = errors_of(write_case(tmp_path, **{name: put(place, value)}))
    problem = pick(errors, "NotImplemented", file=PATHS[name])
    assert "not supported yet" in problem.message
    assert feature in problem.message
    assert problem.context["field"]
    assert len(errors) == 1


def test_negative_stage_id_is_a_pre_study_stage(tmp_path: Path) -> None:
    path = write_case(tmp_path, stages=put("stages.0.id", -1), load_factors=None, inflow=None, load=None)
    case, errors, warnings = check(path)
    assert errors == []
    assert case is not None
    assert [stage.id for stage in case.stages] == [1, 2]
    assert "nothing is decided there" in pick(warnings, "SemanticAmbiguity", entity="stage -1").message


def test_faults_of_several_entities(tmp_path: Path) -> None:
    def edit(file: dict) -> None:
        file["hydros"][0]["generation"]["model"] = "steam"
        file["hydros"][0]["reservoir"]["max_storage_hm3"] = -1
        file["hydros"][1]["diversion"] = {}

    errors = errors_of(write_case(tmp_path, hydros=edit))
    pick(errors, "InvalidValue", entity="hydro 1 (UPPER)", field="generation.model")
    pick(errors, "InvalidValue", entity="hydro 1 (UPPER)", field="reservoir.max_storage_hm3")
    pick(errors, "SchemaViolation", entity="hydro 4 (LOWER)", field="diversion.downstream_id")
    pick(errors, "SchemaViolation", entity="hydro 4 (LOWER)", field="diversion.max_flow_m3s")
    assert len(errors) == 4


def test_keys_of_simulation_without_effect_are_a_warning(tmp_path: Path) -> None:
    asked = warnings_of(write_case(tmp_path / "asked", config=put("simulation.enabled", True)))
    assert not any(warning.context.get("file") == "config.json" for warning in asked)
    warnings = warnings_of(write_case(tmp_path / "tuned", config=put("simulation.io_channel_capacity", 8)))
    pick(warnings, "SemanticAmbiguity", file="config.json", field="simulation.io_channel_capacity")


def test_without_iteration_limit(tmp_path: Path) -> None:
    path = write_case(tmp_path, config=put("training.stopping_rules", []))
    only(path, "BusinessRuleViolation", file="config.json", field="training.stopping_rules", value=[])


def test_without_buses(tmp_path: Path) -> None:
    errors = errors_of(write_case(tmp_path, buses={"buses": []}, load=None, load_factors=None))
    pick(errors, "InvalidValue", file="system/buses.json", field="buses", value=[])
