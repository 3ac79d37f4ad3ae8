"""The state of HeadLog (specs/HeadLog/HeadLog.tla): its variables, and what they hold."""

from collections.abc import Hashable, Iterator, Sequence
from itertools import combinations
from typing import Any, NamedTuple, TypeVar

from specs.head_log.views import EMPTY_VIEW, Content, Entry, Id, Key, Map, Node, View, Writer

T = TypeVar("T", bound=Hashable)
TOMBSTONE = "tombstone"
OPEN, FENCED = "open", "fenced"
NAMED = "named"  # in place of a node: of writers whose batches callers name


class Head(NamedTuple):
    """`limit` is the log's shape, None before the first append."""

    state: str = OPEN
    epoch: int = 0
    limit: int | None = None
    base: int = 0
    tail: tuple[Entry, ...] = ()

    @property
    def end(self) -> int:
        """The slot after the newest entry."""
        return self.base + len(self.tail)


class Task(NamedTuple):
    """The compaction task."""

    owner: Node | None = None
    epoch: int = 0
    cursor: int = 0


class Batch(NamedTuple):
    id: Id
    payload: Hashable
    epoch: int
    content: Content


class Worker(NamedTuple):
    """A node's compaction job."""

    phase: str
    epoch: int
    base: int


class Request(NamedTuple):
    """A cas of the head: its value before and after, and what that adds to the log."""

    before: Head
    after: Head
    entries: tuple[Entry, ...]


class HandOver(NamedTuple):
    to: Node
    length: int
    batch: Batch


class Answer(NamedTuple):
    """The reply to a hand-over."""

    to: Node
    id: Id
    head: Head
    start: int
    entries: tuple[Entry, ...]


class Ack(NamedTuple):
    """`first`: the first offset of each key that the batch wrote."""

    id: Id
    payload: Hashable
    first: Map[Key, int]


class State(NamedTuple):
    """The variables of HeadLog.tla. A node without memory of a kind is not in its map."""

    head: Head = Head()
    segments: Map[int, Any] = Map()  # base -> entries | TOMBSTONE
    runs: Map[int, View] = Map()
    task: Task = Task()
    log: tuple[Entry, ...] = ()
    incarnation: Map[Node, int] = Map()
    seq: Map[Writer, int] = Map()  # of the writers of this life
    known: Map[Node, Head] = Map()
    view: Map[Node, View] = Map()
    batch: Map[Writer, Batch] = Map()  # those in flight: of a node one a writer
    worker: Map[Node, Worker] = Map()
    inflight: frozenset[Request] = frozenset()
    handovers: frozenset[HandOver] = frozenset()
    answers: frozenset[Answer] = frozenset()
    acked: frozenset[Ack] = frozenset()
    rejected: frozenset[Id] = frozenset()


def kept(messages: frozenset[T], limit: float) -> Iterator[frozenset[T]]:
    """A message is lost when another needs its room: one that lingers unused is as good as lost."""
    if len(messages) < limit:
        yield messages
    elif limit >= 1:
        yield from map(frozenset, combinations(messages, int(limit) - 1))


def view_of(s: State, n: Node) -> View:
    """What a node knows of the log; at first nothing."""
    return s.view.get(n, EMPTY_VIEW)


def is_ordered(group: Sequence[Batch]) -> bool:
    """A writer's batches enter in their order: one that was abandoned may wait beside the next."""
    return all(a.id.writer != b.id.writer or a.id.seq < b.id.seq for a, b in combinations(group, 2))


def answer_of(s: State, n: Node, b: Batch, head: Head, log: tuple[Entry, ...]) -> Answer:
    """What the helper `n` answers whoever handed `b` over."""
    asked = next(m for m in s.handovers if m.to == n and m.batch == b)
    return Answer(b.id.node, b.id, head, asked.length, log[asked.length :])
