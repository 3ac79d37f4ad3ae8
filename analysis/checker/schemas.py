"""The tables between the steps of the job. `at` and `invoked_at` are places in the order of a history.

A key or a message is a text in them. Two texts are equal exactly when the bench's checker holds the values
equal: 7 is `7`, "7" is `"7`, and anything else is `#` and its EDN.
"""

from pyspark.sql.types import ArrayType

from analysis.schemas import BOOLEAN, INT, LONG, TEXT, struct
from workloads.kafka.checker.observed import Key, Message, Opaque

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
