"""The tables of the lake.

Every table begins with the columns `KEYS`: of which run and version a row is, and what ran. Units are in the
names. Times of operations and faults are nanoseconds since the start of the run. Times of messages are
nanoseconds on the journal's clock, whose zero is the bench's own. Subtracting `history_origin_ns` turns them
into the time of operations; the real tool's stores do not give theirs, so that there only differences can be
compared.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame, GroupedData
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from runs.operations import Row

LONG, TEXT, INT, REAL = LongType(), StringType(), IntegerType(), DoubleType()
BOOLEAN = BooleanType()


def struct(**fields: DataType) -> StructType:
    """A row with these fields, each of which may be null."""
    return StructType([StructField(name, type_) for name, type_ in fields.items()])


def _table(required: dict[str, DataType], optional: dict[str, DataType]) -> StructType:
    fields = [StructField(name, type_, nullable=False) for name, type_ in required.items()]
    return StructType(fields + struct(**optional).fields)


# Of a run: its name, the state of its files and of this code, and who it is (`runs.figures.Figures.who`).
KEYS = _table(
    required={"run_id": TEXT, "version": TEXT},
    # `faults` are those that were asked for, in words: "none", "kill", "kill, pause".
    optional={"workload": TEXT, "program": TEXT, "strategy": TEXT, "faults": TEXT},
)

# In the order in which they are written: `runs` makes a version of a run count.
TABLES = {
    # One row per invocation by a client, joined with its completion.
    "operations": _table(
        required={
            "process": LONG,
            "f": TEXT,
            "outcome": TEXT,  # ok | fail | info | open (the history ends before its completion)
            "invoked_index": LONG,
            "invoked_ns": LONG,
        },
        optional={
            "phase": TEXT,  # main | recovery | final, by its invocation
            "fault": TEXT,  # in force meanwhile: calm, a kind, or several (of more than one kind)
            "node": TEXT,  # the node that its client speaks to; null when the bench did not say
            "completed_index": LONG,
            "completed_ns": LONG,
            "latency_ns": LONG,
            "invoked_value_json": TEXT,
            "completed_value_json": TEXT,
            "error_json": TEXT,
        },
    ),
    # One row per message: its sending joined with its receipt. A lost message has no receipt.
    "messages": _table(
        required={
            "message_id": LONG,
            "src": TEXT,
            "dest": TEXT,
            "link": TEXT,  # client | node-store | node-node
            "send_count": LONG,  # events in the journal: 1, or 0 where its sending was not recorded
            "recv_count": LONG,  # 1, 0 for a lost message, more for a duplicated one
        },
        optional={
            "type": TEXT,
            "rpc_id": LONG,  # body.msg_id
            "in_reply_to": LONG,
            "sent_ns": LONG,
            "received_ns": LONG,
            "latency_ns": LONG,
            "body_json": TEXT,  # as sent; null where its sending was not recorded
        },
    ),
    # One row per fault, several of them possibly at once: the widest time in which it can have been in force.
    "faults": _table(
        required={"kind": TEXT, "started_ns": LONG},
        optional={
            "ended_ns": LONG,  # null: never ended
            "target_json": TEXT,  # what was asked for, such as "minority-third"
            "effect_json": TEXT,  # what the nemesis reported to have done
            "watched_ms": REAL,  # for so long after its end it was looked whether operations are as before
            "recovery_ms": REAL,  # after so long they were; null: not while it was watched
        },
    ),
    # One row per instance of an anomaly that the checker reported (it need not report every one).
    "anomalies": _table(
        required={
            "type": TEXT,
            "invalidating": BOOLEAN,
            "count": LONG,  # instances of this type that the checker counted in the run
            "number": LONG,  # of this instance, from 0
        },
        optional={
            "key": TEXT,
            "instance": TEXT,  # as the results have it: JSON of our runs, EDN of the real tool's
        },
    ),
    # One row per figure of a run: the numbers of `runs.figures`, and its messages by cause and by type.
    "figures": _table(
        required={"figure": TEXT, "value": REAL},
        optional={"of": TEXT},  # a cause, or a link and a type; null for the numbers
    ),
    # One row per line that could not be used.
    "quarantine": _table(
        required={"file": TEXT, "reason": TEXT},
        optional={
            "line": LONG,  # from 1; the record's number in a binary file, null where there is none
            "text": TEXT,  # the beginning of the line
        },
    ),
    # One row per run.
    "runs": _table(
        # engine: embedded | simulation | jepsen (the real tool); valid: true | false | unknown | crashed
        required={"source": TEXT, "engine": TEXT, "valid": TEXT},
        optional={
            "started": TEXT,  # as the bench wrote it
            "node_count": INT,
            "concurrency": INT,
            "rate_hz": REAL,
            "time_limit_s": REAL,
            "latency_ms": REAL,  # mean latency that the bench's network added
            "history_origin_ns": LONG,  # the start of the run on the journal's clock, where known
            "nodes": ArrayType(TEXT),
            "recovery_time_s": REAL,  # between the main and the final phase
            "sweep": TEXT,  # the sweep that the run belongs to, with its cell and repetition
            "cell_json": TEXT,
            "repetition": INT,
            "bad_error_types": ArrayType(TEXT),  # those that invalidate
            "error_types": ArrayType(TEXT),
            "options_json": TEXT,  # test.json
            "network_json": TEXT,  # the bench's own :net map, to be compared with
        },
    ),
}


def whole(name: str) -> StructType:
    """The columns of a table, `KEYS` among them."""
    return StructType([*KEYS, *TABLES[name]])


# ---------------------------------------------------------------- arrow


def arrow_batch(rows: Iterable[Row], schema: StructType) -> pa.RecordBatch:
    """`rows` for Spark, with numbers as exact as they are (pandas makes floats of those beside nulls)."""
    return pa.RecordBatch.from_pylist(list(rows), schema=to_arrow_schema(schema))


def map_rows(
    frame: DataFrame, function: Callable[[Row], Iterable[Row]], schema: StructType
) -> DataFrame:
    """Each row of a frame through `function`, which gives rows of `schema`."""

    def mapped(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield arrow_batch((each for row in batch.to_pylist() for each in function(row)), schema)

    return frame.mapInArrow(mapped, schema)


def map_groups(
    groups: GroupedData, function: Callable[[pa.Table], Iterable[Row]], schema: StructType
) -> DataFrame:
    """Each group, whole, through `function`, which gives rows of `schema`."""

    def mapped(table: pa.Table) -> pa.Table:
        return pa.Table.from_batches([arrow_batch(function(table), schema)])

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return groups.applyInArrow(mapped, schema)
