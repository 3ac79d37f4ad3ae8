"""Where histories come from: files as the bench or the real tool writes them, or tables of operations.

A `Source` is a table of operations for the job, and a way back: the few whole operations that its
witnesses name.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from analysis.checker.schemas import EVENT, OPERATION, parts, parts_of
from analysis.errors import AnalysisError
from analysis.rows import halves
from analysis.schemas import map_rows
from runs import edn
from runs.history import HistoryError, Op, line_ops
from runs.operations import Row

Place = tuple[int, int]  # the number of a run, and a place in its history
Ops = dict[Place, Op]


class Source(NamedTuple):
    """Histories to be judged.

    Attributes:
        names: the runs by their numbers.
        operations: see `schemas.OPERATION`.
        ops: fetches whole operations; its argument has the columns `run` and `at`.
    """

    names: tuple[str, ...]
    operations: DataFrame
    ops: Callable[[DataFrame], Ops]


def from_operations(operations: DataFrame, names: Sequence[str]) -> Source:
    """Runs in the lake's table of operations (`analysis.schemas.TABLES`, with `run_id`).

    Not a guarantee: the table has no room for completions without an invocation (ingest quarantines
    them), and of a history's optional fields only for `error`. So witnesses show no other.
    """
    numbers = F.create_map(*(F.lit(each) for pair in enumerate(names) for each in reversed(pair)))
    chosen = operations.filter(F.col("run_id").isin(*names))
    invoked, completed = F.col("invoked_value_json"), F.col("completed_value_json")
    value = F.when(F.col("outcome") == "open", invoked).otherwise(completed)
    rows = chosen.select(
        numbers[F.col("run_id")].alias("run"),
        "process",
        "f",
        F.col("outcome").alias("type"),
        F.col("completed_index").alias("at"),
        F.col("completed_ns").alias("at_ns"),
        F.col("invoked_index").alias("invoked_at"),
        "invoked_ns",
        F.col("error_json").alias("error"),
        parts(F.col("f"), value).alias("parts"),
    )
    return Source(tuple(names), rows, partial(_table_ops, chosen, numbers))


def _table_ops(operations: DataFrame, numbers: Any, wanted: DataFrame) -> Ops:
    ends = F.explode(F.array("invoked_index", "completed_index"))
    places = operations.select("*", numbers[F.col("run_id")].alias("run"), ends.alias("at"))
    rows = places.join(F.broadcast(wanted), ["run", "at"]).collect()
    return {(row.run, op.index): op for row in rows for op in halves(row)}


def from_histories(spark: SparkSession, files: Sequence[Path]) -> Source:
    """Histories in files, EDN or JSON lines, plain or (by name) gzipped: one operation a line.

    Raises:
        AnalysisError: a file cannot be read, or a line is no operation.
    """
    paths = [file.resolve() for file in files]
    for path in paths:
        if not path.is_file():
            raise AnalysisError(f"{path} is no file; give histories or folders of runs")
    lines = _lines(spark, paths)
    events = map_rows(lines, _event, EVENT).persist(StorageLevel.DISK_ONLY)
    if bad := events.filter("problem is not null").select("run", "problem").first():
        raise AnalysisError(f"{files[bad.run]} is no history: {bad.problem}")
    return Source(tuple(map(str, files)), _paired(events), partial(_line_ops, lines))


def _lines(spark: SparkSession, paths: Sequence[Path]) -> DataFrame:
    """The lines of all files, numbered in the order of each file."""
    known = [(str(path), run) for run, path in enumerate(paths)]
    by_name = spark.createDataFrame(known, "file string, run int")
    uri = F.regexp_replace("_metadata.file_path", "^file:/*", "/")
    texts = spark.read.text([str(path) for path in paths]).select(
        F.col("value").alias("text"),
        F.url_decode(F.replace(uri, F.lit("+"), F.lit("%2B"))).alias("file"),
        F.monotonically_increasing_id().alias("at"),
    )
    return texts.join(F.broadcast(by_name), "file").select("run", "at", "text")


def _event(line: Row) -> Iterator[Row]:
    """The operation on a line as a row of `EVENT`, or why there is none; nothing for what the nemesis did."""
    run, at = line["run"], line["at"]
    try:
        ops = list(_read(at, line["text"]))
    except HistoryError as error:
        yield {"run": run, "problem": str(error).partition(": ")[2]}
        return
    if len(ops) > 1:
        yield {"run": run, "problem": "more than one operation on a line"}
    for op in ops[:1]:
        if isinstance(op.process, int):
            cause = "#" + edn.dumps(op.extra["error"]) if "error" in op.extra else None
            row = (run, at, op.time, op.process, str(op.f), op.type, cause, parts_of(op), None)
            yield dict(zip(EVENT.names, row, strict=True))


def _paired(events: DataFrame) -> DataFrame:
    """Lines as operations: what follows an invocation in the order of its process completes it."""
    in_order = Window.partitionBy("run", "process").orderBy("at")
    before, after = F.lag("type").over(in_order), F.lead("type").over(in_order)
    lines = events.drop("problem").select(
        "*",
        F.when(before == "invoke", F.lag("at").over(in_order)).alias("invoked_at"),
        F.when(before == "invoke", F.lag("at_ns").over(in_order)).alias("invoked_ns"),
        ((F.col("type") == "invoke") & F.coalesce(after == "invoke", F.lit(True))).alias("open"),
    )
    completed = lines.filter("type <> 'invoke'")
    ends = ("type", "at", "at_ns", "invoked_at", "invoked_ns")
    cut_off = lines.filter("open").select(
        *(column for column in lines.columns if column not in ends),
        F.lit("open").alias("type"),
        F.lit(None).cast("long").alias("at"),
        F.lit(None).cast("long").alias("at_ns"),
        F.col("at").alias("invoked_at"),
        F.col("at_ns").alias("invoked_ns"),
    )
    return completed.unionByName(cut_off).select(*OPERATION.names)


def _line_ops(lines: DataFrame, wanted: DataFrame) -> Ops:
    rows = lines.join(F.broadcast(wanted), ["run", "at"]).collect()
    return {(row.run, row["at"]): op for row in rows for op in _read(row["at"], row.text)}


def _read(at: int, text: str) -> Iterator[Op]:
    return line_ops(Path("history"), (at & _ROW) + 1, text)


_ROW = (1 << 33) - 1  # the bits of Spark's increasing numbers that count the rows of a partition
