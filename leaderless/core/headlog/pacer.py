"""The pace of the leaderless log: told facts, it says who commits a batch, and how long anything waits.

Safety is elsewhere (`attempt`, `replica`, `view`): any answers of a pacer give the same log, with more
messages or fewer, sooner or later. `tests/property/test_adversarial_pace.py` gives a coin's answers.
"""

from typing import Protocol

from leaderless.core.estimates import Rate, RoundTrip
from leaderless.core.headlog.economics import (
    Company,
    Contention,
    another_lane_pays,
    committing_is_cheaper,
    reading_ahead_pays,
)
from leaderless.core.headlog.peers import Peers
from leaderless.core.pace import Pace
from leaderless.core.strategy import Clock


class Pacer:
    """Decides for one node. `combine`: whether batches may be handed over at all.

    Facts come in through methods that return nothing; properties and the other methods are decisions.
    """

    def __init__(
        self, clock: Clock, node: str, peers: tuple[str, ...], pace: Pace, *, combine: bool = True
    ) -> None:
        self._clock = clock
        self._pace = pace
        self._combine = combine
        self._peers = Peers(node, peers, pace)
        self._store = RoundTrip(pace.store_guess_s)
        self._foreign_commits, self._foreign_batches, self._own = (self._rate() for _ in range(3))
        self._jobs = Company(pace, pace.commit_linger_s)
        self._sends = Company(pace, pace.batch_linger_s)
        self._failures = 0  # attempts in a row that committed nothing
        self._in_a_row = 0  # commits without a pause
        self._committed_at = float("-inf")
        self._unknowns = 0  # attempts without an outcome, since batches last went together
        self._passed = 0  # batches that went alone since the last of them
        self._batch_s = 0.0  # how long the newest batch was going to take
        self._confirmed_at = float("-inf")

    def _rate(self) -> Rate:
        return Rate(self._pace.rate_memory_s, self._pace.rate_observed_s_min)

    # ---------------------------------------------------------------- facts

    def store_took(self, seconds: float) -> None:
        """A call of the store was answered."""
        self._store.took(seconds)

    def confirmed(self, at: float) -> None:
        """The view was the whole log at the time `at`, or later."""
        self._confirmed_at = at

    def head_is_by(self, node: str) -> None:
        """The newest head known is by `node`."""
        self._peers.committed(node)

    def others_committed(self, commits: int, batches: int) -> None:
        """Other nodes made so many commits with so many batches; 0 and 0 begin the observation."""
        self._foreign_commits.happened(commits, self._clock.now)
        self._foreign_batches.happened(batches, self._clock.now)

    def attempt_committed(self, batches: int, waiting: int) -> None:
        """An attempt put so many batches into the log; so many had waited."""
        if self.isolates:
            self._passed += batches
            if self._passed >= waiting:
                self._unknowns = 0
        self._failures = 0
        self._in_a_row += 1
        self._committed_at = self._clock.now
        self._own.happened(1, self._clock.now)

    def attempt_failed(self) -> None:
        """An attempt met another node's commit, or has no outcome."""
        self._failures += 1
        self._in_a_row = 0

    def attempt_unknown(self) -> None:
        """The compare-and-set of an attempt has no outcome."""
        self._unknowns += 1
        self._passed = 0

    def peer_is_late(self, peer: str) -> None:
        """A batch that was handed to a peer goes another way, too: the peer has not answered yet."""
        self._peers.is_late(peer)

    def peer_answered(self, peer: str, seconds: float) -> None:
        """A peer answered a hand-over."""
        self._peers.answered(peer, seconds)

    def peer_helped(self, peer: str, *, helped: bool) -> None:
        """After a peer's answer the batch is in the log, or (`helped` false) it is not."""
        self._peers.helped(peer, helped=helped)

    def peer_was_silent(self, peer: str) -> None:
        """A peer did not answer a hand-over within the patience."""
        self._peers.was_silent(peer, self._clock.now, self.patience_s)

    def job_arrived(self) -> None:
        """A batch waits for a commit."""
        self._jobs.arrived(self._clock.now)

    def send_arrived(self) -> None:
        """A send waits for a batch."""
        self._sends.arrived(self._clock.now)

    def jobs_came(self, gained: int) -> None:
        """While a commit lingered, so many batches joined it."""
        self._jobs.came(gained)

    def sends_came(self, gained: int) -> None:
        """While a batch lingered, so many sends joined it."""
        self._sends.came(gained)

    # ---------------------------------------------------------------- here, or to whom

    def target(self) -> str | None:
        """The peer to hand a batch to now; None to commit it here."""
        peer = self._peers.committing()
        if not self._combine or peer is None:
            return None
        cheaper = committing_is_cheaper(
            self._pace, self._contention, self._store.mean_s, self._hand_over_s
        )
        return None if cheaper else peer

    def to_probe(self) -> list[str]:
        """The suspects to which a batch is handed now, too, while nobody waits for them."""
        return self._peers.to_probe(self._clock.now)

    @property
    def keeps_losers(self) -> bool:
        """Whether a batch that lost a conflict stays here.

        It does if this node commits more than all others, or would commit its own batches itself. What goes
        back pays two more hops, and its node may reach the winner as little as this one.
        """
        if self.target() is None:
            return True
        return self._own.per_second(self._clock.now) > self._contention.rate

    @property
    def isolates(self) -> bool:
        """Whether batches go alone: the store may refuse one of them, and would refuse all with it."""
        return self._unknowns >= self._pace.isolated_after

    @property
    def turn(self) -> int:
        """While batches go alone, which of those that wait is the next: a count that grows."""
        return self._unknowns if self.isolates else 0

    @property
    def reads_ahead(self) -> bool:
        """Whether to read the head beside a compare-and-set, in case that it fails."""
        return reading_ahead_pays(self._pace, self._contention, self._store.mean_s, self._failures)

    def needs_lane(self, waiting: int) -> bool:
        """Whether to begin another batch beside one that is under way."""
        return another_lane_pays(self._pace, waiting, self._batch_s)

    @property
    def suspects(self) -> list[str]:
        """The peers that count as silent, in alphabetic order."""
        return self._peers.suspects

    # ---------------------------------------------------------------- after how long

    def rest_s(self) -> float:
        """Between commits without a pause, now and then a round trip of rest; often while others commit too.

        A node that reaches no peer must commit for itself: it reads the head, and one round trip later
        replaces it. Against an endless row of commits it would lose for ever, above all in step: where all
        round trips take about the same time. Where they vary, it wins by chance before long.
        """
        pace, round_trip_s = self._pace, self._store.mean_s
        if self._clock.now - self._committed_at > round_trip_s:
            self._in_a_row = 0
        if not self._in_a_row:
            return 0.0
        in_step = self._store.deviation_s < pace.in_step_deviation * round_trip_s
        contended = in_step and self._contention.rate > pace.contended_per_s
        every = pace.rest_every_contended if contended else pace.rest_every
        return 0.0 if self._in_a_row % every else round_trip_s

    def commit_linger_s(self) -> float:
        """How long a commit waits for company."""
        return self._jobs.linger_s(self._store.mean_s, self._clock.now)

    def batch_linger_s(self) -> float:
        """How long a batch waits for company."""
        self._batch_s = self._hand_over_s if self.target() else self._store.mean_s
        return self._sends.linger_s(self._batch_s, self._clock.now)

    @property
    def lane_overdue_s(self) -> float:
        """How long a send waits at most until it gets a lane, even if none pays."""
        return self._pace.lane_overdue_s

    @property
    def patience_s(self) -> float:
        """How long a hand-over may take: the peer may have a store call under way, and then makes ours."""
        calls_s = self._pace.patience_store_calls * self._patience_of(self._store)
        return max(self._patience_of(self._peers.round_trip), calls_s)

    @property
    def hedge_s(self) -> float:
        """How long a batch waits for a peer until it goes another way, too: longer than 19 of 20 take."""
        pace, peer = self._pace, self._peers.round_trip
        floor_s = pace.patience_store_calls * pace.patience_s_min
        calls, taken = (1, peer) if peer.known else (2, self._store)
        spread_s = max(taken.mean_s, pace.hedge_deviations * taken.deviation_s)
        taken_s = calls * (taken.mean_s + spread_s)
        return min(self.patience_s, max(floor_s, taken_s))

    # ---------------------------------------------------------------- estimates

    @property
    def _contention(self) -> Contention:
        now = self._clock.now
        commits = self._foreign_commits.per_second(now)
        batches = self._foreign_batches.per_second(now)
        carried = batches / commits if commits else 0.0
        return Contention(commits, carried, now - self._confirmed_at)

    @property
    def _hand_over_s(self) -> float:
        """How long a hand-over takes: the peer's store call, and as long again on the way."""
        peer = self._peers.round_trip
        return peer.mean_s if peer.known else 2 * self._store.mean_s

    def _patience_of(self, estimate: RoundTrip) -> float:
        """How long to wait before the other side counts as silent.

        After a few slow answers the deviation is no measure any more, but the mean still is.
        """
        pace, mean_s = self._pace, estimate.mean_s
        spread_s = mean_s + pace.patience_deviations * estimate.deviation_s
        patience_s = min(pace.patience_s_max, pace.patience_means * mean_s, spread_s)
        return max(pace.patience_s_min, patience_s)


class PacerMaker(Protocol):
    """Makes the pacer of a node; `Pacer` itself is one."""

    def __call__(
        self, clock: Clock, node: str, peers: tuple[str, ...], pace: Pace, *, combine: bool
    ) -> Pacer: ...
