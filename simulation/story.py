"""Tells a failure: the message that decided it, and the messages that led there.

*The decisive message* is the last message that was received before the failure was certain. When a run ends
in the step in which an invariant breaks, it is the message received in that step. For an anomaly that the
checker finds, it is the reply that completed a certain operation: from this operation on, every longer
history shows the anomaly of the same messages as the whole history does, and the history before it does not.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from runs.history import NEMESIS, Op, completions
from simulation.judge import Report
from simulation.world import World
from workloads.interface import Placement
from workloads.kafka.shrink import anomalies, smallest

Event = dict[str, Any]  # a line of the journal
MESSAGES_SHOWN = 40
LATE_S = 1.0


class Story(NamedTuple):
    """`decisive`: the id of a message, None when no message is to blame; `events`: for a diagram.

    `lost` has the ids of those messages that were sent and never received.
    """

    decisive: int | None
    events: list[Event]
    lost: frozenset[int] = frozenset()


def story_of(world: World, report: Report, name: str) -> Story:
    """The story of the failure `name` of a run whose journal was kept."""
    events = [orjson.loads(line) for line in world.journal_file.content.splitlines()]
    decisive, chosen = _decided(events, world, report, name)
    return story(decisive, events, chosen)


def story(decisive: int | None, events: Sequence[Event], chosen: list[Event]) -> Story:
    """The story of the `chosen` ones of all events of a run."""
    received = {each["message"]["id"] for each in events if each["type"] == "recv"}
    return Story(decisive, chosen, frozenset(each["message"]["id"] for each in chosen) - received)


def _decided(
    events: list[Event], world: World, report: Report, name: str
) -> tuple[int | None, list[Event]]:
    """The decisive message, and the events of those that led there."""
    from bench.pages.lamport import select  # takes long to import

    at = _certain_at(report.history, name)
    if at is None and report.message_id is not None:
        return report.message_id, _before(events, report.message_id)
    if at is None:
        return None, list(events[-2 * MESSAGES_SHOWN :])
    decisive = _reply_to(events, report.history, at, world)
    witness = smallest(report.history, [name])
    about = {sent for op in witness for sent in _sent(op)}
    shown = {each["message"]["id"] for each in select(events, about)[0]} | {decisive}
    chosen = [each for each in events if each["message"]["id"] in shown]
    return decisive, _newest(chosen, decisive)


def text_of(story: Story) -> Iterator[str]:
    """The events as lines: time in ms, what happened; the decisive one is marked."""
    first_ns = story.events[0]["time"] if story.events else 0
    sent = [event for event in story.events if event["type"] == "send"]
    sent_ns = {event["message"]["id"]: event["time"] for event in sent}
    for event in story.events:
        message = event["message"]
        mark = ">>" if message["id"] == story.decisive and event["type"] == "recv" else "  "
        arrow = "sends" if event["type"] == "send" else "gets from"
        who, whom = message["src"], message["dest"]
        if event["type"] == "recv":
            who, whom = whom, who
        at_ms = (event["time"] - first_ns) / 1e6
        fate = " (lost)" if message["id"] in story.lost else _lateness(event, sent_ns)
        yield f"{mark}{at_ms:10.3f} {who:>7} {arrow:9} {whom:7} {brief(message['body'])}{fate}"


def _lateness(event: Event, sent_ns: Mapping[int, int]) -> str:
    """Of a message that was long on its way, or is a stray copy: when it was sent."""
    if event["type"] == "send":
        return ""
    late_s = (event["time"] - sent_ns.get(event["message"]["id"], event["time"])) / 1e9
    return f" (sent {late_s:.1f} s before)" if late_s >= LATE_S else ""


def brief(body: Mapping[str, Any]) -> str:
    facts = (
        f"{name}={_short(value)}"
        for name, value in body.items()
        if name not in ("type", "msg_id", "in_reply_to")
    )
    return " ".join((str(body.get("type")), *facts))


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else orjson.dumps(value).decode()
    return text if len(text) <= 40 else f"{text[:39]}…"


# ---------------------------------------------------------------- which message


def _certain_at(history: Sequence[Op], name: str) -> int | None:
    """The first position after which every longer history shows all that the whole one shows."""
    wanted = {each for each in anomalies(history) if isinstance(each, tuple) and each[0] == name}
    if not wanted:
        return None
    at = len(history) - 1
    while at > 0 and wanted & anomalies(history[:at]):
        at -= 1
    return at


def _reply_to(events: Sequence[Event], history: Sequence[Op], at: int, world: World) -> int | None:
    """The answer with which a client completed the operation at that position."""
    op, origin_ns = history[at], world.recorder.origin_ns
    began = next((first for first, second in completions(history).items() if second == at), at)
    place = Placement.of(world.options.as_dict(), [op])
    node = place.node(int(op.process)) if place and op.process != NEMESIS else ""
    for event in reversed(events):
        message = event["message"]
        if (
            event["type"] == "recv"
            and history[began].time <= event["time"] - origin_ns <= op.time
            and message["src"] == node
            and message["body"].get("type") == f"{op.f}_ok"
        ):
            return int(message["id"])
    return None


# ---------------------------------------------------------------- which others


def _before(events: Sequence[Event], message_id: int) -> list[Event]:
    """The last messages up to the receipt of one: whatever led to it was before it."""
    ends = [i for i, each in enumerate(events) if each["message"]["id"] == message_id]
    upto = events[: ends[-1] + 1] if ends else events
    return _newest([each for each in upto if not is_init(each)], message_id)


def _newest(events: list[Event], decisive: int | None) -> list[Event]:
    """The events of the newest messages, the decisive one and what came before it."""
    ids = list(dict.fromkeys(each["message"]["id"] for each in events))
    last = ids.index(decisive) + 1 if decisive in ids else len(ids)
    wanted = set(ids[max(0, last - MESSAGES_SHOWN) : last])
    return [each for each in events if each["message"]["id"] in wanted]


def is_init(event: Event) -> bool:
    """Whether a message tells a node its name, or is the answer to that."""
    return event["message"]["body"].get("type") in ("init", "init_ok")


def _sent(op: Op) -> Iterator[tuple[str, Any]]:
    if op.f == "send":
        _, key, message = op.value[0]
        yield key, message[1] if isinstance(message, list) else message
