"""A national system and the small cases it taught, with numbers known apart from this package.

They lie in ``shared/systems`` beside the repository, or beside a directory above it.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow.compute as pc
import pytest
from builders.shared_cases import shared_system

import cobre.case
import cobre.sddp
from cobre.case.model import Case


def first_stages(case: Case, count: int) -> Case:
    """Return the case cut to its first stages, in memory."""
    editor = case.edit()
    document = editor["stages.json"]
    document["stages"] = document["stages"][:count]
    document["policy_graph"]["transitions"] = document["policy_graph"]["transitions"][: count - 1]
    for path in list(editor):
        if path.endswith(".parquet"):
            table = editor.table(path)
            if "stage_id" in table.column_names:
                kept = pc.fill_null(pc.less(table["stage_id"], count), True)
                editor.set_table(path, table.filter(kept))
    for path, name in (
        ("scenarios/load_factors.json", "load_factors"),
        ("scenarios/non_controllable_factors.json", "non_controllable_factors"),
    ):
        editor[path][name] = [entry for entry in editor[path][name] if entry["stage_id"] < count]
    return editor.build()


def test_the_national_system_loads_and_trains(tmp_path: Path) -> None:
    case = cobre.case.load(shared_system("brazil-2018"))
    assert (len(case.hydros), len(case.thermals), len(case.stages)) == (152, 132, 120)
    result = cobre.sddp.train(first_stages(case, 3), iterations=1, output=tmp_path)
    (record,) = result.history
    assert record.forward_passes == 2
    assert record.cuts_added == 4
    # Two passes over three stages, the trial points of two stages under 20 openings each, and the bound.
    assert record.lp_solves >= 2 * 3 + 2 * 2 * 20
    # Net rain counted as a violation would cost more than 4e10 in the first two stages alone.
    assert 1e9 < record.lower_bound < record.upper_bound < 1e10


def test_fourteen_stages_of_the_national_system(tmp_path: Path) -> None:
    # The case asks for exports, which would go to the working directory.
    case = cobre.case.load(shared_system("brazil-2018-14-stages"))
    result = cobre.sddp.train(case, output=tmp_path)
    assert len(result.history) == 25
    # From what another run of as many iterations found to the optimum of the extensive form.
    assert 3_563_228_344.0 * (1.0 - 1e-6) <= result.lower_bound <= 3_563_238_822.6 * (1.0 + 1e-9)
    # One scenario: the cost of each forward pass is the cost of a feasible plan.
    assert result.lower_bound <= min(record.upper_bound for record in result.history)


@pytest.mark.parametrize(
    ("name", "optimum"), [("net-rain", 2_623_620.278858949), ("not-yet-built", 4_086_111.111111111)]
)
def test_small_cases_of_the_national_system(name: str, optimum: float) -> None:
    result = cobre.sddp.train(cobre.case.load(shared_system(name)))
    assert result.lower_bound == pytest.approx(optimum, rel=1e-9)
