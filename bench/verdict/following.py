"""Follows the messages of a run: what each node was asked, what it asked for that, and what it did last.

While a node has several requests nobody can tell for which it asks, so these get no calls.
"""

import json
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from bench.verdict.silence import Sent, Why, is_known, wrong
from runs.traffic import SERVICES, Event, is_client, sender

_CALLS_MAX = 100_000  # without an answer: of more nothing is said
_ABSENT = 20  # the error of a key that does not exist
NAMING = ("init", "topology")  # requests with names of nodes
NOTHING = (None, 0.0, "")


@dataclass(eq=False, slots=True)
class Call:
    """What a node asked a service or a node, and the answer if one came.

    `held` is what the key held when a service answered: the value, since when (s), and who wrote it.
    """

    dest: str
    asks: Sent
    answer: Sent = field(default_factory=dict)
    held: tuple[Any, float, str] = NOTHING

    @property
    def key(self) -> tuple[str, str]:
        """The service and the key that it is about."""
        return self.dest, json.dumps(self.asks.get("key"), sort_keys=True)

    @property
    def written(self) -> Any:
        """What it put into the key."""
        return self.asks.get("to" if self.asks["type"] == "cas" else "value")


@dataclass(eq=False, slots=True)
class Request:
    """A request of a client; `alone` if its node had no other one meanwhile."""

    client: str
    body: Sent
    since_ns: int
    alone: bool
    meets: str = ""  # whose answer its node waited for when it came
    calls: list[Call] = field(default_factory=list)
    reply: Sent = field(default_factory=dict)

    def answered(self, *kinds: str) -> list[Call]:
        """Its calls of services that were answered so."""
        return [c for c in self.calls if c.dest in SERVICES and c.answer.get("type") in kinds]


@dataclass(slots=True)
class Deeds:
    """What a node did."""

    answered: bool = False  # a request of a client
    slowest_ns: int = 0  # of its answers
    unnamed: Sent | None = None  # the first answer that names no request
    codeless: Sent | None = None  # the first error without a code that is known
    wrong: Why | None = None  # the first message that can have no answer
    last: Sent | None = None
    unheeded: int = 0  # messages that it was sent after its last one
    is_answered: bool = False  # by a service, after its last message
    refusal: tuple[str, str, int] | None = None  # service, type of the request, code
    refusals: int = 0  # in a row


class Following:
    """Takes the lines of a journal, one by one. `deeds` are by node; times count from `origin_ns`."""

    def __init__(self, origin_ns: int = 0) -> None:
        self._origin_ns, self._now_ns = origin_ns, 0
        self._requests = dict[tuple[str, int], Request]()  # by client and msg_id
        self._open = defaultdict[str, list[Request]](list)  # by node; none of those that name nodes
        # Those that wait for an answer, by who asks, who is asked, and msg_id.
        self._calls = dict[tuple[str, str, int], Call]()
        self.deeds = defaultdict[str, Deeds](Deeds)

    def add(self, event: Event) -> None:
        """Take the next line."""
        if event["type"] != "send":
            return
        self._now_ns = event["time"] - self._origin_ns
        message, by = event["message"], sender(event)
        if is_client(by):
            self._asked(by, message["dest"], message["body"])
        elif by in SERVICES:
            self._served(by, message["dest"], message["body"])
        else:
            self._said(by, message)

    def _asked(self, client: str, node: str, body: Sent) -> None:
        """A client asked a node."""
        waiting = self._open[node]
        self.deeds[node].unheeded += 1
        last = (each.calls[-1] for each in waiting if each.calls)
        who = next((call.dest for call in last if not call.answer), "")
        request = Request(client, body, self._now_ns, not waiting, who)
        self._requests[client, number_of(body, "msg_id")] = request
        for each in waiting:
            each.alone = False
        if body.get("type") not in NAMING:
            waiting.append(request)

    def _served(self, service: str, node: str, body: Sent) -> Call | None:
        """A service answered a node. Returns what it was asked, if that is known."""
        done, code = self.deeds[node], body.get("code")
        done.unheeded, done.is_answered = done.unheeded + 1, True
        call, refusal = self._calls.pop((node, service, number_of(body, "in_reply_to")), None), None
        if call:
            call.answer = body
            refusal = (service, str(call.asks.get("type")), code) if type(code) is int else None
        pair = [each[1:] for each in (done.refusal, refusal) if each]
        if pair != [("cas", _ABSENT), ("read", _ABSENT)]:  # the read says no more than the cas
            done.refusals = done.refusals + 1 if refusal == done.refusal else 1
            done.refusal = refusal
        return call

    def _said(self, node: str, message: Sent) -> None:
        """A node sent a message, in its own name or in another."""
        done, dest, body = self.deeds[node], message["dest"], message["body"]
        done.last, done.unheeded, done.is_answered = message, 0, False
        call = self._calls.pop((dest, node, number_of(body, "in_reply_to")), None)
        why = None if call and dest == node else wrong(node, message)
        done.wrong = done.wrong or why
        if is_client(dest):
            self._replied(node, message)
        elif call:
            call.answer = body
        else:
            self._called(node, message, why)

    def _called(self, node: str, message: Sent, _why: Why | None) -> None:
        """A node asked a node or a service; why that can have no answer, if it can have none."""
        dest, body = message["dest"], message["body"]
        for each in self._open[node][1:]:
            each.meets = each.meets or dest
        if (number := number_of(body, "msg_id")) >= 0 and len(self._calls) < _CALLS_MAX:
            asks = {name: value for name, value in body.items() if name != "msg_id"}
            call = self._calls[node, dest, number] = Call(dest, asks)
            if len(self._open[node]) == 1:
                self._open[node][0].calls.append(call)

    def _replied(self, node: str, message: Sent) -> Request | None:
        """A node sent something to a client. Returns the request that it answers, if it was open."""
        done, body, kind = self.deeds[node], message["body"], message["body"].get("type")
        request = self._requests.get((message["dest"], number_of(body, "in_reply_to")))
        if request is None:
            done.unnamed = done.unnamed or message
        elif kind != "init_ok":
            done.answered = True
            done.slowest_ns = max(done.slowest_ns, self._now_ns - request.since_ns)
        if kind == "error" and not is_known(body.get("code")):
            done.codeless = done.codeless or message
        if request not in self._open[node]:
            return None
        self._open[node].remove(request)
        request.reply = body
        return request


def number_of(body: Sent, name: str) -> int:
    """The field if it is a whole number of 0 or more; else -1, which no request has."""
    value = body.get(name)
    return value if type(value) is int and value >= 0 else -1
