"""The small files of many runs, read in one go: options and results, as rows of the lake's tables.

What the files say is known by `runs.facts`.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, StructType

from analysis.finding import Run
from analysis.hadoop import Files, shown_uri
from analysis.ingest.lines import Source
from analysis.schemas import ANOMALIES, QUARANTINE, RUN_ID, RUNS, struct
from runs import edn
from runs.facts import EMBEDDED, JEPSEN, UNKNOWN, Results, Settings, read_options
from runs.files import File

Columns = dict[str, Any]  # a row, by name

_FROM_RESULTS = ("valid", "bad_error_types", "error_types", "network_json")
_IN_DRIVER_BYTES = 4 << 20  # as much is read sooner than Python workers start

OPTIONS = StructType([RUN_ID, *(field for field in RUNS if field.name not in _FROM_RESULTS)])
_PARTS = struct(
    run=StructType([RUNS[name] for name in _FROM_RESULTS]),
    anomalies=ArrayType(ANOMALIES),
    problems=ArrayType(QUARANTINE),
)
RESULTS = StructType([RUN_ID, *_PARTS])


def options(spark: SparkSession, runs: Sequence[Run]) -> tuple[DataFrame, DataFrame]:
    """What the runs' test.json say: columns of the runs table, and rows of the quarantine table."""
    sources = _sources((run, run.files.options) for run in runs)
    contents = {row.run_id: bytes(row.content) for row in _read(spark, sources)}
    read = [of_options(run, contents.get(run.run_id)) for run in runs]
    problems = [problem for _, each in read for problem in each]
    problems += [problem for run in runs for problem in of_empty_files(run)]
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
    return of_results(row.run_id, row.file, bytes(row.content))


def of_options(run: Run, content: bytes | None) -> tuple[Columns, list[Columns]]:
    """What test.json says, as columns of the runs table, and rows of the quarantine table.

    What is missing or broken leaves its columns null.
    """
    options, problems = {}, []
    try:
        options = read_options(content) if content else {}
    except ValueError as error:
        assert run.files.options, "its content was read"
        problems = [_problem(run.run_id, run.files.options.name, error)]
    settings, sweep = Settings.of(options), run.sweep
    row = {name: _plain(value) for name, value in vars(settings).items()} | {
        "run_id": run.run_id,
        "source": run.folder,
        "faults": None if settings.faults is None else sorted(settings.faults),
        "node_count": None if settings.nodes is None else len(settings.nodes),
        "options_json": json.dumps(options) if options else None,
        "sweep": sweep.name if sweep else None,
        "cell_json": json.dumps(sweep.cell, sort_keys=True) if sweep else None,
        "repetition": sweep.repetition if sweep else None,
    }
    if not options:  # only the embedded bench writes them
        row["engine"] = EMBEDDED if run.files.options else JEPSEN
    return row, problems


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def of_empty_files(run: Run) -> list[Columns]:
    """Rows of the quarantine table for files without content, as a full disk or a kill leaves them."""
    empty = [file.name for file in run.files if not file.size_bytes]
    return [{"run_id": run.run_id, "file": name, "reason": "the file is empty"} for name in empty]


def _problem(run_id: str, file: str, error: Exception) -> Columns:
    return {"run_id": run_id, "file": file, "reason": f"cannot be read: {error}"}


def of_results(run_id: str, file: str, content: bytes) -> Columns:
    """What the results say of a run.

    Returns:
        run_id; `run` (columns of the runs table), `anomalies` (rows of the anomalies table) and
        `problems` (of the quarantine). A broken file gives a problem and the verdict "unknown".
    """
    try:
        results = Results.read(file, content)
    except ValueError as error:
        problems = [_problem(run_id, file, error)]
        run: Columns = {"valid": UNKNOWN}
        return {"run_id": run_id, "run": run, "anomalies": [], "problems": problems}
    run = {
        "valid": results.valid,
        "bad_error_types": _plain(results.bad_error_types),
        "error_types": _plain(results.error_types),
        "network_json": json.dumps(results.net) if results.net else None,
    }
    write = json.dumps if file.endswith(".json") else edn.dumps
    return {"run_id": run_id, "run": run, "anomalies": anomalies(results, write), "problems": []}


def anomalies(results: Results, write: Callable[[Any], str]) -> list[Columns]:
    """Rows of the anomalies table: one for each instance, which `write` makes a text."""
    return [
        {
            "type": each.type,
            "invalidating": each.invalidating,
            "count": len(each.instances) if each.count is None else each.count,
            "number": number,
            "key": key,
            "instance": write(instance),
        }
        for each in results.anomalies()
        for number, (key, instance) in enumerate(each.instances)
    ]
