"""Files of simulated scenarios: a part of each table for every block, and what holds all scenarios.

::

    <simulation>/<table>/part-NNNNN.parquet     NNNNN is the number of the block
                 paths.parquet                  scenario_summary.parquet
                 dictionaries/                  variables.csv  entities.csv  codes.json

The same block gives the same bytes, whichever process writes it and when; every file is complete or not
there.
"""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path
from typing import BinaryIO, Final

import pyarrow as pa
import pyarrow.parquet as pq

from cobre.durable import atomic_write, atomic_write_all, output_errors
from cobre.results.columns import TableSpec
from cobre.results.dictionaries import write_dictionaries
from cobre.results.simulation.catalogue import PATHS, SCENARIO_SUMMARY, TABLES
from cobre.results.simulation.tables import SimulationTables
from cobre.sddp.simulation.block import SimulatedBlock

SINGLE_FILES: Final = (PATHS.name, SCENARIO_SUMMARY.name)
"""Tables that are one file with all scenarios in the end."""

PENDING: Final = ".parts"
"""Directory that holds the parts of those until all blocks are written."""


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
        for spec in self.tables.specs:
            directory = self._part(spec.name, number).parent
            with output_errors(directory):
                directory.mkdir(parents=True, exist_ok=True)
        atomic_write_all(
            (self._part(name, number), partial(_write, table=table))
            for name, table in self.tables.encoded_tables(block)
        )

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


def _write(file: BinaryIO, table: pa.Table) -> None:
    with _writer(file, table.schema) as writer:
        writer.write_table(table, row_group_size=max(1, len(table)))


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
