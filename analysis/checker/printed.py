"""`python -m analysis check`: the histories to judge, and the lines that report on them."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.types import StringType, StructField, StructType

from analysis.checker.sources import Source, from_histories, from_operations
from analysis.checker.verdicts import judge
from analysis.errors import AnalysisError
from analysis.lake import Lake
from analysis.rows import anomalies
from analysis.schemas import TABLES
from runs import edn, facts
from runs.history import HistoryError, Keyword, find_history, keywords, plain
from workloads.interface import so_far
from workloads.kafka.checker import AT_THE_END, error_count

Verdicts = Mapping[str, Mapping[Any, Any]]
_WORDS = {True: "✔ VALID", False: "✘ INVALID"}


def judged(spark: SparkSession, paths: Sequence[Path], lake: Lake, runs: Sequence[str]) -> Verdicts:
    """The results of the histories in `paths` (files, folders of runs, Parquet), or of `runs` of a lake.

    A run whose folder says that it did not come to its end is judged as one that stopped early.

    Raises:
        AnalysisError: one of them is not there or cannot be read.
    """
    return {
        name: so_far(result, AT_THE_END)
        if Path(name).is_file() and facts.unfinished(Path(name).parent) is not None
        else result  # as of any run of a lake, whose name is no file
        for source in sources(spark, paths, lake, runs)
        for name, result in judge(spark, source).items()
    }


def sources(
    spark: SparkSession, paths: Sequence[Path], lake: Lake, runs: Sequence[str]
) -> Iterator[Source]:
    """Everything that was asked for: all files of a kind go through one job."""
    tables = [path for path in paths if path.is_dir() and any(path.glob("*.parquet"))]
    try:
        files = [find_history(path) for path in paths if path not in tables]
    except HistoryError as error:
        raise AnalysisError(f"{error}, and without Parquet") from None
    if files:
        yield from_histories(spark, files)
    for path in tables:
        operations = spark.read.parquet(str(path))
        if "run_id" not in operations.columns:
            raise AnalysisError(f"{path} is no table of operations with their run_id")
        yield from_operations(operations, _run_ids(operations))
    if runs or not paths:
        operations = lake.table(spark, "operations", runs)
        yield from_operations(operations, list(runs) or _run_ids(operations))


def _run_ids(operations: Any) -> list[str]:
    return sorted(row.run_id for row in operations.select("run_id").distinct().collect())


def json_lines(results: Verdicts) -> Iterator[str]:
    """What `./maelstrom check --json` prints of each history."""
    for name, result in results.items():
        line = {
            "file": name,
            "valid": result[Keyword("valid?")],
            "bad": list(map(str, result[Keyword("bad-error-types")])),
            "errors": counts(result),
            "workload": result,
        }
        yield json.dumps(line, default=plain)


def edn_texts(results: Verdicts) -> Iterator[str]:
    """What `./maelstrom check --edn` prints of each history."""
    return (
        edn.dumps(keywords(file=name, workload=result), pretty=True)
        for name, result in results.items()
    )


def plain_lines(results: Verdicts) -> Iterator[str]:
    """A line for each history, and one for each type of anomaly in it."""
    for name, result in results.items():
        yield f"{_WORDS.get(result[Keyword('valid?')], '? UNKNOWN')} {name}"
        bad = set(result[Keyword("bad-error-types")])
        for anomaly, count in counts(result).items():
            note = " (so far)" if anomaly in AT_THE_END else " (allowed)"
            yield f"    {count} {anomaly}" + ("" if anomaly in bad else note)


def counts(result: Mapping[Keyword, Any]) -> dict[str, int]:
    """How many cases of each type a result counts."""
    return {str(each): error_count(each, result[each]) for each in result[Keyword("error-types")]}


def write_anomalies(spark: SparkSession, results: Verdicts, folder: Path) -> None:
    """The cases that `results` show, as rows of the lake's table `anomalies` with their `run_id`."""
    rows = [
        {"run_id": name, **row}
        for name, result in results.items()
        for row in anomalies(facts.Results({"workload": dict(result)}), edn.dumps)
    ]
    schema = StructType([StructField("run_id", StringType()), *TABLES["anomalies"]])
    spark.createDataFrame(rows, schema).coalesce(1).write.mode("overwrite").parquet(str(folder))
