"""The checkers of every run, and `judge`, which composes them with the workload's own.

`stats`, `availability` and `exceptions` look at outcomes only. `net_statistics` says how many messages an
operation cost. [facts: Jepsen's checker.clj, Maelstrom's net/checker.clj]
"""

import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from bench.checks import (
    Answers,
    Availability,
    Broken,
    Checks,
    Counts,
    Exceptions,
    NetStatistics,
    Stats,
    single,
)
from bench.net import Network
from bench.options import TestOptions
from bench.run import RunResult
from bench.why import reasons
from runs.faults import injections
from runs.history import NEMESIS, Op
from runs.operations import operation_count
from runs.traffic import Event
from workloads.interface import Checker, Placement, Workload

Found = TypeVar("Found")


def judge(
    outcome: RunResult,
    options: TestOptions,
    workload: Workload,
    events: Callable[[], Iterable[Event]] = tuple,
) -> Checks:
    """Check the history; return what was found. `events` reads the journal, where a reason must be found."""
    found = check_all(outcome.history, options.as_dict(), outcome.network, workload.judge.check)
    if found.never and isinstance(found.stats, Stats):
        place = Placement.of(options.as_dict(), outcome.history)
        assert place
        told = reasons(outcome.history, found.never, place, events)
        found = replace(found, stats=replace(found.stats, reasons=told))
    found = replace(
        found,
        faults=injections(outcome.history),
        dropped_lines=dict(outcome.network.hearing.dropped),
        answers=Answers(dict(outcome.network.hearing.repeated), refused=options.strict),
    )
    if outcome.failure is None:
        return found
    return _left_open(replace(found, error=str(outcome.failure)), outcome.history, workload)


def _left_open(found: Checks, history: Sequence[Op], workload: Workload) -> Checks:
    """Nothing is held against a run that stopped early but what no longer run could undo."""
    if "error" not in found.workload:
        found = replace(found, workload=workload.judge.so_far(found.workload, history))
    if isinstance(found.stats, Stats):
        found = replace(found, stats=replace(found.stats, stopped=True))
    if isinstance(found.availability, Availability):
        found = replace(found, availability=replace(found.availability, stopped=True))
    return found


def check_all(
    history: Sequence[Op], options: Mapping[str, Any], network: Network, workload: Checker
) -> Checks:
    """What each checker finds. One that breaks leaves the verdict unknown and says so; the others count."""
    own = _safely(lambda: workload(history, options))
    return Checks(
        exceptions=_safely(lambda: exceptions(history)),
        stats=_safely(lambda: stats(history)),
        availability=_safely(lambda: availability(history, options.get("availability"))),
        net=_safely(lambda: net_statistics(history, network)),
        workload=own.edn() if isinstance(own, Broken) else own,
    )


def _safely(check: Callable[[], Found]) -> Found | Broken:
    try:
        return check()
    except Exception:
        return Broken(traceback.format_exc())


def stats(history: Sequence[Op]) -> Stats:
    """Counts of outcomes by `f`."""
    by_f: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for op in history:
        if op.type != "invoke" and op.process != NEMESIS:
            by_f[op.f][op.type] += 1
    return Stats({f: Counts(**by_f[f]) for f in sorted(by_f)})


def availability(history: Sequence[Op], expected: str | float | None) -> Availability:
    """The fraction of invocations that succeeded, against `total` (all), a lower bound, or nothing."""
    counts = Counter(op.type for op in history)
    fraction = single(counts["ok"] / counts["invoke"]) if counts["invoke"] else 1
    return Availability(fraction, bound=1.0 if expected == "total" else float(expected or 0))


def exceptions(history: Iterable[Op]) -> Exceptions:
    """Operations during which a client itself broke, the most frequent kind first."""
    broken: defaultdict[str, list[Op]] = defaultdict(list)
    for op in history:
        if op.type == "info" and "exception" in op.extra:
            broken[op.extra["exception"]].append(op)
    return Exceptions(dict(sorted(broken.items(), key=lambda each: -len(each[1]))))


def net_statistics(history: Sequence[Op], network: Network) -> NetStatistics:
    """Messages sent and received.

    `init` and its reply count too, as in the results of the real tool; operations are the invocations by
    clients, crashes included.
    """
    return NetStatistics(network.clients, network.servers, operation_count(history))
