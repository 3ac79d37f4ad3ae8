"""The consumer side: polls and committed offsets, answered from the view.

A view older than the freshness bound is renewed first: one read of the head, however many requests wait
for it. With a bound of 0 that read begins after the request came, so polls are linearizable. A poll that ends
below what the view has is not newer after a read, so it needs none: messages never change.
"""

from dataclasses import dataclass, field

from leaderless.core.coordination import StoreSilent
from leaderless.core.headlog import trace as steps
from leaderless.core.headlog.archive import READS_AT_ONCE, windows
from leaderless.core.headlog.commits import Committed, DurableCommits
from leaderless.core.headlog.memory import Memory
from leaderless.core.headlog.replica import Replica
from leaderless.core.headlog.view import cut, require_contiguous
from leaderless.core.headlog.writer import Writer
from leaderless.core.messages import (
    CommitOffsets,
    CommitOffsetsOk,
    ListCommittedOffsets,
    ListCommittedOffsetsOk,
    Offsets,
    Pairs,
    Poll,
    PollOk,
    Refresh,
    RefreshOk,
    Reply,
)
from leaderless.core.process import Notify, Process, Signal, Spawn, Wait, gather
from leaderless.core.strategy import Context

Messages = dict[str, Pairs]  # `{key: [[offset, msg], ...]}`


@dataclass(slots=True, eq=False)
class _Reading:
    """A read of the head: since when, its end, and why it failed."""

    since: float
    done: Signal = field(default_factory=Signal)
    silent: StoreSilent | None = None


class ConsumerService:
    """Answers readers of one node."""

    def __init__(self, context: Context, replica: Replica, writer: Writer, memory: Memory) -> None:
        options = context.options
        self._clock = context.clock
        self._freshness_s = options.freshness_s
        self._durable = options.durable_commits
        self._commits = DurableCommits(context, replica, writer)
        self._replica = replica
        self._writer = writer
        self._memory = memory
        self._reading: _Reading | None = None

    def poll(self, event: Poll) -> Process[None]:
        """Answer with a contiguous run of each key, of some keys if the runs of all take too long to read."""
        came_at, limits, view = self._clock.now, self._replica.limits, self._replica.view
        messages_max = min(event.messages_max or limits.poll_messages, limits.poll_messages)
        if self._is_stale and not all(
            view.fills(key, offset, messages_max) for key, offset in event.offsets.items()
        ):
            yield from self._freshen()
        msgs, archived, left = self._in_memory(event.offsets, messages_max)
        if archived:
            answer_at = came_at + limits.answer_s
            until = (self._clock.now + answer_at) / 2  # then what is under way has as long again
            yield from self._read_back(archived, messages_max, msgs, left, until)
        if self._replica.trace.on:
            for key, offset in event.offsets.items():
                self._replica.trace("Poll", steps.polled, key, offset, msgs.get(key, []))
        yield Reply(event.request, PollOk(msgs))

    def refresh(self, event: Refresh) -> Process[None]:
        """Answer when the view has all that was acknowledged before."""
        yield from self._freshen()
        yield Reply(event.request, RefreshOk())

    def _in_memory(
        self, offsets: Offsets, messages_max: int
    ) -> tuple[Messages, list[tuple[str, int]], int]:
        """What the view has of each key from its offset on, up to `answer_bytes` together.

        Then the keys that begin in runs, and how many bytes are left for them. A key for which no room is left
        is in neither: it is one poll further on.
        """
        view, left = self._replica.view, self._replica.limits.answer_bytes
        msgs: Messages = {}
        archived: list[tuple[str, int]] = []
        for key, offset in offsets.items():
            if left <= 0:
                break
            run = view.read(key, offset, messages_max)
            if run is None:
                archived.append((key, offset))
            elif run:
                require_contiguous(key, max(0, offset), run)
                msgs[key], size = cut(run, left)
                left -= size
        return msgs, archived, left

    def _read_back(
        self,
        archived: list[tuple[str, int]],
        messages_max: int,
        msgs: Messages,
        left: int,
        until: float,
    ) -> Process[None]:
        """Add what runs have of each key, up to `left` bytes together; one message if there is any.

        A key for which no room is left, or no time before `until`, is left out.
        """
        for some in windows(archived, READS_AT_ONCE):
            if left <= 0 or (msgs and self._clock.now >= until):
                break
            reads = [
                self._memory.read(key, offset, messages_max, len(archived)) for key, offset in some
            ]
            found = yield from gather(reads)
            for (key, offset), run in zip(some, found, strict=True):
                if run and left > 0:
                    require_contiguous(key, max(0, offset, run[0][0]), run)
                    msgs[key], size = cut(run, left)
                    left -= size

    def list_committed_offsets(self, event: ListCommittedOffsets) -> Process[None]:
        """Answer with the highest committed offset of each key.

        Durable ones are read from registers, and from the log what has moved there. Of deferred ones this
        node knows its own, and what is in the log. So after a restart, or on another node, a deferred one
        may be missing for a while.
        """
        yield from self._freshen()
        durable = (yield from self._commits.read()) if self._durable else Committed()
        if self._replica.view.slot < durable.slot:
            yield from self._replica.refresh()
        known = [self._replica.view.committed, self._writer.pending.commits]
        known += [durable.offsets, self._commits.held]  # the latter: written meanwhile
        found = {key: [some[key] for some in known if key in some] for key in event.keys}
        offsets = {key: max(some) for key, some in found.items() if some}
        yield Reply(event.request, ListCommittedOffsetsOk(offsets))

    def commit_offsets(self, event: CommitOffsets) -> Process[None]:
        """Keep committed offsets: in the store at once, or in memory until the next batch.

        A crash loses those in memory. Then messages are delivered again; none is ever passed over.
        """
        if self._durable:
            yield from self._commits.commit(event.offsets)
        else:
            yield from self._writer.commit_offsets(event.offsets)
        yield Reply(event.request, CommitOffsetsOk())

    @property
    def _is_stale(self) -> bool:
        return self._replica.confirmed_at < self._clock.now - self._freshness_s

    def _freshen(self) -> Process[None]:
        """Return when the view is within the freshness bound, counted from now."""
        oldest = self._clock.now - self._freshness_s
        while self._replica.confirmed_at < oldest:
            reading = self._reading
            if reading is None or reading.since < oldest:
                reading = self._reading = _Reading(self._clock.now)
                yield Spawn(self._read(reading))
            yield Wait(reading.done)
            if reading.silent:
                raise reading.silent

    def _read(self, reading: _Reading) -> Process[None]:
        try:
            yield from self._replica.refresh()
        except StoreSilent as silent:
            reading.silent = silent
        if self._reading is reading:
            self._reading = None
        yield Notify(reading.done)
