"""Operations of a history: each invocation with its completion, how long it took, how many there were.

- The *number of operations* of a run is how many its clients invoked, crashes of clients among them.
- The *latency* of an operation is the time from its invocation to its completion, as its client saw it. An
  operation that was never completed has none.
- A *quantile* q is the smallest value that a share q of the values do not exceed: always one that occurred.
- *Windows* of time start at multiples of their width. Latency counts where an operation was invoked, so that
  those which a fault made slow are seen at the fault and not after it. Throughput counts where it ended.

*Recovery* is how long it takes after a fault until operations are as fast as before. The time counts from the
end of a fault until a window of a quarter of a second begins in which the 99th percentile of the latency of
operations is at most twice that of calm times. An operation that fails or stays unknown counts as infinitely
long. *Calm* is the median of the 99th percentiles of the windows of the main phase in which no fault was in
force: the median, because some of them come right after a fault.

A fault is watched from its end until the next one begins or the main phase ends. One that ended while another
was in force is not watched.
"""

import math
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

from runs.faults import Injection
from runs.history import MS, NEMESIS, Op, Process

Row = dict[str, Any]
Pause = tuple[int, int]  # from when to when, in ns
N = TypeVar("N", int, float)

OPEN = "open"
SHARES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}
LONG_PAUSE, LONG_PAUSE_NS = 0.1, 1_000_000_000  # the share of a run's time, and the least
WINDOWS = 100  # at most so many points in time are drawn, however long the run


class Timed(NamedTuple):
    """An operation of a client without its values: `outcome` is ok, fail, info, or open if it never completed.

    `latency_ns` of an open one is 0.
    """

    f: str
    outcome: str
    invoked_ns: int
    latency_ns: int

    @property
    def ended_ns(self) -> int:
        """When it completed; an open one when it was invoked."""
        return self.invoked_ns + self.latency_ns


class Timings:
    """Operations of clients in order of invocation, 18 bytes each: add the lines of a history, then iterate."""

    def __init__(self, history: Iterable[Op] = ()) -> None:
        """Start with a history, which may be cut anywhere."""
        self._invoked_ns, self._latencies_ns, self._kinds = array("q"), array("q"), array("H")
        self._names: list[tuple[str, str]] = []
        self._numbers: dict[tuple[str, str], int] = {}
        self._open: dict[Process, int] = {}
        for op in history:
            self.add(op)

    def add(self, op: Op) -> None:
        """Take the next line; those of the nemesis are passed over."""
        if op.process == NEMESIS:
            return
        if op.type == "invoke":
            self._open[op.process] = len(self._kinds)
            self._invoked_ns.append(op.time)
            self._latencies_ns.append(0)
            self._kinds.append(self._kind(str(op.f), OPEN))
        elif (at := self._open.pop(op.process, None)) is not None:
            self._latencies_ns[at] = op.time - self._invoked_ns[at]
            self._kinds[at] = self._kind(self._names[self._kinds[at]][0], op.type)

    def _kind(self, f: str, outcome: str) -> int:
        number = self._numbers.setdefault((f, outcome), len(self._names))
        if number == len(self._names):
            self._names.append((f, outcome))
        return number

    def __len__(self) -> int:
        return len(self._kinds)

    def __iter__(self) -> Iterator[Timed]:
        for kind, invoked_ns, latency_ns in zip(
            self._kinds, self._invoked_ns, self._latencies_ns, strict=True
        ):
            yield Timed(*self._names[kind], invoked_ns, latency_ns)

    def names(self) -> list[str]:
        """The kinds of operations, in the order in which they first came."""
        return list(dict.fromkeys(f for f, _ in self._names))


def operation_count(history: Iterable[Op]) -> int:
    """How many operations clients invoked; the same as the number of `operations`."""
    return sum(op.type == "invoke" and op.process != NEMESIS for op in history)


def quantile(ordered: Sequence[N], q: float) -> N | None:
    """The smallest of these ascending values that a share `q` of them do not exceed; None without any."""
    return ordered[max(0, math.ceil(q * len(ordered)) - 1)] if ordered else None


def long_pause(spans: Iterable[Pause]) -> Pause | None:
    """The longest time in none of these spans of ns, from the first start on; most often the recovery.

    None where the longest is not long (`is_long`) in the time until the last end.
    """
    longest, until = (0, 0), 0
    for number, (start, end) in enumerate(sorted(spans)):
        if number and start - until > longest[1] - longest[0]:
            longest = until, start
        until = max(until, end)
    return longest if is_long(longest, until) else None


def is_long(pause: Pause, whole_ns: int) -> bool:
    """Whether a pause takes a tenth of the whole time and at least a second."""
    return pause[1] - pause[0] >= max(LONG_PAUSE * whole_ns, LONG_PAUSE_NS)


def window_width(duration_ns: int) -> int:
    """The smallest of 1, 2 or 5 times a power of ten ns that cuts `duration_ns` into few windows."""
    least = max(duration_ns / WINDOWS, 1)
    power = int(10 ** math.floor(math.log10(least)))
    return next(nice * power for nice in (1, 2, 5, 10) if nice * power >= least)


def window_start(time_ns: int, window_ns: int) -> int:
    """The start of the window in which a time lies."""
    return time_ns - time_ns % window_ns


def latency_quantiles(done: Iterable[Timed]) -> list[Row]:
    """By kind of operation and outcome: operation_count, latency_ns_p50, _p90, _p99 and _max."""
    return _grouped(((each, each.outcome) for each in done), "outcome")


def latency_over_time(done: Iterable[Timed], window_ns: int) -> list[Row]:
    """Return such rows by kind of operation and window: an operation counts where it was invoked."""
    pairs = ((each, window_start(each.invoked_ns, window_ns)) for each in done)
    return _grouped(pairs, "window_start_ns")


def _grouped(done: Iterable[tuple[Timed, Any]], name: str) -> list[Row]:
    """The latencies of completed operations by kind, and by what stands beside each, which is called `name`."""
    groups: dict[tuple[str, Any], array[int]] = {}
    for each, beside in done:
        if each.outcome != OPEN:
            groups.setdefault((each.f, beside), array("q")).append(each.latency_ns)
    return [
        {"f": f, name: beside, **_latencies(sorted(groups[f, beside]))}
        for f, beside in sorted(groups)
    ]


def _latencies(ranked: Sequence[int]) -> Row:
    """What a row says of ascending latencies."""
    at = {f"latency_ns_{p}": quantile(ranked, share) for p, share in SHARES.items()}
    return {"operation_count": len(ranked), **at, "latency_ns_max": ranked[-1]}


def throughput(done: Iterable[Timed], window_ns: int) -> list[Row]:
    """Completed operations by outcome, in windows of the time of completion: operation_count, rate_hz."""
    counts = Counter(
        (each.outcome, window_start(each.ended_ns, window_ns))
        for each in done
        if each.outcome != OPEN
    )
    return [
        {
            "outcome": outcome,
            "window_start_ns": start_ns,
            "operation_count": counts[outcome, start_ns],
            "rate_hz": counts[outcome, start_ns] / (window_ns / 1e9),
        }
        for outcome, start_ns in sorted(counts)
    ]


# ---------------------------------------------------------------- recovery

WINDOW_NS = 250 * MS
STEP_NS = 5 * MS
FACTOR = 2  # of calm: as near as counts as recovered


class Recovery(NamedTuple):
    """For how long a fault was watched after its end (None: it was not), and when it was recovered from.

    `recovery_ms` is None if it was not recovered from within that time.
    """

    watched_ms: float | None = None
    recovery_ms: float | None = None


def recoveries(
    asked: Iterable[Timed], injected: Sequence[Injection], main_ns: int
) -> list[Recovery]:
    """One for each of the faults that were `injected`, from the operations of clients in order of invocation.

    `main_ns`: when the main phase ends.
    """
    invoked_ns: list[int] = []
    latency_ns: list[float] = []
    for each in asked if injected else ():
        if each.invoked_ns <= main_ns:
            invoked_ns.append(each.invoked_ns)
            latency_ns.append(each.latency_ns if each.outcome == "ok" else math.inf)  # took forever

    def p99_ns(start_ns: int) -> float | None:
        """Of those that were invoked in the window that begins then; None without any."""
        first = bisect_left(invoked_ns, start_ns)
        end = bisect_left(invoked_ns, start_ns + WINDOW_NS)
        return quantile(sorted(latency_ns[first:end]), 0.99)

    calm = (
        p99_ns(at)
        for at in range(0, main_ns if injected else 0, WINDOW_NS)
        if not any(each.start_ns <= at + WINDOW_NS and each.end_ns >= at for each in injected)
    )
    calm_ns = quantile(sorted(found for found in calm if found is not None), 0.5) or math.inf
    return [
        _recovery(each, p99_ns, calm_ns, _watched_until(each, injected, main_ns))
        for each in injected
    ]


def _watched_until(fault: Injection, injected: Sequence[Injection], main_ns: int) -> int | None:
    ended_ns = fault.end_ns
    in_force = any(each.start_ns < ended_ns < each.end_ns for each in injected)
    if not fault.ended or in_force or ended_ns >= main_ns:
        return None
    return min([main_ns, *(each.start_ns for each in injected if each.start_ns >= ended_ns)])


def _recovery(
    fault: Injection,
    p99_ns: Callable[[int], float | None],
    calm_ns: float,
    until_ns: int | None,
) -> Recovery:
    if until_ns is None or calm_ns == math.inf:
        return Recovery()
    well = (
        start_ns
        for start_ns in range(fault.end_ns, until_ns - WINDOW_NS, STEP_NS)
        if (found_ns := p99_ns(start_ns)) is not None and found_ns <= FACTOR * calm_ns
    )
    start_ns = next(well, None)
    took_ms = None if start_ns is None else (start_ns - fault.end_ns) / MS
    return Recovery((until_ns - fault.end_ns) / MS, took_ms)
