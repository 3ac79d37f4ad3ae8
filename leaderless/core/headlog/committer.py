"""The committer: puts batches into the log, its own node's and those handed over by peers.

Group commit: all batches that wait go into one compare-and-set of the head. It succeeds only from the
very head that the replica is at, so the replica knew the whole log then, and its check that a batch is not
in it yet held: that makes a retry after an unknown outcome, a duplicated hand-over, and a hand-over that its
node gave up and committed itself all safe. Every way to fail (conflict, no answer) ends in the same place:
read the head, see which batches are in the log, go on with the rest.
"""

from contextlib import suppress
from dataclasses import dataclass, field

from leaderless.core.coordination import StoreSilent, create
from leaderless.core.headlog import trace as steps
from leaderless.core.headlog.compaction import Compactor
from leaderless.core.headlog.economics import Company, Rate, reading_ahead_pays
from leaderless.core.headlog.records import HEAD, Head, Segment, segment_name
from leaderless.core.headlog.replica import Replica
from leaderless.core.messages import Batch, Cas, Entry, Mismatch, Missing, Ok, Outcome, Unknown
from leaderless.core.process import Notify, Process, Signal, Sleep, Spawn, Wait, call, gather
from leaderless.core.strategy import Clock

REST_EVERY = 8
REST_EVERY_CONTENDED = 2
ISOLATED_AFTER = 2  # attempts in a row without an outcome
CONTENDED = 0.5  # commits of others a second


@dataclass(slots=True, eq=False)
class Job:
    """A batch to be committed; `done` fires when it is in the log or can never get there.

    It also fires after one attempt that failed, unless this node is the one that commits most. The loser of a
    conflict has learnt the winner; there its batches, own and handed over, do better than in the next race.
    """

    batch: Batch
    arrived_at: float
    until: float  # nobody waits for it after that
    tried: bool = False
    done: Signal = field(default_factory=Signal)


class Committer:
    """Commits jobs one group at a time."""

    def __init__(self, clock: Clock, replica: Replica, node: str, compactor: Compactor) -> None:
        self._clock = clock
        self._replica = replica
        self._limits = replica.limits
        self._node = node
        self._compactor = compactor
        self._jobs: list[Job] = []
        self._running = False
        self._failures = 0  # in a row
        self._unknowns = 0  # attempts without an outcome, since batches last went together
        self._passed = 0  # batches that went alone since the last of them
        self._refuted: Head | None = None  # the head that failed, until it was read anew
        self._in_a_row = 0  # commits without a pause
        self._committed_at = float("-inf")
        self._own = Rate()
        self._sealing: Signal | None = None
        self._sealed = -1  # the last segment that is known to be written
        self._company = Company()

    def submit(self, job: Job) -> Process[None]:
        """Take a job; it is worked on while others wait for `job.done`."""
        self._jobs.append(job)
        self._company.arrived(self._clock.now)
        if not self._running:
            self._running = True
            yield Spawn(self._run())

    def _run(self) -> Process[None]:
        try:
            while self._jobs:
                yield from self._linger(self._rest_s())
                with suppress(
                    StoreSilent
                ):  # a job may be in the log, or get there still: ask again
                    yield from self._commit()
                yield from self._settle()
        finally:
            self._running = False

    def _rest_s(self) -> float:
        """Between commits without a pause, now and then a round trip of rest; often while others commit too.

        A node that reaches no peer must commit for itself: it reads the head, and one round trip later
        replaces it. Against an endless row of commits it would lose for ever.
        """
        round_trip_s = self._replica.store.mean_s
        if self._clock.now - self._committed_at > round_trip_s:
            self._in_a_row = 0
        contended = self._replica.contention.rate > CONTENDED
        every = REST_EVERY_CONTENDED if contended else REST_EVERY
        if self._in_a_row % every or not self._in_a_row:
            return 0.0
        return round_trip_s

    def _linger(self, rest_s: float = 0.0) -> Process[None]:
        """Wait for company, after `rest_s`: at least for what arrived together with the first."""
        now, waiting = self._clock.now, len(self._jobs)
        linger_s = self._company.linger_s(self._replica.store.mean_s, now)
        yield Sleep(now + linger_s + rest_s)
        if linger_s:
            self._company.came(len(self._jobs) - waiting)

    def _commit(self) -> Process[None]:
        replica, head = self._replica, self._replica.head
        refuted = head is self._refuted
        if not replica.loaded or refuted or any(job.batch.epoch > head.epoch for job in self._jobs):
            yield from self._look_again()
            head = replica.head
        batches = self._eligible(head)
        if not batches:
            return
        if head.full(self._limits):
            yield from self._seal(head)
            if replica.head is not head:
                return  # another process learnt of a newer head meanwhile
        ends = {key: replica.view.end(key) for batch in batches for key in batch.appends}
        entries = [_entry(batch, ends) for batch in batches]
        size = sum(batch.size for batch in batches)
        yield from self._replace(
            head.with_entries(entries, size, self._node, self._limits), entries
        )

    def _replace(self, new: Head, entries: list[Entry]) -> Process[None]:
        """One compare-and-set from the replica's head; on any other outcome than ok, look again."""
        replica, old, asked_at = self._replica, self._replica.head, self._clock.now
        cas = Cas(HEAD, old.value, new.value, create=old.value is None)
        ahead = reading_ahead_pays(replica.contention, replica.store.mean_s, self._failures)
        calls = [call(cas), _if_heard(replica.refresh())] if ahead else [call(cas)]
        replica.trace("Try", steps.carried, entries)
        outcome = (yield from gather(calls))[0]
        if isinstance(outcome, Ok | Mismatch | Missing):
            replica.store.took(self._clock.now - asked_at)
        self._count(isinstance(outcome, Ok))
        self._learn_of_refusals(outcome, entries)
        if replica.head is not old:
            return  # another process learnt of a newer head, which includes ours if ours came about
        if isinstance(outcome, Ok):
            replica.committed(new, entries, asked_at)
            if new.full(self._limits):
                yield Spawn(self._seal_ahead(new))
        else:
            if isinstance(outcome, Mismatch | Missing):
                replica.trace("Conflict")
            else:
                replica.trace("Unknown", steps.carried, entries)
            self._refuted = old
            yield from self._look_again()

    def _look_again(self) -> Process[None]:
        """Read the head. If that fails, the next commit begins with it: nothing comes of a refuted head."""
        yield from self._replica.refresh()
        self._refuted = None

    def _learn_of_refusals(self, outcome: Outcome | None, entries: list[Entry]) -> None:
        """Batches go alone after a few unknown outcomes, until the whole row of them got through."""
        if isinstance(outcome, Unknown):
            self._unknowns += 1
            self._passed = 0
        elif isinstance(outcome, Ok) and self._isolates:
            self._passed += len(entries)
            if self._passed >= len(self._jobs):
                self._unknowns = 0

    def _count(self, committed: bool) -> None:
        """Learn how an attempt ended."""
        if committed:
            self._failures = 0
            self._in_a_row += 1
            self._committed_at = self._clock.now
            self._own.happened(1, self._clock.now)
        else:
            self._failures += 1
            self._in_a_row = 0

    def _eligible(self, head: Head) -> list[Batch]:
        """The batches that belong into the log now, each once, up to `commit_bytes`."""
        batches: dict[str, Batch] = {}
        size = 0
        for job in self._in_turn():
            batch = job.batch
            if head.fenced or batch.epoch != head.epoch:
                continue
            if self._replica.view.contains(batch.writer, batch.seq):
                continue
            if batch.writer in batches:
                continue  # its copy, or an older one: a writer's batches enter the log in their order
            size += batch.size
            if batches and (self._isolates or size > self._limits.commit_bytes):
                break
            batches[batch.writer] = batch
            job.tried = True
        return list(batches.values())

    @property
    def _isolates(self) -> bool:
        """Whether batches go alone: the store may refuse one of them, and would refuse all with it."""
        return self._unknowns >= ISOLATED_AFTER

    def _in_turn(self) -> list[Job]:
        """The jobs, those first that wait longest; while they go alone, each is the first one in turn."""
        turn = self._unknowns % max(1, len(self._jobs)) if self._isolates else 0
        return self._jobs[turn:] + self._jobs[:turn]

    def _settle(self) -> Process[None]:
        """Let go of the jobs that are in the log, or can never get there."""
        settled = [job for job in self._jobs if self._is_settled(job)]
        self._jobs = [job for job in self._jobs if job not in settled]
        for job in settled:
            yield Notify(job.done)

    def _is_settled(self, job: Job) -> bool:
        head, batch = self._replica.head, job.batch
        over = (
            self._clock.now >= job.until
            or head.fenced
            or batch.epoch != head.epoch
            or (job.tried and not self._leads)
        )
        return over or self._replica.view.contains(batch.writer, batch.seq)

    @property
    def _leads(self) -> bool:
        """Whether this node commits more often than all others: then it keeps what it could not commit."""
        now = self._clock.now
        return self._own.per_second(now) > self._replica.contention.rate

    def _seal_ahead(self, head: Head) -> Process[None]:
        """Seal beside other work; a commit that needs the room and finds nothing sealed does it again."""
        with suppress(StoreSilent):
            yield from self._seal(head)
        yield from self._compactor.consider()

    def _seal(self, head: Head) -> Process[None]:
        """Write a full tail to its segment, which exists when this ends. Raises `StoreSilent`."""
        while self._sealed != head.sealed:
            if self._sealing:
                yield Wait(self._sealing)
                continue
            self._sealing = Signal()
            silent = None
            try:
                segment = Segment(head.base, head.tail)
                yield from create(segment_name(head.sealed), segment.value)
                self._sealed = head.sealed
                if self._replica.head.base == head.base:  # or others have sealed it, and gone on
                    self._replica.trace("Seal", steps.sealed, head)
            except StoreSilent as error:
                silent = error
            done, self._sealing = self._sealing, None
            yield Notify(done)  # not in a `finally`: a generator must not yield while it is closed
            if silent:
                raise silent


def _if_heard(process: Process[None]) -> Process[None]:
    """Run a process to its end, or until the store is silent."""
    with suppress(StoreSilent):
        yield from process


def _entry(batch: Batch, ends: dict[str, int]) -> Entry:
    """The entry of a batch at the ends of the log: this assigns its offsets. Moves `ends`."""
    appends = {}
    for key, msgs in batch.appends.items():
        appends[key] = ends[key], msgs
        ends[key] += len(msgs)
    return Entry(batch.writer, batch.seq, appends, batch.commits)
