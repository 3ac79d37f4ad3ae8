"""What the messages of a run show of a bad verdict: facts about nodes, in sentences.

The trail of a client's request is what its node asked services and nodes while it had that request, the answers
to that, and the reply. While a node has several requests nobody can tell for which it asks, so nothing is said
of these.
"""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.silence import Sent, Why, named, unfit, wrong
from runs.traffic import PRECONDITION_FAILED, SERVICES, Event, is_client
from workloads.interface import Finding, Placement, shown

_NS = 1e9
_MIN = {"errors": 10, "self": 10}  # fewer facts of these kinds show nothing; of others one does
# A cause stands before what may follow from it.
_KINDS = (
    *(
        "unfit",
        "value",
        "waits",
        "same",
        "refused",
        "twice",
        "over",
        "order",
        "keys",
        "older",
        "own",
    ),
    *("told", "polls", "errors", "self"),
)
_ALONE = ("unfit", "value")  # explain the others
_ODD = ("order", "polls", "errors", "self")  # of a run that is valid, too
_TOLD_MAX = 3
_ENVELOPE = ("type", "msg_id", "in_reply_to", "code")
_NAMES = ("init", "topology")  # messages with names of nodes
_ADDS = ("add", "broadcast", "send", "txn")  # whose acknowledgement says that something is kept
_CHANGED = ("cas_ok", "write_ok")
_REFUSED = (20, 21, PRECONDITION_FAILED)

_CAS = "Read the key again and repeat the cas until it is taken, and only then answer."
_KEYS = "A sum has a part of each node: read the keys of all."
_OLDER = "seq-kv may show an older state: write another value to it before the read, or use lin-kv."
_VALUE = "A read_ok has what was read in its field `value`."
_OWN = "Nodes must tell each other, or keep the sum in a service."
_PASS = "Send it to every node, directly or through others, until that has acknowledged it."
_POLL = "Answer a poll at once; if there is nothing new, with `msgs` {}."
_ORDER = "A poll between the two finds the offset taken and no message: write the message first."
_ERROR = "Errors and answers need no answer."
_SELF = "Send to the other nodes alone."
_WAIT = "What waits for an answer must not keep the node from giving it."


@dataclass(eq=False, slots=True)
class Call:
    """What a node asked a service or a node, and the answer if one came.

    `change` has the value of a key before and after. `newer` is what the key held when an older value was read,
    and since when.
    """

    dest: str
    body: Sent
    answer: Sent = field(default_factory=dict)
    change: tuple[Any, Any] | None = None
    newer: tuple[Any, int] | None = None

    @property
    def key(self) -> tuple[str, str]:
        """The service and the key that it is about."""
        return self.dest, json.dumps(self.body.get("key"), sort_keys=True)


@dataclass(eq=False, slots=True)
class Request:
    """A request of a client; `alone` if its node had no other one meanwhile. `idle`: a poll for nothing."""

    client: str
    node: str
    body: Sent
    alone: bool
    idle: bool
    calls: list[Call] = field(default_factory=list)
    reply: Sent = field(default_factory=dict)

    def answered(self, *kinds: str) -> list[Call]:
        """Its calls of services that were answered so."""
        return [c for c in self.calls if c.dest in SERVICES and c.answer.get("type") in kinds]


class Trail:
    """Follows the messages of a run, and notes facts by kind. `reader` lacks `element` at the end."""

    def __init__(self, element: Any = None, reader: str = "") -> None:
        self._found: defaultdict[str, list[Why]] = defaultdict(list)
        self._element, self._reader, self._told = element, reader, dict[str, str]()
        self._open: defaultdict[str, list[Request]] = defaultdict(list)  # by node
        self._calls: dict[tuple[str, str, int], Call] = {}  # by who asks whom, and msg_id
        self._held: dict[tuple[str, str], tuple[Any, int, str]] = {}  # value, since when, by whom
        self._read: defaultdict[str, dict[tuple[str, str], Any]] = defaultdict(dict)  # by node
        self._ends: Counter[str] = Counter()  # by key: one more than the highest offset
        self._added: Counter[str] = Counter()  # by node: the sum of what it acknowledged
        self._last_reads: dict[str, Request] = {}

    def _note(self, kind: str, fact: str, advice: str = "") -> None:
        self._found[kind].append(Why(fact, advice))

    def add(self, event: Event) -> None:
        """Take the next line of the journal."""
        message, time_ns = event["message"], event["time"]
        src, dest, body = message["src"], message["dest"], message["body"]
        if event["type"] != "send":
            if self._reader and body.get("type") not in _NAMES and _holds(body, self._element):
                self._told.setdefault(dest, f"{src} ({body.get('type')})")
        elif is_client(src):
            self._asked(src, dest, body)
        elif is_client(dest):
            self._replied(src, dest, body)
        elif call := self._calls.pop((dest, src, _number(body, "in_reply_to")), None):
            call.answer = body
            if src in SERVICES:
                self._served(dest, call, time_ns)
        elif src not in SERVICES:
            self._called(src, dest, message)

    def _asked(self, client: str, node: str, body: Sent) -> None:
        if body.get("type") in _NAMES:
            return
        waiting, offsets = self._open[node], body.get("offsets") or {}
        for each in waiting:
            each.alone = False
        is_poll = body.get("type") == "poll"
        idle = is_poll and all(at >= self._ends[key] for key, at in offsets.items())
        waiting.append(Request(client, node, body, not waiting, idle))

    def _called(self, node: str, dest: str, message: Sent) -> None:
        body, kind = message["body"], message["body"].get("type")
        if kind == "error":
            self._note("errors", f"{node} sent {dest} an error that answers no request", _ERROR)
        elif why := wrong(node, message) or unfit(node, message):
            self._note("unfit", *why)
        elif node == dest:
            self._note("self", f"{node} sent {kind} to itself", _SELF)
        if (number := _number(body, "msg_id")) >= 0:
            call = self._calls[node, dest, number] = Call(dest, body)
            if len(self._open[node]) == 1:
                self._open[node][0].calls.append(call)

    def _served(self, node: str, call: Call, time_ns: int) -> None:
        """A service answered: note what the key holds, and what the node knows of it."""
        key, known = call.key, self._read[node]
        was, since_ns, writer = self._held.get(key, (None, 0, node))
        if call.answer.get("type") in _CHANGED:
            value = call.body.get("to" if call.answer["type"] == "cas_ok" else "value")
            call.change = was, value
            self._held[key] = value, time_ns, node
            is_blind = call.body["type"] == "write" and writer != node and key in known
            if is_blind and was != known[key] and self._adds(node):
                fact = f"{node} read {shown(known[key])} in the key {key[1]} of {key[0]}, and wrote"
                fact += f" {shown(value)} over {shown(was)}, which {writer} had written meanwhile"
                self._note("over", fact, "Use cas.")
        elif call.body.get("type") == "read":
            known[key] = call.answer.get("value")
            if key in self._held and was != known[key]:
                call.newer = was, since_ns

    def _adds(self, node: str) -> bool:
        """Whether the node has one request, and that is to add something."""
        return [each.body.get("type") in _ADDS for each in self._open[node]] == [True]

    def _replied(self, node: str, client: str, body: Sent) -> None:
        asked, waiting = (client, body.get("in_reply_to")), self._open[node]
        request = next((r for r in waiting if (r.client, r.body.get("msg_id")) == asked), None)
        if request is None:
            return
        waiting.remove(request)
        request.reply, kind = body, request.body.get("type")
        if kind == "send":
            key = request.body["key"]
            self._ends[key] = max(self._ends[key], _number(body, "offset") + 1)
        if kind == "read":
            self._last_reads[node] = request
        if kind in _ADDS and body.get("type") == f"{kind}_ok":
            self._added[node] += request.body.get("delta", 0)
            if request.alone and request.calls:
                self._acknowledged(request, request.calls[-1])

    def _acknowledged(self, request: Request, last: Call) -> None:
        """A node says that it keeps something: look at what it asked services for that."""
        node, kind = request.node, request.body["type"]
        if last.body.get("type") == "cas" and (code := last.answer.get("code")) in _REFUSED:
            fact = f"{last.dest} refused a cas of {node} with error {named(code)}, and {node}"
            self._note("refused", f"{fact} acknowledged the {kind} all the same", _CAS)
        changes = [(c.key, *c.change) for c in request.answered(*_CHANGED) if c.change]
        if kind == "send" and len(changes) > 1:
            (first, _, value), (later, _, content) = changes[0], changes[-1]
            message = request.body["msg"]
            if first != later and type(value) is int and _holds(content, message):
                fact = f"{node} changed {first[1]} of {first[0]} and then put the message into {later[1]}"
                self._note("order", fact, _ORDER)
        if delta := request.body.get("delta"):
            self._added_up(request, delta, changes)

    def _added_up(self, request: Request, delta: int, changes: Sequence[Any]) -> None:
        """A node added a number: look at how it changed others."""
        node, reads = request.node, request.answered("read_ok")
        steps = [
            f"from {was or 0} to {is_}" for _, was, is_ in changes if _is_step(was, is_, delta)
        ]
        if len(steps) > 1:
            what = (
                f"For one add of {delta}, {node} changed {changes[0][0][1]} {', and '.join(steps)}"
            )
            self._note("twice", what, "Add once.")
        if len(reads) == len(changes) == 1 and reads[0].key == changes[0][0]:
            (_, key), was, value = reads[0].key, reads[0].answer["value"], changes[0][2]
            if type(was) is type(value) is int and value - was != delta:
                fact = f"{node} read {was} in the key {key} of {reads[0].dest}, and wrote {value}"
                self._note("value", f"{fact} for an add of {delta}", _VALUE)

    def wrong_sum(self, node: str) -> None:
        """The last read of this node had a wrong sum: say where that came from."""
        request = self._last_reads.get(node)
        if not request or not request.alone:
            return
        value, reads = request.reply.get("value"), request.answered("read_ok")
        for each in (each for each in reads if each.newer and each.dest == "seq-kv"):
            now, since_ns = each.newer or (None, 0)
            fact = (
                f"seq-kv answered the last read of {node} with {shown(each.answer['value'])}, and"
            )
            fact += f" {each.key[1]} had been {shown(now)} since {since_ns / _NS:.3f} s"
            self._note("older", fact, _OLDER)
        was = reads[0].answer["value"] if len(reads) == 1 else None
        if type(was) is int and was != value:
            fact = f"{reads[0].dest} answered the last read of {node} with {was}"
            self._note("value", f"{fact}, and {node} answered its client {shown(value)}", _VALUE)
        for (service, key), (_, _, writer) in self._held.items():
            if writer != node and (service, key) not in self._read[node]:
                fact = f"{node} never read the key {key} of {service}, which {writer} wrote"
                self._note("keys", fact, _KEYS)
        if value == self._added[node] and not reads:
            fact = f"{node} answered {value}, the sum of what clients added at {node} alone"
            self._note("own", fact, _OWN)

    def missing(self) -> None:
        """The reader lacks the element: say whether any message brought it there."""
        element, told = shown(self._element), sorted(self._told)
        if self._reader in told:
            fact = (
                f"{self._reader} got a message with {element} in it from {self._told[self._reader]}"
            )
            self._note("told", f"{fact}, and later reads there lack it")
        elif self._reader:
            got = ", ".join(each for each in told if not is_client(each))
            fact = f"No message with {element} in it arrived at {self._reader}; at {got} one did"
            self._note("told", fact, _PASS)

    def unanswered(self) -> None:
        """Say what nodes did with requests that they did not answer."""
        for node, waiting in self._open.items():
            for last in (each.calls[-1] for each in waiting if each.calls):
                who = "itself" if last.dest == node else last.dest
                if not last.answer and last.dest not in SERVICES:
                    fact = f"{node} asked {who} ({last.body.get('type')}) for a request of a client, and"
                    self._note("waits", f"{fact} never got an answer", _WAIT)
            for each in waiting:
                self._repeated(each)
            if waiting and all(each.idle for each in waiting):
                fact = (
                    f"{node} left {len(waiting)} polls unanswered, all for what nobody had sent yet"
                )
                self._note("polls", fact, _POLL)

    def _repeated(self, request: Request) -> None:
        refused = Counter(
            (call.key, shown(call.body.get("from")))
            for call in request.calls
            if call.body.get("type") == "cas" and call.answer.get("code") == PRECONDITION_FAILED
        )
        for ((service, key), expected), count in refused.items():
            if count > 2:
                fact = f"For one {request.body['type']} {request.node} sent {count} times a cas of {key}"
                fact += f" from {expected}, and {service} refused each with error"
                self._note("same", f"{fact} {named(PRECONDITION_FAILED)}", _CAS)

    def sentences(self, kinds: Sequence[str]) -> list[str]:
        """Of each of these kinds the first fact, how many more there are, and what to do."""
        told = [whys for each in kinds if len(whys := self._found[each]) >= _MIN.get(each, 1)]
        is_clear = any(self._found[each] for each in _ALONE)
        return [
            f"{first.fact}{f' ({1 + len(more)} such cases)' * bool(more)}. {first.advice}".rstrip()
            for first, *more in told[: 1 if is_clear else _TOLD_MAX]
        ]


def _holds(value: Any, element: Any) -> bool:
    """Whether a value is the element, or has it somewhere; a text may have it as a part."""
    if isinstance(value, dict):
        inside = (pair for name, pair in value.items() if name not in _ENVELOPE)
        return any(_holds(each, element) for each in (*inside, *value))
    if isinstance(value, list):
        return any(_holds(each, element) for each in value)
    part = rf"(?<!\w){re.escape(str(element))}(?!\w)"
    return value == element or (isinstance(value, str) and bool(re.search(part, value)))


def _is_step(before: Any, after: Any, delta: int) -> bool:
    """Whether a number was raised by so much; what was not there counts as 0."""
    return type(after) is int and type(before or 0) is int and after - (before or 0) == delta


def _number(body: Sent, name: str) -> int:
    """The field if it is a whole number of 0 or more; else -1."""
    value = body.get(name)
    return value if type(value) is int and value >= 0 else -1


def facts(
    events: Iterable[Event], findings: Sequence[Finding], place: Placement, *, is_valid: bool
) -> list[str]:
    """What the messages show of these findings, and of requests without an answer, in sentences."""
    element, reader = None, ""
    for op in (op for each in findings if each.type == "lost" for op in each.witness):
        if op.f != "read":
            element = op.value
        elif op.value == [] and isinstance(op.process, int):
            reader = place.node(op.process)
    trail = Trail(element, reader if element is not None else "")
    for event in events:
        trail.add(event)
    trail.missing()
    for op in (op for each in findings if each.type == "wrong-sum" for op in each.witness):
        trail.wrong_sum(place.node(int(op.process)))
    trail.unanswered()
    return trail.sentences(_ODD if is_valid else _KINDS)
