"""Messages and lines: one JSON object a line, `src`, `dest` and a `body` with a `type`.

[maelstrom doc/protocol.md]
"""

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import orjson

Body = dict[str, Any]  # of a message, with a string `type`
Message = tuple[str, str, Body]  # src, dest, and a body
# Whether a text may have one is a search in its bytes, which costs less than to decode it.
_AS_DIGITS = bytes(48 if chr(byte).isdecimal() else byte for byte in range(128)) + bytes(128)
_BEYOND, _BELOW = b"0" * 20, b"-" + b"0" * 19


class BadLine(Exception):
    """A line that is no message; the text says why."""


class Unkept(Exception):
    """A message with a value that cannot be kept as it was sent; `reply` says whom to tell, if anybody."""

    def __init__(self, text: str, reply: tuple[str, str, int]) -> None:
        super().__init__(text)
        self.reply = reply


def decode(line: bytes) -> Message:
    """The message in one line; raises `BadLine` for anything else.

    Raises `Unkept` for a request that is JSON, but with a value that this node cannot keep.
    """
    try:
        message = orjson.loads(line)
        src, dest, body = message["src"], message["dest"], message["body"]
        if type(src) is type(dest) is type(body["type"]) is str:
            return src, dest, body
    except orjson.JSONDecodeError as error:
        _require_bad(line, str(error))
        raise BadLine(f"not JSON ({error}): {line[:200]!r}") from None
    except (TypeError, KeyError, IndexError):
        pass
    raise BadLine(
        f"a message needs strings 'src' and 'dest' and a 'body' with a string 'type': {line[:200]!r}"
    )


def encode(src: str, dest: str, body: dict[str, object]) -> bytes:
    """One line, its newline included."""
    return orjson.dumps({"src": src, "dest": dest, "body": body}, option=orjson.OPT_APPEND_NEWLINE)


def json_in(text: bytes) -> Any:
    """The JSON value in a text. Raises `ValueError`, also for an integer beyond 64 bits."""
    value = orjson.loads(text)
    if not keeps(text):
        raise ValueError("it has an integer beyond 64 bits, which would become a float")
    return value


def doubled_in(text: bytes, value: object) -> str | None:
    """A name that some object in a JSON text has twice, None: no name; `value`: what the text stands for."""
    doubled: list[str] = []

    def note(pairs: list[tuple[str, object]]) -> None:
        names = Counter(name for name, _ in pairs)
        doubled.extend(name for name in names if names[name] > 1)

    if orjson.dumps(value) != text:  # the text of other programs
        json.loads(text, object_pairs_hook=note)
    return next(iter(doubled), None)


def keeps(text: bytes) -> bool:
    """Whether no integer in a text of JSON is beyond 64 bits, where it would become a float."""
    if not _may_be_huge(text):  # mostly
        return True
    ends = text.replace(rb"\\", b"").replace(rb"\"", b"") if b"\\" in text else text
    if not _may_be_huge(b'"'.join(ends.split(b'"')[::2])):  # the digits stand in strings
        return True
    try:
        return not any(map(_is_huge, leaves(json.loads(text))))
    except RecursionError:
        return False


def _may_be_huge(text: bytes) -> bool:
    digits = text.translate(_AS_DIGITS)
    return _BEYOND in digits or _BELOW in digits


def _is_huge(value: object) -> bool:
    return type(value) is int and not -(2**63) <= value < 2**64


def leaves(value: object) -> Iterator[object]:
    """What stands in a JSON value that is neither a list nor an object, however deep."""
    todo = [value]
    while todo:
        part = todo.pop()
        if isinstance(part, dict):
            todo += part.values()
        elif isinstance(part, list):
            todo += part
        else:
            yield part


def _require_bad(line: bytes, text: str) -> None:
    """Raises `Unkept` for a request that only orjson cannot read: `1e400`, or a lone surrogate."""
    try:
        message = json.loads(line)
        src, dest, msg_id = message["src"], message["dest"], message["body"]["msg_id"]
        src.encode(), dest.encode()
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError):
        return
    if type(msg_id) is int:
        raise Unkept(f"a value cannot be kept as it was sent: {text}", (src, dest, msg_id))
