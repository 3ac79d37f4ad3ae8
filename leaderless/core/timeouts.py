"""How long a store call may take: from the measured round trip, with back-off, as TCP does (RFC 6298)."""

from leaderless.core.estimates import RoundTrip
from leaderless.core.messages import StoreOp
from leaderless.core.pace import FAR_S, Pace

NEVER = float("-inf")


class StoreTimeouts:
    """Timeouts of the calls of one process.

    While nothing was measured, the timeout is `FAR_S` after a loss: the store may be farther away than
    `Pace.store_timeout_s`. Afterwards it follows what was measured, from above: the first answers may be lucky
    ones, so each of them halves what was `FAR_S`. While the store is silent it is twice that, not more: so the
    store is asked again soon after it has come back. An answer that comes after its timeout teaches as much as
    any other. A few very late ones do not make it longer than a lease.

    All calls of a process teach the same timeout, those of upkeep too. A slow one, such as the write of a
    large run, never makes it shorter. After one that took `s` seconds it is at most a lease, or twice the mean
    and `s / 4`, if that is longer; each quick answer takes an eighth of that back. Only an append whose call is
    lost waits so long. Pauses after errors of upkeep end with a write that succeeds.
    """

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self._round_trip = RoundTrip()
        self._early_s = FAR_S  # a floor, while few round trips were measured
        self._lost = False  # whether the last call that ended got no answer
        self._lost_at = NEVER
        # Of each operation the next pause, after errors in a row.
        self._pauses_s: dict[type[StoreOp], float] = {}

    @property
    def timeout_s(self) -> float:
        """How long the next call may take."""
        pace, measured = self._pace, self._round_trip
        if not measured.known:
            return max(pace.store_timeout_s, FAR_S if self._lost else 0.0)
        least_s = max(pace.store_timeout_s, self._early_s)
        measured_s = measured.mean_s + pace.lost_deviations * measured.deviation_s
        if self._lost:
            measured_s *= 2
        if measured_s <= least_s:  # mostly
            return least_s
        return min(measured_s, max(pace.lease_s, 2 * measured.mean_s))

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
        self._early_s /= 2
        self._lost, self._lost_at = False, NEVER
        if self._pauses_s:
            self._pauses_s.pop(op, None)

    def timed_out(self, asked_at: float, now: float) -> None:
        """A call got no answer in time. Calls that were under way together are lost together."""
        if asked_at >= self._lost_at:
            self._lost, self._lost_at = True, now

    def pause_s(self, op: type[StoreOp]) -> float:
        """How long to wait after an error before its call counts as unknown, and may be made again."""
        pause_s = self._pauses_s.get(op, self._pace.error_pause_s)
        self._pauses_s[op] = min(self._pace.error_pause_max_s, 2 * pause_s)
        return pause_s
