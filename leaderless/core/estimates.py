"""Estimates of round trips and rates. Pure: time is an argument, in seconds.

Round trips are estimated as in TCP (Jacobson, RFC 6298), rates with exponential decay.
"""

from math import exp


class RoundTrip:
    """A smoothed round trip time and its mean deviation; `guess_s` until one was seen."""

    __slots__ = ("deviation_s", "known", "mean_s")

    def __init__(self, guess_s: float) -> None:
        self.known = False
        self.mean_s = guess_s
        self.deviation_s = guess_s / 2

    def took(self, seconds: float) -> None:
        """Learn from one round trip."""
        if not self.known:
            self.known, self.mean_s, self.deviation_s = True, seconds, seconds / 2
        self.deviation_s += (abs(seconds - self.mean_s) - self.deviation_s) / 4
        self.mean_s += (seconds - self.mean_s) / 8


class Rate:
    """Events a second, over about the last `memory_s`, or since the first look if that is less.

    A rate over less than `observed_s_min` is taken as over that time.
    """

    __slots__ = ("_at", "_level", "_memory_s", "_observed_s_min", "_since")

    def __init__(self, memory_s: float, observed_s_min: float) -> None:
        self._memory_s = memory_s
        self._observed_s_min = observed_s_min
        self._since: float | None = None
        self._level = 0.0
        self._at = 0.0

    def happened(self, times: int, now: float) -> None:
        """Count `times` events; 0 begins the observation."""
        if self._since is None:
            self._since = now
        if now != self._at:  # all that is read at once has one time
            self._level *= exp((self._at - now) / self._memory_s)
            self._at = now
        self._level += times

    def per_second(self, now: float) -> float:
        """The rate as of now."""
        if self._since is None:
            return 0.0
        observed_s = self._memory_s * (1 - exp((self._since - now) / self._memory_s))
        level = self._level * exp((self._at - now) / self._memory_s)
        return level / max(observed_s, self._observed_s_min)
