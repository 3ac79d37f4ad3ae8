"""Anomalies of order: jumps forward (skips) and steps back (nonmonotonic), inside and between operations.

Within one transaction, and from one transaction of a process to its next, messages of a key should come
one index after the other. Each function here looks at one transaction, or at the operations of one
process, and at the logs. [jepsen.tests.kafka]
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise

from runs.history import Op
from runs.keyword import keywords
from workloads.kafka.checker.cases import Case, Cases
from workloads.kafka.checker.observed import Key, Run, Transaction, scalar
from workloads.kafka.checker.versions import Log

_NO_LOG = Log()
_NO_RUN = Run()


def int_poll_cases(transaction: Transaction, logs: Mapping[Key, Log]) -> Iterator[tuple[str, Case]]:
    """`int-poll-skip` and `int-nonmonotonic-poll` within one transaction, except for rebalanced keys."""
    rebalanced = set(_rebalanced(transaction.op))
    for key, run in transaction.polls.items():
        if key not in rebalanced:
            yield from _jumps(transaction.op, key, run, logs.get(key, _NO_LOG), "poll")


def int_send_cases(transaction: Transaction, logs: Mapping[Key, Log]) -> Iterator[tuple[str, Case]]:
    """`int-send-skip` and `int-nonmonotonic-send` within one transaction."""
    for key, run in transaction.sends.items():
        yield from _jumps(transaction.op, key, run, logs.get(key, _NO_LOG), "send")


def _jumps(op: Op, key: Key, run: Run, log: Log, f: str) -> Iterator[tuple[str, Case]]:
    index_of = log.index_of
    indices = [index_of.get(message) for message in run.messages]
    for position, (before, after) in enumerate(pairwise(indices)):
        if before is None or after is None or after - before == 1:
            continue
        values = run.messages[position : position + 2]
        jump = keywords(key=key, values=values, delta=after - before)
        if after > before:
            skipped = keywords(skipped=log.between(*values))
            yield f"int-{f}-skip", {**jump, **skipped, **keywords(op=op)}
        else:
            yield f"int-nonmonotonic-{f}", {**jump, **keywords(op=op)}


def _rebalanced(op: Op) -> Iterator[Key]:
    events = op.extra.get("rebalance-log")
    for event in events if isinstance(events, list) else ():
        if isinstance(event, dict) and isinstance(event.get("keys"), list):
            yield from map(scalar, event["keys"])


def poll_cases(
    operations: Iterable[Op | Transaction], logs: Mapping[Key, Log]
) -> Iterator[tuple[str, Case]]:
    """`poll-skip` and `nonmonotonic-poll` between the transactions of one process.

    Every poll is compared with the last successful one of the same key; an assignment forgets the keys
    that it does not name.
    """
    last: dict[Key, Transaction] = {}
    for each in operations:
        if isinstance(each, Op):
            last = _still_assigned(last, each)
            continue
        for key in each.polls:
            if key in last:
                yield from _poll_step(key, last[key], each, logs.get(key, _NO_LOG))
            if each.type == "ok":
                last[key] = each


def _poll_step(
    key: Key, earlier: Transaction, later: Transaction, log: Log
) -> Iterator[tuple[str, Case]]:
    before, after = earlier.polls[key].messages, later.polls[key].messages
    if not before or not after:
        return
    values = [before[-1], after[0]]
    delta = log.distance(*values)
    ops = [earlier.op, later.op]
    if delta > 1:
        skipped = log.between(*values)
        yield "poll-skip", keywords(key=key, delta=delta, skipped=skipped, ops=ops)
    if delta < 1:
        yield "nonmonotonic-poll", keywords(key=key, values=values, delta=delta, ops=ops)


def send_cases(
    operations: Iterable[Op | Transaction], logs: Mapping[Key, Log]
) -> Iterator[tuple[str, Case]]:
    """`nonmonotonic-send` between the transactions of one process that may have taken effect."""
    last: dict[Key, Transaction] = {}
    for each in operations:
        if isinstance(each, Op):
            last = _still_assigned(last, each)
            continue
        for key, run in each.sends.items() if each.type != "fail" else ():
            if key in last:
                values = [last[key].sends[key].messages[-1], run.messages[0]]
                delta = logs.get(key, _NO_LOG).distance(*values)
                if delta < 1:
                    ops = [last[key].op, each.op]
                    case = keywords(key=key, values=values, delta=delta, ops=ops)
                    yield "nonmonotonic-send", case
            last[key] = each


def _still_assigned(last: dict[Key, Transaction], assignment: Op) -> dict[Key, Transaction]:
    """What of `last` outlives `assignment`, if that may have taken effect."""
    if assignment.type == "fail":
        return last
    named = assigned_keys(assignment)
    return {key: last[key] for key in named if key in last}


def assigned_keys(assignment: Op) -> list[Key]:
    """The keys an assignment names."""
    return [scalar(key) for key in assignment.value] if isinstance(assignment.value, list) else []


def by_type(cases: Iterable[tuple[str, Case]]) -> Cases:
    """The cases of each anomaly type, in order."""
    found: Cases = {}
    for anomaly, case in cases:
        found.setdefault(anomaly, []).append(case)
    return found
