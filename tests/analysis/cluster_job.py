"""A driver: runs the analysis on a master, and tells what its executors saw, as one line of JSON.

python -m tests.analysis.cluster_job MASTER STORES LAKE
"""

import json
import os
import sys
from collections.abc import Iterator

import analysis.metrics.lag
from analysis.cli import main
from analysis.lake import Lake
from analysis.metrics.lag import poll_lags, realtime_lag
from analysis.spark import session


def surroundings(_: Iterator[int]) -> Iterator[tuple[str, str]]:
    """Where a task runs, and where it imported the package from."""
    yield os.getcwd(), analysis.metrics.lag.__file__  # noqa: PTH109 - as the process has it


def run(master: str, stores: str, folder: str) -> None:
    """Ingest the stores by the command line, then read the lake."""
    main(["ingest", stores, "--lake", folder, "--master", master], standalone_mode=False)
    with session(master) as spark:
        lake = Lake(folder)
        lags = realtime_lag(poll_lags(lake.table(spark, "operations"))).collect()
        places = spark.sparkContext.range(8, numSlices=8).mapPartitions(surroundings).collect()
        told = {
            "counts": {
                name: lake.table(spark, name).count() for name in ("messages", "operations")
            },
            "lags": {row.run_id: row.lag_ns_max for row in lags},
            "places": sorted(set(places)),
        }
    print(json.dumps(told))  # noqa: T201


if __name__ == "__main__":
    run(*sys.argv[1:])
