"""Which nodes the network hears: one message with a wrong name mutes a node for the rest of its life.

On the real tool the thread that reads a node's stdout ends at the first message to or from a name that is not
in the network. The process goes on and gets messages, but nothing that it says is heard any more. In the
network are the nodes, the services, and the clients that have not left. So an answer that comes after its
client has given up mutes the node. [facts: Maelstrom's process.clj and net.clj, Jepsen's interpreter.clj]

    0.0 s  client c24 sends a request to n0
    5.0 s  c24 gives up; its worker goes on as another client, and c24 leaves
    5.3 s  n0 answers c24: from here on n0 is mute

`Hearing` is this rule, without clock and network. With `lenient` it drops such a message, counts it, and hears
the node's next one. A node that is killed and started again is heard again.
"""

from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from bench.failure import clip, indent
from runs.faults import MUTE
from runs.history import NEMESIS, Op
from runs.keyword import keywords

GAVE_UP = "had given up"
_LINE_LENGTH = 400
_NS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Departure:
    """When a client was done with its last request, in ns, and why: it `had given up`, for example."""

    time_ns: int
    why: str = GAVE_UP


@dataclass(frozen=True, slots=True)
class Mute:
    """A node that is not heard any more, and the line because of which.

    `name` is not in the network. The message was `to` or `from` it (`role`). If it was a client's, `departure`
    says when that was done.
    """

    node: str
    time_ns: int
    line: str
    name: str
    role: str
    departure: Departure | None = None

    def value(self) -> dict[Any, Any]:
        """What the history says of it; `sentence` and `runs.faults.describe` make sentences of that."""
        found = keywords(node=self.node, line=self.line, name=self.name, role=self.role)
        if self.departure:
            after_ns = self.time_ns - self.departure.time_ns
            found |= keywords(why=self.departure.why, after_ns=after_ns)
        return found


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
        text = clip(line.decode(errors="replace"), _LINE_LENGTH)
        departure = self._departures.get(name)
        self.mute[node] = Mute(node, now_ns, text, name, role, departure)
        self._on_mute(self.mute[node])


def report(history: Iterable[Op]) -> str:
    """What a person should know of the mute nodes of a history; empty if there are none."""
    mutes = [op for op in history if op.process == NEMESIS and op.f == MUTE]
    if not mutes:
        return ""
    advice = dict.fromkeys(_LATE if "after-ns" in op.value else _UNKNOWN for op in mutes)
    return "\n".join([*(sentence(op.value, op.time) for op in mutes), *advice, _REAL])


def sentence(value: Mapping[str, Any], time_ns: int) -> str:
    """Which node is mute, since when and why; `value` is `Mute.value`, `time_ns` its time in the history."""
    return (
        f"Node {value['node']} is mute from {time_ns / _NS:.3f} s on: it sent a message"
        f" {value['role']} {reason(value)}. The line:\n{indent(value['line'])}"
    )


def reason(value: Mapping[str, Any]) -> str:
    """The name that was wrong, and what is wrong with it."""
    if "after-ns" not in value:
        return f"{value['name']}, which is no node, service or client of this run"
    return f"client {value['name']}, which {value['why']} {value['after-ns'] / _NS:.3f} s before"


_LATE = (
    "Clients wait 5 s for an answer. Answer within that time or not at all: let the node remember when a"
    " request came, and answer nothing that is older."
)
_UNKNOWN = "Check how the node makes the names in `src` and `dest`."
_REAL = (
    "The real Maelstrom does not hear such a node either, and says so only in jepsen.log. To go on without"
    " such messages, use --lenient."
)
