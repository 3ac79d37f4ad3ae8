"""What the processes of an explored system do, each thing found out once: nodes, or programs.

A generator cannot be copied, so a process cannot. But a process is deterministic: what it does with a line
follows from its memory and the time. So each process stands as the name of its memory, and a table says which
answers and which memory follow from each line. What the table does not know is found out by a live process: one
that was left in that memory, or a new one that reads all lines which lead there.

The memory of a node is named by a digest of all that its session reaches; that of a program, whose tasks wait
on an event loop, by a digest of all that it has read, and when.
"""

import weakref
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from itertools import count
from math import inf
from typing import NamedTuple, TypeVar
from zlib import crc32

from leaderless.core.headlog.policy import CommitPolicy
from leaderless.core.strategies.leaderless import LeaderlessLog
from leaderless.core.strategy import Clock, Identity, Trace
from leaderless.peers.lines import writer_of
from simulation.bucket import EPOCH_S, Bucket
from simulation.exploration.instants import Instant
from simulation.exploration.memory import digest_of
from simulation.exploration.setting import Setting
from simulation.hosts import NodeSession
from simulation.logs import Around
from simulation.nodes import StrategyMaker, new_session
from simulation.noting import Noted, Noting, Step
from simulation.port import at_once
from simulation.programs import NodeOnBucket, Program

LIVE_KEPT = 64
T = TypeVar("T")


class Read(NamedTuple):
    """What a process read, and when; no line: its timers rang."""

    line: bytes | None
    seconds: float


class Life(NamedTuple):
    """A process, and which of its starts this is, from 1."""

    name: str
    start: int


@dataclass(frozen=True, slots=True)
class Memory:
    """What a process may hold: reached by `read` in `before`, or (None) when it starts."""

    digest: bytes
    deadline: float  # infinite: no timer is set
    life: Life
    before: "Memory | None" = None
    read: Read | None = None

    def reads(self) -> list[Read]:
        """All that leads here from the start."""
        found: list[Read] = []
        at: Memory | None = self
        while at is not None and at.read is not None:
            found.append(at.read)
            at = at.before
        return found[::-1]


class Did(NamedTuple):
    """What a process did with what it read.

    `started`: the nodes of the protocol that began in it; `steps`: of its protocol; `lines`: what it wrote.
    """

    started: tuple[str, ...]
    steps: tuple[Step, ...]
    lines: tuple[bytes, ...]


class Live:
    """A process that lives, whose steps are taken down."""

    def __init__(self, setting: Setting, make: StrategyMaker | None, life: Life) -> None:
        self.reads = 0
        self._clock = Clock()
        self._started: list[str] = []
        self._steps: list[Step] = []
        hands_over = partial(LeaderlessLog, policy=HandsOver)
        maker = make or (hands_over if setting.hand_over else setting.strategy)
        noting = partial(Noting, maker, self._steps, self._started.append)
        if not setting.programs:
            self.session: NodeSession = new_session(noting(), life.start, setting.options)
        else:
            around = _around(setting, life, self._clock, self._started, self._steps)
            self.session = process = _on_bucket(setting, life, self._clock, around, noting)
            weakref.finalize(self, process.end)

    def read(self, read: Read) -> Did:
        """Let it read a line, or ring its timers."""
        self.reads += 1
        session, now = self.session, Instant(read.seconds, self.reads)
        self._clock.now = now
        if read.line is None:
            session.pass_time(now)
        else:
            session.receive(read.line, now)
        _ = session.deadline  # asking for it forgets timers of answered calls
        did = Did(tuple(self._started), tuple(self._steps), tuple(session.take().splitlines()))
        self._started.clear()
        self._steps.clear()
        return did


class Processes:
    """What all processes of a setting do: `after` finds it out once."""

    def __init__(self, setting: Setting, make: StrategyMaker | None = None) -> None:
        self.setting, self.make = setting, make
        self.memories: dict[bytes, Memory] = {}
        self._known: dict[tuple[bytes, Read], tuple[Memory, Did]] = {}
        self._live: OrderedDict[bytes, Live] = OrderedDict()

    def started(self, name: str, start: int) -> Memory:
        """A process that has read nothing."""
        life = Life(name, start)
        return self._keep(Live(self.setting, self.make, life), life)

    def after(self, memory: Memory, read: Read) -> tuple[Memory, Did]:
        """The memory of a process after it read something, and what it did."""
        known = self._known.get((memory.digest, read))
        if known is None:
            live = self._lives(memory)
            did = live.read(read)
            kept = self._keep(live, memory.life, memory, read)
            known = self._known[memory.digest, read] = kept, did
        return known

    def look(self, digest: bytes, show: Callable[[NodeSession], T]) -> T:
        """What `show` finds in a process with this memory; it must change nothing."""
        live = self._live[digest] = self._lives(self.memories[digest])
        return show(live.session)

    def _lives(self, memory: Memory) -> Live:
        """A process with this memory; it is the caller's."""
        if memory.digest in self._live:
            return self._live.pop(memory.digest)
        live = Live(self.setting, self.make, memory.life)
        for each in memory.reads():
            live.read(each)
        return live

    def _keep(
        self, live: Live, life: Life, before: Memory | None = None, read: Read | None = None
    ) -> Memory:
        deadline = inf if live.session.deadline is None else float(live.session.deadline)
        # After the deadline: to ask for it forgets timers of answered calls.
        # All that a program has read stands for its memory.
        past = repr((life, before and before.digest, read)).encode()
        is_program = self.setting.programs
        digest = blake2b(past, digest_size=16).digest() if is_program else digest_of(live.session)
        self._live[digest] = live
        if len(self._live) > LIVE_KEPT:
            self._live.popitem(last=False)
        return self.memories.setdefault(digest, Memory(digest, deadline, life, before, read))


class HandsOver(CommitPolicy):
    """Hands each batch to the node that committed last, whatever that costs."""

    def target(self, asked: int = 0) -> str | None:  # noqa: ARG002
        return self.committing_peer()


def _on_bucket(
    setting: Setting, life: Life, clock: Clock, around: Around, noting: Callable[[], Noting]
) -> NodeOnBucket | Program:
    """A program or a node that has read nothing yet. A request of it that gets no answer waits for ever."""
    if life.name not in setting.node_names:
        return Program(life.name, life.start, lambda: float(clock.now), around, timeout_s=inf)

    def now_s() -> float:  # an instant: a node tells what it has read before a poll
        return clock.now

    like = Bucket(now_s)  # the log is there when a node starts, and its format never changes
    at_once(like, around.founded, 0.0)
    options = setting.options
    return NodeOnBucket(
        life.name, life.start, now_s, like, strategy=noting(), options=options, timeout_s=inf
    )


def _around(
    setting: Setting, life: Life, clock: Clock, started: list[str], steps: list[Step]
) -> Around:
    numbers, token = count(1), f"{crc32(life.name.encode()):08x}" if setting.files else ""
    talks = setting.talks and life.name in setting.names

    def traced(identity: Identity) -> Trace:
        started.append(writer_of(identity.node))
        return Noted(steps, started[-1])

    return Around(
        setting.strategy,
        setting.repeats,
        lambda _operator: EPOCH_S + float(clock.now),
        lambda: f"{life.name}-{token}{next(numbers):0{8 * setting.files}x}",
        traced,
        setting.shape,
        crowd=(0, lambda: "") if talks else None,
        policy=HandsOver if talks else CommitPolicy,
        conditions=setting.conditions,
    )
