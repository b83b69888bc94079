"""Measures what ``docs/scaling.md`` is made from: ``python docs/measure_scaling.py``, with extra ``test``.

Writes ``docs/scaling-measurements.json``. Needs the national system of ``shared/systems`` beside the
repository, and takes some ten minutes on two idle processors. Work is measured as CPU time and counts, which
other programs of the machine disturb little; wall times are the least of several runs, with the time that the
ranks waited for a processor beside them. ``--only PART`` measures a part anew and keeps the others.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import importlib
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
MEASUREMENTS = Path(__file__).with_name("scaling-measurements.json")

SYSTEM = "brazil-2018"
ALL_STAGES = 1 << 30
ENGINE_STAGES, ENGINE_PASSES, ENGINE_ITERATIONS = 12, 16, 16
"""The run that shows what an LP takes: few stages, so that cuts become many soon."""
SPREAD_ITERATIONS = 14
"""Iterations of one pass, whose counts show how much trial points differ in effort."""
LAYOUT_STAGES, LAYOUT_PASSES, LAYOUT_ITERATIONS, REPETITIONS = 24, 8, 3, 3
LAYOUTS = (
    ("local", 1, 1),
    ("local", 1, 2),
    ("shm", 2, 1),
    ("tcp", 2, 1),
    ("mpi-mpich", 2, 1),
    ("shm", 4, 1),
    ("tcp", 4, 1),
)
"""Backend, ranks and threads of each. More ranks than processors show work and memory, not speed."""
SELECTION_STAGES, SELECTION_PASSES, SELECTION_ITERATIONS = 4, 32, 8
"""The run that shows what cut selection takes: visited states become many soon."""
IDLE_STAGES, IDLE_ITERATIONS, IDLE_RANKS = 24, 4, (2, 4)
"""Runs with one pass less than ranks: what the last rank does is what all ranks do."""
MEMORY_PASSES = 8
"""Of one iteration over all stages, on one rank and on two of each backend."""
COLLECTIVE_RANKS = (2, 4, 8, 16, 32)
COLLECTIVE_BYTES = (8, 8 << 10, 64 << 10, 512 << 10)
COLLECTIVE_BATCHES, COLLECTIVE_CALLS = 7, {8: 200, 8 << 10: 200, 64 << 10: 40, 512 << 10: 6}


def study(stages: int, passes: int) -> Any:
    """Return the national system, cut to its first stages, with so many forward passes and no exports."""
    import cobre

    sys.path.insert(0, str(ROOT / "tests"))
    first_stages = importlib.import_module("reference.test_national_system").first_stages
    places = [parent / "shared" / "systems" / SYSTEM for parent in ROOT.parents]
    path = next((place for place in places if place.is_dir()), None)
    if path is None:
        raise SystemExit(f"there is no shared/systems/{SYSTEM} beside {ROOT}")
    case = cobre.load_case(path)
    if stages < len(case.stages):
        case = first_stages(case, stages)
    editor = case.edit()
    editor["config.json"]["exports"] = {"stochastic": False}
    editor["config.json"]["training"]["selection"]["forward_passes"] = passes
    return editor.build()


def waited_s() -> float:
    """Return how long threads of this process were ready and had no processor."""
    waits = [path.read_text().split()[1] for path in Path("/proc/self/task").glob("*/schedstat")]
    return sum(map(int, waits)) / 1e9


def train_measured(case: Any, comm: Any, iterations: int, threads: int) -> tuple[Any, list[dict[str, float]]]:
    """Train on a rank; return the result, and what each iteration after the first took on this rank."""
    import cobre

    marks = []

    def mark(record: Any) -> None:
        marks.append((time.process_time(), time.perf_counter(), waited_s()))

    result = cobre.Study(case).train(
        communicator=comm, iterations=iterations, threads=threads, on_iteration=mark
    )
    own = [timing for timing in result.timings if timing.rank == comm.rank]
    rows = []
    for number in range(1, iterations):
        cpu, wall, waited = (
            after - before for before, after in zip(marks[number - 1], marks[number], strict=True)
        )
        record, timing = result.history[number], own[number]
        rows.append(
            {
                "cpu_s": cpu,
                "wall_s": wall,
                "waited_s": waited,
                "lps": record.lp_solves,
                "simplex_iterations": record.simplex_iterations,
                "cuts_before": record.cuts_active - record.cuts_added,
                "own_lps": timing.lp_solves,
                "collective_s": (timing.communication_time_ms + timing.idle_time_ms) / 1e3,
            }
        )
    return result, rows


def rank_main(arguments: argparse.Namespace) -> None:
    """Be a rank of a layout; leave what it measured beside what the others leave."""
    from cobre.comm import create_communicator

    with create_communicator() as comm:
        found: Any
        if arguments.collectives:
            found = measure_collectives(comm)
        else:
            case = study(arguments.stages, arguments.passes)
            result, rows = train_measured(case, comm, arguments.iterations, arguments.threads)
            worker = result.workers[comm.rank]
            found = {
                "iterations": rows,
                "policy_sha256": result.policy_sha256,
                "memory_bytes": worker.memory_bytes,
                "memory_share_bytes": worker.memory_share_bytes,
            }
        (arguments.rank / f"{comm.rank}.json").write_text(json.dumps(found), encoding="utf-8")


def measure_collectives(comm: Any) -> list[dict[str, float]]:
    """Gather blocks of several sizes; return CPU and wall time of a call, the least of batches."""
    rows = []
    for size in COLLECTIVE_BYTES:
        count, calls = size // 8, COLLECTIVE_CALLS[size]
        send, recv = np.ones(count), np.empty(count * comm.size)
        counts = np.full(comm.size, count, np.int64)
        places = count * np.arange(comm.size, dtype=np.int64)
        cpu, wall = [], []
        for _ in range(COLLECTIVE_BATCHES):
            comm.barrier()
            began = time.process_time_ns(), time.perf_counter_ns()
            for _ in range(calls):
                comm.allgatherv(send, recv, counts, places)
            cpu.append((time.process_time_ns() - began[0]) / calls / 1e3)
            wall.append((time.perf_counter_ns() - began[1]) / calls / 1e3)
        rows.append({"bytes": size, "cpu_us": min(cpu), "wall_us": min(wall)})
    return rows


def run_layout(backend: str, ranks: int, options: Sequence[str]) -> list[Any]:
    """Run this program on the ranks of a layout; return what each left."""
    from cobre.comm.mpi.launchers import find_mpi_launchers

    with tempfile.TemporaryDirectory() as directory:
        program = [sys.executable, str(Path(__file__).resolve()), "--rank", directory, *options]
        environment = dict(os.environ)
        if backend.startswith("mpi-"):
            launcher = next(item for item in find_mpi_launchers() if f"mpi-{item.name}" == backend)
            command, environment = launcher.command(ranks, program), launcher.environment()
        elif backend == "local":
            command = program
        else:
            launch = [sys.executable, "-m", "cobre", "launch", "-n", str(ranks), "--backend", backend]
            command = [*launch, "--", *program]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(command)} ended with {done.returncode}\n{done.stderr}")
        return [
            json.loads((Path(directory) / f"{rank}.json").read_text(encoding="utf-8"))
            for rank in range(ranks)
        ]


def training_options(stages: int, passes: int, iterations: int, threads: int) -> list[str]:
    """Return the options of a rank that trains."""
    values = {"stages": stages, "passes": passes, "iterations": iterations, "threads": threads}
    return [text for name, value in values.items() for text in (f"--{name}", str(value))]


def machine() -> dict[str, Any]:
    """Return where and with what it was measured."""
    import numba

    import cobre

    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "?")
    return {
        "processor": model,
        "cpus": len(os.sched_getaffinity(0)),
        "system": f"{platform.system()} {platform.release().partition('-')[0]}",
        "python": platform.python_version(),
        "numba": numba.__version__,
        "cobre": cobre.__version__,
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
    }


def measure_system() -> dict[str, Any]:
    """Return the sizes of the national system."""
    from cobre.comm.local import LocalCommunicator

    case = study(ALL_STAGES, 1)
    with LocalCommunicator() as comm:
        result, _ = train_measured(study(3, 1), comm, 1, 1)
    return {
        "name": SYSTEM,
        "stages": len(case.stages),
        "openings": max(stage.num_openings for stage in case.stages),
        "hydros": len(case.hydros),
        "thermals": len(case.thermals),
        "state_components": len(result.policy.components),
    }


def measure_engine() -> list[dict[str, float]]:
    """Return what iterations take on one thread as the cuts become more."""
    from cobre.comm.local import LocalCommunicator

    with LocalCommunicator() as comm:
        return train_measured(study(ENGINE_STAGES, ENGINE_PASSES), comm, ENGINE_ITERATIONS, 1)[1]


def measure_spread() -> list[list[int]]:
    """Return the simplex iterations of the trial point of each stage (but the first), by iteration."""
    from cobre.comm.local import LocalCommunicator

    with LocalCommunicator() as comm:
        result, _ = train_measured(study(ALL_STAGES, 1), comm, SPREAD_ITERATIONS, 1)
    from cobre.sddp.kernel import counts

    return [
        [int(value) for value in lps.table[1, 1:, counts.SIMPLEX_ITERATIONS]] for lps in result.lp_statistics
    ]


def measure_selection() -> list[dict[str, float]]:
    """Return what choosing cuts took in the middle stage of each iteration, beside what it compared."""
    from cobre.comm.local import LocalCommunicator

    with LocalCommunicator() as comm:
        case = study(SELECTION_STAGES, SELECTION_PASSES)
        result, _ = train_measured(case, comm, SELECTION_ITERATIONS, 1)
    visited, rows = 0, []
    for record in result.selection:
        if record.stage != 1:
            continue
        made = sum(part.cuts_added for part in result.history if part.iteration == record.iteration)
        visited += made // (SELECTION_STAGES - 1)
        rows.append({**dataclasses.asdict(record), "visited": visited})
    return rows


def measure_idle() -> list[dict[str, Any]]:
    """Return the iterations of a rank without passes, on tcp, where waiting takes no CPU time."""
    found = []
    for ranks in IDLE_RANKS:
        options = training_options(IDLE_STAGES, ranks - 1, IDLE_ITERATIONS, 1)
        last = run_layout("tcp", ranks, options)[-1]
        found.append({"ranks": ranks, "passes": ranks - 1, "iterations": last["iterations"]})
    return found


def measure_layouts() -> list[dict[str, Any]]:
    """Return the iterations of each layout and rank, several times, the layouts taking turns."""
    found = []
    for repetition in range(REPETITIONS):
        for backend, ranks, threads in LAYOUTS:
            if repetition and ranks > 2:
                continue
            options = training_options(LAYOUT_STAGES, LAYOUT_PASSES, LAYOUT_ITERATIONS, threads)
            found.append(
                {
                    "backend": backend,
                    "ranks": ranks,
                    "threads": threads,
                    "repetition": repetition,
                    "by_rank": run_layout(backend, ranks, options),
                }
            )
    digests = {rank["policy_sha256"] for run in found for rank in run["by_rank"]}
    if len(digests) != 1:
        raise SystemExit(f"layouts made different policies: {sorted(digests)}")
    return found


def measure_memory() -> list[dict[str, Any]]:
    """Return what ranks hold after an iteration over all stages."""
    found = []
    for backend, ranks, threads in (("local", 1, 1), ("local", 1, 2), ("shm", 2, 1), ("tcp", 2, 1)):
        options = training_options(ALL_STAGES, MEMORY_PASSES, 1, threads)
        parts = run_layout(backend, ranks, options)
        held = [{key: part[key] for key in ("memory_bytes", "memory_share_bytes")} for part in parts]
        found.append({"backend": backend, "ranks": ranks, "threads": threads, "by_rank": held})
    return found


def measure_transports() -> list[dict[str, Any]]:
    """Return CPU and wall time of gathers: tcp for many ranks, the others for one on each processor."""
    jobs = [("tcp", ranks) for ranks in COLLECTIVE_RANKS]
    jobs += [("local", 1), ("shm", 2), ("mpi-mpich", 2), ("mpi-openmpi", 2)]
    return [
        {"backend": backend, "ranks": ranks, "by_rank": run_layout(backend, ranks, ["--collectives"])}
        for backend, ranks in jobs
    ]


def rounded(content: Any) -> Any:
    """Return a JSON value with six digits of each number that is no count."""
    if isinstance(content, dict):
        return {key: rounded(value) for key, value in content.items()}
    if isinstance(content, list):
        return [rounded(value) for value in content]
    return float(f"{content:.6g}") if isinstance(content, float) else content


PARTS: dict[str, Callable[[], Any]] = {
    "system": measure_system,
    "engine": measure_engine,
    "spread": measure_spread,
    "selection": measure_selection,
    "idle": measure_idle,
    "layouts": measure_layouts,
    "memory": measure_memory,
    "transports": measure_transports,
}


SIZES: dict[str, dict[str, int]] = {
    "engine": {"stages": ENGINE_STAGES, "passes": ENGINE_PASSES},
    "selection": {"stages": SELECTION_STAGES, "passes": SELECTION_PASSES},
    "idle": {"stages": IDLE_STAGES},
    "layouts": {"stages": LAYOUT_STAGES, "passes": LAYOUT_PASSES},
    "memory": {"passes": MEMORY_PASSES},
}
"""Sizes of the runs of a part, which the page states."""


def main() -> None:
    """Measure, or be a rank of a measurement."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", choices=PARTS, nargs="+", default=list(PARTS), help="parts to measure")
    parser.add_argument("--rank", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--collectives", action="store_true", help=argparse.SUPPRESS)
    for name in ("stages", "passes", "iterations", "threads"):
        parser.add_argument(f"--{name}", type=int, default=1, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.rank is not None:
        rank_main(arguments)
        return
    kept = json.loads(MEASUREMENTS.read_text(encoding="utf-8")) if MEASUREMENTS.exists() else {}
    for part in arguments.only:
        print(f"{part} ...", flush=True)
        kept[part] = {"machine": machine(), "load_before": os.getloadavg()[0], **SIZES.get(part, {})}
        kept[part]["found"] = PARTS[part]()
        lines = (f'"{name}": {json.dumps(rounded(content))}' for name, content in kept.items())
        MEASUREMENTS.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
