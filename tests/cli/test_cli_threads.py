"""More threads than processors: allowed from the command line, and the same bytes."""

from __future__ import annotations

from pathlib import Path

from cli_helpers import copy_example, run, strict_json

from cobre.machine import usable_cpus


def test_more_threads_than_processors_give_the_same_policy(tmp_path: Path) -> None:
    case = copy_example(tmp_path)
    digests = []
    for threads in (1, usable_cpus() + 2):
        finished = run("train", case, "--threads", threads, "--iterations", 3, "--output-format", "json")
        envelope = strict_json(finished.stdout)
        assert envelope["exit_code"] == 0, envelope["errors"]
        assert envelope["data"]["threads"] == threads
        digests.append(envelope["data"]["policy_sha256"])
    assert digests[0] == digests[1]
