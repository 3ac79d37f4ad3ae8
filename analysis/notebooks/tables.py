"""The frames that notebooks show: metrics of a lake's runs, with their strategies, as pandas."""

from dataclasses import fields

import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from analysis.metrics.causes import message_causes
from analysis.metrics.comparison import LESS, MORE, TOO_FEW, comparison, means
from analysis.metrics.key_figures import BETTER, run_figures
from analysis.metrics.latency import latency_curves, latency_quantiles
from analysis.metrics.network import messages_by_type
from analysis.metrics.offsets import offset_order, offset_times, with_late
from analysis.metrics.recovery import recovery_times
from analysis.metrics.served import availability, node_fairness
from analysis.metrics.windows import judged, main_phase, with_fault
from analysis.notebooks.lake import Tables
from runs.plots.style import strategies as strategies_of
from runs.recovery import WINDOW_NS

_GROUP = ["strategy", "weather"]


def frame(rows: DataFrame) -> pd.DataFrame:
    """The answer of a query, or a metric."""
    found: pd.DataFrame = rows.toArrow().to_pandas()
    return found


def with_views(tables: Tables) -> SparkSession:
    """The session, in which each table is a view of its name for SQL."""
    for field in fields(tables):
        getattr(tables, field.name).createOrReplaceTempView(field.name)
    return tables.runs.sparkSession


def counted(tables: Tables) -> pd.DataFrame:
    """How many rows each table has, and its columns."""
    named = {field.name: getattr(tables, field.name) for field in fields(tables)}
    rows = [(name, table.count(), ", ".join(table.columns)) for name, table in named.items()]
    return pd.DataFrame(rows, columns=["table", "rows", "columns"])


def by_strategy(values: DataFrame, column: str) -> list[tuple[str, str, list[float]]]:
    """For `plots.groups.dots`: a row for each strategy, with its values."""
    found = frame(values)
    return [
        (name, name, sorted(found[found.strategy == name][column].astype(float)))
        for name in strategies_of(found.strategy)
    ]


def runs(tables: Tables) -> pd.DataFrame:
    """What the notebook shows: runs of a kind counted, with their settings and verdicts."""
    kinds = [*_GROUP, "node_count", "concurrency", "rate_hz", "time_limit_s", "latency_ms"]
    verdicts = {"true": "valid", "false": "invalid", "unknown": "unknown"}
    counts = [F.count_if(F.col("valid") == value).alias(name) for value, name in verdicts.items()]
    grouped = tables.runs.groupBy(kinds).agg(F.count("*").alias("runs"), *counts)
    return frame(grouped.orderBy("weather", "strategy"))


def curves(tables: Tables) -> pd.DataFrame:
    """Latency curves of sends and polls, the runs of a strategy and weather taken as one."""
    return frame(tables.group_named(latency_curves(tables.grouped(tables.operations))))


def latencies(tables: Tables, by: tuple[str, ...] = ("f",)) -> pd.DataFrame:
    """Quantiles of acknowledged sends and polls of the main phase, runs of a kind taken as one.

    `by` may name `fault`: the fault in force while the operation was under way.
    """
    met = with_fault(main_phase(tables.operations, tables.runs), tables.faults)
    chosen = met.filter("outcome = 'ok' and f in ('send', 'poll')")
    quantiles = latency_quantiles(tables.grouped(chosen), by)
    return frame(tables.group_named(quantiles).orderBy(*_GROUP, *by))


def causes(tables: Tables) -> pd.DataFrame:
    """Messages per operation by cause, the mean over the runs of each strategy and weather."""
    return _mean_messages(tables, message_causes(tables.messages, tables.operations), ["cause"])


def types(tables: Tables) -> pd.DataFrame:
    """Server messages per operation by link and type, the mean over the runs of each strategy and weather."""
    by_type = messages_by_type(tables.messages.filter("link <> 'client'"), tables.operations)
    return _mean_messages(tables, by_type, ["link", "type"])


def _mean_messages(tables: Tables, metric: DataFrame, by: list[str]) -> pd.DataFrame:
    # A run that has no message of a kind has no row: it counts as 0.
    counted = tables.runs.groupBy(_GROUP).agg(F.count("*").alias("runs"))
    groups = tables.named(metric).groupBy(*_GROUP, *by)
    summed = groups.agg(F.sum("messages_per_operation").alias("total"))
    mean = (F.col("total") / F.col("runs")).alias("messages_per_operation")
    rows = summed.join(counted, _GROUP).select(*_GROUP, *by, mean)
    return frame(rows.orderBy(*_GROUP, F.desc("messages_per_operation")))


def single_runs(tables: Tables) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Operations of the main phase, and faults, of the first run of each strategy and weather."""
    first = tables.runs.groupBy(_GROUP).agg(F.min("run_id").alias("run_id")).select("run_id")
    main = main_phase(judged(tables.operations), tables.runs).join(F.broadcast(first), "run_id")
    columns = [*_GROUP, "invoked_ns", "latency_ns", "outcome"]
    faults = tables.faults.join(F.broadcast(first), "run_id")
    return frame(tables.named(main).select(columns)), frame(tables.named(faults))


def served(tables: Tables) -> pd.DataFrame:
    """The share of operations that were acknowledged, by the fault in force while they were under way."""
    main = with_fault(main_phase(judged(tables.operations), tables.runs), tables.faults)
    whole = 1 << 62  # one window over everything
    shares = availability(tables.grouped(main), whole, by=["fault"]).drop("window_start_ns")
    return frame(tables.group_named(shares).orderBy(*_GROUP, "fault"))


def recoveries(tables: Tables) -> pd.DataFrame:
    """Time to recover after each fault."""
    recovered = recovery_times(tables.operations, tables.faults, tables.runs)
    return frame(tables.named(recovered).orderBy(*_GROUP, "started_ns"))


def watched(recoveries: pd.DataFrame) -> pd.DataFrame:
    """The faults after which a run was watched for a window at least, so that there is something to draw."""
    return recoveries[recoveries.watched_ns >= WINDOW_NS]


def anomalies(tables: Tables) -> pd.DataFrame:
    """The anomalies that made runs invalid: how many of which, in how many runs."""
    bad = tables.anomalies.filter("invalidating").groupBy("run_id", "type")
    of_run = tables.named(bad.agg(F.max("count").alias("count")))
    totals = [F.count("*").alias("runs"), F.sum("count").alias("count")]
    return frame(of_run.groupBy(*_GROUP, "type").agg(*totals).orderBy(*_GROUP, "type"))


def fairness(tables: Tables) -> pd.DataFrame:
    """Whether the nodes of each run served alike."""
    fair = node_fairness(tables.operations, tables.runs)
    return frame(tables.named(fair).orderBy(*_GROUP))


def figures(tables: Tables) -> DataFrame:
    """The figures of each run, kept in memory: several frames and pictures are made of them."""
    return run_figures(tables.operations, tables.messages, tables.runs).cache()


def compared(figures: DataFrame, tables: Tables, baseline: str) -> pd.DataFrame:
    """Each strategy against the baseline, with confidence intervals."""
    return frame(comparison(figures, tables.runs, "strategy", baseline))


def mean_figures(figures: DataFrame, tables: Tables) -> pd.DataFrame:
    """The figures of each strategy, means over its runs with confidence intervals."""
    return frame(means(figures, tables.runs, "strategy"))


def standings(
    figures: DataFrame, tables: Tables, compared: pd.DataFrame, baseline: str
) -> pd.DataFrame:
    """`mean_figures` with the standing of each strategy against the baseline, as `compared` has it.

    `standing` is baseline, better or worse; None: no difference told. `enough_runs`: whether there were
    enough of them to tell any.
    """
    of = {(row.figure, row.other): row.verdict for row in compared.itertuples()}
    better = {"less": LESS, "more": MORE}
    rows = mean_figures(figures, tables).to_dict("records")
    for row in rows:
        verdict = of.get((row["figure"], row["strategy"]))
        row["enough_runs"] = verdict != TOO_FEW
        row["standing"] = "baseline" if row["strategy"] == baseline else None
        if verdict in (LESS, MORE):
            is_better = verdict == better[BETTER[row["figure"]]]
            row["standing"] = "better" if is_better else "worse"
    places = {name: place for place, name in enumerate(BETTER)}
    rows.sort(key=lambda row: places.get(row["figure"], len(places)))
    return pd.DataFrame(rows)


def order(tables: Tables) -> pd.DataFrame:
    """Holes and messages behind a reader, by strategy, over all of its runs."""
    counted = tables.named(offset_order(offset_times(tables.operations)))
    sums = [F.sum(name).alias(name) for name in ("message_count", "hole_count", "late_count")]
    return frame(counted.groupBy("strategy").agg(F.count("*").alias("runs"), *sums))


def telling_keys(tables: Tables) -> pd.DataFrame:
    """Of each strategy the messages of one key of one run: where most came behind a reader.

    Where none did, the key that was most read while messages still came.
    """
    times = frame(tables.named(with_late(offset_times(tables.operations))))
    keys = ["strategy", "run_id", "key"]
    last_sent_ns = times.groupby(keys).sent_ns.transform("max")
    counted = times.assign(read=times.first_polled_ns < last_sent_ns).groupby(keys)
    ranked = counted.agg(late=("is_late", "sum"), read=("read", "sum")).reset_index()
    telling = ranked.sort_values(["late", "read", *keys]).groupby("strategy").tail(1)
    return times.merge(telling[keys], on=keys)
