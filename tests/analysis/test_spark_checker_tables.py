"""Tables of operations, as ingest writes them, lead to the same verdicts as histories."""

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from analysis.checker import from_operations, judge
from analysis.checker.printed import counts
from analysis.checker.schemas import parts, parts_of
from analysis.lake import Lake
from analysis.synthesise import Synthetic, write
from runs.history import Op, read_history
from tests.analysis.test_spark_checker import worst_lag
from tests.stores import STORES
from workloads.kafka.checker import check

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]  # the first test waits for the job

VALUES = [
    ("send", [["send", "7", 3]]),
    ("send", [["send", "7", [2, 3]]]),
    ("send", [["send", "a key", [0, -3]]]),
    ("poll", [["poll"]]),
    ("poll", [["poll", {}]]),
    ("poll", [["poll", {"7": [[0, 1], [5, -2]], "8": [[1, 1]], "é": []}]]),
    ("assign", ["7", "8", "7"]),
    ("assign", []),
    ("send", [["send", 7, 3]]),
    ("send", [["send", "7", 3.0]]),
    ("send", [["send", "7", [2, 3, 4]]]),
    ("send", [["send", "7", "3"]]),
    ("send", [["send", "7", [None, 3]]]),
    ("send", [["send", "7", 3], ["send", "7", 4]]),
    ("send", [["send", 'a "quoted" key', 3]]),
    ("send", None),
    ("poll", [["poll", {"7": [[0, "1"]]}]]),
    ("poll", [["poll", {"7": [[0, None], [1, True], [2, 1.5]]}]]),
    ("poll", [["poll", {"7": [[0, 1, 2], [3]], "8": None}]]),
    ("poll", [["poll", {"7": [[-1, 1]]}], ["poll", {"8": [[0, 1]]}]]),
    ("poll", [["poll", {"7": [[10**20, 1]]}]]),
    ("poll", {"7": 1}),
    ("assign", ["7", 8]),
    ("assign", [None]),
    ("assign", "7"),
    ("txn", [["send", "7", [0, 1]], ["poll", {"7": [[0, 1]]}]]),
]


def test_spark_takes_values_apart_as_the_bench_does(spark: SparkSession) -> None:
    rows = [(f, json.dumps(value)) for f, value in VALUES]
    operations = spark.createDataFrame(rows, "f string, value string")
    found = operations.select(parts(F.col("f"), F.col("value")).alias("parts")).collect()
    for (f, value), row in zip(VALUES, found, strict=True):
        told = [part.asDict() for part in row.parts]
        assert told == parts_of(Op(0, 0, "ok", 0, f, value)), (f, value)


@pytest.mark.slow
def test_tables_are_judged_like_their_histories(
    spark: SparkSession, stores_lake: Lake, broken: Synthetic, tmp_path: Path
) -> None:
    lake = stores_lake.table(spark, "operations")
    stores = {folder.name: folder / "history.edn" for folder in STORES.iterdir()}
    assert stores.keys() == {row.run_id for row in lake.select("run_id").distinct().collect()}
    write(broken, tmp_path / "history.jsonl")
    histories = stores | {"synthetic": tmp_path / "history.jsonl"}
    operations = lake.unionByName(broken.operations, allowMissingColumns=True)
    for name, result in judge(spark, from_operations(operations, list(histories))).items():
        wanted = check(read_history(histories[name]), {})
        assert counts(result) == counts(wanted), name
        assert worst_lag(result) == worst_lag(wanted), name
        assert result["bad-error-types"] == wanted["bad-error-types"], name
