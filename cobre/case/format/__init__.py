"""The case format described for programs: JSON Schemas of the JSON files, columns of the Parquet files."""

from cobre.case.format.columns import PARQUET_FILES, Column, ParquetFile
from cobre.case.format.descriptions import describe, schema_paths

__all__ = ["PARQUET_FILES", "Column", "ParquetFile", "describe", "schema_paths"]
