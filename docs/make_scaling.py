"""Makes ``docs/scaling.md``: ``python docs/make_scaling.py``, from ``docs/scaling-measurements.json``.

The measurements are those of ``docs/measure_scaling.py``; the model is in ``docs/scaling_model.py``. The page
is a function of the two, so that it can be made anew, and compared, anywhere.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import scaling_model as model
from scaling_model import Coefficients, Layout, Study

HERE = Path(__file__).resolve().parent
PAGE = HERE / "scaling.md"
MEASUREMENTS = HERE / "scaling-measurements.json"

RANKS = (8, 16, 32, 64, 128, 256, 512, 1000)
HOST = 64
"""Processors of a host in the predictions."""
ITERATIONS = 50
PASSES = (200, 1000)
LAYOUT_NAMES = {
    ("local", 1, 1): "1 process",
    ("local", 1, 2): "1 process, 2 threads",
    ("shm", 2, 1): "2 ranks, shm",
    ("tcp", 2, 1): "2 ranks, tcp",
    ("mpi-mpich", 2, 1): "2 ranks, MPICH",
    ("shm", 4, 1): "4 ranks, shm",
    ("tcp", 4, 1): "4 ranks, tcp",
}


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def short(value: float) -> str:
    """Return a number with three digits or none behind the point."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def measured_layouts(part: Mapping[str, Any], study: Study, coefficients: Coefficients) -> str:
    """Return the table of the measured layouts, with the model beside them."""
    runs: dict[tuple[str, int, int], list[Any]] = {}
    for run in part["found"]:
        runs.setdefault((run["backend"], run["ranks"], run["threads"]), []).append(run["by_rank"])
    rows, alone = [], 0.0
    for (backend, ranks, threads), repetitions in runs.items():
        together, busiest, undisturbed = [], [], []
        for number in range(len(repetitions[0][0]["iterations"])):
            # Every repetition does the same work, so the least disturbed one counts, iteration by iteration.
            seen = [[rank["iterations"][number] for rank in found] for found in repetitions]
            together.append(min(sum(row["cpu_s"] for row in each) for each in seen))
            busiest.append(min(max(row["cpu_s"] for row in each) for each in seen) / threads)
            undisturbed.append(
                min(max(row["wall_s"] - row["waited_s"] / threads for row in each) for each in seen)
            )
        alone = alone or statistics.mean(together)
        cells = [LAYOUT_NAMES[backend, ranks, threads], f"{statistics.mean(together):.2f}"]
        if ranks * threads <= 2:
            most, least = (alone / statistics.mean(values) for values in (busiest, undisturbed))
            layout = Layout(backend.partition("-")[0], ranks, threads, HOST)
            cells += [f"{statistics.mean(busiest):.2f}", f"{statistics.mean(undisturbed):.2f}"]
            cells += [f"{least:.2f} to {most:.2f}", predicted_speedup(study, coefficients, layout)]
        else:
            cells += ["–"] * 4
        rows.append(cells)
    head = ["", "CPU of all", "CPU of the busiest", "wall less waiting", "speedup", "model"]
    return table(head, rows)


def predicted_speedup(study: Study, found: Coefficients, layout: Layout) -> str:
    """Return what the model says of a layout."""
    alone = model.run(study, found, Layout("shm", 1)).total
    return f"{alone / model.run(study, found, layout).total:.2f}"


def layouts_of(ranks: int) -> dict[str, Layout]:
    """Return the layouts that are compared for so many processors."""
    hosts = -(-ranks // HOST)
    threads = min(ranks, HOST)
    return {
        "mpi": Layout("mpi", ranks, 1, HOST),
        "tcp": Layout("tcp", ranks, 1, HOST),
        "two-level": Layout("two-level", ranks, 1, HOST),
        "mpi, a rank a host": Layout("mpi", hosts, threads, 1),
        "tcp, a rank a host": Layout("tcp", hosts, threads, 1),
    }


def prediction(study: Study, found: Coefficients) -> str:
    """Return the hours of a run by processors and layout, with the efficiency."""
    alone = model.run(study, found, Layout("shm", 1)).total
    rows = []
    for ranks in RANKS:
        cells = [f"{ranks:,}"]
        whole = {"shm": Layout("shm", ranks, 1, ranks), **layouts_of(ranks)}
        for name, layout in whole.items():
            if name == "shm" and ranks > 2 * HOST:
                cells.append("–")
                continue
            seconds = model.run(study, found, layout).total
            cells.append(f"{short(seconds / 3600)} ({100 * alone / seconds / ranks:.0f} %)")
        rows.append(cells)
    return table(["processors", "shm", *layouts_of(1)], rows)


def breakdown(study: Study, found: Coefficients) -> str:
    """Return the parts of the time of a run, in percent, for some layouts."""
    rows = []
    for ranks, kind, name in (
        (1, "tcp", "1 processor"),
        (8, "tcp", "8 ranks, tcp"),
        (64, "tcp", "64 ranks, tcp"),
        (64, "mpi", "64 ranks, mpi"),
        (512, "tcp", "512 ranks, tcp"),
        (64, "tcp, a rank a host", "1 rank of 64 threads"),
        (256, "tcp, a rank a host", "4 ranks of 64 threads, tcp"),
    ):
        parts = model.run(study, found, layouts_of(ranks)[kind])
        rows.append([name, *(f"{100 * part / parts.total:.0f}" for part in vars(parts).values())])
    head = ["%", "forward", "backward", "for the slowest rank", "lower bound", "selection", "gathers"]
    return table(head, rows)


def memory(study: Study, found: Coefficients) -> str:
    """Return what a host with all its processors in use holds at the end of a run, in GB."""
    layouts = {
        f"{HOST} ranks, shm or mpi": Layout("mpi", HOST, 1, HOST),
        f"{HOST} ranks, tcp": Layout("tcp", HOST, 1, HOST),
        f"1 rank of {HOST} threads": Layout("tcp", 1, HOST, 1),
    }
    rows = []
    for name, layout in layouts.items():
        parts = model.host_bytes(study, found, layout)
        rows.append([name, *(short(part / 1e9) for part in parts.values()), short(sum(parts.values()) / 1e9)])
    return table(["GB a host", "programs and LPs", "cuts", "visited states", "together"], rows)


def page(measured: Mapping[str, Any]) -> str:
    """Return the text of the page."""
    system = measured["system"]["found"]
    found = model.fit(measured, system["stages"], system["openings"])
    studies = {
        passes: Study(system["stages"], system["openings"], system["state_components"], passes, ITERATIONS)
        for passes in PASSES
    }
    small, large = studies.values()
    last = model.iteration(small, found, Layout("shm", 1), ITERATIONS)
    engine, layouts = measured["engine"], measured["layouts"]
    idle = measured["idle"]["found"][-1]["iterations"]
    memory_runs = {
        (run["backend"], run["ranks"], run["threads"]): run["by_rank"] for run in measured["memory"]["found"]
    }
    machine = layouts["machine"]
    text = {
        **system,
        "processor": machine["processor"],
        "cpus": machine["cpus"],
        "os": machine["system"],
        "python": machine["python"],
        "numba": machine["numba"],
        "date": machine["date"],
        "loads": f"{min(p['load_before'] for p in measured.values()):.0f} to "
        f"{max(p['load_before'] for p in measured.values()):.0f}",
        "layout_stages": layouts["stages"],
        "layout_passes": layouts["passes"],
        "repetitions": 1 + max(run["repetition"] for run in layouts["found"]),
        "layout_table": measured_layouts(
            layouts,
            replace(small, stages=layouts["stages"], passes=layouts["passes"], iterations=3),
            found,
        ),
        "engine_stages": engine["stages"],
        "step_us": short(found.step_s * 1e6),
        "cut_us": short(found.cut_s * 1e6),
        "steps": short(found.steps),
        "lp_ms": short(found.lp_s(0.0) * 1e3),
        "lp_last_ms": short(found.lp_s(found.active * small.passes * (ITERATIONS - 1)) * 1e3),
        "active": f"{100 * found.active:.0f}",
        "height_ns": short(found.height_s * 1e9),
        "tcp_peer_us": short(found.tcp_peer_s * 1e6),
        "tcp_gbs": short(1e-9 / found.tcp_byte_s),
        "shm_peer_us": short(found.shm_peer_s * 1e6),
        "shm_gbs": short(1e-9 / found.shm_byte_s),
        "private_mb": short(found.private_bytes / 1e6),
        "whole_mb": short(memory_runs["local", 1, 1][0]["memory_bytes"] / 1e6),
        "spread": short(100.0 * statistics.pstdev(found.effort)),
        "slowest": table(
            ["trial points of a rank", *(f"{ranks:,} ranks" for ranks in (8, 64, 200, 1000))],
            [
                [
                    str(own),
                    *(
                        f"{model.slowest_over_mean(found.effort, own, ranks):.2f}"
                        for ranks in (8, 64, 200, 1000)
                    ),
                ]
                for own in (1, 2, 5, 25)
            ],
        ),
        "record": f"{small.record_bytes:,}",
        "gather_mb": short(small.passes * small.record_bytes / 1e6),
        "idle_ms": short(1e3 * min(row["cpu_s"] for row in idle)),
        "idle_stages": measured["idle"]["stages"],
        "cuts_mb": short(found.active * small.passes * (ITERATIONS - 1) * small.record_bytes / 1e6),
        "thread_gbs": short(small.record_bytes / found.cut_s / 1e9),
        "host_gbs": short(HOST * small.record_bytes / found.cut_s / 1e9),
        "passes": small.passes,
        "more_passes": f"{large.passes:,}",
        "iterations": ITERATIONS,
        "host": HOST,
        "prediction": prediction(small, found),
        "more_prediction": prediction(large, found),
        "alone_days": short(model.run(small, found, Layout("shm", 1)).total / 86400),
        "selection_min": short(last.selection / 60),
        "lps_min": short((last.forward + last.backward) / 60),
        "breakdown": breakdown(small, found),
        "memory": memory(small, found),
        "divided": without_selection(small, found),
        "ethernet": model.ETHERNET.name,
        "ethernet_us": short(model.ETHERNET.latency_s * 1e6),
        "infiniband": model.INFINIBAND.name,
        "infiniband_us": short(model.INFINIBAND.latency_s * 1e6),
    }
    return (HERE / "scaling.md.in").read_text(encoding="utf-8").format(**text)


def without_selection(study: Study, found: Coefficients) -> str:
    """Return hours by layout where selection is divided among ranks, and where there is none."""
    kinds = ("mpi", "tcp", "two-level", "tcp, a rank a host")
    cases = {"divided": found, "none": replace(found, active=1.0, height_s=0.0)}
    rows = []
    for name, coefficients in cases.items():
        for ranks in (64, 128, 256):
            layouts = layouts_of(ranks)
            hours = [
                model.run(study, coefficients, replace(layouts[kind], divided_selection=True)).total / 3600
                for kind in kinds
            ]
            rows.append([name, f"{ranks:,}", *map(short, hours)])
    return table(["selection", "processors", *kinds], rows)


if __name__ == "__main__":
    PAGE.write_text(page(json.loads(MEASUREMENTS.read_text(encoding="utf-8"))), encoding="utf-8")
