"""The policy of the leaderless log: told facts, it says who commits a batch, and how long anything waits.

Safety is elsewhere (`attempt`, `replica`, `view`): any answers of a policy give the same log, with more
messages or fewer, sooner or later. `tests/property/test_adversarial_policy.py` gives a coin's answers.

What falls short: nobody is told who commits. Nodes that begin together, or that a partition joins again, find
out by conflicts, which takes 16 nodes half a second. And where many nodes have one client each, a commit has
few sends: at 25 nodes and 500 operations a second less than two.

What is chosen between messages and time follows from estimates and one price, `Pace.message_worth_s`: how long
a client may wait to save one server message. Rates and round trips are measured (`estimates`).
"""

from collections.abc import Callable, Container
from math import exp, inf, sqrt

from leaderless.core.estimates import MEMORY_S, Company, Rate, RoundTrip
from leaderless.core.pace import Pace
from leaderless.core.strategy import Clock

CALL = 2  # messages of a call and its answer
CONFLICT_ROUND_TRIPS = 2  # who lost once often loses again, and makes others lose
ISOLATED_AFTER = 2  # attempts in a row without an outcome, then batches go alone
READ_AHEAD_CALLS = 1.5  # what a read beside a compare-and-set costs: it may come too early
REST_EVERY_CONTENDED = 2  # commits in a row between two rests, where others commit in step
IN_STEP = 0.25  # as a share of a round trip, how little round trips deviate
ATTEMPTS_S = 10.0  # over how long the share of attempts that committed is measured
ANSWERS_S = 2.0  # so long a hand-over that was measured tells how long the next takes
COMMITTERS_MAX = 16  # programs come and go: who committed before these is asked nothing
SATURATED = 0.75  # commits in a round trip from which on programs take turns
RIVALS = 0.1  # as a share of the commits of this node, those of others that end its turn
CROWD_TURNS = 64  # who committed in so many turns counts as there
CONTENDERS = 3  # that meet at the end of a turn: with fewer, now and then nobody comes
GATHERS_MAX = 2  # round trips for which peers that go on are waited for at most
PEERS_ASKED = 3  # peers that get one batch in vain, then it is committed here


def linger_s(pace: Pace, rate: float) -> float:
    """How long to wait for company before a call, where so much else comes in a second.

    One call for each `cycle_s` costs a call a cycle, and half a cycle of waiting for each that comes. The sum
    is least at the square root: the economic order quantity (Harris 1913). Alone nobody waits (`Company`).
    """
    if not rate:
        return 0.0
    cycle_s = sqrt(2 * CALL * pace.message_worth_s / rate)
    return min(max(0.0, cycle_s - 1 / rate), pace.linger_s_max)


class CommitPolicy:
    """Decides for one node. `peers`: whom it can ask; `combine`: whether batches may be handed over at all.

    Facts come in through methods that return nothing; properties and the other methods are decisions.
    """

    def __init__(
        self, clock: Clock, node: str, peers: Container[str], pace: Pace, *, combine: bool = True
    ) -> None:
        self._clock = clock
        self._node = node
        self._peers: Container[str] = peers if combine else ()
        self._pace = pace
        self._store = RoundTrip()
        self._hand_over = RoundTrip()
        self._company = Company()  # of sends and of batches that peers hand over
        self._others, self._own = Rate(), Rate()  # commits of other nodes, and of this one
        self._confirmed_at = -inf
        # The version of the last head known of each, in that order; and of the last one of all.
        self._committers: dict[str, int] = {}
        self._version = 0
        self._due = 0  # the version from which on this node tries again; 0: it does not stand back
        self._awaited = 0.0  # the version below which, at the next look, nobody uses the turn
        self._helper = ""  # the peer that committed this node's last batch
        # Late peers: when to ask them again, and how long the last pause was.
        self._late: dict[str, tuple[float, float]] = {}
        self._failures = 0  # attempts in a row that committed nothing
        self._in_a_row = 0  # commits without a pause
        self._committed_at = -inf
        self.gathers_until: float = -inf
        self._going_on = 0  # peers that the last commit answered, and that brought nothing since
        self.gathers: bool = pace.gathers > 0
        self._share, self._share_at = 1.0, 0.0  # of attempts that committed, and as of when
        self._measured_at = -inf  # how long a hand-over takes
        self._unknowns = 0  # attempts without an outcome, since batches last went together
        self._passed = 0  # batches that went alone since the last of them

    # ---------------------------------------------------------------- facts

    def store_took(self, seconds: float) -> None:
        """A call of the store was answered."""
        self._store.took(seconds)

    def confirmed(self, at: float) -> None:
        """The view was the whole log at the time `at`, or later."""
        self._confirmed_at = at

    def head_is_by(self, node: str, version: int) -> None:
        """The newest head known is by `node`."""
        self._committers.pop(node, None)
        self._committers[node] = self._version = version
        if late := self._late.get(node):  # it lives, and may be reached again
            self._late[node] = min(late[0], self._clock.now + self.hedge_s), 0.0
        if len(self._committers) > COMMITTERS_MAX:
            self._late.pop(gone := next(iter(self._committers)), None)
            del self._committers[gone]

    def others_committed(self, commits: int) -> None:
        """Other nodes made so many commits; 0 begins the observation."""
        self._others.happened(commits, self._clock.now)

    def attempt_committed(self, batches: int, waiting: int, of_peers: int = 0) -> None:
        """An attempt put so many batches into the log, `of_peers` of peers; so many had waited.

        Peers that are answered go on together: what they do next belongs into one commit.
        """
        if self.isolates:
            self._passed += batches
            if self._passed >= waiting:
                self._unknowns = 0
        self._failures = 0
        self._in_a_row += 1
        if self._share < 1:
            self._tried(1.0)
        self._committed_at = self._clock.now
        self._own.happened(1, self._clock.now)
        self._going_on, self.gathers_until = of_peers, -inf
        if self._going_on:
            self._gather()

    def attempt_failed(self) -> None:
        """An attempt met another node's commit, or has no outcome."""
        self._failures += 1
        self._in_a_row = 0
        self._tried(0.0)

    def _tried(self, success: float) -> None:
        self._share, self._share_at = (
            self._success_share + (success - self._success_share) / 8,
            self._clock.now,
        )

    @property
    def _success_share(self) -> float:
        """The share of this node's attempts that committed of late; 1 is what it forgets to."""
        return 1 - (1 - self._share) * exp((self._share_at - self._clock.now) / ATTEMPTS_S)

    def attempt_unknown(self) -> None:
        """The compare-and-set of an attempt has no outcome."""
        self._unknowns += 1
        self._passed = 0

    def arrived(self) -> None:
        """Something to append has come: a send, or a batch of a peer."""
        self._company.arrived(self._clock.now)

    def peer_came(self) -> None:
        """A batch of a peer has come."""
        self.arrived()
        if self._going_on:
            self._going_on -= 1
            self._gather()

    def _gather(self) -> None:
        """While peers go on, wait for the next of them, each time anew; not when all have come."""
        self.gathers_until = min(
            self._clock.now + min(self._pace.gathers * self._store.mean_s, self._pace.linger_s_max),
            self._committed_at + GATHERS_MAX * self._store.mean_s if self._going_on else -inf,
        )

    def idle(self) -> None:
        """Nothing is to be appended any more."""
        self._company.idle(self._clock.now)

    def peer_is_late(self, peer: str) -> None:
        """A batch that was handed to a peer goes another way, too: the peer has not answered in time.

        It is passed over until it answers, and asked again after as long as it was waited for (`to_probe`).
        """
        self._late.setdefault(peer, (self._clock.now + self.hedge_s, 0.0))
        if self._helper == peer:
            self._helper = ""

    def peer_answered(self, peer: str, seconds: float) -> None:
        """A peer answered a hand-over, in time or not; inf: a probe, or one that began with a greeting.

        How long one stood still says little of the others: more than twice the patience counts as that.
        """
        self._late.pop(peer, None)
        if seconds < inf:
            self._hand_over.took(min(seconds, 2 * self.hedge_s))
            self._measured_at = self._clock.now

    def peer_helped(self, peer: str, *, helped: bool) -> None:
        """After a peer's answer the batch is in the log, or (`helped` false) it is not."""
        self._helper = peer if helped else ""

    # ---------------------------------------------------------------- here, or to whom

    def greeting_s(self, peer: str) -> float:
        """How much longer than others a peer may take that has not helped: it may have to be greeted."""
        return (
            0.0
            if peer == self._helper
            else min(self._pace.greeting_s, self._pace.hedge_s_max - self.hedge_s)
        )

    def target(self, asked: int = 0) -> str | None:
        """The peer to hand a batch to now, which so many got in vain; None to commit it here."""
        peer = self.committing_peer() if asked < PEERS_ASKED else None
        return peer if peer and not self._committing_is_cheaper() else None

    def committing_peer(self) -> str | None:
        """The peer that helped last, or else the one that committed last, of those that are not late.

        None if this node committed last.
        """
        if next(reversed(self._committers), self._node) == self._node:
            return None
        for node in (self._helper, *reversed(self._committers)):
            if node == self._node:
                return None
            if node in self._peers and node not in self._late:
                return node
        return None

    def _committing_is_cheaper(self) -> bool:
        """Whether to commit a batch here rather than hand it over: both cost a call.

        After a conflict a node reads the head and tries again either way. And its own success is news to the
        others: the next commit of another fails if it comes first.
        """
        (others, own), store_s, hand_over_s = self._rates, self._store.mean_s, self._hand_over_s
        disturbed = others / (others + own + 1 / MEMORY_S)  # that another is the next to commit
        conflict = self._conflict
        read_s = 0.0 if self._reading_ahead_pays(conflict, 0) else store_s
        again = read_s + min(store_s * (1 + conflict), hand_over_s)
        again += 2 * CALL * self._pace.message_worth_s + CONFLICT_ROUND_TRIPS * store_s
        # In a crowd one attempt wins of as many as there are rivals, which no rate tells.
        return (store_s + (conflict + disturbed) * again) / self._success_share <= hand_over_s

    @property
    def _conflict(self) -> float:
        """The probability that a compare-and-set finds the head changed.

        The view is as of half a round trip after it was asked for, and the compare-and-set arrives half a
        round trip from now: the two halves cancel.
        """
        now = self._clock.now
        return 1 - exp(-self._others.per_second(now) * (now - self._confirmed_at))

    def to_probe(self) -> list[str]:
        """The late peers to which a batch is handed now, too, while nobody waits for them.

        Each is asked again and again: the question may have been lost. A node that never asked again would
        commit for itself, beside the others, long after it reaches them. Pauses double (`Pace.probe_s_max`).
        """
        if not self._late:
            return []
        now, hedge_s = self._clock.now, self.hedge_s
        due = [peer for peer, (until, _) in self._late.items() if until <= now]
        for peer in due:
            pause_s = max(hedge_s, min(2 * self._late[peer][1], self._pace.probe_s_max))
            self._late[peer] = now + pause_s, pause_s
        return due

    @property
    def keeps_losers(self) -> bool:
        """Whether a batch that lost a conflict stays here.

        It does if this node commits more than all others, or would commit its own batches itself. What goes
        back pays two more hops, and its node may reach the winner as little as this one.
        """
        if self.target() is None:
            return True
        others, own = self._rates
        return own > others

    @property
    def isolates(self) -> bool:
        """Whether batches go alone: the store may refuse one of them, and would refuse all with it."""
        return self._unknowns >= ISOLATED_AFTER

    @property
    def turn(self) -> int:
        """While batches go alone, which of those that wait is the next: a count that grows."""
        return self._unknowns if self.isolates else 0

    @property
    def reads_ahead(self) -> bool:
        """Whether to read the head beside a compare-and-set: it saves a round trip after a conflict."""
        return self._reading_ahead_pays(self._conflict, self._failures) and not self._takes_turns

    def _reading_ahead_pays(self, conflict: float, failures: int) -> bool:
        """A node that has lost `failures` times in a row pays more for time."""
        saved_s = conflict * self._store.mean_s * (1 + failures)
        return saved_s > READ_AHEAD_CALLS * CALL * self._pace.message_worth_s

    def needs_lane(self, waiting: int) -> bool:
        """Whether to begin another batch beside one that is under way: a call, against waiting for it."""
        return waiting * self._call_s / 2 > CALL * self._pace.message_worth_s

    @property
    def late(self) -> list[str]:
        """The peers that are late, in alphabetic order."""
        return sorted(self._late)

    # ---------------------------------------------------------------- after how long

    def company_until(self, since: float) -> float:
        """Until when those wait for company of which the first waits `since`: longer while peers go on."""
        lingers_s = linger_s(self._pace, self._company.per_second(self._clock.now))
        return max(since + lingers_s, self.gathers_until)

    def stands_back_s(self) -> float:
        """How long a try waits for its turn, where no committer can be reached; 0: it is made at once.

        A turn is `Pace.turn_commits` versions of the head. Who committed last goes on to its end, at a request
        a commit; then it lets others pass. Who lost twice tries again at the end of the turn. Whoever looks
        (after half of a long wait, or `hedge_s_max`, too), and finds that the log grew by less than half of
        what it could have, waits no more: nobody uses the turn.
        """
        length, version = self._pace.turn_commits or 1, self._version
        if not self._due:
            is_over = self._in_a_row > 0 and version % length == 0
            if not (is_over or self._failures > 1) or not self._takes_turns:
                return 0.0
            there = (at > version - CROWD_TURNS * length for at in self._committers.values())
            turns = max(1, sum(there) - CONTENDERS) if is_over else 1
            self._in_a_row, self._failures = 0, 1
            self._due = (version // length + turns) * length
        elif version >= self._due or version < self._awaited:
            self._due = 0
            return 0.0
        left = self._due - version
        left = min(
            left // 2 if left > 2 * length else left,
            max(1, int(self._pace.hedge_s_max / self._store.mean_s)),
        )
        self._awaited = version + left / 2
        # The head that is read is as of half a round trip before its answer, and of one after the question.
        return (left - 0.5) * self._store.mean_s

    @property
    def _takes_turns(self) -> bool:
        """Whether the log takes no more commits, and this node reaches none of those who make them."""
        others, own = self._rates
        return (
            self._pace.turn_commits > 0
            and others > RIVALS * own
            and (others + own) * self._store.mean_s >= SATURATED
            and not any(node in self._peers for node in self._committers if node != self._node)
        )

    def rest_s(self) -> float:
        """Between commits without a pause, now and then a round trip of rest; more often where others commit.

        And until `Pace.commit_every_s` have passed since the last commit was sent.

        A node that reaches no peer must commit for itself: it reads the head, and one round trip later
        replaces it. Against an endless row of commits it would lose for ever in step: where all round trips
        take about the same time. Where they vary, it wins by chance before long.
        """
        now, round_trip_s = self._clock.now, self._store.mean_s
        if now - self._committed_at > round_trip_s:
            self._in_a_row = 0
        if (early_s := self._committed_at - round_trip_s + self._pace.commit_every_s - now) > 0:
            return early_s
        if self._in_a_row < REST_EVERY_CONTENDED or self._takes_turns:
            return 0.0
        in_step = self._store.deviation_s < IN_STEP * round_trip_s
        contended = in_step and 2 * MEMORY_S * self._others.per_second(now) > 1
        if self._in_a_row < self._pace.rest_every and not contended:
            return 0.0
        self._in_a_row = 0
        return round_trip_s

    @property
    def hedge_s(self) -> float:
        """How long a batch waits for a peer until it goes another way, too: longer than 19 of 20 take.

        While no hand-over was measured, twice as long as a call of the store: it is one, and the way.
        """
        calls, taken = (1, self._hand_over) if self._hand_over.known else (2, self._store)
        spread_s = max(taken.mean_s, self._pace.lost_deviations * taken.deviation_s)
        return max(
            self._pace.hedge_s_min,
            min(calls * (taken.mean_s + spread_s), self._pace.hedge_s_max),
        )

    # ---------------------------------------------------------------- estimates

    @property
    def _rates(self) -> tuple[float, float]:
        """Commits in a second of the others, and of this node."""
        return self._others.per_second(self._clock.now), self._own.per_second(self._clock.now)

    @property
    def _hand_over_s(self) -> float:
        """How long a hand-over takes: the peer's store call, and as long again on the way.

        What was measured long ago says nothing: who took hand-overs for slow would never try one again.
        """
        is_known = self._clock.now - self._measured_at < ANSWERS_S
        return self._hand_over.mean_s if is_known else 2 * self._store.mean_s

    @property
    def _call_s(self) -> float:
        return self._hand_over_s if self.target() else self._store.mean_s


PolicyMaker = Callable[
    ..., CommitPolicy
]  # makes the policy of a node; `CommitPolicy` itself is one
