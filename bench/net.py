"""The simulated network: unordered, with latency and partitions, between nodes, services and clients.

- A message between nodes and services takes a latency drawn for it alone; a message to or from a
  client takes none (latency there would only hide anomalies).
- A receiver takes messages in turn, and waits for each until it is due (`bench.arrival`).
- A partition drops at the receiver, and only between nodes.
- A message to a node that is down is lost. One to or from a name that is not in the network, such as a
  client that has left, mutes the node that printed it (`bench.mute`).
- Link faults (`bench.nemesis.links`) lose, double or delay messages between nodes and services.

Every message gets a number (`id`) and is journaled when sent and each time it is received.
[facts: Maelstrom's net.clj and doc/protocol.md]
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

import orjson

from bench.arrival import InTurn, Message, WhenDue
from bench.failure import RunFailure, clip, indent
from bench.loop import Loop
from bench.mute import Departure, Hearing
from runs.writing import Journal

# Called with the sender, the decoded body and the whole message as encoded JSON.
Deliver = Callable[[str, dict[str, Any], bytes], None]
Latency = Callable[[], int]
# (sender, receiver, draws a latency) -> after how many nanoseconds each copy of a message arrives.
Copies = Callable[[str, str, Latency], list[int]]
# Called with "send" or "recv", the sender, the receiver, the body and the whole message.
Trace = Callable[[str, str, str, dict[str, Any], bytes], None]

_NS_PER_MS = 1_000_000
_MESSAGE_FIELDS = frozenset(("id", "src", "dest", "body"))


def latency(distribution: str, mean_ms: float, random: Random) -> Latency:
    """A function that draws a latency in nanoseconds (whole milliseconds, as Maelstrom draws them).

    `uniform` is 0 up to twice the mean; `constant` is always the mean.
    """
    if mean_ms <= 0:
        return lambda: 0
    if distribution == "constant":
        constant_ns = int(mean_ms) * _NS_PER_MS
        return lambda: constant_ns
    if distribution == "uniform":
        return lambda: random.randrange(int(2 * mean_ms)) * _NS_PER_MS
    return lambda: int(random.expovariate(1 / mean_ms)) * _NS_PER_MS


@dataclass(slots=True)
class Traffic:
    """How many messages were sent and received, `init` and its reply among them."""

    sent: int = 0
    received: int = 0


class Network:
    """Routes messages between named endpoints.

    `trace`, when given, is called with each message that is sent (before anything comes of it) or
    received (before its receiver sees it). `hearing` knows the nodes that are mute. Messages arrive
    `in_turn`, as on the real tool, or each when it is due.
    """

    def __init__(
        self,
        loop: Loop,
        journal: Journal,
        draw_latency_ns: Latency,
        trace: Trace | None = None,
        *,
        hearing: Hearing | None = None,
        in_turn: bool = False,
    ) -> None:
        self._loop = loop
        self._journal = journal
        self._draw_latency_ns = draw_latency_ns
        self._trace = trace
        self.hearing = hearing or Hearing()
        self._endpoints: dict[str, Deliver | None] = {}  # None: a node that is down
        self._cut: dict[str, set[str]] = {}
        arrival = InTurn if in_turn else WhenDue
        self._arrival = arrival(loop, self._arrive, self._is_cut)
        self.copies_ns: Copies | None = None  # None while no link fault is in force
        self._next_id = 0
        self.clients = Traffic()
        self.servers = Traffic()

    def add(self, name: str, deliver: Deliver) -> None:
        """Connect an endpoint. Names that begin with `c` are clients, as in Maelstrom."""
        self._endpoints[name] = deliver
        self._arrival.forget(name)
        self.hearing.started(name)

    def remove(self, name: str) -> None:
        """Disconnect a node until it is added again. Messages to it are lost meanwhile."""
        self._endpoints[name] = None

    def leave(self, client: str, departure: Departure) -> None:
        """Take a client out of the network for good. A message to it is a mistake from now on."""
        del self._endpoints[client]
        self.hearing.left(client, departure)

    def partition(self, cut: Mapping[str, Iterable[str]]) -> None:
        """Let each receiver drop what comes from the given senders, beside earlier cuts."""
        for receiver, senders in cut.items():
            if senders:
                self._cut.setdefault(receiver, set()).update(senders)

    def heal(self) -> None:
        self._cut = {}

    def send(self, src: str, dest: str, body: dict[str, Any]) -> None:
        """Send a body that the bench itself made (a client or a service)."""
        identity = self._next_id
        # Names need no escaping: the bench made them (clients, services) or checked them (nodes).
        wire = b'{"id":%d,"src":"%b","dest":"%b","body":%b}' % (
            identity,
            src.encode(),
            dest.encode(),
            orjson.dumps(body),
        )
        self._enter(src, dest, body, wire)

    def send_line(self, node: str, line: bytes) -> None:
        """Send a line that a node printed, unless nobody hears the node.

        Raises `RunFailure` with a report when the line is no message (a lenient network drops it).
        """
        hearing = self.hearing
        if node in hearing.mute:
            return
        try:
            src, dest, body, wire = self._parse(node, line)
        except RunFailure:
            if not hearing.lenient:
                raise
            hearing.dropped[node] += 1
            return
        known = self._endpoints
        if dest in known and src in known:
            self._enter(src, dest, body, wire)
        else:
            hearing.refuse(node, src, dest, line, known=known, now_ns=self._loop.now_ns())

    def _parse(self, node: str, line: bytes) -> tuple[str, str, dict[str, Any], bytes]:
        """Sender, receiver and body of a message, and the message with its number."""
        try:
            message = orjson.loads(line)
            src, dest, body = message["src"], message["dest"], message["body"]
        except (ValueError, KeyError, TypeError):
            raise _malformed(node, line) from None
        if type(body) is not dict or type(src) is not str or type(dest) is not str:
            raise _malformed(node, line)
        if len(message) == 3 and line[:1] == b"{":
            return src, dest, body, b'{"id":%d,%b' % (self._next_id, line[1:])
        if not message.keys() <= _MESSAGE_FIELDS:
            raise _malformed(node, line)
        message["id"] = self._next_id
        return src, dest, body, orjson.dumps(message)

    def _enter(self, src: str, dest: str, body: dict[str, Any], wire: bytes) -> None:
        self._next_id += 1
        now_ns = self._loop.now_ns()
        self._journal.sent(now_ns, wire)
        if self._trace:
            self._trace("send", src, dest, body, wire)
        of_client = src[0] == "c" or dest[0] == "c"
        (self.clients if of_client else self.servers).sent += 1
        message = Message(src, dest, body, wire)
        if of_client:
            self._arrival.put(message, 0)
        elif self.copies_ns is None:
            self._arrival.put(message, self._draw_latency_ns())
        else:
            for delay_ns in self.copies_ns(src, dest, self._draw_latency_ns):
                self._arrival.put(message, delay_ns)

    def arrive_again(self, message: Message) -> None:
        """Let a copy of a message that was sent once arrive now."""
        self._arrival.put(message, 0)

    def way_ns(self, src: str, dest: str, *, spared: bool = False) -> int | None:
        """After how long something arrives that takes this link but is no message of the network.

        None: it gets lost. What is `spared` meets no link fault.
        """
        if spared or self.copies_ns is None:
            return self._draw_latency_ns()
        return next(iter(self.copies_ns(src, dest, self._draw_latency_ns)), None)

    def _is_cut(self, src: str, dest: str) -> bool:
        return bool(self._cut) and src in self._cut.get(dest, ())

    def _arrive(self, message: Message) -> None:
        src, dest, body, wire = message
        deliver = self._endpoints.get(dest)
        if deliver is None:
            return
        self._journal.received(self._loop.now_ns(), wire)
        if self._trace:
            self._trace("recv", src, dest, body, wire)
        (self.clients if src[0] == "c" or dest[0] == "c" else self.servers).received += 1
        deliver(src, body, wire)


def _malformed(node: str, line: bytes) -> RunFailure:
    """The report on a line that is no message: the reason, the right form, and where other output belongs."""
    try:
        message = orjson.loads(line)
    except ValueError as error:
        what = f"is not one JSON object: {error}"
    else:
        what = f"is no message: {_why_no_message(message)}"
    return RunFailure(
        f"Node {node} printed a line on stdout that {what}.\nThe line:\n"
        f"{indent(clip(line.decode(errors='replace')))}\n"
        'A message is {"src": "n0", "dest": "c1", "body": {"type": ...}} on one line.'
        " Anything else, such as a log, belongs on stderr.\n"
        "The real Maelstrom would go on, say so only in jepsen.log, and not hear the node any more. To go on"
        " without such lines, use --lenient."
    )


def _why_no_message(message: Any) -> str:
    if not isinstance(message, dict):
        return "it is JSON, but not an object"
    for name in ("src", "dest"):
        if not isinstance(message.get(name), str):
            return f"`{name}` must be a string"
    if not isinstance(message.get("body"), dict):
        return "`body` must be an object"
    return f"unknown fields {sorted(message.keys() - _MESSAGE_FIELDS)}"
