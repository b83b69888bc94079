"""Rules of ``config.json`` that join several keys, and keys without effect."""

from pathlib import Path
from typing import Any

import pytest
from case_builder import errors_of, only, pick, warnings_of, write_case
from test_case_fields import put

from cobre.case import load
from cobre.case.model import ScenarioSource


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
        ("upper_bound_evaluation", {"enabled": True}, "upper_bound_evaluation.enabled"),
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


def test_boundary_policy(tmp_path: Path) -> None:
    edit = put("policy", {"boundary": {"path": "../later", "strict": True}})
    only(write_case(tmp_path / "case", config=edit), "FileNotFound", field="policy.boundary.path")
    (tmp_path / "later").mkdir()
    case = load(tmp_path / "case")
    assert case.policy.boundary_strict
    assert case.policy.boundary_path is not None
    assert case.policy.boundary_path.resolve() == (tmp_path / "later").resolve()
    long = put("policy", {"boundary": {"path": "x" * 5000}})
    only(write_case(tmp_path / "long", config=long), "FileNotFound", field="policy.boundary.path")


def test_openings_from_a_file(tmp_path: Path) -> None:
    edit = sources(openings={"source": "file"})
    errors = errors_of(write_case(tmp_path / "a", config=edit))
    pick(errors, "FileNotFound", field="training.scenario_source.openings.source")
    assert len(errors) == 1
