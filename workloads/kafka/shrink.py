"""Shrinks a history to the few operations that show an anomaly. [Zeller & Hildebrandt, delta debugging]

A cut says which parts can be left out: operations, each with its completion; or parts that the workload knows,
such as a message, wherever it was sent and seen. But a smaller history may be wrong where the whole one was
right: without the poll that got a message, the message looks lost. So anomalies have names that stay the same
in every part of a history. A step is taken only if it leaves an anomaly, and adds none.

What an anomaly is called, and messages as parts of a history, are those of kafka.
"""

from collections.abc import Callable, Container, Hashable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, cast

from runs.history import Op, completions
from workloads.kafka.checker import check


class Cut(NamedTuple):
    """A way to make histories smaller: the parts of a history, and a history without some of them."""

    parts: Callable[[Sequence[Op]], Sequence[Hashable]]
    without: Callable[[Sequence[Op], set[Hashable]], list[Op]]


def shrink(
    history: Sequence[Op],
    anomalies: Callable[[Sequence[Op]], set[Hashable]],
    cuts: Sequence[Cut] | None = None,
    wanted: Callable[[Any], bool] = lambda _: True,
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
        for start in range((len(parts) - 1) // size * size, -1, -size):  # later ones explain less
            chunk = parts[start : start + size]
            smaller = cut.without(history, set(chunk))
            if is_wrong(smaller):
                history, parts = smaller, [part for part in parts if part not in chunk]
                break
        else:
            size //= 2
        size = min(size, len(parts))
    return history


def _operations(history: Sequence[Op]) -> list[Hashable]:
    """The index of each operation's first half."""
    seconds = set(completions(history).values())
    return [op.index for position, op in enumerate(history) if position not in seconds]


def _without_operations(history: Sequence[Op], dropped: set[Hashable]) -> list[Op]:
    gone = {position for position, op in enumerate(history) if op.index in dropped}
    gone |= {second for first, second in completions(history).items() if first in gone}
    return [op for position, op in enumerate(history) if position not in gone]


OPERATIONS = Cut(_operations, _without_operations)

# The fields that identify a case of a type; indices and distances change while other messages go.
_NAMING = {"lost-write": ("key", "value")}
_NAMING_OTHERS = ("key", "value", "values", "offset", "op", "ops")


def smallest(history: Sequence[Op], kinds: Container[str]) -> list[Op]:
    """A part of a history that shows an anomaly of these types with few messages and operations."""
    return shrink(history, anomalies, (MESSAGES, OPERATIONS), lambda name: name[0] in kinds)


def anomalies(history: Sequence[Op]) -> set[Hashable]:
    """A name for each anomaly that the checker shows of a history: its type, and what it is about."""
    result = cast("dict[str, Any]", check(history, {}))
    names: set[Hashable] = set()
    for anomaly in result["error-types"]:
        if anomaly == "unseen":
            messages = result["unseen"]["messages"]
            names |= {
                ("unseen", key, message) for key, each in messages.items() for message in each
            }
        elif isinstance(result[anomaly]["errs"], tuple):
            names |= {(str(anomaly), *_name(anomaly, case)) for case in result[anomaly]["errs"]}
        else:
            names.add((str(anomaly),))
    return names


def _name(anomaly: str, case: Any) -> Iterator[Hashable]:
    return (
        _identity(case[field])
        for field in _NAMING.get(anomaly, _NAMING_OTHERS)
        if isinstance(case, dict) and field in case
    )


def _identity(value: Any) -> Hashable:
    """Operations by their index; anything else as it is written."""
    if isinstance(value, dict) and "index" in value:
        return int(value["index"])
    return tuple(map(_identity, value)) if isinstance(value, list | tuple) else repr(value)


def _messages(history: Sequence[Op]) -> list[Hashable]:
    """`(key, message)` for all that was sent, in order."""
    sends = (op.value[0] for op in history if op.f == "send" and op.type == "invoke")
    return [(key, repr(message)) for _, key, message in sends]


def _without_messages(history: Sequence[Op], dropped: set[Hashable]) -> list[Op]:
    """Neither sent nor polled; a poll that got nothing else got nothing."""
    return [op for op in (_without_in_op(op, dropped) for op in history) if op is not None]


def _without_in_op(op: Op, dropped: set[Hashable]) -> Op | None:
    if op.f == "send":
        _, key, message = op.value[0]
        sent = message[1] if op.type == "ok" else message
        return None if (key, repr(sent)) in dropped else op
    if op.f == "poll" and len(op.value[0]) > 1:
        left = {
            key: [pair for pair in pairs if (key, repr(pair[1])) not in dropped]
            for key, pairs in op.value[0][1].items()
        }
        messages = {key: pairs for key, pairs in left.items() if pairs}
        return replace(op, value=[[op.value[0][0], messages]])
    return op


MESSAGES = Cut(_messages, _without_messages)
