"""A synthetic history: its sends, polls and assignments as the lake's operations, and its files."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from analysis.errors import AnalysisError
from analysis.rows import halves
from analysis.schemas import TABLES
from analysis.synthesise.layout import DRAIN_PAIRS, PLACE_NS, Layout
from analysis.synthesise.planting import ANOMALIES, LEAST_MESSAGES, KeyHistory, Send
from runs.history import edn_line, json_line, json_text

PLANTED = "planted.json"
_MOST_LINES = 2_000_000  # that the driver can hold as a text
_FAILED, _SEEN, _UNSEEN = 0, 1, 2  # of a hundred sends: the fate of those that are not acknowledged


@dataclass(frozen=True)
class Synthetic:
    """A history: rows of the lake's operations with their `run_id`, and what was planted, by key."""

    operations: DataFrame
    planted: list[dict[str, str]]


def synthesise(spark: SparkSession, layout: Layout, anomalies: Mapping[str, int]) -> Synthetic:
    """A history of this layout, valid but for `anomalies`: how many of each type.

    Raises:
        AnalysisError: an unknown type, or too few keys with enough messages to plant them all.
    """
    if unknown := sorted(set(anomalies) - set(ANOMALIES)):
        raise AnalysisError(f"no anomaly {unknown[0]}; there are {', '.join(ANOMALIES)}")
    sends = _sends(spark, layout)
    planted = list(_broken_keys(sends, layout, anomalies))
    broken = {key: history for key, _, history in planted}
    rewritten = [
        (operation, *content)
        for history in broken.values()
        for operation, content in history.contents.items()
    ]
    log = _log(sends.filter(~F.col("key").isin(list(broken))), layout)
    readings = _readings(log, layout).union(_broken_readings(spark, broken, layout))
    parts = (
        _sent(log),
        spark.createDataFrame(
            rewritten,
            "operation long, f string, outcome string, invoked string, completed string",
        ),
        _polls(spark, readings, layout),
        _assigns(spark, layout),
    )
    operations = _as_operations(reduce(DataFrame.unionByName, parts), layout)
    return Synthetic(operations, [{"type": name, "key": str(key)} for key, name, _ in planted])


def _sends(spark: SparkSession, layout: Layout) -> DataFrame:
    """The operations that send: `operation`, `worker`, `pair`, `key` (a number)."""
    slots = _slots(spark, layout, polls=False).filter(~_is_assign(layout) & ~_is_drain(layout))
    era = F.floor(F.col("pair") / layout.pairs_an_era)
    key = era * layout.keys_an_era + layout.lot(layout.keys_an_era, "key", F.col("operation"))
    return slots.select(
        "operation", "worker", "pair", F.least(key, F.lit(layout.keys - 1)).alias("key")
    )


def _slots(spark: SparkSession, layout: Layout, *, polls: bool) -> DataFrame:
    """One row for each worker and pair: the operation in which it polls, or the other one."""
    ids = spark.range(layout.pairs * layout.processes)
    pair = F.floor(F.col("id") / layout.processes).alias("pair")
    rows = ids.select(pair, (F.col("id") % layout.processes).alias("worker"))
    operation = layout.operation(F.col("pair"), F.col("worker"), polls=polls)
    return rows.withColumn("operation", operation)


def _is_assign(layout: Layout) -> Column:
    return (F.col("pair") % layout.pairs_an_era == 0) & ~_is_drain(layout)


def _is_drain(layout: Layout) -> Column:
    return F.col("pair") >= layout.pairs - DRAIN_PAIRS


def _log(sends: DataFrame, layout: Layout) -> DataFrame:
    """Sends with their `message`, their `fate` and the `offset` of those that are in the log."""
    fate = layout.lot(100, "fate", F.col("operation"))
    in_order = Window.partitionBy("key").orderBy("operation")
    in_log = ~F.col("fate").isin(_FAILED, _UNSEEN)
    stride = F.when(layout.lot(4, "stride", F.col("key")) == 0, 3).otherwise(1)  # some are sparse
    return (
        sends.withColumn("fate", fate)
        .withColumn("message", F.row_number().over(in_order))
        .withColumn("index", F.sum(in_log.cast("long")).over(in_order) - 1)
        .withColumn("offset", F.when(in_log, F.col("index") * stride))
    )


def _sent(log: DataFrame) -> DataFrame:
    asked = F.format_string('[["send","%d",%d]]', "key", "message")
    answer = F.format_string('[["send","%d",[%d,%d]]]', "key", "offset", "message")
    is_info = F.col("fate").isin(_SEEN, _UNSEEN)
    outcome = F.when(F.col("fate") == _FAILED, "fail").when(is_info, "info").otherwise("ok")
    return log.select(
        "operation",
        F.lit("send").alias("f"),
        outcome.alias("outcome"),
        asked.alias("invoked"),
        F.when(outcome == "ok", answer).otherwise(asked).alias("completed"),
    )


def _readings(log: DataFrame, layout: Layout) -> DataFrame:
    """What each poll returns of each key: `operation`, `key`, `place` (to sort by), `pairs` (JSON)."""
    key = F.col("key")
    pair = F.col("pair") + 1 + layout.lot(2, "wait", key)
    read = log.filter("offset is not null").select(
        "key",
        "offset",
        "message",
        pair.alias("pair"),
        F.explode(layout.readers(key)).alias("worker"),
    )
    operation = layout.operation(F.col("pair"), F.col("worker"), polls=True).alias("operation")
    by_poll = read.select(operation, "key", "offset", "message").groupBy("operation", "key")
    texts = F.transform(
        F.array_sort(F.collect_list(F.struct("offset", "message"))),
        lambda each: F.format_string("[%d,%d]", each["offset"], each["message"]),
    )
    pairs = F.concat(F.lit("["), F.array_join(texts, ","), F.lit("]"))
    return by_poll.agg(pairs.alias("pairs")).select(
        "operation", F.col("key").cast("string"), key.alias("place"), "pairs"
    )


def _polls(spark: SparkSession, readings: DataFrame, layout: Layout) -> DataFrame:
    """All polls, with those that return nothing, and those that workers make in place of sends."""
    polls = _slots(spark, layout, polls=True)
    spare = _slots(spark, layout, polls=False).filter(_is_drain(layout))
    entry = F.concat(F.lit('"'), "key", F.lit('":'), "pairs")
    in_order = F.array_sort(F.collect_list(F.struct("place", entry.alias("entry"))))
    answers = readings.groupBy("operation").agg(
        F.array_join(F.transform(in_order, lambda each: each["entry"]), ",").alias("entries")
    )
    all_polls = polls.union(spare).select("operation").join(answers, "operation", "left")
    answer = F.concat(F.lit('[["poll",{'), F.coalesce("entries", F.lit("")), F.lit("}]]"))
    return all_polls.select(
        "operation",
        F.lit("poll").alias("f"),
        F.lit("ok").alias("outcome"),
        F.lit('[["poll"]]').alias("invoked"),
        answer.alias("completed"),
    )


def _assigns(spark: SparkSession, layout: Layout) -> DataFrame:
    """At the start of each era, every worker is assigned the keys it reads, of it and the era before."""
    keys = spark.range(layout.keys).withColumnRenamed("id", "key")
    era = F.floor(F.col("key") / layout.keys_an_era)
    of_eras = F.explode(F.array(era, era + 1)).alias("era")
    named = keys.select("key", of_eras, F.explode(layout.readers(F.col("key"))).alias("worker"))
    text = F.transform(
        F.array_sort(F.collect_list("key")), lambda key: F.format_string('"%d"', key)
    )
    by_worker = named.groupBy("era", "worker").agg(F.array_join(text, ",").alias("names"))
    slots = _slots(spark, layout, polls=False).filter(_is_assign(layout))
    eras = slots.withColumn("era", F.floor(F.col("pair") / layout.pairs_an_era))
    value = F.concat(F.lit("["), F.coalesce("names", F.lit("")), F.lit("]"))
    return eras.join(by_worker, ["era", "worker"], "left").select(
        "operation",
        F.lit("assign").alias("f"),
        F.lit("ok").alias("outcome"),
        value.alias("invoked"),
        value.alias("completed"),
    )


def _as_operations(contents: DataFrame, layout: Layout) -> DataFrame:
    invoked, completed = (
        place(F.col("operation")) for place in (layout.invoked_at, layout.completed_at)
    )
    columns = {
        "process": F.col("operation") % layout.processes,
        "f": F.col("f"),
        "outcome": F.col("outcome"),
        "invoked_index": invoked,
        "invoked_ns": invoked * PLACE_NS,
        "completed_index": completed,
        "completed_ns": completed * PLACE_NS,
        "latency_ns": (completed - invoked) * PLACE_NS,
        "invoked_value_json": F.col("invoked"),
        "completed_value_json": F.col("completed"),
    }
    fields = [
        columns.get(field.name, F.lit(None)).cast(field.dataType).alias(field.name)
        for field in TABLES["operations"]
    ]
    return contents.select(F.lit("synthetic").alias("run_id"), *fields)


def _broken_keys(
    sends: DataFrame, layout: Layout, anomalies: Mapping[str, int]
) -> Iterator[tuple[int, str, KeyHistory]]:
    """A key for each anomaly, its type, and the key's history with the anomaly planted in it."""
    wanted = [name for name in ANOMALIES for _ in range(anomalies.get(name, 0))]
    candidates = _candidates(sends, layout, 4 * len(wanted) + 8) if wanted else {}
    for name in wanted:
        for key, its_sends in list(candidates.items()):
            history = KeyHistory(str(key), its_sends)
            if ANOMALIES[name](history) is not False and history.pairs[-1] < layout.pairs:
                del candidates[key]
                yield key, name, history
                break
        else:
            raise AnalysisError(
                f"not enough keys with {LEAST_MESSAGES} messages or more to plant {name}: "
                "ask for more --operations, or fewer --keys or anomalies"
            )


def _candidates(sends: DataFrame, layout: Layout, count: int) -> dict[int, list[Send]]:
    """The sends of some keys that have enough of them, chosen by a hash."""
    enough = sends.groupBy("key").count().filter(F.col("count") >= LEAST_MESSAGES)
    chosen = enough.orderBy(layout.lot(1 << 62, "victim", F.col("key"))).limit(count).select("key")
    rows = sends.join(F.broadcast(chosen), "key").orderBy("operation").collect()
    found: dict[int, list[Send]] = {row.key: [] for row in chosen.collect()}
    for row in rows:
        found[row.key].append(Send(row.operation, row.worker, row.pair))
    return found


def _broken_readings(
    spark: SparkSession, broken: Mapping[int, KeyHistory], layout: Layout
) -> DataFrame:
    """What each poll returns of the broken keys, as `_readings` has it of the others."""
    rows = [
        (key, reader, pair, json_text(run))
        for key, history in broken.items()
        for reader, runs in enumerate(history.runs)
        for pair, run in zip(history.pairs, runs, strict=True)
        if run
    ]
    runs = spark.createDataFrame(rows, "key long, reader int, pair long, pairs string")
    worker = F.get(layout.readers(F.col("key")), F.col("reader"))
    return runs.select(
        layout.operation(F.col("pair"), worker, polls=True).alias("operation"),
        F.col("key").cast("string").alias("key"),
        F.col("key").alias("place"),
        "pairs",
    )


def write(synthetic: Synthetic, path: Path) -> Path:
    """Write the history to `path`, and what was planted beside it; returns the latter's path.

    A name that ends in .jsonl or .edn is a history in one file, any other a folder of Parquet.

    Raises:
        AnalysisError: the history is too long for one file.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix in (".jsonl", ".edn"):
        planted = path.with_name(f"{path.stem}.{PLANTED}")
        _write_file(synthetic, path)
    else:
        planted = path.with_name(f"{path.name}.{PLANTED}")
        synthetic.operations.write.mode("overwrite").parquet(str(path))
    planted.write_text(json.dumps(synthetic.planted, indent=2) + "\n")
    return planted


def _write_file(synthetic: Synthetic, path: Path) -> None:
    rows = synthetic.operations.limit(_MOST_LINES // 2 + 1).collect()
    if 2 * len(rows) > _MOST_LINES:
        raise AnalysisError(f"{path} would be too long: give a folder, for Parquet")
    lines = sorted((line for row in rows for line in halves(row)), key=lambda line: line.index)
    for index, line in enumerate(lines):
        line.index = index
    if path.suffix == ".edn":
        with path.open("w") as text:
            text.writelines(f"{edn_line(line)}\n" for line in lines)
    else:
        with path.open("wb") as file:
            file.writelines(json_line(line) + b"\n" for line in lines)
