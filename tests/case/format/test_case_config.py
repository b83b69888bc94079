"""Rules of ``config.json`` that join several keys, and keys without effect."""

from pathlib import Path
from typing import Any

import pytest
from builders.base_case import errors_of, only, pick, put, warnings_of, write_case

from cobre.case import load
from cobre.case.model import CheckpointOptions, PassSchedule, PolicyOptions, ScenarioSource, UpperBoundOptions


def sources(**values: Any) -> Any:
    return put("training.scenario_source", values)


@pytest.mark.parametrize(
    ("edit", "field"),
    [
        (sources(load={"scheme": "out_of_sample"}), "training.scenario_source.seed"),
        (sources(historical_years=[1990]), "training.scenario_source.historical_years"),
        (
            put("simulation.scenario_source", {"ncs": {"scheme": "external"}}),
            "simulation.scenario_source.seed",
        ),
        (
            put("simulation.scenario_source", {"historical_years": {"from": 1, "to": 2}}),
            "simulation.scenario_source.historical_years",
        ),
        (
            put(
                "simulation.scenario_source",
                {"inflow": {"scheme": "historical"}, "historical_years": {"from": 3, "to": 2}},
            ),
            "simulation.scenario_source.historical_years",
        ),
        (
            put("policy.checkpointing", {"enabled": True}),
            "policy.checkpointing.interval_iterations",
        ),
        (
            lambda f: f["training"]["stopping_rules"].append({"type": "gap", "tolerance": 1}),
            "training.stopping_rules[1]",
        ),
        (
            lambda f: f["training"]["stopping_rules"].append({"type": "gap", "bound": "statistical"}),
            "training.stopping_rules[1]",
        ),
    ],
)
def test_keys_that_do_not_fit_together(tmp_path: Path, edit: Any, field: str) -> None:
    pick(
        errors_of(write_case(tmp_path, config=edit)), "BusinessRuleViolation", file="config.json", field=field
    )


@pytest.mark.parametrize(
    ("edit", "field"),
    [
        (sources(inflow={"scheme": "historical"}), "training.scenario_source.inflow.scheme"),
        (
            sources(inflow={"scheme": "historical"}, historical_years=[1990]),
            "training.scenario_source.inflow.scheme",
        ),
    ],
)
def test_historical_scheme_needs_a_history(tmp_path: Path, edit: Any, field: str) -> None:
    problem = only(write_case(tmp_path, config=edit), "FileNotFound", field=field)
    assert "inflow_history" in problem.message


def test_a_billion_passes_are_refused_by_name(tmp_path: Path) -> None:
    edit = put("training.selection", {"method": "sampled", "forward_passes": 10**9})
    problem = only(
        write_case(tmp_path, config=edit), "InvalidValue", field="training.selection.forward_passes"
    )
    assert "1000000" in problem.message


def test_schemes_are_kept_by_class(tmp_path: Path) -> None:
    def edit(file: dict) -> None:
        file["training"]["scenario_source"] = {"seed": -7, "load": {"scheme": "out_of_sample"}}
        file["simulation"] = {
            "selection": {"method": "sampled", "num_scenarios": 5},
            "scenario_source": {"seed": 3, "inflow": {"scheme": "out_of_sample"}},
        }

    case = load(write_case(tmp_path, config=edit))
    assert case.training.source == ScenarioSource(load="out_of_sample", seed=7)
    assert case.simulation.source == ScenarioSource(inflow="out_of_sample", seed=3)
    assert case.simulation.num_scenarios == 5


@pytest.mark.parametrize("scheme", ["out_of_sample", "historical"])
def test_enumerated_passes_take_openings_only(tmp_path: Path, scheme: str) -> None:
    def edit(file: dict) -> None:
        file["training"]["selection"] = {"method": "enumerated"}
        file["training"]["scenario_source"] = {"seed": 7, "inflow": {"scheme": scheme}}

    errors = errors_of(write_case(tmp_path, config=edit))
    pick(errors, "BusinessRuleViolation", field="training.scenario_source.inflow.scheme", value=scheme)


@pytest.mark.parametrize(
    ("place", "value", "key"),
    [
        ("training.solver", {"retry_max_attempts": 3}, "training.solver.retry_max_attempts"),
        ("training.solver", {"forward": {"presolve": "on"}}, "training.solver.forward.presolve"),
        (
            "training.parallelism",
            {"backward_scheduler": {"method": "by_node", "block_size": 2}},
            "training.parallelism.backward_scheduler",
        ),
        (
            "upper_bound_evaluation",
            {"enabled": True, "initial_iteration": 3},
            "upper_bound_evaluation.initial_iteration",
        ),
        ("estimation", {"max_order": 3}, "estimation"),
    ],
)
def test_keys_without_effect_are_warned_of(tmp_path: Path, place: str, value: Any, key: str) -> None:
    warnings = warnings_of(write_case(tmp_path, config=put(place, value)))
    assert [(problem.kind, problem.context["field"]) for problem in warnings] == [("SemanticAmbiguity", key)]


def test_tuning_gives_one_warning(tmp_path: Path) -> None:
    def edit(file: dict) -> None:
        file["training"]["solver"] = {"retry_max_attempts": 9, "backward": {"price": "row", "scale": "off"}}
        file["training"]["parallelism"] = {"backward_scheduler": {"method": "by_node"}}

    assert len(warnings_of(write_case(tmp_path, config=edit))) == 1


@pytest.mark.parametrize("path", ["", ".", "..", "a/../..", "/tmp", "training", "simulation/x"])
def test_policy_path_outside_the_output(tmp_path: Path, path: str) -> None:
    case = write_case(tmp_path, config=put("policy", {"path": path}))
    only(case, "InvalidValue", field="policy.path", value=path)


def test_policy_options(tmp_path: Path) -> None:
    case = load(write_case(tmp_path / "plain"))
    assert case.policy == PolicyOptions()
    checkpointing = {"enabled": True, "interval_iterations": 4, "initial_iteration": 3}
    section = {"path": "./a/../kept", "mode": "resume", "checkpointing": checkpointing}
    policy = load(write_case(tmp_path / "resumed", config=put("policy", section))).policy
    assert policy == PolicyOptions(path="kept", mode="resume", checkpointing=CheckpointOptions(4, 3))
    assert policy.checkpointing is not None
    assert [i for i in range(1, 13) if policy.checkpointing.due(i)] == [3, 7, 11]
    checkpointing |= {"initial_iteration": None, "store_basis": False, "compress": False}
    policy = load(write_case(tmp_path / "small", config=put("policy", section))).policy
    assert policy.checkpointing == CheckpointOptions(4, 0, store_basis=False, compress=False)
    assert [i for i in range(1, 13) if policy.checkpointing.due(i)] == [4, 8, 12]
    checkpointing["enabled"] = False
    assert load(write_case(tmp_path / "off", config=put("policy", section))).policy.checkpointing is None


@pytest.mark.parametrize(
    ("section", "field"),
    [
        ({"mode": "again"}, "policy.mode"),
        (
            {"checkpointing": {"enabled": True, "interval_iterations": 0}},
            "policy.checkpointing.interval_iterations",
        ),
    ],
)
def test_impossible_policy_options(tmp_path: Path, section: dict, field: str) -> None:
    only(write_case(tmp_path, config=put("policy", section)), "InvalidValue", field=field)


def test_boundary_policy(tmp_path: Path) -> None:
    edit = put("policy", {"boundary": {"path": "../later", "strict": True}})
    only(write_case(tmp_path / "case", config=edit), "FileNotFound", field="policy.boundary.path")
    (tmp_path / "later").mkdir()
    (problem,) = errors_of(tmp_path / "case")  # an empty directory is no policy either
    assert Path(problem.context["file"]).resolve() == (tmp_path / "later").resolve()
    long = put("policy", {"boundary": {"path": "x" * 5000}})
    only(write_case(tmp_path / "long", config=long), "FileNotFound", field="policy.boundary.path")


def test_openings_from_a_file(tmp_path: Path) -> None:
    edit = sources(openings={"source": "file"})
    errors = errors_of(write_case(tmp_path / "a", config=edit))
    pick(errors, "FileNotFound", field="training.scenario_source.openings.source")
    assert len(errors) == 1


def test_upper_bound_evaluation(tmp_path: Path) -> None:
    section = {
        "enabled": True,
        "initial_iteration": 4,
        "interval_iterations": 2,
        "lipschitz": {"mode": "auto", "fallback_value": 7.5, "scale_factor": 1.25},
    }
    case = load(write_case(tmp_path / "all", config=put("upper_bound_evaluation", section)))
    assert case.training.upper_bound == UpperBoundOptions(True, 4, 2, 7.5, 1.25)
    assert not case.warnings
    plain = load(write_case(tmp_path / "plain", config=put("upper_bound_evaluation", {"enabled": True})))
    assert plain.training.upper_bound == UpperBoundOptions(enabled=True)
    assert load(write_case(tmp_path / "none")).training.upper_bound == UpperBoundOptions()


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [("mode", "cheap", "auto"), ("scale_factor", 0.5, "1"), ("fallback_value", -1.0, "0")],
)
def test_prices_of_the_upper_bound_out_of_range(tmp_path: Path, key: str, value: Any, told: str) -> None:
    section = {"enabled": True, "lipschitz": {key: value}}
    (problem,) = errors_of(write_case(tmp_path, config=put("upper_bound_evaluation", section)))
    assert problem.context["field"] == f"upper_bound_evaluation.lipschitz.{key}"
    assert told in problem.message


def test_few_passes_early(tmp_path: Path) -> None:
    def case_of(name: str, **keys: int) -> Path:
        selection = {"method": "sampled", "forward_passes": 8, **keys}
        return write_case(tmp_path / name, config=put("training.selection", selection))

    assert load(case_of("plain")).training.pass_schedule is None
    assert load(case_of("one", initial_passes=1)).training.pass_schedule == PassSchedule(1, 10)
    both = case_of("both", initial_passes=2, double_every=4)
    assert load(both).training.pass_schedule == PassSchedule(2, 4)
    for name, keys, field in (
        ("all", {"initial_passes": 8}, "initial_passes"),
        ("none", {"initial_passes": 0}, "initial_passes"),
        ("alone", {"double_every": 4}, "double_every"),
    ):
        (problem,) = errors_of(case_of(name, **keys))
        assert problem.context["field"] == f"training.selection.{field}"
