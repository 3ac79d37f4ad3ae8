"""Anomalies of order: jumps forward (skips) and steps back (nonmonotonic), inside and between operations.

Within one transaction, and from one transaction of a process to its next, messages of a key should come one
index after the other. [jepsen.tests.kafka]
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import pairwise
from operator import attrgetter

from runs.history import Op, keywords
from workloads.interface import Case
from workloads.kafka.checker.logs import SeenLog
from workloads.kafka.checker.observed import Key, Pairs, Transaction, scalar

_NO_LOG = SeenLog()


def int_cases(transaction: Transaction, logs: Mapping[Key, SeenLog]) -> Iterator[tuple[str, Case]]:
    """`int-poll-skip`, `int-send-skip` and their like in one transaction, but for polls of rebalanced keys."""
    rebalanced = set(_rebalanced(transaction.op))
    polls = {key: pairs for key, pairs in transaction.polls.items() if key not in rebalanced}
    return (
        case
        for f, by_key in (("poll", polls), ("send", transaction.sends))
        for key, pairs in by_key.items()
        for case in _jumps(transaction.op, key, pairs, logs.get(key, _NO_LOG), f)
    )


def _jumps(op: Op, key: Key, pairs: Pairs, log: SeenLog, f: str) -> Iterator[tuple[str, Case]]:
    index_of = log.index_of
    indices = [index_of.get(message) for message in pairs.messages]
    for position, (before, after) in enumerate(pairwise(indices)):
        if before is None or after is None or after - before == 1:
            continue
        values = pairs.messages[position : position + 2]
        jump = keywords(key=key, values=values, delta=after - before)
        if after > before:
            skipped = keywords(skipped=log.between(*values))
            yield f"int-{f}-skip", {**jump, **skipped, **keywords(op=op)}
        else:
            yield f"int-nonmonotonic-{f}", {**jump, **keywords(op=op)}


def _rebalanced(op: Op) -> Iterator[Key]:
    events = op.extra.get("rebalance-log")
    return (
        scalar(key)
        for event in (events if isinstance(events, list) else ())
        if isinstance(event, dict) and isinstance(event.get("keys"), list)
        for key in event["keys"]
    )


def poll_cases(
    operations: Iterable[Op | Transaction], logs: Mapping[Key, SeenLog]
) -> Iterator[tuple[str, Case]]:
    """`poll-skip` and `nonmonotonic-poll`: every poll is compared with the last successful one of its key."""
    for key, earlier, later in _in_turn(operations, attrgetter("polls"), ("ok",)):
        before, after = earlier.polls[key].messages, later.polls[key].messages
        if not before or not after:
            continue
        values, ops = [before[-1], after[0]], [earlier.op, later.op]
        log = logs.get(key, _NO_LOG)
        delta = log.distance(*values)
        if delta > 1:
            yield "poll-skip", keywords(key=key, delta=delta, skipped=log.between(*values), ops=ops)
        if delta < 1:
            yield "nonmonotonic-poll", keywords(key=key, values=values, delta=delta, ops=ops)


def send_cases(
    operations: Iterable[Op | Transaction], logs: Mapping[Key, SeenLog]
) -> Iterator[tuple[str, Case]]:
    """`nonmonotonic-send`, of sends that may have taken effect."""
    for key, earlier, later in _in_turn(operations, attrgetter("sends"), ("ok", "info")):
        values = [earlier.sends[key].messages[-1], later.sends[key].messages[0]]
        delta = logs.get(key, _NO_LOG).distance(*values)
        if delta < 1 and later.type != "fail":
            ops = [earlier.op, later.op]
            yield "nonmonotonic-send", keywords(key=key, values=values, delta=delta, ops=ops)


def _in_turn(
    operations: Iterable[Op | Transaction],
    of: Callable[[Transaction], Mapping[Key, Pairs]],
    kept: Collection[str],
) -> Iterator[tuple[Key, Transaction, Transaction]]:
    """Each transaction of one process, with the last one before it of the same key that ended as one of `kept`.

    An assignment that may have taken effect forgets the keys that it does not name.
    """
    last: dict[Key, Transaction] = {}
    for each in operations:
        if isinstance(each, Op):
            if each.type != "fail":
                last = {key: last[key] for key in assigned_keys(each) if key in last}
            continue
        for key in of(each):
            if key in last:
                yield key, last[key], each
            if each.type in kept:
                last[key] = each


def assigned_keys(assignment: Op) -> list[Key]:
    """The keys an assignment names."""
    return [scalar(key) for key in assignment.value] if isinstance(assignment.value, list) else []
