"""The tables between the steps of the job. `at` and `invoked_at` are places in the order of a history.

A key or a message is a text in them. Two texts are equal exactly when the bench's checker holds the values
equal: 7 is `7`, "7" is `"7`, and anything else is `#` and its EDN.

`PART` is what operations say of keys. The bench's own `micro_ops` reads it from their values.
"""

import json
from typing import Any

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import ArrayType

from analysis.schemas import BOOLEAN, INT, LONG, TEXT, struct
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
# completion without an invocation, the other two.
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
_MAX_OFFSET = (1 << 63) - 1


def parts(f: Column, value: Column) -> Column:
    """What operations say of each key (`PART`), from their names and JSON values."""
    kind = ArrayType(PART)

    def read(names: pa.Array, values: pa.Array) -> pa.Array:
        found = [
            parts_of(Op(0, 0, "ok", 0, name, json.loads(text))) if text else None
            for name, text in zip(names.to_pylist(), values.to_pylist(), strict=True)
        ]
        return pa.array(found, to_arrow_type(kind))

    in_arrow: Any = arrow_udf  # its types leave out functions of arrays
    told: Column = in_arrow(read, kind)(f, value)
    return told


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
