"""The bench's own functions on the shares of suspicious keys.

A key's share of a history is a history too: what its transactions said of that key, and the assignments
that matter to it. `local_cases` finds in it what it finds of that key in the whole. Only the order in which
the bench would have found a case needs more than the share: each case gets a rank that sorts like it.
"""

import pickle
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from analysis.checker.runs import RunFacts
from analysis.checker.scalars import decode
from analysis.checker.schemas import CASE, arrow_batch
from runs.history import Op
from workloads.kafka.checker.cases import SHOWN, Case
from workloads.kafka.checker.compose import local_cases
from workloads.kafka.checker.facts import Facts, Key
from workloads.kafka.checker.hash_order import trie_path
from workloads.kafka.checker.unseen import unseen
from workloads.kafka.checker.versions import logs

_COLUMNS = ("run", "key", "process", "at", "kind", "place", "f", "type", "offsets", "messages")
_MORE = ("invoked_at", "order_epoch", "seen")
_BY_LOG = ("duplicate", "inconsistent-offsets")
_BY_PROCESS = ("poll-skip", "nonmonotonic-poll", "nonmonotonic-send")
_BY_SEND = ("int-send-skip", "int-nonmonotonic-send", "precommitted-read")
_FEW = 8


@dataclass(frozen=True)
class Share(Facts):
    """A part of a history, which was told what completes what."""

    pairs: Mapping[int, int] | None = None  # place in `history` of a completion, of its invocation

    @property
    def invocations(self) -> Mapping[int, int]:  # type: ignore[override]
        return self.pairs or {}


def cases(touches: DataFrame, keys: DataFrame, facts: Mapping[int, RunFacts]) -> DataFrame:
    """The cases (`schemas.CASE`) in the shares of suspicious keys. Messages that the last transaction of a
    run polled, and that count as unseen nevertheless, come as a case of `unseen`.
    """
    finals = {run: each.final_at for run, each in facts.items() if each.final_at is not None}
    ends = F.create_map(*(F.lit(each) for pair in finals.items() for each in pair))
    last_only = ~F.col("is_sent") & (F.col("first_polled_at") == ends[F.col("run")])
    chosen = keys.filter(F.col("suspicious") | last_only).select("run", "key")
    shares = touches.join(chosen, ["run", "key"], "left_semi").select(*_COLUMNS, *_MORE)
    found = shares.groupBy("run", "key").applyInArrow(_judge(facts), CASE)
    return _once_a_transaction(found)


def shown(cases: DataFrame) -> DataFrame:
    """The cases of each type that a result shows."""
    by_measure = Window.partitionBy("run", "type")
    ascending = F.row_number().over(by_measure.orderBy("measure", "rank"))
    descending = F.row_number().over(by_measure.orderBy(F.desc("measure"), F.desc("rank")))
    place = F.when(F.col("type").isin(_largest()), descending).otherwise(ascending)
    counts = F.create_map(*(F.lit(x) for name, each in SHOWN.items() for x in (name, each.count)))
    limit = F.coalesce(counts[F.col("type")], F.lit(1 << 31))
    return cases.withColumn("place", place).filter(F.col("place") <= limit).drop("place")


def _largest() -> list[str]:
    return [name for name, each in SHOWN.items() if each.largest]


def _once_a_transaction(cases: DataFrame) -> DataFrame:
    """`precommitted-read` has one case for each transaction: that of its first key."""
    transaction = Window.partitionBy("run", "type", F.col("rank")[0]).orderBy("rank")
    first = F.row_number().over(transaction) == 1
    return (
        cases.withColumn("first", first)
        .filter("first or type <> 'precommitted-read'")
        .drop("first")
    )


def _judge(facts: Mapping[int, RunFacts]) -> Callable[[pa.Table], pa.Table]:
    def judge(share: pa.Table) -> pa.Table:
        rows = sorted(share.to_pylist(), key=lambda row: (row["at"], row["kind"]))
        found = _case_rows(rows, facts[rows[0]["run"]])
        named = [dict(zip(CASE.names, row, strict=True)) for row in found]
        return pa.Table.from_batches([arrow_batch(named, CASE)])

    return judge


def _case_rows(rows: list[dict[str, Any]], run: RunFacts) -> Iterator[tuple[Any, ...]]:
    number, key = rows[0]["run"], decode(rows[0]["key"])
    facts = share_of(key, rows)
    rank = _Ranks(rows, facts, key, run)
    for anomaly, cases in local_cases(facts, logs(facts)).items():
        measure = SHOWN[anomaly].measure if anomaly in SHOWN else _none
        for place, case in enumerate(cases):
            order = [*rank.of(anomaly, case), place]
            yield number, rows[0]["key"], anomaly, measure(case), order, pickle.dumps(case)
    final = next((each for each in facts.transactions if each.op.index == run.final_at), None)
    sent = any(row["kind"] == "send" and row["type"] == "ok" for row in rows)
    for messages in () if sent else unseen(facts, final).values():
        yield number, rows[0]["key"], "unseen", 0, [0], pickle.dumps((key, messages))


def _none(case: Case) -> int:  # noqa: ARG001 - a measure like the others
    return 0


def share_of(key: Key, rows: list[dict[str, Any]]) -> Share:
    """The history of one key, from its touches in order. Operations have their place for an index."""
    lines: list[tuple[int, int, Op]] = []  # place, among those of one place, operation
    pairs: dict[int, int] = {}
    epochs: dict[int, int] = {}
    values: dict[int, list[Any]] = {}
    for row in rows:
        at, process, f, start = row["at"], row["process"], row["f"], row["invoked_at"]
        is_assign = row["kind"] == "assign"
        if is_assign and row["type"] in ("fail", "open"):
            continue
        expected = epochs.get(process, row["order_epoch"] - is_assign) + is_assign
        epochs[process] = row["order_epoch"]
        if row["order_epoch"] != expected:
            lost = Op(-1, 0, "info", process, "assign", [])
            lines.append((at if start is None else start, 0, lost))
        if at in values:
            values[at] += _mops(key, row)
            continue
        values[at] = [key] if is_assign else _mops(key, row)
        value, is_open = values[at], row["type"] == "open"
        if start is not None:
            lines.append((start, 1, Op(start, 0, "invoke", process, f, value if is_open else None)))
        if not is_open:
            lines.append((at, 2, Op(at, 0, row["type"], process, f, value)))
            if start is not None:
                pairs[at] = start
    lines.sort(key=lambda line: line[:2])
    places = {place: number for number, (place, kind, _) in enumerate(lines) if kind}
    seen = frozenset(row["at"] for row in rows if row["seen"])
    return Share(
        [op for _, _, op in lines],
        seen,
        {places[at]: places[start] for at, start in pairs.items()},
    )


def _mops(key: Key, row: Mapping[str, Any]) -> list[Any]:
    pairs = list(map(list, zip(row["offsets"], map(decode, row["messages"]), strict=True)))
    return (
        [["poll", {key: pairs}]]
        if row["kind"] == "poll"
        else [["send", key, pair] for pair in pairs]
    )


class _Ranks:
    """Where among all cases of a type the bench would have found those of one key."""

    def __init__(self, rows: list[dict[str, Any]], facts: Facts, key: Key, run: RunFacts) -> None:
        self._run, self._key = run, key
        self._places = {(row["at"], row["kind"]): row["place"] for row in rows}
        transactions = facts.transactions
        committed = [each for each in transactions if each.sends and facts.committed(each)]
        known = [(each.op.index, "poll", each.polls.get(key)) for each in transactions]
        known += [(each.op.index, "send", each.sends.get(key)) for each in committed]
        self._known = min(
            ((at, kind) for at, kind, run in known if run and run.highest >= 0), default=None
        )
        self._polled = next(
            (each.op.index for each in transactions if each.type == "ok" and each.polls), None
        )

    def of(self, anomaly: str, case: Case) -> list[int]:
        """What to sort by, first things first."""
        if anomaly in _BY_LOG and self._known:
            at, kind = self._known
            first = [at, int(kind == "send"), self._places[self._known]]
            return self._by_hash(self._key, self._run.keys_known) + first
        if anomaly == "lost-write" and self._polled is not None:
            first = [self._polled, self._places[self._polled, "poll"]]
            return self._by_hash(self._key, self._run.keys_polled) + first
        if anomaly in _BY_PROCESS:
            op = case["ops"][-1]
            kind = "send" if anomaly.endswith("send") else "poll"
            return [*self._process(op.process), op.index, self._places[op.index, kind]]
        op = case["op"] if "op" in case else case["reader"]
        return [op.index, self._places[op.index, "send" if anomaly in _BY_SEND else "poll"]]

    def _process(self, process: int) -> list[int]:
        rank = self._run.process_rank(process)
        return self._by_hash(process, self._run.processes) if rank is None else [rank]

    @staticmethod
    def _by_hash(value: Any, count: int) -> list[int]:
        return list(trie_path(value)) if count > _FEW else []
