"""A driver: runs the analysis on a master, and tells what its executors saw, as one line of JSON.

python -m tests.analysis.cluster_job MASTER STORES LAKE
"""

import json
import os
import sys
from collections.abc import Iterable, Iterator

from pyspark.sql import SparkSession

import analysis.metrics.comparison
from analysis.cli import main
from analysis.lake import Lake
from analysis.metrics.comparison import means
from analysis.metrics.key_figures import run_figures
from analysis.spark import session


def surroundings(_: Iterable[int]) -> Iterator[tuple[str, str]]:
    """Where a task runs, and where it imported the package from."""
    yield os.getcwd(), analysis.metrics.comparison.__file__  # noqa: PTH109 - as the process has it


def means_of(lake: Lake, spark: SparkSession) -> dict[str, float]:
    """The mean of each figure over all runs, which Python computes in executors."""
    tables = [lake.table(spark, name) for name in ("operations", "messages", "runs")]
    return {
        row.figure: row.mean for row in means(run_figures(*tables), tables[2], "engine").collect()
    }


def run(master: str, stores: str, folder: str) -> None:
    """Ingest the stores by the command line, then read the lake."""
    main(["ingest", stores, "--lake", folder, "--master", master], standalone_mode=False)
    with session(master) as spark:
        lake = Lake(folder)
        places = spark.sparkContext.range(8, numSlices=8).mapPartitions(surroundings).collect()
        told = {
            "counts": {
                name: lake.table(spark, name).count() for name in ("messages", "operations")
            },
            "means": means_of(lake, spark),
            "places": sorted(set(places)),
        }
    print(json.dumps(told))  # noqa: T201


if __name__ == "__main__":
    run(*sys.argv[1:])
