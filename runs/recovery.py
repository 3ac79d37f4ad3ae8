"""How long it takes after a fault until operations are as fast as before.

The time counts from the end of a fault until a window of a quarter of a second begins in which the 99th
percentile of the latency of operations is at most twice that of calm times. An operation that fails or stays
unknown counts as infinitely long. A moment is calm two seconds after the end of the last fault.

`analysis.metrics.recovery` expresses this a second time, more coarsely.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf

from runs.faults import Injection, injections
from runs.history import Op
from runs.operations import Operation, operations, quantile

MS = 1_000_000
CALM_AFTER_NS = 2_000 * MS
WINDOW_NS = 250 * MS
STEP_NS = 5 * MS
OPERATIONS_MIN = 20  # in a window, and in the calm
FACTOR = 2  # of calm: as near as counts as recovered
ASKED = ("send", "poll")  # what clients wait for


@dataclass(frozen=True, slots=True)
class Asked:
    """Operations of clients in order of invocation, in ns; what did not end well took forever."""

    invoked_ns: list[int]
    latency_ns: list[float]

    def p99_ns(self, start_ns: int, end_ns: int) -> float | None:
        """Of those that were invoked in that time; None if they are too few to say."""
        first, end = bisect_left(self.invoked_ns, start_ns), bisect_left(self.invoked_ns, end_ns)
        took = sorted(self.latency_ns[first:end])
        return quantile(took, 0.99) if len(took) >= OPERATIONS_MIN else None


def recoveries(history: Sequence[Op], soon_ns: int) -> Iterator[tuple[str, float | None]]:
    """Yield for each fault that can be measured its name and the ms until it was recovered from.

    `None` means never. A fault can be measured if enough operations follow its end before the next one
    begins, and the first of them within `soon_ns`: those that begin later than a client's timeout belong
    to the final phase. Raises `ValueError` when a history has no calm times.
    """
    injected = injections(history)
    done = [each for each in operations(history) if each.f in ASKED]
    calm = [each for each in done if not any(_disturbs(fault, each) for fault in injected)]
    usual_ns = _asked(calm).p99_ns(0, history[-1].time + 1)
    if usual_ns is None:
        raise ValueError("too few operations far from any fault to know what is usual")
    asked = _asked(done)
    for each in injected:
        later = [other.start_ns for other in injected if other.start_ns > each.end_ns]
        last_ns = min([*later, history[-1].time])
        p99s = _windows(asked, each.end_ns, last_ns)
        if p99s and p99s[0][0] - each.end_ns <= soon_ns:
            well = (start_ns for start_ns, p99_ns in p99s if p99_ns <= FACTOR * usual_ns)
            start_ns = next(well, None)
            yield each.fault, None if start_ns is None else (start_ns - each.end_ns) / MS


def _asked(done: Sequence[Operation]) -> Asked:
    latency_ns = [each.latency_ns if each.outcome == "ok" else inf for each in done]
    return Asked([each.invoked.time for each in done], latency_ns)


def _windows(asked: Asked, start_ns: int, end_ns: int) -> list[tuple[int, float]]:
    """The windows that begin and end in this time: their beginning and their 99th percentile."""
    starts = range(start_ns, end_ns - WINDOW_NS, STEP_NS)
    p99s = ((start, asked.p99_ns(start, start + WINDOW_NS)) for start in starts)
    return [(start, p99) for start, p99 in p99s if p99 is not None]


def _disturbs(injection: Injection, asked: Operation) -> bool:
    ended_ns = injection.end_ns + CALM_AFTER_NS
    return injection.start_ns <= asked.last.time and asked.invoked.time <= ended_ns
