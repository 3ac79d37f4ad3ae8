"""Lamport diagrams: a lifeline for each node, service and client, an arrow for each message.

Time runs down. Each sending and each receiving has a row of its own, so that order is plain however
close events lie; the margin shows how long after the first event each was sent.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any

from runs.plots.style import cut, render
from runs.traffic import SERVICES, Event, is_client, link_of

_FIRST_MESSAGES = 100
_PATIENCE_EVENTS = 100_000  # how far to look for the arrival of the first messages
_SEND_ROW, _RECEIVE_ROW = 22, 12
_LEFT, _TOP = 110, 134
_WIDTHS = {"client": 92, "node": 170, "service": 170}
_NARROWEST = 760  # the legend must fit
_LABEL_CHARACTERS, _FACT_CHARACTERS = 46, 18
_FACTS = ("key", "msg", "offset", "offsets", "value", "from", "to", "code", "text", "msgs", "keys")
_OMITTED = {"type", "msg_id", "in_reply_to"}
# What a box is tinted as.
_LINK_OF = {
    "client": "client",
    "node": "node-node",
    "service": "node-store",
}


@dataclass(slots=True)
class _Arrow:
    """A message with its two ends in picture coordinates; without `end_y` it was lost."""

    message: Mapping[str, Any]
    time_ns: int
    start_y: int
    end_y: int | None = None


def first_messages(events: Iterable[Event], limit: int = _FIRST_MESSAGES) -> list[Event]:
    """The events of the first `limit` messages that are not about initialisation."""
    chosen: list[Event] = []
    underway: set[int] = set()
    sent = 0
    for position, event in enumerate(events):
        number, type_ = event["message"]["id"], event["message"]["body"].get("type")
        if event["type"] == "recv" and number in underway:
            underway.discard(number)
            chosen.append(event)
        elif event["type"] == "send" and sent < limit and type_ not in ("init", "init_ok"):
            sent += 1
            underway.add(number)
            chosen.append(event)
        if (sent == limit and not underway) or position > _PATIENCE_EVENTS:
            break
    return chosen


@dataclass(frozen=True, slots=True)
class Bold:
    """Messages that stand out: `labels` has the id of each, and its label if not the usual one.

    `meaning` says in the legend what they have in common.
    """

    meaning: str = ""
    labels: Mapping[int, str | None] = field(default_factory=dict)


def lamport_svg(events: Sequence[Event], title: str, bold: Bold | None = None) -> str:
    """Draw the messages of these journal events, as an SVG document.

    A message without a `recv` among the events counts as lost; a `recv` without its `send` is left
    out. `bold` names the messages that stand out.
    """
    bold = bold or Bold()
    arrows, height = _arrows(events)
    columns = _columns(arrows)
    widths = [_WIDTHS[_kind(name)] for name in columns]
    *starts, end = accumulate(widths, initial=_LEFT)
    places = zip(columns, starts, widths, strict=True)
    positions = {name: start + width // 2 for name, start, width in places}
    start_ns = arrows[0].time_ns if arrows else 0
    lost = sum(arrow.end_y is None for arrow in arrows)
    count = len({arrow.message["id"] for arrow in arrows})
    return render(
        "lamport.svg.j2",
        title=title,
        summary=f"{count} messages between {len(columns)} parties, {lost} of them lost",
        lifelines=[
            {"name": name, "x": x, "kind": _kind(name), "width": _WIDTHS[_kind(name)] - 18}
            for name, x in positions.items()
        ],
        arrows=[_drawn(arrow, positions, start_ns, bold) for arrow in arrows],
        meaning=bold.meaning if any(a.message["id"] in bold.labels for a in arrows) else "",
        boxes=_LINK_OF,
        top=_TOP,
        width=max(end + 30, _NARROWEST),
        height=height + 30,
    )


def _arrows(events: Sequence[Event]) -> tuple[list[_Arrow], int]:
    """The messages in order of sending, then the copies of those that came twice; where it all ends."""
    arrows: dict[int, _Arrow] = {}
    copies: list[_Arrow] = []
    y = _TOP
    for event in events:
        message = event["message"]
        if event["type"] == "send":
            y += _SEND_ROW
            arrows[message["id"]] = _Arrow(message, event["time"], y)
        elif message["id"] in arrows:
            y += _RECEIVE_ROW
            arrow = arrows[message["id"]]
            if arrow.end_y is not None:
                arrow = replace(arrow)
                copies.append(arrow)
            arrow.end_y = y
    return [*arrows.values(), *copies], y


def _columns(arrows: Sequence[_Arrow]) -> list[str]:
    """Each node with its clients on its left, so that their arrows are short; services last."""
    names = {arrow.message[end] for arrow in arrows for end in ("src", "dest")}
    node_of: dict[str, str] = {}
    for arrow in arrows:
        ends = arrow.message["src"], arrow.message["dest"]
        for client, other in (ends, ends[::-1]):
            if _kind(client) == "client":
                node_of.setdefault(client, other)
    order = {"client": 0, "node": 1, "service": 2}

    def place(name: str) -> tuple[Any, ...]:
        kind = _kind(name)
        return kind == "service", *_natural(node_of.get(name, name)), order[kind], *_natural(name)

    return sorted(names, key=place)


def _natural(name: str) -> tuple[int, str]:
    """Sorts n2 before n10."""
    return len(name), name


def _kind(name: str) -> str:
    if name in SERVICES:
        return "service"
    return "client" if is_client(name) else "node"


def _drawn(
    arrow: _Arrow, positions: Mapping[str, int], start_ns: int, bold: Bold
) -> dict[str, Any]:
    message = arrow.message
    start_x, end_x = positions[message["src"]], positions[message["dest"]]
    lost = arrow.end_y is None
    end_y = arrow.start_y + _RECEIVE_ROW if arrow.end_y is None else arrow.end_y
    side = 1 if end_x >= start_x else -1
    return {
        "id": message["id"],
        "link": "lost" if lost else link_of(message["src"], message["dest"]),
        "highlight": message["id"] in bold.labels,
        "x1": start_x,
        "y1": arrow.start_y,
        # A lost message ends in a cross on its way; the others just before the lifeline.
        "x2": start_x + (end_x - start_x) * 0.6 if lost else end_x - 3 * side,
        "y2": end_y,
        "label_x": start_x + 7 * side,
        "anchor": "start" if side == 1 else "end",
        "label": cut(bold.labels.get(message["id"]) or _label(message["body"]), _LABEL_CHARACTERS),
        "time": f"{(arrow.time_ns - start_ns) / 1e6:.2f} ms",
        "tooltip": f"message {message['id']}{' (lost)' * lost}: {message['src']} to {message['dest']}\n"
        + json.dumps(message["body"], indent=1, ensure_ascii=False),
    }


def _label(body: Mapping[str, Any]) -> str:
    """The type and the facts that matter, short enough for a line."""
    names = [name for name in _FACTS if name in body]
    names += [name for name in body if name not in _FACTS and name not in _OMITTED]
    facts = " ".join(f"{name}={_plain(body[name])}" for name in names)
    return f"{body.get('type', '?')} {facts}".rstrip()


def _plain(value: Any) -> str:
    """A value in a few characters; the tooltip has all of it."""
    text = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
    if len(text) <= _FACT_CHARACTERS:
        return text
    short: dict[type, str] = {dict: "{…}", list: "[…]"}
    return short.get(type(value)) or cut(text, _FACT_CHARACTERS)
