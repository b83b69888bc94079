"""Which engine solves the LPs of a node."""

import pytest
from builders.studies import cascade_study

from cobre.lp import StateLayout, build_templates, scale_templates
from cobre.lp.engines import choice
from cobre.stochastic import build_opening_tree


@pytest.fixture(scope="module")
def templates():
    case = cascade_study(hydros=2, stages=3)
    layout = StateLayout(case)
    tree = build_opening_tree(case, model=layout.inflow)
    return scale_templates(build_templates(case, tree, layout))[0]


@pytest.mark.parametrize(("asked", "used"), [("auto", "own"), ("own", "own"), ("highs", "highs")])
def test_the_engine_asked_for_is_used(templates, asked, used):
    forms = choice.chosen_forms(asked, templates)
    assert len(forms) == len(templates)
    assert choice.used_engine(forms) == used


def test_no_core_form_is_made_for_highs(templates, monkeypatch):
    monkeypatch.delattr(choice, "core_forms")
    assert choice.chosen_forms("highs", templates) == (None,) * len(templates)


def test_auto_goes_by_the_sizes_of_each_lp(templates, monkeypatch):
    forms = choice.chosen_forms("own", templates)
    # The last stage has no future, so no rows for the state that it leaves.
    sizes = [form.num_rows for form in forms]
    monkeypatch.setattr(choice, "_MOST_ROWS", sizes[0] - 1)
    chosen = choice.chosen_forms("auto", templates)
    assert [form is not None for form in chosen] == [rows < sizes[0] for rows in sizes]
    assert choice.used_engine((None, forms[1])) == "both"
    assert None not in choice.chosen_forms("own", templates)
