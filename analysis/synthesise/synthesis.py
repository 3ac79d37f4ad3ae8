"""The tables of a synthetic history: sends, polls and assignments, as the lake's operations; and its files.

The worker, kind and time of each operation follow from its number by arithmetic. Worker `w` of P performs
operation `r * P + w` in round r. Rounds come in pairs. In each pair a worker polls once and sends once, in
random order. Each reader of a key polls what was sent in a pair in the next pair, or in the one after. Pairs
form eras. An era has keys of its own. At its start every worker is assigned the keys that it reads, of this
era and of the one before. In the last pairs there are no sends (`drain`).

Operation i is invoked at place `i * (P + 1)`, and completed up to P - 2 operations later, at a place that
no other has. So operations overlap, and no process has two at once.

*Planting*: plain Python rewrites the history of one key. An anomaly may bring others with it: a lost write
leaves a gap in what is polled. Some types cannot be planted. `empty-transaction-graph` is of a whole history,
`unreplicated` of a strict check, and the `G0` family needs edges that are looked for only on request.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from pyspark.sql import Column, DataFrame, Row, SparkSession, Window
from pyspark.sql import functions as F

from analysis.errors import AnalysisError
from analysis.schemas import OPERATIONS
from runs.history import Op, with_keywords, write_edn, write_jsonl
from runs.keyword import Keyword

# ---------------------------------------------------------------- layout

READERS = 2  # of each key
DRAIN_PAIRS = 8
PLACE_NS = 10_000  # time between two places
_KEYS_AN_ERA = 16
_LEAST_PAIRS_AN_ERA = 16


@dataclass(frozen=True)
class Layout:
    """A history's size.

    Args:
        operations: at least so many (rounded up to whole pairs).
        keys: how many are sent to.
        processes: at least 3.
        seed: of all random choices.
    """

    operations: int
    keys: int
    processes: int
    seed: int = 0

    def __post_init__(self) -> None:
        if self.processes < READERS + 1:
            raise AnalysisError(f"--processes must be at least {READERS + 1}")
        if self.keys < 1 or self.operations < 1:
            raise AnalysisError("--operations and --keys must be at least 1")

    @property
    def pairs(self) -> int:
        """Pairs of rounds, with those of the drain."""
        return max(_LEAST_PAIRS_AN_ERA + DRAIN_PAIRS, -(-self.operations // (2 * self.processes)))

    @property
    def eras(self) -> int:
        sending = self.pairs - DRAIN_PAIRS
        return max(1, min(self.keys // _KEYS_AN_ERA, sending // _LEAST_PAIRS_AN_ERA))

    @property
    def pairs_an_era(self) -> int:
        return -(-(self.pairs - DRAIN_PAIRS) // self.eras)

    @property
    def keys_an_era(self) -> int:
        return -(-self.keys // self.eras)

    def lot(self, of: int, what: str, *columns: Column) -> Column:
        """A number below `of`, chosen by a hash of `columns`."""
        return F.pmod(F.xxhash64(F.lit(self.seed), F.lit(what), *columns), F.lit(of)).cast("long")

    def operation(self, pair: Column, worker: Column, *, polls: bool) -> Column:
        """The number of the operation in which a worker polls in a pair, or does not."""
        first = self.lot(2, "order", pair, worker)
        is_second = first if polls else 1 - first
        return (2 * pair + is_second) * self.processes + worker

    def readers(self, key: Column) -> Column:
        """The two workers that read a key."""
        first = self.lot(self.processes, "reader", key)
        further = 1 + self.lot(self.processes - 1, "further", key)
        return F.array(first, F.pmod(first + further, F.lit(self.processes)))

    def invoked_at(self, operation: Column) -> Column:
        return operation * (self.processes + 1)

    def completed_at(self, operation: Column) -> Column:
        late = self.lot(self.processes - 1, "latency", operation)
        return (operation + late) * (self.processes + 1) + 1 + late


# ---------------------------------------------------------------- planting

LEAST_MESSAGES = 40  # of a key in which an anomaly is planted
_CHUNK = 8  # messages that are polled at once
_WAIT_PAIRS = 2
_TARGET = 20  # a message in the middle of the third chunk
_THIRD = 2

Pair = tuple[int, int]  # offset, message
_BEFORE = _TARGET - 2, _TARGET - 1
_PAIR = _TARGET - 1, _TARGET
_NEXT = _TARGET, _TARGET + 1


class Send(NamedTuple):
    """The send of one message: number of the operation, its worker and its pair of rounds."""

    operation: int
    worker: int
    pair: int


class Content(NamedTuple):
    """What an operation does: its function, its outcome, and its values as JSON."""

    f: str
    outcome: str
    invoked: str
    completed: str


@dataclass
class KeyHistory:
    """What happened to one key: message m (from 1) was sent to offset m - 1 by `sends[m - 1]`.

    Its readers poll it a chunk at a time, after all of the chunk was sent: `runs[reader][chunk]`.
    """

    key: str
    sends: Sequence[Send]
    runs: list[list[list[Pair]]] = field(default_factory=list)
    pairs: list[int] = field(default_factory=list)  # in which each chunk is polled
    contents: dict[int, Content] = field(default_factory=dict)  # of the operations that send

    def __post_init__(self) -> None:
        for offset in range(len(self.sends)):
            self.rewrite(offset + 1, _transaction(self.key, [(offset, offset + 1)]))
        self.poll_in_chunks_of(_CHUNK)

    def poll_in_chunks_of(self, size: int) -> None:
        """Have `size` messages polled at once."""
        log = [(offset, offset + 1) for offset in range(len(self.sends))]
        chunks = [log[start : start + size] for start in range(0, len(log), size)]
        self.pairs = []
        for chunk in chunks:
            sent_in = self.sends[chunk[-1][0]].pair
            before = self.pairs[-1] if self.pairs else -1
            self.pairs.append(max(sent_in + _WAIT_PAIRS, before + 1))
        self.runs = [[list(chunk) for chunk in chunks] for _ in range(2)]

    def rewrite(self, message: int, content: Content) -> None:
        """Replace what the operation that sent `message` does."""
        self.contents[self.sends[message - 1].operation] = content


# Changes the history of a key. Returns False when that history does not lend itself to the anomaly.
Plant = Callable[[KeyHistory], bool | None]

_EMPTY_POLL = Content("poll", "ok", '[["poll"]]', '[["poll",{}]]')


def _transaction(key: str, sent: Sequence[Pair], polled: Pair | None = None) -> Content:
    """An acknowledged transaction that sends pairs, and polls one if there is one to poll."""
    f = "send" if len(sent) == 1 and not polled else "txn"
    polls = [["poll", {key: [polled]}]] if polled else []
    invoked = [*(["send", key, message] for _, message in sent), *([["poll"]] if polled else [])]
    completed = [*(["send", key, pair] for pair in sent), *polls]
    return Content(f, "ok", compact(invoked), compact(completed))


def compact(value: object) -> str:
    """JSON without blanks, as the bench writes it."""
    return json.dumps(value, separators=(",", ":"))


def _in_polls(edit: Callable[[list[list[Pair]], int], object], readers: int = 2) -> Plant:
    """Change what the first readers poll: their chunks; `edit` is also told the next free offset."""

    def plant(history: KeyHistory) -> None:
        for runs in history.runs[:readers]:
            edit(runs, len(history.sends))

    return plant


def _in_sends(contents: Callable[[str], Mapping[int, Content]]) -> Plant:
    """Change what the senders of some messages of a key do."""

    def plant(history: KeyHistory) -> None:
        for message, content in contents(history.key).items():
            history.rewrite(message, content)

    return plant


def _failed(key: str) -> Content:
    value = compact([["send", key, _TARGET]])
    return Content("send", "fail", value, value)


def _replace(run: list[Pair], old: Pair, new: Pair) -> None:
    run[run.index(old)] = new


def _exchange(items: list[Any], place: int) -> None:
    items[place], items[place + 1] = items[place + 1], items[place]


def _nonmonotonic_send(history: KeyHistory) -> bool:
    """Two messages of one worker in the wrong order, polled after both were sent."""
    by_worker: dict[int, int] = {}
    for message, send in enumerate(history.sends, 1):
        earlier = by_worker.setdefault(send.worker, message)
        if earlier != message:
            break
    else:
        return False
    history.poll_in_chunks_of(len(history.sends))
    first, second = (earlier - 1, message), (message - 1, earlier)
    history.rewrite(message, _transaction(history.key, [first]))
    history.rewrite(earlier, _transaction(history.key, [second]))
    for runs in history.runs:
        runs[0][first[0]], runs[0][second[0]] = first, second
    return True


def _realtime_cycle(history: KeyHistory) -> bool:
    """A chunk is polled with the one before it, and in part before it was sent."""
    waits = (after - before > 4 for before, after in pairwise(history.pairs))
    chunk = next((number for number, waited in enumerate(waits, 1) if waited), None)
    if chunk is None:
        return False
    for runs in history.runs:
        runs[chunk - 1] += runs[chunk]
        runs[chunk] = []
    return True


ANOMALIES: Mapping[str, Plant] = {
    "lost-write": _in_polls(lambda runs, _: runs[_THIRD].remove(_PAIR)),
    "unseen": _in_polls(lambda runs, _: runs[-1].pop()),
    "duplicate": _in_polls(lambda runs, end: runs[-1].append((end, _TARGET))),
    "inconsistent-offsets": _in_polls(
        lambda runs, _: _replace(runs[_THIRD], _PAIR, (_PAIR[0], _NEXT[1])), 1
    ),
    "G1a": _in_sends(lambda key: {_TARGET: _failed(key)}),
    "no-writer-of-value": _in_polls(lambda runs, end: runs[-1].append((end, 1_000_000_000))),
    "precommitted-read": _in_sends(lambda key: {_TARGET: _transaction(key, [_PAIR], _PAIR)}),
    "poll-skip": _in_polls(lambda runs, _: runs[_THIRD].clear(), 1),
    "nonmonotonic-poll": _in_polls(lambda runs, _: _exchange(runs, _THIRD), 1),
    "nonmonotonic-send": _nonmonotonic_send,
    "int-poll-skip": _in_polls(lambda runs, _: runs[_THIRD].remove(_PAIR), 1),
    "int-nonmonotonic-poll": _in_polls(
        lambda runs, _: _exchange(runs[_THIRD], runs[_THIRD].index(_PAIR)), 1
    ),
    "int-send-skip": _in_sends(
        lambda key: {
            _TARGET - 1: _EMPTY_POLL,
            _TARGET + 1: _transaction(key, [_BEFORE, _NEXT]),
        }
    ),
    "int-nonmonotonic-send": _in_sends(
        lambda key: {
            _TARGET - 1: _EMPTY_POLL,
            _TARGET + 1: _transaction(key, [_NEXT, _BEFORE]),
        }
    ),
    "G1c": _in_sends(
        lambda key: {
            _TARGET: _transaction(key, [_PAIR], _NEXT),
            _TARGET + 1: _transaction(key, [_NEXT], _PAIR),
        }
    ),
    "G1c-realtime": _realtime_cycle,
}


# ---------------------------------------------------------------- tables

RUN_ID = "synthetic"
_FAILED, _SEEN, _UNSEEN = 0, 1, 2  # of a hundred sends: the fate of those that are not acknowledged
_CONTENT = "operation long, f string, outcome string, invoked string, completed string"


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
    unknown = sorted(set(anomalies) - set(ANOMALIES))
    if unknown:
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
        spark.createDataFrame(rewritten, _CONTENT),
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
    in_order = F.array_sort(F.collect_list(F.struct("offset", "message")))
    texts = F.transform(
        in_order, lambda each: F.format_string("[%d,%d]", each["offset"], each["message"])
    )
    pairs = F.concat(F.lit("["), F.array_join(texts, ","), F.lit("]"))
    grouped = by_poll.agg(pairs.alias("pairs"))
    return grouped.select("operation", F.col("key").cast("string"), key.alias("place"), "pairs")


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
    readers = F.explode(layout.readers(F.col("key")))
    named = keys.select("key", of_eras, readers.alias("worker"))
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
        for field in OPERATIONS
    ]
    return contents.select(F.lit(RUN_ID).alias("run_id"), *fields)


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
        (key, reader, pair, compact(run))
        for key, history in broken.items()
        for reader, runs in enumerate(history.runs)
        for pair, run in zip(history.pairs, runs, strict=True)
        if run
    ]
    runs = spark.createDataFrame(rows, "key long, reader int, pair long, pairs string")
    worker = F.get(layout.readers(F.col("key")), F.col("reader"))
    operation = layout.operation(F.col("pair"), worker, polls=True)
    return runs.select(
        operation.alias("operation"),
        F.col("key").cast("string").alias("key"),
        F.col("key").alias("place"),
        "pairs",
    )


# ---------------------------------------------------------------- output

PLANTED = "planted.json"
_MOST_LINES = 2_000_000  # that the driver can hold as a text


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
    lines = sorted((line for row in rows for line in _lines(row)), key=lambda line: line.index)
    for index, line in enumerate(lines):
        line.index = index
    if path.suffix == ".edn":
        with path.open("w") as text:
            write_edn(lines, text)
    else:
        with path.open("wb") as file:
            write_jsonl(lines, file)


def _lines(row: Row) -> Iterator[Op]:
    ends: tuple[tuple[str, Any], ...] = (("invoked", "invoke"), ("completed", row.outcome))
    for end, kind in ends:
        value = with_keywords(json.loads(row[f"{end}_value_json"]))
        yield Op(row[f"{end}_index"], row[f"{end}_ns"], kind, row.process, Keyword(row.f), value)
