"""Which cuts of a policy still bound the future cost when the data of the study change, and why.

A cut at the end of stage t bounds what stages t + 1, ... cost, whatever the state. So it holds

* where only what cuts do not depend on has changed (initial storage, forward passes, cut selection);
* where only stages up to t have changed;
* where the change makes no later stage cheaper at any state: the new cost is then above the old one, which is
  above the cut. Fingerprints show that something differs, not in which direction, so that is left to the
  user.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from cobre.errors import Problem
from cobre.policy.fingerprint import Fingerprint, differences

_HARMLESS: Final = (
    "hydros.initial_storage_hm3",
    "solver",
    *(f"training.{name}" for name in ("cost_scale_factor", "cut_selection", "enumerated")),
    *(f"training.{name}" for name in ("forward_passes", "pass_schedule")),
)
"""Topics of a fingerprint, or their beginnings, that the validity of cuts does not depend on."""

_OF_ITS_STAGE: Final = ("stage_data.", "production", "evaporation", "generic", "scenarios.load_mean_mw")
"""Topics whose entry of a stage enters the LP of that stage alone."""

_RANGES: Final = ("stage_data.storage_min_hm3", "stage_data.storage_max_hm3")
"""The range of states for which cuts of a stage are made."""

_COSTS: Final = (
    "buses.deficit_segments",
    *(f"stage_data.{name}" for name in ("thermal_cost", "hydro_penalty", "exchange_cost", "excess_cost")),
)
_LOADS: Final = ("scenarios.load_mean_mw", "stage_data.load_factor")
_NOISE: Final = (
    *("scenarios.", "training.tree_seed", "training.source", "training.inflow_method", "estimation"),
    *("stages.num_openings", "stages.sampling_method", "stages.season_id", "seasons", "graph.transitions"),
)
_LIMIT_ENDS: Final = (
    *("_min_mw", "_max_mw", "_min_m3s", "_max_m3s", "_min_hm3", "_max_hm3", "_direct_mw", "_reverse_mw"),
)

_RULES: Final = (
    (_HARMLESS, "all cuts hold, since they do not depend on it"),
    (
        _LOADS,
        "cuts hold where loads only grew and power in excess costs nothing; where a load fell they may "
        "lie above "
        "the future cost",
    ),
    (_COSTS, "cuts hold where costs only rose; where one fell they may lie above the future cost"),
    (
        ("stage_data.contract_price",),
        "cuts hold where imports only became dearer and exports only earn less; else they may lie above "
        "the future "
        "cost",
    ),
    (
        ("stages.discount_factor",),
        "cuts hold where discount rates only fell and nothing earns money; else they may lie above the "
        "future cost",
    ),
    (
        ("stages.risk", "graph.root_risk"),
        "cuts hold where the measure only became more averse to risk; else they may lie above the future "
        "cost",
    ),
    (
        ("boundary",),
        "cuts hold where the end of the study is valued no lower at any state; else they may lie above "
        "the future "
        "cost",
    ),
    (
        _NOISE,
        "the openings differ: cuts bound the expected cost over the old ones, and say nothing certain of "
        "the new ones",
    ),
)
_LIMITS: Final = (
    "cuts hold where limits only became tighter; where one was loosened they may lie above the future cost"
)
_OTHERWISE: Final = "cuts hold only where the change makes no later stage cheaper at any state"


def changes_of_study(
    stored: Fingerprint, study: Fingerprint, stage_ids: Sequence[int]
) -> tuple[list[Problem], bool]:
    """Return what differs, with what it means for cuts, and whether all of them hold for certain.

    Parameters
    ----------
    stored, study
        Of the study that the cuts were made for, and of the one that would start with them.
    stage_ids
        Declared ids of the stages of the latter, in their order.
    """
    found, certain = [], True
    for problem in differences(stored, study):
        topic = str(problem.context["topic"])
        last = last_changed_stage(topic, stored, study, stage_ids)
        rule = rule_of(topic)
        if topic.startswith(_HARMLESS):
            pass
        elif last == 0:
            rule = "all cuts hold, since they value what comes after the first stage, and only that differs"
        else:
            certain = False
            if last is not None and last < len(stage_ids) - 1:
                rule += f"; those of stage {stage_ids[last]} and later hold in any case"
        found.append(replace(problem, suggestion=rule))
    return found, certain


def rule_of(topic: str) -> str:
    """Return when cuts hold although a topic differs.

    >>> rule_of("stage_data.thermal_max_mw")
    'cuts hold where limits only became tighter; where one was loosened they may lie above the future cost'
    """
    for beginnings, rule in _RULES:
        if topic.startswith(beginnings):
            return rule
    if topic.startswith("stage_data.") and topic.endswith(_LIMIT_ENDS):
        return _LIMITS
    return _OTHERWISE


def last_changed_stage(
    topic: str, stored: Fingerprint, study: Fingerprint, stage_ids: Sequence[int]
) -> int | None:
    """Return the position of the last stage at which a topic differs; ``None``: not at stages alone."""
    if not topic.startswith(_OF_ITS_STAGE) or topic in _RANGES:
        return None
    before, after = stored.topics.get(topic), study.topics.get(topic)
    labels = [f"stage {number}" for number in stage_ids]
    if before is None or after is None or list(before.parts) != labels or list(after.parts) != labels:
        return None
    changed = [place for place, label in enumerate(labels) if before.parts[label] != after.parts[label]]
    return max(changed, default=None)
