"""The replica: a head and the view of everything below it, kept in step.

Law: at every `yield` of its processes, `view.slot == head.end`: the view is exactly
the log up to `head`. So a compare-and-set from `head` that succeeds proves that the view was complete, and
whatever it says about a batch (in the log or not) was true at that moment.
"""

from collections import deque
from collections.abc import Iterable

from leaderless.core.coordination import StoreSilent, read_as
from leaderless.core.headlog import trace as steps
from leaderless.core.headlog.pacer import Pacer
from leaderless.core.headlog.records import (
    COMPACTED,
    EMPTY,
    HEAD,
    Head,
    Index,
    Run,
    Segment,
    head_of,
    index_of,
    sealed_of,
    segment_name,
)
from leaderless.core.headlog.view import InvariantBroken, View
from leaderless.core.limits import Limits
from leaderless.core.messages import Entry, HandedOver, Note
from leaderless.core.pace import Pace
from leaderless.core.process import Process, gather
from leaderless.core.strategy import Clock, Trace


class Replica:
    """One node's copy of the log.

    `confirmed_at` is a time, in seconds, at or after which the view was the whole log. `trace` takes every
    step of the node's protocol; `pacer` is told what was learnt of other nodes and of the store.
    """

    def __init__(
        self,
        clock: Clock,
        node: str,
        writers: Iterable[str],
        limits: Limits,
        trace: Trace | None = None,
        *,
        pacer: Pacer | None = None,
    ) -> None:
        self.trace = trace or Trace()
        self._pacer = pacer or Pacer(clock, node, (node,), Pace())
        self.limits = limits
        self._clock = clock
        self._node = node
        self.head = EMPTY
        self.view = View(writers, limits)
        self.confirmed_at = float("-inf")

    @property
    def now(self) -> float:
        """The time of this step, in seconds."""
        return self._clock.now

    @property
    def loaded(self) -> bool:
        """Whether the log was read at all."""
        return self.confirmed_at > float("-inf")

    def refresh(self) -> Process[None]:
        """Read the head and everything below it that the view lacks.

        Raises `StoreSilent`, also when what was read does not continue the view: that goes into the log.
        """
        try:
            yield from self._refresh()
        except InvariantBroken as broken:
            yield Note(f"what the store holds does not fit: {broken}", broken=True)
            raise StoreSilent(str(broken)) from broken

    def _refresh(self) -> Process[None]:
        asked_at = self._clock.now
        head = yield from self._read_head()
        while head.version > self.head.version and not (yield from self._load_sealed(head)):
            head = yield from self._read_head()
        self._follow(head, head.base, head.tail)
        if self.head.version == head.version:  # not if a newer one was learnt meanwhile
            self.trace("Refresh", steps.known, head)
        self._confirm(asked_at)

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
            self._follow_peer(answer)
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
        if entries is None or not self.view.fits_answer(
            entries
        ):  # too far behind: it must read the store
            return HandedOver(self.view.slot, [], heading, held_s)
        return HandedOver(min(slot, self.view.slot), entries, heading, held_s)

    def _follow_peer(self, answer: HandedOver) -> None:
        slot, entries, heading, _ = answer
        if slot > self.view.slot or heading.version <= self.head.version:
            return
        base = heading.base
        known = self.view.since(base) if base < slot else []
        if known is None:
            return
        tail = [*known[: max(0, slot - base)], *entries[max(0, base - slot) :]]
        self._follow(Head(heading, tail), slot, entries)
        self.trace("Answered", steps.known, self.head)

    def _follow(self, head: Head, slot: int, entries: list[Entry]) -> None:
        if head.version <= self.head.version:
            return  # an older answer came later
        if max(self.view.slot, slot + len(entries)) != head.end:
            raise InvariantBroken(f"ViewIsPrefix: entries to {slot + len(entries)}, not {head.end}")
        self.view.fold(slot, entries)
        self._notice(head)
        self._move_to(head)

    def _move_to(self, head: Head) -> None:
        self.head = head
        self._pacer.head_is_by(head.heading.by)

    def _notice(self, head: Head) -> None:
        if not self.loaded:  # what happened before says nothing of the rate
            self._pacer.others_committed(0, 0)
            return
        commits = head.version - self.head.version - (head.heading.by == self._node)
        batches = head.end - self.head.end if commits else 0
        self._pacer.others_committed(commits, batches)

    def _confirm(self, asked_at: float) -> None:
        self.confirmed_at = max(self.confirmed_at, min(asked_at, self._clock.now))
        self._pacer.confirmed(self.confirmed_at)

    def _read_head(self) -> Process[Head]:
        asked_at = self._clock.now
        head = yield from read_as(HEAD, head_of)
        self._pacer.store_took(self._clock.now - asked_at)
        return head or EMPTY

    def _load_sealed(self, head: Head) -> Process[bool]:
        """Fold what was sealed since this replica's head: runs and segments, all read side by side.

        False when `head` is too old for that: (1) it is read, (2) others seal more, and compact what it
        still has in its tail, (3) the index is read. Folding that run would put the view before the head.
        """
        index = Index()
        if not self.loaded:
            index = yield from self._read_index()
        while index.end <= head.base:
            if (yield from self._load(head, index)):
                return True
            # A segment was compacted meanwhile. Its run was listed before it was deleted.
            index = yield from self._read_index()
        return False

    def _read_index(self) -> Process[Index]:
        return (yield from read_as(COMPACTED, index_of)) or Index()

    def _load(self, head: Head, index: Index) -> Process[bool]:
        """Fold runs and then segments; False, and nothing folded, when a segment was gone."""
        slot, sealed = self.view.slot, self.head.sealed
        runs = [run for run in index.runs if run.end > slot]
        if index.runs:
            sealed = max(sealed, index.runs[-1].last + 1)
        numbers = range(sealed, head.sealed)
        wanted = [run.register for run in runs] + [segment_name(number) for number in numbers]
        values = yield from gather([_read_sealed(register) for register in wanted])
        if None in values:
            return False
        in_memory: deque[tuple[str, Run]] = deque()
        for register, value in zip(wanted, values, strict=True):
            if isinstance(value, Run):
                self.view.fold_run(value)
                in_memory.append((register, value))
                while self.view.bytes > self.limits.memory_bytes and in_memory:
                    self.view.evict(*in_memory.popleft())
            elif value and value.base + len(value.entries) > self.view.slot:
                self.view.fold(value.base, value.entries)
        return True


def _read_sealed(register: str) -> Process[Segment | Run | None]:
    """What was sealed in a register, None when it was deleted. Raises `StoreSilent`, `InvariantBroken`."""
    found = yield from read_as(register, lambda value: (sealed_of(value),))
    if found is None:
        raise InvariantBroken(f"CommittedReadable: {register} is missing")
    return found[0]
