"""Prompts: ways through the tools that a person may start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Prompt:
    """A prompt.

    Attributes
    ----------
    arguments
        Their descriptions by name.
    required
        Names of those that must be given.
    template
        The text, with ``{name}`` for arguments.
    defaults
        What stands for arguments that are not given.
    """

    name: str
    title: str
    description: str
    arguments: Mapping[str, str]
    required: tuple[str, ...]
    template: str
    defaults: Mapping[str, str]

    def text(self, given: Mapping[str, str]) -> str:
        """Return the text with what is given."""
        # One pass, so that braces in what is given stay what they are.
        return self.template.format_map({**self.defaults, **given})


_ALL: Final = (
    Prompt(
        "setup-study",
        "Set up a study",
        "From a question to a case that is valid and whose size is known.",
        {"case": "The case directory; a new one if it does not exist.", "goal": "What the study is for."},
        ("case",),
        "Set up the study in {case!s}. Goal: {goal}\n\n"
        "1. cobre_list: is the case there? If not, cobre_create_case from the nearest template.\n"
        "2. cobre_inspect_case: entities, stages, uncertainty. cobre_get_config_schema where a key is "
        "unclear.\n"
        "3. cobre_edit_case for each change, first without apply: show me the diff and the problems, then "
        "apply with the case_sha256 that you saw.\n"
        "4. cobre_validate: repair every error, and explain every warning that stays.\n"
        "5. cobre_estimate: time and memory, as the estimates that they are, against the limits of the "
        "server.\n"
        "Do not train before I agree.",
        {"goal": "not given; ask me"},
    ),
    Prompt(
        "diagnose-convergence",
        "Diagnose convergence",
        "Has a training converged, and if not, what to do?",
        {"output": "The output directory of a training."},
        ("output",),
        "Has the training in {output!s} converged?\n\n"
        "1. cobre_query_convergence: the verdict first. State its conclusion, the kind of each bound, and "
        "the gap; call a bound that is not proven an estimate.\n"
        "2. How did the lower bound move in the last tenth of the iterations?\n"
        "3. cobre_query_results on stage_costs and entity_costs: what is paid for? Deficit and violations "
        "that dominate are a fault of the case more often than of the training.\n"
        "4. What to do next: the verdict's next_step, with the iterations it takes (cobre_resume), or a "
        "change of the case. Say what you do not know.",
        {},
    ),
    Prompt(
        "compare-runs",
        "Compare two runs",
        "What changed between two studies, and whether it matters.",
        {"a": "The output directory of the first run.", "b": "That of the second."},
        ("a", "b"),
        "Compare the runs {a!s} (A) and {b!s} (B).\n\n"
        "1. cobre_compare_results. Are they of the same scenarios? In what do the studies differ (notes)?\n"
        "2. The expected cost: is the difference larger than its confidence interval? If not, say so.\n"
        "3. Which components, buses and stages make the difference?\n"
        "4. cobre_explain_price at the bus and stage where prices differ most, in both runs.\n"
        "Report numbers with units, and keep what is proven apart from what is likely.",
        {},
    ),
    Prompt(
        "explain-results",
        "Explain results",
        "What a simulation shows, for people who did not run it.",
        {"output": "The output directory of a simulation.", "question": "What you want to know."},
        ("output",),
        "Explain the results in {output!s}. Question: {question}\n\n"
        "1. cobre_list_scenarios: expected cost with its confidence interval, CVaR, the dearest scenarios.\n"
        "2. cobre_query_results with quantiles: storage of hydros, prices and deficit of buses.\n"
        "3. In a dear scenario: cobre_explain_price where the price is highest, cobre_explain_water_value "
        "for the largest reservoir.\n"
        "4. Answer in plain words, each number with its unit and its table. Do not claim what the tables "
        "do not show.",
        {"question": "what drives the cost?"},
    ),
)

PROMPTS: Final = {prompt.name: prompt for prompt in _ALL}
"""By name."""
