"""A run on a virtual bucket as numbered events: each request, and what it changed."""

from collections.abc import Iterator, Sequence
from typing import Any

import orjson

from simulation.bucket import Request

WRITES = ("put", "create", "update")
TEXT_MAX = 100


def events_of(journal: Sequence[Request]) -> Iterator[str]:
    """A line for each request: its number, time, client, what it asked, and what came of it."""
    last: dict[str, bytes] = {}
    for request in journal:
        yield f"{request.number:4}. {request.time_s:8.3f} s  {request.client:9} {_told(request, last)}"
        if request.kind in WRITES and request.outcome == "ok":
            last[request.key] = request.value


def _told(request: Request, last: dict[str, bytes]) -> str:
    words = f"{request.kind} {request.key}".strip()
    match request.kind:
        case _ if request.outcome != "ok":
            return f"{words}: {request.outcome}"
        case "get":
            return f"{words}: {_brief(request.value) or 'nothing'}"
        case "list":
            return f"{words}: {len(orjson.loads(request.value))} keys"
        case "delete":
            return f"{request.kind} {' '.join(orjson.loads(request.value))}"
    old = last.get(request.key, request.value)
    over = f", over {_brief(old)}" if request.kind == "put" and old != request.value else ""
    return f"{words} = {_brief(request.value)}{over}"


def told_of(value: bytes) -> Iterator[str]:
    """What an object holds, line by line."""
    yield from map(_plain, value.splitlines())


def _brief(value: bytes) -> str:
    text = ", ".join(told_of(value))
    return text if len(text) <= TEXT_MAX else f"{text[: TEXT_MAX - 1]}…"


def _plain(line: bytes) -> str:
    try:
        found: Any = orjson.loads(line)
    except orjson.JSONDecodeError:
        return repr(line)
    if isinstance(found, dict) and "msgCount" in found:
        return f"{found['type']}, {found['msgCount']} up to {found['offset']}"
    if isinstance(found, dict) and "pending" in found:
        return f"next {found['value']}, pending {found['pending']['offset']}"
    return line.decode()
