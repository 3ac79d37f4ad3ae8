"""Values of users as messages of the log, which are JSON.

    a JSON value          itself
    bytes                 {"$bytes": "<base64>"}
    a large value         {"$data": ["<name>", <bytes>, "json" | "bytes"]}, the rest in the object data/<name>
    an object whose only name begins with "$"     {"$json": <it>}
    a value with headers  {"$headers": [{"<name>": "<text>", ...}, <one of the above>]}

So no value is taken for another, and plain ones can be read by any other reader of the log.
"""

import math
from binascii import a2b_base64, b2a_base64
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import orjson

from leaderless.core import coordination, decoding
from leaderless.errors import Broken, Unfit
from leaderless.store.names import is_data
from leaderless.wire.codec import json_in, leaves

Json: TypeAlias = coordination.Json
# What a program may append: a list, a dictionary or a TypedDict of any item type. What is inside, and that no
# tuple stands there, only a run can tell (`encode_value`).
Value: TypeAlias = bool | int | float | str | bytes | Sequence[object] | Mapping[str, object] | None

HEADER_BYTES_MAX = 8192  # of the headers of a value, as JSON
_STRICT = (
    orjson.OPT_PASSTHROUGH_DATACLASS
    | orjson.OPT_PASSTHROUGH_DATETIME
    | orjson.OPT_PASSTHROUGH_SUBCLASS
)


class Reference(NamedTuple):
    """A value that stands in an object of its own: `data/NAME`, of `size` bytes; `kind`: "json" or "bytes"."""

    name: str
    size: int
    kind: str

    @property
    def key(self) -> str:
        """The object's key."""
        return f"data/{self.name}"

    @property
    def message(self) -> Json:
        """As the log holds it."""
        return {"$data": [self.name, self.size, self.kind]}


def with_headers(message: Json, headers: Mapping[str, str]) -> Json:
    """The message of a value with headers."""
    return {"$headers": [{**headers}, message]} if headers else message


def parted(message: Json) -> tuple[dict[str, str], Json]:
    """The headers of a message, and the message of its value alone; of other messages none, and itself."""
    match message:
        case {"$headers": [dict(headers), inner], **others} if headers and not others:
            texts = {name: text for name, text in headers.items() if isinstance(text, str)}
            if len(texts) == len(headers) and parted(inner)[1] is inner:
                return texts, inner
    return {}, message


def headers_of(headers: Mapping[str, str]) -> dict[str, str]:
    """Headers as they are kept. Raises `Unfit` for others than texts, or for too many."""
    if not isinstance(headers, Mapping) or not (
        {*map(type, headers), *map(type, headers.values())} <= {str}
    ):
        raise Unfit(f"headers must be texts by name, got {headers!r}")
    given = {**headers}
    try:
        size = len(orjson.dumps(given))
    except TypeError as error:
        raise Unfit(f"headers must be texts of UTF-8: {error}") from None
    if size > HEADER_BYTES_MAX:
        raise Unfit(f"headers may have {HEADER_BYTES_MAX} bytes as JSON, got {size}")
    return given


def encode_value(value: Value) -> tuple[bytes, str]:
    """The bytes that stand for a value, and their kind: "json" or "bytes".

    Raises `Unfit` for what would not come back as it is: no JSON, an integer beyond 64 bits, NaN, a tuple, an
    enum.
    """
    if isinstance(value, bytes):
        return value, "bytes"
    try:
        text = json_text(value)
        _require_kept(value)
    except (TypeError, RecursionError) as error:
        raise Unfit(f"a value must be bytes or JSON: {error}") from None
    return text, "json"


def json_of(text: bytes | str) -> Json:
    """The JSON value that a text stands for.

    Raises `Unfit` for text that would not come back as it is: it is no JSON, or has an integer beyond 64 bits.
    """
    try:
        value: Json = json_in(text.encode() if isinstance(text, str) else text)
    except ValueError as error:
        raise Unfit(f"it is no JSON that can be kept: {error}") from None
    return value


def json_text(value: object) -> bytes:
    """The text of a value as JSON. Raises `TypeError` for what no message can stand for."""
    if not isinstance(value, list | dict):  # it has no levels
        return orjson.dumps(value, option=_STRICT)
    # What is escaped has a level more.
    return decoding.kept_text(value, -1 if _special(value) else 0, _STRICT)


def copied(json: Any, text: bytes | None = None) -> Any:
    """A JSON value that changes with no other: callers go on with their lists and dictionaries.

    `text`: that of the value, if it is known.
    """
    return orjson.loads(text or orjson.dumps(json)) if isinstance(json, list | dict) else json


def message_of(value: Value) -> Json:
    """The message for a value that `encode_value` has accepted."""
    if isinstance(value, bytes):
        return {"$bytes": b2a_base64(value, newline=False).decode()}
    json: Any = value
    return {"$json": json} if _special(json) else json


def value_of(message: Json) -> Value | Reference:
    """The value in a message, or where it is. Raises `Broken` for a message that nobody can have written."""
    if not _special(message):
        return message
    assert isinstance(message, dict)
    match message:
        case {"$bytes": str(text)} if (content := bytes_in(text)) is not None:
            return content
        case {"$json": value} if _special(value):
            return value
        case {"$headers": _} if (inner := parted(message)[1]) is not message:
            return value_of(inner)
        case {"$data": [str(name), int(size), "json" | "bytes" as kind]}:
            if is_data((found := Reference(name, size, kind)).key):
                return found
    raise Broken(f"RegistersReadable: no program writes such a message: {str(message)[:200]}")


def bytes_in(text: str) -> bytes | None:
    """The bytes that a text in base64 stands for; None for a text that no program writes."""
    try:
        content = a2b_base64(text)
    except ValueError:
        return None
    return content if b2a_base64(content, newline=False).decode() == text else None


def reference_in(message: Json) -> Reference | None:
    """The reference in a message; None: it is none. Raises `Broken` for one that makes no sense."""
    if not isinstance(message, dict) or not {"$data", "$headers"} & message.keys():
        return None
    found = value_of(message)
    return found if isinstance(found, Reference) else None


def _special(message: object) -> bool:
    return isinstance(message, dict) and len(message) == 1 and str(*message).startswith("$")


def _require_kept(value: object) -> None:
    """orjson writes tuples as lists and NaN as null; neither comes back. Raises `TypeError`."""
    for part in () if type(value) is str else leaves(value):
        if isinstance(part, float):
            if not math.isfinite(part):
                raise TypeError(f"{part} is no number in JSON")
        elif not (part is None or type(part) in (bool, int, str)):  # an IntEnum would be an int
            raise TypeError(f"{type(part).__name__} is no type of JSON")
