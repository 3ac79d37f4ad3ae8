"""The figures of a run that take reading its history and journal, and the file that holds them.

`measure` computes them for a run of ordinary size. Spark computes them for any size (`analysis.summary`) and
leaves them in the run's folder. Rows are dicts with the columns of the metrics in `analysis.metrics`; a test
holds the two computations together.
"""

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import orjson

from runs import messages as of_messages
from runs import operations as of_operations
from runs import reading
from runs.faults import injections
from runs.files import FIGURES
from runs.history import NEMESIS, Op
from runs.operations import Pause, Row, long_pause
from runs.store import Folder
from runs.writing import write_whole

NO_REQUESTS = ("assign", "crash")  # operations that ask no node for anything


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
        counts = {r["f"]: r["operation_count"] for r in self.latency if r["outcome"] == "ok"}
        return sorted(counts, key=lambda f: (f in NO_REQUESTS, -counts[f]))

    def pause(self) -> Pause | None:
        """The long time in which no operation was under way, to a window; None without one."""
        return long_pause(
            (
                row["window_start_ns"],
                row["window_start_ns"] + self.window_ns + row["latency_ns_max"],
            )
            for row in self.latency_over_time
        )

    def rate_hz(self, limit_s: float | None = None) -> float | None:
        """Operations that succeeded per second, of all kinds, before the recovery and the final operations.

        `limit_s` is the run's time limit, where it is known.
        """
        before_ns = (self.pause() or (self.duration_ns, 0))[0]
        end_ns = min(int(limit_s * 1e9), self.duration_ns) if limit_s else before_ns
        ok = (r for r in self.throughput if r["outcome"] == "ok" and r["window_start_ns"] < end_ns)
        return sum(r["operation_count"] for r in ok) / (end_ns / 1e9) if end_ns else None

    def servers_per_operation(self) -> float | None:
        found = (r["messages_per_operation"] for r in self.network if r["scope"] == "servers")
        return next(found, None)


def measure(run: Folder, limits: reading.Limits = reading.PAGE_LIMITS) -> Figures:
    """Read the run's history and journal, as far as `limits` allow; notes say what was not read."""
    bad, notes = reading.Bad(), []
    history: list[Op] = []
    events: list[of_messages.Message] = []
    try:
        if run.history:
            history = list(_without_values(reading.history(run.history, bad, limits)))
        else:
            notes.append(
                "There is no history: the run ended, or was copied, before one was written."
            )
    except reading.TooLarge as error:
        notes.append(str(error))
    try:
        events = of_messages.messages(reading.journal(run.journal, bad, limits))
    except reading.TooLarge as error:
        notes.append(str(error))
    operations = of_operations.operations(history)
    duration_ns = of_operations.duration_ns(operations)
    window_ns = of_operations.window_width(duration_ns)
    return Figures(
        operation_count=len(operations),
        duration_ns=duration_ns,
        window_ns=window_ns,
        latency=of_operations.latency_quantiles(operations),
        latency_over_time=of_operations.latency_over_time(operations, window_ns),
        throughput=of_operations.throughput(operations, window_ns),
        network=of_messages.network_statistics(events, len(operations)),
        by_type=of_messages.messages_by_type(events, len(operations)),
        faults=[each.row() for each in injections(history)],
        quarantine=bad.rows(),
        notes=notes,
    )


def _without_values(history: Iterable[Op]) -> Iterator[Op]:
    """Operations of clients lose their values, which would fill the memory and are not measured."""
    for op in history:
        if op.process != NEMESIS:
            op.value, op.extra = None, {}
        yield op


def keep_figures(run: Folder, figures: Figures) -> Path:
    """Leave figures in the run's folder, for pages to show. Raises `OSError`."""
    file = run.path / FIGURES
    content = {"fingerprint": run.files.fingerprint(), "figures": figures.as_json()}
    write_whole(file, [orjson.dumps(content).decode()])
    return file


def kept_figures(run: Folder) -> Figures | None:
    """The figures in the run's folder; None if there are none, or the run's files changed since."""
    try:
        kept = orjson.loads((run.path / FIGURES).read_bytes())
        fresh = kept["fingerprint"] == run.files.fingerprint()
        return Figures(**kept["figures"]) if fresh else None
    except (OSError, ValueError, TypeError, KeyError):
        return None
