"""What is cheaper: choices that follow from estimates and one price, `Pace.message_worth_s`.

That is how long a client may wait to save one server message. From it follow when a batch is handed over
instead of committed, and when waiting for company pays. Pure: time is an argument, in seconds.
"""

from math import exp
from typing import NamedTuple

from leaderless.core.estimates import Rate
from leaderless.core.pace import Pace


class Contention(NamedTuple):
    """What a node knows about the others' commits when it decides.

    `rate`: their commits a second; `batches`: how many batches such a commit carries; `age_s`: how old
    this node's view is, counted from when it asked.
    """

    rate: float
    batches: float
    age_s: float

    @property
    def conflict(self) -> float:
        """The probability that a compare-and-set finds the head changed.

        The view is as of half a round trip after it was asked for, and the compare-and-set arrives half a
        round trip from now: the two halves cancel.
        """
        return 1 - exp(-self.rate * self.age_s)


def committing_is_cheaper(
    pace: Pace, contention: Contention, store_s: float, hand_over_s: float
) -> bool:
    """Whether a node should commit a batch itself rather than hand it over.

    After a conflict it reads the head and tries again either way. And its own success makes a commit of
    the others fail that is under way: that costs each batch that shares that commit as much.
    """
    conflict, two_messages_s = contention.conflict, 2 * pace.message_worth_s
    read_s = 0.0 if reading_ahead_pays(pace, contention, store_s) else store_s
    again = read_s + min(store_s * (1 + conflict), hand_over_s)
    again += pace.conflict_messages * pace.message_worth_s + pace.conflict_round_trips * store_s
    disturbed = min(1.0, contention.rate * store_s) * max(0.0, contention.batches - 1)
    commit = store_s + two_messages_s + (conflict + disturbed) * again
    return commit <= hand_over_s + two_messages_s


def reading_ahead_pays(
    pace: Pace, contention: Contention, store_s: float, failures: int = 0
) -> bool:
    """Whether to read the head beside the compare-and-set: it saves a round trip after a conflict.

    A node that has lost `failures` times in a row pays more for time.
    """
    return contention.conflict * store_s * (1 + failures) > 2 * pace.message_worth_s


def another_lane_pays(pace: Pace, waiting: int, hand_over_s: float) -> bool:
    """Whether to start a further batch while one is under way: two messages, against waiting for it."""
    return waiting * hand_over_s / 2 > 2 * pace.message_worth_s


def linger_s(pace: Pace, arrival_rate: float, round_trip_s: float, wait_s: float) -> float:
    """How long to wait for company before a call: `wait_s` or not at all.

    Without waiting there is one call per 1/rate + round trip; with it, one per 1/rate + round trip +
    `wait_s`. The messages saved must be worth more than the time that all arrivals wait.
    """
    if arrival_rate <= 0:
        return 0.0
    cycle = 1 / arrival_rate + round_trip_s
    saved = 2 * pace.message_worth_s * (1 / cycle - 1 / (cycle + wait_s))
    return wait_s if saved > arrival_rate * wait_s else 0.0


class Company:
    """Whether to wait `wait_s` for company, and whether company ever came.

    The rate of arrivals alone would deceive: a client that waits for its answer sends nothing meanwhile, so
    one fast client has a high rate, and is alone.
    """

    def __init__(self, pace: Pace, wait_s: float) -> None:
        self._pace = pace
        self._wait_s = wait_s
        self._arrivals = Rate(pace.rate_memory_s, pace.rate_observed_s_min)
        # Which part of the waits brought any. At first a guess: 35 waits in vain are enough to give up.
        self._luck = 3 * pace.company_luck_min
        self._passed = 0  # waits that experience advised against, in a row

    def arrived(self, now: float) -> None:
        """Count an arrival."""
        self._arrivals.happened(1, now)

    def linger_s(self, round_trip_s: float, now: float) -> float:
        """How long to wait; now and then against all experience."""
        arrivals = self._arrivals.per_second(now)
        wait_s = linger_s(self._pace, arrivals, round_trip_s, self._wait_s)
        if wait_s and self._luck < self._pace.company_luck_min:
            self._passed = (self._passed + 1) % self._pace.company_try_every
            return 0.0 if self._passed else wait_s
        return wait_s

    def came(self, gained: int) -> None:
        """Learn how many arrivals a wait has gained."""
        self._luck += ((gained > 0) - self._luck) / 32
