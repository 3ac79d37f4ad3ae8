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

Who seals a segment compacts, if there is enough: one run under a claim. Where `Limits.compaction_bytes` says
so, it makes several at once, and goes on under its claim while there is enough. Then it also holds up its own
commits while more than twice as much waits.

What falls short: a worker that meets a silent store leaves the rest to the next full tail, or to the next look
of a program that appends (`leaderless.upkeep.maintenance`). A process that appends beside the one that
compacts does not wait for it.

Contents decide, not names. The index names a run or page only if this worker wrote it, or read back that it
holds what it must (`IndexMatchesRuns`).
"""

from collections import deque
from collections.abc import Sequence

import orjson

from leaderless.core.claims import Claims, LeaseLost
from leaderless.core.coordination import (
    InvariantBroken,
    StoreSilent,
    create,
    delete,
    read_as,
    replace,
)
from leaderless.core.headlog import trace as steps
from leaderless.core.headlog.archive import READS_AT_ONCE, windows
from leaderless.core.headlog.index import (
    COMPACTED,
    Index,
    IndexEntry,
    Part,
    decode_part,
    distribute,
    new_page,
    parts_for,
    size_of_run,
)
from leaderless.core.headlog.records import Run, Segment, merge, segment_name, segment_of
from leaderless.core.headlog.replica import Replica
from leaderless.core.messages import Note
from leaderless.core.pace import Pace
from leaderless.core.process import Notify, Process, Signal, Sleep, Spawn, Wait, gather
from leaderless.core.strategy import Clock

CLAIM = "claim/compaction"
REVIVED_AFTER_LEASES = 8  # a task that kills its worker kills one so often
LOOK_S = 0.05  # between two looks whether compaction has come further
SIZES_KEPT = 4_096  # of segments that this node has sealed


def runs_in(listed: Sequence[IndexEntry]) -> tuple[IndexEntry, ...]:
    """The runs that are in no page yet, of what an index lists."""
    return tuple(each for each in listed if not each.level)


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
        # The segments that this node has sealed from there on, with their bytes, and these together.
        self._sizes: deque[tuple[int, int]] = deque()
        self._bytes = 0
        self._passed = Signal()  # fires when runs were made
        self.behind: bool = False  # whether this node compacts, and too much waits
        self._running = False
        self._left_to_another = False
        self._whole = 0  # segments below it go into runs and pages that they do not fill
        self._gave_up = ""  # why the last run of this node ended before its end
        self._resumes_at: float | None = None

    @property
    def state(self) -> str:
        """What this node's compaction does, and why it waits, in words."""
        if self._resumes_at is not None:
            left_s = max(0.0, self._resumes_at - self._clock.now)
            return f"waits {left_s:.1f} s more: workers crashed several times in a row"
        waiting = self.waiting
        if self._running:
            return f"compacts, or waits for its claim: {waiting} segments"
        if not self._fills_a_run:
            return f"idle: {waiting} of {self._segments} segments"
        return f"left to another worker, or to the next full tail: {waiting} segments"

    @property
    def _segments(self) -> int:
        """How many segments become a run."""
        return self._replica.shape.segments_per_run

    @property
    def busy(self) -> bool:
        """Whether this node compacts, and waits for no other worker."""
        return self._running and not self._claims.waits and self._resumes_at is None

    @property
    def waiting(self) -> int:
        """How many segments wait, as far as this node knows."""
        return self._replica.head.sealed - self._first

    @property
    def _first(self) -> int:
        return max(self._next, self._replica.archive.index.cursor)

    @property
    def _waiting_bytes(self) -> int:
        """Those of segments that this node has sealed, and that are in no run."""
        sizes = self._sizes
        while sizes and (sizes[0][0] < self._first or len(sizes) > SIZES_KEPT):
            self._bytes -= sizes.popleft()[1]
        if sizes and sizes[-1][0] >= self._replica.head.sealed:  # the head has not let go of it
            return self._bytes - sizes[-1][1]
        return self._bytes

    @property
    def _fills_a_run(self) -> bool:
        listed = self._replica.archive.index.listed
        if (
            self._whole
            and min([self._first, *(run.first for run in runs_in(listed))]) < self._whole
        ):
            return True
        enough = self._waiting_bytes >= self._replica.shape.run_bytes
        return self.waiting >= (1 if enough else self._segments)

    def consider(self, number: int = -1, size: int = 0) -> Process[None]:
        """Begin to compact if there is enough; called by the node that sealed the segment `number`.

        `size`: about its bytes.
        """
        if number >= 0:
            self._sizes.append((number, size))
            self._bytes += size
        self._left_to_another = False
        if self._is_due:
            self._running = True
            yield Spawn(self._run())
        self._look_behind()

    @property
    def _is_due(self) -> bool:
        return not self._running and self._fills_a_run

    def catch_up(self) -> Process[None]:
        """While this node is behind with its compaction, wait until it has made runs.

        So a producer that is faster commits once for them.
        """
        passed = self._passed
        while self.behind and self.busy and not passed.fired:
            yield Wait(passed, self._clock.now + LOOK_S)

    def finish(self, *, whole: bool = False) -> Process[None]:
        """Compact until what is sealed is in runs. Raises `StoreSilent` when it comes no further.

        While a live worker of another process has the claim, it waits. `whole`: what is sealed now goes into
        runs and pages, also where it does not fill them: then no start needs the files of these runs.
        """
        yield from self._replica.refresh()
        if whole:
            yield from self._replica.read_index()
            self._whole = self._replica.head.sealed
        try:
            yield from self._until_done()
        finally:
            self._whole = 0

    def _until_done(self) -> Process[None]:
        while True:
            self._left_to_another = False
            if self._is_due:
                self._running = True
                yield from self._run()
                if self._gave_up:
                    yield from self._look_further(self._replica.archive.index)
                    continue
            if not self._running and not self._left_to_another:
                return
            yield Sleep(self._clock.now + LOOK_S)

    def _look_further(self, before: Index) -> Process[None]:
        """After this node gave up: see whether others have come further than the index `before`."""
        first, index = self._first, (yield from self._replica.read_index())
        self._next = index.cursor
        if self._fills_a_run and (self._first, index.listed) == (first, before.listed):
            raise StoreSilent(f"{self.waiting} segments from {first} on wait: {self._gave_up}")

    def _run(self) -> Process[None]:
        self._gave_up = ""
        try:
            while self._fills_a_run:
                if (yield from self._claims.claim()) is None:
                    if not self._claims.dead:
                        self._left_to_another = True
                        break
                    yield from self._pause_and_revive()
                    continue
                yield from self._compact()
                yield from self._claims.release(done=True)
        except (StoreSilent, LeaseLost) as error:
            self._gave_up = str(error)  # the next worker goes on where this one stopped
        finally:
            self._running = self.behind = False

    def _look_behind(self) -> None:
        most = 2 * self._replica.limits.compaction_bytes
        self.behind = self._running and self._waiting_bytes > most > 0

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
        """One task, from wherever its last worker stopped, and further ones while this node is to keep pace."""
        self._beat_at = self._clock.now  # the claim itself has shown it
        index = yield from self._take_over()
        self._next, goes_on = index.cursor, True
        while goes_on and (index.unfinished or self._fills_a_run):
            index = yield from self._pass(index)
            self._next, goes_on = index.cursor, self._replica.limits.compaction_bytes > 0
            self._look_behind()
            passed, self._passed = self._passed, Signal()
            yield Notify(passed)

    def _pass(self, index: Index) -> Process[Index]:
        """The three steps, or those that another worker has left."""
        self._replica.trace("Claim", steps.claimed, index)
        try:
            if not index.unfinished:
                index = yield from self._write(index)
            if index.unfinished:  # else it has made a page alone
                index = yield from self._finish(index)
        except LeaseLost:
            self._replica.trace("Release")
            raise
        except StoreSilent:
            self._replica.trace("GiveUp")
            raise
        self._replica.trace("Release")
        return index

    def _take_over(self) -> Process[Index]:
        """Raise the index's epoch to the claim's: from now on every older worker's update fails."""
        index = yield from self._replica.read_index()
        if index.epoch >= self._claims.epoch:
            raise LeaseLost(
                f"{COMPACTED!r} is of epoch {index.epoch}, and {CLAIM!r} of {self._claims.epoch}"
            )
        return (yield from self._update(index, index._replace(epoch=self._claims.epoch)))

    def _write(self, index: Index) -> Process[Index]:
        """Step 1."""
        listed = yield from self._paged(index)
        # So many that a page takes all; one at least, whatever the index lists.
        most = self._replica.shape.page_children - len(runs_in(listed))
        first, made = index.cursor, []
        for segments in (yield from self._read_runs(first, max(1, most))):
            run = merge(segments)
            last = first + len(segments) - 1
            made.append((IndexEntry(0, first, last, run.base, run.end, 1, size_of_run(run)), run))
            first = last + 1
        yield from gather([self._holds(new.register(), run) for new, run in made])
        yield from self._beat()
        new = (*listed, *(each for each, _ in made))
        return (yield from self._update(index, index._replace(listed=new)))

    def _read_runs(self, first: int, most: int) -> Process[list[list[Segment]]]:
        """The segments of the next runs: one, or at most `most` while they have `compaction_bytes`.

        A run has `segments_per_run` of them, or fewer with `run_bytes`; only the first one may have less.
        """
        shape, sealed = self._replica.shape, self._replica.head.sealed
        runs: list[list[Segment]] = []
        read: list[Segment] = []  # that are in no run yet
        at_once = 1  # one large segment may be enough, and then no other is read for nothing
        left = max(1, self._replica.limits.compaction_bytes)
        while len(runs) < most and left > 0:
            segments: list[Segment] = []
            size = 0
            while len(segments) < self._segments and size < shape.run_bytes:
                if not read:
                    count = min(at_once, READS_AT_ONCE, self._segments - len(segments))
                    numbers = range(first, min(first + count, sealed))
                    read = yield from gather([self._read_segment(each) for each in numbers])
                    first += len(read)
                    at_once *= 2
                if not read:
                    break
                segments.append(read.pop(0))
                size += len(orjson.dumps(segments[-1].value))
            enough = len(segments) == self._segments or size >= shape.run_bytes
            if not segments or (runs and not enough):
                break
            runs.append(segments)
            left -= size
            at_once = len(segments)  # the next run may be like this one
        return runs

    def _read_segment(self, number: int) -> Process[Segment]:
        segment = yield from read_as(segment_name(number), segment_of)
        if segment is None:
            raise LeaseLost(f"segment {number} is deleted: another worker is further on")
        return segment

    def _paged(self, index: Index) -> Process[tuple[IndexEntry, ...]]:
        """What the index lists, with a page in place of the last ones of a level that is full."""
        listed, count = index.listed, self._replica.shape.page_children
        while len(levels := {each.level for each in listed[-count:]}) == 1 and len(listed) >= count:
            page = yield from self._write_page(index, listed[-count:], levels.pop() + 1)
            listed = (*listed[:-count], page)
        if (runs := runs_in(listed)) and runs[0].first < self._whole:
            listed = (*listed[: -len(runs)], (yield from self._write_page(index, runs, 1)))
        return listed

    def _write_page(
        self, index: Index, children: tuple[IndexEntry, ...], level: int
    ) -> Process[IndexEntry]:
        """Write all parts of a page. Raises `LeaseLost`; `InvariantBroken` when other parts have their names.

        A part has what some parts of each child have, and those go into no other: so parts are made a few
        at a time, which bounds the memory that they take.
        """
        first, last, shape = children[0], children[-1], self._replica.shape
        parts = parts_for(sum(child.size for child in children), shape.page_bytes)
        page = IndexEntry(level, first.first, last.last, first.base, last.end, parts, 0)
        stripes = min(parts, *(child.parts for child in children))
        for stripe in range(stripes):
            drafts = {part: new_page(children) for part in range(stripe, parts, stripes)}
            sources = [
                (place, child.register(source))
                for place, child in enumerate(children)
                for source in range(stripe, child.parts, stripes)
            ]
            for some in windows(sources, READS_AT_ONCE):
                reading = self._replica.archive.read_all(name for _, name in some)
                if (found := (yield from self._replica.unless_old(index, reading))) is None:
                    raise LeaseLost(f"another worker has changed {COMPACTED!r}")
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
        in_file = isinstance(part, Run) and self._replica.shape.sliced
        if (yield from create(register, part.value)):
            if not in_file:
                self._replica.archive.keep(register, part)  # a page will be made of it
            return
        found = yield from read_as(register, decode_part)
        if found != part and not in_file:
            raise InvariantBroken(
                f"IndexMatchesRuns: {register!r} holds something else than it must"
            )

    def _finish(self, index: Index) -> Process[Index]:
        """Steps 2 and 3 for the runs that were listed last."""
        trace = self._replica.trace
        trace("CompactWrite", steps.cursor, index)
        numbers = range(index.cursor, index.sealed)
        yield from gather([delete(segment_name(number)) for number in numbers])
        trace("CompactDelete", steps.cursor, index)
        yield from self._beat()
        done = yield from self._update(index, index._replace(cursor=index.sealed))
        trace("CompactCursor", steps.cursor, index)
        return done

    def _update(self, old: Index, new: Index) -> Process[Index]:
        """Replace the index; raises `LeaseLost` when another worker was there first, `InvariantBroken`."""
        new.require_after(old)
        if not (yield from replace(COMPACTED, old.value, new.value)):
            raise LeaseLost(f"another worker has changed {COMPACTED!r}")
        self._replica.archive.learn(new)
        return new
