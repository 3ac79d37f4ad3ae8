"""What the messages of a run show of a bad verdict: facts about nodes, in sentences.

The trail of a client's request is what its node asked services and nodes while it had that request alone, the
answers to that, and the reply.
"""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bench.verdict.following import NAMING, NOTHING, Call, Following, Request, number_of
from bench.verdict.sentences import FACTS
from bench.verdict.silence import Sent, Why, is_known, named, of_code, unfit
from runs.oddities import STORM
from runs.traffic import PRECONDITION_FAILED, SERVICES, Event, is_client, sender
from workloads.interface import Finding, Placement, shown

_TOLD_MAX = 3
_ENVELOPE = ("type", "msg_id", "in_reply_to", "code")
_ADDS = ("add", "broadcast", "send", "txn")  # whose acknowledgement says that something is kept
_NOT_SHARED = ("wrong-echo", "duplicated", "incomparable")  # which nodes need not tell each other
_STALE = ("seq-kv", "lww-kv")
_UNSUPPORTED = 10


class Trail(Following):
    """Follows the messages of a run, and notes facts by kind. `reader` lacks `element` at the end."""

    def __init__(self, origin_ns: int, element: Any = None, reader: str = "") -> None:
        super().__init__(origin_ns)
        self._element, self._reader, self._told = element, reader, dict[str, str]()
        self._first, self._count = dict[str, Mapping[str, Any]](), Counter[str]()  # by kind
        self._held = dict[tuple[str, str], tuple[Any, float, str]]()
        self._been = defaultdict[tuple[str, str], set[str]](set)  # by key, values as JSON
        self._known = defaultdict[str, dict[tuple[str, str], Any]](dict)  # by node, of what it read
        self._ends = Counter[str]()  # by key: one more than the offset of its last message
        self._last_reads, self._astray = dict[str, Request](), set[str]()
        self._shares: bool | None = None  # None without any message
        self._between = self._asks = 0  # messages between nodes, and of clients
        self._offsets = set[tuple[str, int]]()  # that are acknowledged, with their keys
        self._kept = set[str]()  # elements that were acknowledged, as JSON
        self._told_ok = dict[str, str]()  # by node, what it kept last without asking

    def _note(self, kind: str, node: str, about: Call | None = None, **words: Any) -> None:
        if about:
            call = about.asks.get("type")
            words = {"service": about.dest, "key": about.key[1], "call": call, **words}
        self._first.setdefault(kind, {"node": node, **words})
        self._count[kind] += 1

    def add(self, event: Event) -> None:
        super().add(event)
        src, dest, body = sender(event), event["message"]["dest"], event["message"]["body"]
        self._shares = bool(self._shares) or not (is_client(src) or is_client(dest) or src == dest)
        is_asked_for = self._reader and event["type"] != "send" and body.get("type") not in NAMING
        if is_asked_for and _holds(body, self._element):
            self._told.setdefault(dest, f"{src} ({body.get('type')})")

    def _asked(self, client: str, node: str, body: Sent) -> None:
        super()._asked(client, node, body)
        self._asks += 1
        self._told_ok.pop(node, None)

    def _called(self, node: str, message: Sent, why: Why | None) -> None:
        super()._called(node, message, why)
        dest, kind = message["dest"], message["body"].get("type")
        self._between += dest not in SERVICES
        if kind == "error":
            self._note("errors", node, dest=dest)
        elif why := why or unfit(node, message):
            self._note("unfit", node, fact=why)
        elif node == dest:
            self._note("self", node, asked=kind)
        if dest in SERVICES and node in self._told_ok:
            self._note("later", node, asked=self._told_ok[node], service=dest, call=kind)

    def _served(self, service: str, node: str, body: Sent) -> Call | None:
        """Note what the key holds, and what the node knows of it."""
        if (call := super()._served(service, node, body)) is None:
            return None
        known = self._known[node]
        call.held = was, _, writer = self._held.get(call.key, NOTHING)
        if body.get("type") in ("cas_ok", "write_ok"):
            self._changed(node, call)
            is_blind = call.asks["type"] == "write" and writer not in ("", node)
            is_add = [each.body.get("type") in _ADDS for each in self._open[node]] == [True]
            if is_add and is_blind and known.get(call.key, was) != was:
                value, got = shown(call.written), shown(known[call.key])
                self._note("over", node, call, value=value, was=shown(was), got=got, writer=writer)
        elif body.get("code") == _UNSUPPORTED:
            what = f"{call.asks.get('type')} of {node}"
            self._note("unfit", node, fact=f"{service} refused {what}: {body.get('text')}.")
        elif call.asks.get("type") == "read":
            known[call.key] = body.get("value")
        return call

    def _changed(self, node: str, call: Call) -> None:
        """A service took a cas or a write. `seq-kv` takes one that changes nothing on an older state, too."""
        been, value = self._been[call.key], json.dumps(call.written, sort_keys=True)
        if been and call.written in (call.held[0], call.asks.get("from")):
            return
        if call.dest == "seq-kv" and call.asks["type"] == "write" and value in been:
            self._held[call.key] = NOTHING  # that may be an older state, or a change
        else:
            self._held[call.key] = call.written, self._now_ns / 1e9, node
        been.add(value)

    def _replied(self, node: str, message: Sent) -> Request | None:
        client, body = message["dest"], message["body"]
        if (request := super()._replied(node, message)) is None:
            number = number_of(body, "in_reply_to")
            self._astray.add(client)
            for each in (each for each in self._open[node] if each.client == client):
                if 0 <= number < (waits := number_of(each.body, "msg_id")):
                    self._note("reply", node, client=client, number=number, waits=waits)
            return None
        kind = request.body.get("type")
        if body.get("type") == "error" and not is_known(body.get("code")):
            self._note("code", node, fact=of_code(node, message))
        if kind == "send":
            self._ends[request.body["key"]] = number_of(body, "offset") + 1
            self._offsets.add((request.body["key"], number_of(body, "offset")))
        if kind == "poll" and isinstance(body.get("msgs"), dict):
            self._polled(node, request.body["offsets"], body["msgs"])
        if kind == "read":
            self._last_reads[node] = request
            self._older(node, request if "key" in request.body else None)
        is_kept = kind in _ADDS and body.get("type") == f"{kind}_ok"
        if is_kept and kind in ("broadcast", "add"):
            self._kept.add(json.dumps(request.body.get("message", request.body.get("element"))))
            self._last_reads.clear()  # which could lack it
        last = request.calls[-1] if request.calls and request.alone else None
        is_cas = (
            last and last.asks.get("type") == "cas" and (is_kept or body.get("type") == "cas_ok")
        )
        if last and is_cas and (code := number_of(last.answer, "code")) > 0:
            self._note("refused" if is_kept else "passed", node, last, code=named(code), asked=kind)
        if is_kept and last:
            self._acknowledged(node, request)
        elif is_kept and request.alone:
            self._told_ok[node] = str(kind)
        return request

    def _polled(self, node: str, wanted: Mapping[str, int], found: Mapping[str, Any]) -> None:
        """A poll was answered: it begins where it was asked to."""
        for key, at in wanted.items():
            pairs = [each for each in found.get(key) or () if isinstance(each, list) and each]
            first = min((each[0] for each in pairs if type(each[0]) is int), default=at)
            if first < at or (first > at and (key, at) in self._offsets):
                kind = "below" if first < at else "skips"
                self._note(kind, node, key=shown(key), at=at, first=first)

    def _acknowledged(self, node: str, request: Request) -> None:
        """A node says that it keeps something: look at what it asked services for that."""
        asked, delta, last = request.body["type"], request.body.get("delta"), request.calls[-1]
        changes, reads = request.answered("cas_ok", "write_ok"), request.answered("read_ok")
        if last.asks.get("type") in ("cas", "write") and not last.answer and last.dest in SERVICES:
            self._note("early", node, last, asked=asked)
        if len(changes) > 1 and delta:
            same = (each for each in changes if each.key == changes[0].key)
            count = sum(_less(each.written, each.held[0] or 0) == delta for each in same)
            if count > 1:
                self._note("twice", node, changes[0], delta=delta, count=count)
        elif changes and asked == "send":
            first, log, message = changes[0], changes[-1], request.body["msg"]
            if type(first.written) is int and len(changes) > 1 and _holds(log.written, message):
                self._note("order", node, first=first.key[1], key=log.key[1])
            offset = request.reply.get("offset")
            places = log.written if isinstance(log.written, list) else []
            if message in places and places.index(message) != offset:
                self._note("offset", node, offset=offset, at=places.index(message))
        elif delta and len(reads) == len(changes) == 1 and request.calls == reads + changes:
            was, value = reads[0].answer["value"], changes[0].written
            if _less(value, was) not in (delta, None):
                self._note("value", node, reads[0], was=was, value=value, delta=delta)

    def end(self, wrong_sums: Sequence[str], *, is_calm: bool, must_share: bool) -> None:
        """The run is over. At the end these nodes read wrong sums. In a calm run all nodes could answer."""
        if must_share and self._shares is False:
            self._note("alone", "")
        if src := self._told.get(self._reader):
            self._note("got", self._reader, element=self._element, src=src)
        elif self._told and not self._told.keys() & {*SERVICES}:
            others = ", ".join(sorted(each for each in self._told if not is_client(each)))
            self._note("never", self._reader, element=self._element, others=others)
        for node, read in self._last_reads.items():
            have = read.reply.get("messages", read.reply.get("value"))
            if isinstance(have, list) and (missing := self._kept - {*map(json.dumps, have)}):
                self._note("behind", node, count=len(missing), element=min(missing))
        for node in wrong_sums:
            if (request := self._last_reads.get(node)) and request.alone:
                self._wrong_sum(node, request, request.answered("read_ok"))
        for node, waiting in self._open.items() if is_calm else ():
            asking = [each for each in waiting if each.calls]
            for request in asking:
                self._stuck(node, request, request.calls[-1])
            for request in waiting if not asking else ():
                self._left(node, request)

    def _wrong_sum(self, node: str, request: Request, reads: Sequence[Call]) -> None:
        value = request.reply.get("value")
        if len(reads) == 1 and _less(was := reads[0].answer["value"], value):
            self._note("made", node, reads[0], was=was, value=value)
        self._older(node, request)
        for (service, key), (_, _, writer) in self._held.items():
            if writer != node and (service, key) not in self._known[node]:
                self._note("keys", node, service=service, key=key, writer=writer)

    def _older(self, node: str, request: Request | None) -> None:
        """Services may have answered with what was no longer in a key."""
        for each in request.answered("read_ok") if request else ():
            (was, since, writer), got = each.held, each.answer["value"]
            if writer and each.dest in _STALE and got != was:
                self._note("older", node, each, value=shown(got), was=shown(was), since=since)

    def _stuck(self, node: str, request: Request, last: Call) -> None:
        """A node did not answer a client after it had asked something."""
        if not last.answer and last.dest not in SERVICES:
            who = "itself" if last.dest == node else last.dest
            self._note("waits", node, who=who, asked=last.asks.get("type"))
        elif last.answer.get("code") == PRECONDITION_FAILED:
            count = sum(c.asks == last.asks for c in request.calls)
            if count > 2 and all(c.asks.get("type") == "cas" for c in request.calls[-2:]):
                self._note("same", node, last, count=count, asked=request.body.get("type"))

    def _left(self, node: str, request: Request) -> None:
        """A node did not answer a client, nor ask anything."""
        wanted = request.body.get("offsets") if request.body.get("type") == "poll" else None
        is_idle = wanted is not None and all(at >= self._ends[key] for key, at in wanted.items())
        if is_idle and self._ends:
            self._note("polls", node)
        elif request.client not in self._astray:
            kind = "dropped" if request.meets else "left"
            self._note(kind, node, body=shown(request.body), who=request.meets)

    def sentences(self, *, is_valid: bool) -> list[str]:
        """Of each kind the first fact, how many more there are, and what to do."""
        left_out = {"behind"} if not is_valid else set()
        if self._count["later"]:  # what it asked then may seem to be for the next request
            left_out |= {"refused", "early"}
        is_storm = self._between > STORM * self._asks
        chosen = [
            kind
            for kind, fact in FACTS.items()
            if self._count[kind] >= fact.least and kind not in left_out
            if (fact.is_odd or not is_valid) and not (fact.is_crowded and is_storm)
        ]
        most = 1 if chosen and FACTS[chosen[0]].is_clear else _TOLD_MAX
        return [
            FACTS[kind].sentence.format_map(self._first[kind])
            + f" ({self._count[kind]} such cases.)" * (self._count[kind] > 1)
            for kind in chosen[:most]
        ]


def _holds(value: Any, element: Any) -> bool:
    """Whether a value is the element, or has it somewhere; a text may have it as a part."""
    if isinstance(value, dict):
        inside = (each for name, each in value.items() if name not in _ENVELOPE)
        return any(_holds(each, element) for each in (*inside, *value))
    if isinstance(value, list):
        return any(_holds(each, element) for each in value)
    part = rf"(?<!\w){re.escape(str(element))}(?!\w)"
    return value == element or (isinstance(value, str) and bool(re.search(part, value)))


def _less(value: Any, other: Any) -> int | None:
    """By how much the other number is less; None where these are no numbers."""
    return value - other if type(value) is type(other) is int else None


def facts(
    events: Iterable[Event],
    findings: Sequence[Finding],
    place: Placement,
    origin_ns: int,
    *,
    is_valid: bool,
    is_calm: bool,
) -> list[str]:
    """What the messages show of these findings, and of requests without an answer, in sentences.

    Of a valid run only what is odd all the same. A run is calm where no fault was injected.
    """
    lost = next((each.witness for each in findings if each.type == "lost" and each.witness), None)
    trail = Trail(origin_ns)
    if lost and lost[0].f != "read":  # the witness begins with the add
        absent = next(op for op in reversed(lost) if op.f == "read" and op.value == [])
        trail = Trail(origin_ns, lost[0].value, place.node(int(absent.process)))
    for event in events:
        trail.add(event)
    sums = (op for each in findings if each.type == "wrong-sum" for op in each.witness)
    shared = any(each.type not in _NOT_SHARED and each.invalidating for each in findings)
    wrong_sums = [place.node(int(op.process)) for op in sums]
    trail.end(wrong_sums, is_calm=is_calm, must_share=shared and len(place.nodes) > 1)
    return trail.sentences(is_valid=is_valid)
