"""What a report has of training: bounds, what forward passes paid for, time of ranks, work of LPs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow.compute as pc

from cobre.distribution import NORMAL_QUANTILE_95
from cobre.results.pages.figures import PALETTE, Figure, axes, bars, dates, line, numbers
from cobre.results.pages.page import Section, card, escape, key_values, table
from cobre.results.pages.run_data import RunData
from cobre.results.pages.texts import cost_unit, duration, money, percent, words
from cobre.rules.bounds import LEAST_SAMPLE

MOST_COMPONENTS = len(PALETTE) - 1
"""Cost components with a colour of their own; what is left is summed up."""


def convergence_section(run: RunData) -> Section | None:
    """Return bounds and cost of passes by iteration, and how long iterations took."""
    found = run.table("training", "convergence")
    if found is None or run.training is None or not len(found):
        return None
    iteration = found["iteration"].to_pylist()
    lower, mean = (found[name].to_numpy() for name in ("lower_bound", "upper_bound"))
    size, unit = cost_unit(float(np.abs([lower, mean]).max()))
    is_bound = found["lower_bound_kind"][-1].as_py() == "bound"
    exact = found["upper_bound_kind"][-1].as_py() == "exact"
    traces = [
        line(
            iteration,
            lower / size,
            "lower bound" if is_bound else "estimate of the optimum",
            "@blue",
            digits=9,
        ),
    ]
    upper = deterministic_upper_bound(run)
    if upper is not None:
        ends = [iteration[0], iteration[-1]]
        traces.append(
            line(
                ends,
                [upper / size] * 2,
                "deterministic upper bound",
                "@orange",
                digits=9,
                line={"dash": "dashdot"},
            )
        )
    if exact:
        traces.append(
            line(
                iteration, mean / size, "cost of all paths (exact)", "@green", digits=9, line={"dash": "dot"}
            )
        )
    else:
        traces += _sample_traces(found, size)
        pooled = (run.training.get("verdict") or {}).get("sample")
        if pooled is not None:
            ends = [pooled["first_iteration"], iteration[-1]]
            half = pooled.get("ci_95")
            name = "sample cost since the bound settled" + ("" if half is None else ", ± 95 %")
            dash = {"dash": "dot", "width": 1.5}
            trace = line(ends, [pooled["mean"] / size] * 2, name, "@dark", digits=9, line=dash)
            if half is not None:
                trace["error_y"] = _error_bars(np.array([0.0, half / size]), "@dark/0.5")
            traces.append(trace)
    note = run.training.get("bounds", {}).get("final_lower_bound_note")
    reading = (
        "The lower bound rises as the policy learns; once it is flat, more iterations change little. "
        + (
            "The optimum lies between it and the deterministic upper bound. "
            if upper is not None
            else "There is no deterministic upper bound in this run. "
        )
        + (
            ""
            if exact
            else "Dots are the mean cost of the forward passes of an iteration, a <em>sample</em>, not an "
            f"upper bound, with its 95 % interval where there are {LEAST_SAMPLE} passes; under a risk "
            "measure it is not comparable with the bound."
        )
        + (f" It is an <em>estimate</em>, no bound: {escape(note)}." if note else "")
    )
    time = found["time_total_ms"].to_numpy() / 1e3
    cuts = found["cuts_active"].to_numpy()
    section = Section(
        "convergence", "Convergence", "How the policy was found, and whether training was long enough."
    )
    section.parts += [
        Figure("bounds", "Bounds by iteration", reading, traces, axes("iteration", f"cost, {unit}"), 430),
        Figure(
            "iteration-time",
            "Time of iterations",
            "Iterations become longer as cuts accumulate; forward passes visit states, backward passes "
            "make cuts.",
            [
                bars(iteration, found["time_forward_ms"].to_numpy() / 1e3, "forward", "@blue"),
                bars(iteration, found["time_backward_ms"].to_numpy() / 1e3, "backward", "@orange"),
                line(iteration, time, "whole iteration", "@dark", line={"width": 1.5, "dash": "dot"}),
            ],
            axes("iteration", "time, s", barmode="stack"),
            320,
            half=True,
        ),
        Figure(
            "cuts",
            "Cuts of the policy",
            "A cut is what a forward pass taught about the value of water; each LP has the active ones of "
            "its stage.",
            [line(iteration, cuts, "active cuts", "@green", line={"shape": "hv"})],
            axes("iteration", "cuts"),
            320,
            half=True,
        ),
    ]
    return section


def _sample_traces(found: Any, size: float) -> list[dict[str, Any]]:
    iteration, mean = found["iteration"].to_pylist(), found["upper_bound"].to_numpy() / size
    deviation = found["upper_bound_std"].to_numpy(zero_copy_only=False).astype(np.float64)
    passes = found["forward_passes"].to_numpy()
    half = NORMAL_QUANTILE_95 * deviation / size / np.sqrt(passes)
    known = np.isfinite(half) & (passes >= LEAST_SAMPLE)
    name = "sample cost of forward passes" + (", ± 95 %" if known.any() else "")
    trace = line(iteration, mean, name, "@grey", mode="markers", digits=9)
    trace["marker"] = {"color": "@grey", "size": 5}
    if known.any():
        trace["error_y"] = _error_bars(np.where(known, half, 0.0), "@grey/0.5")
    return [trace]


def _error_bars(half: np.ndarray[Any, Any], colour: str) -> dict[str, Any]:
    return {"type": "data", "array": numbers(half), "color": colour, "width": 2}


def deterministic_upper_bound(run: RunData) -> float | None:
    """Return the proven upper bound of training, $; ``None`` without one."""
    if run.training is None:
        return None
    verdict = run.training.get("verdict") or {}
    found = verdict.get("upper_bound", run.training.get("bounds", {}).get("deterministic_upper_bound"))
    return None if found is None else float(found)


def training_cost_section(run: RunData) -> Section | None:
    """Return what the forward passes of the last recorded iteration were paid for."""
    found = run.table("training", "stage_costs")
    if found is None or not len(found):
        return None
    last = pc.max(found["iteration"]).as_py()
    found = found.filter(pc.equal(found["iteration"], last))
    position = {stage.id: at for at, stage in enumerate(run.stages)}
    costs: dict[str, np.ndarray[Any, Any]] = {}
    violations = set()
    for row in found.to_pylist():
        values = costs.setdefault(row["component"], np.zeros(len(run.stages)))
        values[position[row["stage_id"]]] += row["cost"]
        if row["is_violation"]:
            violations.add(row["component"])
    intro = (
        f"Mean cost of the forward passes of iteration {last}, a small sample of the policy's operation, "
        "discounted "
        "to the beginning. A simulation gives the expected cost with its uncertainty."
    )
    section = Section("costs", "Cost by component", intro)
    section.parts += cost_parts(run, costs, violations)
    return section


def cost_parts(run: RunData, costs: dict[str, Any], violations: set[str]) -> list[Figure | str]:
    """Return costs by component and stage as a figure and a table.

    Parameters
    ----------
    costs
        Of each component float64[stage], $, discounted.
    """
    total = sum(values.sum() for values in costs.values())
    order = sorted((name for name in costs if costs[name].any()), key=lambda name: -abs(costs[name].sum()))
    shown, rest = order[:MOST_COMPONENTS], order[MOST_COMPONENTS:]
    x = dates(stage.start for stage in run.stages)
    series = [(words(name), costs[name]) for name in shown]
    if rest:
        series.append(("all others", sum(costs[name] for name in rest)))
    size, unit = cost_unit(max((np.abs(values).max() for _, values in series), default=0.0))
    traces = [
        bars(
            x,
            values / size,
            name,
            colour,
            digits=9,
            **(
                {"marker": {"color": colour, "pattern": {"shape": "/", "solidity": 0.55}}}
                if words_are(name, violations)
                else {}
            ),
        )
        for (name, values), colour in zip(series, PALETTE, strict=False)
    ]
    rows = [
        (
            words(name) + (" (violation)" if name in violations else ""),
            f"{costs[name].sum():,.0f}",
            percent(100.0 * costs[name].sum() / total) if total else "–",
        )
        for name in order
    ]
    paid = sum(costs[name].sum() for name in order if name in violations)
    share = paid / total if total else 0.0
    return [
        Figure(
            "cost-by-stage",
            "Expected cost by stage",
            "Which stages are dear, and what is paid for. Hatched parts are prices of violations and "
            "deficit: where "
            "they dominate, the cost is that of constraints that cannot be kept, not of fuel.",
            traces,
            axes("stage beginning", f"cost, {unit} (discounted)", barmode="relative"),
            400,
        ),
        card(
            "Expected cost of the study",
            table(
                ["component", "expected cost, $", "share"],
                [*rows, ("total", f"{total:,.0f}", "")],
                caption="Expected cost by component",
            )
            + f"<p class='soft'>Violations and deficit are {percent(100.0 * share)} of the total.</p>",
        ),
    ]


def words_are(name: str, identifiers: set[str]) -> bool:
    """Return whether a name in words is that of one of the identifiers."""
    return any(words(one) == name for one in identifiers)


def timing_section(run: RunData) -> Section | None:
    """Return where the time of each rank went."""
    found = run.table("training", "iteration_timing")
    if found is None or not len(found):
        return None
    parts = (
        ("forward passes", "forward_time_ms", "@blue"),
        ("backward passes", "backward_time_ms", "@orange"),
        ("lower bound", "lower_bound_time_ms", "@green"),
        ("communication", "communication_time_ms", "@purple"),
        ("waiting for others", "idle_time_ms", "@grey"),
    )
    sums = found.group_by("rank").aggregate([(name, "sum") for _, name, _ in parts] + [("lp_solves", "sum")])
    sums = sums.sort_by("rank")
    ranks = [f"rank {rank}" for rank in sums["rank"].to_pylist()]
    traces = []
    for name, column, colour in parts:
        values = numbers(sums[column + "_sum"].to_numpy() / 1e3)
        traces.append(
            {
                "type": "bar",
                "orientation": "h",
                "name": name,
                "y": ranks,
                "x": values,
                "marker": {"color": colour},
            }
        )
    work = sum(sums[name + "_sum"].to_numpy() for _, name, _ in parts[:3])
    text = "Bars of equal length without much waiting show that the work is spread evenly over ranks."
    if len(ranks) > 1:
        ratio = work.max() / max(work.min(), 1e-9)
        text += f" The busiest rank worked {ratio:.2f} times as long as the least busy."
    layout = {
        "barmode": "stack",
        "bargap": 0.45,
        "xaxis": {"title": {"text": "time over all iterations, s"}},
        "yaxis": {"autorange": "reversed"},
        "hovermode": "closest",
    }
    height = 190 + 26 * min(len(ranks), 40)
    return Section(
        "timing", "Time by rank", parts=[Figure("ranks", "Time of each rank", text, traces, layout, height)]
    )


def solver_section(run: RunData) -> Section | None:
    """Return how much work the LPs of training and simulation were."""
    section = Section(
        "solver", "Work of the solver", "How many linear programmes were solved, and how hard they were."
    )
    rows, traces = [], []
    x = dates(stage.start for stage in run.stages)
    position = {stage.id: at for at, stage in enumerate(run.stages)}
    colours = {"forward": "@blue", "backward": "@orange", "simulation": "@green"}
    dashes = {"forward": "solid", "backward": "dash", "simulation": "dot"}
    counted = (
        "lp_solves",
        "simplex_iterations",
        "solve_time_ms",
        "fall_backs",
        "retry_attempts",
        "lp_failures",
    )
    for part in ("training", "simulation"):
        found = run.table(part, "solver_iterations")
        if found is None or not len(found):
            continue
        sums = found.group_by("phase").aggregate([(name, "sum") for name in counted])
        for row in sorted(sums.to_pylist(), key=lambda row: str(row["phase"])):
            solves, seconds = row["lp_solves_sum"], row["solve_time_ms_sum"] / 1e3
            rows.append(
                (
                    words(row["phase"]),
                    f"{solves:,}",
                    f"{row['simplex_iterations_sum'] / max(solves, 1):.1f}",
                    f"{seconds:,.2f}",
                    f"{1e6 * seconds / max(solves, 1):,.0f}",
                    f"{row['fall_backs_sum']:,}",
                    f"{row['retry_attempts_sum']:,}",
                    f"{row['lp_failures_sum']:,}",
                )
            )
        staged = found.filter(pc.is_valid(found["stage_id"]))
        by_stage = staged.group_by(["phase", "stage_id"]).aggregate([(name, "sum") for name in counted[:2]])
        per_lp: dict[str, Any] = {}
        for row in by_stage.to_pylist():
            values = per_lp.setdefault(row["phase"], np.full(len(x), np.nan))
            if row["lp_solves_sum"]:
                values[position[row["stage_id"]]] = row["simplex_iterations_sum"] / row["lp_solves_sum"]
        traces += [
            line(
                x,
                values,
                words(phase),
                colours.get(phase, "@grey"),
                line={"dash": dashes.get(phase, "solid")},
            )
            for phase, values in sorted(per_lp.items())
        ]
    if not rows:
        return None
    columns = [
        "phase",
        "LPs",
        "simplex steps per LP",
        "time, s",
        "µs per LP",
        "given to HiGHS",
        "retries",
        "failed",
    ]
    section.parts.append(card("Linear programmes", table(columns, rows, caption="Work of the solver")))
    if traces:
        section.parts.append(
            Figure(
                "simplex",
                "Simplex steps per LP by stage",
                "Stages with many steps have large or degenerate LPs; they are where time goes.",
                traces,
                axes("stage beginning", "simplex steps per LP"),
                320,
            )
        )
    return section


def about_section(run: RunData) -> Section:
    """Return what the run was."""
    rows: list[tuple[str, object]] = [("output directory", run.directory.name)]
    for name, document in (("training", run.training), ("simulation", run.simulation)):
        if document is None:
            continue
        size = document.get("problem_dimensions", {})
        ranks = document.get("distribution", {})
        rows += [
            (f"{name}: status", document.get("status", "unknown")),
            (f"{name}: completed", document.get("completed_at", "unknown")),
            (f"{name}: time", duration(float(document.get("duration_seconds", 0.0)))),
            (f"{name}: software", f"{document.get('software')} {document.get('software_version')}"),
            (
                f"{name}: ran on",
                f"{document.get('hostname')}, backend {ranks.get('backend')}, {ranks.get('world_size')} "
                "ranks of "
                f"{ranks.get('threads_per_rank')} threads",
            ),
            (
                f"{name}: study",
                ", ".join(f"{value} {key.removeprefix('num_')}" for key, value in size.items()),
            ),
            (f"{name}: policy", document.get("policy_sha256", "unknown")),
        ]
        if name == "training":
            asked = document.get("configuration", {})
            rows.append(
                (
                    "training: settings",
                    f"seed {asked.get('seed')}, {asked.get('forward_passes')} forward passes, at most "
                    f"{asked.get('max_iterations')} iterations, {words(str(asked.get('policy_mode')))} start",
                )
            )
    return Section("about", "About this run", parts=[card("", key_values(rows))])


def final_bound(run: RunData) -> tuple[str, str] | None:
    """Return the lower bound in words, and what it is."""
    if run.training is None:
        return None
    bounds = run.training.get("bounds", {})
    value = bounds.get("final_lower_bound")
    if value is None:
        return None
    return money(value), "lower bound" if bounds.get(
        "final_lower_bound_kind"
    ) == "bound" else "estimate, no bound"
