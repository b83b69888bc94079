"""cobre and the published wheel of cobre-rs on the same cases, side by side in one run."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from .common import REPOSITORY, named_case

WHEEL = "cobre-python==0.18.0"
PEER_PYTHON = "COBRE_PEER_PYTHON"
"""Environment variable: a Python that has the wheel. Otherwise one is made in ``env/``, once."""
PYTHONS = ("python3.14", "python3.13", "python3.12")
"""The wheel is for Python 3.12 and later."""
ITERATIONS = {"four-region": 200, "mid": 10, "large": 4}
REPETITIONS = 3

# The peak of getrusage would not be below that of the process which started this one.
REPORT = """
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1]
print(json.dumps({"seconds": seconds, "iterations": iterations, "MiB": int(peak) / 1024}))
"""
OURS = f"""
import json, sys, time, cobre
began = time.perf_counter()
result = cobre.train(sys.argv[1], output=sys.argv[2], threads=1)
seconds = time.perf_counter() - began - result.compile_time_ms / 1e3
iterations = result.iterations
{REPORT}"""
THEIRS = f"""
import json, sys, time, cobre.run
began = time.perf_counter()
iterations = cobre.run.run(sys.argv[1], output_dir=sys.argv[2], threads=1)["iterations"]
seconds = time.perf_counter() - began
{REPORT}"""

Figures = dict[str, dict[str, float]]


def peer_python() -> str:
    """Return a Python that has the wheel; ``NotImplementedError`` with the reason where there is none."""
    if PEER_PYTHON in os.environ:
        return os.environ[PEER_PYTHON]
    home = REPOSITORY / "asv_benchmarks" / "env" / WHEEL.replace("==", "-")
    python = home / "bin" / "python"
    if not python.exists():
        base = next((found for found in map(shutil.which, PYTHONS) if found), None)
        if base is None:
            raise NotImplementedError(f"{WHEEL} needs one of {', '.join(PYTHONS)}")
        try:
            subprocess.run([base, "-m", "venv", home], check=True, capture_output=True, text=True)
            subprocess.run(
                [python, "-m", "pip", "install", "--quiet", WHEEL], check=True, capture_output=True, text=True
            )
        except subprocess.CalledProcessError as error:
            shutil.rmtree(home, ignore_errors=True)
            raise NotImplementedError(f"{WHEEL} cannot be installed: {error.stderr[-300:]}") from error
    return str(python)


def trained(python: str, program: str, case: Path, output: Path) -> dict[str, float]:
    """Train in a process of its own, with nothing of this one's on its path."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    if program == OURS:
        environment["PYTHONPATH"] = str(REPOSITORY)
    done = subprocess.run(
        [python, "-c", program, str(case), str(output)],
        check=True,
        capture_output=True,
        text=True,
        cwd=case.parent,
        env=environment,
    )
    found: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def prepared(system: str, directory: Path) -> Path:
    """Write a case that both programs train for as many iterations, without simulating."""
    path = directory / system
    named_case(system).save(path)
    config = json.loads((path / "config.json").read_text())
    config.setdefault("simulation", {})["enabled"] = False
    config["training"]["stopping_rules"] = [{"type": "iteration_limit", "limit": ITERATIONS[system]}]
    (path / "config.json").write_text(json.dumps(config))
    return path


class AgainstCobreRs:
    """How many times longer cobre-rs takes, and how much more memory, on one thread; runs take turns.

    Times are from the start of loading to the last file written, without loading kernels. A ratio of times
    taken side by side does not depend on the machine's speed, only on its being idle.
    """

    params = (tuple(ITERATIONS),)
    param_names = ("system",)
    timeout = 3600

    def setup_cache(self) -> Figures:
        try:
            peer = peer_python()
        except NotImplementedError as error:
            return {"reason": {str(error): 0.0}}
        figures: Figures = {}
        with tempfile.TemporaryDirectory() as name:
            directory = Path(name)
            for system, iterations in ITERATIONS.items():
                case = prepared(system, directory)
                trained(sys.executable, OURS, case, directory / "ours")  # compiles where the cache is cold
                turns = []
                for _ in range(REPETITIONS):
                    theirs = trained(peer, THEIRS, case, directory / "theirs")
                    ours = trained(sys.executable, OURS, case, directory / "ours")
                    assert theirs["iterations"] == ours["iterations"] == iterations
                    turns.append((theirs, ours))
                    for output in ("ours", "theirs"):
                        shutil.rmtree(directory / output)
                figures[system] = {
                    key: statistics.median(theirs[key] for theirs, _ in turns)
                    / statistics.median(ours[key] for _, ours in turns)
                    for key in ("seconds", "MiB")
                }
        return figures

    setup_cache.timeout = 3600  # type: ignore[attr-defined]

    def setup(self, figures: Figures, system: str) -> None:
        if "reason" in figures:
            raise NotImplementedError(next(iter(figures["reason"])))

    def track_time_ratio(self, figures: Figures, system: str) -> float:
        return figures[system]["seconds"]

    def track_memory_ratio(self, figures: Figures, system: str) -> float:
        return figures[system]["MiB"]

    track_time_ratio.unit = "theirs / ours"  # type: ignore[attr-defined]
    track_memory_ratio.unit = "theirs / ours"  # type: ignore[attr-defined]
