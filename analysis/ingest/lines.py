"""Files of many runs as a table of JSON lines, and lines as rows: every format takes the same way.

A *lines* table has the columns `run_id`, `file`, `line` (from 1, or null: see `read_lines`), `text` (JSON)
and `problem` (why there is no usable text, or null). `parse` turns it into rows and says what is wrong
with those it cannot use.

All files of a format are read by one scan, whichever run they belong to: a thousand small runs are a few
tasks, and one huge run is many. What cannot be cut is one task's: a gzipped file, a Fressian stripe.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any
from zlib import crc32

from pyspark.sql import Column, DataFrame, Observation, Row, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from analysis.finding import Run
from analysis.hadoop import Files, shown_uri
from analysis.schemas import CORRUPT, LONG, RUN_ID, TEXT, struct
from runs import edn, fressian
from runs.files import STRIPE_ENDING, STRIPES, File

TEXT_KEPT = 200  # characters of a bad line that the quarantine keeps: enough to recognise it
LINES = StructType([RUN_ID, *struct(file=TEXT, line=LONG, text=TEXT, problem=TEXT)])
_LARGE_GZIP_BYTES = 32 << 20  # from here on it pays to spread the lines before they are parsed
_STRIPE_LIMIT_BYTES = (1 << 31) - 1024  # Java's arrays end there
_BITS = 63
_OWN_NAME = rf"/((?:{STRIPES}/)?[^/]+)$"  # of a file, seen from its run's folder


@dataclass(frozen=True)
class Source:
    """One file to read, and the run it is of."""

    run: Run
    file: File

    @property
    def name(self) -> str:
        """Its name among all files of the lake."""
        return f"{self.run.run_id}/{self.file.name}"

    @property
    def path(self) -> str:
        """Where Spark finds it."""
        return f"{self.run.location}/{self.file.name}"


def read_lines(
    spark: SparkSession,
    sources: Sequence[Source],
    *,
    numbered: bool = False,
    containing: str | None = None,
) -> DataFrame:
    """The lines of text files (JSON lines or EDN, gzipped or not) and of Fressian stripes.

    Args:
        sources: one or more files, of any runs.
        numbered: whether `line` is wanted for text files. It costs another pass over them, as the parts
            of a large file are read by different tasks; so it is for files that have bad lines.
        containing: only lines with this text in them (Fressian: all).
    """
    stripes = [source for source in sources if source.file.name.endswith(STRIPE_ENDING)]
    text = [source for source in sources if source not in set(stripes)]
    edn_text = [source for source in text if ".edn" in source.file.name]
    json_text = [source for source in text if source not in set(edn_text)]
    tables = []
    if json_text:
        tables.append(_text_lines(spark, json_text, numbered, containing))
    if edn_text:
        tables.append(_edn_as_json(_text_lines(spark, edn_text, numbered, containing)))
    if stripes:
        tables.append(_fressian_lines(spark, stripes))
    return reduce(DataFrame.unionByName, tables)


def _text_lines(
    spark: SparkSession, sources: Sequence[Source], numbered: bool, containing: str | None
) -> DataFrame:
    path = shown_uri()
    text = spark.read.text([source.path for source in sources]).select(
        F.col("value").alias("text"),
        F.regexp_replace(path, _OWN_NAME, "").alias("folder"),
        F.regexp_extract(path, _OWN_NAME, 1).alias("file"),
        F.col("_metadata.file_block_start").alias("block"),
    )
    text = _numbered(text) if numbered else text.withColumn("line", F.lit(None).cast("long"))
    wanted = F.col("text").contains(containing) if containing else F.trim("text") != ""
    lines = text.filter(wanted).join(F.broadcast(_folders(spark, sources)), "folder")
    if any(_is_large_gzip(source.file) for source in sources):
        lines = lines.repartition(spark.sparkContext.defaultParallelism * 2)
    return lines.select(
        "run_id", "file", "line", "text", F.lit(None).cast("string").alias("problem")
    )


def _is_large_gzip(file: File) -> bool:
    return file.name.endswith(".gz") and file.size_bytes > _LARGE_GZIP_BYTES


def _folders(spark: SparkSession, sources: Sequence[Source]) -> DataFrame:
    """Which folder, as Spark shows it, is which run's."""
    files = Files(spark)
    runs = {source.run.run_id: source.run.location for source in sources}
    rows = [(files.uri(folder), run_id) for run_id, folder in runs.items()]
    return spark.createDataFrame(rows, "folder string, run_id string")


def _numbered(text: DataFrame) -> DataFrame:
    """With `line`: the lines in the blocks before, and those of its own block before it.

    Spark gives rows of one block consecutive numbers, in their order, whatever else its task reads.
    """
    of_block = ["folder", "file", "block"]
    placed = text.withColumn("place", F.monotonically_increasing_id())
    blocks = placed.groupBy(of_block).agg(F.min("place").alias("first"), F.count("*").alias("size"))
    before = (
        Window.partitionBy("folder", "file")
        .orderBy("block")
        .rowsBetween(Window.unboundedPreceding, -1)
    )
    shift = F.coalesce(F.sum("size").over(before), F.lit(0)) - F.col("first") + 1
    shifts = blocks.withColumn("shift", shift).drop("first", "size")
    return placed.join(F.broadcast(shifts), of_block).withColumn(
        "line", F.col("place") + F.col("shift")
    )


def _edn_as_json(lines: DataFrame) -> DataFrame:
    translate = F.udf(_translate, "text string, problem string", useArrow=False)
    translated = lines.withColumn("translated", translate("text"))
    return translated.select(
        "run_id",
        "file",
        "line",
        F.coalesce("translated.text", "text").alias("text"),
        F.col("translated.problem").alias("problem"),
    )


def _translate(text: str) -> tuple[str | None, str | None]:
    try:
        return json.dumps(edn.loads_json(text)), None
    except (edn.EdnError, RecursionError) as error:
        return None, f"not EDN: {error}"


def _fressian_lines(spark: SparkSession, sources: Sequence[Source]) -> DataFrame:
    """One row per event. A stripe is read by one task: its caches allow no other order."""
    readable = [source for source in sources if source.file.size_bytes <= _STRIPE_LIMIT_BYTES]
    refused = [
        (source.run.run_id, source.file.name, None, None, "larger than 2 GiB: cannot be read")
        for source in sources
        if source.file.size_bytes > _STRIPE_LIMIT_BYTES
    ]
    files = Files(spark)
    run_ids = {files.uri(source.run.location): source.run.run_id for source in readable}
    stripes = spark.read.format("binaryFile").load([source.path for source in readable])
    named = stripes.select("content", shown_uri().alias("uri"))
    spread = named.repartition(max(len(readable), 1)).rdd
    events = spread.flatMap(lambda stripe: _stripe_lines(stripe, run_ids))
    lines = spark.createDataFrame(events, LINES)
    return lines.unionByName(spark.createDataFrame(refused, LINES)) if refused else lines


def _stripe_lines(stripe: Row, run_ids: dict[str, str]) -> Iterator[tuple[Any, ...]]:
    folder, *name = stripe.uri.rsplit("/", 2)
    place, record = (run_ids[folder], "/".join(name)), 0
    try:
        for record, event in enumerate(fressian.journal_events(bytes(stripe.content)), start=1):
            yield *place, record, json.dumps(event), None
    except fressian.FressianError as error:
        yield *place, record + 1, None, f"not Fressian: {error}"


def parse(
    lines: DataFrame, schema: StructType, required: Iterable[str], **allowed: str
) -> DataFrame:
    """Lines with their fields, and what is wrong with them.

    Args:
        lines: a lines table.
        schema: of one line; a text that does not fit lands in its `CORRUPT` field.
        required: names of fields that must not be null, with dots for nested ones.
        allowed: per field, the words that it may hold, separated by spaces.
    Returns:
        `run_id`, `file`, `line`, `text`, `row` (a struct of `schema`) and `reason` (null for a good
        line).
    """
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}
    rows = lines.withColumn("row", F.from_json("text", schema, options))
    reasons = [
        F.col("problem"),
        F.when(F.col("row").isNull() | F.col(f"row.{CORRUPT}").isNotNull(), _misfit(schema)),
        *(F.when(F.col(f"row.{name}").isNull(), F.lit(f"no {name}")) for name in required),
        *(_not_allowed(name, words.split()) for name, words in allowed.items()),
    ]
    return rows.select(
        "run_id", "file", "line", "text", "row", F.coalesce(*reasons).alias("reason")
    )


def _misfit(schema: StructType) -> Column:
    names = ", ".join(name for name in schema.names if name != CORRUPT)
    return F.lit(f"not a JSON object with fields of the right kind ({names})")


def _not_allowed(name: str, words: list[str]) -> Column:
    field = F.col(f"row.{name}")
    expected = F.lit(f" is not one of {', '.join(words)}")
    return F.when(~field.isin(words), F.concat(F.lit(f"{name} "), field, expected))


def good(rows: DataFrame, bad: Observation | None = None) -> DataFrame:
    """The fields of the rows that can be used, with their `run_id`, `file`, `line` and `text`.

    Args:
        rows: parsed lines.
        bad: receives the files with rows that cannot be used (see `bad_files`).
    """
    # Observing is also a fence: without it Spark moves the filter below the parsing, and parses each
    # line again for every condition.
    observed = observe_bad(rows, F.col("reason"), bad or Observation())
    return observed.filter("reason is null").select("run_id", "file", "line", "text", "row.*")


def observe_bad(rows: DataFrame, reason: Column, bad: Observation) -> DataFrame:
    """The same rows; once they have been computed, `bad` knows the files where `reason` is not null.

    It keeps one bit for each file, of few, so that now and then it names a good file too.
    """
    number = F.crc32(F.concat("run_id", F.lit("/"), "file")) % _BITS
    bit = F.call_function("shiftleft", F.lit(1).cast("long"), number.cast("int"))
    bits = F.bit_or(F.when(reason.isNotNull(), bit).otherwise(F.lit(0).cast("long")))
    return rows.observe(bad, bits.alias("bits"))


def bad_files(sources: Iterable[Source], *observations: Observation) -> list[Source]:
    """Those of `sources` that observations may have found bad lines in: all of them, few others."""
    bits = reduce(or_, (observed.get["bits"] or 0 for observed in observations))
    return [source for source in sources if bits >> crc32(source.name.encode()) % _BITS & 1]


def quarantined(rows: DataFrame) -> DataFrame:
    """The rows that cannot be used, as rows of the quarantine table."""
    kept = F.substring("text", 1, TEXT_KEPT).alias("text")
    return rows.filter("reason is not null").select("run_id", "file", "reason", "line", kept)
