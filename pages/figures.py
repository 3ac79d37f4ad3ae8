"""The figures of a run: what Spark computes for any size, and `measure` for what a page can wait for.

Rows are dicts with the columns of the metrics in `analysis.metrics`, whose docstrings define them; a
test holds the two computations together.
"""

import math
from dataclasses import asdict, dataclass, field
from typing import Any

Row = dict[str, Any]

WINDOWS = 100  # at most so many points in time are drawn, however long the run
_NICE = (1, 2, 5)


@dataclass(frozen=True)
class Figures:
    """Everything that takes reading the history and the journal. Small, whatever the run's size."""

    operation_count: int = 0
    duration_ns: int = 0
    window_ns: int = 1
    latency: list[Row] = field(default_factory=list)
    latency_over_time: list[Row] = field(default_factory=list)
    throughput: list[Row] = field(default_factory=list)
    network: list[Row] = field(default_factory=list)
    by_type: list[Row] = field(default_factory=list)
    faults: list[Row] = field(default_factory=list)
    quarantine: list[Row] = field(default_factory=list)  # bad lines by file and reason, counted
    notes: list[str] = field(default_factory=list)  # what is missing, and how to get it

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    def quantiles(self, f: str) -> Row | None:
        """Latencies of the operations `f` that succeeded."""
        return next((r for r in self.latency if (r["f"], r["outcome"]) == (f, "ok")), None)

    def kinds(self) -> list[str]:
        """Kinds of operations, commonest first; those that are no requests come last."""
        counts: dict[str, int] = {}
        for row in self.latency:
            if row["outcome"] == "ok":
                counts[row["f"]] = row["operation_count"]
        return sorted(counts, key=lambda f: (f in ("assign", "crash"), -counts[f]))

    def servers_per_operation(self) -> float | None:
        """Server messages an operation."""
        found = (r["messages_per_operation"] for r in self.network if r["scope"] == "servers")
        return next(found, None)


def window_width(duration_ns: int) -> int:
    """The smallest of 1, 2 or 5 times a power of ten ns that cuts `duration_ns` into few windows."""
    least = max(duration_ns / WINDOWS, 1)
    power = int(10 ** math.floor(math.log10(least)))
    return next(nice * power for nice in (*_NICE, 10) if nice * power >= least)


def disagreements(reported: dict[str, Any], network: list[Row]) -> list[str]:
    """How computed network statistics differ from a bench's `:net` map, as sentences.

    Args:
        reported: the map; empty if the bench left none.
        network: rows of `network_statistics`.
    """
    found = []
    for row in network:
        for word, value in _as_reported(row).items():
            scope = reported.get(row["scope"])
            other = scope.get(word) if isinstance(scope, dict) else None
            # The real tool rounds to 32 bits, hence the tolerance.
            if other is not None and not math.isclose(value or 0, other, rel_tol=1e-6):
                found.append(f"{row['scope']} {word}: {value} here, {other} in the bench's results")
    return found


def _as_reported(row: Row) -> dict[str, float]:
    return {
        "send-count": row["send_count"],
        "recv-count": row["recv_count"],
        "msg-count": row["message_count"],
        "msgs-per-op": row["messages_per_operation"],
    }
