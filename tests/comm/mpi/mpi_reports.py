"""What the programs for the ranks of an MPI job leave behind for the test that started them."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import numpy as np

from cobre.comm import create_communicator

FOLDER = Path(sys.argv[2])
SEGMENTS = "/dev/shm/"


def note_segments():
    """Leave the names of the shared segments that this rank has mapped."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    paths = {line.split()[5] for line in lines if SEGMENTS in line}
    (FOLDER / f"{os.getpid()}.segments").write_text("\n".join(sorted(paths)))


def make():
    try:
        return create_communicator("mpi")
    finally:
        note_segments()


class Complaints(list):
    """Collects what is not as it should be."""

    def equal(self, what, actual, expected):
        if not np.array_equal(actual, expected, equal_nan=np.asarray(expected).dtype.kind == "f"):
            self.append(f"{what}: {actual!r} instead of {expected!r}")

    def same(self, what, actual, expected):
        if actual != expected:
            self.append(f"{what}: {actual!r} instead of {expected!r}")

    def raises(self, what, kind, function, *arguments, **fields):
        try:
            function(*arguments)
        except kind as error:
            for name, value in fields.items():
                self.same(f"{what}.{name}", getattr(error, name), value)
            return str(error)
        except Exception as error:
            self.append(f"{what}: {error!r} instead of {kind.__name__}")
        else:
            self.append(f"{what}: no {kind.__name__}")
        return ""


def report(rank, complaints, **extra):
    (FOLDER / f"{rank}.json").write_text(json.dumps({"complaints": list(complaints), **extra}))
