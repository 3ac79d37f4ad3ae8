"""Delivery: gets one batch into the log, by committing it here or handing it to the node that commits.

Whoever loses a conflict decides again, and now knows the winner: so under contention all hand over to one
node, and it alone finds that it committed last. That is no election: no node waits for it, and when it does not
answer in time, a node commits for itself and becomes the one that committed last. A batch keeps its name
whichever way it goes, so the copy that a silent peer may still hold cannot append it twice. Which way, and for
how long: the `pacer` says so.
"""

from contextlib import suppress

from leaderless.core.coordination import StoreSilent
from leaderless.core.headlog import trace as steps
from leaderless.core.headlog.committer import Committer, Job
from leaderless.core.headlog.pacer import Pacer
from leaderless.core.headlog.replica import Replica
from leaderless.core.messages import Batch, HandedOver, Offer
from leaderless.core.process import Process, Spawn, Wait, ask
from leaderless.core.strategy import Clock


class Delivery:
    """Chooses and goes the way of each batch of one node."""

    def __init__(self, clock: Clock, replica: Replica, pacer: Pacer, committer: Committer) -> None:
        self._clock = clock
        self._replica = replica
        self._pacer = pacer
        self._committer = committer

    def deliver(self, batch: Batch, until: float) -> Process[bool]:
        """Returns whether the batch is in the log; if not, `is_dead` says whether it never will be.

        After `until` nobody waits for it. Then it is left alone, wherever it is on its way: it may get into
        the log later, before the next batch of its writer or never, because of two of a writer the older
        one cannot enter after the newer (`View.contains`).
        """
        was_silent = False
        while self._is_alive(batch) and not self._is_in_log(batch) and self._clock.now < until:
            yield from self._probe(batch)
            peer = None if was_silent else self._pacer.target()
            if peer:
                was_silent = not (yield from self._hand_to(peer, batch))
            else:
                job = Job(batch, self._clock.now, until)
                yield from self._committer.submit(job)
                yield Wait(job.done)
        return self._is_in_log(batch)

    def is_dead(self, batch: Batch) -> bool:
        """Whether a batch that is not in the log never will be: a new epoch keeps it out."""
        return not self._is_alive(batch)

    def _is_alive(self, batch: Batch) -> bool:
        head = self._replica.head
        return head.epoch == batch.epoch and not head.fenced

    def _is_in_log(self, batch: Batch) -> bool:
        return self._replica.view.contains(batch.writer, batch.seq)

    def _probe(self, batch: Batch) -> Process[None]:
        """Hand the batch to suspects whose time has come, too, without waiting for them."""
        for peer in self._pacer.to_probe():
            yield Spawn(self._hand_to(peer, batch))

    def _hand_to(self, peer: str, batch: Batch) -> Process[bool]:
        """Returns whether the peer answered."""
        asked_at, slot = self._clock.now, self._replica.view.slot
        self._replica.trace("HandOver", steps.handed, batch, peer)
        answer = yield from ask(peer, Offer(slot, batch), self._pacer.patience_s)
        if not isinstance(answer, HandedOver):
            self._pacer.peer_was_silent(peer)
            return False
        self._pacer.peer_answered(peer, self._clock.now - asked_at)
        with suppress(StoreSilent):  # nothing learnt: the batch goes another round
            yield from self._replica.learn(answer, asked_at)
        self._pacer.peer_helped(peer, helped=self._is_in_log(batch))
        return True
