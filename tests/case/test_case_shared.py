"""The published cases, where their folder lies beside the repository."""

from pathlib import Path

import pytest
from builders.shared_cases import shared_cases

from cobre.case import load


def folder_of(prefix: str) -> Path:
    found = sorted(shared_cases().glob(f"{prefix}*"))
    assert found, prefix
    return found[0]


@pytest.mark.parametrize(
    "prefix",
    [
        "d01",
        "d02",
        "d03",
        "d04",
        "d06",
        "d08",
        "d09",
        "d11",
        "d13",
        "d15",
        "d16",
        "d19",
        "d20",
        "d24",
        "d25",
        "d26",
        "d28",
        "1dtoy",
    ],
)
def test_supported_cases_load(prefix: str) -> None:
    case = load(folder_of(prefix))
    assert len(case.stages) >= 2
    assert case.buses


def test_values_of_a_published_case() -> None:
    case = load(folder_of("d24"))
    assert [models[0].productivity_mw_per_m3s for models in case.production] == [0.8, 1.2]
    case = load(folder_of("d06"))
    assert [models[0].planes.tolist() for models in case.production] == [
        [[0.0, 0.002, 0.8, 0.0], [0.0, 0.001, 0.95, 0.0]]
    ] * 2
    case = load(folder_of("d08"))
    # 100 mm, 1 km2 and 0.005 km2/hm3 at 100 hm3, in months of 744 and 696 hours.
    for models, hours in zip(case.evaporation, (744.0, 696.0), strict=True):
        assert models[0] is not None
        assert models[0].slope_m3s_per_hm3 == pytest.approx(0.5 / (3.6 * hours), rel=1e-14)
        assert models[0].intercept_m3s == pytest.approx(50.0 / (3.6 * hours), rel=1e-14)
    case = load(folder_of("1dtoy"))
    assert case.training.iteration_limit == 128
    assert case.scenarios.inflow_std_m3s.tolist() == [[10.0]] * 4
    assert [stage.num_openings for stage in case.stages] == [10] * 4
