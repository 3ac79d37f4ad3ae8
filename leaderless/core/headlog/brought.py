"""Batches that come to this node with a name: of programs, which chose it, and of peers, which hand them over.

Whichever copy of a batch is first in the log wins, and every other one is found to be there already (`attempt`,
Law 1). So one that comes again, from another process or an earlier life, does no harm. They go into the log
beside all that is committed here (`committer`).
"""

from leaderless.core.headlog import trace as steps
from leaderless.core.headlog.committer import Committer, Job
from leaderless.core.headlog.pending import IS_FENCED, refusal_of
from leaderless.core.headlog.replica import Replica
from leaderless.core.messages import Append, AppendOk, Batch, Failure, HandOver, Reply
from leaderless.core.process import Notify, Process, Signal, Spawn, Wait


class Brought:
    """What others bring to one node."""

    def __init__(self, replica: Replica, committer: Committer) -> None:
        self._replica = replica
        self._committer = committer
        self._answer_s = replica.limits.answer_s
        # Of peers' writers the batch that lost a conflict here.
        self._sent_back: dict[str, int] = {}

    def append(self, event: Append, writer: str, seq: int) -> Process[None]:
        """Commit a batch that its caller has named. Another process, or an earlier life, may have done so."""
        replica, clock = self._replica, self._replica.clock
        until = clock.now + self._answer_s
        batch = Batch(writer, seq, event.epoch or 0, event.appends, {}, event.size)
        replica.trace("Named", steps.sent, batch)
        if not replica.loaded or replica.head.fenced:
            yield from replica.refresh()
        while not replica.view.has(batch):
            failure = IS_FENCED if replica.head.fenced else None
            if failure := failure or refusal_of(event, replica.limits, replica.head, replica.view):
                yield Reply(event.request, failure)
                return
            if clock.now >= until:
                return
            failure = yield from self._commit(batch, until)
            if failure and not replica.view.has(batch):
                yield Reply(event.request, failure)
                return
        yield Reply(event.request, AppendOk({}))

    def commit_for(self, event: HandOver) -> Process[None]:
        """Commit a peer's batch and tell it what it lacks of the log."""
        replica, batch = self._replica, event.batch
        came_at = replica.clock.now
        replica.policy.peer_came()
        yield Notify(self._committer.came)
        yield from self._commit(batch, came_at + self._answer_s)
        if not replica.view.has(batch):
            left = {w: n for w, n in self._sent_back.items() if not replica.view.contains(w, n)}
            self._sent_back = left | {batch.writer: batch.seq}
        held_s = replica.confirmed_at - came_at
        yield Reply(event.request, replica.share(event.slot, held_s))

    def _commit(self, batch: Batch, until: float) -> Process[Failure | None]:
        """Return when this node does no more for a batch; with its failure (`Job`)."""
        done = Signal()
        again = self._sent_back.get(batch.writer) == batch.seq
        job = Job(batch, until, done=done, since=self._replica.clock.now, stays=again)
        if process := self._committer.add(job):
            yield Spawn(process)
        yield Wait(done)
        return job.failure
