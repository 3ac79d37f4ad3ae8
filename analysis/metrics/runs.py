"""The figures of each run: one number for each, to compare runs by."""

from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from analysis.metrics.causes import message_causes
from analysis.metrics.latency import latency_quantiles
from analysis.metrics.network import network_statistics
from analysis.metrics.windows import judged, with_phase
from runs.messages import CONFLICT

LATENCY = {"p50": "latency_ns_p50", "p99": "latency_ns_p99"}
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
    main = with_phase(operations, runs).filter("phase is null or phase = 'main'")
    parts = [
        _latency(main),
        _network(messages, operations),
        _conflicts(messages, operations),
        _served(main, runs),
    ]
    return (
        reduce(DataFrame.unionByName, parts).filter("value is not null").orderBy("run_id", "figure")
    )


def _latency(main: DataFrame) -> DataFrame:
    of_f = latency_quantiles(main.filter("outcome = 'ok' and f in ('send', 'poll')"), ["f"])
    values = F.array(
        *(
            F.struct(
                F.concat("f", F.lit(f" latency {name}, ms")).alias("figure"),
                (F.col(column) / 1e6).alias("value"),
            )
            for name, column in LATENCY.items()
        )
    )
    return of_f.select("run_id", F.inline(values))


def _network(messages: DataFrame, operations: DataFrame) -> DataFrame:
    servers = network_statistics(messages, operations).filter("scope = 'servers'")
    return servers.select(
        "run_id",
        F.lit("server messages per operation").alias("figure"),
        F.col("messages_per_operation").alias("value"),
    )


def _conflicts(messages: DataFrame, operations: DataFrame) -> DataFrame:
    """0 for a run with server messages and no conflict among them."""
    of_run = F.sum(F.when(F.col("cause") == CONFLICT, F.col("messages_per_operation")).otherwise(0))
    causes = message_causes(messages, operations).groupBy("run_id").agg(of_run.alias("value"))
    return causes.select("run_id", F.lit("conflicts per operation").alias("figure"), "value")


def _served(main: DataFrame, runs: DataFrame) -> DataFrame:
    counted = (
        judged(main)
        .groupBy("run_id")
        .agg(F.count_if(F.col("outcome") == "ok").alias("ok"), F.count("*").alias("invoked"))
    )
    limited = counted.join(runs.select("run_id", "time_limit_s"), "run_id", "left")
    values = F.array(
        F.struct(
            F.lit("availability").alias("figure"),
            (F.col("ok") / F.col("invoked")).alias("value"),
        ),
        F.struct(
            F.lit("acknowledged operations per second").alias("figure"),
            F.try_divide("ok", "time_limit_s").alias("value"),
        ),
    )
    return limited.select("run_id", F.inline(values))
