"""The figures of one run, computed by Spark and small enough to print."""

import json
import math
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from analysis.lake import Lake
from analysis.metrics.latency import latency_over_time, latency_quantiles, throughput
from analysis.metrics.network import messages_by_type, network_statistics

WINDOWS = 100  # at most so many points in time are drawn, however long the run
_NICE = (1, 2, 5)


@dataclass(frozen=True)
class Summary:
    """Everything that the printed tables and the page show. Rows have the columns of the metrics."""

    run: Row
    operation_count: int
    node_count: int
    duration_ns: int
    window_ns: int
    latency: list[Row]
    latency_over_time: list[Row]
    throughput: list[Row]
    network: list[Row]
    by_type: list[Row]
    faults: list[Row]
    quarantine: list[Row]  # bad lines by file and reason, with their count

    @property
    def disagreements(self) -> list[str]:
        """Where the counts differ from those that the bench itself reported; none if it did not."""
        return disagreements(self.run.network_json, self.network)


def summarise(spark: SparkSession, lake: Lake, run_id: str) -> Summary:
    """The figures of a run that the lake holds."""

    def table(name: str) -> DataFrame:
        return lake.table(spark, name, [run_id])

    operations, messages = table("operations"), table("messages")
    operation_count, duration_ns = _extent(operations)
    window_ns = window_width(duration_ns)
    (run,) = table("runs").collect()
    bad = table("quarantine").groupBy("file", "reason")
    return Summary(
        run=run,
        operation_count=operation_count,
        node_count=run.node_count or _node_count(messages),
        duration_ns=duration_ns,
        window_ns=window_ns,
        latency=latency_quantiles(operations).collect(),
        latency_over_time=latency_over_time(operations, window_ns).collect(),
        throughput=throughput(operations, window_ns).collect(),
        network=network_statistics(messages, operations).collect(),
        by_type=messages_by_type(messages, operations).collect(),
        faults=table("faults").orderBy("started_ns").collect(),
        quarantine=bad.agg(
            F.count("*").alias("lines"), F.min("line").alias("first_line")
        ).collect(),
    )


def _extent(operations: DataFrame) -> tuple[int, int]:
    last = F.max(F.greatest("invoked_ns", "completed_ns"))
    (row,) = operations.agg(F.count("*").alias("operations"), last.alias("last")).collect()
    return row.operations, row.last or 0


def _node_count(messages: DataFrame) -> int:
    """Every node is greeted with one `init`."""
    return messages.filter("type = 'init'").select("dest").distinct().count()


def window_width(duration_ns: int) -> int:
    """The smallest of 1, 2 or 5 times a power of ten ns that cuts `duration_ns` into few windows."""
    least = max(duration_ns / WINDOWS, 1)
    power = 10 ** math.floor(math.log10(least))
    return next(nice * power for nice in (*_NICE, 10) if nice * power >= least)


def disagreements(network_json: str | None, network: list[Row]) -> list[str]:
    """How computed network statistics differ from a bench's `:net` map, as sentences.

    Args:
        network_json: the map as JSON, or None if the bench left none.
        network: rows of `network_statistics`.
    """
    reported: dict[str, Any] = json.loads(network_json) if network_json else {}
    found = []
    for row in network:
        for word, value in _as_reported(row).items():
            other = reported.get(row.scope, {}).get(word)
            # The real tool rounds to 32 bits, hence the tolerance.
            if other is not None and not math.isclose(value or 0, other, rel_tol=1e-6):
                found.append(f"{row.scope} {word}: {value} here, {other} in the bench's results")
    return found


def _as_reported(row: Row) -> dict[str, float]:
    return {
        "send-count": row.send_count,
        "recv-count": row.recv_count,
        "msg-count": row.message_count,
        "msgs-per-op": row.messages_per_operation,
    }
