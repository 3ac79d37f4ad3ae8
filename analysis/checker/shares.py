"""The bench's own functions judge the shares of suspicious keys.

A key's *share* of a history is a history too: what its transactions said of that key, and the assignments that
matter to it. `local_cases` finds in the share what it finds of that key in the whole.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from analysis.checker.access import KEY
from analysis.checker.schemas import CASE, decode
from analysis.schemas import map_groups
from runs import edn
from runs.history import Op, printable
from workloads.kafka.checker.cases import SHOWN
from workloads.kafka.checker.compose import local_cases
from workloads.kafka.checker.logs import logs
from workloads.kafka.checker.observed import Facts, Key
from workloads.kafka.checker.unseen import unseen


def share_cases(accesses: DataFrame, keys: DataFrame, final_at: Mapping[int, int]) -> DataFrame:
    """The cases (`schemas.CASE`) in the shares of suspicious keys.

    `final_at` is the place of each run's last successful transaction. The messages that it polled, and
    that count as unseen nevertheless, come as a case of `unseen` for each key.
    """
    ends = F.create_map(*(F.lit(each) for pair in final_at.items() for each in pair))
    last_only = ~F.col("is_sent") & (F.col("first_polled_at") == ends[F.col("run")])
    chosen = keys.filter(F.col("suspicious") | last_only).select(*KEY)
    shares = accesses.join(chosen, [*KEY], "left_semi").select(
        *("run", "key", "process", "at", "kind", "f", "type", "offsets", "messages"),
        *("invoked_at", "order_epoch", "seen"),
    )
    found = map_groups(shares.groupBy(*KEY), partial(_judge, dict(final_at)), CASE)
    # `precommitted-read` has one case for each transaction, whatever the number of its keys.
    first = F.row_number().over(Window.partitionBy("run", "type", "op").orderBy("key", "number"))
    ranked = found.withColumn("rank", first)
    return ranked.filter("rank = 1 or type <> 'precommitted-read'").drop("rank")


def shown(cases: DataFrame) -> DataFrame:
    """The cases of each type that a result shows."""
    signs = _by_type({name: -1 if each.largest else 1 for name, each in SHOWN.items()})
    first = F.col("measure") * F.coalesce(signs, F.lit(1))
    place = F.row_number().over(Window.partitionBy("run", "type").orderBy(first, "key", "number"))
    limits = _by_type({name: each.count for name, each in SHOWN.items()})  # null: all are shown
    return cases.withColumn("place", place).filter(
        F.coalesce(F.col("place") <= limits, F.lit(True))
    )


def _by_type(numbers: Mapping[str, int]) -> Column:
    return F.create_map(*(F.lit(x) for pair in numbers.items() for x in pair))[F.col("type")]


def _judge(final_at: Mapping[int, int], share: pa.Table) -> Iterator[dict[str, Any]]:
    rows = sorted(share.to_pylist(), key=lambda row: (row["at"], row["kind"]))
    return (
        dict(zip(CASE.names, case, strict=True))
        for case in _case_rows(rows, final_at.get(rows[0]["run"]))
    )


def _case_rows(rows: list[dict[str, Any]], final_at: int | None) -> Iterator[tuple[Any, ...]]:
    of_key = rows[0]["run"], rows[0]["key"]
    facts = share_of(decode(rows[0]["key"]), rows)
    for anomaly, found in local_cases(facts, logs(facts)).items():
        for number, case in enumerate(found):
            measure = SHOWN[anomaly].measure(case) if anomaly in SHOWN else 0
            op = case["op"].index if "op" in case else None
            yield *of_key, anomaly, measure, number, op, edn.dumps(printable(case))
    final = next((each for each in facts.transactions if each.op.index == final_at), None)
    sent = any(row["kind"] == "send" and row["type"] == "ok" for row in rows)
    for missed in () if sent else unseen(facts, final).values():
        yield *of_key, "unseen", len(missed), 0, final_at, edn.dumps(list(missed))


def share_of(key: Key, rows: list[dict[str, Any]]) -> Facts:
    """The history of one key, from its accesses in order. Operations have their place for an index."""
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
    return Facts(
        [op for _, _, op in lines],
        frozenset(row["at"] for row in rows if row["seen"]),
        {places[at]: places[start] for at, start in pairs.items()},
    )


def _mops(key: Key, row: Mapping[str, Any]) -> list[Any]:
    pairs = list(map(list, zip(row["offsets"], map(decode, row["messages"]), strict=True)))
    if row["kind"] == "poll":
        return [["poll", {key: pairs}]]
    return [["send", key, pair] for pair in pairs]
