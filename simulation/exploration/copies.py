"""The events of `schedule` on a cluster that can be copied: the search runs on it.

A generator cannot be copied, so a node cannot. But a node is deterministic: what it does with a line follows
from its memory and the time. So each node stands here as the digest of its memory, and a table says which
answers and which memory follow from each line. What the table does not know is found out by a real session:
one that was left in that memory, or a new one that reads all lines which lead there. Everything else is plain
data.
"""

import pickle
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson

from bench.nemesis.store_faults import STORE
from leaderless.wire.codec import encode
from simulation.exploration.cluster import ExploredCluster, session_of
from simulation.exploration.events import Event
from simulation.exploration.instants import Instant
from simulation.exploration.memory import digest_of
from simulation.exploration.schedule import Names, Scheduled
from simulation.exploration.setting import Setting
from simulation.hosts import NS
from simulation.nodes import NodeSession, StrategyMaker
from simulation.oracle import Body
from simulation.registers import Store
from simulation.stepped import TICK_S
from simulation.watch import Watch

SESSIONS_KEPT = 64


class Read(NamedTuple):
    """What a node read, and when; no line: its timers rang."""

    line: bytes | None
    seconds: float


@dataclass(frozen=True, slots=True)
class Memory:
    """What a node may hold: reached by `read` in `before`, or (None) when it starts for the `start`th time."""

    digest: bytes
    deadline: float | None
    start: int
    before: "Memory | None" = None
    read: Read | None = None

    def reads(self) -> list[Read]:
        """All that leads here from the node's start."""
        found: list[Read] = []
        at: Memory | None = self
        while at is not None and at.read is not None:
            found.append(at.read)
            at = at.before
        return found[::-1]


class Nodes:
    """What all nodes of a setting do: `after` finds it out once."""

    def __init__(self, setting: Setting, make: StrategyMaker | None = None) -> None:
        self.setting, self.make = setting, make
        self.memories: dict[bytes, Memory] = {}
        self._known: dict[tuple[bytes, Read], tuple[Memory, tuple[bytes, ...]]] = {}
        self._sessions: OrderedDict[bytes, tuple[NodeSession, int]] = OrderedDict()

    def started(self, start: int) -> Memory:
        """A node that has read nothing."""
        session = session_of(self.setting, self.make, start)
        return self._keep(session, 0, None, None, start)

    def after(self, memory: Memory, read: Read) -> tuple[Memory, tuple[bytes, ...]]:
        """The memory of a node after it read something, and the lines that it wrote."""
        known = self._known.get((memory.digest, read))
        if known is None:
            session, count = self._session(memory)
            lines = _read(session, read, count + 1)
            kept = self._keep(session, count + 1, memory, read, memory.start)
            known = self._known[memory.digest, read] = kept, lines
        return known

    def _session(self, memory: Memory) -> tuple[NodeSession, int]:
        """A node with this memory, and how much it has read; it is the caller's."""
        if memory.digest in self._sessions:
            return self._sessions.pop(memory.digest)
        session, reads = session_of(self.setting, self.make, memory.start), memory.reads()
        for count, each in enumerate(reads, 1):
            _read(session, each, count)
        return session, len(reads)

    def _keep(
        self,
        session: NodeSession,
        count: int,
        before: Memory | None,
        read: Read | None,
        start: int,
    ) -> Memory:
        deadline = None if session.deadline is None else float(session.deadline)
        digest = digest_of(
            session
        )  # after the deadline: to ask for it forgets timers of answered calls
        self._sessions[digest] = session, count
        if len(self._sessions) > SESSIONS_KEPT:
            self._sessions.popitem(last=False)
        return self.memories.setdefault(digest, Memory(digest, deadline, start, before, read))


def _read(session: NodeSession, read: Read, count: int) -> tuple[bytes, ...]:
    now = Instant(read.seconds, count)
    if read.line is None:
        session.pass_time(now)
    else:
        session.receive(read.line, now)
    _ = session.deadline  # asking for it forgets timers of answered calls
    return tuple(session.take().splitlines())


class CopiedCluster(Scheduled):
    """A `search.System` that can be copied; `nodes` is shared by all copies."""

    def __init__(self, nodes: Nodes) -> None:
        super().__init__(nodes.setting)
        self._nodes = nodes
        self._schedule: list[Event] = []
        self._seconds = self._now_s = 0.0
        self._flying: dict[str, tuple[str, str, Body]] = {}
        self._names = Names()
        self._starts = dict.fromkeys(self.setting.names, 0)
        self._memories: dict[str, bytes] = {}
        self.watch = Watch(self.setting.names, self._now_ns, self._is_alive, self.oracle)
        self.store = Store(self._register_changed)
        for node in self.setting.names:
            self.restart(node)
        self.preface()

    def copier(self) -> Callable[[], "CopiedCluster"]:
        """Makes copies of what this is now."""
        content = pickle.dumps(self, protocol=5)

        def copy() -> CopiedCluster:
            made: CopiedCluster = pickle.loads(content)
            made._nodes = self._nodes
            return made

        return copy

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_nodes"}

    def step(self, event: Event) -> Any:
        self._schedule.append(event)
        return super().step(event)

    def judge(self) -> None:
        """Play the schedule with the simulator's network, and judge its end. Raises `Failing`."""
        cluster = ExploredCluster(self.setting, self._nodes.make)
        for event in self._schedule:
            cluster.step(event)
        cluster.judge()

    # ------------------------------------------------------------ what events move

    @property
    def seconds(self) -> float:
        return self._seconds

    def messages(self) -> dict[str, Body]:
        return {name: body for name, (_, _, body) in self._flying.items()}

    def deadline_of(self, node: str) -> float | None:
        return self._nodes.memories[self._memories[node]].deadline

    def memory_of(self, node: str) -> bytes:
        return self._memories[node]

    def tick(self) -> None:
        self._now_s += TICK_S

    def set_time(self, seconds: float) -> None:
        self._now_s += seconds - self._seconds
        self._seconds = seconds

    def send(self, client: str, node: str, body: Body) -> None:
        self.watch.message("recv", client, node, body, NUMBERED)
        self._read(node, encode(client, node, body).rstrip())

    def arrive(self, name: str) -> None:
        src, dest, body = self._flying.pop(name)
        if dest == STORE:
            self._names.arriving = name
            reply = self.store.handle(src, body)
            reply["in_reply_to"] = body.get("msg_id")
            self._fly(STORE, src, reply)
        else:
            self._read(dest, encode(src, dest, body).rstrip())

    def lose(self, name: str) -> None:
        del self._flying[name]

    def double(self, name: str) -> None:
        self._flying[f"{name}+"] = self._flying[name]

    def ring(self, node: str) -> None:
        self._read(node, None)

    def restart(self, node: str) -> None:
        self.watch.killed(node)
        self._starts[node] += 1
        self._memories[node] = self._nodes.started(self._starts[node]).digest
        body = {"type": "init", "node_id": node, "node_ids": self.setting.names, "msg_id": 1}
        self.send("c0", node, body)

    # ------------------------------------------------------------ inside

    def _read(self, node: str, line: bytes | None) -> None:
        memory = self._nodes.memories[self._memories[node]]
        after, lines = self._nodes.after(memory, Read(line, self._seconds))
        self._memories[node] = after.digest
        for each in lines:
            message = orjson.loads(each)
            self._written(node, message["dest"], message["body"])

    def _written(self, src: str, dest: str, body: Body) -> None:
        self.watch.message("send", src, dest, body, NUMBERED)
        if dest[0] == "c":
            self._answered(dest, body)
        else:
            self._fly(src, dest, body)

    def _fly(self, src: str, dest: str, body: Body) -> None:
        self._flying[self._names.name(src, dest, body)] = src, dest, body

    def _now_ns(self) -> int:
        return round(self._now_s * NS)

    def _is_alive(self, _node: str) -> bool:
        return True


NUMBERED = b'{"id":0,'  # the watch reads the number of a message, which none has here
