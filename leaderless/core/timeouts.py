"""How long a store call may take: from the measured round trip, with back-off, as TCP does (RFC 6298)."""

from leaderless.core.messages import StoreOp

DEVIATIONS = 4
ERROR_PAUSE_S = 0.01  # after the first error; it doubles with each further one


class StoreTimeouts:
    """Timeouts of the calls of one node.

    `first_s`: until anything was measured, and never less (RFC 6298 has such a floor too: below it, a busy
    processor looks like a loss). While the store is silent the timeout is twice what was measured, not more:
    so it is asked again soon after it has come back. An answer that comes after its timeout teaches as much
    as any other.
    """

    def __init__(self, first_s: float) -> None:
        self._first_s = first_s
        self._mean_s: float | None = None
        self._deviation_s = 0.0
        self._lost = 0  # timeouts in a row
        self._errors: dict[type[StoreOp], int] = {}  # in a row, of each operation

    @property
    def timeout_s(self) -> float:
        """How long the next call may take."""
        if self._mean_s is None:
            return self._first_s
        measured_s = self._mean_s + DEVIATIONS * self._deviation_s
        return max(self._first_s, min(2.0**self._lost, 2.0) * measured_s)

    def answered(self, op: type[StoreOp], after_s: float) -> None:
        """A call got a clear answer."""
        if self._mean_s is None:
            self._mean_s, self._deviation_s = after_s, after_s / 2
        self._deviation_s += (abs(after_s - self._mean_s) - self._deviation_s) / 4
        self._mean_s += (after_s - self._mean_s) / 8
        self._lost = 0
        self._errors.pop(op, None)

    def timed_out(self) -> None:
        """A call got no answer in time."""
        self._lost = min(self._lost + 1, 32)

    def pause_s(self, op: type[StoreOp]) -> float:
        """How long to wait after an error before its call counts as unknown, and may be made again."""
        errors = self._errors[op] = min(self._errors.get(op, 0) + 1, 32)
        return min(self._first_s, ERROR_PAUSE_S * 2.0 ** (errors - 1))
