"""The messages behind an anomaly, as a Lamport diagram: those of the requests that show it.

A history names operations and a journal names messages; only their content joins the two. So the
requests are found by it: the `send` of the message, and the polls that returned it.
"""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import orjson

from bench.verdict.kept import ShownFinding
from runs.plots.lamport import Bold, lamport_svg
from runs.reading import PICTURE_BYTES, Bad, Budget, TooLarge, journal
from runs.store import Folder
from runs.traffic import Event, is_client

REQUESTS = 6  # shown at most
MESSAGES = 70
_PER_REQUEST = 24

Wanted = set[tuple[str, Any]]  # (key, message) as in JSON


def draw(run: Folder, finding: ShownFinding) -> str:
    """The diagram as SVG, or the empty string where no message of the anomaly is found."""
    wanted = {pair for op in finding.witness for pair in _messages(op["raw"])}
    events: list[Event] = []
    with suppress(TooLarge):
        events = list(journal(run.journal, Bad(), Budget(PICTURE_BYTES))) if wanted else []
    chosen, labels = select(events, wanted)
    bold = Bold("the requests and answers that show the anomaly", labels)
    title = f"{finding.type}: the messages of the requests that show it"
    return lamport_svg(chosen, title, bold) if chosen else ""


def select(events: list[Event], wanted: Wanted) -> tuple[list[Event], dict[Any, str | None]]:
    """The events of the requests about the wanted messages, and the ids of these requests and answers.

    The label of an answer to a poll is that part of its body which has the wanted messages.

    A request's events are those of its node between its sending and its reply, without those of other clients.
    """
    shown: dict[int, Event] = {}
    requests = _requests(events, wanted)
    for start, end in requests:
        asked = events[start]["message"]
        during = [at for at in range(start, end + 1) if _concerns(events[at], asked)]
        shown |= {at: events[at] for at in [*during[: _PER_REQUEST - 2], *during[-2:]]}
        if len(shown) > 2 * MESSAGES:
            break
    # A message whose receipt falls outside would look lost.
    ids = {event["message"]["id"] for event in shown.values() if event["type"] == "send"}
    received = ((at, event) for at, event in enumerate(events) if event["type"] == "recv")
    shown |= {at: event for at, event in received if event["message"]["id"] in ids}
    ends = (events[at]["message"] for request in requests for at in request)
    labels = {message["id"]: _label(message["body"], wanted) for message in ends}
    return [shown[at] for at in sorted(shown)], labels


def _label(body: Event, wanted: Wanted) -> str | None:
    """The type and the wanted messages of a body that holds others too; None for any other body."""
    polled = body.get("msgs")
    if not isinstance(polled, dict):
        return None
    kept = {
        key: [p for p in _pairs(pairs) if _pair(key, p[1]) in wanted]
        for key, pairs in polled.items()
    }
    told = {key: pairs for key, pairs in kept.items() if pairs}
    text = orjson.dumps(told, default=str).decode()
    return (
        f"{body.get('type')} msgs={text if told == polled else text[:-1] + ',…}'}" if told else None
    )


def _pairs(pairs: Any) -> list[Any]:
    """Those of an answer to a poll that are [offset, message]."""
    found = pairs if isinstance(pairs, list) else []
    return [pair for pair in found if isinstance(pair, list) and len(pair) == 2]


def _requests(events: list[Event], wanted: Wanted) -> list[tuple[int, int]]:
    """Where each request about a wanted message begins and ends: sends, and first polls that returned it."""
    open_at: dict[tuple[str, Any], int] = {}
    found: list[tuple[int, int]] = []
    told: set[tuple[str, Any, Any]] = set()
    for at, event in enumerate(events):
        message, body = event["message"], event["message"]["body"]
        if event["type"] == "send" and is_client(message["src"]):
            open_at[message["src"], body.get("msg_id")] = at
        elif event["type"] == "recv" and is_client(message["dest"]):
            start = open_at.pop((message["dest"], body.get("in_reply_to")), None)
            if start is None:
                continue
            facts = set(_said(events[start]["message"]["body"], body, wanted))
            if facts - told:
                told |= facts
                found.append((start, at))
    return found[:REQUESTS]


def _said(request: Event, reply: Event, wanted: Wanted) -> Iterator[tuple[str, Any, Any]]:
    """(key, message, offset) of the wanted messages that an exchange is about."""
    if request.get("type") == "send" and _pair(request.get("key"), request.get("msg")) in wanted:
        yield str(request["key"]), _plain(request["msg"]), ("sent", reply.get("offset"))
    polled = reply.get("msgs")
    yield from (
        (*_pair(key, pair[1]), ("polled", pair[0]))
        for key, pairs in (polled.items() if isinstance(polled, dict) else ())
        for pair in _pairs(pairs)
        if _pair(key, pair[1]) in wanted
    )


def _concerns(event: Event, request: Event) -> bool:
    """Whether an event is of the request's node, and of no other client."""
    ends = {event["message"]["src"], event["message"]["dest"]}
    others = {end for end in ends if is_client(end)} - {request["src"]}
    return request["dest"] in ends and not others


def _messages(value: Any) -> Iterator[tuple[str, Any]]:
    """(key, message) of everything that the value of an operation names."""
    for micro in value if isinstance(value, list) else ():
        match micro:
            case ["send", key, [_, message]] | ["send", key, message]:
                yield _pair(key, message)
            case ["poll", dict(by_key)]:
                for key, pairs in by_key.items():
                    yield from (_pair(key, pair[1]) for pair in _pairs(pairs))


def _pair(key: Any, message: Any) -> tuple[str, Any]:
    return str(key), _plain(message)


def _plain(message: Any) -> Any:
    return message if isinstance(message, int | float | str) else repr(message)
