"""No key of the JSON files is accepted in silence without an effect."""

from collections import Counter, defaultdict

import pytest
from builders.case_files import Files, hydros_of, table
from builders.rich_case import rich_files
from format_keys import effect_of, tried_keys
from mutations import Documents, places, value_at
from power_features import generic_expressions, node_graph, travel_under_uncertainty
from water_features import fpha_fitted, linearised_head

from cobre.case import build
from cobre.case.format import describe
from cobre.case.format.descriptions import JSON_FILES
from cobre.errors import ValidationError

NEUTRAL = {
    "config.json": {
        # Whether a run trains; the default of what is refused otherwise.
        *(
            "training.enabled",
            "training.scenario_source.inflow.scheme",
            "training.scenario_source.load.scheme",
        ),
        *("training.scenario_source.ncs.scheme", "training.scenario_source.openings.source"),
        *("exports.states", "exports.fpha_deviation_points"),
        # Details of what its own key switches on, with a warning or a refusal.
        *("simulation.", "policy.checkpointing.", "upper_bound_evaluation.", "training.parallelism."),
    },
    # Periods before the study order the seasons of past inflows, which are refused.
    "stages.json": {"stages[].sampling_method", "pre_study_stages[]."},
    # Water released longer ago has arrived already; a start too late for the travel time is refused.
    "initial_conditions.json": {"past_defluences[].start_date"},
    # Notes for people.
    "constraints/generic_constraints.json": {"constraints[].description", "expressions[].description"},
    # Parameters go by their names.
    "constraints/generic_parameters.json": {"scalar_parameters[].description", "scalar_parameters[].id"},
    # Beyond the last stage; where a range ends too early, the stages after it have no model and are refused.
    "system/hydro_production_models.json": {
        "production_models[].stage_ranges[].end_stage_id",
        # Planes of the other source are not there, which is refused.
        "production_models[].stage_ranges[].fpha_config.source",
    },
}
"""Keys (or beginnings of keys, with a dot at the end) that may be set without changing the study."""


def documents(files: Files) -> Documents:
    return {path: table(content) if isinstance(content, list) else content for path, content in files.items()}


def with_tailrace_points() -> Files:
    files = fpha_fitted().files
    points = [{"outflow_m3s": 0.0, "height_m": 5.0}, {"outflow_m3s": 500.0, "height_m": 9.0}]
    hydros_of(files)[0]["tailrace"] = {"type": "piecewise", "points": points}
    return files


CASES = (
    documents(with_tailrace_points()),
    documents(rich_files()),
    *(documents(make().files) for make in (fpha_fitted, linearised_head, node_graph)),
    *(documents(make().files) for make in (generic_expressions, travel_under_uncertainty)),
)


def neutral(path: str, name: str) -> bool:
    return any(name == key or (key.endswith(".") and name.startswith(key)) for key in NEUTRAL.get(path, ()))


@pytest.mark.timeout(900)
@pytest.mark.parametrize("path", sorted(set(JSON_FILES) - {"scenarios/correlation.json"}))
def test_no_key_is_ignored_in_silence(path: str) -> None:
    """Every key does something, gives a warning or is refused, in one of the cases."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    examples: dict[str, object] = {}
    root = describe(path)
    for case in CASES:
        if path not in case:
            continue
        bases: dict[int, object] = {}
        for name, place, base, values in tried_keys(case[path], root):
            for value in values:
                if found[name]["changed"] or found[name]["warned"] or value in ({}, []):
                    break
                effect = effect_of(case, path, base, place, value, bases)
                found[name][effect] += 1
                if effect == "silent":
                    examples[name] = (place, value)
    assert found
    ignored = {
        name: (dict(effects), examples[name])
        for name, effects in found.items()
        if effects["silent"] and not effects["changed"] and not effects["warned"] and not neutral(path, name)
    }
    assert ignored == {}


@pytest.mark.parametrize("number", range(len(CASES)))
def test_unknown_keys_are_reported_everywhere(number: int) -> None:
    """A key that no file has is an error (at the root of parameters: a warning), whatever object it is in."""
    case = CASES[number]
    for path in (name for name in case if name.endswith(".json")):
        seen = set()
        for place in [(), *places(case[path])]:
            shape = tuple("[]" if isinstance(part, int) else part for part in place)
            holder = value_at(case[path], place)
            if not isinstance(holder, dict) or shape in seen:
                continue
            seen.add(shape)
            holder["unknown_key"] = 1
            if path == "constraints/generic_parameters.json" and not place:
                problems = build(case).warnings
            else:
                with pytest.raises(ValidationError) as caught:
                    build(case)
                problems = caught.value.problems
            assert any("unknown_key" in problem.message for problem in problems), (path, place)
            del holder["unknown_key"]
