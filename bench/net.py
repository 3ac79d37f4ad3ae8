"""The simulated network: unordered, with latency and partitions, between nodes, services and clients.

- A message between nodes and services takes a latency drawn for it alone; a message to or from a
  client takes none (latency there would only hide anomalies).
- A receiver takes messages in turn, and waits for each until it is due (`InTurn`).
- A partition drops at the receiver, and only between nodes.
- A message to a node that is down is lost. One to or from a name that is not in the network, such as a
  client that has left, mutes the node that printed it (`Hearing`).
- Link faults (`bench.nemesis.links`) lose, double or delay messages between nodes and services.

Every message gets a number (`id`) and is journaled when sent and each time it is received. It is counted for
whoever sent it. All else goes by `src`, which nobody checks there; so a node may write another's name into it.
[facts: Maelstrom's net.clj and doc/protocol.md]

*Hearing.* One message with a wrong name mutes a node for the rest of its life. On the real tool the thread that
reads a node's stdout ends at the first message to or from a name that is not in the network. The process goes
on and gets messages, but nothing that it says is heard any more. In the network are the nodes, the services,
and the clients that have not left. So an answer that comes after its client has given up mutes the node.
[facts: Maelstrom's process.clj and net.clj, Jepsen's interpreter.clj]

    0.0 s  client c24 sends a request to n0
    5.0 s  c24 gives up; its worker goes on as another client, and c24 leaves
    5.3 s  n0 answers c24: from here on n0 is mute

`Hearing` is this rule, without clock and network. With `lenient` it drops such a message, counts it, and hears
the node's next one. A node that is killed and started again is heard again.

*Arrival.* A message arrives when it is due, or in turn, as on the real tool. There every receiver has a queue,
ordered by the time at which a message is due, and one taker. The taker removes the first message and then
sleeps until that is due. What arrives meanwhile waits, even if it is due earlier, as a client's request is,
which is due at once. The taker looks at partitions when it takes a message, before it sleeps. It sleeps whole
milliseconds, rounded down. [facts: Maelstrom's net.clj, `recv!`]

     0 ms  a peer's message is sent to n0, due at 100; n0's taker takes it and sleeps
    20 ms  a client's request is sent to n0, due at 20
    99 ms  the peer's message arrives, and after it the request, 79 ms late

`InTurn` does the same. `WhenDue` lets each message arrive when it is due, so that messages overtake one another
more often; the simulator draws one of the two.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass
from heapq import heappop, heappush
from random import Random
from typing import Any, NamedTuple

import orjson

from bench.failure import RunFailure, clip, indent
from bench.flags import did_you_mean
from bench.loop import Loop
from bench.verdict.no_message import LEVELS, MESSAGE_FIELDS, check_levels, malformed
from runs.faults import MUTE, reason
from runs.history import MS, NEMESIS, NS, Op, keywords
from runs.traffic import SERVICES
from runs.writing import Journal

GAVE_UP, HAD_INIT = "had given up", "had its answer to init"


@dataclass(frozen=True, slots=True)
class Departure:
    """When a client was done with its last request, in ns, and why: it `had given up`, for example."""

    time_ns: int
    why: str = GAVE_UP


class Mute(NamedTuple):
    """A node that is not heard any more.

    `value` is what the history says of it: the `line` because of which, the `name` that is not in the network,
    whether the message was `to` or `from` it (`role`), and, of a client that had left, `why` and how long
    before. `sentence` and `runs.faults.describe` make sentences of that.
    """

    node: str
    time_ns: int
    value: dict[Any, Any]


class Hearing:
    """The nodes that are mute, the clients that have left, and the lines that nobody took, by node.

    `on_mute` is called with each node that becomes mute, `on_heard` with one that is heard again.
    """

    def __init__(
        self,
        *,
        lenient: bool = False,
        on_mute: Callable[[Mute], object] = lambda _: None,
        on_heard: Callable[[str], object] = lambda _: None,
    ) -> None:
        self.lenient = lenient
        self._on_mute, self._on_heard = on_mute, on_heard
        self.mute: dict[str, Mute] = {}
        self.dropped: Counter[str] = Counter()
        self.repeated: Counter[str] = Counter()  # answers to what had been answered before
        self.foreign = defaultdict[str, Counter[str]](Counter)  # names in `src`, by node
        self._departures: dict[str, Departure] = {}

    def left(self, client: str, departure: Departure) -> None:
        """A client is not in the network any more."""
        self._departures[client] = departure

    def started(self, node: str) -> None:
        """A node is a new process, which is heard."""
        if self.mute.pop(node, None):
            self._on_heard(node)

    def refuse(
        self, node: str, src: str, dest: str, line: bytes, *, known: Container[str], now_ns: int
    ) -> None:
        """Take note of a message of `node` from or to a name that is not `known`: from now on it is mute."""
        if self.lenient:
            self.dropped[node] += 1
            return
        name, role = (dest, "to") if src in known else (src, "from")
        text = clip(line.decode(errors="replace"), 400)
        value = keywords(node=node, line=text, name=name, role=role)
        if left := self._departures.get(name):
            value |= keywords(why=left.why, after_ns=now_ns - left.time_ns)
        self.mute[node] = Mute(node, now_ns, value)
        self._on_mute(self.mute[node])


def report(history: Iterable[Op]) -> str:
    """What a person should know of the mute nodes of a history; empty if there are none."""
    mutes = [op for op in history if op.process == NEMESIS and op.f == MUTE]
    if not mutes:
        return ""
    told = [*(sentence(op.value, op.time) for op in mutes), *(advice(op.value) for op in mutes)]
    return "\n".join([*dict.fromkeys(told), _REAL])


def sentence(value: Mapping[str, Any], time_ns: int) -> str:
    """Which node is mute, since when and why; `value` is `Mute.value`, `time_ns` its time in the history."""
    return (
        f"Node {value['node']} is mute from {time_ns / NS:.3f} s on: it sent a message"
        f" {value['role']} {reason(value)}. The line:\n{indent(value['line'])}"
    )


def advice(value: Mapping[str, Any]) -> str:
    """What to do about a mute node."""
    if value["role"] == "from" and "after-ns" in value:
        return (
            "Write the node's own name into `src`. If it was given this message, it has printed it again: a log"
            " belongs on stderr."
        )
    if value.get("why") == HAD_INIT:
        return (
            "The `dest` of an answer is the `src` of its request, and each request has one answer."
        )
    if "after-ns" in value:
        return (
            "Clients wait 5 s for an answer. Answer within that time or not at all: let the node remember when"
            " a request came, and answer nothing that is older."
        )
    near = did_you_mean(value["name"].lower(), SERVICES) or f" Services are {', '.join(SERVICES)}."
    return f"Check how the node makes the names in `src` and `dest`.{near}"


_REAL = (
    "The real Maelstrom does not hear such a node either, and says so only in jepsen.log. To go on without"
    " such messages, use --lenient."
)


# ---------------------------------------------------------------- the order in which messages arrive


IN_TURN, WHEN_DUE = "in-turn", "when-due"
ARRIVALS = (IN_TURN, WHEN_DUE)


class Message(NamedTuple):
    """A message on its way; `wire` is all of it as encoded JSON. `by` sent it, in its own name or in `src`."""

    src: str
    dest: str
    body: dict[str, Any]
    wire: bytes
    by: str


Arrive = Callable[[Message], object]
IsCut = Callable[[str, str], bool]  # (sender, receiver): whether a partition is between them


class WhenDue:
    """Each message arrives when it is due, unless a partition then drops it."""

    def __init__(self, loop: Loop, arrive: Arrive, is_cut: IsCut) -> None:
        self._loop, self._arrive, self._is_cut = loop, arrive, is_cut

    def forget(self, _dest: str) -> None:
        """A receiver starts anew: nothing waits for it in a queue here."""

    def put(self, message: Message, latency_ns: int) -> None:
        """Let a message arrive that is due after so long."""
        if latency_ns:
            self._loop.call_later(latency_ns, self._due, message)
        else:
            self._due(message)

    def _due(self, message: Message) -> None:
        if not self._is_cut(message.src, message.dest):
            self._arrive(message)


class InTurn:
    """One queue and one taker for each receiver."""

    def __init__(self, loop: Loop, arrive: Arrive, is_cut: IsCut) -> None:
        self._loop, self._arrive, self._is_cut = loop, arrive, is_cut
        self._count = 0  # of two messages that are due at once, the earlier comes first
        # By receiver, while its taker sleeps: what waits, as a heap by the time at which it is due.
        self._waiting: dict[str, list[tuple[int, int, Message]]] = {}

    def forget(self, dest: str) -> None:
        """A receiver starts anew, with a fresh queue: what waits in the old one is lost."""
        if waiting := self._waiting.get(dest):
            waiting.clear()

    def put(self, message: Message, latency_ns: int) -> None:
        """As that of `WhenDue`."""
        waiting = self._waiting.get(message.dest)
        if waiting is not None:
            self._count += 1
            heappush(waiting, (self._loop.now_ns() + latency_ns, self._count, message))
        elif latency_ns:
            self._take(self._loop.now_ns() + latency_ns, message)
        elif not self._is_cut(message.src, message.dest):
            self._arrive(message)

    def _take(self, due_ns: int, message: Message) -> bool:
        """Take a message, and let it arrive at once if it is due. Returns whether the taker sleeps now."""
        if self._is_cut(message.src, message.dest):
            return False
        now_ns = self._loop.now_ns()
        sleep_ms = (due_ns - now_ns - 1) // MS  # less by the moment between sending and taking
        if sleep_ms <= 0:
            self._arrive(message)
            return False
        self._waiting.setdefault(message.dest, [])
        self._loop.call_at(now_ns + sleep_ms * MS, self._wake, message)
        return True

    def _wake(self, message: Message) -> None:
        """The taker has slept until this message was due: deliver it, then take what waits."""
        self._arrive(message)
        waiting = self._waiting[message.dest]
        while waiting:
            due_ns, _, following = heappop(waiting)
            if self._take(due_ns, following):
                return
        del self._waiting[message.dest]


# ---------------------------------------------------------------- the network


# Called with the sender, the decoded body and the whole message as encoded JSON.
Deliver = Callable[[str, dict[str, Any], bytes], None]
Latency = Callable[[], int]
# (sender, receiver, draws a latency) -> after how many nanoseconds each copy of a message arrives.
Copies = Callable[[str, str, Latency], list[int]]
# Called with "send" or "recv", the sender, the receiver, the body and the whole message.
Trace = Callable[[str, str, str, dict[str, Any], bytes], None]


def latency(distribution: str, mean_ms: float, random: Random) -> Latency:
    """A function that draws a latency in nanoseconds (whole milliseconds, as Maelstrom draws them).

    `uniform` is 0 up to twice the mean; `constant` is always the mean.
    """
    if mean_ms <= 0:
        return lambda: 0
    return {
        "constant": lambda: int(mean_ms) * MS,
        "uniform": lambda: random.randrange(int(2 * mean_ms)) * MS,
        "exponential": lambda: int(random.expovariate(1 / mean_ms)) * MS,
    }[distribution]


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
        self.latest: dict[
            str, bytes
        ] = {}  # by node: the last message that it sent, as encoded JSON
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
        # Names need no escaping: the bench made them (clients, services) or checked them (nodes).
        wire = b'{"id":%d,"src":"%b","dest":"%b","body":%b}' % (
            self._next_id,
            src.encode(),
            dest.encode(),
            orjson.dumps(body),
        )
        self._enter(src, dest, body, wire, src)

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
            self.latest[node] = wire
            if src != node:
                hearing.foreign[node][src] += 1
            self._enter(src, dest, body, wire, node)
        else:
            hearing.refuse(node, src, dest, line, known=known, now_ns=self._loop.now_ns())

    def _parse(self, node: str, line: bytes) -> tuple[str, str, dict[str, Any], bytes]:
        """Sender, receiver and body of a message, and the message with its number."""
        try:
            message = orjson.loads(line)
            src, dest, body = message["src"], message["dest"], message["body"]
            if line.count(b"[") + line.count(b"{") > LEVELS:
                check_levels(message)
        except (ValueError, KeyError, TypeError):
            raise malformed(node, line) from None
        if type(body) is not dict or type(src) is not str or type(dest) is not str:
            raise malformed(node, line)
        if len(message) == 3 and line[:1] == b"{":
            return src, dest, body, b'{"id":%d,%b' % (self._next_id, line[1:])
        if not message.keys() <= MESSAGE_FIELDS:
            raise malformed(node, line)
        message["id"] = self._next_id
        return src, dest, body, orjson.dumps(message)

    def _enter(self, src: str, dest: str, body: dict[str, Any], wire: bytes, by: str) -> None:
        self._next_id += 1
        message = Message(src, dest, body, wire, by)
        self._journal.sent(self._loop.now_ns(), wire, "" if by == src else by)
        if self._trace:
            self._trace("send", src, dest, body, wire)
        self._counted(message).sent += 1
        if src[0] == "c" or dest[0] == "c":  # as on the real tool, whoever wrote that name
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
        src, dest, body, wire, by = message
        deliver = self._endpoints.get(dest)
        if deliver is None:
            return
        self._journal.received(self._loop.now_ns(), wire, "" if by == src else by)
        if self._trace:
            self._trace("recv", src, dest, body, wire)
        self._counted(message).received += 1
        deliver(src, body, wire)

    def _counted(self, message: Message) -> Traffic:
        return self.clients if message.by[0] == "c" or message.dest[0] == "c" else self.servers
