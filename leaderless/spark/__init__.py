"""A log as a Spark data source and sink: batches, streams, and writes that happen exactly once.

    from leaderless.spark import LeaderlessDataSource, read_log

    spark.dataSource.register(LeaderlessDataSource)
    table = spark.read.format("leaderless").option("url", "s3://bucket/orders").load()
    table = read_log(spark, "sqlite:////data/orders.db")  # the same; faster where files are local

Nothing else of `leaderless` imports Spark, and this package only when the data source is used. See
docs/log/table-in-spark.md.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from leaderless.spark.frames import read_log
    from leaderless.spark.source import LeaderlessDataSource

__all__ = ["LeaderlessDataSource", "read_log"]

MODULES = {
    "LeaderlessDataSource": "leaderless.spark.source",
    "read_log": "leaderless.spark.frames",
}


def __getattr__(name: str) -> object:
    if name not in MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(MODULES[name]), name)
