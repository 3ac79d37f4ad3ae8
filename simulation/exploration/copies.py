"""What the nodes of an explored cluster do, each thing found out once.

A generator cannot be copied, so a node cannot. But a node is deterministic: what it does with a line follows
from its memory and the time. So each node stands as the digest of its memory, and a table says which answers
and which memory follow from each line. What the table does not know is found out by a real session: one that
was left in that memory, or a new one that reads all lines which lead there.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from leaderless.core.headlog.policy import CommitPolicy
from leaderless.core.strategies.leaderless import LeaderlessLog
from leaderless.core.strategy import Context, Strategy
from simulation.exploration.instants import Instant
from simulation.exploration.memory import digest_of
from simulation.exploration.setting import Setting
from simulation.nodes import NodeSession, StrategyMaker, new_session
from simulation.noting import Noting, Step

SESSIONS_KEPT = 64
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


class HandsOver(CommitPolicy):
    """Hands each batch to the node that committed last, whatever that costs."""

    def target(self) -> str | None:
        return self.committing_peer()


def maker_of(setting: Setting, make: StrategyMaker | None = None) -> str | StrategyMaker:
    """What makes the strategy of each node; `make` in place of the named one."""
    if make:
        return make
    return _handing_over if setting.hand_over else setting.strategy


def _handing_over(context: Context) -> Strategy:
    return LeaderlessLog(context, HandsOver)


def session_of(
    setting: Setting, make: StrategyMaker | None, start: int, steps: list[Step]
) -> NodeSession:
    """A node that has read nothing yet, in its start number `start`; its steps are added to `steps`."""
    return new_session(Noting(maker_of(setting, make), steps), start, setting.options)
