"""Estimates of round trips and rates. Pure: time is an argument, in seconds.

Round trips are estimated as in TCP (Jacobson, RFC 6298), rates with exponential decay.
"""

from math import exp

MEMORY_S = 1.0  # over how long a rate is measured


class RoundTrip:
    """A smoothed round trip time and its mean deviation; 0 until one was seen."""

    __slots__ = ("deviation_s", "known", "mean_s")

    def __init__(self) -> None:
        self.known: bool = False
        self.mean_s: float = 0.0
        self.deviation_s: float = 0.0

    def took(self, seconds: float) -> None:
        """Learn from one round trip."""
        if not self.known:
            self.known, self.mean_s, self.deviation_s = True, seconds, seconds / 2
        self.deviation_s += (abs(seconds - self.mean_s) - self.deviation_s) / 4
        self.mean_s += (seconds - self.mean_s) / 8


class Rate:
    """Events a second, over about the last `MEMORY_S`, or since the first look if that is less."""

    __slots__ = ("_at", "_level", "_since")

    def __init__(self) -> None:
        self._since: float | None = None
        self._level = 0.0
        self._at = 0.0

    def happened(self, times: int, now: float) -> None:
        """Count `times` events; 0 begins the observation."""
        if self._since is None:
            self._since = now
        if now != self._at:  # all that is read at once has one time
            self._level *= exp((self._at - now) / MEMORY_S)
            self._at = now
        self._level += times

    def per_second(self, now: float) -> float:
        """The rate as of now."""
        if self._since is None:
            return 0.0
        observed_s = MEMORY_S * (1 - exp((self._since - now) / MEMORY_S))
        level = self._level * exp((self._at - now) / MEMORY_S)
        return level / observed_s if observed_s else 0.0


class Company:
    """How much comes, a second, while something else waits or is under way.

    The rate of all that comes would deceive. A client that waits for its answer sends nothing meanwhile, so one
    fast client has a high rate, and is alone.
    """

    __slots__ = ("_at", "_busy", "_busy_s", "_came")

    def __init__(self) -> None:
        self._busy = False
        self._came = 0.0
        self._busy_s = 0.0  # of the time over which a rate is measured
        self._at = 0.0

    def arrived(self, now: float) -> None:
        """Something came."""
        self._pass(now)
        if self._busy:
            self._came += 1
        self._busy = True

    def idle(self, now: float) -> None:
        """Nothing waits, and nothing is under way."""
        self._pass(now)
        self._busy = False

    def per_second(self, now: float) -> float:
        """The rate as of now."""
        self._pass(now)
        return self._came / self._busy_s if self._busy_s else 0.0

    def _pass(self, now: float) -> None:
        passed_s = now - self._at
        if not passed_s:
            return
        decay = exp(-passed_s / MEMORY_S)
        self._came *= decay
        self._busy_s = self._busy_s * decay + (passed_s if self._busy else 0.0)
        self._at = now
