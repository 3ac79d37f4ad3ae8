"""Rows of a frame as keys and values of a log.

    column `key`      string
    column `value`    binary: bytes
                      string: JSON text, or with `values=text` just text
                      any other type, such as a struct: its JSON

Of types that JSON lacks, dates and times become text of ISO 8601, decimals text, and bytes in a struct text of
base64. A null is JSON's null.
"""

from base64 import b64encode
from collections.abc import Callable, Iterator
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import orjson
import pyarrow as pa

from leaderless.errors import Unfit
from leaderless.store.values import Encoded, Json, json_of, json_text, text_of

COLUMNS = ("key", "value")
Encodes = tuple[bytes, bool]  # a text, and whether it is JSON
Encode = Callable[[Any], Encodes]
_NULL = b"null"


def require_columns(names: list[str], types: dict[str, str]) -> None:
    """Raises `Unfit` unless a frame has the columns `key`, a string, and `value`."""
    if sorted(names) != [*COLUMNS] or types["key"] != "string":
        found = ", ".join(f"{name} {types[name]}" for name in names)
        raise Unfit(f"a log takes the columns key (string) and value, not: {found}")


def rows_of(batch: pa.RecordBatch, *, plain_text: bool) -> Iterator[Encoded]:
    """The rows of a batch. Raises `Unfit` for a row that the log cannot keep."""
    column = batch.column("value")
    encode = _encoder(column.type, plain_text=plain_text)
    values = column.to_pylist(maps_as_pydicts="strict")
    for key, value in zip(batch.column("key").to_pylist(), values, strict=True):
        if key is None:
            raise Unfit("a row has no key; give each row one, or leave such rows out")
        try:
            text, is_json = (_NULL, True) if value is None else encode(value)
        except (Unfit, TypeError) as error:
            raise Unfit(f"the value of a row with the key {key!r}: {error}") from None
        yield Encoded(key, text, is_json)


def _encoder(kind: pa.DataType, *, plain_text: bool) -> Encode:
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _as_text if plain_text else _as_json
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return _as_bytes
    return _as_plain


def _as_text(text: str) -> Encodes:
    return orjson.dumps(text), True


def _as_bytes(content: bytes) -> Encodes:
    return content, False


def _as_json(text: str) -> Encodes:
    try:
        return json_text(json_of(text)), True
    except Unfit as unfit:
        raise Unfit(f"{unfit}; for text that is no JSON set the option values=text") from None


def _as_plain(value: object) -> Encodes:
    return text_of(_plain(value))[0], True


def _plain(value: object) -> Json:
    """What JSON has for a value that Arrow made."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case dict():
            return {str(name): _json(each) for name, each in value.items()}
        case list():
            return [_json(each) for each in value]
        case datetime() | date() | time():
            return value.isoformat()
        case timedelta():
            return value.total_seconds()
        case Decimal():
            return str(value)
    raise Unfit(f"{type(value).__name__} has no form in JSON")


def _json(value: object) -> Json:
    return b64encode(value).decode() if isinstance(value, bytes) else _plain(value)
