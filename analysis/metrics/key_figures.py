"""The figures of each run: one number for each, to compare runs by."""

from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from analysis.metrics.causes import CONFLICT, message_causes
from analysis.metrics.latency import latency_quantiles
from analysis.metrics.network import network_statistics
from analysis.metrics.windows import judged, main_phase

LATENCY = ("p50", "p99")
# Of each figure: whether less or more of it is better.
BETTER = {
    "send latency p50, ms": "less",
    "send latency p99, ms": "less",
    "poll latency p50, ms": "less",
    "poll latency p99, ms": "less",
    "server messages per operation": "less",
    "conflicts per operation": "less",
    "availability": "more",
    "acknowledged operations per second": "more",
}


def run_figures(operations: DataFrame, messages: DataFrame, runs: DataFrame) -> DataFrame:
    """The figures that runs are compared by.

    - send and poll latency: p50 and p99 of the successful ones of the main phase, in ms;
    - server messages per operation, as `network_statistics` has them;
    - conflicts per operation: messages of compare-and-sets that lost (`message_causes`), likewise;
    - availability: the share of the operations invoked in the main phase that were acknowledged;
    - acknowledged operations per second: those of the main phase by the time limit of the run.

    Where the phase is not known (see `with_phase`) all operations count as the main phase.

    Returns:
        run_id, figure (a name of `BETTER`), value; ordered by both. A figure that a run does not have
        has no row.
    """
    main = main_phase(operations, runs)
    parts = [
        _latency(main),
        _of_run(_messages(messages, operations)),
        _of_run(_conflicts(messages, operations)),
        _of_run(_served(main, runs)),
    ]
    figures = reduce(DataFrame.unionByName, parts).filter("value is not null")
    return figures.orderBy("run_id", "figure")


def _of_run(figures: DataFrame) -> DataFrame:
    """One row a figure, of run_id and a column for each figure."""
    return figures.unpivot("run_id", tuple(figures.columns[1:]), "figure", "value")


def _latency(main: DataFrame) -> DataFrame:
    of_f = latency_quantiles(main.filter("outcome = 'ok' and f in ('send', 'poll')"), ["f"])
    in_ms = [(F.col(f"latency_ns_{name}") / 1e6).alias(name) for name in LATENCY]
    rows = of_f.select("run_id", "f", *in_ms).unpivot(["run_id", "f"], LATENCY, "name", "value")
    return rows.select(
        "run_id", F.format_string("%s latency %s, ms", "f", "name").alias("figure"), "value"
    )


def _messages(messages: DataFrame, operations: DataFrame) -> DataFrame:
    servers = network_statistics(messages, operations).filter("scope = 'servers'")
    value = F.col("messages_per_operation").alias("server messages per operation")
    return servers.select("run_id", value)


def _conflicts(messages: DataFrame, operations: DataFrame) -> DataFrame:
    """0 for a run with server messages and no conflict among them."""
    of_conflict = F.when(F.col("cause") == CONFLICT, F.col("messages_per_operation")).otherwise(0)
    causes = message_causes(messages, operations).groupBy("run_id")
    return causes.agg(F.sum(of_conflict).alias("conflicts per operation"))


def _served(main: DataFrame, runs: DataFrame) -> DataFrame:
    is_ok = (F.col("outcome") == "ok").cast("int")
    counted = (
        judged(main).groupBy("run_id").agg(F.sum(is_ok).alias("ok"), F.mean(is_ok).alias("share"))
    )
    return counted.join(runs, "run_id", "left").select(
        "run_id",
        F.col("share").alias("availability"),
        F.try_divide("ok", "time_limit_s").alias("acknowledged operations per second"),
    )
