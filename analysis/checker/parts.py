"""What operations say of keys: JSON values as rows of `schemas.PART`.

Spark itself parses values of the usual shapes. It recognises each shape by a test that no other value
passes. All other values go through the bench's own `micro_ops`.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from analysis.arrow import arrow_batch
from analysis.checker.schemas import PART, STRING_MARK, encode
from runs.history import Op
from workloads.kafka.checker.contents import assigned_keys
from workloads.kafka.checker.observed import MALFORMED, TRANSACTIONS, Key, Run, micro_ops

ASSIGNMENTS = ("assign", "subscribe")
RELEVANT = (*sorted(TRANSACTIONS), *ASSIGNMENTS)
_POLL_HEAD, _POLL_TAIL = '[["poll",', "]]"
_NATURAL = r"0|[1-9]\d{0,17}"
_SEND = rf'^\[\["send","([^"\\]*)",(?:\[({_NATURAL}),)?({_NATURAL}|-[1-9]\d{{0,17}})\]{{2,3}}$'
_POLLED = "map<string,array<array<bigint>>>"
_MAX_OFFSET = (1 << 63) - 1


def recognised(operations: DataFrame) -> DataFrame:
    """`operations` with their JSON read (`polled`, `names`), and whether Python must parse it (`irregular`)."""
    read = operations.withColumns(
        {
            "polled": F.when(F.col("f") == "poll", F.from_json(_poll_answer(), _POLLED)),
            "names": F.when(F.col("f") == "assign", F.from_json("value", "array<string>")),
        }
    )
    return read.withColumn("irregular", _is_irregular())


def with_parts(recognised: DataFrame) -> tuple[DataFrame, DataFrame]:
    """Two frames with `part` in place of `value` and `parts`, one row a part.

    Python parses the second; a caller leaves it out when nothing is `irregular`, which saves its start.
    """
    relevant = recognised.filter(F.col("f").isin(*RELEVANT))
    regular = relevant.filter("not irregular").withColumn("parts", _regular_parts())
    irregular = relevant.filter("irregular").drop("polled", "names")
    in_python = irregular.mapInArrow(_parser(irregular.schema), irregular.schema)
    return _one_row_a_part(regular.drop("polled", "names")), _one_row_a_part(in_python)


def _one_row_a_part(operations: DataFrame) -> DataFrame:
    exploded = operations.select("*", F.explode("parts").alias("part"))
    return exploded.drop("value", "parts", "irregular")


def _is_irregular() -> Column:
    """Whether Python must look at an operation's value."""
    value = F.col("value")
    plain = (
        F.when(F.col("f") == "send", value.rlike(_SEND) & _brackets_match())
        .when(F.col("f") == "poll", _is_plain_poll())
        .when(F.col("f") == "assign", _is_plain_assignment())
        .otherwise(False)
    )
    has_value = F.col("parts").isNull() & value.isNotNull() & F.col("f").isin(*RELEVANT)
    return has_value & ~F.coalesce(plain, F.lit(False))


def _brackets_match() -> Column:
    pair = F.regexp_extract("value", _SEND, 2) != ""
    return F.col("value").endswith("]]]") == pair


def _is_plain_poll() -> Column:
    """Whether the value is `[["poll"]]`, or its answer survives parsing as keys with pairs of whole numbers."""
    pairs = F.flatten(F.map_values(F.col("polled")))
    good = F.forall(
        pairs,
        lambda pair: (F.size(pair) == 2) & (F.get(pair, 0) >= 0) & F.get(pair, 1).isNotNull(),
    )
    same = F.to_json(F.col("polled")) == _poll_answer()
    framed = F.col("value").startswith(_POLL_HEAD) & F.col("value").endswith(_POLL_TAIL)
    return (F.col("value") == '[["poll"]]') | (framed & same & F.coalesce(good, F.lit(False)))


def _is_plain_assignment() -> Column:
    same = F.col("value") == F.to_json(F.col("names"))
    return same & F.forall(F.col("names"), lambda name: name.isNotNull())


def _poll_answer() -> Column:
    value, head = F.col("value"), len(_POLL_HEAD)
    return value.substr(F.lit(head + 1), F.length(value) - (head + len(_POLL_TAIL)))


def _regular_parts() -> Column:
    none = F.array().cast(f"array<{PART.simpleString()}>")
    return F.coalesce(
        F.col("parts"),
        F.when(F.col("f") == "send", F.array(_send_part()))
        .when(F.col("f") == "poll", F.transform(F.map_entries(F.col("polled")), _poll_part))
        .when(F.col("f") == "assign", F.transform(F.array_distinct(F.col("names")), _assign_part)),
        none,
    )


def _send_part() -> Column:
    key, offset, message = (F.regexp_extract("value", _SEND, group) for group in (1, 2, 3))
    numbers = F.array(offset.try_cast("long")), F.array(message)
    return _part("send", key, *numbers)


def _poll_part(entry: Column) -> Column:
    offsets = F.transform(entry["value"], lambda pair: F.get(pair, 0))
    messages = F.transform(entry["value"], lambda pair: F.get(pair, 1).cast("string"))
    return _part("poll", entry["key"], offsets, messages)


def _assign_part(key: Column) -> Column:
    return _part("assign", key, F.array().cast("array<bigint>"), F.array())


def _part(kind: str, key: Column, offsets: Column, messages: Column) -> Column:
    fields = (F.lit(kind), F.concat(F.lit(STRING_MARK), key), offsets, messages, F.lit(False))
    named = zip(PART.fields, fields, strict=True)
    return F.struct(*(column.cast(field.dataType).alias(field.name) for field, column in named))


def _parser(schema: StructType) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def parsed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows = batch.to_pylist()
            for row in rows:
                row["parts"] = parts_of(Op(0, 0, "ok", 0, row["f"], json.loads(row["value"])))
            yield arrow_batch(rows, schema)

    return parsed


def parts_of(op: Op) -> list[dict[str, Any]]:
    """What `op` says of each key, as rows of `schemas.PART`."""
    if op.f in ASSIGNMENTS:
        return [_row("assign", key, Run()) for key in dict.fromkeys(assigned_keys(op))]
    sends, polls = micro_ops(op) if op.f in TRANSACTIONS else ({}, {})
    many = sum(len(run.messages) for run in sends.values()) > 1
    return [
        *(_row("send", key, run, many) for key, run in sends.items()),
        *(_row("poll", key, run) for key, run in polls.items()),
    ]


def _row(kind: str, key: Key, run: Run, many: bool = False) -> dict[str, Any]:
    told = zip(run.offsets, run.messages, strict=True)
    offsets = [_offset(offset, message in run.malformed) for offset, message in told]
    row = (kind, encode(key), offsets, list(map(encode, run.messages)), many)
    return dict(zip(PART.names, row, strict=True))


def _offset(offset: int | None, is_malformed: bool) -> int | None:
    if offset is None:
        return MALFORMED if is_malformed else None
    return min(offset, _MAX_OFFSET)
