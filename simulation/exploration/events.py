"""What an event touches: two events that touch nothing in common commute.

An event names the resources that it touches (a node, a register, a message, a budget of faults), each in one of
three ways. Two events are independent when each resource that both touch allows it:

              reads   adds   writes
    reads      yes     no      no
    adds       no      yes     no
    writes     no      no      no

`adds` is for what has no order among its own kind: answers to clients. What counts for a client is whether an
answer came before a request was made, not which of two answers came first.

The relation is conditional: an event is recorded with what it touched where it was executed. Events that are
independent of it leave that unchanged, so it holds in the state after them, too
[Godefroid, Partial-Order Methods for the Verification of Concurrent Systems, 1996, chapter 3].
"""

from collections.abc import Mapping
from typing import Literal, NamedTuple

Way = Literal["reads", "adds", "writes"]
Footprint = Mapping[str, Way]  # by resource


class Event(NamedTuple):
    """One thing that may happen; `what` names a message, a node, a client or a length of time.

    The name is the same in every order of independent events.
    """

    kind: str
    what: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.what}".strip()


def independent(one: Footprint, other: Footprint) -> bool:
    """Whether two events that touch this commute, and neither makes the other possible or impossible."""
    for resource, way in one.items():
        its = other.get(resource)
        if its is not None and (its != way or way == "writes"):
            return False
    return True
