"""The lines of histories and journals, as Spark reads them.

The free-form values of a history are VARIANT: any JSON, in which numbers and strings keep their kind.
The body of a message is always an object, so its text says the same, in half the time: a journal is
ten times as long. A line that does not fit ends up whole in `CORRUPT`.
"""

from pyspark.sql.types import (
    DataType,
    LongType,
    StringType,
    StructField,
    StructType,
    VariantType,
)

CORRUPT = "_corrupt"


def _struct(**fields: DataType) -> StructType:
    return StructType([StructField(name, type_) for name, type_ in fields.items()])


# One line of history.jsonl (or of history.edn, translated). `process` is a number or "nemesis".
HISTORY_LINE = _struct(
    index=LongType(),
    time=LongType(),  # ns since the start of the run
    type=StringType(),
    process=StringType(),
    f=StringType(),
    value=VariantType(),
    error=VariantType(),
    **{CORRUPT: StringType()},
)
HISTORY_REQUIRED = ("index", "time", "type", "process", "f")

# One line of net-journal.jsonl (or one event of a Fressian stripe, translated).
JOURNAL_LINE = _struct(
    id=LongType(),
    time=LongType(),  # ns on the journal's own clock
    type=StringType(),
    message=_struct(id=LongType(), src=StringType(), dest=StringType(), body=StringType()),
    **{CORRUPT: StringType()},
)
JOURNAL_REQUIRED = ("id", "time", "type", "message.id", "message.src", "message.dest")

# What is read of a message's body; the rest stays text.
BODY = _struct(type=StringType(), msg_id=LongType(), in_reply_to=LongType())
