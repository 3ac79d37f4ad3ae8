"""Why an operation never succeeded: the commonest error with its text, or what the nodes did not answer.

The history has the errors. A request without an answer leaves no more than `net-timeout` there, so the
journal of messages says the rest: a node that never answered, or one whose answers name no request
(`in_reply_to`). An answer that comes too late is not in the journal: it mutes the node (`bench.mute`).
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from bench.failure import FLUSH
from runs import edn
from runs.history import NEMESIS, TIMEOUT, Op, error_text
from runs.traffic import Event, is_client
from workloads.interface import Placement

_NODES_TOLD = 4


def reasons(
    history: Sequence[Op],
    never: Iterable[str],
    place: Placement,
    events: Callable[[], Iterable[Event]],
) -> dict[str, str]:
    """For each `f` in `never`, none of whose operations succeeded, a sentence that says why.

    `events` reads the journal. It is called only when an operation had no answer.
    """
    wanted = list(never)
    missed = {f: [op for op in _completed(history) if op.f == f] for f in wanted}
    errors = {
        f: Counter(map(error_text, ops)).most_common(1)[0] for f, ops in missed.items() if ops
    }
    silent = [f for f, (error, _) in errors.items() if error == TIMEOUT]
    answers = _answers(events()) if silent else {}
    told = {}
    for f, (error, count) in errors.items():
        of_all = f"{count} of {len(missed[f])}"
        if f in silent:
            nodes = dict.fromkeys(place.node(int(op.process)) for op in missed[f])
            who = [_of_node(node, answers.get(node, [])) for node in nodes]
            more = [f"{len(who) - _NODES_TOLD} more nodes"] if len(who) > _NODES_TOLD else []
            told[f] = f"{of_all} had no answer in time. {'; '.join(who[:_NODES_TOLD] + more)}."
            if not answers.keys() & nodes.keys():
                told[f] += f" {FLUSH}"
        else:
            told[f] = f"{of_all} ended with {error}."
    return told


def _completed(history: Iterable[Op]) -> Iterator[Op]:
    return (op for op in history if op.type != "invoke" and op.process != NEMESIS)


def _answers(events: Iterable[Event]) -> dict[str, list[tuple[Event, bool]]]:
    """What each node sent to clients, and whether that names a request."""
    asked: set[tuple[str, int]] = set()
    found: dict[str, list[tuple[Event, bool]]] = {}
    for event in events:
        message = event["message"]
        body = message["body"]
        if event["type"] != "send" or body.get("type") in ("init", "init_ok"):
            continue
        if is_client(message["src"]):
            asked.add((message["src"], _number(body.get("msg_id"))))
        elif is_client(message["dest"]):
            named = (message["dest"], _number(body.get("in_reply_to")))
            found.setdefault(message["src"], []).append((event, named in asked))
    return found


def _number(value: Any) -> int:
    """The value if it can be the number of a request; else one that no request has."""
    return value if type(value) is int else -1


def _of_node(node: str, answers: Sequence[tuple[Event, bool]]) -> str:
    if not answers:
        return f"{node} never answered a client"
    lost = next((event for event, is_named in answers if not is_named), None)
    if lost is None:
        return f"{node} answered other requests, but none of these"
    return f"{node} did send {_named(lost['message'])}, so no client could tell what it answers"


def _named(message: Mapping[str, Any]) -> str:
    body = message["body"]
    what = f"{body.get('type')} to {message['dest']} (message {message['id']} of the journal)"
    if "in_reply_to" not in body:
        return f"{what} without in_reply_to"
    return f"{what} with in_reply_to {edn.dumps(body['in_reply_to'])}, which no request has"
