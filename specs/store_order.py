"""A trace as HeadLog needs it: with the outcomes that a node could not write, in the order of the store.

**Outcomes.** A node writes `Try` when it sends a cas of the head. An answer in time becomes Commit, Conflict
or Unknown. But the node may learn of a newer head before the answer, by a read or a peer's answer, and then
its cas no longer matters; or it is killed. If the node found out that its cas changed nothing, it writes
Conflict after that: it is put before. Else the outcome is unknown for the log: the cas may have happened, and
other nodes may have seen it. So an Unknown is put before that event. And a read that was under way when the cas
was refused says nothing new: it is left out.

**Order.** The order in which a trace's events happened in the store, from what the events say themselves.

A node writes an event when an answer reaches it; another node may have seen the effect before: (1) n0's
cas is accepted, (2) n1 reads the head with n0's entry in it, (3) n0 gets its answer. Lines 2 and 3 then
stand the wrong way round. But every event that touches the head tells which value it met: the epoch
and the length of the log, its *version*. That orders them:

- a node's own events keep their order (but fences, which change nothing of the node);
- what met version v comes after what made v and before what met or made a later one;
- a batch is handed over before its helper commits it, a claim follows those of lower epochs.

Everything else keeps its place. (Sorting by version alone would be wrong: most events have none.)
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from graphlib import CycleError, TopologicalSorter
from heapq import heappop, heappush
from itertools import chain, pairwise
from typing import Any, TypeAlias

from specs.translation import Event

Numbered: TypeAlias = tuple[int, Event]  # with its number in the trace, from 0
Version: TypeAlias = tuple[int, int]  # epoch, length; a fence makes (epoch, -1)
ENDS = ("Commit", "Conflict", "Unknown")
LEARNS = ("Refresh", "Answered")


class _Node:
    """What one node tried last, and which head it knows."""

    def __init__(self) -> None:
        self.tried: list[Any] | None = None
        self.known: tuple[int, int] | None = None  # epoch, length
        self.refused = False
        self.unanswered = False
        # Where the Unknown of a cas stands that a newer head has overtaken, in what was made.
        self.overtaken: int | None = None

    def take(self, number: int, event: Event) -> Iterator[Numbered]:
        step = event["step"]
        version = (event["epoch"], event["length"]) if step in LEARNS else None
        if version is not None and version == self.known and self.refused:
            return
        if self.tried is not None and (step == "Restart" or version not in (None, self.known)):
            yield number, {"step": "Unknown", "node": event["node"], "ids": self.tried}
            self.tried = None
        if step == "Try" and self.unanswered and self.known:
            # asked again before any read: as if it had read the very head that it asked with
            epoch, length = self.known
            read = {"step": "Refresh", "node": event["node"], "length": length, "epoch": epoch}
            yield number, read
        yield number, event
        self._note(step, event, version)

    def _note(self, step: str, event: Event, version: tuple[int, int] | None) -> None:
        if step == "Try":
            self.tried, self.unanswered, self.overtaken = event["ids"], False, None
        elif step in ENDS:
            self.tried = None
            self.refused, self.unanswered = step == "Conflict", step == "Unknown"
        elif step == "Restart":
            self.__init__()  # type: ignore[misc]  # a new life
        if step == "Commit" and event["entries"] and self.known:
            self.known = (self.known[0], event["entries"][-1]["slot"] + 1)
        elif version is not None:
            self.known, self.refused, self.unanswered = version, False, False


def lost_switches(events: Sequence[Event]) -> tuple[int, ...]:
    """The epochs that a fence or unfence tried to begin, and nobody heard that one did."""
    tried = {event["epoch"] for event in events if event["step"] == "TrySwitch"}
    heard = {event["epoch"] for event in events if event["step"] in ("Fence", "Unfence")}
    return tuple(sorted(tried - heard))


def with_outcomes(events: Sequence[Event]) -> list[Numbered]:
    """The events with what is missing, each with the number of the event that it belongs to.

    The attempts themselves are left out: the model has a cas only once its outcome counts.
    """
    nodes: dict[str, _Node] = {}
    made: list[Numbered] = []
    for number, event in enumerate(events):
        node = nodes.setdefault(event["node"], _Node())
        if event["step"] == "Conflict" and node.tried is None and node.overtaken is not None:
            made[node.overtaken] = made[node.overtaken][0], event
            node.overtaken = None
            continue
        for at, taken in node.take(number, event):
            if taken is not event and taken["step"] == "Unknown":
                node.overtaken = len(made)
            if taken["step"] not in ("Try", "TrySwitch"):
                made.append((at, taken))
    return made + [
        (len(events) - 1, {"step": "Unknown", "node": name, "ids": node.tried})
        for name, node in nodes.items()
        if node.tried is not None
    ]


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
    sorter = TopologicalSorter[int](dict.fromkeys(range(len(events)), ()))
    for before, after in chain(
        _own_order(events), _Heads(events).edges(), _hand_overs(events), _claims(events)
    ):
        if before != after:
            sorter.add(after, before)
    try:
        sorter.prepare()
    except CycleError:
        return list(range(len(events)))
    ready: list[int] = []
    order = []
    while sorter.is_active():
        for number in sorter.get_ready():
            heappush(ready, number)
        order.append(heappop(ready))
        sorter.done(order[-1])
    return order
