"""The writer: puts into the log what clients, programs and peers want there.

    what waits --(a lane)--> batch [writer, seq] --> here: one compare-and-set for all batches that are here
                                                 --> a peer: its compare-and-set has it

*Batches.* A node has a few lanes. Each is a writer of its own, with its own numbers, and has one batch at a
time: the next is made when the one before is in the log, can never get there, or has nobody who waits for it. A
batch keeps its name whichever way it goes. So whichever copy is first in the log wins, and every other one is
found to be there already (`attempt`, Law 1). A second batch goes to a peer while the first is under way only
when waiting for it would cost more than the messages.

*Here.* One process takes all that waits at this node, and all batches that peers brought, into one attempt
(`attempt`), which has the laws of its safety. It answers those who wait, and goes on while there is more. Every
way to fail (conflict, no answer) ends in the same place: read the head, see which batches are in the log, go on
with the rest.

*A peer.* Whoever loses a conflict decides again, and now knows the winner. So under contention all hand over to
one node, and it alone finds that it committed last. That is no election: no node waits for it. When it does not
answer in about the time that 19 of 20 answers take, the batch goes another way, too.

*States.* Three small machines run beside each other. Each has a process that sleeps or works while its state is
not the first one.

    flush     of committed offsets without a batch     none -> planned -> none, due
    collect   what waits, for a batch                  idle -> overdue, collecting
    commit    here                                     idle -> committing

    what happens                 in which state                    what is done              state after it
    -------------------------    ------------------------------    ----------------------    --------------
    something waits, or          collecting, or no lane is free    it is taken along
    a lane has come free         committing, and no peer better    the next commit has it
                                 all lanes free, or one pays       wait for company          collecting
                                 else                              sleep `hedge_s`           overdue
    `hedge_s` is over            work, a lane, not collecting      wait for company          collecting
                                 else                                                        idle
    company was waited for       fenced, or the store silent       refuse all, plan flush    idle
                                 a peer is better                  batch, carry it           idle
                                 idle                              rest, commit              committing
                                 committing                        the next commit has it    idle
    a batch comes from a peer    idle                              wait, then commit         committing
    or a caller, or finds none   committing                        the next commit has it
    a commit has ended           jobs, or work for here            wait, then commit         committing
                                 else                              look what waits           idle
    offsets wait for a batch     none                              sleep `commits_idle_s`    planned
    `commits_idle_s` is over     offsets are left                  look what waits           due
                                 else                                                        none
    a batch is made              due                               offsets ride along        none

A sleeper does not mind what has happened since: so *planned* may come on top of *due*, and *overdue* on top of
*collecting*. That is why each is a flag of its own.

When to wait, for how long, and which way a batch goes: the `policy` says so. None of that matters for safety.

What falls short: while a compare-and-set of this node has no answer, whatever comes here waits for it, though a
peer might reach the store. That is a timeout of the store at most.

*A refusal.* What the store refuses, as of a key that may only read, fails at once where it is certain that no
copy of it is elsewhere (`Job`).

A send may have an epoch. Law `DataBeforeReference`: it goes into no batch of another epoch, also when its first
batch was rejected and its sends go into a new one.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import inf
from operator import attrgetter

from leaderless.core.coordination import InvariantBroken, StoreSilent
from leaderless.core.headlog import attempt
from leaderless.core.headlog import trace as steps
from leaderless.core.headlog.attempt import Attempt, Fate
from leaderless.core.headlog.compaction import Compactor
from leaderless.core.headlog.hand_overs import HandOvers
from leaderless.core.headlog.pending import (
    Pending,
    Waiting,
    answers_of,
    refusal_of,
    refusals_of,
)
from leaderless.core.headlog.policy import CommitPolicy
from leaderless.core.headlog.records import Head
from leaderless.core.headlog.replica import Replica
from leaderless.core.headlog.sealer import Sealer
from leaderless.core.messages import (
    Append,
    AppendOk,
    Batch,
    Failure,
    HandOver,
    Offsets,
    Outcome,
    Reason,
    Reply,
    Send,
    Unknown,
)
from leaderless.core.process import Notify, Process, Signal, Sleep, Spawn, Wait
from leaderless.core.strategy import Clock

FENCED = "the log is fenced"
REFUSED = "the store refused it, and nothing was appended"
UNTRIED = (
    Reason.TIMEOUT,
    Reason.REFUSED,
)  # why what was not tried fails: a refusal is definite for it
_UNTIL = attrgetter("until")


def lanes_of(writer: str, lanes: int) -> list[str]:
    """The writers of a node's lanes."""
    return [f"{writer}/{lane}" for lane in range(lanes)]


@dataclass(slots=True, eq=False)
class Job:
    """A batch on its way: one of this node, for which all in `waiting` wait, or one that came from elsewhere.

    This node does no more for it when it is in the log, can never get there, or has nobody who waits for it,
    which is after `until`. For one that came from elsewhere `done` is notified then.

    A batch that is to be committed here also leaves after one attempt that failed, unless this node commits
    most. The loser of a conflict has learnt the winner. There its batches do better than in the next race. One
    that was sent back so, and comes again, `stays`: its node does not reach the winner.

    It is `certain` that a batch is only here while no attempt of it had an unknown outcome, and no peer was
    given it. If the store refuses it then, it is `refused`: it is not in the log, and never will be.
    """

    batch: Batch
    until: float
    waiting: list[Waiting] | None = None
    done: Signal | None = None
    since: float = -inf  # it waits for company; -inf: it has done so
    tried: bool = False
    stays: bool = False
    certain: bool = True
    refused: bool = False


class Writer:
    """The appends of one node, whose lanes are `writers`. `pending`: what is in no batch yet."""

    def __init__(
        self,
        clock: Clock,
        node: str,
        *,
        writers: list[str],
        replica: Replica,
        policy: CommitPolicy,
        compactor: Compactor,
    ) -> None:
        self._clock = clock
        self._node = node
        self._replica = replica
        self._policy = policy
        self._compactor = compactor
        self._sealer = Sealer(replica)
        self._answer_s = replica.limits.answer_s
        self.pending: Pending = Pending(replica.limits)
        self._flush_planned = self._flush_due = False  # see *States* above
        self._idle = writers[::-1]
        self._seqs = dict.fromkeys(self._idle, 0)
        self._collecting = self._committing = self._overdue_planned = False
        self._jobs: list[Job] = []  # to be committed here
        self._sealing = 0  # tails that are sealed beside other work
        self.appended: bool = False  # whether anything was ever asked to be appended
        self._refuted: Head | None = None  # the head that failed, until it was read anew
        self._hand_overs = HandOvers(clock, replica, policy)
        # Of peers' writers the batch that lost a conflict here.
        self._sent_back: dict[str, int] = {}

    @property
    def load(self) -> tuple[int, int, int]:
        """How much is in no batch yet, lanes that are busy, and batches that wait here for a commit."""
        return len(self.pending.waiting), len(self._seqs) - len(self._idle), len(self._jobs)

    @property
    def upkeeps(self) -> bool:
        """Whether this node seals or compacts, and waits for no other."""
        return bool(self._sealing) or self._compactor.busy

    # ------------------------------------------------------------ what is asked for

    def append(self, event: Send | Append) -> Process[None]:
        """Take something to append; it is answered when its batch is in the log."""
        self.appended = True
        if isinstance(event, Append) and event.name:
            yield from self._append_named(event, *event.name)
            return
        if failure := self.pending.add(event, self._clock.now):
            yield Reply(event.request, failure)
            return
        self._policy.arrived()
        if process := self._next():
            yield Spawn(process)

    def _append_named(self, event: Append, writer: str, seq: int) -> Process[None]:
        """Commit a batch that its caller has named. Another process, or an earlier life, may have done so."""
        replica, until = self._replica, self._clock.now + self._answer_s
        batch = Batch(writer, seq, event.epoch or 0, event.appends, {}, event.size)
        replica.trace("Named", steps.sent, batch)
        if not replica.loaded or replica.head.fenced:
            yield from replica.refresh()
        while not replica.view.has(batch):
            if replica.head.fenced:
                yield Reply(event.request, Failure(Reason.FENCED, FENCED))
                return
            if failure := refusal_of(event, replica.limits, replica.head):
                yield Reply(event.request, failure)
                return
            if self._clock.now >= until:
                return
            yield from self._commit_here(batch, until)
        yield Reply(event.request, AppendOk({}))

    def commit_for(self, event: HandOver) -> Process[None]:
        """Commit a peer's batch and tell it what it lacks of the log."""
        came_at, batch = self._clock.now, event.batch
        self._policy.arrived()
        yield from self._commit_here(batch, came_at + self._answer_s)
        if not self._replica.view.has(batch):
            left = {
                w: n for w, n in self._sent_back.items() if not self._replica.view.contains(w, n)
            }
            self._sent_back = left | {batch.writer: batch.seq}
        held_s = self._replica.confirmed_at - came_at
        yield Reply(event.request, self._replica.share(event.slot, held_s))

    def commit_offsets(self, offsets: Offsets) -> Process[None]:
        """Take committed offsets; they ride in the next batch."""
        self.pending.commit(offsets, self._replica.view.committed)
        yield from self._plan_flush()

    def _commit_here(self, batch: Batch, until: float) -> Process[None]:
        """Return when this node does no more for a batch that came from elsewhere: see `Job`."""
        done = Signal()
        again = self._sent_back.get(batch.writer) == batch.seq
        self._jobs.append(Job(batch, until, done=done, since=self._clock.now, stays=again))
        if batch.epoch > self._replica.head.epoch:  # so this node's head is an old one
            self._refuted = self._replica.head
        if not self._committing:
            self._committing = True
            yield Spawn(self._commit_after_company())
        yield Wait(done)

    # ------------------------------------------------------------ lanes

    @property
    def _has_work(self) -> bool:
        return bool(self.pending.waiting) or self._flush_due

    def _next(self) -> Process[None] | None:
        """What is to be run for what waits in no batch: at once, or beside others if it pays."""
        if self._collecting or not self._idle or not (self.pending.waiting or self._flush_due):
            return None
        if self._committing and self._policy.target() is None:
            return None  # the next commit here takes it along
        if len(self._idle) == len(self._seqs) or self._policy.needs_lane(len(self.pending.waiting)):
            self._collecting = True
            return self._collect()
        if self._overdue_planned:
            return None
        self._overdue_planned = True  # a batch may be stuck, and must not hold up the others
        return self._collect_overdue()

    def _go_on(self) -> Process[None]:
        """After a lane has come free, or nothing waits any more."""
        if process := self._next():
            yield Spawn(process)
        elif not (self._jobs or self.pending.waiting or len(self._idle) < len(self._seqs)):
            self._policy.idle()

    def _collect_overdue(self) -> Process[None]:
        yield Sleep(self._clock.now + self._policy.hedge_s)
        self._overdue_planned = False
        if not self._collecting and self._idle and self._has_work:
            self._collecting = True
            yield from self._collect()

    def _collect(self) -> Process[None]:
        """Wait for company, at least for what came together; then commit here, or make a batch for a peer."""
        replica = self._replica
        try:
            if not replica.loaded or replica.head.fenced:
                yield from replica.refresh()
            if replica.head.fenced:
                yield from self._give_up(Reason.FENCED, FENCED)
                return
            yield Sleep(self.pending.since + self._policy.linger_s())
        except StoreSilent as silent:
            yield from self._give_up(UNTRIED[silent.refused], str(silent))
            return
        finally:
            self._collecting = False
        if self._policy.target() is None:
            if not self._committing:  # or else the next commit takes it along
                self._committing = True
                if rest_s := self._policy.rest_s():
                    yield Sleep(self._clock.now + rest_s)
                yield from self._commit_all()
            return
        if job := (yield from self._take()):
            yield Spawn(self._carry(job))
            yield from self._go_on()

    def _plan_flush(self) -> Process[None]:
        if self.pending.commits and not self._flush_planned:
            self._flush_planned = True
            yield Spawn(self._flush())

    def _flush(self) -> Process[None]:
        """Make a batch for committed offsets that found none to ride in."""
        yield Sleep(self._clock.now + self._replica.limits.commits_idle_s)
        self._flush_planned = False
        self._flush_due = bool(self.pending.commits)
        yield from self._go_on()

    def _take(self) -> Process[Job | None]:
        """A batch of what waits; None if nothing does, or all lanes are busy."""
        replica, limits, now = self._replica, self._replica.limits, self._clock.now
        if not self._idle or not (self.pending.waiting or self._flush_due):
            return None
        waiting, refused = self.pending.take(limits, replica.head, now)
        yield from refused
        if not waiting and not self._flush_due:
            return None
        self._flush_due = False
        lane = self._idle.pop()
        self._seqs[lane] += 1
        name = lane, self._seqs[lane]
        batch = self.pending.batch(name, replica.head.epoch, waiting, limits.batch_bytes)
        replica.trace("Send", steps.sent, batch)
        job = Job(batch, max(map(_UNTIL, waiting), default=now + self._answer_s), waiting)
        if suspects := self._policy.to_probe():
            job.certain = False
            yield from self._hand_overs.probe(suspects, batch)
        return job

    def _end(self, job: Job) -> Process[None]:
        """Let go of a batch of this node, for which it does no more."""
        batch = job.batch
        self._idle.append(batch.writer)
        if self._replica.view.has(batch):
            yield from self._acknowledge(batch, job.waiting or ())
        elif self._is_alive(batch):
            # Its clients are gone, or learn now that it is nowhere.
            self._replica.trace("Abandon", steps.named, batch)
            if job.refused:
                yield from refusals_of(job.waiting or (), Reason.REFUSED, REFUSED)
        else:  # no copy of the batch can get into the log any more: its sends go into a new one
            self._replica.trace("Reject", steps.named, batch)
            self.pending.put_back(job.waiting or [])
        if self.pending.commits:  # those that are not in the log ride on
            yield from self._plan_flush()

    def _acknowledge(self, batch: Batch, waiting: Sequence[Waiting]) -> Process[None]:
        if batch.commits:
            self.pending.committed(batch.commits)
        seq, placed = self._replica.view.placed[batch.writer]
        if seq != batch.seq or placed.keys() != batch.appends.keys():
            raise InvariantBroken(f"AckedExactlyOnce: {batch.writer} has {seq}, not {batch.seq}")
        self._replica.trace("Acked", steps.placed, batch, placed)
        yield from answers_of(waiting, placed)

    def _give_up(self, reason: Reason, text: str) -> Process[None]:
        """Refuse all that is in no batch; committed offsets try again later."""
        self._flush_due = False
        yield from self._plan_flush()
        yield from refusals_of(self.pending.take_all(), reason, text)

    # ------------------------------------------------------------ by way of a peer

    def _carry(self, job: Job) -> Process[None]:
        """Bring a batch into the log by way of peers, until this node is to commit it itself.

        Nobody waits for a batch after its `until`. It is left alone, wherever it is on its way. It may get into
        the log later or never; not after the next batch of its writer (`View.contains`).
        """
        while not self._is_over(job):
            peer = self._policy.target()
            if peer is None:
                job.tried = False
                self._jobs.append(job)
                if not self._committing:
                    self._committing = True
                    yield from self._commit_after_company()
                return
            job.certain = False
            yield from self._hand_overs.hand_to(peer, job.batch)
        yield from self._end(job)
        yield from self._go_on()

    def _is_over(self, job: Job) -> bool:
        """Whether a batch is in the log, can never get there, or has nobody who waits for it."""
        in_log = self._replica.view.has(job.batch)
        is_left = job.refused or self._clock.now >= job.until
        return in_log or is_left or not self._is_alive(job.batch)

    def _is_alive(self, batch: Batch) -> bool:
        """Whether it can get into the log: a new epoch keeps it out for ever."""
        head = self._replica.head
        return head.epoch == batch.epoch and not head.fenced

    # ------------------------------------------------------------ committing here

    def _commit_after_company(self) -> Process[None]:
        yield from self._wait_for_company()
        yield from self._commit_all()

    def _wait_for_company(self) -> Process[None]:
        """Wait for company, at least for what came together, then rest.

        No batch of this node waits a second time: after a conflict the view is new, and a wait makes it older.
        """
        since = [job.since for job in self._jobs]
        if self.pending.waiting:
            since.append(self.pending.since)
        until, now = min(since, default=-inf) + self._policy.linger_s(), self._clock.now
        yield Sleep(max(until, now) + self._policy.rest_s())

    def _commit_all(self) -> Process[None]:
        """Commit until nothing is left to be committed here."""
        try:
            while True:
                try:
                    if self._compactor.behind:
                        yield from self._compactor.catch_up()
                    yield from self._commit()
                except StoreSilent as silent:
                    # A batch that was tried may be in the log, or get there still: ask again.
                    if silent.refused:
                        self._refuse()
                    if not self._jobs:
                        yield from self._give_up(UNTRIED[silent.refused], str(silent))
                yield from self._settle()
                if not self._jobs and not self._commits_pending:
                    break
                yield from self._wait_for_company()
        finally:
            self._committing = False
        yield from self._go_on()

    @property
    def _commits_pending(self) -> bool:
        """Whether the next commit here takes along what is in no batch yet."""
        if not self._idle or not (self.pending.waiting or self._flush_due):
            return False
        return not self._replica.head.fenced and self._policy.target() is None

    def _commit(self) -> Process[None]:
        replica, head = self._replica, self._replica.head
        if head is self._refuted or not replica.loaded:
            yield from self._look_again()
            head = replica.head
        while not head.fenced and (job := (yield from self._take())):
            self._jobs.append(job)  # what waits at this node goes into the log with what is here
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
        return kept

    def _try(self, tried: Attempt) -> Process[None]:
        """Carry an attempt out; on any other end than a commit, look again."""
        replica, ahead = self._replica, self._policy.reads_ahead
        fate = yield from attempt.carry_out(replica, tried, reads_ahead=ahead, heard=self._heard)
        if fate in (Fate.COMMITTED, Fate.FOUND):
            self._policy.attempt_committed(len(tried.entries), len(self._jobs))
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
        for job in self._jobs:
            if (job.batch.writer, job.batch.seq) in names:
                job.certain = False

    def _refuse(self) -> None:
        """After the store has refused what this node needs for a commit: see `Job`."""
        for job in self._jobs:
            job.refused = job.certain and job.waiting is not None

    def _heard(self, outcome: Outcome, seconds: float) -> None:
        if isinstance(outcome, Unknown):
            self._policy.attempt_unknown()
        else:
            self._policy.store_took(seconds)

    def _look_again(self) -> Process[None]:
        """Read the head. If that fails, the next commit begins with it: nothing comes of a refuted head."""
        yield from self._replica.refresh()
        self._refuted = None

    def _eligible(self) -> list[Batch]:
        """The batches that belong into the log now, each once, up to `commit_bytes`."""
        batches: dict[str, Batch] = {}
        size, alone = 0, self._policy.isolates
        for job in self._in_turn() if alone else self._jobs:
            batch = job.batch
            if (
                batch.writer in batches
                or not self._is_alive(batch)
                or self._replica.view.has(batch)
            ):
                continue  # of a writer, its batches enter the log in their order
            size += batch.size
            if batches and (alone or size > self._replica.limits.commit_bytes):
                break
            batches[batch.writer] = batch
            job.tried = True
        return list(batches.values())

    def _in_turn(self) -> list[Job]:
        """The jobs, those first that wait longest; while they go alone, each is the first one in turn."""
        turn = self._policy.turn % max(1, len(self._jobs))
        return self._jobs[turn:] + self._jobs[:turn]

    def _settle(self) -> Process[None]:
        """Let go of the jobs for which nothing more is done here."""
        jobs, self._jobs = self._jobs, []
        for job in jobs:
            is_over = self._is_over(job)
            if not is_over and not (job.tried and not job.stays and not self._policy.keeps_losers):
                self._jobs.append(job)
            elif job.done:
                yield Notify(job.done)
            elif is_over:
                yield from self._end(job)
            else:
                yield Spawn(self._carry(job))

    def _seal_ahead(self, head: Head) -> Process[None]:
        """Seal a full head beside other work; a commit that finds nothing sealed does it again.

        The head must be known to have stood in the store: what a segment holds is the log for ever.
        """
        self._sealing += 1
        try:
            if head.full:
                with suppress(StoreSilent):
                    yield from self._sealer.seal(head)
        finally:
            self._sealing -= 1
        yield from self._compactor.consider(head.sealed, head.heading.size)
