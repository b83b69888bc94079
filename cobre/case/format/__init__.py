"""The case format described for programs: JSON Schemas of the JSON files, columns of the Parquet files."""

from cobre.case.format.documents import describe, schema_paths
from cobre.case.format.parquet import PARQUET_FILES, Column, ParquetFile

__all__ = ["PARQUET_FILES", "Column", "ParquetFile", "describe", "schema_paths"]
