"""The synthetic case that validation is measured with."""

from pathlib import Path

from builders.large_case import large_documents, write_large

from cobre.case import build, check


def test_large_case_is_valid_at_any_size(tmp_path: Path) -> None:
    case, errors, _ = check(write_large(tmp_path, hydros=20, stages=3, buses=3))
    assert errors == []
    assert case is not None
    assert len(case.hydros) == 20
    assert len(case.summary().fits) == 10
    assert build(large_documents(1, 2, buses=2)).summary().generic_rows == 6
