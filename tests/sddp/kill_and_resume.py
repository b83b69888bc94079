"""Kill training at random moments and resume it.

By hand: ``python tests/sddp/kill_and_resume.py CASE [TRIES [RANKS [ITERATIONS]]]``. Every try starts a run
that writes checkpoints, kills all its processes by SIGKILL after a random time, resumes, and compares the
policy with that of a run that nobody disturbed.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def train(case: Path, output: Path, *options: str) -> dict[str, object]:
    """Train to the end in a process of its own; return the data of its envelope."""
    command = [sys.executable, "-m", "cobre", "train", str(case), "--output", str(output), *options]
    done = subprocess.run([*command, "--output-format", "json"], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(
            f"training ended with {done.returncode}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
        )
    data: dict[str, object] = json.loads(done.stdout)["data"]
    return data


def killed(case: Path, output: Path, after_s: float, *options: str) -> bool:
    """Train, but kill the process and all that it started; return whether it was still running then."""
    command = [sys.executable, "-m", "cobre", "train", str(case), "--output", str(output), *options]
    process = subprocess.Popen(
        [*command, "--quiet"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    time.sleep(after_s)
    running = process.poll() is None
    if running:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return running


def try_often(case: Path, tries: int, ranks: int, iterations: int, seed: int = 1) -> list[str]:
    """Return what happened in each try; a difference raises."""
    choose, story = random.Random(seed), []
    run = ("--iterations", str(iterations), "--checkpoint-every", "1")
    parallel = () if ranks == 1 else ("--ranks", str(ranks), "--threads", "1")
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        train(case, root / "warm", *run[:2])  # whatever has to be compiled is compiled now
        began = time.monotonic()
        whole = train(case, root / "whole", *run)
        longest = time.monotonic() - began
        for number in range(tries):
            output = root / "try"
            after = choose.uniform(0.1, 1.0) * longest
            running = killed(case, output, after, *run, *parallel)
            found = sorted(path.name for path in (output / "checkpoints").glob("checkpoint-*"))
            # Killed before its first checkpoint a run has left nothing to resume: it starts again.
            resumed = train(case, output, *run, *(["--resume"] if found else []))
            for key in ("policy_sha256", "lower_bound", "upper_bound", "iterations"):
                if resumed[key] != whole[key]:
                    raise AssertionError(f"try {number}: {key} is {resumed[key]}, not {whole[key]}")
            state = "killed" if running else "ended before"
            story.append(
                f"try {number}: {state} after {after:.2f} s, from {found[-1] if found else 'nothing'}"
            )
            shutil.rmtree(output)
    return story


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[2:]]
    tries, ranks, iterations = [*numbers, *(20, 1, 40)[len(numbers) :]]
    for line in try_often(Path(sys.argv[1]), tries, ranks, iterations):
        print(line)
