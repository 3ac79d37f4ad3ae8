"""What is cheaper: estimates of rates and round trips, and the choices made from them.

One constant prices everything: `MESSAGE_WORTH_S`, how long a client may wait to save one server message.
From it follow when a batch is handed over instead of committed, and when waiting for company pays.
Round trips are estimated as in TCP (Jacobson, RFC 6298), rates with exponential decay. Pure: time is an
argument, in seconds.
"""

from math import exp
from typing import NamedTuple

MESSAGE_WORTH_S = 0.005
LINGER_S = 0.0025  # before a commit
BATCH_LINGER_S = 0.001  # before a batch is made; a commit is still to come
NOBODY = 0.02  # when fewer of the waits than this bring company, waiting is given up,
TRY_EVERY = 32  # but for one wait in so many, to see whether any would come by now
RATE_MEMORY_S = 1.0
OBSERVED_S_MIN = 0.01  # a rate over less time says nothing
PATIENCE_DEVIATIONS = 8
PATIENCE_MEANS = 4
PATIENCE_S_MIN = 0.02
PATIENCE_S_MAX = 1.0


class RoundTrip:
    """A smoothed round trip time and the patience that follows from it; `guess_s` until one was seen."""

    def __init__(self, guess_s: float) -> None:
        self.known = False
        self.mean_s = guess_s
        self._deviation_s = guess_s / 2

    def took(self, seconds: float) -> None:
        """Learn from one round trip."""
        if not self.known:
            self.known, self.mean_s, self._deviation_s = True, seconds, seconds / 2
        self._deviation_s += (abs(seconds - self.mean_s) - self._deviation_s) / 4
        self.mean_s += (seconds - self.mean_s) / 8

    @property
    def patience_s(self) -> float:
        """How long to wait before the other side counts as silent.

        TCP's four deviations are too few here: delays that are exponentially distributed exceed them once in
        a hundred times, and a node that then commits for itself makes commits of all others fail. After a
        few slow answers the deviation is no measure any more, but the mean still is.
        """
        patience_s = self.mean_s + PATIENCE_DEVIATIONS * self._deviation_s
        return max(PATIENCE_S_MIN, min(PATIENCE_S_MAX, PATIENCE_MEANS * self.mean_s, patience_s))


class Rate:
    """Events a second, over about the last second, or since the first look if that is less."""

    def __init__(self) -> None:
        self._since: float | None = None
        self._level = 0.0
        self._at = 0.0

    def happened(self, times: int, now: float) -> None:
        """Count `times` events; 0 begins the observation."""
        if self._since is None:
            self._since = now
        self._level = self._decayed(now) + times
        self._at = now

    def per_second(self, now: float) -> float:
        """The rate as of now."""
        if self._since is None:
            return 0.0
        observed_s = RATE_MEMORY_S * (1 - exp((self._since - now) / RATE_MEMORY_S))
        return self._decayed(now) / max(observed_s, OBSERVED_S_MIN)

    def _decayed(self, now: float) -> float:
        return self._level * exp((self._at - now) / RATE_MEMORY_S)


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


def committing_is_cheaper(contention: Contention, store_s: float, hand_over_s: float) -> bool:
    """Whether a node should commit a batch itself rather than hand it over.

    After a conflict it reads the head and tries again either way. And its own success makes a commit of
    the others fail that is under way: that costs each batch that shares that commit as much.
    """
    conflict = contention.conflict
    read_s = 0.0 if reading_ahead_pays(contention, store_s) else store_s
    again = read_s + min(store_s * (1 + conflict), hand_over_s) + 4 * MESSAGE_WORTH_S
    disturbed = min(1.0, contention.rate * store_s) * max(0.0, contention.batches - 1)
    commit = store_s + 2 * MESSAGE_WORTH_S + (conflict + disturbed) * again
    return commit <= hand_over_s + 2 * MESSAGE_WORTH_S


def reading_ahead_pays(contention: Contention, store_s: float, failures: int = 0) -> bool:
    """Whether to read the head beside the compare-and-set: it saves a round trip after a conflict.

    Who has lost `failures` times in a row pays more for time.
    """
    return contention.conflict * store_s * (1 + failures) > 2 * MESSAGE_WORTH_S


def another_lane_pays(waiting: int, hand_over_s: float) -> bool:
    """Whether to start a further batch while one is under way: two messages, against waiting for it."""
    return waiting * hand_over_s / 2 > 2 * MESSAGE_WORTH_S


def linger_s(arrival_rate: float, round_trip_s: float, wait_s: float = LINGER_S) -> float:
    """How long to wait for company before a call: `wait_s` or not at all.

    Without waiting there is one call per 1/rate + round trip; with it, one per 1/rate + round trip +
    `wait_s`. The messages saved must be worth more than the time that all arrivals wait.
    """
    if arrival_rate <= 0:
        return 0.0
    cycle = 1 / arrival_rate + round_trip_s
    saved = 2 * MESSAGE_WORTH_S * (1 / cycle - 1 / (cycle + wait_s))
    return wait_s if saved > arrival_rate * wait_s else 0.0


class Company:
    """Whether to wait `wait_s` for company, and whether company ever came.

    The rate of arrivals alone would deceive: a client that waits for its answer sends nothing meanwhile, so
    one fast client has a high rate, and is alone.
    """

    def __init__(self, wait_s: float = LINGER_S) -> None:
        self._wait_s = wait_s
        self._arrivals = Rate()
        self._luck = 1.0  # which part of the waits brought any
        self._passed = 0  # waits that experience advised against, in a row

    def arrived(self, now: float) -> None:
        """Count an arrival."""
        self._arrivals.happened(1, now)

    def linger_s(self, round_trip_s: float, now: float) -> float:
        """How long to wait; now and then against all experience."""
        wait_s = linger_s(self._arrivals.per_second(now), round_trip_s, self._wait_s)
        if wait_s and self._luck < NOBODY:
            self._passed = (self._passed + 1) % TRY_EVERY
            return 0.0 if self._passed else wait_s
        return wait_s

    def came(self, gained: int) -> None:
        """Learn how many arrivals a wait has gained."""
        self._luck += ((gained > 0) - self._luck) / 32
