"""What the pictures show of a history: operations from invocation to completion, and their windows."""

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from runs.faults import injections
from runs.history import NEMESIS, Op, completions

_WINDOWS = 100  # at most so many points in time are drawn, however long the run
_SHARES = {"latency_ns_p50": 0.5, "latency_ns_p90": 0.9, "latency_ns_p99": 0.99}
Rows = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Span:
    """An operation of a client; `completed` is None when the history ends before it."""

    invoked: Op
    completed: Op | None

    @property
    def type(self) -> str:
        """ok, fail or info; nobody knows what became of an operation that never completed."""
        return self.completed.type if self.completed else "info"

    @property
    def last(self) -> Op:
        return self.completed or self.invoked


def spans(history: Sequence[Op]) -> Iterator[Span]:
    """The operations of clients, in order of invocation."""
    pairs = completions(history)
    for position, op in enumerate(history):
        if op.type == "invoke" and op.process != NEMESIS:
            end = pairs.get(position)
            yield Span(op, None if end is None else history[end])


def completed_rows(history: Sequence[Op]) -> Rows:
    """f, outcome, invoked_ns, completed_ns and latency_ns of the operations that completed."""
    return [
        {
            "f": each.invoked.f,
            "outcome": each.type,
            "invoked_ns": each.invoked.time,
            "completed_ns": each.last.time,
            "latency_ns": each.last.time - each.invoked.time,
        }
        for each in spans(history)
        if each.completed
    ]


def fault_rows(history: Sequence[Op]) -> Rows:
    """kind, started_ns and ended_ns of each fault."""
    return [
        {"kind": each.fault, "started_ns": each.start_ns, "ended_ns": each.end_ns}
        for each in injections(history)
    ]


def window_width(duration_ns: int) -> int:
    """The smallest of 1, 2 or 5 times a power of ten ns that cuts `duration_ns` into few windows."""
    least = max(duration_ns / _WINDOWS, 1)
    power = int(10 ** math.floor(math.log10(least)))
    return next(nice * power for nice in (1, 2, 5, 10) if nice * power >= least)


def latency_windows(rows: Rows, window_ns: int) -> Rows:
    """Quantiles of latencies in windows of the time of invocation."""
    groups: dict[int, list[int]] = defaultdict(list)
    for row in rows:
        groups[row["invoked_ns"] - row["invoked_ns"] % window_ns].append(row["latency_ns"])
    return [{"window_start_ns": start, **_quantiles(groups[start])} for start in sorted(groups)]


def _quantiles(latencies_ns: list[int]) -> dict[str, int]:
    """A quantile is the smallest latency that a share of them do not exceed."""
    ranked = sorted(latencies_ns)
    at = {name: ranked[math.ceil(q * len(ranked)) - 1] for name, q in _SHARES.items()}
    return {**at, "latency_ns_max": ranked[-1]}


def throughput_windows(rows: Rows, window_ns: int) -> Rows:
    """Completed operations per second by outcome, in windows of the time of completion."""
    counts: dict[tuple[str, int], int] = defaultdict(int)
    for row in rows:
        start_ns = row["completed_ns"] - row["completed_ns"] % window_ns
        counts[row["outcome"], start_ns] += 1
    return [
        {"outcome": outcome, "window_start_ns": start, "rate_hz": count / (window_ns / 1e9)}
        for (outcome, start), count in counts.items()
    ]
