"""Batches of this node that go to a peer: asked once, found in whatever this node learns of the log meanwhile.

A peer that does not answer in about the time that 19 of 20 answers take is late. All batches that wait for it
go another way, too. Its answer counts whenever it comes: a batch has its name, so a second copy does no harm.
"""

from contextlib import suppress
from math import inf

from leaderless.core.coordination import StoreSilent
from leaderless.core.headlog import trace as steps
from leaderless.core.headlog.policy import CommitPolicy
from leaderless.core.headlog.replica import Replica
from leaderless.core.messages import Batch, HandedOver, NotSent, Offer
from leaderless.core.process import Notify, Process, Signal, Spawn, Wait, ask
from leaderless.core.strategy import Clock


class HandOvers:
    """What one node has handed to its peers."""

    def __init__(self, clock: Clock, replica: Replica, policy: CommitPolicy) -> None:
        self._clock = clock
        self._replica = replica
        self._policy = policy
        self._answer_s = replica.limits.answer_s
        # What waits for a peer, and has not moved on.
        self._away: dict[Signal, tuple[Batch, str]] = {}
        # Of each writer the last batch, and how many peers may have it.
        self._given: dict[str, tuple[int, int]] = {}
        self._watching = False

    def gave(self, batch: Batch) -> bool:
        """Whether a peer may have the batch of this node."""
        seq, peers = self._given.get(batch.writer, (0, 0))
        return seq == batch.seq and peers > 0

    def _count(self, batch: Batch, more: int) -> None:
        seq, peers = self._given.get(batch.writer, (0, 0))
        if seq <= batch.seq:
            self._given[batch.writer] = batch.seq, more + (peers if seq == batch.seq else 0)

    def probe(self, peers: list[str], batch: Batch) -> Process[None]:
        """Show a batch to late peers, too; nothing waits for them."""
        for peer in peers:
            yield Spawn(self._ask(peer, batch, Signal(), measured=False))

    def hand_to(self, peer: str, batch: Batch) -> Process[None]:
        """Return when the peer has answered, or when the batch has waited so long that it goes another way.

        Its answer counts whenever it comes. It may be lost, or late: then the log shows the batch as well.
        """
        yield from self.probe(self._policy.to_probe(), batch)
        moved = Signal()
        self._away[moved] = batch, peer
        if not self._watching:
            self._watching = True
            yield Spawn(self._watch())
        yield Spawn(self._ask(peer, batch, moved, measured=not self._policy.greeting_s(peer)))
        yield Wait(moved, self._clock.now + self._policy.hedge_s + self._policy.greeting_s(peer))
        if not moved.fired:
            self._policy.peer_is_late(peer)
            yield from self._leave(peer)
        del self._away[moved]

    def _watch(self) -> Process[None]:
        """While batches are away, look for them in whatever this node learns of the log."""
        while self._away:
            yield Wait(self._replica.news)
            for moved in [
                m for m, (batch, _) in self._away.items() if self._replica.view.has(batch)
            ]:
                yield Notify(moved)
        self._watching = False

    def _ask(self, peer: str, batch: Batch, moved: Signal, *, measured: bool) -> Process[None]:
        asked_at, slot = self._clock.now, self._replica.view.slot
        self._replica.trace("HandOver", steps.handed, batch, peer)
        self._count(batch, 1)
        answer = yield from ask(peer, Offer(slot, batch), self._answer_s)
        if isinstance(answer, NotSent):
            self._count(batch, -1)
        if isinstance(answer, HandedOver):
            self._policy.peer_answered(peer, self._clock.now - asked_at if measured else inf)
            with suppress(StoreSilent):  # nothing learnt: the batch goes another round
                yield from self._replica.learn(answer, asked_at)
            self._policy.peer_helped(peer, helped=self._replica.view.has(batch))
        elif self._clock.now < asked_at + self._answer_s:
            # It refused. A silent one was late long ago (`hand_to`), and may have answered since.
            self._policy.peer_is_late(peer)
            yield from self._leave(peer)
        yield Notify(moved)

    def _leave(self, peer: str) -> Process[None]:
        """All batches that wait for a peer go another way, too, and together."""
        for moved in [each for each, (_, dest) in self._away.items() if dest == peer]:
            yield Notify(moved)
