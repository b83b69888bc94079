"""Files of simulated scenarios: a part of each table for every block, and what holds all scenarios.

::

    <simulation>/<table>/part-NNNNN.parquet     NNNNN is the number of the block
                 paths.parquet                  scenario_summary.parquet
                 dictionaries/                  variables.csv  entities.csv  codes.json

The same block gives the same bytes, whichever process writes it and when; every file is complete or not
there.
"""

from __future__ import annotations

import contextlib
import shutil
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import BinaryIO, Final

import pyarrow as pa
import pyarrow.parquet as pq

from cobre.durable import atomic_files, atomic_write, output_errors
from cobre.results.columns import TableSpec
from cobre.results.dictionaries import write_dictionaries
from cobre.results.simulation.catalogue import PATHS, SCENARIO_SUMMARY, TABLES
from cobre.results.simulation.tables import SimulationTables
from cobre.sddp.simulation.block import SimulatedBlock

SINGLE_FILES: Final = (PATHS.name, SCENARIO_SUMMARY.name)
"""Tables that are one file with all scenarios in the end."""

PENDING: Final = ".parts"
"""Directory that holds the parts of those until all blocks are written."""

_CELLS_AT_ONCE: Final = 1 << 23
"""A block's tables are made for so many scenarios at a time that they have no more values than this."""


class SimulationWriter:
    """Writes the tables of a simulation.

    Parameters
    ----------
    directory
        ``<output>/simulation``; created where it is missing.
    """

    def __init__(self, directory: Path, tables: SimulationTables) -> None:
        self.directory = directory
        self.tables = tables

    def write_block(self, number: int, block: SimulatedBlock) -> None:
        """Write the part of each table that block ``number`` makes up; parts that are there are replaced.

        Raises
        ------
        OutputError
            When a file cannot be written.
        """
        paths = [self._part(spec.name, number) for spec in self.tables.specs]
        for path in paths:
            with output_errors(path.parent):
                path.parent.mkdir(parents=True, exist_ok=True)
        scenarios = max(1, _CELLS_AT_ONCE // max(1, self.tables.cells_of_a_scenario))
        with atomic_files(paths) as files, ExitStack() as open_parts, ThreadPoolExecutor() as pool:
            parts = {}
            for spec, path, file in zip(self.tables.specs, paths, files, strict=True):
                parts[spec.name] = _Part(path, file)
                open_parts.push(parts[spec.name].close)
            for some in block.parts(scenarios):
                jobs = [
                    pool.submit(parts[name].write, table) for name, table in self.tables.encoded_tables(some)
                ]
                for job in jobs:
                    job.result()

    def is_written(self, number: int) -> bool:
        """Whether all parts of a block are there."""
        return all(self._part(spec.name, number).is_file() for spec in self.tables.specs)

    def finish(self, blocks: int) -> None:
        """Put the parts of tables together that are one file, and write the dictionaries; once, at the end.

        Raises
        ------
        OutputError
            When a file cannot be written, or the part of a block is missing.
        """
        specs = {spec.name: spec for spec in self.tables.specs}
        for name in SINGLE_FILES:
            parts = [self._part(name, number) for number in range(blocks)]
            target = self.directory / f"{name}.parquet"
            atomic_write(target, partial(_join, spec=specs[name], parts=parts))
        write_dictionaries(self.directory / "dictionaries", self.tables.case, self.tables.specs)
        with output_errors(self.directory):
            shutil.rmtree(self.directory / PENDING)

    def _part(self, name: str, number: int) -> Path:
        parent = self.directory / PENDING if name in SINGLE_FILES else self.directory
        return parent / name / f"part-{number:05d}.parquet"


def remove_tables(directory: Path) -> None:
    """Remove the tables of an earlier simulation, whatever entities it had; other files stay.

    Raises
    ------
    OutputError
        When a directory cannot be removed.
    """
    with output_errors(directory):
        for name in (*(spec.name for spec in TABLES), PENDING, "dictionaries"):
            place = directory / name
            if place.is_dir():
                shutil.rmtree(place)
        for name in SINGLE_FILES:
            (directory / f"{name}.parquet").unlink(missing_ok=True)


class _Part:
    """The file of one table and block while it is written, a row group after the other."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self._path, self._file = path, file
        self._writer: pq.ParquetWriter | None = None

    def write(self, table: pa.Table) -> None:
        with output_errors(self._path):
            if self._writer is None:
                self._writer = _writer(self._file, table.schema)
            self._writer.write_table(table, row_group_size=max(1, len(table)))

    def close(self, failed: type[BaseException] | None, *_: object) -> None:
        """Write the end of the file; for ``ExitStack.push``."""
        if self._writer is None:
            return
        with contextlib.suppress(OSError) if failed else output_errors(self._path):
            self._writer.close()  # the file goes where the block has failed, which is what gets reported


def _join(file: BinaryIO, spec: TableSpec, parts: list[Path]) -> None:
    with _writer(file, spec.schema) as writer:
        for part in parts:
            writer.write_table(pq.ParquetFile(part).read().cast(spec.schema))


def _writer(file: BinaryIO, schema: pa.Schema) -> pq.ParquetWriter:
    """Return a writer whose files hold nothing but the table: no schema of Arrow, no times."""
    repeated = [field.name for field in schema if not pa.types.is_floating(field.type)]
    return pq.ParquetWriter(
        file, schema, compression="zstd", use_dictionary=repeated, store_schema=False, write_statistics=True
    )
