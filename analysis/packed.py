"""A lake copied into few files, for reading: `Lake` reads them like any other lake.

    packed/runs.parquet, operations.parquet, ...

A *lean* copy is small enough to be kept beside source code. Of messages it keeps who sent what to whom, in
answer to what: not when, and of their bodies only the code of an error. Of runs it keeps their settings, but
not the options as they were written, and of where they lay only the last folder: paths of the machine stay
private.
"""

import io
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from analysis.hadoop import Files, location
from analysis.lake import PACKED, Lake
from analysis.schemas import TABLES, whole

# Rows in this order: similar rows stand together and compress well.
_ORDER = {
    "operations": ["run_id", "invoked_index"],
    "messages": ["run_id", "link", "type", "src", "dest", "message_id"],
    "faults": ["run_id", "started_ns", "kind"],
    "anomalies": ["run_id", "type", "number"],
    "figures": ["run_id", "figure", "of"],
    "quarantine": ["run_id", "file", "line"],
    "runs": ["run_id"],
}
_ZSTD_LEVEL = 19


def copy(spark: SparkSession, lake: Lake, folder: str | Path, *, lean: bool) -> None:
    """Write the tables of a lake into a folder or URI, in place of those that are there.

    A lean copy goes through this process and into one file a table: the same lake gives the same bytes.
    """
    for name in TABLES:
        table, at = lake.table(spark, name), f"{location(folder)}/{PACKED.format(name)}"
        if lean:
            columns = [F.col(each.name).cast(each.dataType) for each in whole(name)]
            ordered = _lean(name, table).select(columns).orderBy(*_ORDER[name])
            Files(spark).write(at, _parquet(ordered.toArrow()))
        else:
            spread = table.hint("rebalance").sortWithinPartitions(*_ORDER[name])
            spread.write.mode("overwrite").parquet(at)
    Lake(folder).mark(Files(spark))


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
