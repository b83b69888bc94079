"""``cobre policy``: show, convert and compare stored policies."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from cobre._version import __version__
from cobre.cli.exit_codes import ExitCode
from cobre.cli.outcome import Outcome
from cobre.errors import OutputError, Problem, ValidationError
from cobre.machine import check_process

if TYPE_CHECKING:
    from rich.console import Console

    from cobre.case.model import Case
    from cobre.policy import Policy
    from cobre.policy.comparison import Difference
    from cobre.policy.summary import NodeSummary, PolicySummary

_NOT_LOADED = Problem(
    "NoReaderVersion",
    f"the files give cobre {__version__} as their writer; cobre-rs loads only policies of its own version",
    {"argument": "--for-version"},
    "name the version of cobre-rs that shall load them, such as --for-version 0.18.0",
)
_SHOWN_NODES = 60
_SHOWN_COMPONENTS = 12


def show_command(path: Path, outcome: Outcome) -> None:
    """Carry out ``cobre policy show``."""
    check_process()
    from cobre.policy.summary import summarise

    with _waiting(f"reading {path}"):
        summary = summarise(path)
    outcome.data = summary.as_dict()
    outcome.summary = {
        "nodes": len(summary.nodes),
        "cuts": sum(node.cuts for node in summary.nodes),
        "active_cuts": sum(node.active for node in summary.nodes),
    }
    outcome.show = lambda console: _show_summary(console, summary)


def convert_command(
    path: Path,
    target: Path,
    to: str,
    case_path: Path | None,
    outcome: Outcome,
    *,
    force: bool,
    for_version: str | None = None,
) -> None:
    """Carry out ``cobre policy convert``.

    Parameters
    ----------
    for_version
        Version of cobre-rs that shall load what is written.
    """
    check_process()
    from cobre.policy import format_of, write_flatbuffers, write_policy_directory

    _check_target(path, target, force)
    case = None if case_path is None else _loaded(case_path, outcome)
    if outcome.errors:
        return
    source = format_of(path)
    if case is None and "cobre-rs" in (source, to):
        raise _case_needed(f"converting {path} from {source} to {to}")
    with _waiting(f"reading {path}"):
        policy = _read(path, case)
    if source == "cobre" and case is not None:
        outcome.warnings += _other_study(policy, case)
    with _waiting(f"writing {target}"):
        if to == "cobre":
            write_policy_directory(target, policy)
        else:
            assert case is not None
            write_flatbuffers(target, policy, case, software_version=for_version or __version__)
            outcome.warnings += [] if for_version else [_NOT_LOADED]
    cuts = sum(map(len, policy.cuts))
    outcome.data = {
        "source": str(path.absolute()),
        "source_format": source,
        "target": str(target.absolute()),
        "target_format": to,
        "policy_sha256": policy.sha256(),
        "nodes": len(policy.nodes),
        "cuts": cuts,
        "lower_bound_kind": policy.lower_bound_kind,
    }
    outcome.show = lambda console: console.print(
        f"{target}: {cuts} cuts of {len(policy.nodes)} nodes, in the format of {to}", soft_wrap=True
    )


def compare_command(one: Path, other: Path, case_path: Path | None, outcome: Outcome) -> None:
    """Carry out ``cobre policy compare``."""
    check_process()
    from cobre.policy import format_of
    from cobre.policy.comparison import policy_differences

    case = None if case_path is None else _loaded(case_path, outcome)
    if outcome.errors:
        return
    for path in (one, other):
        if case is None and format_of(path) == "cobre-rs":
            raise _case_needed(f"comparing {path}, which is of cobre-rs,")
    with _waiting(f"comparing {one} with {other}"):
        policies = _read(one, case), _read(other, case)
        found = policy_differences(*policies)
    topics = sorted({difference.topic for difference in found})
    digests = [policy.sha256() for policy in policies]
    outcome.data = {
        "equal": not found,
        "same_cuts": digests[0] == digests[1],
        "paths": [str(one.absolute()), str(other.absolute())],
        "policy_sha256": digests,
        "differences": [{"topic": item.topic, "message": item.message} for item in found],
    }
    outcome.summary = {"differences": len(found), "topics": topics}
    outcome.show = lambda console: _show_comparison(console, (one, other), digests, found)
    if found:
        message = f"{one} and {other} differ in {', '.join(topics)}"
        outcome.fail(ExitCode.DIFFERENT, [Problem("PoliciesDiffer", message, {"topics": topics})])


def _check_target(path: Path, target: Path, force: bool) -> None:
    """Refuse a place that holds something, before anything is read."""
    if target.absolute() == path.absolute():
        problem = Problem(
            "InvalidValue",
            "OUT is DIR itself",
            {"argument": "OUT", "value": str(target)},
            "choose another OUT",
        )
        raise ValidationError([problem], source="arguments")
    taken = os.path.lexists(target) and not (target.is_dir() and not any(target.iterdir()))
    if taken and not force:
        raise OutputError(
            "OutputProtected",
            f"{target} holds something already",
            {"file": str(target)},
            "choose another directory, or replace a policy that it holds: --force",
        )


def _loaded(case_path: Path, outcome: Outcome) -> Case | None:
    """Load and check a case; ``None``, with the errors in the outcome, when it is wrong."""
    from cobre.case import check

    case, errors, warnings = check(case_path)
    outcome.warnings += warnings
    if errors or case is None:
        outcome.fail(ExitCode.INPUT, errors)
        return None
    return case


def _read(path: Path, case: Case | None) -> Policy:
    from cobre.policy import format_of, from_flatbuffers, read_policy_directory, state_entries

    if format_of(path) == "cobre":
        return read_policy_directory(path)
    from cobre.lp import StateLayout  # loads the compiler

    assert case is not None
    return from_flatbuffers(path, case, state_entries(StateLayout(case)))


def _other_study(policy: Policy, case: Case) -> list[Problem]:
    """Return warnings of what the case differs in from the study of a policy that holds its study."""
    from cobre.policy import differences, study_fingerprint

    if not policy.fingerprint.topics:
        return []
    return differences(policy.fingerprint, study_fingerprint(case), ("the policy", "the case"))


def _case_needed(what: str) -> ValidationError:
    problem = Problem(
        "MissingArgument",
        f"{what} needs the case: files of cobre-rs hold neither the dates of stages nor the study's state",
        {"argument": "--case"},
        "add --case CASE, the directory of the case that the policy was trained for",
    )
    return ValidationError([problem], source="arguments")


@contextmanager
def _waiting(text: str) -> Iterator[None]:
    """Show on a terminal that something takes its time."""
    from rich.console import Console

    console = Console(stderr=True, highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        yield
        return
    with console.status(text):
        yield


def _show_summary(console: Console, summary: PolicySummary) -> None:
    from cobre.cli.human import show_table

    own = summary.format == "cobre"
    rows = {
        "directory": str(summary.path),
        "written": f"{summary.created_at} by {summary.written_by}",
        "digest": summary.digest,
        "study": _study(summary),
        "stages": _stages(summary.nodes),
        "training": f"iterations {summary.iterations}, passes {summary.forward_passes}, seed {summary.seed}",
        "lower bound": _cost(summary.lower_bound, summary.lower_bound_kind),
        ("mean cost" if own else "upper bound"): _cost(
            summary.upper_bound,
            "of the last iteration's forward passes" if own else "the best, as its files state",
        ),
        "state": _shortened(summary.components, _SHOWN_COMPONENTS) or "none",
    }
    if summary.started_from is not None:
        rows["started from"] = f"the cuts of policy {summary.started_from}"
    show_table(console, f"{summary.kind.capitalize()} of {summary.format}", rows)
    shown = summary.nodes[:_SHOWN_NODES]
    more = f", the first {len(shown)} of {len(summary.nodes)}" if len(shown) < len(summary.nodes) else ""
    show_table(console, f"Cuts{more}", {_node(node): _cuts(node) for node in shown})


def _cost(value: float | None, kind: str) -> str:
    return "unknown" if value is None else f"{value:,.2f} $ ({kind})"


def _study(summary: PolicySummary) -> str:
    if summary.study is None:
        return "not held by the files"
    counts = ", ".join(f"{name.replace('_', ' ')} {count}" for name, count in summary.entities.items())
    return summary.study + (f" ({counts})" if counts else "")


def _stages(nodes: tuple[NodeSummary, ...]) -> str:
    starts = [node.start_date for node in nodes if node.start_date is not None]
    ends = [node.end_date for node in nodes if node.end_date is not None]
    stages = len({node.stage_id for node in nodes})
    text = f"{stages}" if stages == len(nodes) else f"{stages}, {len(nodes)} nodes"
    if ends:
        text += f", {min(starts)} to {max(ends)}" if starts else f", ending {min(ends)} to {max(ends)}"
    return text


def _node(node: NodeSummary) -> str:
    name = f"stage {node.stage_id}" if node.stage_id == node.id else f"node {node.id}, stage {node.stage_id}"
    return name + (f", ends {node.end_date}" if node.end_date is not None else "")


def _cuts(node: NodeSummary) -> str:
    parts = (
        [f"{node.cuts} cuts", f"{node.active} active"] if node.active != node.cuts else [f"{node.cuts} cuts"]
    )
    if node.loaded:
        parts.append(f"{node.loaded} of another policy")
    if node.future_cost_floor is not None:
        parts.append(f"future cost at least {node.future_cost_floor:.6g} $")
    return ", ".join(parts)


def _shortened(items: tuple[str, ...], most: int) -> str:
    more = f" and {len(items) - most} more" if len(items) > most else ""
    return ", ".join(items[:most]) + more


def _show_comparison(
    console: Console, paths: tuple[Path, Path], digests: list[str], found: list[Difference]
) -> None:
    from cobre.cli.human import show_table

    same = digests[0] == digests[1]
    rows = {name: f"{path}  {digest}" for name, path, digest in zip("AB", paths, digests, strict=True)}
    rows["cuts"] = "the same to the last bit" if same else "different"
    show_table(console, "Different policies" if found else "The same policy", rows)
    for item in found:
        console.print(f"  {item.topic}: {item.message}", soft_wrap=True)
