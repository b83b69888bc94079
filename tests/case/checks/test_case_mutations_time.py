"""Files of time, initial state and scenarios, spoilt value by value: problems, never another exception."""

import copy
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from builders.base_case import PATHS
from builders.base_case_time import (
    ANNUAL,
    AR,
    CORRELATION,
    EXTERNAL_LOAD,
    HISTORY,
    NCS_STATS,
    NOISE,
    POST,
    annual,
    coefficients,
    correlation,
    history,
    ncs_stats,
    openings,
    write_rich,
)
from builders.spoilt import judge, mutants, spoilt_tables

from cobre.case import check


@pytest.mark.parametrize("name", [PATHS["config"], PATHS["stages"], PATHS["initial"], POST])
def test_mutations_of_a_rich_case(tmp_path: Path, name: str, whole_sweep: bool) -> None:
    path = write_rich(tmp_path)
    assert check(path)[1] == []
    document = json.loads((path / name).read_text())
    loaded = []
    for changed in mutants(document, whole_sweep):
        (path / name).write_text(json.dumps(changed))
        loaded.append(judge(path, changed) is not None)
    assert sum(loaded) < len(loaded) / 2


def test_mutations_of_correlation(tmp_path: Path, whole_sweep: bool) -> None:
    content = {**correlation(), "schedule": [{"stage_id": 0, "profile_name": "default"}]}
    path = write_rich(tmp_path, {CORRELATION: content})
    for changed in mutants(content, whole_sweep):
        (path / CORRELATION).write_text(json.dumps(changed))
        judge(path, changed)


@pytest.mark.parametrize(
    ("name", "table"),
    [
        (AR, coefficients()),
        (ANNUAL, annual()),
        (HISTORY, history()),
        (NCS_STATS, ncs_stats()),
        (NOISE, openings(4)),
        (EXTERNAL_LOAD, None),
    ],
)
def test_mutations_of_tables(
    tmp_path: Path, name: str, table: dict[str, Any] | None, whole_sweep: bool
) -> None:
    path = write_rich(tmp_path, {} if table is None else {name: copy.deepcopy(table)})
    content = table or pq.read_table(path / name).to_pydict()
    loaded = []
    for changed in spoilt_tables(content, whole_sweep):
        pq.write_table(changed, path / name)
        loaded.append(judge(path, changed) is not None)
    assert sum(loaded) < len(loaded) * 2 / 3
