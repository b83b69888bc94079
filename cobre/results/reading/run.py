"""The results of a run: training, simulation, and what the study was made of, each table read when needed."""

from __future__ import annotations

import html
import os
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cobre.display import html_table
from cobre.results.reading.files import (
    Names,
    Variable,
    Variables,
    missing,
    read_json,
    read_names,
    read_variables,
)
from cobre.results.reading.filters import closest
from cobre.results.reading.table import Table

if TYPE_CHECKING:
    from cobre.policy import Policy
    from cobre.results.metrics import SimulationMetrics

_TRAINING: Final = {
    "convergence": "convergence.parquet",
    "iteration_timing": "timing/iterations.parquet",
    "solver_iterations": "solver/iterations.parquet",
    "retry_histogram": "solver/retry_histogram.parquet",
    "cut_selection": "cut_selection/iterations.parquet",
    "stage_costs": "costs.parquet",
    "entity_costs": "costs_by_entity.parquet",
    "bounds": "dictionaries/bounds.parquet",
}
_SIMULATION: Final = {
    "generic_violations": "violations/generic",  # where cobre-rs puts it
    "paths": "paths.parquet",
    "scenario_summary": "scenario_summary.parquet",
    "solver_iterations": "solver/iterations.parquet",
    "retry_histogram": "solver/retry_histogram.parquet",
}
_NO_TABLES: Final = frozenset({"dictionaries", "solver", "violations"})
_PARTS: Final = ("training", "simulation", ".simulation.partial", "stochastic")
_MODELS: Final = ("hydro_models", "generic_constraints", "stochastic", "anticipated")


class Tables(Mapping[str, Table]):
    """Tables of a part of a run by name; also as attributes: ``part.hydros`` is ``part["hydros"]``.

    Attributes
    ----------
    directory
        Where they are.
    """

    _title = "Tables"

    def __init__(self, directory: Path, variables: Variables, names: Names) -> None:
        self.directory = directory
        self._variables = variables
        self._names = names

    @cached_property
    def _tables(self) -> dict[str, Table]:
        return {name: Table(name, path, self._variables, self._names) for name, path in self._paths().items()}

    def _paths(self) -> dict[str, Path]:
        raise NotImplementedError

    def _check(self) -> None:
        """Raise where there is nothing."""

    def __getitem__(self, name: str) -> Table:
        self._check()
        found = self._tables.get(name)
        if found is None:
            message = f"there is no table {name!r} in {self.directory}"
            raise missing(self.directory, message, closest(name, self._tables, "its tables"))
        return found

    def __getattr__(self, name: str) -> Table:
        if name.startswith("_"):
            raise AttributeError(name)
        self._check()
        if name not in self._tables:
            advice = closest(name, self._tables, "its tables")
            raise AttributeError(f"there is no table {name!r} in {self.directory}: {advice}")
        return self._tables[name]

    def get(self, name: str, default: Any = None) -> Any:
        """Return a table, or the default where it is not there."""
        return self._tables.get(name, default)

    def __contains__(self, name: object) -> bool:
        return name in self._tables

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._tables})

    def _ipython_key_completions_(self) -> list[str]:
        return list(self._tables)

    def _facts(self) -> dict[str, str]:
        return {}

    def __repr__(self) -> str:
        return f"{self._title}({str(self.directory)!r}: {', '.join(self._tables) or 'no tables'})"

    def _repr_html_(self) -> str:
        rows = {name: f"{len(table):,} rows of {len(table.columns)} columns" for name, table in self.items()}
        return html_table(f"{self._title} in {self.directory}", {**self._facts(), **rows})


class Part(Tables):
    """What one command wrote: its tables, and ``metadata.json``."""

    _noun = ""
    _command = ""

    @property
    def exists(self) -> bool:
        """Whether there are any results of it."""
        return self._metadata_path.is_file() or bool(self._tables)

    @property
    def complete(self) -> bool:
        """Whether the run reached its end, so that all files belong together."""
        return (self.directory / "_SUCCESS").is_file()

    @property
    def _metadata_path(self) -> Path:
        return self.directory / "metadata.json"

    @cached_property
    def metadata(self) -> dict[str, Any]:
        """What the run was: the content of ``metadata.json``."""
        if not self._metadata_path.is_file():
            self._check()
            message = f"there is no {self._metadata_path.name} of a {self._noun} in {self.directory}"
            raise missing(self._metadata_path, message, f"run {self._command!r} again")
        return read_json(self._metadata_path)

    def _check(self) -> None:
        if not self.exists:
            raise self._nothing()

    def _nothing(self) -> Exception:
        output = self.directory.parent
        return missing(
            self.directory,
            f"there is no {self._noun} in {output}: {self.directory} "
            f"{'holds no tables' if self.directory.is_dir() else 'is missing'}",
            f"give the output directory of a run, or run '{self._command} CASE --output {output}'",
        )

    def _state(self) -> str:
        if not self.exists:
            return "none"
        return "complete" if self.complete else "incomplete"


class Training(Part):
    """What training wrote: ``convergence``, ``iteration_timing``, ``stage_costs``, ... and ``metadata``."""

    _title = "Training"
    _noun = "training"
    _command = "cobre train"

    def _paths(self) -> dict[str, Path]:
        paths = {name: self.directory / place for name, place in _TRAINING.items()}
        return {name: path for name, path in paths.items() if path.is_file()}

    def _facts(self) -> dict[str, str]:
        return {"status": self._state()}


class Simulation(Part):
    """What a simulation wrote: a table for each type of entities, costs, paths, ... and ``metadata``."""

    _title = "Simulation"
    _noun = "simulation"
    _command = "cobre simulate"

    def _paths(self) -> dict[str, Path]:
        if not self.directory.is_dir():
            return {}
        paths = {
            path.name: path
            for path in sorted(self.directory.iterdir())
            if path.is_dir() and path.name not in _NO_TABLES and not path.name.startswith((".", "_"))
        }
        paths |= {name: self.directory / place for name, place in _SIMULATION.items() if name not in paths}
        return {
            name: path
            for name, path in paths.items()
            if path.is_file() or next(path.glob("**/*.parquet"), None) is not None
        }

    def _nothing(self) -> Exception:
        output = self.directory.parent
        if (output / ".simulation.partial").is_dir():
            return missing(
                self.directory,
                f"the simulation in {output} is not complete: it was interrupted, or is still running",
                f"go on with it: cobre simulate CASE --resume --output {output}",
            )
        return super()._nothing()

    @cached_property
    def scenarios(self) -> NDArray[np.int64]:
        """Ids of the scenarios, ascending."""
        return self._summary[0]

    @cached_property
    def probability(self) -> NDArray[np.float64] | None:
        """Probability of each scenario where they were enumerated; ``None`` for a sample (all alike)."""
        return self._summary[1]

    @cached_property
    def _summary(self) -> tuple[NDArray[np.int64], NDArray[np.float64] | None]:
        table = self["scenario_summary"].to_arrow(["scenario_id", "probability"])
        ids = table["scenario_id"].to_numpy().astype(np.int64)
        order = np.argsort(ids, kind="stable")
        weights = table["probability"]
        return ids[order], None if weights.null_count else weights.to_numpy()[order]

    @cached_property
    def metrics(self) -> SimulationMetrics:
        """Quantiles, deficit, risk and energy over its scenarios."""
        from cobre.results.metrics import SimulationMetrics

        self._check()
        return SimulationMetrics(self)

    def _facts(self) -> dict[str, str]:
        scenarios = f"{len(self.scenarios):,}" if "scenario_summary" in self else "unknown"
        return {"status": self._state(), "scenarios": scenarios}


class Models(Tables):
    """What the study was made of, as far as the run wrote it: planes, evaporation, inflow statistics, ..."""

    _title = "Models"

    def _paths(self) -> dict[str, Path]:
        return {
            path.stem: path for name in _MODELS for path in sorted((self.directory / name).glob("*.parquet"))
        }


class Results:
    """The results in the output directory of a run; nothing is read before it is asked for.

    Attributes
    ----------
    directory
        The output directory.
    training, simulation, models
        Tables of each part by name.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        variables: dict[str, dict[str, Variable]] = {}
        names: dict[str, dict[int, str]] = {}
        for part in ("training", "simulation"):
            variables |= read_variables(directory / part / "dictionaries" / "variables.csv")
            names |= read_names(directory / part / "dictionaries" / "entities.csv")
        known = variables or _declared(), names
        self.training = Training(directory / "training", *known)
        self.simulation = Simulation(directory / "simulation", *known)
        self.models = Models(directory, *known)

    @property
    def tables(self) -> dict[str, Table]:
        """All tables by name; of training as ``training/solver_iterations`` where a simulation has it too."""
        found = dict(self.simulation.items())
        for part, tables in (("training", self.training), ("models", self.models)):
            for name, table in tables.items():
                found[name if name not in found else f"{part}/{name}"] = table
        return found

    def __getitem__(self, name: str) -> Table:
        tables = self.tables
        part, _, rest = name.partition("/")
        if name in tables:
            return tables[name]
        if part in ("training", "simulation", "models") and rest:
            chosen: Tables = getattr(self, part)
            return chosen[rest]
        message = f"there is no table {name!r} in {self.directory}"
        if not self.simulation.exists:
            message += ", which has no simulation"
        raise missing(self.directory, message, closest(name, tables, "its tables"))

    @property
    def simulates_policy(self) -> bool:
        """Whether the simulation operated the policy that training left; also where one of them is missing.

        It did not where training went on after it, or where it was given another policy.
        """
        parts = [part for part in (self.training, self.simulation) if part.exists]
        digests = [part.metadata.get("policy_sha256") for part in parts]
        return len(digests) < 2 or None in digests or digests[0] == digests[1]

    def policy(self) -> Policy:
        """Return the trained policy.

        Raises
        ------
        ValidationError
            When there is none, or it is damaged.
        """
        from cobre.policy import read_policy_directory

        return read_policy_directory(self.directory / "policy")

    def __repr__(self) -> str:
        return (
            f"Results({str(self.directory)!r}: training {self.training._state()}, "
            f"simulation {self.simulation._state()}, {len(self.tables)} tables)"
        )

    def _repr_html_(self) -> str:
        parts = [part._repr_html_() for part in (self.training, self.simulation) if part.exists]
        return f"<div><p>{html.escape(repr(self))}</p>{''.join(parts)}</div>"


def load(directory: str | os.PathLike[str]) -> Results:
    """Return the results in the output directory of a run.

    ::

        results = cobre.results.load("output")
        results.simulation["hydros"].to_pandas(["stage_id", "storage_final_hm3"], entity="Furnas")

    Parameters
    ----------
    directory
        It, or the directory of a case whose results are in its ``output``.

    Raises
    ------
    OutputError
        Kind ``OutputNotFound`` when it holds neither a training nor a simulation.
    """
    place = output_of(Path(directory))
    results = Results(place)
    if results.training.exists or results.simulation.exists:
        return results
    if (place / ".simulation.partial").is_dir():
        raise results.simulation._nothing()
    if not place.is_dir():
        raise missing(place, f"there is no directory {place}", "give the output directory of a run")
    advice = "give the output directory of 'cobre train', 'cobre simulate' or 'cobre run'"
    if place.name in ("training", "simulation", "policy"):
        advice = f"did you mean {place.parent}?"
    raise missing(place, f"there are no results in {place}", advice)


def output_of(directory: Path) -> Path:
    """Return the output directory that is meant: that of a case is in its usual place."""
    inner = directory / "output"
    held, beside = (any((place / part).is_dir() for part in _PARTS) for place in (directory, inner))
    return inner if beside and not held else directory


def read_convergence(output_dir: Path | str) -> pa.Table:
    """Return the convergence of a training run, one row for each iteration.

    Returns
    -------
    pyarrow.Table
        With the columns of :data:`cobre.results.training.CONVERGENCE_SCHEMA`.

    Raises
    ------
    OutputError
        Kind ``OutputNotFound`` when there are no results, ``OutputCorrupted`` when they cannot be read.
    """
    return Results(Path(output_dir)).training["convergence"].to_arrow()


def read_metadata(output_dir: Path | str) -> dict[str, Any]:
    """Return the content of ``training/metadata.json`` of a training run.

    Raises
    ------
    OutputError
        Kind ``OutputNotFound`` when there are no results, ``OutputCorrupted`` when they cannot be read.
    """
    return Results(Path(output_dir)).training.metadata


def _declared() -> dict[str, dict[str, Variable]]:
    """Return what is known of columns where a run has no dictionary, such as one of cobre-rs."""
    from cobre.results.simulation.catalogue import TABLES

    return {
        spec.name: {part.name: Variable(part.type, part.unit, part.description) for part in spec.columns}
        for spec in TABLES
    }
