"""Readers of a log as a table, and the questions that each of them is asked (`performance.table_in_spark`).

`ready` is a data source in Python that does nothing: it yields a batch of the log's rows that it has, again and
again. No data source in Python can be faster.
"""

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from leaderless.spark import read_log
from leaderless.spark.columns import SCHEMA

LENGTHS = "sum(length(value)) AS length"
READY_ROWS = 32_000  # of a batch: about a row group
PARTITIONS = 4
Ask = Callable[[], object]


class Question(NamedTuple):
    """What is asked, the columns that it needs, and the options by which the data source reads no more."""

    name: str
    columns: str
    ask: Callable[[DataFrame], object]
    options: Mapping[str, str | int] = MappingProxyType({})


def drain(frame: DataFrame) -> None:
    """Read every row of a frame, and keep none."""
    frame.write.format("noop").mode("overwrite").save()


EVERY, LENGTH, COUNT, RANGE = "all columns", "sum of lengths", "count", "a range of one key"
ALL_COLUMNS = (
    "key string, offset bigint, value string, bytes binary, writer string, seq bigint, slot bigint, "
    "appended_at timestamp"
)


def questions(key: str, last: int) -> list[Question]:
    """The questions; the last one is for the records of a key below an offset."""
    where = f"key = '{key}' AND `offset` < {last}"
    narrow: Mapping[str, str | int] = {"keys": key, "endOffset": last}
    return [
        Question(EVERY, ALL_COLUMNS, drain),
        Question(LENGTH, "value string", lambda frame: frame.selectExpr(LENGTHS).collect()),
        Question(COUNT, "offset bigint", lambda frame: frame.count()),
        Question(RANGE, ALL_COLUMNS, lambda frame: frame.where(where).collect(), narrow),
    ]


READ_LOG, SOURCE, PLAIN = "read_log", "the data source", "spark.read.parquet"
READY, DUCK = "a source without work", "DuckDB"


def frames(
    spark: SparkSession, url: str, files: list[str], messages: int
) -> dict[str, Callable[[Question], DataFrame]]:
    """The readers of Spark by name, each with what makes its frame for a question."""

    def source(question: Question) -> DataFrame:
        reader = spark.read.format("leaderless").schema(question.columns)
        return reader.options(**question.options).load(url)

    def ready(question: Question) -> DataFrame:
        reader = spark.read.format("ready").schema(question.columns)
        return reader.options(file=files[0], rows=messages).load()

    return {
        READ_LOG: lambda _: read_log(spark, url),
        SOURCE: source,
        PLAIN: lambda _: spark.read.parquet(*files).select(*SCHEMA.names),
        READY: ready,
    }


def duck(question: Question, files: list[str], key: str, last: int) -> Ask:
    """The question to DuckDB."""
    table = f"FROM read_parquet({files})"
    where = f"WHERE key = '{key}' AND \"offset\" < {last}"
    query = {
        EVERY: f"SELECT * {table}",
        LENGTH: f"SELECT {LENGTHS} {table}",
        COUNT: f"SELECT count(*) {table}",
        RANGE: f"SELECT * {table} {where}",
    }[question.name]

    def ask() -> None:
        found = duckdb.sql(query)
        assert found is not None, "a SELECT has an answer"
        for _ in found.to_arrow_reader(READY_ROWS):
            pass

    return ask


class Ready(DataSource):
    """Yields rows of one file again and again, as many as the option `rows` says."""

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "ready"

    def reader(self, schema: StructType) -> DataSourceReader:
        """A reader of a batch."""
        return _ReadyReader(self.options["file"], schema.names, int(self.options["rows"]))


class _ReadyReader(DataSourceReader):
    def __init__(self, file: str, names: list[str], rows: int) -> None:
        self._file, self._names, self._rows = file, names, rows

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(place) for place in range(PARTITIONS)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:  # noqa: ARG002
        schema = pa.schema([pa.field(name, SCHEMA.field(name).type) for name in self._names])
        table = pq.read_table(self._file, columns=self._names).slice(0, READY_ROWS)
        [batch] = table.select(self._names).cast(schema).combine_chunks().to_batches()
        left = self._rows // PARTITIONS
        while left > 0:
            yield batch.slice(0, left)
            left -= batch.num_rows
