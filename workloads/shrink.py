"""Shrinks a history to the few operations that show an anomaly. [Zeller & Hildebrandt, delta debugging]

A cut says which parts can be left out: operations, each with its completion; or parts that the workload knows,
such as a message, wherever it was sent and seen. But a smaller history may be wrong where the whole one was
right: without the poll that got a message, the message looks lost. So anomalies have names that stay the same
in every part of a history. A step is taken only if it leaves an anomaly, and adds none.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import NamedTuple

from runs.history import Op, completions

Anomalies = Callable[[Sequence[Op]], set[Hashable]]
Parts = Sequence[Hashable]


class Cut(NamedTuple):
    """A way to make histories smaller: the parts of a history, and a history without some of them."""

    parts: Callable[[Sequence[Op]], Parts]
    without: Callable[[Sequence[Op], set[Hashable]], list[Op]]


def shrink(
    history: Sequence[Op],
    anomalies: Anomalies,
    cuts: Sequence[Cut] | None = None,
    wanted: Callable[[Hashable], bool] = lambda _: True,
) -> list[Op]:
    """A part of `history` with a wanted anomaly, from which no single part of `cuts` can be left out.

    `anomalies` names what is wrong in a history; one anomaly has the same name in every part of the history
    in which it is found. `wanted` chooses by name; `cuts` are operations if not given. Indices and times
    stay. Raises `ValueError` when nothing wanted is wrong in `history`.
    """
    known = anomalies(history)
    if not any(map(wanted, known)):
        raise ValueError("nothing is wrong in this history: there is nothing to shrink to")

    def is_wrong(smaller: Sequence[Op]) -> bool:
        found = anomalies(smaller)
        return found <= known and any(map(wanted, found))

    smaller, before = list(history), -1
    while len(smaller) != before:  # what one cut leaves may be open to another again
        before = len(smaller)
        for cut in cuts or (OPERATIONS,):
            smaller = _reduced(smaller, cut, is_wrong)
    return smaller


def _reduced(history: list[Op], cut: Cut, is_wrong: Callable[[Sequence[Op]], bool]) -> list[Op]:
    """Leave out chunks of parts, large ones first, until not one part can go."""
    parts = cut.parts(history)
    size = len(parts)
    while size:
        for chunk in _chunks(parts, size):
            smaller = cut.without(history, set(chunk))
            if is_wrong(smaller):
                history, parts = smaller, [part for part in parts if part not in chunk]
                break
        else:
            size //= 2
        size = min(size, len(parts))
    return history


def _chunks(parts: Parts, size: int) -> Iterator[Parts]:
    """The last ones first: what comes later explains less."""
    for start in range((len(parts) - 1) // size * size, -1, -size):
        yield parts[start : start + size]


def _operations(history: Sequence[Op]) -> list[Hashable]:
    """The index of each operation's first half."""
    seconds = set(completions(history).values())
    return [op.index for position, op in enumerate(history) if position not in seconds]


def _without_operations(history: Sequence[Op], dropped: set[Hashable]) -> list[Op]:
    gone = {position for position, op in enumerate(history) if op.index in dropped}
    gone |= {second for first, second in completions(history).items() if first in gone}
    return [op for position, op in enumerate(history) if position not in gone]


OPERATIONS = Cut(_operations, _without_operations)
