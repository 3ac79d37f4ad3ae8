"""The tables between the steps of the job. `at` and `invoked_at` are places in the order of a history."""

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

LONG, TEXT, INT, FLAG = LongType(), StringType(), IntegerType(), BooleanType()


def _struct(**fields: DataType) -> StructType:
    return StructType([StructField(name, type_) for name, type_ in fields.items()])


# What one operation says of one key. Kind: assign | poll | send. `place`: which of the operation's keys of
# that kind it is. Offsets (null: unknown) and messages are in step, and empty for an assignment.
PART = _struct(
    kind=TEXT, key=TEXT, place=INT, offsets=ArrayType(LONG), messages=ArrayType(TEXT), many=FLAG
)

# An operation of a client. Of one that was never completed (type `open`) `at` and `at_ns` are null; of a
# completion without an invocation, the other two. What it says is in `parts`, or as JSON in `value`.
OPERATION = _struct(
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
EVENT = _struct(
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

# A case of an anomaly that a share showed; `rank` orders the cases of a type as the bench finds them.
CASE = _struct(run=INT, key=TEXT, type=TEXT, measure=LONG, rank=ArrayType(LONG), case=BinaryType())


def arrow_batch(rows: Iterable[Mapping[str, Any]], schema: StructType) -> pa.RecordBatch:
    """`rows` for Spark, with numbers as exact as they are (pandas makes floats of those beside nulls)."""
    return pa.RecordBatch.from_pylist(list(rows), schema=to_arrow_schema(schema))
