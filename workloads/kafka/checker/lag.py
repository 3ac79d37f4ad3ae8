"""The worst realtime lag of a history's polls; `runs.lag` defines it."""

from collections.abc import Iterator
from typing import Any

from runs.history import Op
from runs.keyword import Keyword, keywords
from runs.lag import BEFORE_ALL, Expiries, Position
from workloads.kafka.checker.contiguity import assigned_keys
from workloads.kafka.checker.observed import Facts, Key, Transaction

_NS = 1e9


def known_offsets(transaction: Transaction) -> dict[Key, int]:
    """The highest offset of each key that a transaction states, unless it failed; `BEFORE_ALL` for none."""
    if transaction.type == "fail":
        return {}
    highest = {key: run.highest for key, run in transaction.polls.items()}
    for key, run in transaction.sends.items():
        if run.highest >= 0:
            highest[key] = max(run.highest, highest.get(key, -1))
    return highest


def lag_report(lag_ns: int, invoked_ns: int, process: Any, key: Key) -> dict[Keyword, Any]:
    """`:worst-realtime-lag` as in results.edn, in seconds."""
    return keywords(time=invoked_ns / _NS, process=process, key=key, lag=lag_ns / _NS)


NO_LAG = keywords(time=0.0, lag=0.0)  # no polls


def worst_realtime_lag(facts: Facts) -> dict[Keyword, Any]:
    """The first poll with the greatest lag: time and lag in seconds, process and key."""
    worst: tuple[int, Op, int, Key] | None = None
    for poll, invoked_ns, position in polls(facts):
        lag_ns = position.lag(invoked_ns)
        if position.places and (worst is None or lag_ns > worst[0]):
            worst = (lag_ns, poll, invoked_ns, position.worst_key())
    if worst is None:
        return dict(NO_LAG)
    lag_ns, poll, invoked_ns, key = worst
    return lag_report(lag_ns, invoked_ns, poll.process, key)


def polls(facts: Facts) -> Iterator[tuple[Op, int, Position]]:
    """Each successful poll, when it was invoked, and the position of its process after it."""
    transactions = {each.completed_at: each for each in facts.transactions}
    known = {at: known_offsets(each) for at, each in transactions.items()}
    expiries = Expiries((facts.history[at].time, offsets) for at, offsets in known.items())
    positions: dict[Any, Position] = {}
    for at, op in enumerate(facts.history):
        if op.type != "ok":
            continue
        position = positions.setdefault(op.process, Position())
        if op.f in ("assign", "subscribe"):
            keys = assigned_keys(op) if op.f == "assign" else ()
            position.assign(expiries.places(dict.fromkeys(keys, BEFORE_ALL)))
        elif op.f in ("poll", "txn"):
            position.advance(expiries.places(known[at]))
            invoked_at = transactions[at].invoked_at
            yield op, (op if invoked_at is None else facts.history[invoked_at]).time, position
