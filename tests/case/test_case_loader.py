"""What a valid case turns into."""

import datetime
import json
from pathlib import Path

import numpy as np
import pytest
from builders.base_case import PATHS, assert_same, base_files, warnings_of, write_case

from cobre import case as case_package
from cobre.case import DeficitSegment, check, load
from cobre.case.model import HYDRO_PENALTIES, HydroStatus
from cobre.errors import ValidationError


def test_base_case_loads_without_warning(tmp_path: Path) -> None:
    assert warnings_of(write_case(tmp_path)) == []


def test_public_names() -> None:
    assert all(hasattr(case_package, name) for name in case_package.__all__)


def test_values_and_overrides(tmp_path: Path) -> None:
    case = load(write_case(tmp_path))
    assert case.path == tmp_path.resolve()
    assert case.training.tree_seed == 7
    assert case.training.forward_passes == 2
    assert case.training.iteration_limit == 10
    assert case.training.inflow_method == "none"
    assert case.training.cost_scale_factor is None
    assert [bus.id for bus in case.buses] == [0, 3]
    assert case.buses[0].deficit_segments == (DeficitSegment(5.0, 1000.0), DeficitSegment(None, 5000.0))
    assert case.buses[1].deficit_segments == (DeficitSegment(None, 3000.0),)
    upper, lower = case.hydros
    assert (upper.downstream_id, lower.downstream_id) == (4, None)
    assert (upper.initial_storage_hm3, lower.initial_storage_hm3) == (50.0, 60.0)
    assert [g.bus_id for g in lower.unit_groups] == [0, 3]
    assert [(t.id, t.bus_id) for t in case.thermals] == [(0, 0), (2, 3)]
    assert len(case.stage_data) == 3
    for data in case.stage_data:
        assert data.excess_cost.tolist() == [0.5, 0.5]
        assert data.exchange_cost.tolist() == [0.25]
        assert data.line_direct_mw.tolist() == [[30.0, 30.0]]
        assert data.line_reverse_mw.tolist() == [[20.0, 20.0]]
        assert data.thermal_min_mw.tolist() == [[1.0, 1.0]] * 2
        assert data.thermal_max_mw.tolist() == [[40.0, 40.0]] * 2
        assert data.thermal_cost.tolist() == [50.0, 52.0]
        assert data.storage_min_hm3.tolist() == [10.0, 10.0]
        assert data.storage_max_hm3.tolist() == [200.0, 200.0]
        assert data.outflow_max_m3s.tolist() == [[np.inf, np.inf]] * 2
        assert data.group_generation_max_mw[:, 0].tolist() == [100.0, 60.0, 40.0]
        assert data.hydro_status.tolist() == [HydroStatus.OPERATING] * 2
        penalties = [data.penalty(name).tolist() for name in HYDRO_PENALTIES]
        expected = [0.01, 0.1, 0.0, 900.0, 901.0, 902.0, 903.0, 904.0, 905.0]
        expected += [906.0, 906.0, 907.0, 907.0, 1000.0]
        assert penalties == [[value, value] for value in expected]
    for model in (row[0] for row in case.production):
        assert (model.kind, model.productivity_mw_per_m3s) == ("constant_productivity", 1.1)


def test_arrays_follow_stage_and_entity_order(tmp_path: Path) -> None:
    case = load(write_case(tmp_path))
    np.testing.assert_array_equal(case.scenarios.inflow_mean_m3s, [[40, 10], [41, 11], [42, 12]])
    np.testing.assert_array_equal(case.scenarios.inflow_std_m3s, [[4.0, 1.0], [4.1, 1.1], [4.2, 1.2]])
    np.testing.assert_array_equal(case.scenarios.load_mean_mw, [[70, 30], [71, 31], [72, 32]])
    np.testing.assert_array_equal(case.scenarios.load_std_mw, [[0, 3.0], [0, 3.1], [0, 3.2]])
    np.testing.assert_array_equal(case.stage_data[1].load_factor, [[1, 1], [1, 0.75]])
    np.testing.assert_array_equal(case.stage_data[0].load_factor, np.ones((2, 2)))


def test_arrays_are_read_only_contiguous_doubles(tmp_path: Path) -> None:
    case = load(write_case(tmp_path))
    arrays = [
        case.scenarios.inflow_mean_m3s,
        case.scenarios.inflow_std_m3s,
        case.scenarios.load_mean_mw,
        case.scenarios.load_std_mw,
        *(data.load_factor for data in case.stage_data),
    ]
    for array in arrays:
        assert array.dtype == np.float64
        assert array.flags.c_contiguous
        assert not array.flags.writeable


def test_stages_blocks_and_discount(tmp_path: Path) -> None:
    case = load(write_case(tmp_path))
    first = case.stages[0]
    assert (first.start_date, first.end_date) == (datetime.date(2024, 1, 1), datetime.date(2024, 2, 1))
    assert [(b.id, b.name, b.hours) for b in first.blocks] == [(0, "PEAK", 100.0), (1, "BASE", 644.0)]
    assert first.hours == 744.0
    assert [stage.num_openings for stage in case.stages] == [1, 4, 4]
    assert first.discount_factor == pytest.approx(1.12 ** (-31 / 365.25), rel=1e-15)
    assert case.stages[1].discount_factor == pytest.approx(1.12 ** (-29 / 365.25), rel=1e-15)


def test_no_rate_means_a_factor_of_exactly_one(tmp_path: Path) -> None:
    case = load(write_case(tmp_path, stages=lambda f: f["policy_graph"].update(annual_discount_rate=0)))
    assert [stage.discount_factor for stage in case.stages] == [1.0, 1.0, 1.0]


def test_discount_of_stage_beats_transition_beats_global(tmp_path: Path) -> None:
    def edit(file: dict) -> None:
        file["policy_graph"]["transitions"] = [
            {"source_id": 1, "target_id": 2, "probability": 1.0, "annual_discount_rate_override": 0.2},
            {"source_id": 0, "target_id": 1, "probability": 1.0, "annual_discount_rate_override": 0.3},
        ]
        file["stages"][0]["annual_discount_rate_override"] = 0.0

    case = load(write_case(tmp_path, stages=edit))
    assert case.stages[0].discount_factor == 1.0
    assert case.stages[1].discount_factor == pytest.approx(1.2 ** (-29 / 365.25), rel=1e-15)
    assert case.stages[2].discount_factor == pytest.approx(1.12 ** (-31 / 365.25), rel=1e-15)


def test_order_in_the_files_does_not_matter(tmp_path: Path) -> None:
    def reverse(key: str):
        return lambda file: file[key].reverse()

    def reverse_stages(file: dict) -> None:
        file["stages"].reverse()
        for stage in file["stages"]:
            stage["blocks"].reverse()

    def reverse_hydros(file: dict) -> None:
        file["hydros"].reverse()
        for plant in file["hydros"]:
            plant["unit_groups"].reverse()

    def reverse_columns(table: dict) -> None:
        for name in table:
            table[name] = table[name][::-1]

    # Warnings too: leave out the initial storage of both plants.
    common = {"initial": {"storage": [], "filling_storage": []}}
    straight = load(write_case(tmp_path / "a", **common))
    turned = load(
        write_case(
            tmp_path / "b",
            stages=reverse_stages,
            buses=reverse("buses"),
            thermals=reverse("thermals"),
            hydros=reverse_hydros,
            production=reverse("production_models"),
            inflow=reverse_columns,
            load=reverse_columns,
            **common,
        )
    )
    assert len(straight.warnings) == 2
    assert_same(straight, turned)


def test_key_order_and_schema_key_do_not_matter(tmp_path: Path) -> None:
    def turn(value):
        if isinstance(value, dict):
            return {key: turn(item) for key, item in reversed(value.items())}
        return [turn(item) for item in value] if isinstance(value, list) else value

    files = base_files()
    jsons = {name: files[name] for name, path in PATHS.items() if path.endswith(".json")}
    turned = {
        name: {"$schema": "https://example.org/x.json", **turn(content)} for name, content in jsons.items()
    }
    assert_same(load(write_case(tmp_path / "a")), load(write_case(tmp_path / "b", **turned)))


def test_optional_files_absent(tmp_path: Path) -> None:
    path = write_case(tmp_path, inflow=None, load=None, load_factors=None)
    case = load(path)
    assert case.scenarios.inflow_mean_m3s.shape == (3, 2)
    assert not case.scenarios.inflow_mean_m3s.any()
    assert not case.scenarios.load_std_mw.any()
    assert all((factor == 1.0).all() for factor in (data.load_factor for data in case.stage_data))
    assert [w.context["file"] for w in case.warnings] == [PATHS["inflow"]]


def test_a_case_of_thermals_only(tmp_path: Path) -> None:
    case = load(
        write_case(
            tmp_path,
            hydros={"hydros": []},
            lines={"lines": []},
            initial={"storage": [], "filling_storage": []},
            production=None,
            inflow=None,
        )
    )
    assert case.hydros == ()
    assert case.scenarios.inflow_mean_m3s.shape == (3, 0)
    assert case.warnings == ()


@pytest.mark.parametrize(("seed", "expected"), [(None, 42), (0, 0), (-5, 5), (2**63 - 1, 2**63 - 1)])
def test_tree_seed(tmp_path: Path, seed: int | None, expected: int) -> None:
    case = load(write_case(tmp_path, config=lambda f: f["training"].update(tree_seed=seed)))
    assert case.training.tree_seed == expected


def test_tree_seed_defaults_to_42(tmp_path: Path) -> None:
    case = load(write_case(tmp_path, config=lambda f: f["training"].pop("tree_seed")))
    assert case.training.tree_seed == 42


@pytest.mark.parametrize("method", ["none", "penalty", "truncation", "truncation_with_penalty"])
def test_inflow_methods(tmp_path: Path, method: str) -> None:
    change = {"inflow_non_negativity": {"method": method}, "cost_scale_factor": 1000}
    case = load(write_case(tmp_path, config=lambda f: f.update(modeling=change)))
    assert case.training.inflow_method == method
    assert case.training.cost_scale_factor == 1000.0


@pytest.mark.parametrize(
    "modeling", [None, {}, {"inflow_non_negativity": None}, {"inflow_non_negativity": {}}]
)
def test_inflow_method_defaults_to_penalty(tmp_path: Path, modeling: object) -> None:
    case = load(write_case(tmp_path, config=lambda f: f.update(modeling=modeling)))
    assert case.training.inflow_method == "penalty"


def test_largest_iteration_limit_caps(tmp_path: Path) -> None:
    rules = [{"type": "iteration_limit", "limit": limit} for limit in (3, 20, 5)]
    change = {"stopping_rules": rules, "stopping_mode": "all"}
    case = load(write_case(tmp_path, config=lambda f: f["training"].update(change)))
    assert case.training.iteration_limit == 20


def test_entity_penalties_override_the_global_ones(tmp_path: Path) -> None:
    def edit(file: dict) -> None:
        file["hydros"][0]["penalties"] = {
            "spillage_cost": 0.5,
            "inflow_nonnegativity_cost": 3,
            "turbined_cost": None,
        }

    case = load(
        write_case(
            tmp_path,
            hydros=edit,
            lines=lambda f: f["lines"][0].update(exchange_cost=0),
            penalties=lambda f: f["hydro"].update(inflow_nonnegativity_cost=77.0, turbined_cost=0.125),
        )
    )
    data = case.stage_data[1]
    for name, expected in (
        ("spillage", [0.5, 0.01]),
        ("inflow_nonnegativity", [3.0, 77.0]),
        ("turbined", [0.125, 0.125]),
    ):
        assert data.penalty(name).tolist() == expected
    assert data.exchange_cost.tolist() == [0.0]


def test_first_matching_production_range_wins(tmp_path: Path) -> None:
    def part(start: int, end: int | None, value: float) -> dict:
        return {
            "start_stage_id": start,
            "end_stage_id": end,
            "model": "constant_productivity",
            "productivity_mw_per_m3s": value,
        }

    def edit(file: dict) -> None:
        file["production_models"][0]["stage_ranges"] = [part(1, 1, 0.5), part(0, None, 0.75), part(2, 2, 9.0)]

    case = load(write_case(tmp_path, production=edit))
    assert [row[0].productivity_mw_per_m3s for row in case.production] == [0.75, 0.5, 0.75]


def test_stage_ids_need_not_be_contiguous(tmp_path: Path) -> None:
    new = {0: 2, 1: 5, 2: 9}

    def edit(file: dict) -> None:
        for stage in file["stages"]:
            stage["id"] = new[stage["id"]]

    def edit_columns(table: dict) -> None:
        table["stage_id"] = [new[number] for number in table["stage_id"]]

    case = load(
        write_case(
            tmp_path,
            stages=edit,
            inflow=edit_columns,
            load=edit_columns,
            load_factors=lambda f: f["load_factors"][0].update(stage_id=5),
        )
    )
    assert [stage.id for stage in case.stages] == [2, 5, 9]
    np.testing.assert_array_equal(case.scenarios.inflow_mean_m3s[:, 0], [40, 41, 42])
    assert case.stage_data[1].load_factor[1, 1] == 0.75


def test_neutral_values_of_unsupported_keys_are_accepted(tmp_path: Path) -> None:
    profile = dict.fromkeys(("dual_edge_weight", "scale", "presolve", "use_warm_start"))
    training = {
        "enabled": True,
        "stopping_mode": "any",
        "cut_selection": {"row_activity_tolerance": 0.0, "max_active_per_stage": None, "selection": None},
        "parallelism": {"backward_scheduler": {"method": "by_scenario"}},
        "scenario_source": {
            "inflow": {"scheme": "in_sample"},
            "load": {},
            "ncs": None,
            "historical_years": None,
            "openings": {"source": "generated"},
        },
        "solver": {
            "retry_max_attempts": 5,
            "retry_time_budget_seconds": 30,
            "forward": profile,
            "backward": None,
        },
    }
    sections = {
        "simulation": {
            "enabled": False,
            "selection": {"method": "enumerated"},
            "io_channel_capacity": None,
            "scenario_source": {
                "seed": 3,
                "inflow": {"scheme": "historical"},
                "historical_years": {"from": 1, "to": 2},
            },
            "solver": {"presolve": None},
        },
        "policy": {
            "path": "./policy",
            "mode": "fresh",
            "checkpointing": {"enabled": False},
            "boundary": None,
        },
        "exports": {"states": False, "stochastic": False, "fpha_deviation_points": None},
        "estimation": {"max_order": 6, "order_selection": "pacf", "min_observations_per_season": 30},
        "upper_bound_evaluation": {"enabled": False, "lipschitz": {"mode": "auto"}},
    }

    def edit_config(file: dict) -> None:
        file["training"].update(training)
        file.update(sections)

    def edit_stages(file: dict) -> None:
        file.update(season_definitions=None, pre_study_stages=[])
        file["policy_graph"].update(nodes=[], transitions=[])
        file["stages"][0].update(
            block_mode="parallel",
            state_variables={"storage": True, "inflow_lags": True},
            risk_measure="expectation",
            sampling_method="saa",
            season_id=3,
        )

    def edit_hydros(file: dict) -> None:
        keys = ["tailrace", "hydraulic_losses", "efficiency", "evaporation", "diversion", "filling"]
        keys += ["entry_stage_id", "exit_stage_id", "penalties"]
        file["hydros"][0].update(dict.fromkeys(keys), travel_time_hours=0)

    case = load(
        write_case(
            tmp_path,
            config=edit_config,
            stages=edit_stages,
            hydros=edit_hydros,
            lines=lambda f: f["lines"][0].update(losses_percent=0, entry_stage_id=None),
            thermals=lambda f: f["thermals"][0].update(anticipated_config=None),
            initial=lambda f: f.update(recent_observations=[], past_defluences=None),
        )
    )
    assert case.warnings == ()
    assert case.stages[0].season_id == 3


def test_load_raises_with_every_problem(tmp_path: Path) -> None:
    path = write_case(tmp_path, lines=None, thermals="{")
    with pytest.raises(ValidationError) as raised:
        load(path)
    assert [problem.kind for problem in raised.value.problems] == ["FileNotFound", "ParseError"]
    assert raised.value.problems == tuple(check(path)[1])


def test_problems_are_json(tmp_path: Path) -> None:
    def edit(file: dict) -> None:
        file["hydros"][0]["reservoir"]["max_storage_hm3"] = float("nan")
        file["hydros"][0]["tailrace"] = {"x": [float("inf")] * 100}

    _, errors, _ = check(write_case(tmp_path, hydros=edit))
    text = json.dumps([problem.as_dict() for problem in errors], allow_nan=False)
    assert '"NaN"' in text


def test_relative_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_case(tmp_path / "mine")
    monkeypatch.chdir(tmp_path)
    assert load("mine").path == (tmp_path / "mine").resolve()
    assert "'mine'" in repr(load("mine"))
