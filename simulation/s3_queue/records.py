"""The objects of a topic, as S3-Queue keeps them in a folder of a bucket.

meta/sequence-counter    {value, pending}: the next offset, from 1 on, and the newest index entry
meta/log-state           {state, version}: OPEN or FENCED; `version` makes the ETag of each write new
meta/compaction-cursor   {value}: the first offset that is not compacted
index/<20 digits>        an `Entry`, at the last offset of its batch
data/wal/<name>          messages of one batch, as JSON lines
data/compacted/<a>-<b>   messages of a compacted range, as JSON lines; offsets of 20 digits
"""

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import orjson

Json: TypeAlias = bool | int | float | str | list["Json"] | dict[str, "Json"] | None

COUNTER = "meta/sequence-counter"
LOG_STATE = "meta/log-state"
CURSOR = "meta/compaction-cursor"
BATCH_MESSAGES_MAX = 1000
BATCH_BYTES_MAX = 10 << 20
OPEN, FENCED = "OPEN", "FENCED"
WAL, COMPACTED = "WAL", "COMPACTED"
DELETED = "DELETED"  # of the repaired protocol alone: a tombstone


class QueueError(Exception):
    """The queue did not do what it was asked: to its caller, nothing has happened."""


class EmptyBatch(QueueError):
    """A batch without messages."""


class TooLarge(QueueError):
    """A batch with more messages or bytes than the limit."""


class Fenced(QueueError):
    """The topic takes no messages until `unfence`."""


class RetriesExhausted(QueueError):
    """Other producers won the race for the counter each time."""


class NotInitialised(QueueError):
    """The topic does not exist."""


class Misaligned(QueueError):
    """The range cannot be compacted: it has gaps, or an edge lies inside a batch."""


class Vanished(QueueError):
    """An index entry or its data was deleted during the read, again and again."""


class Stalled(QueueError):
    """The producer stood still so long that a vacuum may have deleted its data; nothing was appended."""


class Entry(NamedTuple):
    """An index entry.

    `offset`: of the last message; `length`: how many messages end there; `data`: the key of the object that
    has them. `origin` is of the repaired protocol alone: the data of the batch that got this offset first,
    which tells a producer that the batch was its own. In a tombstone `data` is the index key of the
    compacted entry.
    """

    offset: int
    type: str
    length: int
    data: str
    origin: str = ""

    @property
    def first(self) -> int:
        """The offset of the first message."""
        return self.offset - self.length + 1

    @property
    def plain(self) -> dict[str, Json]:
        """As JSON."""
        plain: dict[str, Json] = {
            "offset": self.offset,
            "type": self.type,
            "msgCount": self.length,
            "dataKey": self.data,
        }
        return plain | ({"origin": self.origin} if self.origin else {})

    @classmethod
    def of(cls, plain: dict[str, Json]) -> "Entry":
        """The entry that `plain` wrote."""
        names = ("offset", "type", "msgCount", "dataKey")
        offset, kind, length, data = (plain[name] for name in names)
        assert isinstance(offset, int)
        assert isinstance(length, int)
        return cls(offset, str(kind), length, str(data), str(plain.get("origin", "")))


class Counter(NamedTuple):
    """The sequence counter. `touched` is of the repaired protocol alone: it counts vacuums."""

    value: int
    pending: Entry | None
    touched: int = 0

    def written(self) -> bytes:
        """As the object holds it."""
        plain: dict[str, Json] = {"value": self.value}
        if self.pending:
            plain["pending"] = self.pending.plain
        return orjson.dumps(plain | ({"touched": self.touched} if self.touched else {}))

    @classmethod
    def read(cls, text: bytes) -> "Counter":
        """The counter that `written` wrote."""
        plain = orjson.loads(text)
        pending = plain.get("pending")
        entry = Entry.of(pending) if pending else None
        return cls(plain["value"], entry, plain.get("touched", 0))


class Message(NamedTuple):
    """A message at its offset."""

    offset: int
    value: Json


def index_key(offset: int) -> str:
    """Where the entry of a batch is that ends at `offset`."""
    return f"index/{offset:020}"


def lines(values: Sequence[Json]) -> bytes:
    """Messages as JSON lines."""
    return b"".join(orjson.dumps(value) + b"\n" for value in values)


def values_in(text: bytes) -> list[Json]:
    """The messages that `lines` wrote."""
    return [orjson.loads(line) for line in text.splitlines()]
