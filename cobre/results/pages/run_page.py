"""``report.html``: what a run was and what it found, as one page to read and to show.

Made from the files of an output directory alone; with the case also how well the inflow model fits.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from cobre.errors import Problem, ValidationError
from cobre.results.pages import simulation_sections as simulation
from cobre.results.pages import training_sections as training
from cobre.results.pages.inflow_section import with_stated_inflow
from cobre.results.pages.page import Page, Section, banner, escape, tiles, write_page
from cobre.results.pages.plotly_code import plotly_code
from cobre.results.pages.policy_section import policy_section
from cobre.results.pages.run_data import RunData
from cobre.results.pages.texts import energy, money, percent, words
from cobre.results.reading import output_of
from cobre.rules.bounds import LEAST_SAMPLE, SampleCost, simulated_gap_percent

if TYPE_CHECKING:
    from cobre.case.model import Case

PAGE = "report.html"

_ROUNDING_PERCENT = 1e-3
_MANY_VIOLATIONS = 0.1
_HEADS = {
    "optimal": ("good", "The policy is optimal"),
    "near_optimal": ("good", "The policy is nearly optimal"),
    "settled": ("", "The lower bound has settled; no upper bound proves how far the optimum is"),
    "unsettled": ("warn", "Training has not converged: more iterations will improve the policy"),
}


def report(directory: Path | str, path: Path | str | None = None, *, case: Path | str | None = None) -> Path:
    """Write the report of a run: one HTML page that opens anywhere, without a network.

    Parameters
    ----------
    directory
        Output directory of a run, or a case that has one; it may hold a trained policy, a simulation, both,
        or only what ``cobre stochastic`` wrote.
    path
        Where the page goes; ``report.html`` in the directory unless given.
    case
        Directory of the study, for how well its inflow model fits. Unless given, the directory around the
        output directory where that holds the study that was run.

    Returns
    -------
    pathlib.Path
        The page.

    Raises
    ------
    OutputError
        When there are no results, they cannot be read, or the page cannot be written.
    ValidationError
        When the case cannot be loaded, or is another study than the one that was run.
    ReportExtraError
        When plotly is not installed.
    """
    directory = output_of(Path(directory))
    target = directory / PAGE if path is None else Path(path)
    plotly_code(target.name)  # before any work: it may be missing
    run = RunData(directory)
    write_page(target, report_page(run, study_of(run, None if case is None else Path(case))))
    return target


def study_of(run: RunData, path: Path | None) -> Case | None:
    """Return the study of a run: the given one, or the one around its output directory if it is that.

    Raises
    ------
    ValidationError
        When the given case cannot be loaded, or is another study.
    """
    around = run.directory.absolute().parent
    if path is None and not (around / "config.json").is_file():
        return None
    from cobre.case import load
    from cobre.policy import differences, study_fingerprint

    try:
        case = load(around if path is None else path)
        policy = run.policy
        found = [] if policy is None else differences(policy.fingerprint, study_fingerprint(case))
        # How long and with what training went on is no part of how inflow behaves.
        found = [problem for problem in found if _of_inflow(problem)]
        if found:
            raise ValidationError(found, source=f"{case.path}, which is not the study of {run.directory}")
    except ValidationError:
        if path is None:
            return None
        raise
    return case


def _of_inflow(problem: Problem) -> bool:
    topic = str(problem.context.get("topic", ""))
    return topic.startswith(("hydros", "scenarios", "seasons", "stages", "estimation"))


def report_page(run: RunData, case: Case | None = None) -> Page:
    """Return the page of a run."""
    sections: list[Section | None] = []
    simulated = run.simulated
    if run.training is not None:
        sections.append(training.convergence_section(run))
    if simulated is None:
        sections.append(training.training_cost_section(run))
    else:
        sections += [
            simulation.cost_section(run, simulated),
            simulation.deficit_section(simulated),
            simulation.storage_section(simulated),
            simulation.generation_section(simulated),
            simulation.price_section(simulated),
        ]
    sections.append(policy_section(run))
    inflow = None if simulated is None else simulation.inflow_section(simulated)
    if case is not None:
        inflow = _with_fit(inflow, case)
    elif run.has_stochastic:
        inflow = with_stated_inflow(inflow, run)
    sections.append(inflow)
    sections += [training.timing_section(run), training.solver_section(run), training.about_section(run)]
    name = case.path.name if case is not None else _name(run.directory)
    what = "Policy" if run.training is not None else "Uncertainty"
    return Page(
        title=f"{'Operation plan' if simulated is not None else what} of {name}",
        lead=_lead(run),
        sections=[section for section in sections if section is not None],
        top=_top(run),
    )


def _with_fit(inflow: Section | None, case: Case) -> Section:
    """Return the section of inflow with what ``cobre stochastic`` shows."""
    from cobre.results.pages.stochastic_page import fit_parts

    section = inflow or Section("inflow", "Inflow")
    section.parts += fit_parts(case.stochastic())
    return section


def _name(directory: Path) -> str:
    directory = directory.absolute()
    return directory.parent.name if directory.name == "output" else directory.name.removesuffix("-output")


def _lead(run: RunData) -> str:
    parts = []
    if run.stages:
        first, last = run.stages[0], run.stages[-1]
        parts.append(f"{len(run.stages)} stages from {first.start.isoformat()} to {last.end.isoformat()}")
    if run.training is not None:
        parts.append(f"{run.training.get('iterations', {}).get('completed', '?')} iterations of training")
    if run.simulated is not None:
        parts.append(f"{run.simulated.scenarios:,} simulated scenarios")
    found = run.simulation or run.training or {}
    completed = str(found.get("completed_at", ""))[:10]
    if completed:
        parts.append(f"run on {completed}")
    return escape(" · ".join(parts))


def _top(run: RunData) -> str:
    """Return the verdict, the most important numbers, and what is missing."""
    numbers = _tiles(run)
    parts = [_verdict(run), tiles(numbers) if numbers else ""]
    if run.simulated is None and (run.training is not None or run.simulation is not None):
        parts.append(_not_simulated(run))
    if run.simulated is not None and not run.results.simulates_policy:
        parts.append(_other_policy(run))
    if run.training is None:
        parts.append(
            banner(
                "",
                "This directory holds no training",
                ["<code>cobre train</code> writes bounds, the verdict and the time of ranks."],
            )
        )
    return f"<section aria-labelledby='verdict'>{''.join(parts)}</section>"


def _not_simulated(run: RunData) -> str:
    output = escape(run.directory)
    if run.simulation is not None:
        head = "The simulation is not complete"
        text = f"Go on with <code>cobre simulate CASE --output {output}</code>, then make this page again."
    else:
        head = "The policy has not been simulated"
        text = (
            f"<code>cobre simulate CASE --output {output}</code> adds storage, generation, marginal costs "
            "and the "
            "chance of a deficit; then make this page again."
        )
    return banner("", head, [text])


def _other_policy(run: RunData) -> str:
    command = f"<code>cobre simulate CASE --output {escape(run.directory)}</code>"
    return banner(
        "warn",
        "The simulation is not of this policy",
        [
            "Training went on after it, or it was given another policy: cost, storage, generation, marginal "
            f"costs and deficit below are of that one. {command}, then make this page again."
        ],
    )


def _verdict(run: RunData) -> str:
    if run.training is None:
        return "<h2 id='verdict'>Overview</h2>"
    verdict: dict[str, Any] = run.training.get("verdict") or {}
    heading = "<h2 id='verdict'>Verdict</h2>"
    lines = [*(escape(text) for text in _verdict_lines(run, verdict)), *_next_line(run, verdict)]
    kind, head = _HEADS.get(str(verdict.get("conclusion")), ("", "Training is complete"))
    gap = verdict.get("gap_percent")
    if verdict.get("conclusion") == "settled" and gap is not None and gap >= 0.0:
        head = f"The lower bound has settled; the optimum is known to within {percent(gap)}"
    if verdict.get("next_step") == "check_case":
        kind, head = "warn", f"{head}, but violations and deficit dominate its cost"
    if run.training.get("status") == "partial":
        kind, head = "warn", "Training was stopped before its end"
    return heading + banner(kind, head, lines)


def _verdict_lines(run: RunData, verdict: dict[str, Any]) -> list[str]:
    assert run.training is not None
    lines = []
    bound = training.final_bound(run)
    gap, likely = verdict.get("gap_percent"), verdict.get("likely_gap_percent")
    upper = training.deterministic_upper_bound(run)
    if bound is not None:
        kind = f" ({verdict['cost_kind']} cost)" if "cost_kind" in verdict else ""
        between = "" if upper is None else f"the optimum lies between it and {money(upper)}"
        if verdict.get("conclusion") == "optimal":
            between = "it is the optimum"
        lines.append(f"{bound[1].capitalize()}: {bound[0]}{kind}" + (f"; {between}." if between else "."))
    if gap is not None and gap < -_ROUNDING_PERCENT:
        lines.append("The upper bound lies below the lower one: what it assumes does not hold.")
    elif gap is not None and verdict.get("conclusion") != "settled":  # then it is the head
        within = percent(max(gap, 0.0)).replace("<", "less than")
        lines.append(f"The optimum is known to within {within}: both bounds are proven.")
    exact, simulated = verdict.get("policy_gap_percent"), _simulated_gap(run, verdict)
    if simulated is not None:
        lines.append(
            f"The simulated policy costs at most {percent(max(simulated[0], 0.0))} more than the optimum"
            + (": all scenarios were simulated." if simulated[1] else ", with 95 % confidence.")
        )
    elif exact is not None:
        lines.append(f"The policy costs at most {percent(max(exact, 0.0))} more than the optimum.")
    elif likely is not None:
        most = percent(max(likely, 0.0))
        lines.append(f"With 95 % confidence the policy costs at most {most} more than the optimum.")
    if gap is None and upper is None:
        why = verdict.get("upper_bound_note") or run.training.get("bounds", {}).get(
            "deterministic_upper_bound_unavailable"
        )
        lines.append("No upper bound is known" + (f": {why}." if why else "."))
    lines += [f"The upper bound assumes {text}." for text in verdict.get("upper_bound_assumes") or ()]
    sample = verdict.get("sample")
    if sample is not None:
        since = f"{sample['passes']:,} forward passes since iteration {sample['first_iteration']}"
        half = f" ± {money(sample['ci_95'])} (95 %)" if sample.get("ci_95") is not None else ""
        mean = "; a mean, not comparable with a risk-adjusted cost" if "risk" in verdict["cost_kind"] else ""
        lines.append(f"Sample cost {money(sample['mean'])}{half}, of {since}{mean}.")
    move = verdict.get("bound_move_percent")
    if move is not None:
        name = "estimate" if verdict.get("lower_bound_kind") == "estimate" else "lower bound"
        count = verdict.get("bound_move_iterations")
        lines.append(
            f"The {name} moved {percent(move)} over the last {count} iteration{'' if count == 1 else 's'}."
        )
    share = verdict.get("violation_share")
    if share is not None and share > _MANY_VIOLATIONS:
        lines.append(
            f"{percent(100.0 * share)} of the cost pays for violations and deficit: look at the case."
        )
    reason = run.training.get("convergence", {}).get("termination_reason")
    if not verdict and reason:
        lines.append(f"Training ended by: {words(str(reason))}.")
    return lines


def _next_line(run: RunData, verdict: dict[str, Any]) -> list[str]:
    """Return what to do next, as HTML; nothing where it was done."""
    again = "train" if run.simulated is None else "run"
    study = f"CASE --output {run.directory}"
    steps = {
        "simulate": ("simulate the policy", f"cobre simulate {study}"),
        "train_on": (
            "train on",
            f"cobre {again} {study} --resume --iterations {verdict.get('next_iterations')}",
        ),
        "check_case": ("check the case, as violations dominate its cost", "cobre validate CASE"),
    }
    step = steps.get(str(verdict.get("next_step")))
    if step is None or (verdict["next_step"] == "simulate" and run.simulated is not None):
        return []
    return [f"Next: {step[0]}: <code>{escape(step[1])}</code>"]


def _simulated_gap(run: RunData, verdict: dict[str, Any]) -> tuple[float, bool] | None:
    """Return what the simulated policy costs above the optimum at most, in percent, and if for certain."""
    found = run.simulation
    if found is None or run.simulated is None or not run.results.simulates_policy:
        return None
    source, cost = found.get("study", {}).get("source", {}), found.get("cost", {})
    in_sample = {source.get(name) for name in ("inflow", "load", "ncs")} == {"in_sample"}
    bounded = verdict.get("lower_bound_kind") == "bound" and verdict.get("cost_kind") == "expected"
    if not (in_sample and bounded) or cost.get("terminal_value"):
        return None
    exact = cost.get("kind") == "exact"
    sample = SampleCost(cost["mean_cost"], cost["std_cost"], run.simulated.scenarios, 1)
    gap = simulated_gap_percent(verdict["lower_bound"], sample, exact=exact)
    return None if gap is None else (gap, exact)


def _tiles(run: RunData) -> list[tuple[str, str, str]]:
    found: list[tuple[str, str, str]] = []
    if run.simulated is not None and run.simulation is not None:
        cost = run.simulation.get("cost", {})
        mean, half = cost.get("mean_cost"), cost.get("ci_95")
        if mean is not None:
            few = run.simulated.scenarios < LEAST_SAMPLE
            sampled = f"mean of {run.simulated.scenarios} scenarios" if few else f"± {money(half)} (95 %)"
            note = sampled if half else "in every scenario" if cost.get("kind") == "sample" else "exact"
            found.append(("Expected cost, simulated", money(mean), note))
        if cost.get("cvar_95") is not None:
            found.append(("Mean of the dearest 5 %", money(cost["cvar_95"]), "CVaR 95 %"))
        deficit = run.simulation.get("deficit", {})
        if deficit.get("deficit_probability") is not None:
            found.append(
                (
                    "Scenarios with deficit",
                    percent(100.0 * deficit["deficit_probability"]),
                    "in any stage and bus",
                )
            )
            found.append(
                ("Expected unserved energy", energy(float(deficit["expected_deficit_mwh"])), "over the study")
            )
    bound = training.final_bound(run)
    if bound is not None:
        found.append((bound[1].capitalize(), bound[0], "of the optimum, from training"))
    if run.training is not None:
        gap = (run.training.get("verdict") or {}).get("gap_percent")
        if gap is not None:
            found.append(("Gap", percent(gap), "between proven bounds"))
        found.append(
            (
                "Iterations",
                f"{run.training.get('iterations', {}).get('completed', '?')}",
                f"{int(run.training.get('row_pool', {}).get('total_active', 0)):,} active cuts",
            )
        )
    return found
