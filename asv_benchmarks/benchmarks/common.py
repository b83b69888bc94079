"""What the benchmarks share: where cases come from, and running Python in a process of its own."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cobre.case import Case

REPOSITORY = Path(__file__).resolve().parents[2]
EXAMPLES = REPOSITORY / "examples"


def example(name: str) -> Path:
    """Return the directory of an example; asv skips the benchmark where there is none."""
    path = EXAMPLES / name
    if not path.is_dir():
        raise NotImplementedError(f"no example {name}")
    return path


def shared_system(name: str) -> Path:
    """Return the directory of a case in ``shared/systems``, beside the repository or a directory above it.

    asv skips the benchmark where there is none.
    """
    for directory in REPOSITORY.parents:
        path = directory / "shared" / "systems" / name
        if path.is_dir():
            return path
    raise NotImplementedError(f"no shared system {name}")


def run_python(*arguments: str) -> None:
    """Run the interpreter of this environment to its end."""
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)


def train(name: str, *options: str) -> None:
    """Train an example by the command line, as a user does."""
    with tempfile.TemporaryDirectory() as output:
        run_python("-m", "cobre", "train", str(example(name)), "--output", output, "--quiet", *options)


def synthetic_case(size: str) -> Case:
    """Return the synthetic case of a named size: small, mid or large."""
    import cobre.case
    from cobre.templates.synthetic import build
    from cobre.templates.synthetic_options import SIZES

    return cobre.case.build(build(SIZES[size]))


def named_case(name: str) -> Case:
    """Return the template four-region, or the synthetic case of a named size."""
    if name != "four-region":
        return synthetic_case(name)
    import cobre.case
    from cobre.templates.four_region import build

    return cobre.case.build(build())
