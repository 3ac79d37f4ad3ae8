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
from typing import Any, NamedTuple, TypeVar

import orjson

from bench.nemesis.faults import STORE
from leaderless.wire.codec import encode
from simulation.exploration.cluster import ExploredCluster, session_of
from simulation.exploration.events import Event
from simulation.exploration.instants import Instant
from simulation.exploration.memory import digest_of
from simulation.exploration.schedule import Names, Scheduled
from simulation.exploration.setting import Setting
from simulation.hosts import NS
from simulation.nodes import NodeSession, StrategyMaker
from simulation.noting import Step
from simulation.oracle import Body
from simulation.registers import Store
from simulation.stepped import TICK_S
from simulation.watch import Watch

SESSIONS_KEPT = 64
SHARED = {"_nodes", "refinement"}  # of a cluster and its copies; no step changes a value of them
T = TypeVar("T")


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


class Did(NamedTuple):
    """What a node did with what it read: the steps of its protocol, and the lines that it wrote."""

    steps: tuple[Step, ...]
    lines: tuple[bytes, ...]


class Traced:
    """A node whose steps are taken down."""

    def __init__(self, setting: Setting, make: StrategyMaker | None, start: int) -> None:
        self._steps: list[Step] = []
        self.session = session_of(setting, make, start, self._steps)

    def read(self, read: Read, count: int) -> Did:
        """Let it read a line, its `count`th, or ring its timers."""
        session, now = self.session, Instant(read.seconds, count)
        if read.line is None:
            session.pass_time(now)
        else:
            session.receive(read.line, now)
        _ = session.deadline  # asking for it forgets timers of answered calls
        steps = tuple(self._steps)
        self._steps.clear()
        return Did(steps, tuple(session.take().splitlines()))


class Nodes:
    """What all nodes of a setting do: `after` finds it out once."""

    def __init__(self, setting: Setting, make: StrategyMaker | None = None) -> None:
        self.setting, self.make = setting, make
        self.memories: dict[bytes, Memory] = {}
        self._known: dict[tuple[bytes, Read], tuple[Memory, Did]] = {}
        self._sessions: OrderedDict[bytes, tuple[Traced, int]] = OrderedDict()

    def started(self, start: int) -> Memory:
        """A node that has read nothing."""
        return self._keep(Traced(self.setting, self.make, start), 0, None, None, start)

    def after(self, memory: Memory, read: Read) -> tuple[Memory, Did]:
        """The memory of a node after it read something, and what it did."""
        known = self._known.get((memory.digest, read))
        if known is None:
            session, count = self._session(memory)
            did = session.read(read, count + 1)
            kept = self._keep(session, count + 1, memory, read, memory.start)
            known = self._known[memory.digest, read] = kept, did
        return known

    def look(self, digest: bytes, show: Callable[[NodeSession], T]) -> T:
        """What `show` finds in a node with this memory; it must change nothing."""
        memory = self.memories[digest]
        self._sessions[digest] = self._session(memory)
        return show(self._sessions[digest][0].session)

    def _session(self, memory: Memory) -> tuple[Traced, int]:
        """A node with this memory, and how much it has read; it is the caller's."""
        if memory.digest in self._sessions:
            return self._sessions.pop(memory.digest)
        session, reads = Traced(self.setting, self.make, memory.start), memory.reads()
        for count, each in enumerate(reads, 1):
            session.read(each, count)
        return session, len(reads)

    def _keep(
        self,
        traced: Traced,
        count: int,
        before: Memory | None,
        read: Read | None,
        start: int,
    ) -> Memory:
        session = traced.session
        deadline = None if session.deadline is None else float(session.deadline)
        # After the deadline: to ask for it forgets timers of answered calls.
        digest = digest_of(session)
        self._sessions[digest] = traced, count
        if len(self._sessions) > SESSIONS_KEPT:
            self._sessions.popitem(last=False)
        return self.memories.setdefault(digest, Memory(digest, deadline, start, before, read))


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
        refinement = self.refinement and self.refinement.copy()

        def copy() -> CopiedCluster:
            made: CopiedCluster = pickle.loads(content)  # noqa: S301  # its own bytes, from memory
            made._nodes = self._nodes
            made.refinement = refinement and refinement.copy()
            return made

        return copy

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in SHARED}

    def look(self, node: str, show: Callable[[NodeSession], T]) -> T:
        """What `show` finds in a node; it must change nothing."""
        return self._nodes.look(self._memories[node], show)

    def life(self, node: str) -> int:
        """Which of its starts a node is in, from 1."""
        return self._starts[node]

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
        if self.refinement:
            self.refinement.started(node)
        body = {"type": "init", "node_id": node, "node_ids": self.setting.names, "msg_id": 1}
        self.send("c0", node, body)

    # ------------------------------------------------------------ inside

    def _read(self, node: str, line: bytes | None) -> None:
        memory = self._nodes.memories[self._memories[node]]
        after, did = self._nodes.after(memory, Read(line, self._seconds))
        self._memories[node] = after.digest
        if self.refinement:
            self.refinement.noted += did.steps
        for each in did.lines:
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
