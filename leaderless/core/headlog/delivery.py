"""Delivery: gets one batch into the log, by committing it here or handing it to the node that commits.

Whoever loses a conflict decides again, and now knows the winner: so under contention all hand over to one
node, and it alone finds that it committed last. That is no election: no node waits for it, and when it does not
answer in time, a node commits for itself and becomes the one that committed last. A batch keeps its name
whichever way it goes, so the copy that a silent peer may still hold cannot append it twice.

A peer that was silent is asked again now and then, but nothing waits for it: its answer ends the suspicion.
"""

from contextlib import suppress
from math import inf
from typing import NamedTuple

from leaderless.core.coordination import StoreSilent
from leaderless.core.headlog import trace as steps
from leaderless.core.headlog.committer import Committer, Job
from leaderless.core.headlog.economics import RoundTrip, committing_is_cheaper
from leaderless.core.headlog.replica import Replica
from leaderless.core.messages import Batch, HandedOver, Offer
from leaderless.core.process import Process, Spawn, Wait, ask
from leaderless.core.strategy import Context

SUSPECT_PATIENCES = 2
SUSPECT_S_MAX = 2.0


class Suspicion(NamedTuple):
    """A silent peer is not asked again before `until`, which was `span_s` ahead."""

    until: float
    span_s: float


class Delivery:
    """Chooses and goes the way of each batch of one node."""

    def __init__(self, context: Context, replica: Replica, committer: Committer) -> None:
        self._node, self._peers, _ = context.identity
        self._clock = context.clock
        self._combine = context.options.combine
        self._replica = replica
        self._committer = committer
        self._suspects: dict[str, Suspicion] = {}
        self._helper = ""  # the peer that committed this node's last batch
        self._peer = RoundTrip(guess_s=0.0)

    def deliver(self, batch: Batch, until: float) -> Process[bool]:
        """Returns whether the batch is in the log; if not, `is_dead` says whether it never will be.

        After `until` nobody waits for it. Then it is left alone, wherever it is on its way: it may get into
        the log later, before the next batch of its writer or never, because of two of a writer the older
        one cannot enter after the newer (`View.contains`).
        """
        was_silent = False
        while self._is_alive(batch) and not self._is_in_log(batch) and self._clock.now < until:
            yield from self._probe(batch)
            peer = None if was_silent else self._target()
            if peer:
                was_silent = not (yield from self._hand_to(peer, batch))
            else:
                job = Job(batch, self._clock.now, until)
                yield from self._committer.submit(job)
                yield Wait(job.done)
        return self._is_in_log(batch)

    @property
    def round_trip_s(self) -> float:
        """How long the next batch is going to take."""
        return self._hand_over_s if self._target() else self._replica.store.mean_s

    def is_dead(self, batch: Batch) -> bool:
        """Whether a batch that is not in the log never will be: a new epoch keeps it out."""
        return not self._is_alive(batch)

    def _is_alive(self, batch: Batch) -> bool:
        head = self._replica.head
        return head.epoch == batch.epoch and not head.fenced

    def _is_in_log(self, batch: Batch) -> bool:
        return self._replica.view.contains(batch.writer, batch.seq)

    def _target(self) -> str | None:
        """The peer to hand a batch to now; None to commit it here."""
        replica = self._replica
        peer = self._committing_peer()
        if not self._combine or peer is None:
            return None
        store_s = replica.store.mean_s
        cheaper = committing_is_cheaper(replica.contention, store_s, self._hand_over_s)
        return None if cheaper else peer

    def _committing_peer(self) -> str | None:
        """The peer that helped last, or else the one that committed last, of those that are not silent.

        None if this node committed last.
        """
        committers = self._replica.committers
        if committers and committers[0] != self._node and self._helper:
            return self._helper
        for node in committers:
            if node == self._node:
                return None
            if node in self._peers and node not in self._suspects:
                return node
        return None

    def _probe(self, batch: Batch) -> Process[None]:
        """Hand the batch to suspects whose time has come, too, without waiting for them."""
        for peer, suspicion in self._suspects.items():
            if suspicion.until <= self._clock.now:
                self._suspects[peer] = suspicion._replace(until=inf)  # while this is under way
                yield Spawn(self._hand_to(peer, batch))

    def _hand_to(self, peer: str, batch: Batch) -> Process[bool]:
        """Returns whether the peer answered."""
        asked_at, slot = self._clock.now, self._replica.view.slot
        self._replica.trace("HandOver", steps.handed, batch, peer)
        answer = yield from ask(peer, Offer(slot, batch), self._patience_s)
        if isinstance(answer, HandedOver):
            self._suspects.pop(peer, None)
            self._peer.took(self._clock.now - asked_at)
            with suppress(StoreSilent):  # nothing learnt: the batch goes another round
                yield from self._replica.learn(answer, asked_at)
            self._helper = peer if self._is_in_log(batch) else ""
            return True
        self._suspect(peer)
        if self._helper == peer:
            self._helper = ""
        return False

    def _suspect(self, peer: str) -> None:
        """Suspect a silent peer: nothing is sent to it for a span, which doubles at each silence."""
        known = self._suspects.get(peer)
        span_s = 2 * known.span_s if known else SUSPECT_PATIENCES * self._patience_s
        span_s = min(SUSPECT_S_MAX, span_s)
        self._suspects[peer] = Suspicion(self._clock.now + span_s, span_s)

    @property
    def _hand_over_s(self) -> float:
        """How long a hand-over takes: the peer's store call, and as long again on the way."""
        return self._peer.mean_s if self._peer.known else 2 * self._replica.store.mean_s

    @property
    def _patience_s(self) -> float:
        """How long it may take: the peer may have a store call under way, and then makes ours."""
        return max(self._peer.patience_s, 4 * self._replica.store.patience_s)
