"""A log as a Spark data source and sink: batches, streams, and writes that happen exactly once.

    from leaderless.spark import LeaderlessDataSource

    spark.dataSource.register(LeaderlessDataSource)
    table = spark.read.format("leaderless").option("url", "s3://bucket/orders").load()

Nothing else of `leaderless` imports Spark, and this package only when the data source is used. See
docs/table-in-spark.md.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from leaderless.spark.source import LeaderlessDataSource as LeaderlessDataSource


def __getattr__(name: str) -> Any:
    if name != "LeaderlessDataSource":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from leaderless.spark.source import LeaderlessDataSource

    return LeaderlessDataSource
