"""Delivery: gets one batch into the log, by committing it here or handing it to the node that commits.

Whoever loses a conflict decides again, and now knows the winner: so under contention all hand over to one
node, and it alone finds that it committed last. That is no election: no node waits for it, and when it does not
answer in about the time that 19 of 20 answers take, the batch goes another way, too: to another peer, or it is
committed here. It keeps its name whichever way it goes, so whichever copy is first in the log wins, and every
other one is found to be there already (`attempt`, Law 1). Which way, and for how long: the `pacer` says so.
"""

from contextlib import suppress

from leaderless.core.coordination import StoreSilent
from leaderless.core.headlog import trace as steps
from leaderless.core.headlog.committer import Committer, Job
from leaderless.core.headlog.pacer import Pacer
from leaderless.core.headlog.replica import Replica
from leaderless.core.messages import Batch, HandedOver, Offer
from leaderless.core.process import Notify, Process, Signal, Sleep, Spawn, Wait, ask
from leaderless.core.strategy import Clock


class Delivery:
    """Chooses and goes the way of each batch of one node."""

    def __init__(self, clock: Clock, replica: Replica, pacer: Pacer, committer: Committer) -> None:
        self._clock = clock
        self._replica = replica
        self._pacer = pacer
        self._committer = committer
        self._away: dict[Signal, tuple[Batch, str]] = {}  # handed to a peer, and not moved on yet
        self._watching = False

    def deliver(self, batch: Batch, until: float) -> Process[bool]:
        """Returns whether the batch is in the log; if not, `is_dead` says whether it never will be.

        After `until` nobody waits for it. Then it is left alone, wherever it is on its way: it may get into
        the log later, before the next batch of its writer or never, because of two of a writer the older
        one cannot enter after the newer (`View.contains`).
        """
        while self._is_alive(batch) and not self._is_in_log(batch) and self._clock.now < until:
            yield from self._probe(batch)
            peer = self._pacer.target()
            if peer:
                yield from self._hand_to(peer, batch)
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
            yield Spawn(self._ask(peer, batch, Signal()))

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
        yield Spawn(self._hedge(peer, moved))
        yield Wait(moved)
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
        answer = yield from ask(peer, Offer(slot, batch), self._pacer.patience_s)
        if isinstance(answer, HandedOver):
            self._pacer.peer_answered(peer, self._clock.now - asked_at)
            with suppress(StoreSilent):  # nothing learnt: the batch goes another round
                yield from self._replica.learn(answer, asked_at)
            self._pacer.peer_helped(peer, helped=self._is_in_log(batch))
        else:
            self._pacer.peer_was_silent(peer)
            yield from self._leave(peer)
        yield Notify(moved)

    def _hedge(self, peer: str, moved: Signal) -> Process[None]:
        yield Sleep(self._clock.now + self._pacer.hedge_s)
        if not moved.fired:
            self._pacer.peer_is_late(peer)
            yield from self._leave(peer)

    def _leave(self, peer: str) -> Process[None]:
        """All batches that wait for a peer go another way, too, and together."""
        for moved in [each for each, (_, dest) in self._away.items() if dest == peer]:
            yield Notify(moved)
