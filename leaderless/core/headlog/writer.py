"""The writer: puts into the log what clients, programs and peers want there.

    what waits --(a lane)--> batch [writer, seq] --> here: one compare-and-set for all batches that are here
                                                 --> a peer: its compare-and-set has it

*Lanes.* A node has a few. Each is a writer of its own, with its own numbers, and has one batch at a time: the
next is made when the one before has come to an end (`committer.End`). A batch keeps its name whichever way it
goes. So whichever copy is first in the log wins, and every other one is found to be there already (`attempt`,
Law 1). A second batch goes to a peer while the first is under way only when waiting for it would cost more than
the messages.

*A peer.* Whoever loses a conflict decides again, and now knows the winner. So under contention all hand over to
one node, and it alone finds that it committed last. That is no election: no node waits for it. When it does not
answer in about the time that 19 of 20 answers take, the batch goes another way, too.

*States.* Here are two small machines, beside that of the `committer`. Each has a process that sleeps or works
while its state is not the first one.

    flush     of committed offsets without a batch     none -> planned -> none, due
    collect   what waits, for a batch                  idle -> overdue, collecting

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
                                 else                              commit here               idle
    offsets wait for a batch     none                              sleep `commits_idle_s`    planned
    `commits_idle_s` is over     offsets are left                  look what waits           due
                                 else                                                        none
    a batch is made              due                               offsets ride along        none

A sleeper does not mind what has happened since: so *planned* may come on top of *due*, and *overdue* on top of
*collecting*. That is why each is a flag of its own.

When to wait, for how long, and which way a batch goes: the `policy` says so. None of that matters for safety.

A send may have an epoch. Law `DataBeforeReference`: it goes into no batch of another epoch, also when its first
batch was rejected and its sends go into a new one.
"""

from collections.abc import Sequence
from operator import attrgetter

from leaderless.core.coordination import InvariantBroken, StoreSilent
from leaderless.core.headlog import trace as steps
from leaderless.core.headlog.brought import Brought
from leaderless.core.headlog.committer import Committer, End, Job, Lanes
from leaderless.core.headlog.compaction import Compactor
from leaderless.core.headlog.hand_overs import HandOvers
from leaderless.core.headlog.pending import IS_FENCED, Pending, answers_of, refusals_of
from leaderless.core.headlog.policy import CommitPolicy
from leaderless.core.headlog.replica import Replica
from leaderless.core.messages import Append, Batch, Failure, HandOver, Offsets, Reply, Send
from leaderless.core.process import Process, Sleep, Spawn, Trap
from leaderless.core.strategy import Clock

_UNTIL = attrgetter("until")


def lanes_of(writer: str, lanes: int) -> list[str]:
    """The writers of a node's lanes."""
    return [f"{writer}/{lane}" for lane in range(lanes)]


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
        self._replica = replica
        self._policy = policy
        self._compactor = compactor
        self._answer_s = replica.limits.answer_s
        self.pending: Pending = Pending(replica.limits)
        self._flush_planned = self._flush_due = False  # see *States* above
        self._collecting = self._overdue_planned = False
        self._idle = writers[::-1]
        self._seqs = dict.fromkeys(self._idle, 0)
        self.appended: bool = False  # whether anything was ever asked to be appended
        self._hand_overs = HandOvers(clock, replica, policy)
        lanes = Lanes(
            self.pending,
            take=self._take,
            more=self._next_commit_takes_more,
            end=self._end,
            gave=self._hand_overs.gave,
            carry=self._carry,
            go_on=self._go_on,
            give_up=self._give_up,
        )
        self._committer = Committer(node, lanes, replica, compactor)
        self._brought = Brought(replica, self._committer)

    @property
    def load(self) -> tuple[int, int, int]:
        """How much is in no batch yet, lanes that are busy, and batches that wait here for a commit."""
        return len(self.pending.waiting), self._busy, len(self._committer.jobs)

    @property
    def upkeeps(self) -> bool:
        """Whether this node seals or compacts, and waits for no other."""
        return bool(self._committer.sealing) or self._compactor.busy

    def append(self, event: Send | Append) -> Process[None]:
        """Take something to append; it is answered when its batch is in the log."""
        self.appended = True
        if isinstance(event, Append) and event.name:
            yield from self._brought.append(event, *event.name)
            return
        if failure := self.pending.add(event, self._clock.now):
            yield Reply(event.request, failure)
            return
        self._policy.arrived()
        if process := self._next():
            yield Spawn(process)

    def commit_for(self, event: HandOver) -> Process[None]:
        """Commit a peer's batch and tell it what it lacks of the log."""
        return self._brought.commit_for(event)

    def commit_offsets(self, offsets: Offsets) -> Process[None]:
        """Take committed offsets; they ride in the next batch."""
        self.pending.commit(offsets, self._replica.view.committed)
        yield from self._plan_flush()

    # ------------------------------------------------------------ lanes

    @property
    def _busy(self) -> int:
        return len(self._seqs) - len(self._idle)

    def _next(self) -> Process[None] | None:
        """What is to be run for what waits in no batch: at once, or beside others if it pays."""
        if self._collecting or not self._idle or not (self.pending.waiting or self._flush_due):
            return None
        if self._committer.committing and self._policy.target() is None:
            return None  # the next commit here takes it along
        if not self._busy or self._policy.needs_lane(len(self.pending.waiting)):
            self._collecting = True
            return self._collect()
        if self._overdue_planned:
            return None
        self._overdue_planned = True  # a batch may be stuck, and must not hold up the others
        return self._collect_overdue()

    def _go_on(self) -> Sequence[Trap]:
        """After a lane has come free, or nothing waits any more."""
        if process := self._next():
            return [Spawn(process)]
        if not (self._committer.jobs or self.pending.waiting or self._busy):
            self._policy.idle()
        return []

    def _collect_overdue(self) -> Process[None]:
        yield Sleep(self._clock.now + self._policy.hedge_s)
        self._overdue_planned = False
        if not self._collecting and self._idle and (self.pending.waiting or self._flush_due):
            self._collecting = True
            yield from self._collect()

    def _collect(self) -> Process[None]:
        """Wait for company, at least for what came together; then commit here, or make a batch for a peer."""
        replica = self._replica
        try:
            if not replica.loaded or replica.head.fenced:
                yield from replica.refresh()
            if replica.head.fenced:
                yield from self._give_up(IS_FENCED)
                return
            yield Sleep(self._policy.company_until(self.pending.since))
        except StoreSilent as silent:
            yield from self._give_up(Failure(silent.reason, str(silent)))
            return
        finally:
            self._collecting = False
        if self._policy.target() is None:
            if not self._committer.committing:  # or else the next commit takes it along
                yield from self._committer.commit(self._policy.rest_s())
        elif job := (yield from self._take()):
            yield Spawn(self._carry(job))
            yield from self._go_on()

    def _plan_flush(self) -> Sequence[Trap]:
        if not self.pending.commits or self._flush_planned:
            return []
        self._flush_planned = True
        return [Spawn(self._flush())]

    def _flush(self) -> Process[None]:
        """Make a batch for committed offsets that found none to ride in."""
        yield Sleep(self._clock.now + self._replica.limits.commits_idle_s)
        self._flush_planned = False
        self._flush_due = bool(self.pending.commits)
        yield from self._go_on()

    def _next_commit_takes_more(self) -> bool:
        """Whether the next commit here takes along what is in no batch yet."""
        if not self._idle or not (self.pending.waiting or self._flush_due):
            return False
        return not self._replica.head.fenced and self._policy.target() is None

    def _take(self) -> Process[Job | None]:
        """A batch of what waits; None if nothing does, or all lanes are busy."""
        replica, limits, now = self._replica, self._replica.limits, self._clock.now
        if not self._idle or not (self.pending.waiting or self._flush_due):
            return None
        waiting, refused = self.pending.take(limits, replica.head, replica.view, now)
        yield from refused
        if not waiting and not self._flush_due:
            return None
        self._flush_due = False
        lane = self._idle.pop()
        self._seqs[lane] += 1
        name = lane, self._seqs[lane]
        batch = self.pending.batch(name, replica.head.epoch, waiting, limits.batch_bytes)
        replica.trace("Send", steps.sent, batch)
        until = max(map(_UNTIL, waiting), default=now + self._answer_s)
        job = Job(batch, until, waiting)
        if suspects := self._policy.to_probe():
            yield from self._hand_overs.probe(suspects, batch)
        return job

    def _end(self, job: Job, end: End) -> Sequence[Trap]:
        """Let go of a batch of this node, for which it does no more."""
        batch, waiting = job.batch, job.waiting or []
        self._idle.append(batch.writer)
        answers: Sequence[Trap] = ()
        if end is End.IN_LOG:
            answers = answers_of(waiting, self._offsets_of(batch))
        elif end is End.LEFT:  # its clients are gone, or learn now that it is nowhere
            self._replica.trace("Abandon", steps.named, batch)
            if job.failure:
                answers = refusals_of(waiting, job.failure)
        else:
            self._replica.trace("Reject", steps.named, batch)
            self.pending.put_back(waiting)
        if self.pending.commits:  # those that are not in the log ride on
            answers = [*answers, *self._plan_flush()]
        return answers

    def _offsets_of(self, batch: Batch) -> Offsets:
        """The first offsets of a batch that is in the log, as those who wait for it are told."""
        if batch.commits:
            self.pending.committed(batch.commits)
        seq, placed = self._replica.view.placed[batch.writer]
        if seq != batch.seq or placed.keys() != batch.appends.keys():
            raise InvariantBroken(f"AckedExactlyOnce: {batch.writer} has {seq}, not {batch.seq}")
        self._replica.trace("Acked", steps.placed, batch, placed)
        return placed

    def _give_up(self, failure: Failure) -> Sequence[Trap]:
        """Refuse all that is in no batch; committed offsets try again later."""
        self._flush_due = False
        return [*self._plan_flush(), *refusals_of(self.pending.take_all(), failure)]

    def _carry(self, job: Job) -> Process[None]:
        """Bring a batch into the log by way of peers, until this node is to commit it itself.

        Nobody waits for a batch after its `until`. It is left alone, wherever it is on its way. It may get into
        the log later or never; not after the next batch of its writer (`View.contains`).
        """
        asked = 0
        while not (end := self._committer.end_of(job)):
            peer = self._policy.target(asked)
            asked += 1
            if peer is None:
                job.tried = False
                if process := self._committer.add(job):
                    yield from process
                return
            yield from self._hand_overs.hand_to(peer, job.batch)
        yield from self._end(job, end)
        yield from self._go_on()
