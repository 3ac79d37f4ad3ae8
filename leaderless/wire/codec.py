"""Messages and lines: one JSON object a line, `src`, `dest` and a `body` with a `type`.

[maelstrom doc/protocol.md]
"""

from typing import Any

import orjson

Message = tuple[str, str, dict[str, Any]]  # src, dest, and a body with a string `type`


class BadLine(Exception):
    """A line that is no message; the text says why."""


def decode(line: bytes) -> Message:
    """The message in one line; raises `BadLine` for anything else."""
    try:
        message = orjson.loads(line)
        src, dest, body = message["src"], message["dest"], message["body"]
        if type(src) is type(dest) is type(body["type"]) is str:
            return src, dest, body
    except orjson.JSONDecodeError as error:
        raise BadLine(f"not JSON ({error}): {line[:200]!r}") from None
    except (TypeError, KeyError, IndexError):
        pass
    raise BadLine(
        f"a message needs strings 'src' and 'dest' and a 'body' with a string 'type': {line[:200]!r}"
    )


def encode(src: str, dest: str, body: dict[str, Any]) -> bytes:
    """One line, its newline included."""
    return orjson.dumps({"src": src, "dest": dest, "body": body}, option=orjson.OPT_APPEND_NEWLINE)
