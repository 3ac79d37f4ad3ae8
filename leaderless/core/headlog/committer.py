"""Commits at this node: one process takes all that is to be committed here into one attempt after the other.

It takes along what waits at this node (`writer`), and all batches that peers and callers brought (`brought`).
It goes on while there is more. Every way to fail (conflict, no answer) ends in the same place: read the head,
see which batches are in the log, go on with the rest. `attempt` has the laws of its safety.

    what happens                 in which state     what is done                     state after it
    -------------------------    ---------------    -----------------------------    --------------
    a batch comes, from a        idle               wait for company, then commit    committing
    peer, a caller or a lane     committing         the next commit has it
    what waits here, waited      idle               rest, commit                     committing
    for company                  committing         the next commit has it
    a commit has ended           jobs, or more      wait for company, then commit    committing
                                 else               the lanes go on                  idle

What falls short: while a compare-and-set of this node has no answer, whatever comes here waits for it, though a
peer might reach the store. That is a timeout of the store at most.

*A refusal.* What the store refuses, as of a key that may only read, fails at once where it is certain that no
copy of it is elsewhere (`Job`). So does all that waits here when the log breaks an invariant.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from math import inf
from typing import NamedTuple

from leaderless.core.coordination import InvariantBroken, StoreSilent
from leaderless.core.headlog import attempt
from leaderless.core.headlog.attempt import Attempt, Fate
from leaderless.core.headlog.chain import TORN
from leaderless.core.headlog.compaction import Compactor
from leaderless.core.headlog.conditions import Along, is_beyond, refused_by
from leaderless.core.headlog.pending import Pending, Waiting
from leaderless.core.headlog.records import Head, segment_name
from leaderless.core.headlog.replica import Replica
from leaderless.core.headlog.sealer import Sealer
from leaderless.core.messages import Batch, Failure, Note, Reason
from leaderless.core.process import Notify, Process, Signal, Sleep, Spawn, Trap, Wait

REFUSED = Failure(Reason.REFUSED, "the store refused it, and nothing was appended")


@dataclass(slots=True, eq=False)
class Job:
    """A batch on its way: one of this node, for which all in `waiting` wait, or one that came from elsewhere.

    This node does no more for it when it has come to an `End`; nobody waits for it after `until`. For one that
    came from elsewhere `done` is notified then.

    A batch that is to be committed here also leaves after one attempt that failed, unless this node commits
    most. The loser of a conflict has learnt the winner. There its batches do better than in the next race. One
    that was sent back so, and comes again, `stays`: its node does not reach the winner.

    It is `certain` that a batch is only here while no attempt of it had an unknown outcome, and no peer was
    given it (`HandOvers.gave`). If the store refuses it then, its `failure` is `REFUSED`: it is not in the log,
    and never will be.
    """

    batch: Batch
    until: float
    waiting: list[Waiting] | None = None
    done: Signal | None = None
    since: float = -inf  # it waits for company; -inf: it has done so
    tried: bool = False
    stays: bool = False
    certain: bool = True
    failure: Failure | None = None


class End(Enum):
    """Why a node does no more for a batch."""

    IN_LOG = "it is in the log"
    REJECTED = "no copy of it can get into the log any more"
    LEFT = "nobody waits for it, or it has failed: a copy may get into the log later, or never"


class Lanes(NamedTuple):
    """The batches of this node (`leaderless.core.headlog.writer`), as far as who commits them needs to know.

    `pending`: what is in no batch. `take`: makes a batch of it, if there is a lane. `more`: whether the next
    commit here should do so. `end`: lets go of a batch. `gave`: whether a peer may have one. `carry`: brings it
    into the log by way of peers. `go_on`: after the last commit. `give_up`: refuses all that is in no batch.
    """

    pending: Pending
    take: Callable[[], Process[Job | None]]
    more: Callable[[], bool]
    end: Callable[[Job, End], Iterable[Trap]]
    gave: Callable[[Batch], bool]
    carry: Callable[[Job], Process[None]]
    go_on: Callable[[], Iterable[Trap]]
    give_up: Callable[[Failure], Iterable[Trap]]


class Committer:
    """What one node commits itself.

    `jobs`: what is to be committed; `committing`: a process does so.
    """

    def __init__(self, node: str, lanes: Lanes, replica: Replica, compactor: Compactor) -> None:
        self._node = node
        self._lanes = lanes
        self._replica = replica
        self._clock, self._policy = replica.clock, replica.policy
        self._compactor = compactor
        self._sealer = Sealer(replica)
        self.jobs: list[Job] = []
        self.came: Signal = Signal()  # fires when a batch of a peer comes
        self.committing: bool = False
        self.sealing: int = 0  # tails that are sealed beside other work
        self._refuted: Head | None = None  # the head that failed, until it was read anew

    def add(self, job: Job) -> Process[None] | None:
        """Take a batch; returns what is to be run for it, if nobody commits yet."""
        self.jobs.append(job)
        batch, replica = job.batch, self._replica
        if batch.epoch > replica.head.epoch or (batch.expected and is_beyond(replica.view, batch)):
            self._refuted = replica.head  # it is an old one
        if self.committing:
            return None
        self.committing = True
        return self._commit_after_company()

    def end_of(self, job: Job) -> End | None:
        """Why this node does no more for a batch; None: it does."""
        if self._replica.view.has(job.batch):
            return End.IN_LOG
        if not self._is_alive(job.batch):
            return End.REJECTED
        return End.LEFT if job.failure or self._clock.now >= job.until else None

    def _is_alive(self, batch: Batch) -> bool:
        """Whether it can get into the log: a new epoch keeps it out for ever, or what its condition forbids."""
        head, view = self._replica.head, self._replica.view
        if head.epoch != batch.epoch or head.fenced:
            return False
        if not (batch.expected or view.tokens):
            return True
        looks = head is self._refuted or not is_beyond(view, batch)
        return looks and refused_by(view, batch) is None

    def _commit_after_company(self) -> Process[None]:
        yield from self._wait_for_company()
        yield from self.commit()

    def _wait_for_company(self) -> Process[None]:
        """Wait for company, at least for what came together, then rest.

        No batch of this node waits a second time: after a conflict the view is new, and a wait makes it older.
        """
        while self._policy.gathers_until > self._clock.now:
            self.came = Signal()
            yield Wait(self.came, self._policy.gathers_until)
        since = [job.since for job in self.jobs]
        if self._lanes.pending.waiting:
            since.append(self._lanes.pending.since)
        until, now = self._policy.company_until(min(since, default=-inf)), self._clock.now
        yield Sleep(max(until, now) + self._policy.rest_s())

    def commit(self, rest_s: float = 0.0) -> Process[None]:
        """After a rest, commit until nothing is left to be committed here. Nobody else may commit."""
        self.committing = True
        try:
            if rest_s:
                yield Sleep(self._clock.now + rest_s)
            while True:
                try:
                    if self._compactor.behind:
                        yield from self._compactor.catch_up()
                    yield from self._commit()
                except (StoreSilent, InvariantBroken) as error:
                    yield from self._failed(error)
                yield from self._settle()
                if not self.jobs and not self._lanes.more():
                    break
                yield from self._wait_for_company()
        finally:
            self.committing = False
        yield from self._lanes.go_on()

    @property
    def _of_peers(self) -> int:
        """How many batches of peers have just come into the log."""
        return sum(bool(job.done) and self._replica.view.has(job.batch) for job in self.jobs)

    def _commit(self) -> Process[None]:
        replica = self._replica
        if back_s := self._policy.stands_back_s():
            yield Sleep(self._clock.now + back_s)
            yield from self._look_again()
            return
        if (head := replica.head) is self._refuted or not replica.loaded:
            yield from self._look_again()
            head = replica.head
        while not head.fenced and (job := (yield from self._lanes.take())):
            self.jobs.append(job)  # what waits at this node goes into the log with what is here
        batches, kept = self._eligible(), 0
        if not batches:
            return
        if head.full:
            kept = yield from self._seal(head)
            if not kept or replica.head is not head:
                return
        yield from self._try(attempt.prepare(replica, batches, by=self._node, kept=kept))

    def _seal(self, head: Head) -> Process[int]:
        """Seal a full head and return how many entries its segment holds; 0 if the next commit must see."""
        yield from self._sealer.seal(head)
        kept = self._sealer.kept(head)
        if not kept and self._replica.head is head:  # others have gone on
            yield from self._look_again()
            if self._replica.head is head:  # a segment is made of a head that stood
                text = f"{segment_name(head.sealed)} was made of a newer head than the one that is there"
                raise InvariantBroken(f"HeadNeverReturns: {text}: {TORN}")
        return kept

    def _try(self, tried: Attempt) -> Process[None]:
        """Carry an attempt out; on any other end than a commit, look again."""
        replica = self._replica
        fate = yield from attempt.carry_out(replica, tried, reads_ahead=self._policy.reads_ahead)
        if fate in (Fate.COMMITTED, Fate.FOUND):
            self._policy.attempt_committed(
                len(tried.entries), len(self.jobs), self._of_peers if self._policy.gathers else 0
            )
            if tried.new.full:
                head = tried.new if fate is Fate.COMMITTED else replica.head
                yield Spawn(self._seal_ahead(head))
            return
        self._policy.attempt_failed()
        if fate is Fate.UNKNOWN:
            self._doubt(tried)
        elif fate is Fate.REFUSED:
            self._refuse()
        if replica.head is tried.old:  # no other process learnt of a newer one
            self._refuted = tried.old
            yield from self._look_again()

    def _doubt(self, tried: Attempt) -> None:
        """After an attempt that may have happened, or may still."""
        names = {(entry.writer, entry.seq) for entry in tried.entries}
        for job in self.jobs:
            if (job.batch.writer, job.batch.seq) in names:
                job.certain = False

    def _failed(self, error: StoreSilent | InvariantBroken) -> Process[None]:
        """After a commit that failed. A batch that was tried may be in the log, or get there still."""
        failure = Failure(error.reason, str(error))
        if isinstance(error, InvariantBroken):
            yield Note(failure.text, broken=True)
        elif error.refused:
            self._refuse()
        if is_broken := error.reason is Reason.BROKEN:  # nothing can be committed behind that
            for job in self.jobs:
                job.failure = failure
        if is_broken or not self.jobs:
            yield from self._lanes.give_up(failure)

    def _refuse(self) -> None:
        """After the store has refused what this node needs for a commit: see `Job`."""
        for job in self.jobs:
            given = self._lanes.gave(job.batch)
            if job.certain and job.waiting is not None and not given:
                job.failure = REFUSED

    def _look_again(self) -> Process[None]:
        """Read the head. If that fails, the next commit begins with it: nothing comes of a refuted head."""
        yield from self._replica.refresh()
        self._refuted = None

    def _eligible(self) -> list[Batch]:
        """The batches that belong into the log now, each once, up to `commit_bytes`."""
        batches: dict[str, Batch] = {}
        size, alone = 0, len(self.jobs) > 1 and self._policy.isolates
        along: Along | None = None
        for job in self._in_turn() if alone else self.jobs:
            batch = job.batch
            if (
                batch.writer in batches
                or not self._is_alive(batch)
                or self._replica.view.has(batch)
            ):
                continue  # of a writer, its batches enter the log in their order
            if batch.expected and is_beyond(self._replica.view, batch):
                continue  # until this node has looked
            if along is None and (batch.expected or batch.commits):
                along = Along(batches.values())
            if along and not along.takes(batch):
                continue
            size += batch.size
            if batches and (alone or size > self._replica.limits.commit_bytes):
                break
            batches[batch.writer] = batch
            job.tried = True
        return list(batches.values())

    def _in_turn(self) -> list[Job]:
        """The jobs, those first that wait longest; while they go alone, each is the first one in turn."""
        turn = self._policy.turn % len(self.jobs)
        return self.jobs[turn:] + self.jobs[:turn]

    def _settle(self) -> Process[None]:
        """Let go of the jobs for which nothing more is done here."""
        jobs, self.jobs = self.jobs, []
        for job in jobs:
            end = self.end_of(job)
            if not end and not (job.tried and not job.stays and not self._policy.keeps_losers):
                self.jobs.append(job)
            elif job.done:
                yield Notify(job.done)
            elif end:
                yield from self._lanes.end(job, end)
            else:
                yield Spawn(self._lanes.carry(job))

    def _seal_ahead(self, head: Head) -> Process[None]:
        """Seal a full head beside other work; a commit that finds nothing sealed does it again.

        The head must be known to have stood in the store: what a segment holds is the log for ever.
        """
        self.sealing += 1
        try:
            if head.full:
                with suppress(StoreSilent):
                    yield from self._sealer.seal(head)
        finally:
            self.sealing -= 1
        yield from self._compactor.consider(head.sealed, head.heading.size)
