"""The replica: a head and the view of everything below it, kept in step.

Law: whenever another process of the node runs, `view.slot == head.end`: the view is exactly the log up to
`head`. So a compare-and-set from `head` that succeeds proves that the view was complete, and whatever it says
about a batch (in the log or not) was true at that moment. `attempt.prepare` asserts it. It holds because what
folds entries also moves the head before it yields.
"""

from collections.abc import Iterable
from typing import TypeVar

from leaderless.core.coordination import InvariantBroken, Json, Patience, StoreSilent, read_as
from leaderless.core.headlog import trace as steps
from leaderless.core.headlog.archive import READS_AT_ONCE, Archive, windows
from leaderless.core.headlog.chain import TORN, Sealed, sealed_below
from leaderless.core.headlog.index import COMPACTED, Index, index_of
from leaderless.core.headlog.outline import Outline
from leaderless.core.headlog.policy import CommitPolicy
from leaderless.core.headlog.records import (
    HEAD,
    Head,
    Segment,
    head_of,
    require_after,
    segment_name,
    segment_of,
)
from leaderless.core.headlog.view import View
from leaderless.core.limits import Limits
from leaderless.core.messages import Cas, Entry, HandedOver, Heading, Note, Ok
from leaderless.core.pace import Pace
from leaderless.core.process import Notify, Process, Signal, Wait, call, notifying, resolved
from leaderless.core.shape import Shape
from leaderless.core.strategy import Clock, Trace

T = TypeVar("T")


class Replica:
    """One node's copy of the log.

    `founding`: the shape that this node gives to a log that it makes; a log that is there has its own.
    `confirmed_at` is a time, in seconds, at or after which the view was the whole log; `loaded`: whether it was
    read at all. `archive` has what is
    read back from runs. `limits` fit into the registers of the log. `trace` takes every step of the node's
    protocol; `policy` is told what was learnt of other nodes and of the store.
    """

    def __init__(
        self,
        clock: Clock,
        node: str,
        writers: Iterable[str],
        limits: Limits,
        trace: Trace | None = None,
        *,
        founding: Shape | None = None,
        policy: CommitPolicy | None = None,
    ) -> None:
        self.trace: Trace = trace or Trace()
        self.policy: CommitPolicy = policy or CommitPolicy(clock, node, (node,), Pace())
        self.limits: Limits = limits
        self.clock: Clock = clock
        self._node = node
        founding = founding or Shape()
        limits = limits.fitted(founding)
        self._empty = Head(Heading(shape=founding), [])
        self.head: Head = self._empty
        self.view: View = View(writers, limits)
        self.archive: Archive = Archive(
            lambda: limits.memory_bytes * 3 // 4 - self.view.bytes,
            founding.sliced,
            min(limits.ahead_bytes, limits.memory_bytes // (1 if founding.sliced else 4)),
            founding.run_bytes,
        )
        self._loading: Signal | None = None  # fires when the read of what was sealed ends
        self._outline: Outline | None = None  # what was read, and is not in the view yet,
        self._segments: dict[int, Segment] = {}  # because another read was silent
        self.confirmed_at: float = float("-inf")
        self.loaded: bool = False
        # Fires when the view next moves by what was read or told, not by own commits.
        self.news: Signal = Signal()

    @property
    def shape(self) -> Shape:
        """The shape of the log, as far as this node knows."""
        return self.head.shape

    def refresh(self) -> Process[None]:
        """Read the head and everything below it that the view lacks.

        What does not continue the view goes into the log, and all of it is read once more.
        Raises `StoreSilent`, `broken` when it does not fit then either.
        """
        try:
            yield from self._refresh()
            return
        except InvariantBroken as broken:
            yield Note(f"what the store holds does not fit: {broken}", broken=True)
        self._outline, self._segments = None, {}
        try:
            yield from self._refresh()
        except InvariantBroken as broken:
            raise StoreSilent(str(broken), broken=True) from broken

    def _refresh(self) -> Process[None]:
        asked_at = self.clock.now
        head = yield from self._read_head()
        while head.version > self.head.version and head.base > self.view.slot:
            if self._loading:
                yield Wait(self._loading)
            elif not (yield from self._load_alone(head)):
                older, head = head, (yield from self._read_head())
                if head.version <= older.version:
                    text = f"{HEAD} has let go of {head.sealed} segments, and {COMPACTED} has runs of more"
                    raise InvariantBroken(f"HeadNeverReturns: {text}: {TORN}")
        yield from self._follow(head, head.base, head.tail)
        if self.head.version == head.version:  # not if a newer one was learnt meanwhile
            self.trace("Refresh", steps.known, head)
        self._confirm(asked_at)

    def found(self) -> Process[None]:
        """Make the log, if it is not there; from then on its shape stands. Raises `StoreSilent`."""
        patience = Patience()
        yield from self.refresh()
        while not self.head.version and patience.lasts:
            old, asked_at = self.head, self.clock.now
            new = Head(old.heading._replace(version=1, by=self._node), [])
            outcome = yield from call(Cas(HEAD, None, new.value, create=True))
            patience.had(outcome)
            if isinstance(outcome, Ok) and self.head is old:
                self.changed(new, asked_at)
            else:
                yield from self.refresh()
        if not self.head.version:
            raise StoreSilent("the log may be made or not: the store gave no clear answer")

    def committed(self, head: Head, entries: list[Entry], asked_at: float) -> None:
        """Take an own commit: `head` replaced this replica's head at or after `asked_at`."""
        self.view.fold(self.head.end, entries)
        self._move_to(head)
        self.trace("Commit", steps.committed, head, entries)
        self._confirm(asked_at)

    def changed(self, head: Head, asked_at: float) -> None:
        """Take an own change of the head's state, made at or after `asked_at`."""
        self._move_to(head)
        self.trace("Refresh", steps.known, head)
        self._confirm(asked_at)

    def learn(self, answer: HandedOver, asked_at: float) -> Process[None]:
        """Take what a peer answered to a question asked at `asked_at`; it may be older than the view.

        A view too far behind for the answer is read from the store: the peer would only ever say the same,
        and whether the asker's batch is in the log stay open for ever. Raises `StoreSilent`.
        """
        try:
            yield from self._follow_peer(answer)
        except InvariantBroken as broken:
            yield Note(f"what a peer showed does not fit: {broken}", broken=True)
            return
        if self.view.slot >= answer.slot + len(answer.entries):
            self._confirm(asked_at + answer.held_s)
        else:
            yield from self.refresh()

    def share(self, slot: int, held_s: float) -> HandedOver:
        """The answer for a peer whose view reaches to `slot`."""
        heading = self.head.heading
        entries = self.view.since(slot)
        if entries is None:  # too far behind: it must read the store
            return HandedOver(self.view.slot, [], heading, held_s)
        return HandedOver(min(slot, self.view.slot), entries, heading, held_s)

    def _follow_peer(self, answer: HandedOver) -> Process[None]:
        slot, entries, heading, _ = answer
        if slot > self.view.slot or heading.version <= self.head.version:
            return
        base = heading.base
        known = self.view.since(base) if base < slot else []
        if known is None:
            return
        tail = [*known[: max(0, slot - base)], *entries[max(0, base - slot) :]]
        yield from self._follow(Head(heading, tail), slot, entries)
        self.trace("Answered", steps.known, self.head)

    def _follow(self, head: Head, slot: int, entries: list[Entry]) -> Process[None]:
        if head.version <= self.head.version:
            self.head.found_as(head)
            return  # an older answer came later
        require_after(self.head, head)
        if max(self.view.slot, slot + len(entries)) != head.end:
            raise InvariantBroken(f"ViewIsPrefix: entries to {slot + len(entries)}, not {head.end}")
        if head.shape is not self.head.shape:
            self._require_shape(head)
        self.view.fold(slot, entries)
        self._notice(head)
        self._move_to(head)
        news, self.news = self.news, Signal()
        yield Notify(news)

    def _require_shape(self, head: Head) -> None:
        """A log keeps its shape."""
        old = self.head
        if old.version and head.shape != old.shape:
            raise InvariantBroken(f"ShapeNeverChanges: {old.shape} became {head.shape}")
        try:
            self.limits = self.limits.fitted(head.shape)
        except ValueError as error:
            raise InvariantBroken(
                f"ShapeNeverChanges: this process cannot share it: {error}"
            ) from error

    def _move_to(self, head: Head) -> None:
        self.head = head
        self.policy.head_is_by(head.heading.by, head.version)

    def _notice(self, head: Head) -> None:
        if self.loaded:  # what happened before says nothing of the rate
            by_this = head.heading.by == self._node
            self.policy.others_committed(head.version - self.head.version - by_this)

    def _confirm(self, asked_at: float) -> None:
        self.confirmed_at = max(self.confirmed_at, min(asked_at, self.clock.now))
        if not self.loaded:
            self.loaded = True
            self.policy.others_committed(0)
        self.policy.confirmed(self.confirmed_at)

    def _read_head(self) -> Process[Head]:
        asked_at, known = self.clock.now, self.head
        value = known.value_at_hand

        def decode(found: Json) -> Head:
            return known if value is not None and found is value else head_of(found, known)

        head = yield from read_as(HEAD, decode, value)
        self.policy.store_took(self.clock.now - asked_at)
        return head or self._empty

    def read_index(self) -> Process[Index]:
        """What `compacted` holds. Raises `StoreSilent`."""
        known = self.archive.index  # taken before the read, so what is read is as new or newer
        index = (yield from read_as(COMPACTED, index_of)) or Index()
        index.require_after(known)
        self.archive.learn(index)
        return index

    def unless_old(self, index: Index, reading: Process[T]) -> Process[T | None]:
        """What is read by an index; None when something is missing and there is a newer index.

        A store may replace a run that a page names by another file, and delete it long after
        (`leaderless.table`), while a node stands still. Raises `StoreSilent`, `InvariantBroken`.
        """
        try:
            return (yield from reading)
        except InvariantBroken:
            if (yield from self.read_index()) == index:
                raise
            return None

    def _load_alone(self, head: Head) -> Process[bool]:
        """Load what was sealed below `head`, while no other process does; see `_load`."""
        self._loading = Signal()
        try:
            yield from notifying(self._loading, self._load(head))
        except _HeadIsOlder:
            return False
        finally:
            self._loading = None
        return True

    def _load(self, head: Head) -> Process[None]:
        """Read what was sealed since this replica's head, and fold it (`leaderless.core.headlog.chain`).

        What was read is kept when another read is silent. The view does not move before all of it is there.

        Raises `_HeadIsOlder` when `head` is too old for that: (1) it is read, (2) others seal more, and compact
        what it still has in its tail, (3) the index is read. An outline of that would put the view before it.
        """
        view = self.view
        if self._outline is None or self._outline.slot < view.slot:
            self._outline = Outline(view.slot, view.end, view.placed.keys())
        outline = self._outline
        behind = head.sealed - self.head.sealed > head.shape.segments_per_run
        if behind or not self.loaded:
            yield from self._read_outline(outline, head)

        def answer(number: int | None) -> Process[Segment | Index | None]:
            if number is None:
                return self._read_outline(outline, head)
            return self._read_segment(number)

        first = max(self.head.sealed, outline.sealed)
        reader: Sealed[Segment] = sealed_below(first, head.sealed, READS_AT_ONCE)
        _, segments = yield from resolved(reader, answer)
        self._outline, self._segments = None, {}
        view.skip_to(outline)
        for segment in segments:
            if segment.end > view.slot:
                view.fold(segment.base, segment.entries)

    def _read_outline(self, outline: Outline, head: Head) -> Process[Index]:
        """Add what the index lists. Raises `_HeadIsOlder` when that is more than what `head` has sealed."""
        index = yield from self.read_index()
        if index.end > head.base:
            raise _HeadIsOlder
        parts = [
            (listed, register)
            for listed in index.listed
            if listed.end > outline.slot
            for register in listed.registers
        ]
        for some in windows(parts, self.archive.at_once):
            reading = self.archive.read_all(register for _, register in some)
            if (found := (yield from self.unless_old(index, reading))) is None:
                return (yield from self._read_outline(outline, head))
            for (listed, register), part in zip(some, found, strict=True):
                outline.add(part)
                if register == listed.registers[-1]:
                    outline.slot = listed.end
        outline.sealed = index.sealed
        return index

    def _read_segment(self, number: int) -> Process[Segment | None]:
        """Read a segment and keep it; None when it was deleted. Raises `StoreSilent`."""
        if number in self._segments:
            return self._segments[number]
        segment = yield from read_as(segment_name(number), segment_of)
        if segment is not None:
            self._segments[number] = segment
        return segment


class _HeadIsOlder(Exception):
    """The index has more than a head that was read before it."""
