"""What operations say of keys: JSON values as rows of `schemas.PART`.

Values of the shape that nearly all have are taken apart by Spark itself. Each such shape is recognised by a
test that no other value passes; what is left goes through the bench's own `micro_ops`.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from analysis.checker.scalars import TEXT, encode
from analysis.checker.schemas import PART, arrow_batch
from runs.history import Op
from workloads.kafka.checker.contiguity import assigned_keys
from workloads.kafka.checker.facts import TRANSACTIONS, Run, micro_ops

ASSIGNMENTS = ("assign", "subscribe")
RELEVANT = (*sorted(TRANSACTIONS), *ASSIGNMENTS)
_POLL_HEAD, _POLL_TAIL = '[["poll",', "]]"
_NATURAL = r"0|[1-9]\d{0,17}"
_SEND = rf'^\[\["send","([^"\\]*)",(?:\[({_NATURAL}),)?({_NATURAL}|-[1-9]\d{{0,17}})\]{{2,3}}$'
_POLLED = "map<string,array<array<bigint>>>"
_MAX_OFFSET = (1 << 63) - 1


def recognised(operations: DataFrame) -> DataFrame:
    """`operations` with their JSON read (`polled`, `names`), and whether it is `irregular`."""
    read = operations.withColumns(
        {
            "polled": F.when(F.col("f") == "poll", F.from_json(_poll_answer(), _POLLED)),
            "names": F.when(F.col("f") == "assign", F.from_json("value", "array<string>")),
        }
    )
    return read.withColumn("irregular", _is_irregular())


def with_parts(recognised: DataFrame) -> tuple[DataFrame, DataFrame]:
    """Two frames with `part` in place of `value` and `parts`, one row a part.

    The second holds what must go through Python; it is best not computed when nothing is `irregular`.
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
    """Reading and writing it as keys and pairs of whole numbers gives the same text; or nothing is told."""
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
    return _part("send", key, F.lit(0), *numbers)


def _poll_part(entry: Column, place: Column) -> Column:
    offsets = F.transform(entry["value"], lambda pair: F.get(pair, 0))
    messages = F.transform(entry["value"], lambda pair: F.get(pair, 1).cast("string"))
    return _part("poll", entry["key"], place, offsets, messages)


def _assign_part(key: Column, place: Column) -> Column:
    return _part("assign", key, place, F.array().cast("array<bigint>"), F.array())


def _part(kind: str, key: Column, place: Column, offsets: Column, messages: Column) -> Column:
    fields = (F.lit(kind), F.concat(F.lit(TEXT), key), place.cast("int"), offsets, messages)
    named = zip(PART.fields, (*fields, F.lit(False)), strict=True)
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
        keys = dict.fromkeys(assigned_keys(op))
        return [_row("assign", place, key, Run(), False) for place, key in enumerate(keys)]
    sends, polls = micro_ops(op) if op.f in TRANSACTIONS else ({}, {})
    many = sum(len(run.messages) for run in sends.values()) > 1
    return [
        _row(kind, place, key, run, many and kind == "send")
        for kind, runs in (("send", sends), ("poll", polls))
        for place, (key, run) in enumerate(runs.items())
    ]


def _row(kind: str, place: int, key: Any, run: Run, many: bool) -> dict[str, Any]:
    offsets = [None if each is None else min(each, _MAX_OFFSET) for each in run.offsets]
    messages = list(map(encode, run.messages))
    row = (kind, encode(key), place, offsets, messages, many)
    return dict(zip(PART.names, row, strict=True))
