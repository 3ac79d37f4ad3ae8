"""How long a store call may take: from the measured round trip, with back-off, as TCP does (RFC 6298)."""

from leaderless.core.estimates import RoundTrip
from leaderless.core.messages import StoreOp
from leaderless.core.pace import Pace

COUNTED_MAX = 32  # more answers, timeouts or errors make no difference
NEVER = float("-inf")


class StoreTimeouts:
    """Timeouts of the calls of one process.

    While nothing was measured, the timeout grows with each loss: the store may be farther away than
    `Pace.store_timeout_s`. Afterwards it follows what was measured, from above: the first answers may be lucky
    ones. While the store is silent it is twice that, not more: so the store is asked again soon after it has
    come back. An answer that comes after its timeout teaches as much as any other. A few very late ones do not
    make it longer than `Pace.timeout_s_max`.

    All calls of a process teach the same timeout, those of upkeep too. A slow one, such as the write of a
    large run, never makes it shorter. After one that took `s` seconds it is at most `Pace.timeout_s_max`, or
    twice the mean and `s / 4`, if that is longer; each quick answer takes an eighth of that back. Only an
    append whose call is lost waits so long. Pauses after errors of upkeep end with a write that succeeds.
    """

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self._round_trip = RoundTrip()
        self._answers = 0
        self._floor_s = pace.store_timeout_s  # of the timeout, since the last answer
        self._lost = 0  # timeouts in a row, of calls made one after the other
        self._lost_at = NEVER
        self._errors: dict[type[StoreOp], int] = {}  # in a row, of each operation

    @property
    def timeout_s(self) -> float:
        """How long the next call may take."""
        pace, measured = self._pace, self._round_trip
        if not measured.known:
            first_s = pace.store_timeout_s
            grown_s = first_s * pace.timeout_growth**self._lost
            return max(first_s, min(grown_s, pace.timeout_unmeasured_max_s))
        measured_s = measured.mean_s + pace.timeout_deviations * measured.deviation_s
        if self._lost:
            measured_s *= 2
        if measured_s <= self._floor_s:  # mostly
            return self._floor_s
        return max(self._floor_s, min(measured_s, max(pace.timeout_s_max, 2 * measured.mean_s)))

    @property
    def spent_by_silence(self) -> float:
        """Which part of a caller's patience a call without an answer uses up."""
        return 1 / self._pace.store_attempts

    def spent_by_error(self, pause_s: float) -> float:
        """Which part of a caller's patience an error uses up that was followed by this pause: at most as much
        as silence."""
        return min(self.spent_by_silence, pause_s / self._pace.error_patience_s)

    def answered(self, op: type[StoreOp], after_s: float) -> None:
        """A call got a clear answer."""
        self._round_trip.took(after_s)
        if self._answers < COUNTED_MAX:
            self._answers += 1
            early_s = self._pace.timeout_unmeasured_max_s / 2.0**self._answers
            self._floor_s = max(self._pace.store_timeout_s, early_s)
        self._lost, self._lost_at = 0, NEVER
        if self._errors:
            self._errors.pop(op, None)

    def timed_out(self, asked_at: float, now: float) -> None:
        """A call got no answer in time. Calls that were under way together are lost together."""
        if asked_at >= self._lost_at:
            self._lost, self._lost_at = min(self._lost + 1, COUNTED_MAX), now

    def pause_s(self, op: type[StoreOp]) -> float:
        """How long to wait after an error before its call counts as unknown, and may be made again."""
        errors = self._errors[op] = min(self._errors.get(op, 0) + 1, COUNTED_MAX)
        return min(self._pace.error_pause_max_s, self._pace.error_pause_s * 2.0 ** (errors - 1))
