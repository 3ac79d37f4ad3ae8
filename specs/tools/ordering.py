"""The order in which a trace's events happened in the store, from what the events say themselves.

A node writes an event when an answer reaches it; another node may have seen the effect before: (1) n0's
cas is accepted, (2) n1 reads the head with n0's entry in it, (3) n0 gets its answer. Lines 2 and 3 then
stand the wrong way round. But every event that touches the head tells which value it met: the epoch
and the length of the log, its *version*. That orders them:

- a node's own events keep their order (but fences, which change nothing of the node);
- what met version v comes after what made v and before what met or made a later one;
- a batch is handed over before its helper commits it, a claim follows those of lower epochs.

Everything else keeps its place. (Sorting by version alone would be wrong: most events have none.)
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

from specs.tools.traces import Event

Version: TypeAlias = tuple[int, int]  # epoch, length; a fence makes (epoch, -1)
Edges: TypeAlias = dict[int, set[int]]


class _Heads:
    """Which event made or met which version of the head."""

    def __init__(self, events: Sequence[Event]) -> None:
        self._events = events
        self.made: dict[Version, int] = {}
        self.met: dict[Version, list[int]] = defaultdict(list)
        self.refused: list[tuple[int, Version]] = []  # (event, version it wrongly took for current)
        self._known: dict[str, Version] = {}
        for number, event in enumerate(events):
            self._note(number, event)

    def _note(self, number: int, event: Event) -> None:
        node, step = event["node"], event["step"]
        known = self._known.get(node, (0, 0))
        if step in ("Refresh", "Answered"):
            self._known[node] = (event["epoch"], event["length"])
            self.met[self._known[node]].append(number)
        elif step == "Commit" and event["entries"]:
            self._known[node] = (known[0], event["entries"][-1]["slot"] + 1)
            self.made.setdefault(self._known[node], number)
        elif step in ("Fence", "Unfence"):
            self.made.setdefault((event["epoch"], -1), number)
        elif step == "Unknown":  # its cas left from the version the node knew
            self.met[known].append(number)
        elif step == "Conflict":
            self.refused.append((number, known))

    def edges(self) -> Iterator[tuple[int, int]]:
        versions = sorted({*self.made, *self.met})
        for version, later in pairwise(versions):
            for before in self._at(version):
                yield from ((before, after) for after in self._first_at(later))
        for version, maker in self.made.items():
            yield from ((maker, reader) for reader in self.met.get(version, ()))
        for number, known in self.refused:
            newer = min((version for version in versions if version > known), default=known)
            if newer in self.made:  # if not, a cas of unknown outcome made it
                yield self.made[newer], number
            yield from ((before, number) for before in self._others_at(known, number))

    def _at(self, version: Version) -> list[int]:
        maker = [self.made[version]] if version in self.made else []
        return maker + self.met.get(version, [])

    def _others_at(self, version: Version, number: int) -> list[int]:
        node = self._events[number]["node"]
        return [met for met in self.met.get(version, ()) if self._events[met]["node"] != node]

    def _first_at(self, version: Version) -> list[int]:
        """What every other event of this version comes after, or all of them."""
        return [self.made[version]] if version in self.made else self.met[version]


def _own_order(events: Sequence[Event]) -> Iterator[tuple[int, int]]:
    last: dict[str, int] = {}
    for number, event in enumerate(events):
        if event["step"] in ("Fence", "Unfence"):
            continue  # changes nothing of the node; a read of its own may have seen it before the answer
        if event["node"] in last:
            yield last[event["node"]], number
        last[event["node"]] = number


def _ids(event: Event) -> list[Any]:
    if event["step"] == "Commit":
        return [entry["id"] for entry in event["entries"]]
    return list(event["ids"]) if event["step"] == "Unknown" else []


def _hand_overs(events: Sequence[Event]) -> Iterator[tuple[int, int]]:
    handed: dict[tuple[str, str], int] = {}
    for number, event in enumerate(events):
        if event["step"] == "HandOver":
            handed.setdefault((event["to"], str(event["id"])), number)
    for number, event in enumerate(events):
        for id_ in _ids(event):
            if (event["node"], str(id_)) in handed:
                yield handed[event["node"], str(id_)], number


def _claims(events: Sequence[Event]) -> Iterator[tuple[int, int]]:
    """Claims in the order of their epochs, and behind the cursors that they begin at."""
    steps = ("Claim", "CompactCursor")
    claims, cursors = ([i for i, e in enumerate(events) if e["step"] == step] for step in steps)
    claims.sort(key=lambda number: events[number]["epoch"])
    yield from pairwise(claims)
    for cursor in cursors:
        behind = [claim for claim in claims if events[claim]["base"] > events[cursor]["base"]]
        if behind:
            yield cursor, behind[0]


def in_store_order(events: Sequence[Event]) -> list[int]:
    """The numbers (from 0) of the events in the order of the store.

    Events that contradict each other stay in the order given: following them will then fail.
    """
    edges: Edges = defaultdict(set)
    for source in (
        _own_order(events),
        _Heads(events).edges(),
        _hand_overs(events),
        _claims(events),
    ):
        for before, after in source:
            if before != after:
                edges[before].add(after)
    waits_for = [0] * len(events)
    for afters in edges.values():
        for after in afters:
            waits_for[after] += 1
    ready = [number for number, count in enumerate(waits_for) if count == 0]
    order = []
    while ready:
        number = heapq.heappop(ready)
        order.append(number)
        for after in edges[number]:
            waits_for[after] -= 1
            if waits_for[after] == 0:
                heapq.heappush(ready, after)
    return order if len(order) == len(events) else list(range(len(events)))
