"""Compaction: sealed segments of all keys become runs (`Run`), in which each key's messages stand together.

The three steps of the Leaderless Log Protocol, each of which may be cut off and done again:

1. write: the run is made from segments FIRST..LAST (every worker makes the same), and then listed in
   `compacted` by a compare-and-set that carries the worker's epoch;
2. delete: the segments of the listed run get tombstones;
3. cursor: `compacted.cursor` moves past them.

Between any two steps every committed offset is readable (`CommittedReadable`): a reader that meets a
tombstone reads `compacted` again, where the run has been listed since step 1. The cursor never passes the
end of the runs (`CursorNeverPassesCompacted`). The node that claims the task does it (`core.claims`).
A new claim first raises `compacted.epoch`, so the update of a stale worker fails.

Before step 1, whatever fills a level of the index goes into a page of the next level (`index`). Every worker
makes the same page, and writes it before step 1 names it. Nothing is deleted for it.

What falls short: who seals a segment compacts, if there is enough. A worker that meets a silent store leaves
the rest to the next full tail. A program that appends little and is closed again may never compact; one that
runs longer looks every 15 s (`leaderless.library.maintenance`).

Contents decide, not names. The index names a run or page only if this worker wrote it, or read back that it
holds what it must (`IndexMatchesRuns`).
"""

import orjson

from leaderless.core.claims import Claims
from leaderless.core.coordination import (
    InvariantBroken,
    StoreSilent,
    create,
    delete,
    read_as,
    replace,
)
from leaderless.core.headlog import trace as steps
from leaderless.core.headlog.index import (
    COMPACTED,
    Index,
    Listed,
    Part,
    decode_part,
    distribute,
    index_of,
    new_page,
    parts_for,
    size_of_run,
)
from leaderless.core.headlog.library import READS_AT_ONCE, windows
from leaderless.core.headlog.records import Run, Segment, merge, segment_name, segment_of
from leaderless.core.headlog.replica import Replica
from leaderless.core.lease import LeaseLost
from leaderless.core.messages import Note
from leaderless.core.pace import Pace
from leaderless.core.process import Process, Sleep, Spawn, gather
from leaderless.core.strategy import Clock

CLAIM = "claim/compaction"
REVIVED_AFTER_LEASES = 8  # a task that kills its worker kills one so often
LOOK_S = 0.1  # between two looks whether another process has compacted


class Compactor:
    """One node's part in compaction."""

    def __init__(self, clock: Clock, replica: Replica, worker: str, pace: Pace) -> None:
        self._clock = clock
        self._replica = replica
        self._pause_s = REVIVED_AFTER_LEASES * pace.lease_s
        self._beat_every_s = pace.lease_s / 8
        self._beat_at = 0.0
        self._claims = Claims(clock, CLAIM, worker, pace)
        self._next = 0  # the first segment that is not known to be in a run
        self._running = False
        self._left_to_another = False
        self._resumes_at: float | None = None

    @property
    def state(self) -> str:
        """What this node's compaction does, and why it waits, in words."""
        if self._resumes_at is not None:
            left_s = max(0.0, self._resumes_at - self._clock.now)
            return f"waits {left_s:.1f} s more: workers crashed several times in a row"
        waiting = self._replica.head.sealed - self._next
        if self._running:
            return f"compacts, or waits for its claim: {waiting} segments"
        if waiting < self._segments:
            return f"idle: {waiting} of {self._segments} segments"
        return f"left to another worker, or to the next full tail: {waiting} segments"

    @property
    def _segments(self) -> int:
        """How many segments become a run."""
        return self._replica.shape.segments_per_run

    @property
    def running(self) -> bool:
        """Whether this node compacts, or waits for a claim."""
        return self._running

    @property
    def left_to_another(self) -> bool:
        """Whether this node stopped because a live worker of another node has the claim."""
        return self._left_to_another

    def consider(self) -> Process[None]:
        """Begin to compact if there is enough; called by the node that sealed a segment."""
        self._left_to_another = False
        if self._is_due:
            self._running = True
            yield Spawn(self._run())

    @property
    def _is_due(self) -> bool:
        return not self._running and self._replica.head.sealed - self._next >= self._segments

    def finish(self) -> Process[None]:
        """Compact until what is sealed is in runs, or the store does not take it.

        While a live worker of another process has the claim, it waits.
        """
        yield from self._replica.refresh()
        while True:
            self._left_to_another = False
            if self._is_due:
                self._running = True
                yield from self._run()
            if not self._running and not self._left_to_another:
                return
            yield Sleep(self._clock.now + LOOK_S)

    def _run(self) -> Process[None]:
        try:
            while self._replica.head.sealed - self._next >= self._segments:
                if (yield from self._claims.claim()) is None:
                    if not self._claims.dead:
                        self._left_to_another = True
                        break
                    yield from self._pause_and_revive()
                    continue
                yield from self._compact()
                yield from self._claims.release(done=True)
        except (StoreSilent, LeaseLost):
            pass  # the next worker goes on where this one stopped
        finally:
            self._running = False

    def _pause_and_revive(self) -> Process[None]:
        """Workers crashed several times in a row, for a reason that may pass: go on, but not at once."""
        yield Note(
            f"compaction failed several times in a row; it is tried again in {self._pause_s:g} s"
        )
        self._resumes_at = self._clock.now + self._pause_s
        try:
            yield Sleep(self._resumes_at)
        finally:
            self._resumes_at = None
        yield from self._claims.revive()

    def _compact(self) -> Process[None]:
        """One task, from wherever its last worker stopped."""
        self._beat_at = self._clock.now  # the claim itself has shown it
        index = yield from self._take_over()
        unfinished = index.unfinished
        if unfinished or self._replica.head.sealed - index.cursor >= self._segments:
            self._replica.trace("Claim", steps.claimed, index)
            try:
                if not unfinished:  # or else a worker stopped between steps 1 and 3
                    index = yield from self._write(index)
                index = yield from self._finish(index)
            except LeaseLost:
                self._replica.trace("Release")
                raise
            except StoreSilent:
                self._replica.trace("GiveUp")
                raise
            self._replica.trace("Release")
        self._next = index.cursor

    def _take_over(self) -> Process[Index]:
        """Raise the index's epoch to the claim's: from now on every older worker's update fails."""
        old, index = yield from self._read_index()
        if index.epoch >= self._claims.epoch:
            raise LeaseLost(CLAIM)
        return (yield from self._update(old, index._replace(epoch=self._claims.epoch)))

    def _write(self, index: Index) -> Process[Index]:
        """Step 1."""
        listed = yield from self._paged(index.listed)
        segments = yield from self._read_segments(index.cursor)
        run = merge(segments)
        last = index.cursor + len(segments) - 1
        new = Listed(0, index.cursor, last, run.base, run.end, 1, size_of_run(run))
        yield from self._holds(new.register(), run)
        yield from self._beat()
        return (yield from self._update(index, index._replace(listed=(*listed, new))))

    def _read_segments(self, first: int) -> Process[list[Segment]]:
        """The segments of the next run: `segments_per_run` of them, or fewer with `run_bytes`."""
        segments: list[Segment] = []
        size, most = 0, self._replica.shape.run_bytes
        at_once = 1  # one large segment may be enough, and then no other is read for nothing
        while len(segments) < self._segments and size < most:
            begins = first + len(segments)
            names = [segment_name(each) for each in range(begins, begins + at_once)]
            for segment in (yield from gather([read_as(name, segment_of) for name in names])):
                if segment is None:
                    raise LeaseLost(CLAIM)  # another worker is further on
                segments.append(segment)
                size += len(orjson.dumps(segment.value))
                if size >= most:
                    break
            at_once = min(2 * at_once, READS_AT_ONCE, self._segments - len(segments))
        return segments

    def _paged(self, listed: tuple[Listed, ...]) -> Process[tuple[Listed, ...]]:
        """What the index lists, with a page in place of the last ones of a level that is full."""
        count = self._replica.shape.page_children
        while len(levels := {each.level for each in listed[-count:]}) == 1 and len(listed) >= count:
            page = yield from self._write_page(listed[-count:], levels.pop() + 1)
            listed = (*listed[:-count], page)
        return listed

    def _write_page(self, children: tuple[Listed, ...], level: int) -> Process[Listed]:
        """Write all parts of a page. Raises `InvariantBroken` when other parts have their names.

        A part has what some parts of each child have, and those go into no other: so parts are made a few
        at a time, which bounds the memory that they take.
        """
        first, last, shape = children[0], children[-1], self._replica.shape
        parts = parts_for(sum(child.size for child in children), shape.page_bytes)
        page = Listed(level, first.first, last.last, first.base, last.end, parts, 0)
        stripes = min(parts, *(child.parts for child in children))
        for stripe in range(stripes):
            drafts = {part: new_page(children) for part in range(stripe, parts, stripes)}
            sources = [
                (place, child.register(source))
                for place, child in enumerate(children)
                for source in range(stripe, child.parts, stripes)
            ]
            for some in windows(sources, READS_AT_ONCE):
                found = yield from self._replica.library.read_all(name for _, name in some)
                for (place, _), source in zip(some, found, strict=True):
                    distribute(source, place, drafts, parts)
                yield from self._beat()
            for part, draft in drafts.items():
                yield from self._holds(page.register(part), draft)
                yield from self._beat()
                page = page._replace(size=page.size + draft.size)
        return page

    def _beat(self) -> Process[None]:
        """Show that this worker is alive, if it has not just done so: each step of a task may call this."""
        if self._clock.now >= self._beat_at + self._beat_every_s:
            self._beat_at = self._clock.now
            yield from self._claims.beat()

    def _holds(self, register: str, part: Part) -> Process[None]:
        """Write a run or a part of a page. Raises `InvariantBroken` when its register holds something else."""
        if (yield from create(register, part.value)):
            return
        found = yield from read_as(register, decode_part)
        if found != part and not (isinstance(part, Run) and self._replica.shape.sliced):
            raise InvariantBroken(
                f"IndexMatchesRuns: {register!r} holds something else than it must"
            )

    def _finish(self, index: Index) -> Process[Index]:
        """Steps 2 and 3 for the run that was listed last."""
        trace = self._replica.trace
        trace("CompactWrite", steps.cursor, index)
        numbers = range(index.cursor, index.sealed)
        yield from gather([delete(segment_name(number)) for number in numbers])
        trace("CompactDelete", steps.cursor, index)
        yield from self._beat()
        done = yield from self._update(index, index._replace(cursor=index.sealed))
        trace("CompactCursor", steps.cursor, index)
        return done

    def _read_index(self) -> Process[tuple[Index | None, Index]]:
        library = self._replica.library
        known = library.index  # taken before the read: what is read stood there later
        old = yield from read_as(COMPACTED, index_of)
        index = old or Index()
        index.require_after(known)
        library.learn(index)
        return old, index

    def _update(self, old: Index | None, new: Index) -> Process[Index]:
        """Replace the index; raises `LeaseLost` when another worker was there first, `InvariantBroken`."""
        new.require_after(old or Index())
        if not (yield from replace(COMPACTED, old and old.value, new.value)):
            raise LeaseLost(CLAIM)
        self._replica.library.learn(new)
        return new
