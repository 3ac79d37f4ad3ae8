"""What a node did not write because it no longer waited for it, or died: the outcome of a cas.

A node writes `Try` when it sends a cas of the head. An answer in time becomes Commit, Conflict or Unknown.
But it may learn of a newer head by another way first, by a poll's read or a peer's answer, and then its cas
does not matter any more; or it is killed. For the log the outcome is unknown then: it may have happened, and
other nodes may have seen it. So an Unknown belongs before that event. And the other way round: a read that
was under way when the cas was refused says nothing new, and is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from specs.tools.traces import Event

ENDS = ("Commit", "Conflict", "Unknown")
LEARNS = ("Refresh", "Answered")

Numbered = tuple[int, Event]  # with its number in the trace, from 0


class _Node:
    """What one node tried last, and which head it knows."""

    def __init__(self) -> None:
        self.tried: list[Any] | None = None
        self.known: tuple[int, int] | None = None  # epoch, length
        self.refused = False
        self.unanswered = False

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
            self.tried, self.unanswered = event["ids"], False
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
    return [
        (at, taken)
        for number, event in enumerate(events)
        for at, taken in nodes.setdefault(event["node"], _Node()).take(number, event)
        if taken["step"] not in ("Try", "TrySwitch")
    ] + [
        (len(events) - 1, {"step": "Unknown", "node": name, "ids": node.tried})
        for name, node in nodes.items()
        if node.tried is not None
    ]
