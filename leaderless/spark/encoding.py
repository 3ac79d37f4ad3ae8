"""Rows of a frame as keys and values of a log.

    column `key`      string
    column `value`    binary: bytes
                      string: JSON text, or with `values=text` just text
                      any other type, such as a struct: its JSON

Of types that JSON lacks, dates and times become text of ISO 8601, decimals text, and bytes in a struct text of
base64. A null is JSON's null.
"""

from base64 import b64encode
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from leaderless.errors import Unfit
from leaderless.store.values import Encoded, Json, encode_value, json_of, json_text
from leaderless.table.schema import quoted

COLUMNS = ("key", "value")
SCHEMA = pa.schema([("key", pa.string()), ("text", pa.large_binary()), ("is_json", pa.bool_())])


def require_columns(names: list[str], types: dict[str, str]) -> None:
    """Raises `Unfit` unless a frame has the columns `key`, a string, and `value`."""
    if sorted(names) != [*COLUMNS] or types["key"] != "string":
        found = ", ".join(f"{name} {types[name]}" for name in names)
        raise Unfit(f"a log takes the columns key (string) and value, not: {found}")


def rows_of(batch: pa.RecordBatch, *, plain_text: bool) -> pa.Table:
    """The rows of a batch, each as in `Encoded`. Raises `Unfit` for a row that the log cannot keep."""
    keys, values = batch.column("key"), batch.column("value")
    if keys.null_count:
        raise Unfit("a row has no key; give each row one, or leave such rows out")
    texts = _texts(keys, values, plain_text=plain_text)
    is_json = values.is_null() if _is_binary(values.type) else pa.repeat(True, len(values))
    return pa.table([keys.cast(pa.string()), pc.fill_null(texts, b"null"), is_json], schema=SCHEMA)


def records_of(rows: pa.Table) -> list[Encoded]:
    """Rows as the log takes them."""
    return [*map(Encoded._make, zip(*(each.to_pylist() for each in rows.columns), strict=True))]


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
    found: list[bytes | None] = []
    for key, value in zip(
        keys.to_pylist(), values.to_pylist(maps_as_pydicts="strict"), strict=True
    ):
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
