"""The frames that notebooks show: rows of a lake by workload and program, as pandas.

The last ones say in which order offsets were filled: whether messages appeared behind readers. An offset may
be assigned late, but never *shown* late: a reader that polled a message goes on behind it, and does not come
back. docs/learn/why-prefetch-fails.md tells the story.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cache, reduce

import pandas as pd
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from analysis.comparison import comparison, means
from analysis.lake import EXACT, Lake, quantiles
from analysis.rows import BY_CAUSE
from analysis.spark import ROOT, start
from runs.facts import NEVER_OK
from runs.figures import UNASKED, number_of
from runs.operations import WINDOW_NS
from runs.plots.style import INVALID
from runs.plots.style import strategies as in_order

# ---------------------------------------------------------------- lake

CAUSED = ("kafka", "an unknown workload")  # of others, no read of a store is a "refresh"
LAKE, MASTER = "LEADERLESS_LAKE", "LEADERLESS_MASTER"  # environment variables
REFERENCE = ROOT / "results" / "reference"
CONDITIONS = ("workload", "engine", "node_count", "concurrency", "rate_hz", "latency_ms")
UNKNOWN: dict[str, bool | float | int | str] = {
    "workload": CAUSED[1],
    "program": "an unnamed program",
}


@dataclass(frozen=True)
class Tables:
    """Tables of a lake, or of some of its runs. In each, `workload` and `program` are never null.

    `invalid`: the workload and program of each invalid run of the lake, chosen or not.
    """

    runs: DataFrame
    operations: DataFrame
    messages: DataFrame
    faults: DataFrame
    anomalies: DataFrame
    figures: DataFrame
    invalid: frozenset[tuple[str, str]] = frozenset()

    def where(self, condition: str | Column) -> "Tables":
        """The tables of those runs that a condition on `runs` (such as SQL) holds for."""
        return self._of(self.runs.filter(condition))

    @cache  # noqa: B019 - a notebook asks for the same runs in several cells, and has one lake
    def alike(self, condition: str) -> "Tables":
        """As `where`, but only the runs under those conditions that most programs of a workload share.

        So no program looks quick because it alone also ran on a quicker network.
        """
        chosen = self.runs.filter(condition).alias("run")
        programs, runs = F.count_distinct("program").alias("programs"), F.count("*").alias("runs")
        counts = chosen.groupBy(*CONDITIONS).agg(programs, runs)
        first = Window.partitionBy("workload").orderBy(
            F.desc("programs"), F.desc("runs"), *CONDITIONS
        )
        most = counts.withColumn("place", F.row_number().over(first)).filter("place = 1")
        equal = (F.col(f"run.{name}").eqNullSafe(F.col(f"most.{name}")) for name in CONDITIONS)
        return self._of(chosen.join(most.alias("most"), reduce(Column.__and__, equal), "left_semi"))

    def _of(self, runs: DataFrame) -> "Tables":
        """The tables of these runs, which are looked up now: not again with each query of the tables."""
        names = F.col("run_id").isin([row.run_id for row in runs.select("run_id").collect()])
        return replace(self, **{name: getattr(self, name).filter(names) for name in NAMES})

    def frame(self, rows: DataFrame) -> pd.DataFrame:
        """The answer of a query. Behind the name of a program with an invalid run stands that it has one."""
        found: pd.DataFrame = rows.toArrow().to_pandas()
        of_workload = found.get("workload", [None] * len(found))
        invalid = self.invalid | {(None, program) for _, program in self.invalid}
        for column in _PROGRAMS.intersection(found.columns):
            pairs = zip(of_workload, found[column], strict=True)
            found[column] = [f"{pair[1]}{INVALID * (pair in invalid)}" for pair in pairs]
        return found


NAMES = tuple(each.name for each in fields(Tables) if each.name != "invalid")
_PROGRAMS = frozenset(("program", "baseline", "other"))  # columns with the name of a program


def open_lake(folder: str | None = None) -> Tables:
    """The tables of a lake, kept in memory from their first use on; starts Spark.

    Args:
        folder: a lake or a packed one, a path or a URI. By default what the environment variable
            LEADERLESS_LAKE names, else the reference results of this repository.
    The Spark master is that of LEADERLESS_MASTER, by default this machine.
    """
    spark = SparkSession.getActiveSession() or start(os.environ.get(MASTER, "local[*]"), brief=True)
    return tables_of(spark, folder or os.environ.get(LAKE) or str(REFERENCE))


def tables_of(spark: SparkSession, folder: str) -> Tables:
    """The tables of a lake, packed or not."""
    found = {name: Lake(folder).table(spark, name).fillna(UNKNOWN).cache() for name in NAMES}
    wrong = found["runs"].filter("valid = 'false'").select("workload", "program").distinct()
    return Tables(**found, invalid=frozenset(map(tuple, wrong.collect())))


# ---------------------------------------------------------------- tables

_GROUP = ["workload", "program", "faults"]
STABLE = {name: number_of(name).heading for name in ("stable_median_ms", "stable_most_ms")}
# Shares of operations that are slower: 1, 0.79, 0.63, ... 0.001.
_SLOWER = tuple(10 ** (-step / 10) for step in range(31))
# Numbers that programs are compared by, beside the latencies of what they are asked.
_COMPARED = (
    "server_messages_per_op",
    "conflicts_per_op",
    "ok_fraction_main",
    "throughput_ops_per_s",
)


def with_views(lake: Tables) -> SparkSession:
    """The session, in which each table is a view of its name for SQL."""
    for name in NAMES:
        getattr(lake, name).createOrReplaceTempView(name)
    return lake.runs.sparkSession


def counted(lake: Tables) -> pd.DataFrame:
    """How many rows each table has, and its columns."""
    named = {name: getattr(lake, name) for name in NAMES}
    rows = [(name, table.count(), ", ".join(table.columns)) for name, table in named.items()]
    return pd.DataFrame(rows, columns=["table", "rows", "columns"])


def by_program(lake: Tables, values: DataFrame, column: str) -> list[tuple[str, str, list[float]]]:
    """For `plots.groups.dots`: the values of each program, workload and kind of operation."""
    found = lake.frame(values)
    named = [
        name for name in ("workload", "program", "f") if name in found and found[name].nunique() > 1
    ]
    rows = [
        (", ".join(key if isinstance(key, tuple) else (key,)), rows.program.iloc[0],
         sorted(rows[column].astype(float)))
        for key, rows in found.groupby(named or ["program"], sort=True)
    ]  # fmt: skip
    places = {name: place for place, name in enumerate(in_order(found.program))}
    return sorted(rows, key=lambda row: places[row[1]])


def runs(lake: Tables) -> pd.DataFrame:
    """Runs of a kind counted, with their settings and verdicts."""
    kinds = [*_GROUP, "node_count", "concurrency", "rate_hz", "time_limit_s", "latency_ms"]
    verdicts = {"true": "valid", "false": "invalid", "unknown": "unknown", "crashed": "crashed"}
    counts = [F.count_if(F.col("valid") == value).alias(name) for value, name in verdicts.items()]
    grouped = lake.runs.groupBy(kinds).agg(F.count("*").alias("runs"), *counts)
    return lake.frame(grouped.orderBy("workload", "faults", "program"))


def asked(operations: DataFrame) -> DataFrame:
    """Operations of the main phase that a client waits for."""
    return operations.filter("phase = 'main'").filter(~F.col("f").isin(*UNASKED))


def curves(lake: Tables) -> pd.DataFrame:
    """For each of many shares, the latency that so many acknowledged operations exceed.

    All runs of a workload, program and kind of faults are one. A share that less than one operation makes up
    has no row: it would only repeat the slowest one.
    """
    keys = [*_GROUP, "f"]
    latencies_ns = F.percentile_approx("latency_ns", [1 - share for share in _SLOWER], EXACT)
    acknowledged = asked(lake.operations).filter("outcome = 'ok'").groupBy(keys)
    found = acknowledged.agg(F.count("*").alias("n"), latencies_ns.alias("latency_ns"))
    shares = F.array(*map(F.lit, _SLOWER)).alias("slower_share")
    points = found.select(*keys, "n", F.inline(F.arrays_zip(shares, "latency_ns")))
    return lake.frame(points.filter("slower_share * n >= 1").drop("n"))


def latencies(lake: Tables, by: tuple[str, ...] = ("f",)) -> pd.DataFrame:
    """Quantiles of acknowledged operations of the main phase, runs of a kind taken as one.

    `by` may name `fault`: the fault in force while the operation was under way.
    """
    keys = [*_GROUP, *by]
    acknowledged = asked(lake.operations).filter("outcome = 'ok'").groupBy(keys)
    counts = acknowledged.agg(F.count("*").alias("operation_count"), *quantiles("latency_ns"))
    return lake.frame(counts.orderBy(keys))


def messages(lake: Tables, figure: str = BY_CAUSE) -> pd.DataFrame:
    """Server messages per operation by cause or type, the mean over the runs of a kind.

    A run that has no message of a type has no row: it counts as 0. Causes are those of a log (`CAUSED`).
    """
    counted = lake.runs.groupBy(_GROUP).agg(F.count("*").alias("runs"))
    found = lake.figures.filter(F.col("figure") == figure).filter("of not like 'client %'")
    found = found.filter(F.col("workload").isin(*CAUSED)) if figure == BY_CAUSE else found
    summed = found.groupBy(*_GROUP, "of").agg(F.sum("value").alias("total"))
    mean = (F.col("total") / F.col("runs")).alias("messages_per_operation")
    rows = summed.join(counted, _GROUP).select(*_GROUP, "of", mean)
    return lake.frame(rows.orderBy(*_GROUP, F.desc("messages_per_operation")))


def single_runs(lake: Tables) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Operations of the main phase, and faults, of the first run of each kind."""
    first = F.broadcast(
        lake.runs.groupBy(_GROUP).agg(F.min("run_id").alias("run_id")).select("run_id")
    )
    main = asked(lake.operations).join(first, "run_id", "left_semi")
    return lake.frame(main.select(*_GROUP, "invoked_ns", "latency_ns", "outcome")), lake.frame(
        lake.faults.join(first, "run_id", "left_semi")
    )


def served(lake: Tables) -> pd.DataFrame:
    """The share of operations that were acknowledged, by the fault in force while they were under way."""
    main = lake.operations.filter("phase = 'main'").filter(~F.col("f").isin(*NEVER_OK))
    counts = main.groupBy(*_GROUP, "fault").agg(
        F.count("*").alias("invoked_count"), F.count_if(F.col("outcome") == "ok").alias("ok_count")
    )
    share = (F.col("ok_count") / F.col("invoked_count")).alias("availability")
    return lake.frame(counts.select("*", share).orderBy(*_GROUP, "fault"))


def counts(lake: Tables) -> pd.DataFrame:
    """What workloads count in a run: operations by outcome, stable latencies, sums; least, mean and most."""
    value = F.coalesce("completed_value_json", "invoked_value_json").cast("double").alias("value")
    ok = lake.operations.filter(F.col("workload").isin("g-counter", "pn-counter")).filter(
        "outcome = 'ok'"
    )
    of_run = [*_GROUP, "run_id", "counted"]
    done = lake.operations.filter(~F.col("f").isin(*UNASKED))
    rows = [
        table.withColumn("counted", what).groupBy(of_run).agg(total("value").alias("value"))
        for table, what, total in [
            (done.withColumn("value", F.lit(1.0)), F.concat_ws(", ", "f", "outcome"), F.sum),
            (
                ok.filter("f = 'add'").withColumn("value", value),
                F.lit("sum of acknowledged adds"),
                F.sum,
            ),
            (ok.filter("phase = 'final'").withColumn("value", value), F.lit("final read"), F.max),
            (lake.figures.filter("figure like 'stable_%'"), F.col("figure"), F.max),
        ]
    ]
    summed = reduce(DataFrame.unionByName, rows).groupBy(*_GROUP, "counted")
    numbers = {"least": F.min, "mean": F.mean, "most": F.max}
    told = [F.count("*").alias("runs"), *(of("value").alias(name) for name, of in numbers.items())]
    return lake.frame(summed.agg(*told).orderBy(*_GROUP, "counted")).replace({"counted": STABLE})


def recoveries(lake: Tables) -> pd.DataFrame:
    """When each fault ended, for how long it was watched, and when it was recovered from."""
    times = [
        F.round(F.col(f"{name}_ms") * 1e6).alias(f"{name}_ns") for name in ("watched", "recovery")
    ]
    rows = lake.faults.filter("ended_ns is not null").select(
        *_GROUP, "run_id", "kind", "started_ns", "ended_ns", *times
    )
    return lake.frame(rows.orderBy(*_GROUP, "run_id", "started_ns"))


def watched(recoveries: pd.DataFrame) -> pd.DataFrame:
    """The faults after which a run was watched for a window at least, so that there is something to draw."""
    return recoveries[recoveries.watched_ns >= WINDOW_NS]


def anomalies(lake: Tables) -> pd.DataFrame:
    """The anomalies that made runs invalid: how many of which, in how many runs."""
    bad = lake.anomalies.filter("invalidating").groupBy(*_GROUP, "run_id", "type")
    of_run = bad.agg(F.max("count").alias("count"))
    totals = [F.count("*").alias("runs"), F.sum("count").alias("count")]
    return lake.frame(of_run.groupBy(*_GROUP, "type").agg(*totals).orderBy(*_GROUP, "type"))


def figures(lake: Tables) -> DataFrame:
    """The numbers of each run that programs are compared by, kept in memory for several frames."""
    name = F.col("figure")
    compared = name.isin(*_COMPARED) | name.rlike("_(p50|p99)_ms$")
    return lake.figures.filter("of is null").filter(compared).cache()


def compared(lake: Tables, baselines: Mapping[str, str]) -> pd.DataFrame:
    """Each program against the baseline of its workload, with confidence intervals."""
    return _ordered(lake.frame(comparison(figures(lake), baselines)))


def mean_figures(lake: Tables) -> pd.DataFrame:
    """The figures of each program, means over its runs with confidence intervals."""
    return _ordered(lake.frame(means(figures(lake))))


def _ordered(rows: pd.DataFrame) -> pd.DataFrame:
    """Latencies first; with `better`: whether less or more of a figure is, and what it is called."""
    places = {name: place for place, name in enumerate(_COMPARED, start=1)}
    placed = rows.assign(place=rows.figure.map(places).fillna(0))
    ordered = placed.sort_values(["workload", "place"], kind="stable").drop(columns="place")
    numbers = [number_of(name) for name in ordered.figure]
    better = [number.better for number in numbers]
    return ordered.assign(figure=[number.heading for number in numbers], better=better)


def order(lake: Tables) -> pd.DataFrame:
    """Holes and messages behind a reader, by program, over all of its runs; most of these first."""
    found = lake.frame(offset_order(offset_times(lake.operations))).set_index("program")
    known_first = found.loc[in_order(found.index)]
    ordered = known_first.sort_values(["late_count", "hole_count"], ascending=False, kind="stable")
    return ordered.reset_index()


def telling_keys(lake: Tables) -> pd.DataFrame:
    """Of each program the messages of one key of one run: where most came behind a reader.

    Where none did, the key that was most read while messages still came.
    """
    times = lake.frame(with_late(offset_times(lake.operations)))
    keys = ["program", "run_id", "key"]
    last_sent_ns = times.groupby(keys).sent_ns.transform("max")
    counted = times.assign(read=times.first_polled_ns < last_sent_ns).groupby(keys)
    ranked = counted.agg(late=("is_late", "sum"), read=("read", "sum")).reset_index()
    telling = ranked.sort_values(["late", "read", *keys]).groupby("program").tail(1)
    return times.merge(telling[keys], on=keys)


# ---------------------------------------------------------------- offsets


def offset_times(operations: DataFrame) -> DataFrame:
    """Each message that a client has seen, with the times at which it did.

    Args:
        operations: the table.
    Returns:
        program, run_id, key, offset, message (JSON), sent_ns (invocation of its send), acknowledged_ns (its
        completion;
        both null when the send got no answer), first_polled_ns (earliest completion of a poll that
        returned it; null: never).
    """
    parts = operations.filter("outcome = 'ok' and f in ('send', 'poll', 'txn')").select(
        "program",
        "run_id",
        "invoked_ns",
        "completed_ns",
        F.explode(F.from_json("completed_value_json", "array<array<string>>")).alias("part"),
    )
    sent = parts.filter(F.col("part")[0] == "send").select(
        "program",
        "run_id",
        F.col("part")[1].alias("key"),
        _pair(F.from_json(F.col("part")[2], "array<string>")),
        F.col("invoked_ns").alias("sent_ns"),
        F.col("completed_ns").alias("acknowledged_ns"),
    )
    by_key = F.from_json(F.col("part")[1], "map<string, array<array<string>>>")
    of_key = parts.filter((F.col("part")[0] == "poll") & (F.size("part") > 1)).select(
        "program", "run_id", "completed_ns", F.explode(by_key).alias("key", "pairs")
    )
    polled = of_key.withColumn("pair", F.explode("pairs")).select(
        "program",
        "run_id",
        "key",
        _pair(F.col("pair")),
        F.col("completed_ns").alias("first_polled_ns"),
    )
    both = sent.unionByName(polled, allowMissingColumns=True)
    met = both.filter("at.offset is not null").groupBy("program", "run_id", "key", "at")
    return met.agg(*(F.min(name).alias(name) for name in _TIMES)).select(
        "program", "run_id", "key", "at.offset", "at.message", *_TIMES
    )


_TIMES = ("sent_ns", "acknowledged_ns", "first_polled_ns")


def _pair(pair: Column) -> Column:
    """Take `[offset, message]` apart; an offset that is no number is null."""
    return F.struct(pair[0].try_cast("long").alias("offset"), pair[1].alias("message")).alias("at")


def with_late(times: DataFrame) -> DataFrame:
    """`offset_times` with `is_late`: whether the message came to stand behind a reader.

    It did if it was sent after a poll had returned a message of its key at a higher offset: invoked
    after that poll was complete, so that no doubt remains about which was first.
    """
    higher = Window.partitionBy("run_id", "key").orderBy(F.desc("offset"))
    passed_ns = F.min("first_polled_ns").over(higher.rangeBetween(Window.unboundedPreceding, -1))
    return times.withColumn("is_late", F.coalesce(F.col("sent_ns") > passed_ns, F.lit(False)))


def offset_order(times: DataFrame) -> DataFrame:
    """Holes and late messages of each program, over all of its runs.

    Args:
        times: as `offset_times` gives them.
    Returns:
        program, runs, message_count, hole_count (offsets below the highest known of their key at which nobody
        ever saw a message), late_count (messages behind a reader, see `with_late`); ordered by program.
    """
    counted = (
        with_late(times)
        .groupBy("program", "run_id", "key")
        .agg(
            F.count("*").alias("message_count"),
            (F.max("offset") + 1 - F.countDistinct("offset")).alias("hole_count"),
            F.count_if("is_late").alias("late_count"),
        )
    )
    sums = [F.sum(name).alias(name) for name in ("message_count", "hole_count", "late_count")]
    of_program = counted.groupBy("program")
    return of_program.agg(F.count_distinct("run_id").alias("runs"), *sums).orderBy("program")
