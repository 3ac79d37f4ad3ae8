"""Compaction: sealed segments of all keys become runs (`runs`), in which each key's messages stand together.

The three steps of the Leaderless Log Protocol, each of which may be cut off and done again:

1. write: the run is made from segments FIRST..LAST (every worker makes the same), and then listed in
   `compacted` by a compare-and-set that carries the worker's epoch;
2. delete: the segments of the listed run get tombstones;
3. cursor: `compacted.cursor` moves past them.

Between any two steps every committed offset is readable (`CommittedReadable`): a reader that meets a
tombstone reads `compacted` again, where the run has been listed since step 1. The cursor never passes the
end of the runs (`CursorNeverPassesCompacted`). The node that claims the task does it (`core.claims`).
A new claim first raises `compacted.epoch`, so the update of a stale worker fails.
"""

from leaderless.core.claims import Claims
from leaderless.core.coordination import StoreSilent, create, delete, read_as, replace
from leaderless.core.headlog import trace as steps
from leaderless.core.headlog.records import (
    COMPACTED,
    Index,
    Listed,
    Segment,
    index_of,
    merge,
    sealed_of,
    segment_name,
)
from leaderless.core.headlog.replica import Replica
from leaderless.core.lease import LeaseLost
from leaderless.core.messages import Note
from leaderless.core.process import Process, Sleep, Spawn, gather
from leaderless.core.strategy import Clock

CLAIM = "claim/compaction"
REVIVED_AFTER_LEASES = 8


class Compactor:
    """One node's part in compaction."""

    def __init__(self, clock: Clock, replica: Replica, worker: str, lease_s: float) -> None:
        self._clock = clock
        self._replica = replica
        self._segments = replica.limits.segments_per_run
        self._lease_s = lease_s
        self._claims = Claims(clock, CLAIM, worker, lease_s)
        self._next = 0  # the first segment that is not known to be in a run
        self._running = False

    @property
    def running(self) -> bool:
        """Whether this node compacts, or waits for a claim."""
        return self._running

    def consider(self) -> Process[None]:
        """Begin to compact if there is enough; called by the node that sealed a segment."""
        if not self._running and self._replica.head.sealed - self._next >= self._segments:
            self._running = True
            yield Spawn(self._run())

    def _run(self) -> Process[None]:
        try:
            while self._replica.head.sealed - self._next >= self._segments:
                if (yield from self._claims.claim()) is None:
                    if not self._claims.dead:
                        break  # a live worker has it
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
        pause_s = REVIVED_AFTER_LEASES * self._lease_s
        yield Note(f"compaction failed several times in a row; it is tried again in {pause_s:g} s")
        yield Sleep(self._clock.now + pause_s)
        yield from self._claims.revive()

    def _compact(self) -> Process[None]:
        """One task, from wherever its last worker stopped."""
        index = yield from self._take_over()
        unfinished = index.unfinished
        if unfinished or self._replica.head.sealed - index.cursor >= self._segments:
            self._replica.trace("Claim", steps.claimed, index)
            try:
                if not unfinished:  # or else a worker stopped between steps 1 and 3
                    index = yield from self._write(index)
                yield from self._finish(index)
            except LeaseLost:
                self._replica.trace("Release")
                raise
            self._replica.trace("Release")
        self._next = (yield from self._read_index())[1].cursor

    def _take_over(self) -> Process[Index]:
        """Raise the index's epoch to the claim's: from now on every older worker's update fails."""
        old, index = yield from self._read_index()
        if index.epoch >= self._claims.epoch:
            raise LeaseLost(CLAIM)
        return (yield from self._update(old, index._replace(epoch=self._claims.epoch)))

    def _write(self, index: Index) -> Process[Index]:
        """Step 1."""
        first = index.cursor
        last = first + self._segments - 1
        names = [segment_name(number) for number in range(first, last + 1)]
        found = yield from gather([read_as(name, sealed_of) for name in names])
        segments = [each for each in found if isinstance(each, Segment)]
        if len(segments) < len(names):
            raise LeaseLost(CLAIM)  # another worker is further on
        run = merge(segments)
        listed = Listed(f"run/{first}-{last}", first, last, run.base, run.end)
        yield from create(listed.register, run.value)
        yield from self._claims.beat()
        return (yield from self._update(index, index._replace(runs=(*index.runs, listed))))

    def _finish(self, index: Index) -> Process[None]:
        """Steps 2 and 3 for the run that was listed last."""
        trace, listed = self._replica.trace, index.runs[-1]
        trace("CompactWrite", steps.cursor, index)
        numbers = range(index.cursor, listed.last + 1)
        yield from gather([delete(segment_name(number)) for number in numbers])
        trace("CompactDelete", steps.cursor, index)
        yield from self._claims.beat()
        yield from self._update(index, index._replace(cursor=listed.last + 1))
        trace("CompactCursor", steps.cursor, index)

    def _read_index(self) -> Process[tuple[Index | None, Index]]:
        old = yield from read_as(COMPACTED, index_of)
        return old, old or Index()

    def _update(self, old: Index | None, new: Index) -> Process[Index]:
        """Replace the index; raises `LeaseLost` when another worker was there first."""
        if not (yield from replace(COMPACTED, old and old.value, new.value)):
            raise LeaseLost(CLAIM)
        return new
