"""A lake as one Parquet file for each table, small enough to be kept beside source code.

    packed/runs.parquet, operations.parquet, ...

Of messages it keeps who sent what to whom, in answer to what: not when, and of their bodies only the
code of an error. Of runs it keeps their settings, but not the options as they were written, and of where
they lay only the last folder: paths of the machine stay private. All else is as it
was in the lake.
"""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from analysis.errors import AnalysisError
from analysis.hadoop import Files, location
from analysis.lake import Lake
from analysis.schemas import RUN_ID, TABLES
from runs.files import LAKE_STAGED

# Rows in this order: similar rows stand together and compress well.
_ORDER = {
    "runs": ["run_id"],
    "operations": ["run_id", "invoked_index"],
    "messages": ["run_id", "link", "type", "src", "dest", "message_id"],
    "faults": ["run_id", "started_ns", "kind"],
    "anomalies": ["run_id", "type", "number"],
    "quarantine": ["run_id", "file", "line"],
}
_ZSTD_LEVEL = 19


@dataclass(frozen=True)
class Packed:
    """Reads the tables in `folder`, as `Lake` does."""

    folder: str | Path

    def table(self, spark: SparkSession, name: str, run_ids: Sequence[str] = ()) -> DataFrame:
        """A table, of some runs or (by default) of all."""
        schema = StructType([RUN_ID, *TABLES[name].fields])
        file = _file(Path(self.folder), name)
        if not file.exists():
            raise AnalysisError(f"{file} is not there; pack the lake again")
        table = spark.read.schema(schema).parquet(location(file))
        return table.filter(F.col("run_id").isin(list(run_ids))) if run_ids else table


def is_packed(folder: Path) -> bool:
    """Whether a packed lake is in a folder."""
    return _file(folder, "runs").exists()


def pack(spark: SparkSession, lake: Lake, folder: Path) -> dict[str, int]:
    """Write the tables of a lake into a folder, and replace those that are there.

    Returns:
        the size in bytes of each table's file. The same lake gives the same bytes.
    """
    folder.mkdir(parents=True, exist_ok=True)
    sizes = {}
    for name in TABLES:
        columns = [F.col(field.name).cast(field.dataType) for field in (RUN_ID, *TABLES[name])]
        lean = _lean(name, lake.table(spark, name)).select(columns)
        table = lean.orderBy(*_ORDER[name])
        content = _parquet(table.toArrow())
        _file(folder, name).write_bytes(content)
        sizes[name] = len(content)
    return sizes


def compact(spark: SparkSession, lake: Lake, folder: str | Path) -> None:
    """Copy a lake into a folder or URI with few large files a table, for reading: `Packed` reads it.

    Nothing is left out. A table takes the place of its former self when all of them are written.
    """
    files, at = Files(spark), location(folder)
    for name in TABLES:
        table = lake.table(spark, name).hint("rebalance").sortWithinPartitions(*_ORDER[name])
        table.write.mode("overwrite").parquet(f"{at}/{LAKE_STAGED}/{name}")
    for name in TABLES:
        files.move(f"{at}/{LAKE_STAGED}/{name}", f"{at}/{name}.parquet")
    files.delete(f"{at}/{LAKE_STAGED}")


def _lean(name: str, table: DataFrame) -> DataFrame:
    if name == "runs":
        folder = F.regexp_extract("source", "[^/]*$", 0)
        return table.withColumns({"source": folder, "options_json": F.lit(None)})
    if name != "messages":
        return table
    nothing = {column: F.lit(None) for column in ("sent_ns", "received_ns", "latency_ns")}
    code = F.get_json_object("body_json", "$.code").cast("int")
    error = F.when(F.col("type") == "error", F.to_json(F.struct(code.alias("code"))))
    return table.withColumns(nothing | {"body_json": error})


def _parquet(table: pa.Table) -> bytes:
    """Whole numbers by their differences, all else by a dictionary."""
    numbers = [field.name for field in table.schema if pa.types.is_integer(field.type)]
    others = [field.name for field in table.schema if field.name not in numbers]
    content = io.BytesIO()
    pq.write_table(
        table.replace_schema_metadata(None),
        content,
        compression="zstd",
        compression_level=_ZSTD_LEVEL,
        use_dictionary=others,
        column_encoding=dict.fromkeys(numbers, "DELTA_BINARY_PACKED"),
        write_statistics=False,
        store_schema=False,
    )
    return content.getvalue()


def _file(folder: Path, name: str) -> Path:
    return folder / f"{name}.parquet"
