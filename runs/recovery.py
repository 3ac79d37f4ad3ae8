"""How long it takes after a fault until operations are as fast as before.

The time counts from the end of a fault until a window of a quarter of a second begins in which the 99th
percentile of the latency of operations is at most twice that of calm times. An operation that fails or stays
unknown counts as infinitely long. *Calm* is the median of the 99th percentiles of the windows of the main phase
in which no fault was in force: the median, because some of them come right after a fault.

A fault is watched from its end until the next one begins or the main phase ends. One that ended while another
was in force is not watched.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

from runs.faults import Injection
from runs.operations import Timed, quantile

MS = 1_000_000
WINDOW_NS = 250 * MS
STEP_NS = 5 * MS
FACTOR = 2  # of calm: as near as counts as recovered


class Recovery(NamedTuple):
    """For how long a fault was watched after its end (None: it was not), and when it was recovered from.

    `recovery_ms` is None if it was not recovered from within that time.
    """

    watched_ms: float | None = None
    recovery_ms: float | None = None


@dataclass(slots=True)
class _Asked:
    """Operations in order of invocation, in ns; what did not end well took forever."""

    invoked_ns: list[int] = field(default_factory=list)
    latency_ns: list[float] = field(default_factory=list)

    def p99_ns(self, start_ns: int) -> float | None:
        """Of those that were invoked in the window that begins then; None without any."""
        first = bisect_left(self.invoked_ns, start_ns)
        end = bisect_left(self.invoked_ns, start_ns + WINDOW_NS)
        return quantile(sorted(self.latency_ns[first:end]), 0.99)


def recoveries(
    asked: Iterable[Timed], injected: Sequence[Injection], main_ns: int
) -> list[Recovery]:
    """One for each of the faults that were `injected`, from the operations of clients in order of invocation.

    `main_ns`: when the main phase ends.
    """
    done = _Asked()
    for each in asked if injected else ():
        if each.invoked_ns <= main_ns:
            done.invoked_ns.append(each.invoked_ns)
            done.latency_ns.append(each.latency_ns if each.outcome == "ok" else inf)
    calm_ns = quantile(sorted(_calm(done, injected, main_ns)), 0.5) or inf
    return [
        _recovery(each, done, calm_ns, _watched_until(each, injected, main_ns)) for each in injected
    ]


def _calm(done: _Asked, injected: Sequence[Injection], main_ns: int) -> Iterator[float]:
    for start_ns in range(0, main_ns, WINDOW_NS):
        end_ns = start_ns + WINDOW_NS
        if not any(each.start_ns <= end_ns and each.end_ns >= start_ns for each in injected):
            p99_ns = done.p99_ns(start_ns)
            if p99_ns is not None:
                yield p99_ns


def _watched_until(fault: Injection, injected: Sequence[Injection], main_ns: int) -> int | None:
    ended_ns = fault.end_ns
    in_force = any(each.start_ns < ended_ns < each.end_ns for each in injected)
    if not fault.ended or in_force or ended_ns >= main_ns:
        return None
    return min([main_ns, *(each.start_ns for each in injected if each.start_ns >= ended_ns)])


def _recovery(fault: Injection, done: _Asked, calm_ns: float, until_ns: int | None) -> Recovery:
    if until_ns is None or calm_ns == inf:
        return Recovery()
    starts = range(fault.end_ns, until_ns - WINDOW_NS, STEP_NS)
    well = (
        start_ns
        for start_ns in starts
        if (p99_ns := done.p99_ns(start_ns)) is not None and p99_ns <= FACTOR * calm_ns
    )
    start_ns = next(well, None)
    took_ms = None if start_ns is None else (start_ns - fault.end_ns) / MS
    return Recovery((until_ns - fault.end_ns) / MS, took_ms)
