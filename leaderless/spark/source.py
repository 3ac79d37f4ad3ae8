"""The data source `leaderless`, as Spark finds it: `spark.dataSource.register(LeaderlessDataSource)`."""

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import (
    BinaryType,
    DataType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from leaderless.errors import Unfit
from leaderless.spark.encoding import require_columns
from leaderless.spark.reader import Scan, StreamReader, TableReader, start_of
from leaderless.spark.reading import SCHEMA
from leaderless.spark.settings import (
    SINK,
    STREAM,
    STREAM_SINK,
    TABLE,
    count_in,
    flag_in,
    place_in,
    predicate_in,
    require_known,
)
from leaderless.spark.sink import BatchSink, StreamSink, Target, target_of

PYTHON = "PYSPARK_PYTHON"
PYTHON_ON_PATH = "python3"  # what PySpark takes where `PYTHON` is not set

TYPES: dict[str, DataType] = {  # in Spark, of `leaderless.spark.reading.SCHEMA`
    "key": StringType(),
    "offset": LongType(),
    "value": StringType(),
    "bytes": BinaryType(),
    "appended_at": TimestampType(),
    "headers": MapType(StringType(), StringType()),
    "writer": StringType(),
    "seq": LongType(),
    "slot": LongType(),
}
COLUMNS = StructType([StructField(name, kind) for name, kind in TYPES.items()])
CATALOGUE = ("provider", "owner")  # which CREATE TABLE adds to the options


class LeaderlessDataSource(DataSource):
    """A log as a table. The options stand in docs/log/table-in-spark.md."""

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "leaderless"

    def schema(self) -> StructType:
        """See `DataSource`: the columns of the table; a read may ask for some of them with `.schema(...)`.

        Raises `Unfit` for an option that no read has, and for a table of the catalogue with options.
        """
        if any(name.startswith("option.") or name == "location" for name in self.options):
            text = "CREATE TEMPORARY VIEW name USING leaderless OPTIONS (url '...') makes a view that is"
            raise Unfit(
                f"Spark reads a table of CREATE TABLE without its options. {text} read with them"
            )
        require_known(self.options, (*STREAM, *TABLE, *CATALOGUE))
        return COLUMNS

    def reader(self, schema: StructType) -> DataSourceReader:
        """See `DataSource`: a reader of a batch, with the columns of `schema`."""
        require_known(self.options, TABLE)
        versions = [count_in(self.options, name) for name in ("sinceVersion", "asOfVersion")]
        return TableReader(self._scan(schema), *versions)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """See `DataSource`: a reader of a stream, with the columns of `schema`."""
        require_known(self.options, STREAM)
        start = start_of(self.options.get("start"))
        rows_max = count_in(self.options, "maxRecordsPerBatch")
        if rows_max == 0:
            raise Unfit("the option maxRecordsPerBatch is a number from 1 up")
        strict = flag_in(self.options, "failOnDataLoss", default=True)
        return StreamReader(self._scan(schema), start, rows_max, strict=strict)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """See `DataSource`: a sink for a frame with the columns of `schema`.

        Raises `Unfit` for others, and for `overwrite`.
        """
        return BatchSink(self._target(schema, SINK, overwrite), self.options.get("name"))

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        """See `DataSource`: a sink for a stream. Raises as `writer`, by `schema` and `overwrite`."""
        return StreamSink(self._target(schema, STREAM_SINK, overwrite))

    def _scan(self, schema: StructType) -> Scan:
        columns = pa.schema([_column(field) for field in schema.fields])
        return Scan(place_in(self.options), columns, predicate_in(self.options))

    def _target(self, schema: StructType, known: Sequence[str], overwrite: bool) -> Target:
        require_known(self.options, known)
        types = {field.name: field.dataType.simpleString() for field in schema.fields}
        require_columns(schema.names, types)
        return target_of(place_in(self.options), self.options.get("values"), overwrite=overwrite)


def _column(asked: StructField) -> pa.Field:
    """A column that a read asks for; in Spark the case of its name means nothing. Raises `Unfit`."""
    name = asked.name.lower()
    if TYPES.get(name) != asked.dataType:
        known = ", ".join(f"{name} {kind.simpleString()}" for name, kind in TYPES.items())
        text = f"{asked.name} {asked.dataType.simpleString()}"
        raise Unfit(f"the table has no column {text}; it has {known}")
    return SCHEMA.field(name).with_name(asked.name).with_nullable(asked.nullable)


def _use_this_python() -> None:
    """Let the workers on this machine run the Python that runs here, unless the user named another.

    A program that is started as `.venv/bin/python program.py` has an environment that is on no path. Spark's
    workers would run the `python3` of the path, which lacks our packages. A session reads the variable when it
    starts. A cluster that is connected already has its own places of Python.
    """
    found = shutil.which(PYTHON_ON_PATH)
    is_on_path = found is not None and Path(found).parent == Path(sys.executable).parent
    if PYTHON in os.environ or is_on_path:
        return
    classic = sys.modules.get("pyspark.core.context")  # which a client of Spark Connect alone lacks
    context: Any = classic and classic.SparkContext._active_spark_context
    if context is None:
        os.environ[PYTHON] = sys.executable
    elif (context.master or "").startswith("local"):
        context.pythonExec = sys.executable


_use_this_python()  # before the source is registered: then Spark decides what its tasks run
