"""A driver: runs the analysis on a master, and tells what its executors saw, as one line of JSON.

python -m tests.analysis.cluster_job MASTER LAKE STORE ...
"""

import json
import sys
from collections.abc import Sequence
from unittest.mock import patch

from pyspark.sql import SparkSession

from analysis.cli import main
from analysis.comparison import means
from analysis.lake import Lake
from tests.analysis.standalone import places_of


def means_of(lake: Lake, spark: SparkSession, runs: Sequence[str] = ()) -> dict[str, float]:
    """The mean of each number of each program, which Python computes in executors; of all runs, or of these."""
    figures = (
        lake.table(spark, "figures", runs).filter("of is null").fillna("unknown", ["workload"])
    )
    return {f"{row.program} {row.figure}": row.mean for row in means(figures).collect()}


def run(master: str, folder: str, *stores: str) -> None:
    """Ingest the stores by the command line, then read the lake."""
    with patch("analysis.spark._stop"):  # its executors are there for what follows
        main(["ingest", *stores, "--lake", folder, "--master", master], standalone_mode=False)
    spark, lake = SparkSession.active(), Lake(folder)
    told = {
        "counts": {name: lake.table(spark, name).count() for name in ("messages", "operations")},
        "means": means_of(lake, spark),
        "places": places_of(spark, "analysis.comparison"),
    }
    print(json.dumps(told))  # noqa: T201
    spark.stop()


if __name__ == "__main__":
    run(*sys.argv[1:])
