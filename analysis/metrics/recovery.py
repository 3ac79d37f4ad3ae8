"""How long after a fault operations are as fast as before: `runs.recovery` for Spark, more coarsely.

Windows follow each other and do not slide, so a time is a multiple of their width. On a history that is slow
and then calm it is the time of `runs.recovery`, rounded up. A window needs one operation, so that thin load
can be measured too. The calm is that of the windows without a fault, so that a run with many faults has one.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from analysis.metrics.latency import with_window
from analysis.metrics.windows import CALM, MAIN, judged, with_fault_between, with_phase
from runs.recovery import FACTOR, WINDOW_NS

_NEVER_NS = 2**62  # the latency of an operation that was not acknowledged
_ACCURACY = 10_000
_FAULT = ["run_id", "kind", "started_ns", "ended_ns"]


def recovery_times(
    operations: DataFrame,
    faults: DataFrame,
    runs: DataFrame,
    window_ns: int = WINDOW_NS,
    factor: float = FACTOR,
) -> DataFrame:
    """Time from the end of each fault to the first window whose p99 is back near calm.

    - The latency of an operation that was not acknowledged is infinite here.
    - The *calm p99* of a run is the median, over the windows of its main phase with no fault in force,
      of the p99 latency of the operations invoked in the window. (The median, because some calm windows
      come right after a fault.)
    - After the end of a fault time is cut into windows of `window_ns`. The fault is recovered from at the
      start of the first window in which operations were invoked and their p99 is at most `factor` times
      the calm p99; 0 means at once. The resolution is one window.
    - It is watched until the next fault begins or the main phase ends, for operations stop there. A fault
      that ended while another was in force is not watched, nor is a run that does not tell its time limit.

    Args:
        operations, faults, runs: the tables.
        window_ns: width of the windows.
        factor: how many times the calm p99 counts as back.
    Returns:
        run_id, kind, started_ns, ended_ns, calm_p99_ns, watched_ns (for how long after its end; may be null),
        recovery_ns (null: not within that time, or never calm); one row for each fault that ended;
        ordered by run_id, started_ns, kind.
    """
    main = with_phase(judged(operations), runs).filter(F.col("phase") == MAIN)
    ns = F.when(F.col("outcome") == "ok", F.col("latency_ns")).otherwise(_NEVER_NS).alias("ns")
    timed = main.select("run_id", "invoked_ns", ns)
    watched, calm = _watched(faults, runs), F.broadcast(_calm(timed, faults, window_ns))
    after_ns = F.col("invoked_ns") - F.col("ended_ns")
    within = (after_ns >= 0) & (after_ns < F.col("watched_ns"))
    windows = (
        timed.join(F.broadcast(watched), "run_id")
        .filter(within)
        .withColumn("after_ns", after_ns - after_ns % F.lit(window_ns).cast("long"))
        .groupBy(*_FAULT, "after_ns")
        .agg(_p99().alias("p99_ns"))
        .join(calm, "run_id")
        .filter(F.col("p99_ns") <= F.col("calm_p99_ns") * factor)
        .groupBy(_FAULT)
        .agg(F.min("after_ns").alias("recovery_ns"))
    )
    rows = watched.join(windows, _FAULT, "left").join(calm, "run_id", "left")
    return rows.select(*_FAULT, "calm_p99_ns", "watched_ns", "recovery_ns").orderBy(
        "run_id", "started_ns", "kind"
    )


def _p99() -> Column:
    return F.percentile_approx("ns", 0.99, _ACCURACY)


def _calm(timed: DataFrame, faults: DataFrame, window_ns: int) -> DataFrame:
    """run_id and calm_p99_ns."""
    by_window = with_window(timed, "invoked_ns", window_ns).groupBy("run_id", "window_start_ns")
    start_ns = F.col("window_start_ns")
    windows = by_window.agg(_p99().alias("p99_ns"))
    met = with_fault_between(windows, faults, start_ns, start_ns + window_ns)
    median = F.percentile_approx("p99_ns", 0.5, _ACCURACY).alias("calm_p99_ns")
    return met.filter(F.col("fault") == CALM).groupBy("run_id").agg(median)


def _watched(faults: DataFrame, runs: DataFrame) -> DataFrame:
    """The faults that ended, each with watched_ns."""
    limits = runs.select("run_id", (F.col("time_limit_s") * 1e9).cast("long").alias("limit_ns"))
    others = faults.select(
        "run_id", F.col("started_ns").alias("other_start"), F.col("ended_ns").alias("other_end")
    )
    in_force = (F.col("other_start") < F.col("ended_ns")) & (
        F.col("other_end").isNull() | (F.col("other_end") > F.col("ended_ns"))
    )
    later = F.when(F.col("other_start") >= F.col("ended_ns"), F.col("other_start"))
    until = F.when(F.max(in_force), F.col("ended_ns")).otherwise(F.min(later))
    ended = faults.filter("ended_ns is not null").select(_FAULT)
    bounded = (
        ended.join(others, "run_id")
        .groupBy(_FAULT)
        .agg(until.alias("next_ns"))
        .join(limits, "run_id", "left")
    )
    known_ns = F.greatest(F.least("next_ns", "limit_ns") - F.col("ended_ns"), F.lit(0))
    watched_ns = F.when(F.col("limit_ns").isNotNull(), known_ns).alias("watched_ns")
    return bounded.select(*_FAULT, watched_ns)
