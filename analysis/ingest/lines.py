"""Files as a table of JSON lines, and lines as rows: every format takes the same way from here.

A *lines* table has the columns `file`, `line` (from 1, or null: see `numbered`), `text` (JSON) and
`problem` (why there is no usable text, or null). `parse` turns it into rows and says what is wrong
with those it cannot use.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from pyspark.sql import Column, DataFrame, Observation, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StringType, StructField, StructType

from analysis.formats import edn, fressian
from analysis.schemas.lines import CORRUPT

TEXT_KEPT = 200  # characters of a bad line that the quarantine keeps: enough to recognise it
_LINES = StructType(
    [
        StructField("file", StringType(), nullable=False),
        StructField("line", LongType()),
        StructField("text", StringType()),
        StructField("problem", StringType()),
    ]
)


def read_lines(spark: SparkSession, files: Sequence[Path], *, numbered: bool = False) -> DataFrame:
    """The lines of one text file (JSON lines or EDN, gzipped or not), or of Fressian stripes.

    Numbering the lines of a text file costs another pass over it, as the parts of a large file are
    read by different tasks; so that is done on demand, for a file that has bad lines.
    """
    if files[0].suffix == ".fressian":
        return _fressian_lines(spark, files)
    (file,) = files
    text = spark.read.text(str(file))
    if numbered:
        text = text.zipWithIndex("position")
    lines = text.filter(F.trim("value") != "").select(
        F.lit(file.name).alias("file"),
        (F.col("position") + 1 if numbered else F.lit(None).cast("long")).alias("line"),
        F.col("value").alias("text"),
        F.lit(None).cast("string").alias("problem"),
    )
    return _edn_as_json(lines) if ".edn" in file.suffixes else lines


def _edn_as_json(lines: DataFrame) -> DataFrame:
    translate = F.udf(_translate, "text string, problem string", useArrow=False)
    translated = lines.withColumn("translated", translate("text"))
    return translated.select(
        "file",
        "line",
        F.coalesce("translated.text", "text").alias("text"),
        F.col("translated.problem").alias("problem"),
    )


def _translate(text: str) -> tuple[str | None, str | None]:
    try:
        return json.dumps(edn.loads(text)), None
    except edn.EdnError as error:
        return None, f"not EDN: {error}"


def _fressian_lines(spark: SparkSession, files: Sequence[Path]) -> DataFrame:
    """One row per event. A stripe is read by one task: its caches allow no other order."""
    stripes = spark.read.format("binaryFile").load([str(file) for file in files])
    content = stripes.select("path", "content").repartition(len(files)).rdd
    return spark.createDataFrame(content.flatMap(_stripe_lines), _LINES)


def _stripe_lines(stripe: Row) -> Iterator[tuple[str, int, str | None, str | None]]:
    file, record = "/".join(stripe.path.split("/")[-2:]), 0
    try:
        for record, event in enumerate(fressian.journal_events(bytes(stripe.content)), start=1):
            yield file, record, json.dumps(event), None
    except fressian.FressianError as error:
        yield file, record + 1, None, f"not Fressian: {error}"


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
        `file`, `line`, `text`, `row` (a struct of `schema`) and `reason` (null for a good line).
    """
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}
    rows = lines.withColumn("row", F.from_json("text", schema, options))
    reasons = [
        F.col("problem"),
        F.when(F.col("row").isNull() | F.col(f"row.{CORRUPT}").isNotNull(), _misfit(schema)),
        *(F.when(F.col(f"row.{name}").isNull(), F.lit(f"no {name}")) for name in required),
        *(_not_allowed(name, words.split()) for name, words in allowed.items()),
    ]
    return rows.select("file", "line", "text", "row", F.coalesce(*reasons).alias("reason"))


def _misfit(schema: StructType) -> Column:
    names = ", ".join(name for name in schema.names if name != CORRUPT)
    return F.lit(f"not a JSON object with fields of the right kind ({names})")


def _not_allowed(name: str, words: list[str]) -> Column:
    field = F.col(f"row.{name}")
    expected = F.lit(f" is not one of {', '.join(words)}")
    return F.when(~field.isin(words), F.concat(F.lit(f"{name} "), field, expected))


def good(rows: DataFrame, bad: Observation | None = None) -> DataFrame:
    """The fields of the rows that can be used, with their `file`, `line` and `text`.

    Args:
        rows: parsed lines.
        bad: is told, as `count`, how many rows cannot be used, once the result has been computed.
    """
    # Observing is also a fence: without it Spark moves the filter below the parsing, and parses each
    # line again for every condition.
    observed = rows.observe(bad or Observation(), F.count("reason").alias("count"))
    return observed.filter("reason is null").select("file", "line", "text", "row.*")


def quarantined(rows: DataFrame) -> DataFrame:
    """The rows that cannot be used, as rows of the quarantine table."""
    kept = F.substring("text", 1, TEXT_KEPT).alias("text")
    return rows.filter("reason is not null").select("file", "reason", "line", kept)
