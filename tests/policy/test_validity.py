"""Which cuts hold when data change: by fingerprints of a study and of its variants."""

import re
from collections.abc import Callable

import pyarrow as pa
import pytest
from builders.paths import EXAMPLES

import cobre
from cobre.case.format.editing import CaseEditor
from cobre.policy import case_fingerprint
from cobre.policy.validity import changes_of_study

LOADS = "scenarios/load_seasonal_stats.parquet"
BOUNDS = "constraints/thermal_bounds.parquet"


def load_at(*stages: int) -> Callable[[CaseEditor], None]:
    def change(editor: CaseEditor) -> None:
        table = editor.table(LOADS)
        rows = [
            row | {"mean_mw": row["mean_mw"] + 10.0 * (row["stage_id"] in stages)}
            for row in table.to_pylist()
        ]
        editor.set_table(LOADS, pa.Table.from_pylist(rows, schema=table.schema))

    return change


def cost(editor: CaseEditor) -> None:
    editor["system/thermals.json"]["thermals"][0]["cost_per_mwh"] += 1.0


def limit(editor: CaseEditor) -> None:
    editor["system/thermals.json"]["thermals"][0]["generation"]["max_mw"] += 1.0


def storage(editor: CaseEditor) -> None:
    editor["initial_conditions.json"]["storage"][0]["value_hm3"] += 1.0


def seed(editor: CaseEditor) -> None:
    editor["config.json"]["training"]["tree_seed"] = 7


CHANGES = [
    (load_at(0), True, "only that differs"),
    (load_at(0, 2), False, "where loads only grew.*those of stage 2 and later hold in any case"),
    (load_at(3), False, "where loads only grew.*above the future cost$"),
    (cost, False, "where costs only rose"),
    (limit, False, "where limits only became tighter"),
    (storage, True, "all cuts hold, since they do not depend on it"),
    (seed, False, "the openings differ"),
]


@pytest.mark.parametrize(("change", "certain", "text"), CHANGES)
def test_what_holds(change: Callable[[CaseEditor], None], certain: bool, text: str) -> None:
    case = cobre.load_case(EXAMPLES / "random-inflow")
    editor = case.edit()
    change(editor)
    other = editor.build()
    found, holds = changes_of_study(
        case_fingerprint(case), case_fingerprint(other), [stage.id for stage in other.stages]
    )
    assert holds is certain
    assert found
    assert all(re.search(text, str(problem.suggestion)) for problem in found)


def test_the_first_stage_alone_leaves_a_bound(tmp_path) -> None:
    """More load in the first stage: cuts of the old study lie below the optimum of the new one."""
    case = cobre.load_case(EXAMPLES / "random-inflow")
    cobre.train(case, iterations=12).policy.save(tmp_path / "policy")
    editor = case.edit()
    load_at(0)(editor)
    other = editor.build()
    warm = cobre.train(other, iterations=1, warm_start=tmp_path / "policy")
    fresh = cobre.train(other, iterations=100)  # converged: its deterministic upper bound is 1e-13 above
    assert warm.lower_bound_kind == "bound"
    assert warm.lower_bound <= fresh.lower_bound * (1.0 + 1e-9)
    assert warm.lower_bound > 0.9 * fresh.lower_bound
