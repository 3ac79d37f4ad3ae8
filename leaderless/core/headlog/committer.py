"""The committer: puts batches into the log, its own node's and those handed over by peers.

Group commit: all batches that wait go into one attempt (`attempt`), which has the laws of its safety. Every way
to fail (conflict, no answer) ends in the same place: read the head, see which batches are in the log, go on
with the rest. When to try, with whom and how often is the `pacer`'s.
"""

from contextlib import suppress
from dataclasses import dataclass, field

from leaderless.core.coordination import StoreSilent
from leaderless.core.headlog import attempt
from leaderless.core.headlog.attempt import Attempt, Fate
from leaderless.core.headlog.compaction import Compactor
from leaderless.core.headlog.pacer import Pacer
from leaderless.core.headlog.records import HEAD, Head
from leaderless.core.headlog.replica import Replica
from leaderless.core.headlog.sealer import Sealer
from leaderless.core.messages import Batch, Cas, Ok, Outcome, Unknown
from leaderless.core.process import Notify, Process, Signal, Sleep, Spawn, call
from leaderless.core.strategy import Clock


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

    def __init__(
        self, clock: Clock, replica: Replica, node: str, pacer: Pacer, compactor: Compactor
    ) -> None:
        self._clock = clock
        self._replica = replica
        self._node = node
        self._pacer = pacer
        self._compactor = compactor
        self._sealer = Sealer(replica)
        self._jobs: list[Job] = []
        self._running = False
        self._refuted: Head | None = None  # the head that failed, until it was read anew

    @property
    def jobs(self) -> int:
        """How many batches wait here for a commit, those of peers included."""
        return len(self._jobs)

    def submit(self, job: Job) -> Process[None]:
        """Take a job; it is worked on while others wait for `job.done`."""
        self._jobs.append(job)
        self._pacer.job_arrived()
        if not self._running:
            self._running = True
            yield Spawn(self._run())

    def _run(self) -> Process[None]:
        try:
            while self._jobs:
                yield from self._linger()
                with suppress(
                    StoreSilent
                ):  # a job may be in the log, or get there still: ask again
                    yield from self._commit()
                yield from self._settle()
        finally:
            self._running = False

    def _linger(self) -> Process[None]:
        """Wait for company, after a rest: at least for what arrived together with the first.

        No job waits for it a second time: after a conflict the view is new, and each wait makes it older.
        """
        waiting, now = len(self._jobs), self._clock.now
        linger_s = self._pacer.commit_linger_s()
        until = min(job.arrived_at for job in self._jobs) + linger_s
        yield Sleep(max(until, now) + self._pacer.rest_s())
        if until > now:
            self._pacer.jobs_came(len(self._jobs) - waiting)

    def _commit(self) -> Process[None]:
        replica, head = self._replica, self._replica.head
        refuted = head is self._refuted
        if not replica.loaded or refuted or any(job.batch.epoch > head.epoch for job in self._jobs):
            yield from self._look_again()
            head = replica.head
        batches = self._eligible(head)
        if not batches:
            return
        if head.full and not head.closed:
            yield from self._close(head)
            return
        if head.full:
            yield from self._sealer.seal(head)
            if replica.head is not head:
                return  # another process learnt of a newer head meanwhile
            if not self._sealer.kept(head):  # others have gone on
                yield from self._look_again()
                return
        kept = self._sealer.kept(head)
        yield from self._try(attempt.prepare(replica, batches, by=self._node, kept=kept))

    def _close(self, head: Head) -> Process[None]:
        """Keep the processes of the older release from adding to a full tail; see `Head.closed`."""
        new, asked_at = head.as_closed(self._node), self._clock.now
        outcome = yield from call(Cas(HEAD, head.value, new.value))
        if isinstance(outcome, Ok) and self._replica.head is head:
            self._replica.changed(new, asked_at)
        else:
            yield from self._look_again()

    def _try(self, tried: Attempt) -> Process[None]:
        """Carry an attempt out; on any other end than a commit, look again."""
        replica, ahead = self._replica, self._pacer.reads_ahead
        fate = yield from attempt.carry_out(replica, tried, reads_ahead=ahead, heard=self._heard)
        if fate in (Fate.COMMITTED, Fate.FOUND):
            self._pacer.attempt_committed(len(tried.entries), len(self._jobs))
            if tried.new.full:
                head = tried.new if fate is Fate.COMMITTED else replica.head
                yield Spawn(self._seal_ahead(head))
            return
        self._pacer.attempt_failed()
        if replica.head is tried.old:  # no other process learnt of a newer one
            self._refuted = tried.old
            yield from self._look_again()

    def _heard(self, outcome: Outcome, seconds: float) -> None:
        if isinstance(outcome, Unknown):
            self._pacer.attempt_unknown()
        else:
            self._pacer.store_took(seconds)

    def _look_again(self) -> Process[None]:
        """Read the head. If that fails, the next commit begins with it: nothing comes of a refuted head."""
        yield from self._replica.refresh()
        self._refuted = None

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
            if batches and (self._pacer.isolates or size > self._replica.limits.commit_bytes):
                break
            batches[batch.writer] = batch
            job.tried = True
        return list(batches.values())

    def _in_turn(self) -> list[Job]:
        """The jobs, those first that wait longest; while they go alone, each is the first one in turn."""
        turn = self._pacer.turn % max(1, len(self._jobs))
        return self._jobs[turn:] + self._jobs[:turn]

    def _settle(self) -> Process[None]:
        """Let go of the jobs that are in the log, or can never get there."""
        settled = [job for job in self._jobs if self._is_settled(job)]
        self._jobs = [job for job in self._jobs if job not in settled]
        for job in settled:
            yield Notify(job.done)

    def _is_settled(self, job: Job) -> bool:
        head, batch = self._replica.head, job.batch
        return (
            self._replica.view.contains(batch.writer, batch.seq)
            or self._clock.now >= job.until
            or head.fenced
            or batch.epoch != head.epoch
            or (job.tried and not self._pacer.keeps_losers)
        )

    def _seal_ahead(self, head: Head) -> Process[None]:
        """Seal a full head beside other work; a commit that finds nothing sealed does it again.

        The head must be known to have stood in the store: what a segment holds is the log for ever.
        """
        if head.closed:
            with suppress(StoreSilent):
                yield from self._sealer.seal(head)
        yield from self._compactor.consider()
