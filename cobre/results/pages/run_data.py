"""The files of an output directory, as far as its report needs them."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from cobre.errors import OutputError
from cobre.results.reading.run import Results, Simulation, Training, load

if TYPE_CHECKING:
    from cobre.policy import Policy
    from cobre.results.pages.simulated import Simulated


@dataclass(frozen=True)
class StageSpan:
    """A stage: its declared id, its first day, and the day after it."""

    id: int
    start: datetime.date
    end: datetime.date

    @property
    def hours(self) -> float:
        """Length of the stage."""
        return 24.0 * (self.end - self.start).days


class RunData:
    """An output directory; what it does not hold is ``None``.

    Attributes
    ----------
    results
        All its tables.
    training, simulation
        What each part was (``metadata.json``).

    Raises
    ------
    OutputError
        When there are no results, or they cannot be read.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.results = Results(directory)
        self.training = _metadata(self.results.training)
        self.simulation = _metadata(self.results.simulation)
        stochastic = directory / "stochastic"
        self.has_stochastic = stochastic.is_dir() and any(stochastic.iterdir())
        if self.training is None and self.simulation is None and not self.has_stochastic:
            load(directory)  # raises where there is nothing at all, or an interrupted simulation
            raise OutputError(
                "OutputNotFound",
                f"there are no results in {directory}: neither training/metadata.json nor "
                "simulation/metadata.json nor stochastic/ is there",
                {"file": str(directory)},
                "give the output directory of a run; cobre train CASE --output DIR makes one",
            )

    def table(self, part: str, name: str, columns: list[str] | None = None) -> pa.Table | None:
        """Return a table of ``training`` or ``simulation``; ``None`` where there is none."""
        tables = self.results.training if part == "training" else self.results.simulation
        return tables[name].to_arrow(columns) if name in tables else None

    @cached_property
    def policy(self) -> Policy | None:
        """The policy of the directory; ``None`` where it has none that can be read by us."""
        from cobre.policy import format_of, read_policy_directory

        directory = self.directory / "policy"
        if not (directory / "manifest.json").is_file() or format_of(directory) != "cobre":
            return None
        return read_policy_directory(directory)

    @cached_property
    def stages(self) -> list[StageSpan]:
        """The stages of the study with their dates, from the policy or else from the simulation."""
        if self.policy is not None:
            nodes = {node.stage_id: node for node in self.policy.nodes}
            return sorted(
                (StageSpan(key, node.start_date, node.end_date) for key, node in nodes.items()),
                key=lambda stage: stage.start,
            )
        if self.simulation is None:
            return []
        found = self.results.simulation["paths"].to_arrow(["stage_id", "start_date"])
        pairs = found.group_by(["stage_id", "start_date"]).aggregate([])
        starts = sorted(zip(pairs["start_date"].to_pylist(), pairs["stage_id"].to_pylist(), strict=True))
        days = [start for start, _ in starts]
        last = days[-1] + (days[-1] - days[-2] if len(days) > 1 else datetime.timedelta(days=30))
        return [
            StageSpan(key, start, end) for (start, key), end in zip(starts, [*days[1:], last], strict=True)
        ]

    @cached_property
    def simulated(self) -> Simulated | None:
        """The tables of the simulation, if it is complete."""
        if self.simulation is None or not self.results.simulation.complete:
            return None
        from cobre.results.pages.simulated import Simulated

        return Simulated(self)


def _metadata(part: Training | Simulation) -> dict[str, Any] | None:
    return part.metadata if (part.directory / "metadata.json").is_file() else None


def corrupted(path: Path, reason: Exception | str) -> OutputError:
    """Return the error of a file that cannot be used."""
    return OutputError(
        "OutputCorrupted", f"{path} cannot be read: {reason}", {"file": str(path)}, "run the study again"
    )
