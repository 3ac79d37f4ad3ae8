"""The checkers of every run, and `judge`, which composes them with the workload's own.

Each gives its map in results.edn. `stats`, `availability` and `exceptions` look at outcomes only.
`net_statistics` says how many messages an operation cost. [facts: Jepsen's checker.clj, Maelstrom's
net/checker.clj]
"""

import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from struct import pack, unpack
from typing import Any

from bench.net import Network, Traffic
from bench.options import TestOptions
from bench.run import RunResult
from bench.verdict.judgement import Judgement, concluded
from bench.verdict.reasons import reasons
from bench.verdict.trail import facts
from runs.facts import grouped, never_succeeded
from runs.faults import injections
from runs.history import NEMESIS, Keyword, Op, keywords
from runs.operations import operation_count
from runs.traffic import Event
from workloads.interface import UNKNOWN, Result, Workload, worst

VALID = Keyword("valid?")
_NAMES = 4  # of many, so many are told
SMALL = 20_000  # messages, which are read in less than a second
_VALID = keywords(valid=True)
# What judges nothing, there as here.
_UNJUDGED = keywords(
    perf=keywords(latency_graph=_VALID, rate_graph=_VALID, valid=True), timeline=_VALID
)
OPEN = ("stats", "availability")  # how much succeeds is open until a run has come to its end


def judge(
    outcome: RunResult,
    options: TestOptions,
    workload: Workload,
    events: Callable[[], Iterable[Event]] = tuple,
    store: Result | None = None,
) -> Judgement:
    """Judge a run that has just ended.

    Nothing is held against a run that stopped early but what no longer run could undo. `events` reads the
    journal, where a reason must be found. `store` is what a real store says about the run.
    """
    history, failure, asked = outcome.history, outcome.failure, options.as_dict()
    result = _safely(lambda: workload.judge.check(history, asked))
    found = concluded(workload.judge, result, history, asked, str(failure or "") or None)
    place = found.place
    assert place
    checks = _checks(outcome, options)
    if never := never_succeeded(checks["stats"]):
        whys = reasons(history, never, place, events, outcome.pipes)
        checks["stats"] |= keywords(reasons={Keyword(f): why for f, why in whys.items()})
    verdicts = [*(each[VALID] for each in checks.values()), found.result[VALID]]
    results = {
        **_UNJUDGED,
        **{Keyword(name): check for name, check in checks.items()},
        **found.results,
        **keywords(valid=worst([*verdicts, UNKNOWN] if failure else verdicts)),
        **dict(_beside(outcome, store)),
    }
    is_calm = not failure and all(op.process != NEMESIS for op in history)
    is_valid, traffic = results[VALID] is True, outcome.network
    if not is_valid or traffic.clients.sent + traffic.servers.sent <= SMALL:
        shown = facts(
            events(),
            found.findings,
            place,
            outcome.history_origin_ns,
            is_valid=is_valid,
            is_calm=is_calm,
        )
        results |= keywords(messages=shown) if shown else {}
    return replace(found, results=results)


def _checks(outcome: RunResult, options: TestOptions) -> dict[str, Result]:
    """What each checker finds. One that breaks leaves the verdict unknown and says so; the others count."""
    history, hearing = outcome.history, outcome.network.hearing
    checks = {
        "exceptions": _safely(lambda: exceptions(history)),
        "stats": _safely(lambda: stats(history)),
        "availability": _safely(lambda: availability(history, options.availability)),
        "net": _safely(lambda: net_statistics(history, outcome.network)),
    }
    # The real tool lacks these two.
    if hearing.repeated:
        checks["answers"] = keywords(valid=not options.strict, repeated=dict(hearing.repeated))
    if hearing.foreign:
        by_node = {
            node: keywords(messages=names.total(), names=[*dict(names.most_common(_NAMES))])
            for node, names in hearing.foreign.items()
        }
        checks["names"] = keywords(valid=not options.strict, by_node=by_node)
    for name in OPEN if outcome.failure else ():
        checks[name][VALID] = checks[name][VALID] or UNKNOWN
    return checks


def _safely(check: Callable[[], Result]) -> Result:
    try:
        return check()
    except Exception:
        return keywords(valid=UNKNOWN, error=traceback.format_exc())


def _beside(outcome: RunResult, store: Result | None) -> Iterator[tuple[Keyword, object]]:
    """What stands beside the checks, each where there is any."""
    if faults := injections(outcome.history):
        # The real tool's results do not have them; times in ns of the history.
        yield (
            Keyword("faults"),
            [
                keywords(
                    fault=Keyword(each.fault),
                    start_time=each.start_ns,
                    end_time=each.end_ns,
                    text=each.text,
                )
                for each in faults
            ],
        )
    if dropped := outcome.network.hearing.dropped:
        yield Keyword("dropped-lines"), dict(dropped)
    if outcome.failure:
        yield Keyword("error"), str(outcome.failure)
    if store is not None:
        yield Keyword("store"), store


def stats(history: Sequence[Op]) -> Result:
    """Counts of outcomes by `f`; invalid when some `f` never succeeded."""
    completed = [op for op in history if op.type != "invoke" and op.process != NEMESIS]
    ends = grouped((op.f, op.type) for op in completed)
    by_f = {Keyword(f): _counted_ends(Counter(ends[f])) for f in sorted(ends)}
    found = _counted_ends(Counter(op.type for op in completed)) | keywords(by_f=by_f)
    return found | keywords(valid=not never_succeeded(found))


def _counted_ends(ends: Counter[str]) -> Result:
    counts = {f"{end}_count": ends[end] for end in ("ok", "fail", "info")}
    return keywords(valid=ends["ok"] > 0, count=ends.total(), **counts)


def availability(history: Sequence[Op], expected: str | float | None) -> Result:
    """The fraction of invocations that succeeded, against `total` (all), a lower bound, or nothing.

    Where they are too few, `last_ok` tells of the last one of them, after which none of `later` operations did.
    """
    counts = Counter(op.type for op in history)
    fraction = single(counts["ok"] / counts["invoke"]) if counts["invoke"] else 1
    bound = 1.0 if expected == "total" else float(expected or 0)
    found = keywords(valid=fraction >= bound, ok_fraction=fraction)
    if fraction >= bound:
        return found
    last = next((op for op in reversed(history) if op.type == "ok"), None)
    since = last.index if last else -1
    later = sum(op.type == "invoke" and op.index > since for op in history)
    told = last and keywords(process=last.process, f=last.f, time=last.time)
    return found | keywords(last_ok=told, later=later)


def exceptions(history: Iterable[Op]) -> Result:
    """Operations during which a client itself broke, the most frequent kind first; they are no anomaly."""
    ended = (op for op in history if op.type == "info" and "exception" in op.extra)
    broken = grouped((op.extra["exception"], op) for op in ended)
    found = [
        keywords(count=len(ops), **{"class": kind}, example=ops[0])
        for kind, ops in sorted(broken.items(), key=lambda each: -len(each[1]))
    ]
    return keywords(valid=True, exceptions=found) if found else keywords(valid=True)


def net_statistics(history: Sequence[Op], network: Network) -> Result:
    """Messages sent and received.

    `init` and its reply count too, as in the results of the real tool; operations are the invocations by
    clients, crashes included. Without operations nothing is said of one.
    """
    operations, clients, servers = operation_count(history), network.clients, network.servers

    def per_op(traffic: Traffic) -> Result:
        return keywords(msgs_per_op=single(traffic.sent / operations)) if operations else {}

    both = Traffic(clients.sent + servers.sent, clients.received + servers.received)
    return keywords(
        all=_counted(both) | per_op(both),
        clients=_counted(clients),
        servers=_counted(servers) | per_op(servers),
        valid=True,
    )


def _counted(traffic: Traffic) -> dict[Any, Any]:
    return keywords(send_count=traffic.sent, recv_count=traffic.received, msg_count=traffic.sent)


def single(number: float) -> float:
    """The number in single precision, with no more digits than that has: as the real tool prints it."""
    packed = pack("f", number)
    texts = (f"{unpack('f', packed)[0]:.{digits}g}" for digits in range(1, 10))
    return next(float(text) for text in texts if pack("f", float(text)) == packed)
