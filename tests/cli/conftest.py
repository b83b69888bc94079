"""Tests of the command line see none of the variables that a user or a cluster may have set."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("COBRE_NUM_THREADS", "SLURM_CPUS_PER_TASK", "COBRE_COMM_BACKEND", "COBRE_DEBUG"):
        monkeypatch.delenv(name, raising=False)
    for name in ("COLUMNS", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
