"""The tables between the steps of the job. `at` and `invoked_at` are places in the order of a history.

A key or a message is a text in them. Two texts are equal exactly when the bench's checker holds the values
equal: 7 is `7`, "7" is `"7`, and anything else is `#` and its EDN.

`PART` is what operations say of keys, from JSON values. Spark itself parses values of the usual shapes. It
recognises each shape by a test that no other value passes. All others go through the bench's own `micro_ops`.
"""

import json
from collections.abc import Iterator
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType

from analysis.schemas import BOOLEAN, INT, LONG, TEXT, Row, map_rows, struct
from runs.history import Op
from workloads.kafka.checker.observed import (
    MALFORMED,
    TRANSACTIONS,
    Key,
    Message,
    Opaque,
    Pairs,
    micro_ops,
)
from workloads.kafka.checker.order import assigned_keys

# What one operation says of one key. Kind: assign | poll | send. Offsets (null: unknown) and messages are in
# step, and empty for an assignment. `many`: the operation sends more than one message.
PART = struct(kind=TEXT, key=TEXT, offsets=ArrayType(LONG), messages=ArrayType(TEXT), many=BOOLEAN)

# An operation of a client. Of one that was never completed (type `open`) `at` and `at_ns` are null; of a
# completion without an invocation, the other two. What it says is in `parts`, or as JSON in `value`.
OPERATION = struct(
    run=INT,
    process=LONG,
    f=TEXT,
    type=TEXT,  # ok | fail | info | open
    at=LONG,
    at_ns=LONG,
    invoked_at=LONG,
    invoked_ns=LONG,
    error=TEXT,  # JSON, or EDN after "#"
    value=TEXT,
    parts=ArrayType(PART),
)

# A line of a history of which `from_histories` has made sense.
EVENT = struct(
    run=INT,
    at=LONG,
    at_ns=LONG,
    process=LONG,
    f=TEXT,
    type=TEXT,  # as OPERATION's, and `invoke`
    error=TEXT,
    parts=ArrayType(PART),
    problem=TEXT,  # why there is no sense in it; then all but the run is null
)

# A case of an anomaly in a key's share. `measure` and `number` order the cases of a key and type. `case` is
# what results.edn would have, except that each operation says only what it says of the key, and has its
# place for an index. `op` is the place of the one operation that it is about, if it is about one.
CASE = struct(run=INT, key=TEXT, type=TEXT, measure=LONG, number=INT, op=LONG, case=TEXT)

STRING_MARK, OPAQUE_MARK = '"', "#"


def encode(value: Key | Message) -> str:
    """The text of a key or message (of what `facts.scalar` returns)."""
    if type(value) is Opaque:
        return OPAQUE_MARK + str(value)
    return STRING_MARK + value if isinstance(value, str) else str(value)


def decode(text: str) -> Key | Message:
    """The key or message that `text` stands for."""
    if text[0] == STRING_MARK:
        return text[1:]
    return Opaque(text[1:]) if text[0] == OPAQUE_MARK else int(text)


# ---------------------------------------------------------------- parts

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
    in_python = map_rows(irregular, _parsed, irregular.schema)
    return _one_row_a_part(regular.drop("polled", "names")), _one_row_a_part(in_python)


def _one_row_a_part(operations: DataFrame) -> DataFrame:
    exploded = operations.select("*", F.explode("parts").alias("part"))
    return exploded.drop("value", "parts", "irregular")


def _is_irregular() -> Column:
    """Whether Python must look at an operation's value."""
    value, names = F.col("value"), F.col("names")
    is_pair = F.regexp_extract("value", _SEND, 2) != ""
    plain = (
        F.when(F.col("f") == "send", value.rlike(_SEND) & (value.endswith("]]]") == is_pair))
        .when(F.col("f") == "poll", _is_plain_poll())
        .when(
            F.col("f") == "assign",
            (value == F.to_json(names)) & F.forall(names, lambda name: name.isNotNull()),
        )
        .otherwise(False)
    )
    has_value = F.col("parts").isNull() & value.isNotNull() & F.col("f").isin(*RELEVANT)
    return has_value & ~F.coalesce(plain, F.lit(False))


def _is_plain_poll() -> Column:
    """Whether the value is `[["poll"]]`, or its answer survives parsing as keys with pairs of whole numbers."""
    good = F.forall(
        F.flatten(F.map_values(F.col("polled"))),
        lambda pair: (F.size(pair) == 2) & (F.get(pair, 0) >= 0) & F.get(pair, 1).isNotNull(),
    )
    same = F.to_json(F.col("polled")) == _poll_answer()
    framed = F.col("value").startswith(_POLL_HEAD) & F.col("value").endswith(_POLL_TAIL)
    return (F.col("value") == '[["poll"]]') | (framed & same & F.coalesce(good, F.lit(False)))


def _poll_answer() -> Column:
    value, head = F.col("value"), len(_POLL_HEAD)
    return value.substr(F.lit(head + 1), F.length(value) - (head + len(_POLL_TAIL)))


def _regular_parts() -> Column:
    names = F.col("names")
    nothing = F.array().cast("array<bigint>"), F.array()

    def named(key: Column) -> Column:
        return _part("assign", key, *nothing)

    return F.coalesce(
        F.col("parts"),
        F.when(F.col("f") == "send", F.array(_send_part()))
        .when(F.col("f") == "poll", F.transform(F.map_entries(F.col("polled")), _poll_part))
        .when(
            F.col("f") == "assign",
            F.transform(F.array_distinct(names), named),
        ),
        F.array().cast(f"array<{PART.simpleString()}>"),
    )


def _send_part() -> Column:
    key, offset, message = (F.regexp_extract("value", _SEND, group) for group in (1, 2, 3))
    return _part("send", key, F.array(offset.try_cast("long")), F.array(message))


def _poll_part(entry: Column) -> Column:
    offsets = F.transform(entry["value"], lambda pair: F.get(pair, 0))
    messages = F.transform(entry["value"], lambda pair: F.get(pair, 1).cast("string"))
    return _part("poll", entry["key"], offsets, messages)


def _part(kind: str, key: Column, offsets: Column, messages: Column) -> Column:
    fields = (F.lit(kind), F.concat(F.lit(STRING_MARK), key), offsets, messages, F.lit(False))
    named = zip(PART.fields, fields, strict=True)
    return F.struct(*(column.cast(field.dataType).alias(field.name) for field, column in named))


def _parsed(row: Row) -> Iterator[Row]:
    parts = parts_of(Op(0, 0, "ok", 0, row["f"], json.loads(row["value"])))
    yield {**row, "parts": parts}


def parts_of(op: Op) -> list[dict[str, Any]]:
    """What `op` says of each key, as rows of `schemas.PART`."""
    if op.f in ASSIGNMENTS:
        return [_row("assign", key, Pairs()) for key in dict.fromkeys(assigned_keys(op))]
    sends, polls = micro_ops(op) if op.f in TRANSACTIONS else ({}, {})
    many = sum(len(pairs.messages) for pairs in sends.values()) > 1
    return [
        *(_row("send", key, pairs, many) for key, pairs in sends.items()),
        *(_row("poll", key, pairs) for key, pairs in polls.items()),
    ]


def _row(kind: str, key: Key, pairs: Pairs, many: bool = False) -> dict[str, Any]:
    told = zip(pairs.offsets, pairs.messages, strict=True)
    offsets = [_offset(offset, message in pairs.malformed) for offset, message in told]
    row = (kind, encode(key), offsets, list(map(encode, pairs.messages)), many)
    return dict(zip(PART.names, row, strict=True))


def _offset(offset: int | None, is_malformed: bool) -> int | None:
    if offset is None:
        return MALFORMED if is_malformed else None
    return min(offset, _MAX_OFFSET)
