"""Rows of a frame as keys and values of a log.

    column `key`      string
    column `value`    binary: bytes
                      string: JSON text, or with `values=text` just text
                      any other type, such as a struct: its JSON

Of types that JSON lacks, dates and times become text of ISO 8601, decimals text, and bytes in a struct text of
base64. A null is JSON's null.
"""

from base64 import b64encode
from collections.abc import Callable, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from itertools import compress
from secrets import token_hex
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from leaderless.core.decoding import kept_text
from leaderless.errors import Unfit
from leaderless.store.values import Json, Value, encode_value, json_of, json_text
from leaderless.table.schema import quoted
from leaderless.wire.codec import json_in

COLUMNS = ("key", "value")
SCHEMA = pa.schema([("key", pa.string()), ("text", pa.large_binary()), ("is_json", pa.bool_())])


def require_columns(names: list[str], types: dict[str, str]) -> None:
    """Raises `Unfit` unless a frame has the columns `key`, a string, and `value`."""
    if sorted(names) != [*COLUMNS] or types["key"] != "string":
        found = ", ".join(f"{name} {types[name]}" for name in names)
        raise Unfit(f"a log takes the columns key (string) and value, not: {found}")


def rows_of(batch: pa.RecordBatch, *, plain_text: bool) -> pa.Table:
    """The rows of a batch: key, what `encode_value` makes of the value, and whether that is JSON.

    Raises `Unfit` for a row that the log cannot keep.
    """
    keys, values = batch.column("key"), batch.column("value")
    if keys.null_count:
        raise Unfit("a row has no key; give each row one, or leave such rows out")
    texts = _texts(keys, values, plain_text=plain_text)
    is_json = values.is_null() if _is_binary(values.type) else pa.repeat(True, len(values))
    return pa.table([keys.cast(pa.string()), pc.fill_null(texts, b"null"), is_json], schema=SCHEMA)


def values_by_key(rows: pa.Table) -> dict[str, list[Value]]:
    """The values of rows by key, those of a key in their order."""
    texts, are_json = rows["text"].to_pylist(), rows["is_json"].to_pylist()
    parsed = iter(orjson.loads(b"[%b]" % b",".join(compress(texts, are_json))))
    values = [
        next(parsed) if is_json else text for text, is_json in zip(texts, are_json, strict=True)
    ]
    blocks: dict[str, list[Value]] = {}
    first, runs = 0, pc.run_end_encode(rows["key"].combine_chunks())
    for key, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
        blocks.setdefault(key, []).extend(values[first:end])
        first = end
    return blocks


def _texts(keys: pa.Array, values: pa.Array, *, plain_text: bool) -> pa.Array:
    """The texts of values; of a null, null."""
    kind = values.type
    encode: Callable[[Any], bytes] = _as_plain
    if _is_binary(kind):
        return values.cast(pa.large_binary())
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        if plain_text and (texts := quoted(values.cast(pa.string()))) is not None:
            return texts.cast(pa.large_binary())
        encode = orjson.dumps if plain_text else _as_json
    plain = values.to_pylist(maps_as_pydicts="strict")
    if encode is _as_json and (every := _all_as_json(plain)):
        return pa.array(every, pa.large_binary())
    found: list[bytes | None] = []
    for key, value in zip(keys.to_pylist(), plain, strict=True):
        try:
            found.append(None if value is None else encode(value))
        except (Unfit, TypeError) as error:
            raise Unfit(f"the value of a row with the key {key!r}: {error}") from None
    return pa.array(found, pa.large_binary())


def _is_binary(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def _as_json(text: str) -> bytes:
    try:
        return json_text(json_of(text))
    except Unfit as unfit:
        raise Unfit(f"{unfit}; for text that is no JSON set the option values=text") from None


def _all_as_json(texts: Sequence[str | None]) -> list[bytes] | None:
    """The same of all at once, null for none; None: some must be looked at one by one.

    A mark that no text has stands between each two. So where all marks are items of the list that comes, a
    single value stands between them, whatever brackets and commas the texts have.
    """
    mark = token_hex(8)
    try:
        text = f',"{mark}",'.join("null" if each is None else each for each in texts)
        values = json_in(f"[{text}]".encode())
        kept_text(values)
    except (ValueError, TypeError):
        return None
    is_each = len(values) == 2 * len(texts) - 1 and values[1::2] == [mark] * (len(texts) - 1)
    return [*map(orjson.dumps, values[::2])] if is_each else None


def _as_plain(value: object) -> bytes:
    return encode_value(_plain(value))[0]


def _plain(value: object) -> Json:
    """What JSON has for a value that Arrow made."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case dict():
            return {str(name): _plain(each) for name, each in value.items()}
        case list():
            return [_plain(each) for each in value]
        case bytes():
            return b64encode(value).decode()
        case datetime() | date() | time():
            return value.isoformat()
        case timedelta():
            return value.total_seconds()
        case Decimal():
            return str(value)
    raise Unfit(f"{type(value).__name__} has no form in JSON")
