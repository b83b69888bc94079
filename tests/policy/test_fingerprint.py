"""The fingerprint tells whether two studies are the same, and what they differ in."""

import dataclasses
import datetime
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from builders.paths import EXAMPLES
from builders.studies import cascade_study

from cobre.case import load
from cobre.case.format.schema.config import Modeling
from cobre.case.model import (
    Case,
    CheckpointOptions,
    PolicyOptions,
    RiskMeasure,
    Season,
    SeasonMap,
    TrainingOptions,
)
from cobre.case.model.scenarios import InflowHistory
from cobre.errors import ValidationError
from cobre.policy import case_fingerprint, differences, require_same
from cobre.policy.canonical import canonical_bytes


def topics(one: Case, other: Case) -> list[str]:
    return [p.context["topic"] for p in differences(case_fingerprint(one), case_fingerprint(other))]


@pytest.fixture(scope="module")
def case() -> Case:
    return cascade_study()


def stage_value(case: Case, stage: int, name: str, place: Any) -> Case:
    data = list(case.stage_data)
    values = getattr(data[stage], name).copy()
    values[place] = values[place] + 1
    data[stage] = replace(data[stage], **{name: values})
    return replace(case, stage_data=tuple(data))


def first(items: tuple, **values: Any) -> tuple:
    return (replace(items[0], **values), *items[1:])


def scenario_value(case: Case, name: str) -> Case:
    values = getattr(case.scenarios, name).copy()
    values[1, 0] += 1e-9
    return replace(case, scenarios=replace(case.scenarios, **{name: values}))


CHANGES: dict[str, Callable[[Case], Case]] = {
    "training.tree_seed": lambda c: replace(c, training=replace(c.training, tree_seed=7)),
    "training.forward_passes": lambda c: replace(c, training=replace(c.training, forward_passes=9)),
    "training.inflow_method": lambda c: replace(c, training=replace(c.training, inflow_method="none")),
    "training.cost_scale_factor": lambda c: replace(c, training=replace(c.training, cost_scale_factor=8.0)),
    "training.enumerated": lambda c: replace(c, training=replace(c.training, enumerated=True)),
    "stages.risk": lambda c: replace(c, stages=first(c.stages, risk=RiskMeasure(0.5, 0.2))),
    "stages.num_openings": lambda c: replace(c, stages=first(c.stages, num_openings=4)),
    "stages.discount_factor": lambda c: replace(c, stages=first(c.stages, discount_factor=0.5)),
    "stages.block_mode": lambda c: replace(c, stages=first(c.stages, block_mode="chronological")),
    "stages.start_date": lambda c: replace(
        c, stages=first(c.stages, start_date=c.stages[0].start_date - datetime.timedelta(days=1))
    ),
    "graph.transitions": lambda c: replace(
        c, graph=replace(c.graph, transitions=first(c.graph.transitions, probability=0.5))
    ),
    "hydros.initial_storage_hm3": lambda c: replace(c, hydros=first(c.hydros, initial_storage_hm3=1.25)),
    "hydros.travel_time_hours": lambda c: replace(c, hydros=first(c.hydros, travel_time_hours=5.0)),
    "thermals.bus_id": lambda c: replace(c, thermals=first(c.thermals, bus_id=1)),
    "lines.loss": lambda c: replace(c, lines=first(c.lines, loss=0.1)),
    "buses.deficit_segments": lambda c: replace(c, buses=first(c.buses, deficit_segments=())),
    "stage_data.thermal_max_mw": lambda c: stage_value(c, 2, "thermal_max_mw", (0, 0)),
    "stage_data.thermal_cost": lambda c: stage_value(c, 1, "thermal_cost", 0),
    "stage_data.hydro_penalty": lambda c: stage_value(c, 1, "hydro_penalty", (0, 0)),
    "scenarios.inflow_mean_m3s": lambda c: scenario_value(c, "inflow_mean_m3s"),
    "scenarios.load_std_mw": lambda c: scenario_value(c, "load_std_mw"),
    "production": lambda c: replace(
        c,
        production=(
            (replace(c.production[0][0], productivity_mw_per_m3s=2.5), *c.production[0][1:]),
            *c.production[1:],
        ),
    ),
    "seasons": lambda c: replace(c, seasons=SeasonMap("monthly", (Season(0, "January", 1),))),
}


@pytest.mark.parametrize("topic", CHANGES)
def test_a_change_is_told_under_its_topic(case: Case, topic: str) -> None:
    changed = CHANGES[topic](case)
    assert topics(case, changed) == [topic]
    assert topics(changed, case) == [topic]
    assert case_fingerprint(case).sha256() != case_fingerprint(changed).sha256()


def test_where_it_differs(case: Case) -> None:
    def message(topic: str) -> str:
        (problem,) = differences(case_fingerprint(case), case_fingerprint(CHANGES[topic](case)))
        return problem.message

    assert message("training.tree_seed").endswith("42 in the stored policy, 7 in this study")
    assert message("hydros.initial_storage_hm3").endswith("differs at hydro 0")
    assert message("stage_data.thermal_max_mw").endswith("differs at stage 2")
    assert message("production").endswith("differs at stage 0")


def test_every_field_of_every_part_counts(case: Case) -> None:
    """Each field that is not for people has a topic, also those that are added to the model one day."""
    known = set(case_fingerprint(case).topics)
    for section in ("stages", "hydros", "thermals", "buses", "lines", "stage_data", "training", "scenarios"):
        part = getattr(case, section)
        fields = dataclasses.fields(part[0] if isinstance(part, tuple) else part)
        names = {f.name for f in fields if "extension" not in f.metadata}
        left_out = {name for name in names if f"{section}.{name}" not in known}
        stopping = {"enabled", "iteration_limit", "stopping_rules", "stopping_mode", "upper_bound"}
        assert left_out == ({"name"} | stopping) & names


def test_entities_of_an_extension_count_where_there_are_some() -> None:
    case = load(EXAMPLES / "battery")
    assert not any("batter" in topic for topic in case_fingerprint(cascade_study()).topics)

    def edited(**keys: Any) -> Case:
        editor = case.edit()
        editor["system/batteries.json"]["batteries"][0].update(keys)
        return editor.build()

    assert topics(case, edited(name="other", operational_start_date="1999-01-01")) == []
    assert topics(case, edited(initial_energy_mwh=90.0)) == ["batteries.initial_energy_mwh"]
    limits = ["batteries.max_charge_mw", "stage_data.extensions"]
    assert topics(case, edited(max_charge_mw=30.0)) == limits
    assert (
        "batteries: 1 in the stored policy, 2"
        in differences(
            case_fingerprint(case),
            case_fingerprint(replace(case, extensions={"batteries": case.extensions["batteries"] * 2})),
        )[0].message
    )


def test_a_config_key_that_no_option_holds_counts() -> None:
    class Later(Modeling):
        momentum: float | None = None
        """For the test."""

    case = load(EXAMPLES / "thermal-merit-order")
    config = case.config
    assert config is not None
    later = replace(case, config=config.model_copy(update={"modeling": Later(momentum=0.5)}))
    assert topics(case, later) == ["config.modeling.momentum"]
    assert (later.option("modeling.momentum"), case.option("modeling.cost_scale_factor")) == (0.5, None)


@dataclass(frozen=True)
class Detail:
    method: str = "level1"
    tolerance: float = 0.0


@dataclass(frozen=True)
class LaterOptions(TrainingOptions):
    momentum: float = 0.5
    detail: Detail | None = None


def test_new_fields_count_by_themselves(case: Case) -> None:
    fields = dataclasses.fields(case.training)
    later = LaterOptions(**{field.name: getattr(case.training, field.name) for field in fields})
    one = replace(case, training=later)
    detailed = replace(case, training=replace(later, detail=Detail()))
    other = replace(case, training=replace(later, detail=Detail(tolerance=1e-6)))
    assert topics(one, detailed) == ["training.detail"]
    assert topics(detailed, other) == ["training.detail.tolerance"]
    assert topics(one, replace(case, training=replace(later, momentum=0.25))) == ["training.momentum"]
    _, problem = differences(case_fingerprint(case), case_fingerprint(one))
    assert problem.context == {"topic": "training.momentum", "value": 0.5}
    assert "knows nothing of it" in problem.message


def test_what_does_not_matter(case: Case) -> None:
    other = replace(
        case,
        path=Path("elsewhere"),
        training=replace(case.training, iteration_limit=999),
        policy=PolicyOptions(path="other", mode="resume", checkpointing=CheckpointOptions(5)),
        hydros=tuple(replace(hydro, name="renamed") for hydro in case.hydros),
    )
    assert topics(case, other) == []
    assert case_fingerprint(case) == case_fingerprint(other)
    require_same(case_fingerprint(case), case_fingerprint(other), "a checkpoint")


def test_an_entity_more_is_told_once(case: Case) -> None:
    more = replace(case, thermals=(*case.thermals, replace(case.thermals[0], id=77)))
    found = differences(case_fingerprint(case), case_fingerprint(more))
    assert [problem.context["topic"] for problem in found] == ["thermals", "thermals.id"]
    assert found[0].message == "thermals: 4 in the stored policy, 5 in this study"
    assert found[1].message.endswith("only in this study: thermal 77")


def test_a_stage_less_is_told_once(case: Case) -> None:
    keep = slice(0, 3)
    arrays = {f.name: getattr(case.scenarios, f.name) for f in dataclasses.fields(case.scenarios)}
    shorter = replace(
        case,
        stages=case.stages[keep],
        stage_data=case.stage_data[keep],
        production=case.production[keep],
        evaporation=case.evaporation[keep],
        generic=case.generic[keep],
        scenarios=replace(
            case.scenarios,
            **{n: a[keep] for n, a in arrays.items() if isinstance(a, np.ndarray) and n != "ncs_has_stats"},
        ),
    )
    assert topics(case, shorter) == ["stage_data", "stages", "stages.id"]


def test_further_topics(case: Case) -> None:
    one, other = (case_fingerprint(case, {"solver": version}) for version in ("1.10", "1.11"))
    (problem,) = differences(one, other)
    assert problem.message == "solver: '1.10' in the stored policy, '1.11' in this study"


def test_a_changed_study_is_refused_with_all_differences(case: Case) -> None:
    changed = CHANGES["hydros.initial_storage_hm3"](CHANGES["training.tree_seed"](case))
    with pytest.raises(ValidationError) as found:
        require_same(case_fingerprint(case), case_fingerprint(changed), "checkpoint-000010")
    assert [p.context["topic"] for p in found.value.problems] == [
        "hydros.initial_storage_hm3",
        "training.tree_seed",
    ]
    assert "checkpoint-000010" in found.value.message
    assert all(problem.suggestion for problem in found.value.problems)


def shuffled(directory: Path, random: np.random.Generator) -> None:
    """Turn around every list of entities and every table, and write JSON in another manner."""
    for file in sorted(directory.rglob("*.json")):
        document = json.loads(file.read_text())
        for key, value in document.items():
            if isinstance(value, list) and value and isinstance(value[0], dict) and "id" in value[0]:
                document[key] = [value[place] for place in random.permutation(len(value))]
        file.write_text(json.dumps(dict(reversed(document.items())), indent=7))
    for file in sorted(directory.rglob("*.parquet")):
        table = pq.read_table(file)
        pq.write_table(table.take(pa.array(random.permutation(table.num_rows))), file)


EXAMPLE_NAMES = sorted(path.name for path in EXAMPLES.iterdir() if (path / "config.json").exists())


@pytest.mark.parametrize("name", EXAMPLE_NAMES)
def test_order_place_and_form_of_files_do_not_matter(tmp_path: Path, name: str) -> None:
    shutil.copytree(EXAMPLES / name, tmp_path / "copy")
    shuffled(tmp_path / "copy", np.random.default_rng(3))
    assert topics(load(EXAMPLES / name), load(tmp_path / "copy")) == []


def test_examples_differ(case: Case) -> None:
    digests = {case_fingerprint(load(EXAMPLES / name)).sha256() for name in EXAMPLE_NAMES}
    assert len(digests) == len(EXAMPLE_NAMES)


def test_canonical_bytes_tell_values_apart() -> None:
    values = [
        *(None, True, 1, 1.0, "1", b"1", (), (1,), ((1,),), {"a": 1}, {1}, datetime.date(2024, 1, 1)),
        *(np.zeros(2), np.zeros((2, 1)), np.zeros(2, np.int64), np.zeros(2, np.float32), -0.0, 0.0, False),
        *(("ab", "c"), ("a", "bc"), {"a": None}, np.zeros(0), np.zeros((0, 2)), RiskMeasure()),
    ]
    assert len({canonical_bytes(value) for value in values}) == len(values)
    assert canonical_bytes({"a": 1, "b": 2}) == canonical_bytes({"b": 2, "a": 1})
    assert canonical_bytes(range(3)) == canonical_bytes((0, 1, 2))
    days = np.array(["2024-01-01"], "datetime64[D]")
    assert canonical_bytes(days) != canonical_bytes(days.astype("datetime64[s]"))
    assert canonical_bytes(np.arange(6)[::2]) == canonical_bytes(np.array([0, 2, 4]))
    for value in (Path("x"), object(), np.array(["x"])):
        with pytest.raises(TypeError, match="canonical"):
            canonical_bytes(value)


def test_dates_of_numpy_have_a_form() -> None:
    day = np.datetime64("2020-01-01")
    assert canonical_bytes(day) == canonical_bytes(np.datetime64("2020-01-01"))
    assert canonical_bytes(day) != canonical_bytes(np.datetime64("2020-01-02"))
    assert canonical_bytes(np.timedelta64(1, "D")) != canonical_bytes(np.timedelta64(1, "h"))


def test_as_many_observations_as_stages_are_not_taken_for_stages(case: Case) -> None:
    days = np.datetime64("2020-01-01") + np.arange(len(case.stages) + 1)
    hydro = np.zeros(len(case.stages), np.int64)
    observed = InflowHistory(hydro, days[:-1], days[1:], np.ones(len(case.stages)))
    scenarios = replace(case.scenarios, recent_observations=observed, inflow_history=observed)
    topics = case_fingerprint(replace(case, scenarios=scenarios)).topics
    for name in ("hydro", "start", "end", "value_m3s"):
        assert not topics[f"scenarios.recent_observations.{name}"].parts
        assert not topics[f"scenarios.inflow_history.{name}"].parts
    assert list(topics["scenarios.inflow_mean_m3s"].parts) == [f"stage {s.id}" for s in case.stages]
