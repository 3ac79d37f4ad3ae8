"""The checkers of every run, and `judge`, which composes them with the workload's own into results.edn.

`stats`, `availability` and `exceptions` look at outcomes only. `net_statistics` says how many messages an
operation cost. [facts: Jepsen's checker.clj, Maelstrom's net/checker.clj]
"""

import struct
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from bench.net import Network, Traffic
from bench.options import TestOptions
from bench.run import RunResult
from bench.unsuccessful import reasons
from runs.facts import NEVER_OK, never_succeeded
from runs.faults import Injection, injections
from runs.history import NEMESIS, Op
from runs.keyword import Keyword, keywords
from runs.messages import Event
from runs.operations import operation_count
from workloads.interface import UNKNOWN, Checker, Placement, Workload, worst

Result = dict[Keyword, Any]


# Both ask how much succeeded, which is open until the run has come to its end.
OF_THE_WHOLE_RUN = ("stats", "availability")


def judge(
    outcome: RunResult,
    options: TestOptions,
    workload: Workload,
    events: Callable[[], Iterable[Event]] = tuple,
) -> Result:
    """Check the history; return the results. `events` reads the journal, where a reason must be found."""
    results = check_all(outcome.history, options.as_dict(), outcome.network, workload.judge.check)
    if faults := injections(outcome.history):
        results[Keyword("faults")] = [_injected(each) for each in faults]
    if dropped := outcome.network.hearing.dropped:
        results[Keyword("dropped-lines")] = dict(dropped)
    _give_reasons(results[Keyword("stats")], outcome.history, options, events)
    if outcome.failure:
        results[Keyword("error")] = str(outcome.failure)
        _leave_open(results, outcome.history, workload)
    return results


def _leave_open(results: Result, history: Sequence[Op], workload: Workload) -> None:
    """Hold nothing against a run that stopped early but what no longer run could undo."""
    valid = Keyword("valid?")
    if "error" not in results[Keyword("workload")]:
        judged = workload.judge.so_far(results[Keyword("workload")], history)
        results[Keyword("workload")] = judged
    for name in OF_THE_WHOLE_RUN:
        if results[Keyword(name)][valid] is False:
            results[Keyword(name)][valid] = UNKNOWN
    checked = (each["valid?"] for each in results.values() if isinstance(each, dict))
    results[valid] = worst([*checked, UNKNOWN])


def _give_reasons(
    result: Result,
    history: Sequence[Op],
    options: TestOptions,
    events: Callable[[], Iterable[Event]],
) -> None:
    """Add to the result of `stats` why the operations that never succeeded did not."""
    if never := never_succeeded(result):
        place = Placement(options.nodes, options.concurrency)
        told = reasons(history, never, place, events)
        result[Keyword("reasons")] = {Keyword(f): reason for f, reason in told.items()}


def _injected(injection: Injection) -> Result:
    """A fault for results.edn, beside what the real tool has there; times in ns of the history."""
    return keywords(
        fault=Keyword(injection.fault),
        start_time=injection.start_ns,
        end_time=injection.end_ns,
        text=injection.text,
    )


def check_all(
    history: Sequence[Op], options: Mapping[str, Any], network: Network, workload: Checker
) -> Result:
    """The results of a run, in the real tool's form and order.

    `perf` and `timeline` judge nothing, there as here; the plots are drawn after the verdict.
    """
    valid = keywords(valid=True)
    graphs = keywords(latency_graph=dict(valid), rate_graph=dict(valid), valid=True)
    results = keywords(
        perf=graphs,
        timeline=dict(valid),
        exceptions=_safely(lambda: exceptions(history)),
        stats=_safely(lambda: stats(history)),
        availability=_safely(lambda: availability(history, options.get("availability"))),
        net=_safely(lambda: net_statistics(history, network)),
        workload=_safely(lambda: workload(history, options)),
    )
    results[Keyword("valid?")] = worst([result["valid?"] for result in results.values()])
    return results


def _safely(check: Callable[[], Result]) -> Result:
    """A checker that breaks leaves the verdict unknown and says so; the others still count."""
    try:
        return check()
    except Exception:
        return keywords(valid=UNKNOWN, error=traceback.format_exc())


def stats(history: Sequence[Op]) -> dict[Keyword, Any]:
    """Counts of outcomes, in all and by `f`; invalid when some `f` never succeeded."""
    by_f: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for op in history:
        if op.type != "invoke" and op.process != NEMESIS:
            by_f[op.f][op.type] += 1
    result = _outcomes(sum(by_f.values(), Counter()))
    result[Keyword("by-f")] = {Keyword(f): _outcomes(by_f[f]) for f in sorted(by_f)}
    result[Keyword("valid?")] = all(by_f[f]["ok"] for f in by_f if f not in NEVER_OK)
    return result


def _outcomes(counts: Counter[str]) -> dict[Keyword, Any]:
    return keywords(
        valid=counts["ok"] > 0,
        count=counts.total(),
        ok_count=counts["ok"],
        fail_count=counts["fail"],
        info_count=counts["info"],
    )


def availability(history: Sequence[Op], expected: str | float | None) -> dict[Keyword, Any]:
    """The fraction of invocations that succeeded, against `total` (all), a lower bound, or nothing."""
    counts = Counter(op.type for op in history)
    fraction = single(counts["ok"] / counts["invoke"]) if counts["invoke"] else 1
    bound = 1.0 if expected == "total" else float(expected or 0)
    return keywords(valid=fraction >= bound, ok_fraction=fraction)


def exceptions(history: Iterable[Op]) -> dict[Keyword, Any]:
    """Operations during which a client itself broke, the most frequent kind first."""
    broken = defaultdict(list)
    for op in history:
        if op.type == "info" and "exception" in op.extra:
            broken[op.extra["exception"]].append(op)
    if not broken:
        return keywords(valid=True)
    found = [
        keywords(count=len(ops), **{"class": kind}, example=ops[0]) for kind, ops in broken.items()
    ]
    return keywords(valid=True, exceptions=sorted(found, key=lambda each: -each[Keyword("count")]))


def net_statistics(history: Sequence[Op], network: Network) -> dict[Keyword, Any]:
    """Messages sent and received: all, those with a client at either end, and those without.

    `init` and its reply count too, as in the results of the real tool; `msgs-per-op` is per
    invocation by a client, crashes included.
    """
    operations = operation_count(history)
    clients, servers = network.clients, network.servers
    both = Traffic(clients.sent + servers.sent, clients.received + servers.received)
    result = keywords(all=_counts(both), clients=_counts(clients), servers=_counts(servers))
    if operations:
        for name, traffic in (("all", both), ("servers", servers)):
            per_op = single(traffic.sent / operations)
            result[Keyword(name)][Keyword("msgs-per-op")] = per_op
    result[Keyword("valid?")] = True
    return result


def _counts(traffic: Traffic) -> dict[Keyword, int]:
    return keywords(send_count=traffic.sent, recv_count=traffic.received, msg_count=traffic.sent)


def single(number: float) -> float:
    """The number in single precision, with no more digits than that has: as the real tool prints it."""
    (rounded,) = struct.unpack("f", struct.pack("f", number))
    for digits in range(1, 10):
        short = float(f"{rounded:.{digits}g}")
        if struct.pack("f", short) == struct.pack("f", rounded):
            return short
    return float(rounded)
