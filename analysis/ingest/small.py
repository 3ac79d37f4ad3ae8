"""The small files of many runs, read in one go: options and results."""

from collections.abc import Iterable, Mapping, Sequence

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, StructField, StructType

from analysis.files import Files, shown_uri
from analysis.ingest import facts
from analysis.ingest.lines import Source
from analysis.schemas.tables import ANOMALIES, QUARANTINE, RUN_ID, RUNS
from analysis.sources import Run
from runs.facts import UNKNOWN
from runs.files import File

_FROM_RESULTS = ("valid", "bad_error_types", "error_types", "network_json")
_IN_DRIVER_BYTES = 4 << 20  # as much is read sooner than Python workers start

OPTIONS = StructType([RUN_ID, *(field for field in RUNS if field.name not in _FROM_RESULTS)])
RESULTS = StructType(
    [
        RUN_ID,
        StructField("run", StructType([RUNS[name] for name in _FROM_RESULTS])),
        StructField("anomalies", ArrayType(ANOMALIES)),
        StructField("problems", ArrayType(QUARANTINE)),
    ]
)


def options(spark: SparkSession, runs: Sequence[Run]) -> tuple[DataFrame, DataFrame]:
    """What the runs' test.json say: columns of the runs table, and rows of the quarantine table."""
    sources = _sources((run, run.files.options) for run in runs)
    contents = {row.run_id: bytes(row.content) for row in _read(spark, sources)}
    read = [facts.of_options(run, contents.get(run.run_id)) for run in runs]
    problems = [problem for _, each in read for problem in each]
    problems += [problem for run in runs for problem in facts.of_empty_files(run)]
    return (
        spark.createDataFrame([row for row, _ in read], OPTIONS),
        spark.createDataFrame(problems, StructType([RUN_ID, *QUARANTINE])),
    )


def results(spark: SparkSession, runs: Sequence[Run]) -> DataFrame:
    """A row of `RESULTS` for each run that has results; large ones are read by the executors."""
    sources = _sources((run, run.files.results) for run in runs)
    if sum(source.file.size_bytes for source in sources) <= _IN_DRIVER_BYTES:
        return spark.createDataFrame([*map(_of_results, _read(spark, sources))], RESULTS)
    return spark.createDataFrame(_contents(spark, sources).rdd.map(_of_results), RESULTS).persist()


def _sources(files: Iterable[tuple[Run, File | None]]) -> list[Source]:
    """Those that are there and not empty."""
    return [Source(run, file) for run, file in files if file and file.size_bytes]


def runs_table(options: DataFrame, results: DataFrame) -> DataFrame:
    """Rows of the runs table from both."""
    joined = options.join(results.select("run_id", "run.*"), "run_id", "left")
    return joined.withColumn("valid", F.coalesce("valid", F.lit(UNKNOWN)))


def _read(spark: SparkSession, sources: Sequence[Source]) -> list[Row]:
    return _contents(spark, sources).collect() if sources else []


def _contents(spark: SparkSession, sources: Sequence[Source]) -> DataFrame:
    """run_id, file and content of files, of which each run has one."""
    files = Files(spark)
    names = [(files.uri(source.path), source.run.run_id, source.file.name) for source in sources]
    table = spark.createDataFrame(names, "uri string, run_id string, file string")
    contents = spark.read.format("binaryFile").load([source.path for source in sources])
    named = contents.select("content", shown_uri().alias("uri"))
    return named.join(F.broadcast(table), "uri").select("run_id", "file", "content")


def _of_results(row: Row) -> Mapping[str, object]:
    return facts.of_results(row.run_id, row.file, bytes(row.content))
