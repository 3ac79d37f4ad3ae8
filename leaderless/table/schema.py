"""The columns of the log's Parquet files, and the records in them.

    key          string
    offset       int64
    value        string     a JSON value as text; null where one of the next two holds the message
    bytes        binary     a value of bytes
    message      string     what is neither: the message as the log holds it, as JSON text. A value that
    stands in
                            an object of its own is `{"$data": [name, bytes, "json" or "bytes"]}`
                            (`data/NAME`)
    appended_at  timestamp  when it was committed, in milliseconds (`Entry.time`). Of a record without a time:
                            when the store took the segment that had it; null where it does not say
    headers      map        of texts; null: the record has none
    writer, seq  string, int64   the batch that appended it
    slot         int64      the place of that batch in the log

Rows are in the order of key (its UTF-8 bytes) and offset. A file's metadata have `leaderless.format`, and in
`leaderless.run` what else its run holds (`leaderless.table.runs`): JSON, compressed by zlib, in base64.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from leaderless.core.coordination import Json, Misfit
from leaderless.errors import Broken
from leaderless.store.registers import canonical
from leaderless.store.values import (
    Reference,
    bytes_in,
    message_of,
    parted,
    reference_in,
    with_headers,
)

FORMAT_NAME, RUN_NAME = b"leaderless.format", b"leaderless.run"

COLUMNS = pa.schema(
    [
        pa.field("key", pa.string(), nullable=False),
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("value", pa.string()),
        pa.field("bytes", pa.binary()),
        pa.field("message", pa.string()),
        pa.field("appended_at", pa.timestamp("us", tz="UTC")),
        pa.field("headers", pa.map_(pa.string(), pa.string())),
        pa.field("writer", pa.string()),
        pa.field("seq", pa.int64()),
        pa.field("slot", pa.int64()),
    ]
)
# In their order in files of format 4; the others are null there.
OLD_NAMES = "key", "offset", "value", "bytes", "message", "writer", "seq", "slot", "appended_at"
CONTENT = ("value", "bytes", "message")
_ESCAPED = r'["\\\x00-\x1f]'  # by JSON; any other character stands for itself


class Row(NamedTuple):
    """One record of the log: a row of the table.

    `message` is the message as the log holds it. `appended_at` is in seconds since 1970. `writer`, `seq`,
    `slot` and `appended_at` are None where a run of JSON does not say them.
    """

    key: str
    offset: int
    message: Json
    writer: str | None
    seq: int | None
    slot: int | None
    appended_at: float | None


def micros_of(at: float | None) -> int | None:
    """Seconds since 1970 as microseconds."""
    return None if at is None else round(at * 1e6)


def content_arrays(messages: Sequence[Json]) -> list[pa.Array]:
    """The columns `value`, `bytes`, `message` and `headers` of messages."""
    types = {*map(type, messages)}
    no_headers = pa.nulls(len(messages), COLUMNS.field("headers").type)
    if dict in types and any(isinstance(each, dict) and len(each) == 1 for each in messages):
        headers, inner = zip(*map(parted, messages), strict=True)
        if any(headers):
            told = pa.array([[*each.items()] or None for each in headers], no_headers.type)
            return [*content_arrays(inner)[:-1], told]
        content = [content_of(each) for each in messages]
        fields = map(COLUMNS.field, CONTENT)
        return [
            *(
                pa.array([each[place] for each in content], field.type)
                for place, field in enumerate(fields)
            ),
            no_headers,
        ]
    texts = quoted(pa.array(messages, pa.string())) if types == {str} else None
    if texts is None:  # Arrow checks the bytes of all; Python decodes none
        texts = pa.array([canonical(each) for each in messages], pa.binary()).cast(pa.string())
    nothing = (pa.nulls(len(messages), COLUMNS.field(name).type) for name in CONTENT[1:])
    return [texts, *nothing, no_headers]


def quoted(plain: pa.Array) -> pa.Array | None:
    """Strings as JSON; None when a character of them needs an escape."""
    if pc.any(pc.match_substring_regex(plain, _ESCAPED)).as_py():
        return None
    return pc.binary_join_element_wise('"', plain, '"', "")


def content_of(message: Json) -> tuple[str | None, bytes | None, str | None]:
    """A message as `value`, `bytes` or `message`: the first of them from which it comes back as it was."""
    if not isinstance(message, dict) or len(message) != 1:
        return canonical(message).decode(), None, None
    match message:
        case {"$bytes": str(text)} if (content := bytes_in(text)) is not None:
            return None, content, None
        case {"$json": value} if message_of(value) == message:
            return canonical(value).decode(), None, None
    if message_of(message) == message:  # its only name is no special one
        return canonical(message).decode(), None, None
    return None, None, canonical(message).decode()


def messages_of(table: pa.Table) -> list[Json]:
    """The messages in the columns `value`, `bytes`, `message` and `headers` of a table. Raises `Broken`."""
    if "headers" in table.column_names and table["headers"].null_count < table.num_rows:
        each_with = zip(
            messages_of(table.drop(["headers"])), table["headers"].to_pylist(), strict=True
        )
        return [with_headers(message, dict(headers or ())) for message, headers in each_with]
    values, *others = (table.column(name) for name in CONTENT)
    texts = values.to_pylist()
    try:
        if not values.null_count and all(each.null_count == len(each) for each in others):
            return [message_of(orjson.loads(text)) for text in texts]  # mostly
        return [*map(_message, texts, *(each.to_pylist() for each in others))]
    except (ValueError, Misfit) as error:
        raise Broken(f"a record makes no sense: {error}") from error


def _message(value: str | None, content: bytes | None, other: str | None) -> Json:
    match value, content, other:
        case str(), None, None:
            return message_of(orjson.loads(value))
        case None, bytes(), None:
            return message_of(content)
        case None, None, str():
            strange: Json = orjson.loads(other)
            return strange
    raise Misfit(f"one of {', '.join(CONTENT)} must be there, and no two")


def times_in(table: pa.Table) -> list[list[int]]:
    """Offset and time, in milliseconds, of the rows of one key whose time differs from the one before."""
    offsets, micros = table["offset"].to_pylist(), table["appended_at"].cast(pa.int64()).to_pylist()
    times: list[list[int]] = []
    for offset, at in zip(offsets, micros, strict=True):
        if at is not None and at // 1000 not in [time for _, time in times[-1:]]:
            times.append([offset, at // 1000])
    return times


def rows_in(table: pa.Table) -> Iterator[Row]:
    """The rows of a table."""
    keys, offsets, *batches = (
        table.column(name).to_pylist() for name in ("key", "offset", "writer", "seq", "slot")
    )
    micros = table.column("appended_at").cast(pa.int64()).to_pylist()
    times = [None if at is None else at / 1e6 for at in micros]
    return map(Row._make, zip(keys, offsets, messages_of(table), *batches, times, strict=True))


def reference_of(text: str) -> Reference | None:
    """The reference to a large value in a text of the column `message`; None: it is none. Raises `Broken`."""
    try:
        return reference_in(orjson.loads(text))
    except ValueError as error:
        raise Broken(f"a message is no JSON: {error}") from error
