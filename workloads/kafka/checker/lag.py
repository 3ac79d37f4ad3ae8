"""Realtime lag: how far behind the present the polls were. [jepsen.tests.kafka realtime-lag]

An offset *expires* when a higher one is first known to exist, by a send or a poll that states it. The
lag of a key at a poll is the time from the expiry of the highest offset that the poll's process knows to
the poll's invocation. It is a lower bound, since the poll may have happened right at its invocation.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from runs.history import Op
from runs.keyword import Keyword, keywords
from workloads.kafka.checker.contiguity import assigned_keys
from workloads.kafka.checker.facts import Facts, Key, Transaction

_NS = 1e9
_NEVER = 1 << 63


class Expiry:
    """When the end of one log was first known to be at or past each offset."""

    def __init__(self) -> None:
        self.offsets: list[int] = []  # ascending
        self.times_ns: list[int] = []

    def extend(self, offset: int, time_ns: int) -> None:
        """Note that `offset` exists at `time_ns`, and with it all lower ones."""
        if not self.offsets or offset > self.offsets[-1]:
            self.offsets.append(offset)
            self.times_ns.append(time_ns)

    def of(self, offset: int) -> int:
        """When `offset` was no longer the highest, in ns; far in the future if it still is."""
        place = bisect_left(self.offsets, offset + 1)
        return self.times_ns[place] if place < len(self.times_ns) else _NEVER


def known_offsets(transaction: Transaction) -> dict[Key, int]:
    """The highest offset of each key that a transaction states, unless it failed; -1 for none."""
    if transaction.type == "fail":
        return {}
    highest = {key: run.highest for key, run in transaction.polls.items()}
    for key, run in transaction.sends.items():
        if run.highest >= 0:
            highest[key] = max(run.highest, highest.get(key, -1))
    return highest


def expiries(known: Iterable[tuple[int, Mapping[Key, int]]]) -> dict[Key, Expiry]:
    """The expiry of each key's offsets, from the times (ns) at which offsets became known."""
    found: dict[Key, Expiry] = {}
    for time_ns, offsets in known:
        for key, offset in offsets.items():
            if offset >= 0:
                found.setdefault(key, Expiry()).extend(offset, time_ns)
    return found


class Position:
    """What one process knows: the highest offset of each of its keys, and when that expired.

    Of the keys at one poll only the one that expired first matters, so a poll costs as much as the keys
    it moves, unless it moves the key that was furthest behind.
    """

    def __init__(self, expiry: Mapping[Key, Expiry]) -> None:
        self._expiry = expiry
        self.offsets: dict[Key, int] = {}
        self._expired_ns: dict[Key, int] = {}
        self._earliest_ns: int | None = None  # None: to be found again

    def assign(self, keys: Iterable[Key] | None) -> None:
        """Keep only `keys`, new ones from the start; None keeps nothing."""
        self.offsets = {key: self.offsets.get(key, -1) for key in keys or ()}
        self._expired_ns = {key: self._expires(key) for key in self.offsets}
        self._earliest_ns = None

    def advance(self, known: Mapping[Key, int]) -> None:
        """Raise the highest known offset of each key in `known`."""
        for key, offset in known.items():
            if offset > self.offsets.get(key, -2):
                self.offsets[key] = offset
                before = self._expired_ns.get(key, _NEVER)
                self._expired_ns[key] = self._expires(key)
                if before == self._earliest_ns or self._expired_ns[key] < before:
                    self._earliest_ns = None

    def lag(self, now_ns: int) -> int:
        """The largest lag over all keys, at least 0."""
        if self._earliest_ns is None:
            self._earliest_ns = min(self._expired_ns.values(), default=_NEVER)
        return max(0, now_ns - self._earliest_ns)

    def worst_key(self) -> Key:
        """The key furthest behind; of several the one that the process came to know first."""
        return min(self._expired_ns, key=lambda key: self._expired_ns[key])

    def _expires(self, key: Key) -> int:
        return self._expiry[key].of(self.offsets[key]) if key in self._expiry else _NEVER


def lag_report(lag_ns: int, invoked_ns: int, process: Any, key: Key) -> dict[Keyword, Any]:
    """`:worst-realtime-lag` as in results.edn, in seconds."""
    return keywords(time=invoked_ns / _NS, process=process, key=key, lag=lag_ns / _NS)


NO_LAG = keywords(time=0.0, lag=0.0)  # no polls


def worst_realtime_lag(facts: Facts) -> dict[Keyword, Any]:
    """The first poll with the greatest lag: time and lag in seconds, process and key."""
    worst: tuple[int, Op, int, Key] | None = None
    for poll, invoked_ns, position in _polls(facts):
        lag_ns = position.lag(invoked_ns)
        if position.offsets and (worst is None or lag_ns > worst[0]):
            worst = (lag_ns, poll, invoked_ns, position.worst_key())
    if worst is None:
        return dict(NO_LAG)
    lag_ns, poll, invoked_ns, key = worst
    return lag_report(lag_ns, invoked_ns, poll.process, key)


def _polls(facts: Facts) -> Iterator[tuple[Op, int, Position]]:
    """Each successful poll, when it was invoked, and the position of its process after it."""
    transactions = {each.completed_at: each for each in facts.transactions}
    known = {at: known_offsets(each) for at, each in transactions.items()}
    expiry = expiries((facts.history[at].time, offsets) for at, offsets in known.items())
    positions: dict[Any, Position] = {}
    for at, op in enumerate(facts.history):
        if op.type != "ok":
            continue
        position = positions.setdefault(op.process, Position(expiry))
        if op.f in ("assign", "subscribe"):
            position.assign(assigned_keys(op) if op.f == "assign" else None)
        elif op.f in ("poll", "txn"):
            position.advance(known[at])
            invoked_at = transactions[at].invoked_at
            yield op, (op if invoked_at is None else facts.history[invoked_at]).time, position
