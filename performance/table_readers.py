"""Readers of a log as a table, and the questions that each of them is asked (`performance.table_in_spark`).

`ready` is a data source in Python that does nothing: it yields a batch of the log's rows that it has, again and
again. No data source in Python can be faster.
"""

from collections.abc import Callable, Iterator
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
    """What is asked, and the columns that it needs."""

    name: str
    columns: str
    ask: Callable[[DataFrame], object]


def _drain(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


EVERY = "all columns"
ALL_COLUMNS = (
    "key string, offset bigint, value string, bytes binary, writer string, seq bigint, slot bigint, "
    "appended_at timestamp"
)


def questions(key: str, last: int) -> list[Question]:
    """The questions; the last one is for the records of a key below an offset."""
    where = f"key = '{key}' AND `offset` < {last}"
    return [
        Question(EVERY, ALL_COLUMNS, _drain),
        Question(
            "sum of lengths", "value string", lambda frame: frame.selectExpr(LENGTHS).collect()
        ),
        Question("count", "offset bigint", lambda frame: frame.count()),
        Question("a range of one key", ALL_COLUMNS, lambda frame: frame.where(where).collect()),
    ]


def frames(
    spark: SparkSession, url: str, files: list[str], messages: int
) -> dict[str, Callable[[Question], DataFrame]]:
    """The readers of Spark by name, each with what makes its frame for a question."""

    def source(question: Question) -> DataFrame:
        return spark.read.format("leaderless").schema(question.columns).load(url)

    def ready(question: Question) -> DataFrame:
        reader = spark.read.format("ready").schema(question.columns)
        return reader.options(file=files[0], rows=messages).load()

    return {
        "read_log": lambda _: read_log(spark, url),
        "the data source": source,
        "spark.read.parquet": lambda _: spark.read.parquet(*files).select(*SCHEMA.names),
        "a source without work": ready,
    }


def duck(question: Question, files: list[str], key: str, last: int) -> Ask | None:
    """The question to DuckDB; None for one that only Spark has."""
    table = f"FROM read_parquet({files})"
    where = f"WHERE key = '{key}' AND \"offset\" < {last}"
    query = {
        "sum of lengths": f"SELECT {LENGTHS} {table}",
        "count": f"SELECT count(*) {table}",
        "a range of one key": f"SELECT * {table} {where}",
    }.get(question.name)
    return None if query is None else lambda: duckdb.execute(query).fetchall()


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
