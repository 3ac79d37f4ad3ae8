"""The tables of the lake, and the lines of histories and journals as Spark reads them.

Every table is partitioned by `run_id`; units are in the names. Times of operations and faults are
nanoseconds since the start of the run. Times of messages are nanoseconds on the journal's clock, whose
zero is the bench's own. Subtracting `history_origin_ns` turns them into the time of operations; the real
tool's stores do not give theirs, so that there only differences can be compared.

The free-form values of a history are VARIANT: any JSON, in which numbers and strings keep their kind.
The body of a message is always an object, so its text says the same, in half the time: a journal is
ten times as long. A line that does not fit ends up whole in `CORRUPT`.
"""

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
    VariantType,
)

LONG, TEXT, INT, REAL = LongType(), StringType(), IntegerType(), DoubleType()
BOOLEAN, VARIANT = BooleanType(), VariantType()
CORRUPT = "_corrupt"
RUN_ID = StructField("run_id", TEXT, nullable=False)  # in front of every table


def struct(**fields: DataType) -> StructType:
    """A row with these fields, each of which may be null."""
    return StructType([StructField(name, type_) for name, type_ in fields.items()])


def _table(required: dict[str, DataType], optional: dict[str, DataType]) -> StructType:
    fields = [StructField(name, type_, nullable=False) for name, type_ in required.items()]
    return StructType(fields + struct(**optional).fields)


# One row per run.
RUNS = _table(
    # engine: embedded | simulation | jepsen (the real tool); valid: true | false | unknown
    required={"source": TEXT, "engine": TEXT, "valid": TEXT},
    optional={
        "workload": TEXT,
        "started": TEXT,  # as the bench wrote it
        "node_count": INT,
        "concurrency": INT,
        "rate_hz": REAL,
        "time_limit_s": REAL,
        "latency_ms": REAL,  # mean latency that the bench's network added
        "history_origin_ns": LONG,  # the start of the run on the journal's clock, where known
        "strategy": TEXT,  # of this repository's node; null for any other program
        "faults": ArrayType(TEXT),  # the kinds that were asked for, sorted
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
)

# One row per invocation by a client, joined with its completion.
OPERATIONS = _table(
    required={
        "process": LONG,
        "f": TEXT,
        "outcome": TEXT,  # ok | fail | info | open (the history ends before its completion)
        "invoked_index": LONG,
        "invoked_ns": LONG,
    },
    optional={
        "node": TEXT,  # the node that its client speaks to; null when the bench did not say
        "completed_index": LONG,
        "completed_ns": LONG,
        "latency_ns": LONG,
        "invoked_value_json": TEXT,
        "completed_value_json": TEXT,
        "error_json": TEXT,
    },
)

# One row per message: its sending joined with its receipt. A lost message has no receipt.
MESSAGES = _table(
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
)

# One row per fault, several of them possibly at once: the widest time in which it can have been in force.
FAULTS = _table(
    required={"kind": TEXT, "started_ns": LONG},
    optional={
        "ended_ns": LONG,  # null: never ended
        "target_json": TEXT,  # what was asked for, such as "minority-third"
        "effect_json": TEXT,  # what the nemesis reported to have done
    },
)

# One row per instance of an anomaly that the checker reported (it need not report every one).
ANOMALIES = _table(
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
)

# One row per line that could not be used.
QUARANTINE = _table(
    required={"file": TEXT, "reason": TEXT},
    optional={
        "line": LONG,  # from 1; the record's number in a binary file, null where there is none
        "text": TEXT,  # the beginning of the line
    },
)

TABLES = {
    "runs": RUNS,
    "operations": OPERATIONS,
    "messages": MESSAGES,
    "faults": FAULTS,
    "anomalies": ANOMALIES,
    "quarantine": QUARANTINE,
}


# One line of history.jsonl (or of history.edn, translated). `process` is a number or "nemesis".
HISTORY_LINE = struct(
    index=LONG,
    time=LONG,  # ns since the start of the run
    type=TEXT,
    process=TEXT,
    f=TEXT,
    value=VARIANT,
    error=VARIANT,
    node=TEXT,  # of an operation whose worker's first node has left
    **{CORRUPT: TEXT},
)
HISTORY_REQUIRED = ("index", "time", "type", "process", "f")

# One line of net-journal.jsonl (or one event of a Fressian stripe, translated).
JOURNAL_LINE = struct(
    id=LONG,
    time=LONG,  # ns on the journal's own clock
    type=TEXT,
    message=struct(id=LONG, src=TEXT, dest=TEXT, body=TEXT),
    **{CORRUPT: TEXT},
)
JOURNAL_REQUIRED = ("id", "time", "type", "message.id", "message.src", "message.dest")

# What is read of a message's body; the rest stays text.
BODY = struct(type=TEXT, msg_id=LONG, in_reply_to=LONG)
