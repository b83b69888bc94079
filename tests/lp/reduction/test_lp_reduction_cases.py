"""Core forms of the stage LPs of all cases at hand: the same optimum, point and duals as the templates."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from builders.case_files import write_files
from builders.paths import EXAMPLES
from builders.shared_cases import shared_cases, shared_system
from core_check import check
from test_features import FEATURES

import cobre.case
from cobre.lp import StageTemplate, build_templates, scale_templates
from cobre.lp.reduction import core_forms
from cobre.stochastic import build_opening_tree
from cobre.templates.synthetic import build
from cobre.templates.synthetic_options import SIZES

SHARED = (
    "1dtoy",
    "d01-thermal-dispatch",
    "d02-single-hydro",
    "d03-two-hydro-cascade",
    "d04-transmission",
    "d06-fpha-variable-head",
    "d08-evaporation",
    "d09-multi-deficit",
    "d11-water-withdrawal",
    "d13-generic-constraint",
    "d15-non-controllable-source",
    "d16-par1-lag-shift",
    "d19-multi-hydro-par",
    "d20-operational-violations",
    "d24-productivity-override",
    "d25-discount-rate",
    "d26-estimated-par2",
    "d28-decomp-weekly-monthly",
)


def templates_of(case: cobre.case.Case, beyond: float | None = None) -> tuple[StageTemplate, ...]:
    templates = build_templates(case, build_opening_tree(case))
    return scale_templates(templates, **({} if beyond is None else {"beyond": beyond}))[0]


def check_some(templates: tuple[StageTemplate, ...], most: int = 4) -> None:
    random = np.random.default_rng(11)
    solved = 0
    for place, template in enumerate(templates[:: max(1, len(templates) // most)]):
        form, optimal = check(template, random, most_fill=0.0 if place % 2 else math.inf)
        solved += optimal
        assert form.num_rows <= template.num_rows + template.num_states
        assert form.num_cols <= template.num_cols
    assert solved > 0


@pytest.mark.parametrize(
    "path", sorted(path.parent for path in EXAMPLES.glob("*/config.json")), ids=lambda p: p.name
)
def test_examples(path: Path) -> None:
    check_some(templates_of(cobre.case.load(path)))


@pytest.mark.parametrize("name", SHARED)
def test_shared_cases(name: str) -> None:
    check_some(templates_of(cobre.case.load(shared_cases() / name)))


@pytest.mark.parametrize("name", FEATURES)
def test_features(tmp_path: Path, name: str) -> None:
    # Scaled and unscaled LPs in turn.
    case = cobre.case.load(write_files(tmp_path, FEATURES[name]().files))
    check_some(templates_of(case, beyond=0.0 if len(name) % 2 else None), most=3)


def test_synthetic_case_with_planes() -> None:
    check_some(templates_of(cobre.case.build(build(SIZES["mid"]))), most=1)


def test_national_system_of_14_stages() -> None:
    check_some(templates_of(cobre.case.load(shared_system("brazil-2018-14-stages"))), most=2)


@pytest.mark.sweep
def test_national_system(record_property: Callable[[str, object], None]) -> None:
    templates = templates_of(cobre.case.load(shared_system("brazil-2018")))
    begin = time.process_time()
    forms = core_forms(templates)
    record_property("cpu_seconds", time.process_time() - begin)
    form, template = forms[0], templates[0]
    sizes = (template.num_rows, template.num_cols, form.num_rows, form.num_cols, len(form.row_value))
    record_property("sizes", sizes)
    # Half of the rows carry past inflows, and two thirds of the columns are in one row.
    assert form.num_rows <= template.num_rows // 2
    assert form.num_cols <= template.num_cols // 2
    check_some(templates)
