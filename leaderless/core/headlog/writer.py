"""The writer: puts into the log what clients, programs and peers want there.

    what waits --(a lane)--> batch [writer, seq] --> here: one compare-and-set for all batches that are here
                                                 --> a peer: its compare-and-set has it

*Batches.* A node has a few lanes. Each is a writer of its own, with its own numbers, and has one batch at a
time: the next is made when the one before is in the log, can never get there, or has nobody who waits for it. A
batch keeps its name whichever way it goes. So whichever copy is first in the log wins, and every other one is
found to be there already (`attempt`, Law 1). A second lane starts while the first is busy only when waiting for
it would cost more than the messages.

*Here.* All batches that are here go into one attempt (`attempt`), which has the laws of its safety. Every way
to fail (conflict, no answer) ends in the same place: read the head, see which batches are in the log, go on
with the rest.

*A peer.* Whoever loses a conflict decides again, and now knows the winner. So under contention all hand over to
one node, and it alone finds that it committed last. That is no election: no node waits for it. When it does not
answer in about the time that 19 of 20 answers take, the batch goes another way, too.

When to wait, for how long, and which way a batch goes: the `policy` says so. None of that matters for safety.

A send may have an epoch. Law `DataBeforeReference`: it goes into no batch of another epoch, also when its first
batch was rejected and its sends go into a new one.
"""

from contextlib import suppress
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

from leaderless.core.coordination import StoreSilent
from leaderless.core.headlog import attempt
from leaderless.core.headlog import trace as steps
from leaderless.core.headlog.attempt import Attempt, Fate
from leaderless.core.headlog.compaction import Compactor
from leaderless.core.headlog.pending import Pending, Waiting, answers_of, refusal_of
from leaderless.core.headlog.policy import Policy
from leaderless.core.headlog.records import HEAD, Head, InvariantBroken
from leaderless.core.headlog.replica import Replica
from leaderless.core.headlog.sealer import Sealer
from leaderless.core.messages import (
    Append,
    AppendOk,
    Batch,
    Cas,
    Failure,
    HandedOver,
    HandOver,
    Offer,
    Offsets,
    Ok,
    Outcome,
    Reason,
    Reply,
    Send,
    Unknown,
)
from leaderless.core.process import Notify, Process, Signal, Sleep, Spawn, Wait, ask, call
from leaderless.core.strategy import Clock

FENCED = "the log is fenced"


def lanes_of(writer: str, lanes: int) -> list[str]:
    """The writers of a node's lanes."""
    return [f"{writer}/{lane}" for lane in range(lanes)]


@dataclass(slots=True, eq=False)
class Job:
    """A batch to be committed here; `done` fires when this node does no more for it.

    That is when it is in the log, can never get there, or has nobody who waits for it after `until`. It is also
    after one attempt that failed, unless this node is the one that commits most: the loser of a conflict has
    learnt the winner, and there its batches, own and handed over, do better than in the next race.
    """

    batch: Batch
    since: float  # it waits for company; -inf: it has done so
    until: float
    tried: bool = False
    done: Signal = field(default_factory=Signal)


class Made(NamedTuple):
    """A batch of this node, what waits for it, and until when."""

    batch: Batch
    waiting: list[Waiting]
    until: float


class Writer:
    """The appends of one node, whose lanes are `writers`. `pending`: what is in no batch yet."""

    def __init__(
        self,
        clock: Clock,
        node: str,
        *,
        writers: list[str],
        replica: Replica,
        policy: Policy,
        compactor: Compactor,
    ) -> None:
        self._clock = clock
        self._node = node
        self._replica = replica
        self._policy = policy
        self._compactor = compactor
        self._sealer = Sealer(replica)
        self._answer_s = replica.limits.answer_s
        self.pending = Pending()
        self._flush_planned = self._flush_due = False
        self._idle = writers[::-1]
        self._seqs = dict.fromkeys(self._idle, 0)
        self._collecting = self._overdue_planned = False
        self._jobs: list[Job] = []
        self._committing = False
        self._refuted: Head | None = None  # the head that failed, until it was read anew
        self._away: dict[Signal, tuple[Batch, str]] = {}  # handed to a peer, and not moved on yet
        self._watching = False

    @property
    def load(self) -> tuple[int, int, int]:
        """How much is in no batch yet, lanes that are busy, and batches that wait here for a commit."""
        return len(self.pending.waiting), len(self._seqs) - len(self._idle), len(self._jobs)

    # ------------------------------------------------------------ what is asked for

    def append(self, event: Send | Append) -> Process[None]:
        """Take something to append; it is answered when its batch is in the log."""
        if isinstance(event, Append) and event.name:
            yield from self._append_named(event, *event.name)
            return
        if failure := self.pending.add(event, self._clock.now, self._replica.limits):
            yield Reply(event.request, failure)
            return
        self._policy.arrived()
        yield from self._consider()

    def _append_named(self, event: Append, writer: str, seq: int) -> Process[None]:
        """Commit a batch that its caller has named. Another process, or an earlier life, may have done so."""
        replica, until = self._replica, self._clock.now + self._answer_s
        batch = Batch(writer, seq, event.epoch or 0, event.appends, {}, event.size)
        if not replica.loaded or replica.head.fenced:
            yield from replica.refresh()
        while not self._is_in_log(batch):
            if replica.head.fenced:
                yield Reply(event.request, Failure(Reason.FENCED, FENCED))
                return
            if failure := refusal_of(event, replica.limits, replica.head):
                yield Reply(event.request, failure)
                return
            if self._clock.now >= until:
                return
            yield from self._commit_here(batch, self._clock.now, until)
        yield Reply(event.request, AppendOk({}))

    def commit_for(self, event: HandOver) -> Process[None]:
        """Commit a peer's batch and tell it what it lacks of the log."""
        came_at = self._clock.now
        self._policy.arrived()
        yield from self._commit_here(event.batch, came_at, came_at + self._answer_s)
        held_s = self._replica.confirmed_at - came_at
        yield Reply(event.request, self._replica.share(event.slot, held_s))

    def commit_offsets(self, offsets: Offsets) -> Process[None]:
        """Take committed offsets; they ride in the next batch."""
        self.pending.commit(offsets, self._replica.view.committed)
        yield from self._plan_flush()

    # ------------------------------------------------------------ lanes

    @property
    def _has_work(self) -> bool:
        return self._flush_due or bool(self.pending.waiting)

    def _consider(self) -> Process[None]:
        """Make a batch of what waits: the first at once, and one beside others if it pays."""
        if self._collecting or not self._idle or not self._has_work:
            return
        none_is_busy = len(self._idle) == len(self._seqs)
        if none_is_busy or self._policy.needs_lane(len(self.pending.waiting)):
            self._collecting = True
            yield Spawn(self._collect())
        elif not self._overdue_planned:  # a batch may be stuck, and must not hold up the others
            self._overdue_planned = True
            yield Spawn(self._collect_overdue())

    def _collect_overdue(self) -> Process[None]:
        yield Sleep(self._clock.now + self._policy.hedge_s)
        self._overdue_planned = False
        if not self._collecting and self._idle and self._has_work:
            self._collecting = True
            yield from self._collect()

    def _collect(self) -> Process[None]:
        """Wait for company, at least for what came together, and make a batch unless a commit here does."""
        replica = self._replica
        try:
            if not replica.loaded or replica.head.fenced:
                yield from replica.refresh()
            if replica.head.fenced:
                yield from self._give_up(Reason.FENCED, FENCED)
                return
            yield Sleep(self.pending.since + self._policy.linger_s())
        except StoreSilent as silent:
            yield from self._give_up(Reason.TIMEOUT, str(silent))
            return
        finally:
            self._collecting = False
        made = yield from self._take()
        if made:
            yield Spawn(self._carry(*made))
            yield from self._consider()

    def _plan_flush(self) -> Process[None]:
        if self.pending.commits and not self._flush_planned:
            self._flush_planned = True
            yield Spawn(self._flush())

    def _flush(self) -> Process[None]:
        """Make a batch for committed offsets that found none to ride in."""
        yield Sleep(self._clock.now + self._replica.limits.commits_idle_s)
        self._flush_planned = False
        self._flush_due = bool(self.pending.commits)
        yield from self._consider()

    def _take(self) -> Process["Made | None"]:
        """A batch of what waits; None if nothing does, or all lanes are busy."""
        replica, limits = self._replica, self._replica.limits
        yield from self.pending.refuse(limits, replica.head)
        if not self._idle or not self._has_work:
            return None
        waiting = self.pending.take(limits, self._clock.now)
        if not waiting and not self._flush_due:
            return None
        self._flush_due = False
        lane = self._idle.pop()
        self._seqs[lane] += 1
        name = lane, self._seqs[lane]
        batch = self.pending.batch(name, replica.head.epoch, waiting, limits.batch_bytes)
        replica.trace("Send", steps.sent, batch)
        until = max((each.until for each in waiting), default=self._clock.now + self._answer_s)
        return Made(batch, waiting, until)

    def _carry(
        self, batch: Batch, waiting: list[Waiting], until: float, job: Job | None = None
    ) -> Process[None]:
        """Bring a batch into the log; `job`: it is here already."""
        try:
            if job:
                yield Wait(job.done)
            if (yield from self._deliver(batch, until)):
                yield from self._acknowledge(batch, waiting)
            elif self._is_alive(batch):
                self._replica.trace("Abandon", steps.named, batch)  # its clients are gone
            else:  # no copy of the batch can get into the log any more: its sends go into a new one
                self._replica.trace("Reject", steps.named, batch)
                self.pending.put_back(waiting)
            yield from self._plan_flush()  # committed offsets that are not in the log ride on
        finally:
            self._idle.append(batch.writer)
        yield from self._consider()
        self._note_idle()

    def _note_idle(self) -> None:
        if not (self._jobs or self.pending.waiting or len(self._idle) < len(self._seqs)):
            self._policy.idle()

    def _acknowledge(self, batch: Batch, waiting: list[Waiting]) -> Process[None]:
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
        for each in self.pending.take_all():
            yield Reply(each.event.request, Failure(reason, text))

    # ------------------------------------------------------------ the way of a batch

    def _deliver(self, batch: Batch, until: float) -> Process[bool]:
        """Return whether the batch is in the log, when it is, or can never get there, or at `until`.

        After that nobody waits for it. It is left alone, wherever it is on its way. It may get into the log
        later or never; not after the next batch of its writer (`View.contains`).
        """
        while self._is_alive(batch) and not self._is_in_log(batch) and self._clock.now < until:
            for suspect in self._policy.to_probe():  # their time has come; nothing waits for them
                yield Spawn(self._ask(suspect, batch, Signal()))
            if peer := self._policy.target():
                yield from self._hand_to(peer, batch)
            else:
                yield from self._commit_here(batch, -inf, until)
        return self._is_in_log(batch)

    def _is_alive(self, batch: Batch) -> bool:
        """Whether it can get into the log: a new epoch keeps it out for ever."""
        head = self._replica.head
        return head.epoch == batch.epoch and not head.fenced

    def _is_in_log(self, batch: Batch) -> bool:
        return self._replica.view.contains(batch.writer, batch.seq)

    def _hand_to(self, peer: str, batch: Batch) -> Process[None]:
        """Return when the peer has answered, or when the batch has waited so long that it goes another way.

        Its answer counts whenever it comes. It may be lost, or late: then the log shows the batch as well.
        """
        moved = Signal()
        self._away[moved] = batch, peer
        if not self._watching:
            self._watching = True
            yield Spawn(self._watch())
        yield Spawn(self._ask(peer, batch, moved))
        yield Wait(moved, self._clock.now + self._policy.hedge_s)
        if not moved.fired:
            self._policy.peer_is_late(peer)
            yield from self._leave(peer)
        del self._away[moved]

    def _watch(self) -> Process[None]:
        """While batches are away, look for them in whatever this node learns of the log."""
        while self._away:
            yield Wait(self._replica.news)
            for moved in [m for m, (batch, _) in self._away.items() if self._is_in_log(batch)]:
                yield Notify(moved)
        self._watching = False

    def _ask(self, peer: str, batch: Batch, moved: Signal) -> Process[None]:
        asked_at, slot = self._clock.now, self._replica.view.slot
        self._replica.trace("HandOver", steps.handed, batch, peer)
        answer = yield from ask(peer, Offer(slot, batch), self._answer_s)
        if isinstance(answer, HandedOver):
            self._policy.peer_answered(peer, self._clock.now - asked_at)
            with suppress(StoreSilent):  # nothing learnt: the batch goes another round
                yield from self._replica.learn(answer, asked_at)
            self._policy.peer_helped(peer, helped=self._is_in_log(batch))
        else:
            self._policy.peer_is_late(peer)
            yield from self._leave(peer)
        yield Notify(moved)

    def _leave(self, peer: str) -> Process[None]:
        """All batches that wait for a peer go another way, too, and together."""
        for moved in [each for each, (_, dest) in self._away.items() if dest == peer]:
            yield Notify(moved)

    # ------------------------------------------------------------ committing here

    def _commit_here(self, batch: Batch, since: float, until: float) -> Process[None]:
        """Return when this node does no more for the batch: see `Job`."""
        job = Job(batch, since, until)
        self._jobs.append(job)
        if not self._committing:
            self._committing = True
            yield Spawn(self._commit_all())
        yield Wait(job.done)

    def _commit_all(self) -> Process[None]:
        try:
            while self._jobs:
                yield from self._wait_for_jobs()
                # After silence a job may be in the log, or get there still: ask again.
                with suppress(StoreSilent):
                    yield from self._commit()
                yield from self._settle()
        finally:
            self._committing = False

    def _wait_for_jobs(self) -> Process[None]:
        """Wait for company, after a rest.

        No job waits for it a second time: after a conflict the view is new, and each wait makes it older.
        """
        until = min(job.since for job in self._jobs) + self._policy.linger_s()
        yield Sleep(max(until, self._clock.now) + self._policy.rest_s())

    def _commit(self) -> Process[None]:
        replica, head = self._replica, self._replica.head
        refuted = head is self._refuted
        if not replica.loaded or refuted or any(job.batch.epoch > head.epoch for job in self._jobs):
            yield from self._look_again()
            head = replica.head
        if not self._eligible(head):
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
        yield from self._take_along()
        batches, kept = self._eligible(head), self._sealer.kept(head)
        yield from self._try(attempt.prepare(replica, batches, by=self._node, kept=kept))

    def _take_along(self) -> Process[None]:
        """What waits at this node goes into the log with what is here."""
        if made := (yield from self._take()):
            job = Job(made.batch, -inf, made.until)
            self._jobs.append(job)
            yield Spawn(self._carry(*made, job))

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
        replica, ahead = self._replica, self._policy.reads_ahead
        fate = yield from attempt.carry_out(replica, tried, reads_ahead=ahead, heard=self._heard)
        if fate in (Fate.COMMITTED, Fate.FOUND):
            self._policy.attempt_committed(len(tried.entries), len(self._jobs))
            if tried.new.full:
                head = tried.new if fate is Fate.COMMITTED else replica.head
                yield Spawn(self._seal_ahead(head))
            return
        self._policy.attempt_failed()
        if replica.head is tried.old:  # no other process learnt of a newer one
            self._refuted = tried.old
            yield from self._look_again()

    def _heard(self, outcome: Outcome, seconds: float) -> None:
        if isinstance(outcome, Unknown):
            self._policy.attempt_unknown()
        else:
            self._policy.store_took(seconds)

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
            if batches and (self._policy.isolates or size > self._replica.limits.commit_bytes):
                break
            batches[batch.writer] = batch
            job.tried = True
        return list(batches.values())

    def _in_turn(self) -> list[Job]:
        """The jobs, those first that wait longest; while they go alone, each is the first one in turn."""
        turn = self._policy.turn % max(1, len(self._jobs))
        return self._jobs[turn:] + self._jobs[:turn]

    def _settle(self) -> Process[None]:
        """Let go of the jobs that are in the log, or can never get there."""
        settled = [job for job in self._jobs if self._is_settled(job)]
        self._jobs = [job for job in self._jobs if job not in settled]
        for job in settled:
            yield Notify(job.done)
        self._note_idle()

    def _is_settled(self, job: Job) -> bool:
        head, batch = self._replica.head, job.batch
        return (
            self._replica.view.contains(batch.writer, batch.seq)
            or self._clock.now >= job.until
            or head.fenced
            or batch.epoch != head.epoch
            or (job.tried and not self._policy.keeps_losers)
        )

    def _seal_ahead(self, head: Head) -> Process[None]:
        """Seal a full head beside other work; a commit that finds nothing sealed does it again.

        The head must be known to have stood in the store: what a segment holds is the log for ever.
        """
        if head.closed:
            with suppress(StoreSilent):
                yield from self._sealer.seal(head)
        yield from self._compactor.consider()
